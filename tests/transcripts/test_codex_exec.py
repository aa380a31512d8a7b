"""Output of `codex exec --json`."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Transcript
from tests.transcripts.builders import (
    Codex,
    jsonl,
    kinds,
    of_kind,
    read_many,
    read_one,
    reasons,
    signals,
)
from tests.transcripts.damage import survives_damage, survives_odd_values

THREAD = "019cb000-0000-7000-8000-00000000000a"
COMMAND = {"id": "item_1", "type": "command_execution", "command": "/bin/bash -lc 'make test'", "aggregated_output": "", "exit_code": None}


def item(stage: str = "completed", **fields: Any) -> dict[str, Any]:
    """An event of one item."""
    return {"type": f"item.{stage}", "item": {"id": "item_0", **fields}}


def ran(output: str, code: int | None, status: str = "completed", stage: str = "completed", **fields: Any) -> dict[str, Any]:
    """A command's event."""
    return item(stage, **{**COMMAND, "aggregated_output": output, "exit_code": code, "status": status, **fields})


def says(text: str) -> dict[str, Any]:
    """A message of the agent."""
    return item(type="agent_message", text=text)


def turn(*items: Any, end: Any = "usage", thread: str = THREAD) -> list[dict[str, Any]]:
    """The events of a thread with one turn."""
    usage = {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 9}}
    return [{"type": "thread.started", "thread_id": thread}, {"type": "turn.started"}, *items, *([usage] if end == "usage" else end)]


def run(*items: Any, end: Any = "usage") -> Transcript:
    """The one transcript of a turn."""
    return read_one(jsonl(*turn(*items, end=end)))


SAMPLE = turn(item(type="reasoning", text="**Look**"), ran("", None, "in_progress", "started"), ran("ok", 0), says("Done."))


def test_a_turn_is_a_run():
    """With the tokens of its end, cached ones among them, and the only clock there is: that of the thread's id."""
    found = run(says("Done."))
    assert (found.run.engine, found.run.session_id, found.run.tokens_in, found.run.tokens_out) == ("codex", THREAD, 100, 9)
    assert found.run.started_at == datetime.fromtimestamp(0x019CB0000000 / 1000, UTC)
    assert (found.run.times_assumed, found.run.duration_s, found.run.model, found.run.cost_usd) == (False, None, None, None)


def test_a_thread_id_without_a_clock_leaves_the_times_assumed():
    """As of other versions of UUID."""
    (found,) = read_many(jsonl(*turn(says("Hi"), thread="0b0b0b0b-0000-4000-8000-00000000000a")))
    assert found.run.times_assumed


def test_the_run_is_that_of_the_rollout():
    """One thread told twice is one run."""
    rollout = read_one(Codex(THREAD).user("Fix it").data())
    assert run(says("Done.")).run.run_id == rollout.run.run_id


def test_a_command_is_paired_by_its_item():
    """Taken out of its shell, with output, exit code and record."""
    found = run(ran("", None, "in_progress", "started"), ran("half", None, "in_progress", "updated"), ran("1 failed", 2, "failed"))
    command, result = found.events
    assert (command.kind, command.text, command.record) == ("command", "make test", 2)
    assert (result.text, result.exit_code, result.is_error, result.answers, result.record) == ("1 failed", 2, True, 0, 4)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("/bin/bash -lc \"printf '%s' a > b && cat b\"", "printf '%s' a > b && cat b"),
        ("zsh -lc ls", "ls"),
        (["bash", "-lc", "make x"], "make x"),
        ("make test -- 'a b'", "make test -- 'a b'"),
        ("bash -lc 'unclosed", "bash -lc 'unclosed"),
    ],
)
def test_only_a_shells_script_is_unwrapped(command: Any, line: str):
    """What cannot be taken apart stays as it is."""
    assert of_kind(run(ran("", 0, command=command)), "command")[0].text == line


def test_item_ids_begin_anew_with_each_turn():
    """A resumed thread counts from zero again."""
    second = [{"type": "thread.started", "thread_id": THREAD}, {"type": "turn.started"}, ran("b", 0, command="ls b")]
    found = read_one(jsonl(*turn(ran("a", 0, command="ls a")), *second))
    assert [(e.text, e.answers) for e in found.events] == [("ls a", None), ("a", 0), ("ls b", None), ("b", 2)]


def test_an_unfinished_command_has_no_result():
    """The process was killed."""
    found = run(ran("", None, "in_progress", "started"), end=[])
    assert kinds(found) == ["command"]
    assert (signals(found, "exit_status"), found.run.outcome) == (["interrupted"], "unknown")


def test_a_declined_command_is_a_refusal():
    """No failure of the command."""
    assert of_kind(run(ran("", None, "declined")), "command_result")[0].args == {"harness": "refused"}


@pytest.mark.parametrize("kind", ["add", {"type": "add"}])
def test_a_file_change_is_an_edit_of_each_file(kind: Any):
    """Whichever form its kind has."""
    changes = [
        {"path": "a.py", "kind": kind, "diff": "+x"},
        {"path": "b.py", "kind": "delete"},
        {"path": "c.py", "kind": {"type": "update", "move_path": "d.py"}},
    ]
    edits = run(item(type="file_change", changes=changes, status="completed")).events
    assert [(e.paths, dict(e.args), e.is_error) for e in edits] == [
        (("a.py",), {"created": True}, False), (("b.py",), {"deleted": True}, False), (("c.py", "d.py"), {}, False),
    ]  # fmt: skip
    assert edits[0].text == "+x"


def test_a_failed_file_change_is_marked():
    """Nothing was written."""
    (edit,) = run(item(type="file_change", changes=[{"path": "a.py", "kind": "update"}], status="failed")).events
    assert edit.is_error


def test_other_tools_are_calls_with_their_results():
    """Of MCP servers, searches and plans."""
    found = run(
        item(
            type="mcp_tool_call",
            server="docs",
            tool="find",
            arguments={"q": "x"},
            result={"content": [{"text": "found"}]},
            status="completed",
        ),
        item(type="mcp_tool_call", server="docs", tool="find", arguments={}, error={"message": "no such page"}, status="failed"),
        item(type="web_search", query="cart"),
        item("updated", type="todo_list", items=[{"text": "a"}]),
        item(type="todo_list", items=[{"text": "a", "completed": True}]),
    )
    assert [(e.kind, e.tool, e.text, e.is_error) for e in found.events] == [
        ("tool_call", "docs.find", '{"q":"x"}', False),
        ("tool_result", "docs.find", "found", False),
        ("tool_call", "docs.find", "{}", False),
        ("tool_result", "docs.find", "no such page", True),
        ("tool_call", "web_search", '{"query":"cart"}', False),
        ("tool_call", "todo_list", '{"items":[{"text":"a","completed":true}]}', False),
    ]


def test_an_error_item_is_only_a_warning():
    """The turn goes on and is complete."""
    found = run(item(type="error", message="model metadata not found"), says("Done."))
    assert [(e.kind, e.tool) for e in found.events] == [("system", "warning"), ("assistant", None)]
    assert signals(found, "exit_status") == ["task_complete"]


def test_a_completed_turn_is_no_success():
    """It is emitted also where commands failed; the agent's word is not enough."""
    assert run(ran("1 failed", 1, "failed"), says("Done.")).run.outcome == "unknown"


def test_a_failed_turn_is_a_failure_told_once():
    """The error stands before it as well; a lost connection that came back is none."""
    end = [
        {"type": "error", "message": "Reconnecting... 1/5"},
        {"type": "error", "message": "stream disconnected"},
        {"type": "turn.failed", "error": {"message": "stream disconnected"}},
    ]
    found = run(says("Working."), end=end)
    errors = of_kind(found, "error")
    assert [(e.text, e.tool, e.args["retried"]) for e in errors] == [
        ("Reconnecting... 1/5", "provider", True), ("stream disconnected", "provider", False),
    ]  # fmt: skip
    assert (signals(found, "exit_status"), found.run.outcome) == (["error"], "failure")


def test_an_error_that_the_turn_survived_does_not_decide():
    """The turn was completed after it."""
    found = run({"type": "error", "message": "Reconnecting... 2/5"}, says("Done."))
    assert (signals(found, "exit_status"), found.run.outcome) == (["task_complete"], "unknown")


def test_tokens_are_totals_of_the_thread():
    """The last is the largest; they are not summed."""
    more = {"type": "turn.completed", "usage": {"input_tokens": 250, "output_tokens": 30}}
    found = read_one(jsonl(*turn(says("a")), {"type": "turn.started"}, says("b"), more))
    assert (found.run.tokens_in, found.run.tokens_out) == (250, 30)


def test_two_threads_in_one_file_are_two_runs():
    """As of captures appended to each other."""
    found = read_many(jsonl(*turn(says("a")), *turn(says("b"), thread="019cb000-0000-7000-8000-00000000000b")))
    assert [t.run.session_id[-1] for t in found] == ["a", "b"]


def test_stderr_between_the_events_is_named():
    """Before the first one too."""
    noise = b"2026-03-01T10:00:00Z WARN codex_core: slow\n"
    found = read_one(noise + jsonl(*SAMPLE[:3]) + noise + jsonl(*SAMPLE[3:]))
    assert kinds(found) == ["reasoning", "command", "command_result", "assistant"]
    assert reasons(found).count("not a JSON record") == 2


def test_unknown_types_are_named_and_the_rest_is_read():
    """New ones appear with every version."""
    found = run({"type": "turn.paused"}, item(type="hologram"), {"type": "item.completed"}, item(type="agent_message"), says("Done."))
    assert kinds(found) == ["assistant"]
    assert [s.reason for s in found.skipped] == [
        "unknown record type 'turn.paused'", "unknown item type 'hologram'", "item.completed record of an unknown shape",
        "item.completed record of an unknown shape",
    ]  # fmt: skip


def test_a_capture_without_items_is_refused():
    """In words."""
    with pytest.raises(TranscriptError, match="without any item"):
        read_one(jsonl(*turn()))


def test_secrets_are_masked_everywhere():
    """In commands, outputs, edits and errors."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    found = run(
        ran(secret, 0, command=f"bash -lc 'echo {secret}'"),
        item(type="file_change", changes=[{"path": f"{secret}.py", "kind": "add", "diff": secret}], status="completed"),
        item(type="mcp_tool_call", server="s", tool="t", arguments={"key": secret}, result=secret),
        says(secret),
    )
    assert "a1B2c3D4" not in repr(found)


def test_damage_and_odd_values_end_no_batch():
    """Every file is read as far as it can be, or refused in words."""
    survives_damage(jsonl(*SAMPLE))
    survives_odd_values(SAMPLE, as_lines=True)
    assert kinds(read_one(json.dumps(SAMPLE).encode())) == ["reasoning", "command", "command_result", "assistant"]
