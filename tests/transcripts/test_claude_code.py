"""Claude Code sessions: who said what, which result belongs to which call, and what is only the harness."""

import json

import pytest

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Signal
from tests.transcripts.builders import SESSION, Claude, jsonl, kinds, of_kind, read_many, read_one, reasons
from tests.transcripts.test_events import BLOCK


def signals(transcript, name: str) -> list[str]:
    """Values of one signal."""
    return [s.value for s in transcript.run.signals if s.name == name]


# --- identity and envelope --------------------------------------------------------------------------------------------


def test_a_session_is_a_run_with_its_surroundings():
    """Engine, session, model, branch, folder, times and task come from the records."""
    run = read_one(Claude().user("Add a `--dry-run` flag to the sync command").says("Looking.").data()).run
    assert (run.engine, run.session_id, run.model, run.branch) == ("claude-code", SESSION, "claude-opus-9", "main")
    assert (run.title, run.task_type) == ("Add a `--dry-run` flag to the sync command", "feature")
    assert run.repo == "local/shop"
    assert run.environment.os == "linux"
    assert run.started_at is not None
    assert run.started_at.isoformat() == "2026-03-01T10:00:00+00:00"
    assert (run.duration_s, run.times_assumed) == (1.0, False)


def test_records_are_line_numbers_and_events_are_consecutive():
    """`record` finds the line in the file; one line may hold several events."""
    data = Claude().user("hi").says("one", {"type": "thinking", "thinking": "two"}).bash("ls", "a").data()
    events = read_one(data).events
    assert [e.index for e in events] == list(range(5))
    assert [(e.record, e.kind) for e in events] == [(0, "user"), (1, "assistant"), (1, "reasoning"), (2, "command"), (3, "command_result")]


def test_a_session_may_begin_with_a_page_of_housekeeping():
    """Detection looks past records that hold nothing of the run."""
    noise = [
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "mode", "mode": "normal", "sessionId": SESSION},
    ] * 20
    data = jsonl(*noise) + Claude().user("Fix the cart").data()
    assert read_one(data).run.title == "Fix the cart"


def test_a_file_of_summaries_alone_holds_no_run():
    """Recognised, but nothing happened in it."""
    with pytest.raises(TranscriptError, match="without any message"):
        read_many(jsonl({"type": "summary", "summary": "Shop work", "leafUuid": "u9"}))


def test_unknown_record_types_and_newer_versions_are_named_and_the_rest_is_read():
    """A new version brings new types every few weeks."""
    data = Claude(version="9.9.9").user("hi").add("hologram", depth=3).add("hologram", depth=4).says("yes").data()
    transcript = read_one(data)
    assert kinds(transcript) == ["user", "assistant"]
    assert [s.reason for s in transcript.skipped] == ["unknown record type 'hologram'"] * 2


@pytest.mark.parametrize(
    "record",
    [
        {"type": "user", "sessionId": SESSION, "message": "gone"},
        {"type": "user", "sessionId": SESSION},
        {"type": "assistant", "sessionId": SESSION, "message": {"content": [7]}},
        {"type": "assistant", "sessionId": SESSION, "message": {"content": 7}},
        {"type": "attachment", "sessionId": SESSION, "attachment": None},
        {"type": "system", "sessionId": SESSION, "subtype": "turn_duration", "durationMs": "long"},
    ],
)
def test_a_known_type_in_an_unknown_shape_is_named(record):
    """A strict schema would lose the file, a loose one would crash."""
    transcript = read_one(jsonl(record) + Claude().user("hi").data())
    assert kinds(transcript) == ["user"]
    assert "record of an unknown shape" in reasons(transcript)


def test_repeated_records_are_read_once():
    """Multi-turn input writes earlier turns into the file again."""
    session = Claude().user("hi").says("yes")
    transcript = read_one(session.data() + jsonl(session.records[0], session.records[1]))
    assert kinds(transcript) == ["user", "assistant"]
    assert [s.reason for s in transcript.skipped] == ["record repeats an earlier one"] * 2


def test_a_resumed_file_with_two_session_ids_is_one_run():
    """Nothing before the resume is dropped; the file's own id is the run's, the other its parent."""
    other = "99999999-2222-4333-8444-555555555555"
    data = (
        Claude(session=other).user("first part").data()
        + Claude(session=SESSION, cwd="/srv/shop").add("user", uuid="x", message={"content": "second part"}).data()
    )
    for name in (f"{SESSION}.jsonl", "stdin"):
        run = read_one(data, name).run
        assert (run.session_id, run.parent_session_id, run.description) == (SESSION, other, "first part")


# --- sub-agents -------------------------------------------------------------------------------------------------------


def test_a_sub_agents_file_is_a_run_of_its_own():
    """Its records carry the parent's session id and its own agent id; its task comes from an agent, not a person."""
    data = Claude(isSidechain=True, agentId="a17").user("Map the packages").says("Done mapping.").data()
    for name in ("agent-a17.jsonl", f"p/{SESSION}/subagents/agent-a17.jsonl"):
        transcript = read_one(data, name, {"agent-a17.meta.json": b'{"agentType": "Explore"}'})
        run = transcript.run
        assert (run.parent_session_id, run.session_id, run.segment) == (SESSION, SESSION, "a17")
        assert run.labels == ("agent:Explore",)
        assert of_kind(transcript, "user")[0].args == {"by": "agent"}
        assert run.run_id != read_one(Claude().user("Map").data()).run.run_id


def test_sidechains_inside_a_session_are_told_apart_by_their_root():
    """Old versions wrote sub-agents' records between the session's own."""
    data = (
        Claude()
        .user("Do both")
        .user("part one", uuid="s1", parentUuid=None, isSidechain=True)
        .says("one done", uuid="s2", parentUuid="s1", isSidechain=True)
        .user("part two", uuid="t1", parentUuid=None, isSidechain=True)
        .says("all done", parentUuid="u0")
        .data()
    )
    main, one, two = read_many(data)
    assert [e.text for e in main.events] == ["Do both", "all done"]
    assert [e.text for e in one.events] == ["part one", "one done"]
    assert (one.run.segment, two.run.segment, two.run.parent_session_id) == ("s1", "t1", SESSION)
    assert len({t.run.run_id for t in (main, one, two)}) == 3


# --- what a person said -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("Base directory for this skill: /x", {"isMeta": True}),
        ("<local-command-stdout>Set model</local-command-stdout>", {}),
        ("<local-command-caveat>Caveat: ...</local-command-caveat>", {"isMeta": True}),
        ("Caveat: The messages below were generated by the user while running local commands.", {}),
        ("<command-name>/exit</command-name>\n<command-message>exit</command-message>\n<command-args></command-args>", {}),
        ("<task-notification>\n<task-id>b1</task-id>\n</task-notification>", {}),
        ("<system-reminder>Mind the list.</system-reminder>", {}),
        ("Continue the loop.", {"promptSource": "system"}),
    ],
)
def test_harness_text_in_a_persons_message_is_system(text: str, fields: dict):
    """Markup, reminders, caveats and notifications were not typed."""
    transcript = read_one(Claude().user("Fix it").user(text, **fields).data())
    assert kinds(transcript) == ["user", "system"]


def test_what_was_typed_after_a_slash_command_is_the_persons():
    """The command is the harness's, its arguments are not."""
    text = "<command-name>/goal</command-name>\n<command-message>goal</command-message>\n<command-args>ship the cart with green CI</command-args>"
    transcript = read_one(Claude().user(text).data())
    assert [(e.kind, e.text) for e in transcript.events] == [("system", "/goal"), ("user", "ship the cart with green CI")]
    assert transcript.run.title == "ship the cart with green CI"


def test_a_reminder_inside_a_typed_text_is_cut_out():
    """The rest is what the person typed."""
    transcript = read_one(Claude().user("Fix it <system-reminder>Mind the list.</system-reminder>please").data())
    assert [(e.kind, e.text) for e in transcript.events] == [
        ("system", "<system-reminder>Mind the list.</system-reminder>"),
        ("user", "Fix it please"),
    ]


def test_a_list_of_blocks_is_as_good_as_a_string():
    """Content became a list one day; images are named, not shown."""
    transcript = read_one(Claude().user([{"type": "text", "text": "Match this"}, {"type": "image", "source": {"data": "A" * 99}}]).data())
    assert [(e.kind, e.text) for e in transcript.events] == [("user", "Match this"), ("user", "[image]")]


def test_text_typed_while_the_agent_worked_is_the_persons_and_told_once():
    """The queue's record and the message it becomes are one; what was only queued is not lost."""
    data = (
        Claude()
        .user("Fix it")
        .add("queue-operation", operation="enqueue", content="and the docs")
        .add("attachment", attachment={"type": "queued_command", "prompt": "and the docs", "commandMode": "prompt"})
        .add("queue-operation", operation="enqueue", content="stop after that")
        .add("queue-operation", operation="enqueue", content="<task-notification>\n<task-id>b1</task-id>\n</task-notification>")
        .data()
    )
    transcript = read_one(data)
    assert [(e.kind, e.text.split("\n")[0]) for e in transcript.events] == [
        ("user", "Fix it"),
        ("user", "and the docs"),
        ("user", "stop after that"),
        ("system", "<task-notification>"),
    ]


def test_a_summary_of_earlier_history_is_a_compaction():
    """Boundary, summary and the recap for an absent user: never a source, never the task."""
    data = (
        Claude()
        .add("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 155000})
        .user("This session is being continued from a previous conversation that ran out of context.", isCompactSummary=True)
        .add("system", subtype="away_summary", content="Goal: cart. Done: half.")
        .user("Fix the rest")
        .data()
    )
    transcript = read_one(data)
    assert kinds(transcript) == ["compaction"] * 3 + ["user"]
    assert transcript.events[0].args == {"trigger": "auto", "pre_tokens": 155000}
    assert transcript.run.description == "Fix the rest"


def test_our_own_block_in_a_hooks_context_is_recognised():
    """It was injected, not observed."""
    hook = {"type": "hook_additional_context", "content": [BLOCK], "hookEvent": "SessionStart"}
    assert kinds(read_one(Claude().add("attachment", attachment=hook).user("Fix it").data())) == ["injected_memory", "user"]


# --- commands ---------------------------------------------------------------------------------------------------------


def test_a_finished_command_is_paired_and_has_an_exit_code():
    """There is no exit code field: success is 0, failure is told in the text."""
    data = (
        Claude()
        .user("Test it")
        .bash("make test", "ok\n")
        .bash("make lint", "Exit code 2\nE501 line too long", is_error=True, twin="Error: ...")
        .data()
    )
    ok, bad = of_kind(read_one(data), "command_result")
    assert (ok.exit_code, ok.is_error, ok.text, ok.answers, ok.duration_s) == (0, False, "ok\n", 1, 1.0)
    assert (bad.exit_code, bad.is_error, bad.text, bad.answers) == (2, True, "E501 line too long", 3)


def test_a_result_that_comes_after_other_calls_finds_its_command():
    """Parallel calls are answered in any order."""
    data = Claude().tool("Bash", "t1", command="make a").tool("Bash", "t2", command="make b").result("t2", "B").result("t1", "A").data()
    assert [(e.text, e.answers) for e in of_kind(read_one(data), "command_result")] == [("B", 1), ("A", 0)]


def test_a_result_written_before_its_call_finds_it_too():
    """The file is written by several hands: a few lines are swapped."""
    session = Claude().bash("make a", "A").tool("Read", "r", file_path="/srv/shop/a.py").result("r", "1\tx")
    session.records[0], session.records[1] = session.records[1], session.records[0]
    transcript = read_one(session.data())
    assert [(e.kind, e.record, e.answers) for e in transcript.events[:2]] == [("command", 1, None), ("command_result", 0, 0)]
    assert transcript.events[1].exit_code == 0


def test_a_command_of_which_1_is_an_answer_is_no_error():
    """`grep` that found nothing is marked so by the harness."""
    twin = {"stdout": "", "stderr": "", "interrupted": False, "returnCodeInterpretation": "No matches found"}
    (result,) = of_kind(read_one(Claude().bash("grep x y", "", twin=twin).data()), "command_result")
    assert (result.exit_code, result.is_error) == (1, False)


def test_an_interrupted_command_has_no_exit_code():
    """It is an error of nobody's."""
    (result,) = of_kind(read_one(Claude().bash("sleep 99", "", twin={"stdout": "", "interrupted": True}).data()), "command_result")
    assert (result.exit_code, result.is_error, result.args["harness"]) == (None, True, "interrupted")


@pytest.mark.parametrize(
    ("text", "harness"),
    [
        ("The user doesn't want to proceed with this tool use. The tool use was rejected.", "refused"),
        ("Permission for this action was denied by the auto mode classifier.", "refused"),
        ("<tool_use_error>Blocked: sleep 30 followed by: gh pr view</tool_use_error>", "refused"),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", "cascade"),
        ("<tool_use_error>Cancelled: parallel tool call Bash(make) errored</tool_use_error>", "cascade"),
        ("[Request interrupted by user for tool use]", "interrupted"),
    ],
)
def test_what_the_harness_or_a_person_stopped_is_no_failure_of_the_tool(text: str, harness: str):
    """Rules must be able to leave these out."""
    (result,) = of_kind(read_one(Claude().bash("make", text, is_error=True, twin="Error").data()), "command_result")
    assert (result.args["harness"], result.exit_code) == (harness, None)


def test_the_words_of_a_refusal_are_the_persons():
    """A correction typed into the permission prompt."""
    text = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nuse the wrapper script instead"
    transcript = read_one(Claude().bash("make", text, is_error=True, twin="User rejected tool use").data())
    assert [(e.kind, e.text) for e in transcript.events][-1] == ("user", "use the wrapper script instead")


def test_an_interruption_is_an_event_and_no_message():
    """It is a text block in the user's name."""
    transcript = read_one(Claude().user("Fix it").user([{"type": "text", "text": "[Request interrupted by user]"}]).data())
    assert transcript.events[1].kind == "error"
    assert transcript.events[1].args == {"harness": "interrupted"}
    assert signals(transcript, "exit_status") == ["interrupted"]


def test_a_background_command_is_joined_with_its_later_output():
    """The call only starts it; a poll brings the text and a notification the exit code."""
    started = "Command running in background with ID: b7. Output is being written to: /tmp/b7.output"
    polled = "<retrieval_status>timeout</retrieval_status>\n<task_id>b7</task_id>\n<status>running</status>\n<output>\nstep 1\n</output>"
    note = '<task-notification>\n<task-id>b7</task-id>\n<status>completed</status>\n<summary>Background command "suite" completed (exit code 3)</summary>\n</task-notification>'
    data = (
        Claude()
        .bash("make test", started, tool_id="t1", twin={"stdout": "", "interrupted": False, "backgroundTaskId": "b7"})
        .tool("TaskOutput", "t2", task_id="b7")
        .result("t2", polled)
        .user(note, origin={"kind": "task-notification"})
        .data()
    )
    first, second, third = of_kind(read_one(data), "command_result")
    assert {e.answers for e in (first, second, third)} == {0}
    assert (first.exit_code, second.text, second.exit_code) == (None, "step 1", None)
    assert (third.exit_code, third.is_error) == (3, True)


def test_an_old_poll_names_its_shell_in_the_call():
    """The result itself holds no id."""
    data = (
        Claude()
        .bash("make serve", "Command running in background with ID: bash_1", tool_id="t1")
        .tool("BashOutput", "t2", bash_id="bash_1")
        .result("t2", "<status>completed</status>\n<exit_code>0</exit_code>\n<stdout>\nup\n</stdout>")
        .data()
    )
    assert [(e.text, e.exit_code) for e in of_kind(read_one(data), "command_result")][1:] == [("up", 0)]


def test_a_timeout_is_told_and_long_output_is_marked():
    """Both say something about the command that an exit code does not."""
    data = (
        Claude()
        .bash("make slow", "Command timed out after 2m 0.0s\npartial", is_error=True, twin="Error")
        .bash("cat big", "<persisted-output>\nOutput too large (48.5KB). Full output saved to: /x\n</persisted-output>")
        .data()
    )
    slow, big = of_kind(read_one(data), "command_result")
    assert slow.args["timeout"] is True
    assert big.args["truncated"] is True


def test_a_duration_that_may_hold_a_persons_waiting_is_none():
    """In a mode that asks, minutes between call and result are no run time of `sed`."""
    for mode, expected in (("default", None), ("auto", 40.0), (None, 40.0)):
        session = Claude().user("go", **({"permissionMode": mode} if mode else {})).bash("sed -i s/a/b/ x", "")
        session.records[-1]["timestamp"] = "2026-03-01T10:00:41.000Z"
        assert of_kind(read_one(session.data()), "command_result")[0].duration_s == expected


def test_a_persons_own_command_is_a_command():
    """`!ls` in the prompt; it has no exit code."""
    data = (
        Claude().user("<bash-input>make up</bash-input>").user("<bash-stdout>started</bash-stdout><bash-stderr>warn</bash-stderr>").data()
    )
    command, result = read_one(data).events
    assert (command.kind, command.text, command.args) == ("command", "make up", {"by": "user"})
    assert (result.kind, result.text, result.answers, result.exit_code) == ("command_result", "started\nwarn", 0, None)


# --- other tools ------------------------------------------------------------------------------------------------------


def test_edits_and_reads_have_paths_relative_to_the_checkout():
    """Text of an edit is what was written."""
    data = (
        Claude()
        .tool("Read", "r", file_path="/srv/shop/cart.py", limit=10)
        .result("r", "1\tdef total():")
        .tool("Edit", "e", file_path="/srv/shop/cart.py", old_string="a", new_string="b")
        .result("e", "updated", twin={"filePath": "/srv/shop/cart.py", "userModified": True})
        .tool("Write", "w", file_path="/srv/shop/new.py", content="x = 1")
        .result("w", "created", twin={"type": "create"})
        .tool("MultiEdit", "m", file_path="/etc/hosts", edits=[{"new_string": "p"}, {"new_string": "q"}])
        .result("m", "<tool_use_error>File has not been read yet.</tool_use_error>", is_error=True)
        .data()
    )
    transcript = read_one(data)
    read, edit, write, multi = (e for e in transcript.events if e.kind in ("file_read", "file_edit"))
    assert (read.kind, read.paths) == ("file_read", ("cart.py",))
    assert (edit.text, edit.paths, edit.is_error) == ("b", ("cart.py",), False)
    assert (write.text, write.paths, write.args) == ("x = 1", ("new.py",), {"created": True})
    assert (multi.text, multi.paths, multi.is_error) == ("p\nq", ("/etc/hosts",), True)
    assert transcript.events[edit.index + 1].args == {"user_modified": True}
    assert transcript.run.language == "python"


def test_any_other_tool_is_a_call_with_its_arguments_as_json():
    """And its result belongs to it; a reminder inside the result is not part of it."""
    data = (
        Claude()
        .tool("Grep", "g", pattern="total", path="/srv/shop/src")
        .result("g", [{"type": "text", "text": "cart.py:1\n<system-reminder>x</system-reminder>"}])
        .data()
    )
    call, result, reminder = read_one(data).events
    assert (call.kind, call.tool, json.loads(call.text)["pattern"], call.paths) == ("tool_call", "Grep", "total", ("src",))
    assert (result.kind, result.text.strip(), result.answers) == ("tool_result", "cart.py:1", 0)
    assert reminder.kind == "system"


def test_an_answer_in_the_persons_own_words_is_theirs():
    """Choosing an offered option is not."""
    twin = {
        "questions": [
            {"question": "Which?", "options": [{"label": "A, simple"}, {"label": "B"}]},
            {"question": "Where?", "options": [{"label": "C"}]},
        ],
        "answers": {"Which?": "A, simple, B", "Where?": "what do others do?"},
    }
    data = Claude().tool("AskUserQuestion", "q", questions=[]).result("q", "Your questions have been answered", twin=twin).data()
    assert [e.text for e in of_kind(read_one(data), "user")] == ["what do others do?"]


def test_a_result_without_call_is_kept():
    """Some results have lost their call."""
    (result,) = read_one(Claude().result("lost", "text").data()).events
    assert (result.kind, result.answers) == ("tool_result", None)


# --- harness and provider ---------------------------------------------------------------------------------------------


def test_hooks_that_failed_are_told_with_command_and_code():
    """A hook's rejection is a convention of the repository."""
    data = (
        Claude()
        .user("hi")
        .add("system", subtype="stop_hook_summary", hookInfos=[{"command": "make fmt-check"}], hookErrors=["cart.py not formatted"])
        .add("system", subtype="stop_hook_summary", hookInfos=[{"command": "true"}], hookErrors=[])
        .add(
            "attachment",
            attachment={
                "type": "hook_non_blocking_error",
                "exitCode": 1,
                "command": "lint.sh",
                "stderr": "E501",
                "hookEvent": "PostToolUse",
            },
        )
        .add("attachment", attachment={"type": "hook_success", "exitCode": 0, "command": "ok.sh", "stdout": "fine"})
        .data()
    )
    _, stop, post = read_one(data).events
    assert (stop.kind, stop.tool, stop.text, stop.args["command"]) == ("system", "hook", "cart.py not formatted", "make fmt-check")
    assert (post.exit_code, post.text, post.args["command"], post.args["exit_code"]) == (1, "E501", "lint.sh", 1)


def test_progress_is_dropped_but_a_hooks_command_is_told_once():
    """Progress repeats sub-agents' messages, which have files of their own."""
    hook = {"type": "hook_progress", "hookEvent": "PreToolUse", "command": "guard.sh"}
    data = (
        Claude()
        .user("hi")
        .add("progress", data={"type": "agent_progress", "message": "big"})
        .add("progress", data=hook)
        .add("progress", data=hook)
        .data()
    )
    data = data.replace(b'": ', b'":')
    transcript = read_one(data)
    assert [(e.kind, e.tool) for e in transcript.events] == [("user", None), ("system", "hook")]
    assert transcript.events[1].args["command"] == "guard.sh"
    assert not transcript.skipped


def test_provider_trouble_is_an_error_of_the_provider():
    """API errors, retries and synthetic replies are no words of the agent."""
    data = (
        Claude()
        .user("hi")
        .add("system", subtype="api_error", error={"status": 529}, retryAttempt=1, maxRetries=10)
        .says("API Error: 529 overloaded", isApiErrorMessage=True)
        .data()
    )
    session = Claude().user("hi").says("No response requested.")
    session.records[1]["message"]["model"] = "<synthetic>"
    transcript = read_one(data)
    assert [(e.kind, e.tool) for e in transcript.events[1:]] == [("error", "provider")] * 2
    assert transcript.events[1].args["status"] == 529
    assert transcript.run.model is None
    assert kinds(read_one(session.data())) == ["user"]


def test_tokens_are_the_largest_count_of_a_message():
    """Each line of a reply repeats its usage, and the last one has the final count."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 0}
    data = (
        Claude()
        .user("hi")
        .says("a", message_id="m1", usage={**usage, "output_tokens": 3})
        .says("b", message_id="m1", usage={**usage, "output_tokens": 40})
        .says("c", message_id="m2", usage={**usage, "output_tokens": 5})
        .data()
    )
    run = read_one(data).run
    assert (run.tokens_in, run.tokens_out) == (200, 45)


def test_diagnostics_name_file_and_line():
    """What the language server said after an edit."""
    problem = {"message": "undefined: total", "severity": "Error", "range": {"start": {"line": 4}}}
    item = {"type": "diagnostics", "files": [{"uri": "file:///srv/shop/cart.go", "diagnostics": [problem]}]}
    event = read_one(Claude().user("hi").add("attachment", attachment=item).data()).events[1]
    assert (event.tool, event.text, event.paths) == ("diagnostics", "cart.go:5: Error: undefined: total", ("cart.go",))


def test_copied_history_has_the_same_origins():
    """Tool calls and messages keep their ids in a resumed file, so that one witness is not counted twice."""
    session = Claude().user("hi").bash("ls", "a", tool_id="toolu_1")
    resumed = [{**r, "sessionId": "99999999-2222-4333-8444-555555555555"} for r in session.records]
    first, second = read_one(session.data()), read_one(jsonl(*resumed))
    assert first.run.run_id != second.run.run_id
    assert [e.origin for e in first.events] == [e.origin for e in second.events] == ["u0", "toolu_1", "toolu_1"]


# --- repository and outcome -------------------------------------------------------------------------------------------


def test_the_repository_is_told_by_git_and_by_pull_requests():
    """Output of git before a linked pull request, both before the folder's name."""
    link = {"prNumber": 7, "prUrl": "https://github.com/acme/shop/pull/7", "prRepository": "acme/shop"}
    session = Claude().user("hi").add("pr-link", **link).add("pr-link", **link)
    transcript = read_one(session.data())
    assert transcript.run.repo == "acme/shop"
    assert [s for s in transcript.run.signals if s.name == "pr"] == [Signal("pr", "https://github.com/acme/shop/pull/7")]
    pushed = session.bash("git push -u origin HEAD", "To github.com:kim/shop.git\n * [new branch] HEAD -> fix").data()
    assert read_one(pushed).run.repo == "kim/shop"


def test_the_last_words_are_a_claim_and_no_outcome():
    """Nothing in a session says whether the task is solved."""
    done = read_one(Claude().user("Fix it").says("Fixed: all 12 tests pass.").data())
    gave_up = read_one(Claude().user("Fix it").says("I could not fix the cart; the tests still fail.").data())
    assert (signals(done, "claim"), done.run.outcome) == (["done"], "unknown")
    assert (signals(gave_up, "claim"), gave_up.run.outcome) == (["failed"], "failure")
