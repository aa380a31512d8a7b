"""Gemini CLI sessions: the document, the log that is replayed, and every shape of a shell command's result."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osmia_memory.errors import TranscriptError
from osmia_memory.transcripts.gemini_tools import shell_result
from tests.transcripts.builders import jsonl, kinds, of_kind, read_many, read_one, reasons
from tests.transcripts.damage import changed_somewhere, cut_somewhere, read_if_possible

SESSION = "33333333-2222-4333-8444-555555555555"
META = {"sessionId": SESSION, "projectHash": "ab12", "startTime": "2026-03-01T10:00:00.000Z", "lastUpdated": "2026-03-01T10:09:00.000Z"}
OLD = "Command: {line}\nDirectory: (root)\n{out}\nError: (none)\nExit Code: {code}\nSignal: {signal}\nBackground PIDs: (none)\nProcess Group PGID: 7"


def message(kind: str, content: Any = "", second: int = 0, **fields: Any) -> dict[str, Any]:
    """A message of a session."""
    return {"id": f"m{second}{kind}", "timestamp": f"2026-03-01T10:00:{second:02d}.000Z", "type": kind, "content": content, **fields}


def call(name: str, output: Any, status: str = "success", key: str = "output", **args: Any) -> dict[str, Any]:
    """A tool call with what it returned."""
    result = [{"functionResponse": {"id": "c1", "name": name, "response": {key: output}}}]
    return {"id": "c1", "name": name, "args": args, "result": result, "status": status, "timestamp": "2026-03-01T10:00:09.000Z"}


def document(*messages: Any, **meta: Any) -> bytes:
    """The legacy file."""
    return json.dumps({**META, **meta, "messages": list(messages)}, indent=2).encode()


def called(*calls: dict[str, Any]) -> bytes:
    """A session with these calls."""
    return document(message("user", "Fix it"), message("gemini", "", 1, toolCalls=list(calls), model="gemini-9"))


# --- a session --------------------------------------------------------------------------------------------------------


def test_a_session_is_a_run():
    """Thoughts, words and calls in their order; input tokens hold what was cached, thoughts count as output."""
    tokens = {"input": 100, "output": 10, "cached": 80, "thoughts": 5, "tool": 2, "total": 117}
    reply = message(
        "gemini", "Fixed the cart.", 5, model="gemini-9", tokens=tokens, toolCalls=[call("read_file", "total", file_path="cart.py")],
        thoughts=[{"subject": "Looking", "description": "At the cart.", "timestamp": "x"}],
    )  # fmt: skip
    transcript = read_one(
        document(message("user", "Fix the cart total"), reply, message("gemini", "Done.", 9, tokens=tokens, model="gemini-9"))
    )
    run = transcript.run
    assert kinds(transcript) == ["user", "reasoning", "assistant", "file_read", "tool_result", "assistant"]
    assert (run.engine, run.session_id, run.model, run.tokens_in, run.tokens_out, run.cost_usd) == (
        "gemini-cli",
        SESSION,
        "gemini-9",
        204,
        30,
        None,
    )
    assert (run.title, run.task_type, run.outcome) == ("Fix the cart total", "bug_fix", "unknown")
    assert [(s.name, s.value) for s in run.signals] == [("claim", "done")]
    assert transcript.events[1].text == "Looking: At the cart."


def test_the_time_between_a_persons_turns_is_not_the_runs():
    """They may be days apart."""
    messages = [message("user", "a", 0), message("gemini", "b", 4), message("user", "c", 50), message("gemini", "d", 53)]
    run = read_one(document(*messages)).run
    assert run.duration_s == 7
    assert run.finished_at is not None
    assert run.finished_at.minute == 9


def test_a_hash_tells_no_repository_but_a_result_may_tell_the_folder():
    """What the call named in part, its result names in full."""
    assert read_one(called(call("list_directory", "a", path="."))).run.cwd is None
    wrote = call("write_file", "Successfully created and wrote to new file: /srv/shop/docs/a.md.", file_path="docs/a.md", content="hi")
    transcript = read_one(called(wrote, call("read_file", "hi", absolute_path="/srv/shop/docs/a.md")))
    assert (transcript.run.cwd, transcript.run.repo) == ("/srv/shop", "local/shop")
    assert of_kind(transcript, "file_read")[0].paths == ("docs/a.md",)
    assert read_one(document(message("user", "hi"), directories=["/srv/shop"])).run.cwd == "/srv/shop"


def test_a_sub_agent_names_its_parent_by_its_folder():
    """What it was told was told by an agent."""
    transcript = read_one(document(message("user", "Look"), kind="subagent"), "chats/parent-1/child.jsonl")
    assert (transcript.run.parent_session_id, transcript.events[0].args) == ("parent-1", {"by": "agent"})
    assert read_one(document(message("user", "Look")), "chats/parent-1/child.jsonl").run.parent_session_id is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Fix it", ["user"]),
        ([{"text": "Fix "}, {"text": "it"}], ["user"]),
        ([{"inlineData": {"data": "aa"}}, {"text": "like so"}], ["user"]),
        ("System: Please continue.", ["system"]),
        ("<session_context>\nToday is\n</session_context>", ["system"]),
        ("<state_snapshot>\ngoal\n</state_snapshot>", ["compaction"]),
        ("/compress", ["system"]),
        ("/srv/shop is broken", ["user"]),
        (
            "@cart.py fix it\n--- Content from referenced files ---\nContent from @cart.py:\ntotal\n--- End of content ---",
            ["user", "system"],
        ),
        (
            "I ran the following shell command:\n```sh\nmake\n```\n\nThis produced the following result:\n```\nok\n```",
            ["command", "command_result"],
        ),
    ],
)
def test_what_stands_in_a_persons_place(content: Any, expected: list[str]):
    """Typed, or put there by the harness."""
    assert kinds(read_one(document(message("user", content), message("gemini", "ok", 1))))[:-1] == expected


def test_what_was_shown_to_the_person_is_what_they_typed():
    """The content holds what it was expanded to."""
    typed = message("user", "@a fix it\n--- Content from referenced files ---\nx", displayContent="@a fix it")
    assert [e.text for e in of_kind(read_one(document(typed)), "user")] == ["@a fix it"]


def test_notes_warnings_errors_and_cancellations():
    """An error is the provider's, a cancellation a person's."""
    notes = [
        message("user", "go"),
        message("info", "Update available", 1),
        message("warning", "Hook failed", 2),
        message("error", "429 quota", 3),
    ]
    transcript = read_one(document(*notes, message("info", "Request cancelled.", 4)))
    assert [(e.kind, e.tool, e.is_error) for e in transcript.events[1:]] == [
        ("system", "info", False), ("system", "warning", False), ("error", "provider", True), ("error", "harness", False),
    ]  # fmt: skip
    assert [(s.name, s.value) for s in transcript.run.signals] == [("exit_status", "interrupted")]


def test_a_cancellation_that_was_gone_on_from_is_not_the_end():
    """The last words count."""
    data = document(
        message("user", "go"), message("info", "Request cancelled.", 1), message("user", "again", 2), message("gemini", "Done.", 3)
    )
    assert [(s.name, s.value) for s in read_one(data).run.signals] == [("claim", "done")]


def test_unknown_types_and_shapes_are_named():
    """And the rest is read."""
    transcript = read_one(document(message("hologram"), 7, message("gemini", "", 1, toolCalls=[5]), message("user", "Fix it")))
    assert kinds(transcript) == ["user"]
    assert reasons(transcript) == "unknown message type 'hologram' | message of an unknown shape | message of an unknown shape"


@pytest.mark.parametrize("data", [document(), document(message("warning", "Hook failed")), json.dumps(META).encode()])
def test_a_session_without_a_word_is_refused(data: bytes):
    """It is no run, whatever is said to have come of it."""
    with pytest.raises(TranscriptError, match="without any message"):
        read_many(data)


def test_a_document_that_is_cut_off_is_read_as_far_as_it_goes():
    """It is named."""
    data = document(message("user", "Fix it"), message("gemini", "Done.", 1))
    transcript = read_one(data[: data.index(b"Done")])
    assert (kinds(transcript), "cut off" in reasons(transcript)) == (["user"], True)


def test_two_documents_in_one_file_are_two_runs():
    """Written one after the other."""
    first, second = read_many(document(message("user", "a")) + document(message("user", "b"), sessionId="other"))
    assert (first.run.session_id, second.run.session_id) == (SESSION, "other")


# --- the log ----------------------------------------------------------------------------------------------------------


def test_a_log_is_replayed():
    """The last state of a message counts, in its first place; the record is the line that told it."""
    data = jsonl(
        META, message("user", "Fix it"), message("gemini", "I", 1), {"$set": {"lastUpdated": "2026-03-01T10:20:00Z"}},
        message("gemini", "I fixed it.", 1, tokens={"input": 5, "output": 1}), message("user", "Thanks", 8),
    )  # fmt: skip
    transcript = read_one(data)
    assert [(e.kind, e.text, e.record) for e in transcript.events] == [
        ("user", "Fix it", 1),
        ("assistant", "I fixed it.", 4),
        ("user", "Thanks", 5),
    ]
    assert (transcript.run.tokens_in, transcript.run.finished_at is not None and transcript.run.finished_at.minute) == (5, 20)


def test_a_rewind_takes_back_a_message_and_all_after_it():
    """It is told how many; an unknown one takes back everything."""
    first, wrong, reply = message("user", "Fix it"), message("user", "Drop the table", 1), message("gemini", "ok", 2)
    transcript = read_one(jsonl(META, first, wrong, reply, {"$rewindTo": wrong["id"]}, message("gemini", "Done.", 4)))
    assert [e.text for e in transcript.events] == ["Fix it", "Done."]
    assert reasons(transcript) == "2 messages taken back by a rewind"
    assert [e.text for e in read_one(jsonl(META, first, reply, {"$rewindTo": "?"}, message("user", "New", 5))).events] == ["New"]


def test_a_message_list_that_is_set_replaces_the_messages():
    """As a migrated file does."""
    data = jsonl(META, message("user", "old"), {"$set": {"messages": [message("user", "new", 1)]}}, {"odd": 1})
    transcript = read_one(data)
    assert ([e.text for e in transcript.events], reasons(transcript)) == (["new"], "unknown record with the keys odd")


# --- tools ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OLD.format(line="make", out="Output: ok\nfine", code=0, signal="(none)"), ("ok\nfine", 0, {})),
        (OLD.format(line="make", out="Output: (empty)", code=0, signal=0), ("", 0, {})),
        (OLD.format(line="a\nb", out="Stdout: out\nStderr: err", code=2, signal="(none)"), ("out\nerr", 2, {})),
        (OLD.format(line="make", out="Output: x", code="(none)", signal="SIGKILL"), ("x", None, {})),
        ("Output: ok\nProcess Group PGID: 7", ("ok", 0, {})),
        ("Output: Exit Code: 5 is what it said\nExit Code: 1\nProcess Group PGID: 7", ("Exit Code: 5 is what it said", 1, {})),
        ("Output: (empty)\nError: spawn failed", ("spawn failed", None, {})),
        ("Output: x\nSignal: 9", ("x", None, {})),
        ("Command was cancelled by user before it could complete. There was no output before it was cancelled.", ("", None, {"harness": "interrupted"})),
        (
            "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output."
            " Below is the output before it was cancelled:\n1 of 9",
            ("1 of 9", None, {"timeout": True}),
        ),
        ("Command moved to background (PID: 7). Output hidden.", ("Command moved to background (PID: 7). Output hidden.", None, {"background": "7"})),
        ("a summary of the output", ("a summary of the output", None, {})),
    ],
)  # fmt: skip
def test_a_shell_result_in_every_shape(text: str, expected: tuple[str, int | None, dict[str, Any]]):
    """The newer form tells the exit code only where it is not 0."""
    assert tuple(shell_result(text, is_success=True)) == expected


def test_a_command_is_paired_with_its_result():
    """A status of success says only that the tool worked."""
    failing = OLD.format(line="make test", out="Output: 1 failed", code=1, signal="(none)")
    transcript = read_one(called(call("run_shell_command", failing, command="make test", description="Run tests")))
    (line,), (result,) = of_kind(transcript, "command"), of_kind(transcript, "command_result")
    assert (line.text, result.answers, result.text, result.exit_code, result.is_error) == ("make test", line.index, "1 failed", 1, True)
    assert result.ts is not None
    assert result.ts.second == 9


@pytest.mark.parametrize(
    ("status", "error", "flags"),
    [
        ("cancelled", "[Operation Cancelled] Reason: User did not allow tool call", {"harness": "refused"}),
        ("cancelled", "[Operation Cancelled] Reason: User cancelled the operation.", {"harness": "interrupted"}),
        ("error", "File not found", {}),
    ],
)
def test_calls_that_did_not_work(status: str, error: str, flags: dict[str, str]):
    """A refusal is no failure of the tool."""
    transcript = read_one(
        called(call("run_shell_command", error, status, "error", command="rm -r x"), call("read_file", "x", file_path="a"))
    )
    (result,) = of_kind(transcript, "command_result")
    assert (result.is_error, dict(result.args), result.exit_code) == (True, flags, None)


def test_a_call_that_waits_has_no_result():
    """The session ended before."""
    assert kinds(read_one(called(call("run_shell_command", "", "awaiting_approval", command="make")))) == ["user", "command"]


def test_edits_know_what_they_made_and_what_failed():
    """The result tells a new file from an old one."""
    data = called(
        call("write_file", "Successfully created and wrote to new file: /srv/a.", file_path="/srv/a", content="one"),
        call("replace", "Successfully modified file: /srv/b (1 replacements).", file_path="/srv/b", old_string="x", new_string="two"),
        call("replace", "Failed to edit, 0 occurrences found", "error", "error", file_path="/srv/c", new_string="three"),
    )
    edits = of_kind(read_one(data), "file_edit")
    assert [(e.text, dict(e.args), e.is_error) for e in edits] == [
        ("one", {"created": True}, False),
        ("two", {}, False),
        ("three", {}, True),
    ]


def test_other_tools_and_results_of_other_shapes():
    """Structured output, plain texts, and only what was shown."""
    shown = {"id": "c", "name": "web_fetch", "args": {"prompt": "x"}, "result": None, "status": "success", "resultDisplay": "shown"}
    plain = {"id": "d", "name": "mcp", "args": {}, "result": [{"text": "a"}, "b"], "status": "success"}
    transcript = read_one(called(call("todo", {"items": [1]}), shown, plain))
    assert [e.text for e in of_kind(transcript, "tool_result")] == ['{"items":[1]}', "shown", "a\nb"]
    assert [e.text for e in of_kind(transcript, "tool_call")] == ["{}", '{"prompt":"x"}', "{}"]


def test_secrets_are_masked_in_every_place():
    """Words, thoughts, commands, results."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    reply = message("gemini", secret, 1, thoughts=[{"subject": "s", "description": secret}], toolCalls=[call("run_shell_command", f"Output: {secret}", command=f"echo {secret}")])  # fmt: skip
    transcript = read_one(document(message("user", secret), reply))
    assert secret not in str(transcript)
    assert len(transcript.events) == 5


SAMPLE = [META, message("user", "Fix it"), message("gemini", "ok", 1, tokens={"input": 1}, thoughts=[{"subject": "s"}],
                                                   toolCalls=[call("run_shell_command", "Output: x", command="ls")]), {"$set": {"kind": "main"}}]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_is_no_traceback(data: st.DataObject):
    """Cut anywhere, with any value in any field, as document and as log."""
    read_if_possible(cut_somewhere(data, data.draw(st.sampled_from([document(*SAMPLE[1:3]), jsonl(*SAMPLE)]))))
    values = changed_somewhere(data, SAMPLE)
    read_if_possible(jsonl(*values))
    read_if_possible(document(*values[1:3]))
