"""Codex rollouts: commands that end in a later call, copied histories, and every shape of output."""

import json

import pytest

from osmia_memory.errors import TranscriptError
from tests.transcripts.builders import (
    CHILD,
    CHILD_TURN,
    PARENT,
    PARENT_TURN,
    Codex,
    jsonl,
    kinds,
    of_kind,
    ran,
    read_many,
    read_one,
    reasons,
    running,
)

ENVIRONMENT = "<environment_context>\n  <cwd>/srv/shop</cwd>\n  <sandbox_mode>read-only</sandbox_mode>\n  <network_access>restricted</network_access>\n  <shell>zsh</shell>\n</environment_context>"
PATCH = "*** Begin Patch\n*** Update File: /srv/shop/cart.py\n@@\n-total\n+total - discount\n*** Add File: notes/new.md\n+hello\n*** Delete File: old.py\n*** End Patch"


def signals(transcript, name: str) -> list[str]:
    """Values of one signal."""
    return [s.value for s in transcript.run.signals if s.name == name]


# --- identity and envelope --------------------------------------------------------------------------------------------


def test_a_rollout_is_a_run_with_its_surroundings():
    """Repository, branch, commit, model, effort, sandbox, shell and tokens come from the records."""
    total = {"total_token_usage": {"input_tokens": 500, "output_tokens": 20}}
    data = (
        Codex()
        .user(ENVIRONMENT)
        .turn(effort="high", sandbox_policy={"type": "workspace-write", "network_access": False})
        .user("Fix the cart total")
        .add("event_msg", type="token_count", info=None)
        .add("event_msg", type="token_count", info={"total_token_usage": {"input_tokens": 300, "output_tokens": 9}})
        .add("event_msg", type="token_count", info=total)
        .says("Fixed.")
        .add("event_msg", type="token_count", info=total)
        .add("event_msg", type="task_complete", turn_id=PARENT_TURN, duration_ms=4500)
        .data()
    )
    transcript = read_one(data)
    run = transcript.run
    assert (run.engine, run.session_id, run.model, run.labels) == ("codex", PARENT, "gpt-9", ("effort:high",))
    assert (run.repo, run.branch, run.base_commit) == ("acme/shop", "main", "abc123")
    assert (run.environment.shell, run.environment.sandbox, run.environment.os) == ("zsh", "workspace-write, no network", "linux")
    assert (run.tokens_in, run.tokens_out, run.duration_s) == (500, 20, 4.5)
    assert (run.title, run.task_type) == ("Fix the cart total", "bug_fix")
    assert kinds(transcript) == ["system", "user", "assistant"]
    assert signals(transcript, "exit_status") == ["task_complete"]
    assert run.outcome == "unknown"


def test_the_sandbox_is_read_from_the_injected_context_too():
    """Before the first turn tells it, or where no turn does."""
    assert read_one(Codex().user(ENVIRONMENT).user("hi").data()).run.environment.sandbox == "read-only, network restricted"


def test_copies_of_messages_in_events_are_dropped_only_if_they_are_copies():
    """A file that has no response items still has its messages."""
    events = (
        Codex()
        .turn()
        .add("event_msg", type="user_message", message="Fix it")
        .add("event_msg", type="agent_message", message="Done it")
        .data()
    )
    assert [(e.kind, e.text) for e in read_one(events).events] == [("user", "Fix it"), ("assistant", "Done it")]


@pytest.mark.parametrize(
    "text",
    [
        "<user_instructions>\nUse tabs.\n</user_instructions>",
        "# AGENTS.md instructions for /srv/shop\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>",
        "<turn_aborted>\nThe user interrupted the previous turn.\n</turn_aborted>",
        '<subagent_notification>\n{"status": {"completed": "All fine"}}\n</subagent_notification>',
        "<permissions instructions>\nSandbox.\n</permissions instructions>",
    ],
)
def test_injected_text_in_the_users_role_is_system(text: str):
    """It is not the task."""
    transcript = read_one(Codex().user(text).user("Fix it").data())
    assert kinds(transcript) == ["system", "user"]
    assert transcript.run.description == "Fix it"


def test_a_request_about_agents_md_is_the_users():
    """Only the injected form has the instructions in it."""
    assert kinds(read_one(Codex().user("# AGENTS.md instructions need a rewrite, draft one").data())) == ["user"]


def test_the_wrapping_of_an_editor_is_taken_off_the_request():
    """What the person asked stands behind the list of files."""
    text = "\n# Files mentioned by the user:\n\n## a.png: /home/kim/a.png\n\n## My request for Codex:\nput this at the top\n"
    transcript = read_one(Codex().user(text).data())
    assert [(e.kind, e.text.strip()) for e in transcript.events][1] == ("user", "put this at the top")


def test_compacted_history_is_never_read_again():
    """It repeats earlier items; the events say that it happened, once."""
    old = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix the cart"}]}]
    data = (
        Codex().user("Fix the cart").add("compacted", message="", replacement_history=old).add("event_msg", type="context_compacted").data()
    )
    assert kinds(read_one(data)) == ["user", "compaction"]


def test_unknown_types_are_named_and_the_rest_is_read():
    """On every level."""
    data = Codex().add("hologram", depth=1).add("event_msg", type="sings").add("response_item", type="poem").user("Fix it").data()
    transcript = read_one(data + jsonl({"stray": True}))
    assert kinds(transcript) == ["user"]
    assert (
        reasons(transcript)
        == "unknown record type 'None' | unknown record type 'hologram' | unknown record type 'sings' | unknown record type 'poem'"
    )


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "message", "role": "user", "content": 7},
        {"type": "function_call", "name": None, "arguments": "{", "call_id": None},
        {"type": "function_call_output", "call_id": "x", "output": None},
        {"type": "local_shell_call", "action": 7},
        {"type": "custom_tool_call", "name": "exec", "input": None},
    ],
)
def test_odd_payloads_do_not_end_the_file(payload):
    """A half-written or foreign item costs itself only."""
    assert of_kind(read_one(Codex().add("response_item", **payload).user("Fix it").data()), "user")[-1].text == "Fix it"


# --- copied histories -------------------------------------------------------------------------------------------------


def copied(source: dict | str = "cli", ids: bool = True, apart: bool = False) -> bytes:
    """A child's file: its own meta, the parent's history re-stamped within a moment, then its own turn."""
    child = Codex(CHILD, forked_from_id=PARENT) if source == "cli" else Codex(CHILD)
    child.records[0]["payload"]["source"] = source
    parent = (
        Codex().turn(PARENT_TURN if ids else "t1").user("Fix the cart").call("exec_command", "c1", cmd="make test").output("c1", ran("ok"))
    )
    parent.add("event_msg", type="token_count", info={"total_token_usage": {"input_tokens": 1000, "output_tokens": 100}})
    for n, record in enumerate(parent.records):
        record["timestamp"] = f"2026-03-01T12:00:00.{n:03d}Z"
    own = (
        Codex()
        .turn(CHILD_TURN if ids else "t2")
        .user("Review the change")
        .call("exec_command", "c2", cmd="git diff")
        .output("c2", ran("diff"))
    )
    own.add("event_msg", type="token_count", info={"total_token_usage": {"input_tokens": 1500, "output_tokens": 130}})
    for n, record in enumerate(own.records):
        record["timestamp"] = f"2026-03-01T12:00:{10 + n if apart else 0:02d}.{'000' if apart else 100 + n}Z"
    return jsonl(child.records[0], *parent.records, *own.records[1:])


SPAWNED = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}


@pytest.mark.parametrize("data", [copied(), copied(SPAWNED), copied(SPAWNED, ids=False, apart=True)], ids=["fork", "sub-agent", "no ids"])
def test_a_copied_history_is_left_out(data: bytes):
    """The child begins with its own first turn; its totals are its own too."""
    transcript = read_one(data)
    assert [(e.kind, e.text) for e in transcript.events] == [
        ("user", "Review the change"),
        ("command", "git diff"),
        ("command_result", "diff"),
    ]
    run = transcript.run
    assert (run.session_id, run.parent_session_id) == (CHILD, PARENT)
    assert (run.tokens_in, run.tokens_out) == (500, 30)
    assert run.started_at is not None
    assert run.started_at.isoformat().startswith("2026-03-01T12:00")


def test_a_growing_parent_is_no_new_version_of_the_child():
    """The version hashes the run's own records."""
    shorter = copied()
    longer = shorter.replace(b"Fix the cart", b"Fix the whole cart")
    assert read_one(shorter).run.version == read_one(longer).run.version
    assert read_one(shorter.replace(b"Review the", b"Read the")).run.version != read_one(shorter).run.version


def test_a_child_without_a_turn_of_its_own_holds_no_run():
    """Nothing but its parent's history."""
    data = copied().split(b"\n")
    with pytest.raises(TranscriptError, match="only its parent's history"):
        read_many(b"\n".join(data[:8]))


def test_a_spawned_agent_that_copied_nothing_is_read_whole():
    """A parent id alone does not mean that there is a copy."""
    data = Codex(CHILD, parent_thread_id=PARENT).user("Review it").turn(CHILD_TURN).says("Looks right.").data()
    transcript = read_one(data)
    assert kinds(transcript) == ["user", "assistant"]
    assert transcript.run.parent_session_id == PARENT


def test_only_the_first_session_meta_counts():
    """A later one is the parent's."""
    assert read_one(copied()).run.session_id == CHILD


# --- commands and their results ---------------------------------------------------------------------------------------


def test_a_command_is_paired_and_the_header_is_taken_off():
    """Exit code, time and token count are kept, the header is not."""
    data = (
        Codex()
        .call("exec_command", "c1", cmd="make test", workdir="/srv/shop", max_output_tokens=4000)
        .output("c1", ran("2 failed\n", 1, 99, 1.5))
        .data()
    )
    command, result = read_one(data).events
    assert (command.kind, command.text, command.args, command.origin) == ("command", "make test", {"workdir": "/srv/shop"}, "c1")
    assert (result.kind, result.text, result.answers, result.exit_code, result.is_error) == ("command_result", "2 failed\n", 0, 1, True)
    assert (result.duration_s, result.args, result.origin) == (1.5, {"output_tokens": 99}, "c1")


def test_a_command_that_outlives_its_call_is_joined_with_its_end():
    """More than half of the test commands return "still running" first; the exit code comes with a later `write_stdin`."""
    data = (
        Codex()
        .call("exec_command", "c1", cmd="make test")
        .output("c1", running(77, "collecting"))
        .call("exec_command", "c2", cmd="ls")
        .output("c2", ran("a"))
        .call("write_stdin", "c3", session_id=77, chars="")
        .output("c3", running(77))
        .call("write_stdin", "c4", session_id=77, chars="")
        .output("c4", ran("5 passed", 0))
        .data()
    )
    transcript = read_one(data)
    results = [e for e in of_kind(transcript, "command_result") if e.answers == 0]
    assert [(e.text, e.exit_code) for e in results] == [("collecting", None), ("", None), ("5 passed", 0)]
    polls = of_kind(transcript, "tool_call")
    assert [(e.tool, json.loads(e.text)["session_id"]) for e in polls] == [("write_stdin", 77)] * 2


def test_two_running_commands_are_not_mixed_up():
    """Each poll belongs to the process it names."""
    data = (
        Codex()
        .call("exec_command", "c1", cmd="make a")
        .call("exec_command", "c2", cmd="make b")
        .output("c1", running(1))
        .output("c2", running(2))
        .call("write_stdin", "c3", session_id=2)
        .call("write_stdin", "c4", session_id=1)
        .output("c3", ran("B", 2))
        .output("c4", ran("A", 0))
        .data()
    )
    ends = [(e.text, e.answers, e.exit_code) for e in of_kind(read_one(data), "command_result") if e.exit_code is not None]
    assert ends == [("B", 1, 2), ("A", 0, 0)]


def test_a_poll_that_fails_is_not_the_commands_failure():
    """It answers itself."""
    data = (
        Codex()
        .call("exec_command", "c1", cmd="make serve")
        .output("c1", running(5))
        .call("write_stdin", "c2", session_id=5, chars="y")
        .output("c2", "write_stdin failed: stdin is closed for this session")
        .data()
    )
    last = read_one(data).events[-1]
    assert (last.kind, last.is_error, last.answers) == ("tool_result", True, 2)


def test_the_end_event_of_older_versions_is_only_a_bonus():
    """It gives the exit code of a process nobody polled, at its place in the file, and never a second result."""
    end = {"type": "exec_command_end", "exit_code": 4, "aggregated_output": "late", "status": "completed"}
    data = (
        Codex()
        .call("exec_command", "c1", cmd="make slow")
        .output("c1", running(9))
        .add("event_msg", **end, call_id="c1")
        .call("exec_command", "c2", cmd="ls")
        .output("c2", ran("a"))
        .add("event_msg", **{**end, "exit_code": 0}, call_id="c2")
        .data()
    )
    transcript = read_one(data)
    assert [(e.text, e.answers, e.exit_code) for e in of_kind(transcript, "command_result")] == [("", 0, None), ("late", 0, 4), ("a", 3, 0)]
    assert [e.record for e in transcript.events] == sorted(e.record for e in transcript.events)


@pytest.mark.parametrize(
    ("output", "text", "code", "seconds"),
    [
        (ran("out\n", 3), "out\n", 3, 0.5),
        ("Command: /bin/zsh -lc 'make\ntest'\n" + ran("out\n", 3), "out\n", 3, 0.5),
        ('{"output": "out\\n", "metadata": {"exit_code": 3, "duration_seconds": 0.5}}', "out\n", 3, 0.5),
        ("Exit code: 3\nWall time: 0.5 seconds\nOutput:\nout\n", "out\n", 3, 0.5),
        ("Exit code: 3\nWall time: 0.5 seconds\nTotal output lines: 900\nOutput:\nout\n", "out\n", 3, 0.5),
        ("Wall time: 0.5 seconds\nProcess exited with code 3\nOutput:\nTotal output lines: 900\n\nout\n", "out\n", 3, 0.5),
        ([{"type": "input_text", "text": ran("out\n", 3)}], "out\n", 3, 0.5),
        ({"content": ran("out\n", 3), "success": False}, "out\n", 3, 0.5),
        ("plain text", "plain text", None, None),
        ('{"plan": "json that is no output"}', '{"plan": "json that is no output"}', None, None),
    ],
)
def test_every_shape_of_output_is_read(output, text: str, code: int | None, seconds: float | None):
    """Text with and without a command line, JSON text, the short header, a list of parts, an object, bare text."""
    (result,) = of_kind(read_one(Codex().call("exec_command", "c1", cmd="make").output("c1", output).data()), "command_result")
    assert (result.text, result.exit_code, result.duration_s) == (text, code, seconds)
    assert result.is_error == bool(code)


@pytest.mark.parametrize(
    ("output", "args"),
    [
        ("aborted by user after 3.2s", {"harness": "interrupted"}),
        ("exec command rejected by user", {"harness": "refused"}),
        ("exec_command failed for `/bin/zsh -lc 'ps'`: CreateProcess { message: \"Sandbox(Denied)\" }", {}),
        ("Exit code: 124\nWall time: 10 seconds\nOutput:\ncommand timed out after 10000 milliseconds\n", {"timeout": True}),
    ],
)
def test_what_did_not_end_by_itself_has_no_exit_code(output: str, args: dict):
    """Aborted, refused, not started, timed out."""
    (result,) = of_kind(read_one(Codex().call("shell", "c1", command=["bash", "-lc", "ps"]).output("c1", output).data()), "command_result")
    assert (result.exit_code, result.is_error, dict(result.args)) == (None, True, args)


def test_cut_output_is_marked():
    """The middle of a flood is missing."""
    (result,) = of_kind(
        read_one(Codex().call("exec_command", "c1", cmd="cat big").output("c1", ran("a\n…12000 tokens truncated…\nz", 0, 14000)).data()),
        "command_result",
    )
    assert dict(result.args) == {"output_tokens": 14000, "truncated": True}


@pytest.mark.parametrize(
    ("name", "arguments", "line"),
    [
        ("exec_command", {"cmd": "make test"}, "make test"),
        ("shell", {"command": ["bash", "-lc", "make test"]}, "make test"),
        ("shell", {"command": ["git", "commit", "-m", "two words"]}, "git commit -m 'two words'"),
        ("shell_command", {"command": "make test"}, "make test"),
    ],
)
def test_every_shell_tool_is_a_command(name: str, arguments: dict, line: str):
    """Old and new names, argument vectors and lines."""
    (command,) = read_one(Codex().call(name, "c1", **arguments).data()).events
    assert (command.kind, command.text, command.tool) == ("command", line, name)


def test_a_local_shell_call_and_a_persons_own_command_are_commands():
    """The oldest form, and what was typed after `!`."""
    typed = "<user_shell_command>\n<command>\nmake up\n</command>\n<result>\nExit code: 1\nDuration: 0.25 seconds\nOutput:\nno broker\n</result>\n</user_shell_command>"
    data = (
        Codex()
        .add("response_item", type="local_shell_call", call_id="c1", action={"type": "exec", "command": ["ls", "-a"]})
        .user(typed)
        .data()
    )
    local, command, result = read_one(data).events
    assert (local.kind, local.text) == ("command", "ls -a")
    assert (command.text, command.args, result.text.strip(), result.exit_code, result.duration_s) == (
        "make up",
        {"by": "user"},
        "no broker",
        1,
        0.25,
    )


def test_other_tools_are_calls_with_results():
    """Plans, searches, tools of servers."""
    data = (
        Codex()
        .call("update_plan", "c1", plan=[])
        .output("c1", "Plan updated")
        .add("response_item", type="function_call", name="find", namespace="mcp__docs", arguments="{}", call_id="c2")
        .output("c2", "a page")
        .add("response_item", type="web_search_call", status="completed", action={"type": "search", "query": "go vet"})
        .call("view_image", "c3", path="/srv/shop/a.png")
        .data()
    )
    transcript = read_one(data)
    assert [(e.kind, e.tool) for e in transcript.events] == [
        ("tool_call", "update_plan"), ("tool_result", "update_plan"), ("tool_call", "mcp__docs.find"), ("tool_result", "mcp__docs.find"),
        ("tool_call", "web_search"), ("file_read", "view_image"),
    ]  # fmt: skip
    assert transcript.events[5].paths == ("a.png",)


# --- the JavaScript tool ----------------------------------------------------------------------------------------------


def test_a_command_inside_a_script_is_a_command():
    """The newest form: the shell command sits in JavaScript, the output is a list of parts."""
    parts = [
        {"type": "input_text", "text": "Script completed\nWall time 0.3 seconds\nOutput:\n"},
        {"type": "input_text", "text": "2 passed\n"},
    ]
    data = (
        Codex()
        .script("c1", 'const r = await tools.exec_command({cmd:"make test","workdir":"/srv/shop"});\ntext(r.output);')
        .output("c1", parts, "custom_tool_call_output")
        .data()
    )
    command, result = read_one(data).events
    assert (command.kind, command.text, command.args) == ("command", "make test", {"workdir": "/srv/shop"})
    assert (result.text, result.exit_code, result.duration_s, result.answers) == ("2 passed\n", None, 0.3, 0)


def test_a_script_that_prints_the_result_object_tells_the_exit_code():
    """`text(JSON.stringify(result))`."""
    inner = json.dumps({"chunk_id": "x", "wall_time_seconds": 0.2, "exit_code": 2, "original_token_count": 40, "output": "1 failed"})
    parts = [{"type": "input_text", "text": "Script completed\nWall time 0.3 seconds\nOutput:\n"}, {"type": "input_text", "text": inner}]
    data = Codex().script("c1", "text(await tools.exec_command({cmd: 'make test'}))").output("c1", parts, "custom_tool_call_output").data()
    (result,) = of_kind(read_one(data), "command_result")
    assert (result.text, result.exit_code, result.is_error, result.args) == ("1 failed", 2, True, {"output_tokens": 40})


def test_a_script_with_two_commands_and_two_parts_pairs_them():
    """In order; otherwise the whole output belongs to the last command."""
    source = 'text((await tools.exec_command({cmd:"a"})).output);\ntext((await tools.exec_command({cmd:"b"})).output);'
    head = {"type": "input_text", "text": "Script completed\nWall time 0.3 seconds\nOutput:\n"}
    both = [head, {"type": "input_text", "text": "A"}, {"type": "input_text", "text": "B"}]
    one = [head, {"type": "input_text", "text": "A and B"}]
    paired = read_one(Codex().script("c1", source).output("c1", both, "custom_tool_call_output").data())
    joint = read_one(Codex().script("c1", source).output("c1", one, "custom_tool_call_output").data())
    assert [(e.text, e.answers) for e in of_kind(paired, "command_result")] == [("A", 0), ("B", 1)]
    assert [(e.text, e.answers) for e in of_kind(joint, "command_result")] == [("A and B", 1)]


def test_a_script_left_running_is_joined_with_its_wait():
    """By its cell."""
    wait = [
        {"type": "input_text", "text": "Script completed\nWall time 2.0 seconds\nOutput:\n"},
        {"type": "input_text", "text": "5 passed"},
    ]
    data = (
        Codex()
        .script("c1", 'text((await tools.exec_command({cmd:"make test"})).output)')
        .output(
            "c1",
            [{"type": "input_text", "text": "Script running with cell ID 28\nWall time 10.0 seconds\nOutput:\n"}],
            "custom_tool_call_output",
        )
        .call("wait", "c2", cell_id="28")
        .output("c2", wait)
        .data()
    )
    assert [(e.text, e.answers) for e in of_kind(read_one(data), "command_result")] == [("", 0), ("5 passed", 0)]


def test_a_failed_script_is_an_error_and_a_script_without_commands_a_tool_call():
    """Nothing is guessed."""
    failed = [{"type": "input_text", "text": "Script failed\nWall time 0.1 seconds\nOutput:\nReferenceError: x"}]
    data = (
        Codex()
        .script("c1", 'await tools.exec_command({cmd:"a"}); x')
        .output("c1", failed, "custom_tool_call_output")
        .script("c2", "text(1 + 1)")
        .data()
    )
    _, result, call = read_one(data).events
    assert (result.is_error, result.text) == (True, "ReferenceError: x")
    assert (call.kind, call.tool) == ("tool_call", "exec")


# --- edits ------------------------------------------------------------------------------------------------------------


def edits(data: bytes) -> list[tuple]:
    """(paths, created, failed) of every edit."""
    return [(e.paths, e.args.get("created", False), e.is_error) for e in of_kind(read_one(data), "file_edit")]


@pytest.mark.parametrize("form", ["custom", "function", "script"])
def test_a_patch_is_one_edit_for_each_file(form: str):
    """Whatever carries the patch; the event that reports it does not double it."""
    session = Codex()
    if form == "custom":
        session.add("response_item", type="custom_tool_call", name="apply_patch", input=PATCH, call_id="c1")
    elif form == "function":
        session.call("apply_patch", "c1", input=PATCH)
    else:
        session.script("c1", f"const patch = {json.dumps(PATCH)};\ntext(await tools.apply_patch(patch));")
    changes = {"/srv/shop/cart.py": {"type": "update", "unified_diff": "@@"}, "notes/new.md": {"type": "add", "content": "hello"}}
    session.add("event_msg", type="patch_apply_end", call_id="c1", success=True, changes=changes)
    assert edits(session.data()) == [(("cart.py",), False, False), (("notes/new.md",), True, False), (("old.py",), False, False)]


def test_an_edit_that_only_an_event_reports_is_read_from_it():
    """A patch that went through the shell."""
    changes = {
        "/srv/shop/a.py": {"type": "add", "content": "x"},
        "/srv/shop/b.py": {"type": "update", "unified_diff": "@@ -1 +1 @@", "move_path": "/srv/shop/c.py"},
    }
    data = (
        Codex()
        .call("exec_command", "c1", cmd="apply_patch <<EOF\nEOF")
        .add("event_msg", type="patch_apply_end", call_id="p1", success=True, changes=changes)
        .data()
    )
    assert edits(data) == [(("a.py",), True, False), (("b.py", "c.py"), False, False)]


def test_a_patch_that_did_not_apply_is_a_failed_edit():
    """So that nobody takes it for a change."""
    data = (
        Codex()
        .add(
            "response_item",
            type="custom_tool_call",
            name="apply_patch",
            input="*** Begin Patch\n*** Update File: a.py\n@@\n-x\n*** End Patch",
            call_id="c1",
        )
        .output("c1", "apply_patch verification failed: Failed to find expected lines", "custom_tool_call_output")
        .data()
    )
    assert edits(data) == [(("a.py",), False, True)]
    assert read_one(data).events[1].is_error


# --- endings ----------------------------------------------------------------------------------------------------------


def test_an_aborted_turn_is_an_interruption():
    """Not a failure of the task, and not the end if a turn follows."""
    aborted = Codex().user("Fix it").add("event_msg", type="turn_aborted", reason="interrupted")
    transcript = read_one(aborted.data())
    assert (transcript.events[1].kind, transcript.events[1].args["harness"]) == ("error", "interrupted")
    assert (signals(transcript, "exit_status"), transcript.run.outcome) == (["turn_aborted"], "unknown")
    assert signals(read_one(aborted.add("event_msg", type="task_complete").data()), "exit_status") == ["task_complete"]


def test_a_limit_that_ended_the_turn_is_a_limit():
    """Kept with its name."""
    assert signals(read_one(Codex().user("Fix it").add("event_msg", type="turn_aborted", reason="budget_limited").data()), "limit") == [
        "budget_limited"
    ]


def test_provider_errors_are_told_and_a_retried_one_is_no_end():
    """Rate limits, overload, a full context."""
    data = (
        Codex()
        .user("Fix it")
        .add("event_msg", type="stream_error", message="retrying 1/5")
        .add("event_msg", type="error", message="usage limit reached")
        .data()
    )
    transcript = read_one(data)
    assert [(e.tool, e.args["retried"]) for e in of_kind(transcript, "error")] == [("provider", True), ("provider", False)]
    assert (signals(transcript, "exit_status"), transcript.run.outcome) == (["error"], "failure")


def test_a_review_is_words_and_a_verdict():
    """Structured findings become text; the verdict is a signal that disagrees with a claim."""
    finding = {
        "title": "[P1] Empty cart",
        "body": "Divides by zero.",
        "code_location": {"absolute_file_path": "cart.py", "line_range": {"start": 3}},
    }
    review = {"findings": [finding], "overall_correctness": "patch is incorrect", "overall_explanation": "One bug."}
    transcript = read_one(Codex().user("/review").add("event_msg", type="exited_review_mode", review_output=review).says("Done.").data())
    assert "[P1] Empty cart (cart.py:3)" in of_kind(transcript, "assistant")[0].text
    assert signals(transcript, "review") == ["patch is incorrect"]
    assert transcript.run.outcome != "success"


def test_reasoning_is_read_if_it_can_be():
    """A summary, never the encrypted content; the event that copies it is dropped."""
    data = (
        Codex()
        .user("Fix it")
        .add("response_item", type="reasoning", summary=[{"type": "summary_text", "text": "**Plan**"}], encrypted_content="gAAA")
        .add("event_msg", type="agent_reasoning", text="**Plan**")
        .add("response_item", type="reasoning", summary=[], encrypted_content="gAAA")
        .data()
    )
    assert [(e.kind, e.text) for e in read_one(data).events] == [("user", "Fix it"), ("reasoning", "**Plan**")]


def test_repeated_items_are_read_once():
    """Byte for byte, with the same time."""
    session = Codex().user("Fix it")
    transcript = read_one(session.data() + jsonl(session.records[1]))
    assert kinds(transcript) == ["user"]
    assert reasons(transcript) == "record repeats an earlier one"
