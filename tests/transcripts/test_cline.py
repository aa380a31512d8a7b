"""Cline: sessions with their record beside them, tasks with tools as XML, and what lies beside a task."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Skip, Transcript
from osmia_memory.transcripts.read import ReadOptions, read_all
from tests.transcripts.builders import kinds, of_kind, read_many, read_one, reasons
from tests.transcripts.damage import changed_somewhere, cut_somewhere, read_if_possible

SES = "1772359200000_abcde"
T0 = 1772359200000  # 2026-03-01T10:00:00Z
RECORD = {"session_id": SES, "status": "completed", "exit_code": 0, "provider": "acme", "model": "small", "cwd": "/srv/shop",
          "workspace_root": "/srv/shop", "messages_path": f"/x/{SES}.messages.json", "metadata": {}}  # fmt: skip
METRICS = {"inputTokens": 100, "outputTokens": 10, "cacheReadTokens": 90, "cacheWriteTokens": 0, "cost": 0.25}


def user(*blocks: Any, second: int = 0, **fields: Any) -> dict[str, Any]:
    """A message in the person's role."""
    content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    return {"id": f"u{second}", "role": "user", "content": content, "ts": T0 + second * 1000, **fields}


def agent(*blocks: Any, second: int = 1, **fields: Any) -> dict[str, Any]:
    """A message of the agent's."""
    told = {"modelInfo": {"id": "acme/model-3", "provider": "acme"}, "metrics": METRICS}
    return {**user(*blocks, second=second), "id": f"a{second}", "role": "assistant", **told, **fields}


def use(name: str, **given: Any) -> dict[str, Any]:
    """A tool call."""
    return {"type": "tool_use", "id": f"call_{name}", "name": name, "input": given}


def answer(name: str, content: Any, **fields: Any) -> dict[str, Any]:
    """A tool's result."""
    return user({"type": "tool_result", "tool_use_id": f"call_{name}", "name": name, "content": content, **fields}, second=2)


def worked(result: str, success: bool = True, key: str = "result") -> dict[str, Any]:
    """What a tool of a session returns."""
    return {"query": "q", key: result, "success": success}


def session(*messages: Any, **meta: Any) -> bytes:
    """A session's messages."""
    return json.dumps({"version": 1, "agent": "lead", "sessionId": SES, "messages": list(messages), **meta}).encode()


def read_session(*messages: Any, record: Any = RECORD, **meta: Any) -> Transcript:
    """A session with its record beside it."""
    beside = {f"{SES}.json": json.dumps(record).encode()} if record else {}
    return read_one(session(*messages, **meta), f"s/{SES}.messages.json", beside)


def signals(transcript: Transcript) -> list[tuple[str, str]]:
    """Names and values."""
    return [(s.name, s.value) for s in transcript.run.signals]


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_a_session_is_a_run_with_what_its_record_says():
    """The model is that of the messages: the record's is the one chosen last. Input holds what was cached."""
    transcript = read_session(user("Fix the cart total"), agent("Fixed."), system_prompt="You are Cline.")
    run = transcript.run
    assert kinds(transcript) == ["system", "user", "assistant"]
    assert (run.engine, run.session_id, run.model, run.cwd, run.repo) == ("cline", SES, "acme/model-3", "/srv/shop", "local/shop")
    assert (run.tokens_in, run.tokens_out, run.cost_usd, run.duration_s) == (100, 10, 0.25, 1.0)
    assert (run.title, signals(transcript), run.outcome) == (
        "Fix the cart total",
        [("exit_status", "completed"), ("claim", "done")],
        "unknown",
    )


def test_a_session_without_its_record_is_read():
    """Nothing is told of the folder."""
    run = read_session(user("hi"), agent("Hm."), record=None).run
    assert (run.cwd, run.signals) == (None, ())


@pytest.mark.parametrize(
    ("status", "outcome"), [("completed", "unknown"), ("failed", "failure"), ("cancelled", "unknown"), ("running", "unknown")]
)
def test_the_status_of_the_record(status: str, outcome: str):
    """One that says nothing of the end is no sign."""
    transcript = read_session(user("hi"), agent("Hm."), record={**RECORD, "status": status})
    assert (transcript.run.outcome, signals(transcript)) == (outcome, [] if status == "running" else [("exit_status", status)])


def test_a_changed_record_is_a_new_version():
    """It tells how the session ended."""
    one, two = (read_session(user("hi"), agent("ok"), record={**RECORD, "status": s}).run for s in ("running", "completed"))
    assert (one.run_id == two.run_id, one.version == two.version) == (True, False)


def test_what_a_fork_copied_cost_its_parent():
    """The copied messages keep their ids, so that they are no second witness."""
    record = {**RECORD, "metadata": {"fork": {"forkedFromSessionId": "old", "forkedAt": "2026-03-01T10:01:00.000Z"}}}
    copied = read_session(user("hi"), agent("ok"), record=record)
    grown = read_session(user("hi"), agent("ok"), user("go on", second=70), agent("ok", second=71), record=record)
    assert (copied.run.parent_session_id, copied.run.tokens_in, copied.run.cost_usd) == ("old", None, None)
    assert (grown.run.tokens_in, [e.origin for e in grown.events][:2]) == (100, ["u0", "a1"])


def test_commands_are_paired_with_their_results_one_by_one():
    """A tool that ran two returns two."""
    calls = agent(use("run_commands", commands=["make test", {"command": "ls", "args": ["-l"]}]))
    back = answer("run_commands", [worked("Command exited with code 2", False, "error"), worked("a.py")])
    transcript = read_session(user("go"), calls, back)
    lines, results = of_kind(transcript, "command"), of_kind(transcript, "command_result")
    assert [e.text for e in lines] == ["make test", "ls -l"]
    assert [(e.answers, e.exit_code, e.is_error) for e in results] == [(lines[0].index, 2, True), (lines[1].index, 0, False)]


@pytest.mark.parametrize(
    ("content", "fields", "expected"),
    [
        ([worked("ok")], {}, ("ok", 0, False, {})),
        (json.dumps(worked("ok")), {}, ("ok", 0, False, {})),
        ([{"type": "text", "text": "ok"}], {}, ("ok", None, False, {})),
        ("boom", {"is_error": True}, ("boom", None, True, {})),
        ([worked("1 failed", False, "error")], {}, ("1 failed", None, True, {})),
        (
            [worked("Command timed out after 30000ms", False, "error")],
            {},
            ("Command timed out after 30000ms", None, True, {"timeout": True}),
        ),
        ([worked("Command was aborted", False, "error")], {}, ("Command was aborted", None, True, {"harness": "interrupted"})),
        ("The user denied this operation.", {}, ("The user denied this operation.", None, True, {"harness": "refused"})),
        ([worked("it timed out after 3 tries, then worked")], {}, ("it timed out after 3 tries, then worked", 0, False, {})),
    ],
)
def test_results_in_every_shape(content: Any, fields: dict[str, Any], expected: tuple[Any, ...]):
    """Where success is told, it is the exit code 0; a failure tells its code or none."""
    transcript = read_session(user("go"), agent(use("run_commands", commands=["make"])), answer("run_commands", content, **fields))
    (result,) = of_kind(transcript, "command_result")
    assert (result.text, result.exit_code, result.is_error, dict(result.args)) == expected


PATCH = "*** Begin Patch\n*** Add File: new.py\n+hi\n*** Update File: /srv/shop/old.py\n@@\n+x\n*** End Patch"


def test_edits_and_files_read():
    """Paths are relative to the checkout."""
    calls = agent(
        use("editor", path="/srv/shop/a.py", old_text="x", new_text="y"), use("apply_patch", input=PATCH),
        use("read_files", files=[{"path": "/srv/shop/b.py", "start_line": 1}, {"path": "c.py"}]), use("search_codebase", queries=["x"]),
    )  # fmt: skip
    transcript = read_session(
        user("go"), calls, answer("editor", json.dumps(worked("no match", False))), answer("read_files", [worked("one")])
    )
    assert [(e.paths, e.text, dict(e.args), e.is_error) for e in of_kind(transcript, "file_edit")] == [
        (("a.py",), "y", {}, True), (("new.py",), "+hi", {"created": True}, False), (("old.py",), "@@\n+x", {}, False),
    ]  # fmt: skip
    assert [e.paths for e in of_kind(transcript, "file_read")] == [("b.py", "c.py")]
    assert of_kind(transcript, "tool_call")[0].text == '{"queries":["x"]}'


def test_a_file_that_a_person_names_is_read_not_said():
    """Its content stands in their message."""
    transcript = read_session(user("fix it", {"type": "file", "path": "/srv/shop/a.py", "content": "total"}), agent("ok"))
    assert [(e.kind, e.text, e.paths) for e in transcript.events[:3]] == [
        ("user", "fix it", ()),
        ("file_read", "", ("a.py",)),
        ("tool_result", "total", ()),
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (user("fix it", "<SYSTEM_NOTICE>\nEarlier context was compacted. Summary:\n</SYSTEM_NOTICE>"), ["user", "compaction"]),
        (user("Context summary:\n\n## Goal", metadata={"kind": "compaction_summary"}), ["compaction"]),
        (user("Context summary:\n\n## Goal"), ["compaction"]),
        (user('<user_input mode="act">fix it</user_input>'), ["user"]),
        (user("<hook_context>x</hook_context>fix it"), ["system", "user"]),
        (user("the summary of the context is wrong"), ["user"]),
        (user({"type": "image", "source": {}}, "like so"), ["user"]),
    ],
)
def test_what_stands_in_a_persons_place(message: dict[str, Any], expected: list[str]):
    """Typed, or put there by the harness; summaries repeat earlier history."""
    assert kinds(read_session(message, agent("ok")))[:-1] == expected


def test_a_compacted_copy_is_refused_where_the_whole_lies_beside_it():
    """Else it is all there is."""
    copy = session(user("Context summary:\n\n## Goal", metadata={"kind": "compaction_summary"}), user("go on"), agent("ok"))
    whole = {f"{SES}.messages.json": session(user("Fix it"), agent("ok"))}
    with pytest.raises(TranscriptError, match="compacted copy"):
        read_many(copy, "s/basic.compaction.json", whole)
    assert kinds(read_one(copy, "s/basic.compaction.json")) == ["compaction", "user", "assistant"]
    assert kinds(read_one(copy, "s/b.json", {"x.messages.json": session(user("x"), sessionId="other")})) == [
        "compaction",
        "user",
        "assistant",
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (json.dumps(RECORD).encode(), "read together with its messages"),
        (session(), "without any message"),
        (session(system_prompt="x"), "without any"),
    ],
)
def test_what_is_no_run_is_refused_in_words(data: bytes, words: str):
    """A record alone, a session without a word."""
    with pytest.raises(TranscriptError, match=words):
        read_many(data)


def test_unknown_roles_blocks_and_shapes_are_named():
    """And the rest is read."""
    messages = [user("Fix it"), 7, {"role": "ghost", "content": "x"}, agent({"type": "hologram"}), user({"type": "ray"}), {"role": "user"}]
    transcript = read_session(*messages)
    assert kinds(transcript) == ["user"]
    assert reasons(transcript) == (
        "message of an unknown shape | unknown role 'ghost' | unknown block type 'hologram' | unknown block type 'ray' | message of an unknown shape"
    )


def test_a_document_that_is_cut_off_is_read_as_far_as_it_goes():
    """It is named."""
    data = session(user("Fix it"), agent("Fixed."))
    transcript = read_one(data[: data.index(b"Fixed")])
    assert (kinds(transcript), "cut off" in reasons(transcript)) == (["user"], True)


# --- tasks ------------------------------------------------------------------------------------------------------------

ENVIRONMENT = (
    "<environment_details>\n# Current Working Directory (/srv/shop) Files\ncart.py\n# Current Mode\nACT MODE\n</environment_details>"
)
TASK = user("<task>\nFix the cart total\n</task>", ENVIRONMENT)


def xml(name: str, **given: str) -> str:
    """A call as XML."""
    inside = "".join(f"<{key}>{value}</{key}>\n" for key, value in given.items())
    return f"<{name}>\n{inside}</{name}>"


def task(*messages: Any) -> bytes:
    """A task's messages."""
    return json.dumps([TASK, *messages]).encode()


def read_task(*messages: Any, **beside: bytes) -> Transcript:
    """A task in its folder."""
    return read_one(task(*messages), "tasks/1772359200000/api_conversation_history.json", {f"{k}.json": v for k, v in beside.items()})


def test_a_task_is_a_run():
    """The task is what stands in its tag; the environment names the checkout."""
    transcript = read_task(
        agent("Looking.\n\n" + xml("read_file", path="cart.py")), user("[read_file for 'cart.py'] Result:\ntotal", ENVIRONMENT)
    )
    run = transcript.run
    assert (run.session_id, run.description, run.cwd) == ("1772359200000", "Fix the cart total", "/srv/shop")
    assert kinds(transcript) == ["user", "system", "assistant", "file_read", "tool_result", "system"]
    assert (transcript.events[2].text, transcript.events[3].paths, transcript.events[4].answers) == ("Looking.", ("cart.py",), 3)


@pytest.mark.parametrize(
    ("blocks", "text", "code"),
    [
        (("[execute_command for 'make'] Result:\nCommand executed.\nOutput:\nok",), "ok", None),
        (("[execute_command for 'make'] Result:", "Command executed. Exit code: 2\nOutput:\nfailed"), "failed", 2),
        (("[execute_command for 'make'] Result:", "Command executed.\nOutput:\n1 passed"), "1 passed", None),
        (("[execute_command for 'make'] Result:\nCommand executed in terminal within '/srv'. Exit code: 0\nOutput:\nok",), "ok", 0),
    ],
)
def test_a_command_as_xml_has_its_result(blocks: tuple[str, ...], text: str, code: int | None):
    """In the block that names it, or in the one after."""
    transcript = read_task(agent(xml("execute_command", command="make", requires_approval="false")), user(*blocks, ENVIRONMENT))
    (call,), (result,) = of_kind(transcript, "command"), of_kind(transcript, "command_result")
    assert (call.text, result.answers, result.text, result.exit_code, result.is_error) == ("make", call.index, text, code, bool(code))


def test_edits_as_xml():
    """Whole files, and search and replace."""
    diff = "<<<<<<< SEARCH\nreturn total\n=======\nreturn total - discount\n>>>>>>> REPLACE"
    write, replace = xml("write_to_file", path="a.py", content="one"), xml("replace_in_file", path="cart.py", diff=diff)
    refused = user("[replace_in_file for 'cart.py'] Result:\nThe user denied this operation.")
    transcript = read_task(
        agent(write), user("[write_to_file for 'a.py'] Result:\nThe content was saved."), agent(replace, second=3), refused
    )
    assert [(e.paths, e.text, e.is_error) for e in of_kind(transcript, "file_edit")] == [
        (("a.py",), "one", False), (("cart.py",), "return total - discount", True),
    ]  # fmt: skip


def test_handing_in_is_a_claim_and_an_answer_to_it_is_a_persons():
    """The feedback goes on."""
    done = agent(xml("attempt_completion", result="The total is right now."))
    assert signals(read_task(done)) == [("claim", "done")]
    back = read_task(done, user("[attempt_completion] Result:", "<feedback>\nIt is not.\n</feedback>", ENVIRONMENT, second=5))
    assert ([e.text for e in of_kind(back, "user")], signals(back)) == (["Fix the cart total", "It is not."], [])


def test_words_of_the_harness_are_not_the_persons():
    """Resumed tasks, reminders, errors."""
    transcript = read_task(
        agent("Hm."), user("[ERROR] You did not use a tool in your previous response!"), user("[TASK RESUMPTION] It was interrupted.")
    )
    assert [e.tool for e in of_kind(transcript, "system")] == ["environment", "notice", "notice"]


def test_a_reply_about_the_tools_is_words():
    """Only whole calls are calls."""
    transcript = read_task(agent("Use `execute_command` with <command> to run it."))
    assert kinds(transcript) == ["user", "system", "assistant"]


SHOWN = [
    {"ts": T0, "type": "say", "say": "task", "text": "Fix the cart total"},
    {"ts": T0 + 1, "type": "say", "say": "api_req_started", "text": json.dumps({"request": "x", "tokensIn": 10, "tokensOut": 5, "cacheReads": 90, "cacheWrites": 3, "cost": 0.25})},
    {"ts": T0 + 2, "type": "say", "say": "api_req_started", "text": json.dumps({"request": "still waiting"})},
    {"ts": T0 + 3, "type": "say", "say": "api_req_started", "text": "{"},
    {"ts": T0 + 9000, "type": "say", "say": "completion_result", "text": "Done"},
]  # fmt: skip


def test_what_lies_beside_a_task_tells_its_cost_model_and_times():
    """What was asked and not answered cost nothing that is told."""
    model = json.dumps({"model_usage": [{"ts": 1, "model_id": "old"}, {"ts": 2, "model_id": "acme/model-3"}]}).encode()
    plain = {"role": "assistant", "content": "Hm."}
    run = read_task(plain, ui_messages=json.dumps(SHOWN).encode(), task_metadata=model).run
    assert (run.tokens_in, run.tokens_out, run.cost_usd, run.model) == (103, 5, 0.25, "acme/model-3")
    assert run.finished_at is not None
    assert run.finished_at.second == 9
    bare = read_task(plain).run
    assert (bare.tokens_in, bare.cost_usd, bare.model) == (None, None, None)


def test_a_folder_of_tasks_is_read_without_a_word_about_what_lies_beside(tmp_path):
    """Named by the caller, it is told what it is."""
    folder = tmp_path / "1772359200000"
    folder.mkdir()
    (folder / "api_conversation_history.json").write_bytes(task(agent("ok")))
    (folder / "ui_messages.json").write_text(json.dumps(SHOWN))
    (found,) = read_all([str(tmp_path)], ReadOptions("t"))
    assert isinstance(found, Transcript)
    assert (found.run.session_id, found.run.cost_usd) == ("1772359200000", 0.25)
    (refused,) = read_all([str(folder / "ui_messages.json")], ReadOptions("t"))
    assert isinstance(refused, Skip)
    assert "accompanies a transcript" in refused.reason


@pytest.mark.parametrize(
    "value", [[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}], [{"role": "user", "content": "<task>hi</task>"}]]
)
def test_other_lists_of_messages_are_not_clines(value: Any):
    """A chat, or a task without its environment."""
    with pytest.raises(TranscriptError, match="none of the known formats"):
        read_many(json.dumps(value).encode())


def test_secrets_are_masked_in_every_place():
    """Words, commands, results, the system prompt."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    calls = agent(secret, use("run_commands", commands=[f"echo {secret}"]))
    transcript = read_session(user(secret), calls, answer("run_commands", [worked(secret)]), system_prompt=secret)
    assert secret not in str(transcript)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_is_no_traceback(data: st.DataObject):
    """Cut anywhere, with any value in any field, as session and as task."""
    calls = agent(
        "x", use("run_commands", commands=["ls"]), use("editor", path="a", new_text="b"), use("read_files", files=[{"path": "a"}])
    )
    messages = [user("Fix it"), calls, answer("run_commands", [worked("x")]), agent(xml("execute_command", command="ls"))]
    read_if_possible(cut_somewhere(data, data.draw(st.sampled_from([session(*messages), task(*messages)]))))
    for sample in (session(*messages, system_prompt="x"), task(*messages)):
        read_if_possible(json.dumps(changed_somewhere(data, json.loads(sample))).encode())
