"""opencode sessions in their four shapes: export, storage folder, event stream, `run --format json`."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Transcript
from osmia_memory.transcripts.read import ReadOptions, read_all
from tests.transcripts.builders import jsonl, kinds, of_kind, read_many, read_one, reasons
from tests.transcripts.damage import changed_somewhere, cut_somewhere, read_if_possible

SES = "ses_01shop"
T0 = 1772359200000  # 2026-03-01T10:00:00Z
INFO = {"id": SES, "projectID": "p1", "directory": "/srv/shop", "title": "Cart total", "time": {"created": T0, "updated": T0 + 9000}}
TOKENS = {"input": 100, "output": 10, "reasoning": 5, "cache": {"read": 50, "write": 20}}


def asked(text: str, **fields: Any) -> dict[str, Any]:
    """A person's message."""
    info = {"id": "msg_1", "sessionID": SES, "role": "user", "time": {"created": T0}, "agent": "build"}
    return {"info": info, "parts": [{"id": "prt_1", "messageID": "msg_1", "sessionID": SES, "type": "text", "text": text, **fields}]}


def replied(*parts: dict[str, Any], number: int = 2, **info: Any) -> dict[str, Any]:
    """A message of the agent's; parts are given ids."""
    key = f"msg_{number}"
    told = {"id": key, "sessionID": SES, "role": "assistant", "modelID": "model-3", "providerID": "acme", "cost": 0.25, "tokens": TOKENS,
            "time": {"created": T0 + 1000, "completed": T0 + 4000}, "path": {"cwd": "/srv/shop", "root": "/srv/shop"}, **info}  # fmt: skip
    return {"info": told, "parts": [{"id": f"prt_{number}{i}", "messageID": key, "sessionID": SES, **p} for i, p in enumerate(parts)]}


def said(text: str) -> dict[str, Any]:
    """A text part."""
    return {"type": "text", "text": text}


def tool(name: str, status: str = "completed", output: str = "", meta: Any = None, **given: Any) -> dict[str, Any]:
    """A tool part."""
    key = "error" if status == "error" else "output"
    state = {"status": status, "input": given, key: output, "metadata": meta or {}, "time": {"start": T0 + 1500, "end": T0 + 2500}}
    return {"type": "tool", "tool": name, "callID": "call_1", "state": state}


def export(*messages: dict[str, Any], **info: Any) -> bytes:
    """`opencode export`."""
    return json.dumps({"info": {**INFO, **info}, "messages": list(messages)}, indent=2).encode()


def event(kind: str, **properties: Any) -> dict[str, Any]:
    """An event of the server's stream."""
    return {"id": "evt_1", "type": kind, "properties": properties}


def signals(transcript: Transcript) -> list[tuple[str, str]]:
    """Names and values."""
    return [(s.name, s.value) for s in transcript.run.signals]


# --- a session --------------------------------------------------------------------------------------------------------


def test_an_export_is_a_run():
    """With folder, model, tokens, cost and time of work."""
    data = export(asked("Fix the cart total"), replied({"type": "reasoning", "text": "Hm."}, said("Fixed."), finish="stop"))
    transcript = read_one(data)
    run = transcript.run
    assert kinds(transcript) == ["user", "reasoning", "assistant"]
    assert (run.engine, run.session_id, run.model, run.cwd, run.repo) == ("opencode", SES, "model-3", "/srv/shop", "local/shop")
    assert (run.tokens_in, run.tokens_out, run.cost_usd, run.duration_s) == (170, 15, 0.25, 3.0)
    assert (run.title, signals(transcript), run.outcome) == (
        "Fix the cart total",
        [("exit_status", "end_turn"), ("claim", "done")],
        "unknown",
    )


def test_a_message_of_several_steps_has_the_tokens_of_all():
    """The message itself may tell those of the last only."""
    step = {"type": "step-finish", "reason": "tool-calls", "tokens": TOKENS, "cost": 0.25}
    run = read_one(export(asked("go"), replied({"type": "step-start"}, step, said("ok"), step, cost=0.5))).run
    assert (run.tokens_in, run.tokens_out, run.cost_usd) == (340, 30, 0.5)


def test_nothing_told_is_not_zero():
    """Neither tokens nor cost."""
    run = read_one(export(asked("go"), replied(said("ok"), tokens=None, cost=None))).run
    assert (run.tokens_in, run.tokens_out, run.cost_usd) == (None, None, None)


def test_a_sub_agents_session_names_its_parent():
    """It is asked by an agent."""
    transcript = read_one(export(asked("Look"), replied(said("ok")), parentID="ses_00"))
    assert (transcript.run.parent_session_id, transcript.events[0].args) == ("ses_00", {"by": "agent"})


@pytest.mark.parametrize(("fields", "kind"), [({}, ["user"]), ({"synthetic": True}, ["system"]), ({"ignored": True}, [])])
def test_texts_that_the_harness_adds_are_not_the_persons(fields: dict[str, Any], kind: list[str]):
    """What is ignored was not sent."""
    assert kinds(read_one(export(asked("Called the read tool", **fields), replied(said("ok")))))[:-1] == kind


def test_parts_that_are_no_words():
    """Files, retries, summaries, tasks for others; steps and snapshots say nothing."""
    parts = [
        {"type": "file", "mime": "text/plain", "url": "file:///srv/shop/a.py", "source": {"type": "file", "path": "/srv/shop/a.py"}},
        {"type": "retry", "attempt": 2, "error": {"name": "APIError", "data": {"message": "Overloaded"}}},
        {"type": "compaction", "auto": True},
        {"type": "subtask", "prompt": "Look", "description": "d", "agent": "explore"},
        {"type": "snapshot", "snapshot": "x"}, {"type": "patch", "hash": "x", "files": ["a.py"]}, {"type": "hologram"},
    ]  # fmt: skip
    transcript = read_one(export(asked("go"), replied(*parts), replied(said("Goal: fix"), number=3, summary=True)))
    assert kinds(transcript) == ["user", "file_read", "error", "compaction", "tool_call", "compaction"]
    assert (transcript.events[1].paths, transcript.events[2].text, transcript.events[2].args["retried"]) == (
        ("a.py",),
        "APIError: Overloaded",
        True,
    )
    assert reasons(transcript) == "unknown part type 'hologram'"


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"error": {"name": "MessageAbortedError", "data": {"message": "The operation was aborted."}}}, [("exit_status", "interrupted")]),
        ({"error": {"name": "ProviderAuthError", "data": {"message": "No key"}}}, [("exit_status", "error")]),
        ({"error": {"name": "MessageOutputLengthError", "data": {}}}, [("limit", "output length")]),
        ({"finish": "length"}, [("limit", "output length")]),
        ({"finish": "tool-calls"}, []),
    ],
)
def test_how_the_last_message_ended(info: dict[str, Any], expected: list[tuple[str, str]]):
    """With an error of the provider, by a person, by a limit."""
    assert signals(read_one(export(asked("go"), replied(said("Hm"), **info)))) == expected


def test_an_error_that_was_gone_on_from_is_not_the_end():
    """A person asked again."""
    failed = replied(said("Hm"), error={"name": "APIError", "data": {"message": "500"}})
    again = {"info": {**asked("x")["info"], "id": "msg_5"}, "parts": []}
    transcript = read_one(export(asked("go"), failed, again, replied(said("Hm"), number=6, finish="stop")))
    assert (signals(transcript), len(of_kind(transcript, "error"))) == ([("exit_status", "end_turn")], 1)


# --- tools ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "text", "code", "flags", "is_error"),
    [
        (tool("bash", output="ok\n", meta={"exit": 0}, command="make"), "ok\n", 0, {}, False),
        (tool("bash", output="1 failed", meta={"exit": 1}, command="make"), "1 failed", 1, {}, True),
        (
            tool("bash", output="x\n\n<bash_metadata>\nbash tool terminated command after exceeding timeout 120000 ms\n</bash_metadata>",
                 meta={"exit": None}, command="make"), "x", None, {"timeout": True}, True,
        ),
        (tool("bash", output="x\n\n<bash_metadata>\nUser aborted the command\n</bash_metadata>", meta={"exit": 1}, command="make"), "x", None,
         {"harness": "interrupted"}, False),
        (tool("bash", "error", "The user rejected permission to use this specific tool call.", command="make"),
         "The user rejected permission to use this specific tool call.", None, {"harness": "refused"}, True),
        (tool("bash", "error", "Tool execution aborted", command="make"), "Tool execution aborted", None, {"harness": "interrupted"}, True),
        (tool("bash", output="User aborted is what it prints", meta={"exit": 0}, command="make"), "User aborted is what it prints", 0, {}, False),
        (tool("bash", output="x", meta={"exit": 0, "truncated": True}, command="make"), "x", 0, {"truncated": True}, False),
    ],
)  # fmt: skip
def test_a_command_and_its_result(part: dict[str, Any], text: str, code: int | None, flags: dict[str, Any], is_error: bool):
    """The exit code is in the metadata, what the harness did at the output's end."""
    transcript = read_one(export(asked("go"), replied(part)))
    (call,), (result,) = of_kind(transcript, "command"), of_kind(transcript, "command_result")
    assert (call.text, result.answers, result.duration_s) == ("make", call.index, 1.0)
    assert (result.text, result.exit_code, dict(result.args), result.is_error) == (text, code, flags, is_error)


@pytest.mark.parametrize("status", ["pending", "running"])
def test_a_call_that_has_not_ended_has_no_result(status: str):
    """The session was stopped."""
    assert kinds(read_one(export(asked("go"), replied(tool("bash", status, command="make"))))) == ["user", "command"]


PATCH = "*** Begin Patch\n*** Add File: /srv/shop/new.py\n+hi\n*** Delete File: old.py\n*** End Patch"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (tool("write", meta={"exists": False}, filePath="/srv/shop/a.py", content="one"), [(("a.py",), "one", {"created": True})]),
        (tool("write", meta={"exists": True}, filePath="/srv/shop/a.py", content="one"), [(("a.py",), "one", {})]),
        (tool("edit", filePath="a.py", oldString="x", newString="two"), [(("a.py",), "two", {})]),
        (tool("multiedit", filePath="a.py", edits=[{"newString": "p"}, {"newString": "q"}]), [(("a.py",), "p\nq", {})]),
        (tool("apply_patch", patchText=PATCH), [(("new.py",), "+hi", {"created": True}), (("old.py",), "", {"deleted": True})]),
    ],
)
def test_edits(part: dict[str, Any], expected: list[Any]):
    """Paths are relative to the checkout; a patch is one edit for each file."""
    transcript = read_one(export(asked("go"), replied(part)))
    assert [(e.paths, e.text, dict(e.args)) for e in of_kind(transcript, "file_edit")] == expected


def test_a_failed_edit_is_marked_and_other_tools_are_calls():
    """With what they were given."""
    failed = tool("edit", "error", "oldString not found in content", filePath="a.py", oldString="x", newString="y")
    transcript = read_one(
        export(asked("go"), replied(failed, tool("read", output="x", filePath="a.py", offset=5), tool("grep", pattern="x")))
    )
    assert of_kind(transcript, "file_edit")[0].is_error
    assert of_kind(transcript, "file_read")[0].args == {"offset": 5}
    assert of_kind(transcript, "tool_call")[0].text == '{"pattern":"x"}'


# --- the other shapes -------------------------------------------------------------------------------------------------


def stored(root: Path, *messages: dict[str, Any], old: bool = False) -> Path:
    """Write a session as the storage folder holds it; returns the session's file."""
    base = root / "storage" / "session" if old else root / "storage"
    session = root / "storage" / "session" / ("info" if old else "p1") / f"{SES}.json"
    files: dict[Path, Any] = {session: INFO}
    for each in messages:
        key = each["info"]["id"]
        files[base / "message" / SES / f"{key}.json"] = each["info"]
        for part in each["parts"]:
            files[base / "part" / (f"{SES}/{key}" if old else key) / f"{part['id']}.json"] = part
    for path, value in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    return session


@pytest.mark.parametrize("old", [False, True])
def test_a_session_in_the_storage_folder_is_read_by_its_file(tmp_path: Path, old: bool):
    """In both layouts; single messages and parts are passed over without a word."""
    stored(tmp_path, asked("Fix it"), replied(said("Fixed."), tool("bash", meta={"exit": 0}, command="make")), old=old)
    (found,) = read_all([str(tmp_path)], ReadOptions("t"))
    assert isinstance(found, Transcript)
    assert kinds(found) == ["user", "assistant", "command", "command_result"]
    assert found.run.cost_usd == 0.25


def test_the_storage_folder_gives_what_the_export_gives(tmp_path: Path):
    """Same events, same numbers."""
    messages = (asked("Fix it"), replied(said("Fixed."), finish="stop"))
    (found,) = read_all([str(stored(tmp_path, *messages))], ReadOptions("ticketing"))
    assert isinstance(found, Transcript)
    whole = read_one(export(*messages))
    assert (found.events, found.run.run_id, found.run.signals) == (whole.events, whole.run.run_id, whole.run.signals)


def test_a_grown_session_is_a_new_version(tmp_path: Path):
    """The session's own file need not have changed."""
    path = stored(tmp_path, asked("Fix it"))
    (before,) = read_all([str(path)], ReadOptions("t"))
    stored(tmp_path, asked("Fix it"), replied(said("Fixed.")))
    (after,) = read_all([str(path)], ReadOptions("t"))
    assert isinstance(before, Transcript)
    assert isinstance(after, Transcript)
    assert before.run.run_id == after.run.run_id
    assert before.run.version != after.run.version


def test_a_damaged_file_of_the_storage_folder_is_named(tmp_path: Path):
    """And the rest is read."""
    path = stored(tmp_path, asked("Fix it"), replied(said("Fixed.")))
    (tmp_path / "storage/part/msg_2/prt_20.json").write_text("{")
    (tmp_path / "storage/message" / SES / "msg_9.json").write_text("{")
    (found,) = read_all([str(path)], ReadOptions("t"))
    assert isinstance(found, Transcript)
    assert kinds(found) == ["user"]
    assert reasons(found) == "invalid JSON in the file of a part | 1 message files that are no JSON"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (json.dumps(INFO).encode(), "without the folder of its messages"),
        (json.dumps(asked("x")["info"]).encode(), "without its session"),
        (json.dumps(event("server.connected")).encode(), "without any message"),
        (
            json.dumps(event("message.part.updated", part={**said("x"), "id": "prt_1", "messageID": "m", "sessionID": SES})).encode(),
            "without any message",
        ),
    ],
)
def test_a_piece_of_a_session_is_refused_in_words(data: bytes, words: str):
    """It says what is missing."""
    with pytest.raises(TranscriptError, match=words):
        read_many(data)


def stream(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    """The events that tell of messages."""
    found = [event("server.connected"), event("session.updated", sessionID=SES, info=INFO)]
    for each in messages:
        found.append(event("message.updated", sessionID=SES, info=each["info"]))
        found += [event("message.part.updated", sessionID=SES, part=part) for part in each["parts"]]
    return found


def test_an_event_stream_is_a_run():
    """What is told again replaces what was told; deltas only count where the whole does not come."""
    delta = {"sessionID": SES, "messageID": "msg_2", "field": "text"}
    data = jsonl(
        *stream(asked("Fix it"), replied(said(""), said(""))),
        event("message.part.delta", partID="prt_20", delta="Fi", **delta), event("message.part.delta", partID="prt_20", delta="xed", **delta),
        event("message.part.delta", partID="prt_21", delta="Al", **delta),
        event("message.part.updated", sessionID=SES, part={**replied(said("x"), said("All done"))["parts"][1]}),
        event("message.updated", sessionID=SES, info=replied(finish="stop")["info"]), event("session.idle", sessionID=SES),
    )  # fmt: skip
    transcript = read_one(data)
    assert [(e.kind, e.text) for e in transcript.events] == [("user", "Fix it"), ("assistant", "Fixed"), ("assistant", "All done")]
    assert (transcript.run.tokens_in, transcript.run.cost_usd, transcript.run.cwd) == (170, 0.25, "/srv/shop")


def test_what_a_stream_takes_back_is_gone_and_what_it_does_not_know_is_named():
    """Removed messages and parts; an error of the session."""
    data = jsonl(
        *stream(asked("Fix it"), replied(said("one"), said("two")), replied(said("three"), number=3)),
        event("message.part.removed", sessionID=SES, messageID="msg_2", partID="prt_21"), event("message.removed", sessionID=SES, messageID="msg_3"),
        event("session.error", sessionID=SES, error={"name": "APIError", "data": {"message": "Overloaded"}}), event("session.sings", sessionID=SES),
        event("lsp.client.diagnostics", path="a.py"), event("message.updated", info=7),
    )  # fmt: skip
    transcript = read_one(data)
    assert [(e.kind, e.text) for e in transcript.events] == [("user", "Fix it"), ("assistant", "one"), ("error", "APIError: Overloaded")]
    assert reasons(transcript) == "unknown record type 'session.sings' | record of an unknown shape"


def test_a_stream_may_hold_several_sessions_and_wrapped_events():
    """Each is a run."""
    other = json.loads(json.dumps(stream(asked("Look"), replied(said("ok")))).replace(SES, "ses_02"))
    wrapped = [{"directory": "/srv/shop", "payload": each} for each in stream(asked("Fix it"), replied(said("ok")))]
    assert sorted(t.run.session_id for t in read_many(jsonl(*wrapped, *other))) == [SES, "ses_02"]


def output(kind: str, part: Any = None, **more: Any) -> dict[str, Any]:
    """A line of `opencode run --format json`."""
    told = {} if part is None else {"part": {"id": f"prt_{kind}", "messageID": "msg_2", "sessionID": SES, **part}}
    return {"type": kind, "timestamp": T0 + 5000, "sessionID": SES, **told, **more}


def test_the_output_of_a_run_is_read():
    """It does not hold the prompt; tokens are those of its steps."""
    data = jsonl(
        output("step_start", {"type": "step-start"}), output("tool_use", tool("bash", output="ok", meta={"exit": 0}, command="make")),
        output("text", said("Done.")), output("step_finish", {"type": "step-finish", "reason": "stop", "cost": 0.1, "tokens": TOKENS}),
    )  # fmt: skip
    transcript = read_one(data)
    assert kinds(transcript) == ["command", "command_result", "assistant"]
    assert (transcript.run.tokens_in, transcript.run.cost_usd, transcript.run.description) == (170, 0.1, "")
    assert transcript.events[2].ts is not None


def test_an_error_in_the_output_is_the_runs_end():
    """Told once."""
    transcript = read_one(jsonl(output("text", said("Hm.")), output("error", error={"name": "APIError", "data": {"message": "401"}})))
    assert (kinds(transcript), signals(transcript)) == (["assistant", "error"], [("exit_status", "error")])


def test_secrets_are_masked_in_every_place():
    """Words, commands, results."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    transcript = read_one(
        export(asked(secret), replied(said(secret), tool("bash", output=secret, meta={"exit": 0}, command=f"echo {secret}")))
    )
    assert secret not in str(transcript)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_is_no_traceback(data: st.DataObject):
    """Cut anywhere, with any value in any field, in every shape."""
    messages = [
        asked("Fix it"),
        replied(said("ok"), tool("bash", output="x", meta={"exit": 0}, command="ls"), tool("apply_patch", patchText=PATCH)),
    ]
    lines = [*stream(*messages), output("error", error={"name": "APIError"}), output("text", said("x"))]
    read_if_possible(cut_somewhere(data, data.draw(st.sampled_from([export(*messages), jsonl(*lines)]))))
    read_if_possible(json.dumps(changed_somewhere(data, json.loads(export(*messages)))).encode())
    read_if_possible(jsonl(*changed_somewhere(data, lines)))
