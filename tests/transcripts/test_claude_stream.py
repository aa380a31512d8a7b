"""Claude Code's `stream-json` and `json` output."""

import json
from typing import Any

import pytest

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Transcript
from osmia_memory.transcripts.read import READERS
from osmia_memory.transcripts.records import take_apart
from tests.transcripts.builders import (
    SESSION,
    Claude,
    jsonl,
    kinds,
    of_kind,
    read_many,
    read_one,
    reasons,
    signals,
)
from tests.transcripts.damage import survives_damage, survives_odd_values

INIT = {"type": "system", "subtype": "init", "cwd": "/srv/shop", "model": "claude-opus-9", "permissionMode": "default", "tools": ["Bash"]}
USAGE = {"input_tokens": 5, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100, "output_tokens": 40}


def record(kind: str, session: str = SESSION, **fields: Any) -> dict[str, Any]:
    """A record in the output's envelope."""
    return {"type": kind, "session_id": session, **fields}


def says(*blocks: Any, parent: str | None = None, message_id: str = "m1", session: str = SESSION, **message: Any) -> dict[str, Any]:
    """A message of the agent; a string is a text block."""
    content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    told = {"id": message_id, "model": "claude-opus-9", "role": "assistant", "content": content, "usage": USAGE, **message}
    return record("assistant", session, message=told, parent_tool_use_id=parent)


def bash(line: str, tool_id: str = "t1") -> dict[str, Any]:
    """A command."""
    return says({"type": "tool_use", "id": tool_id, "name": "Bash", "input": {"command": line}})


def result_of(tool_id: str, content: Any, is_error: bool = False, **fields: Any) -> dict[str, Any]:
    """A tool's result."""
    block = {"type": "tool_result", "tool_use_id": tool_id, "content": content, "is_error": is_error}
    return record("user", message={"role": "user", "content": [block]}, **fields)


def ending(text: str = "Done.", subtype: str = "success", **fields: Any) -> dict[str, Any]:
    """The last line."""
    told = {"is_error": False, "duration_ms": 4500, "num_turns": 2, "total_cost_usd": 0.25, "usage": USAGE, "permission_denials": []}
    return record("result", subtype=subtype, result=text, **{**told, **fields})


def run(*records: Any, first: Any = INIT) -> Transcript:
    """The one transcript of an output."""
    return read_one(jsonl({**first, "session_id": SESSION}, *records))


SAMPLE = [{**INIT, "session_id": SESSION}, bash("make test"), result_of("t1", "ok"), says("Done.", message_id="m2"), ending()]


def test_the_output_is_a_run_with_its_surroundings():
    """Cost, duration and tokens of its last line; folder and model of its first."""
    found = read_one(jsonl(*SAMPLE))
    assert (found.run.engine, found.run.session_id, found.run.cwd, found.run.model) == (
        "claude-code",
        SESSION,
        "/srv/shop",
        "claude-opus-9",
    )
    assert (found.run.cost_usd, found.run.duration_s, found.run.tokens_in, found.run.tokens_out) == (0.25, 4.5, 125, 40)
    assert (signals(found, "exit_status"), signals(found, "claim"), found.run.outcome) == (["success"], ["done"], "unknown")


def test_the_run_is_that_of_the_session_file():
    """One session told twice is one run."""
    assert read_one(jsonl(*SAMPLE)).run.run_id == read_one(Claude().user("Fix it").data()).run.run_id


def test_a_session_file_is_not_taken_for_output():
    """Later versions repeat the id in snake case."""
    data = Claude(session_id=SESSION).user("Fix it").says("Done.").data()
    assert [r.files for r in READERS if r.sniff(take_apart(data, "f").head(5))] == ["Claude Code session *.jsonl"]


def test_commands_are_paired_as_in_a_session():
    """With the exit code out of the text of a failure."""
    found = run(bash("make test"), result_of("t1", "Exit code 2\n1 failed", is_error=True), ending())
    command, result = found.events[:2]
    assert (command.text, result.text, result.exit_code, result.answers, result.record) == ("make test", "1 failed", 2, 0, 2)


def test_structured_results_have_another_name_here():
    """A file that a tool created."""
    write = says({"type": "tool_use", "id": "w", "name": "Write", "input": {"file_path": "/srv/shop/a.py", "content": "x"}})
    found = run(write, result_of("w", "File created", tool_use_result={"type": "create"}), ending())
    assert (found.events[0].paths, dict(found.events[0].args)) == (("a.py",), {"created": True})


def test_the_result_repeats_the_last_message_unless_it_is_alone():
    """`--output-format json` prints nothing else."""
    assert [e.text for e in of_kind(read_one(jsonl(*SAMPLE)), "assistant")] == ["Done."]
    alone = read_one(json.dumps(ending("Fixed the cart."), indent=2).encode())
    assert [(e.kind, e.text) for e in alone.events] == [("assistant", "Fixed the cart.")]
    assert (alone.run.session_id, alone.run.cost_usd) == (SESSION, 0.25)


@pytest.mark.parametrize(
    ("fields", "status", "outcome"),
    [
        ({"api_error_status": 429}, ["api_error"], "failure"),
        ({"terminal_reason": "model_error"}, ["api_error"], "failure"),
        ({"result": "API Error: 400 bad request"}, ["api_error"], "failure"),
        ({"result": "Invalid API key · Fix external API key"}, ["api_error"], "failure"),
        ({"api_error_status": None, "terminal_reason": "completed"}, ["unknown"], "unknown"),
    ],
)
def test_success_marked_as_an_error_is_the_providers_failure(fields: Any, status: list[str], outcome: str):
    """Unless nothing says so: near the context's limit good answers are marked too."""
    found = run(
        says("Working."),
        ending(**{"text": "Cart fixed.", "is_error": True, **{"text" if k == "result" else k: v for k, v in fields.items()}}),
    )
    assert (signals(found, "exit_status"), found.run.outcome) == (status, outcome)
    assert [e.tool for e in of_kind(found, "error")] == (["provider"] if status == ["api_error"] else [])


@pytest.mark.parametrize(
    ("subtype", "errors"),
    [("error_max_turns", []), ("error_max_turns", ["Reached maximum number of turns (3)"]), ("error_max_budget_usd", [])],
)
def test_a_limit_is_told_without_any_error_text(subtype: str, errors: list[str]):
    """`errors` may be empty."""
    found = run(says("All done."), ending("", subtype, is_error=True, errors=errors))
    assert (signals(found, "limit"), found.run.outcome) == ([subtype], "failure")
    assert [e.text for e in of_kind(found, "error")] == errors


def test_an_error_during_execution_is_a_failure_and_an_abort_is_none():
    """By the reason of the end."""
    assert run(says("Working."), ending("", "error_during_execution")).run.outcome == "failure"
    stopped = run(says("Working."), ending("", "error_during_execution", terminal_reason="aborted_tools"))
    assert (signals(stopped, "exit_status"), stopped.run.outcome) == (["interrupted"], "unknown")


def test_output_without_a_result_was_killed():
    """Which says nothing of the work."""
    found = read_one(jsonl(*SAMPLE[:-1]))
    assert (signals(found, "exit_status"), found.run.outcome, found.run.cost_usd) == (["interrupted"], "unknown", None)


def test_tokens_without_a_result_are_the_largest_of_each_message():
    """Its lines repeat one usage."""
    small = {**USAGE, "output_tokens": 1}
    found = run(says("a", usage=small), says("b"), says("c", message_id="m2"))
    assert (found.run.tokens_in, found.run.tokens_out) == (250, 80)


def test_refused_permissions_are_no_failures_of_the_tool():
    """Whatever their text."""
    told = "This command requires approval"
    found = run(
        bash("rm -r x"), result_of("t1", told, is_error=True), ending(permission_denials=[{"tool_name": "Bash", "tool_use_id": "t1"}])
    )
    assert of_kind(found, "command_result")[0].args == {"harness": "refused"}
    kept = run(bash("rm -r x"), result_of("t1", told, is_error=True), ending())
    assert of_kind(kept, "command_result")[0].args == {}


def test_retries_and_rate_limits_are_the_providers():
    """An allowed request is no event."""
    retry = record("system", subtype="api_retry", attempt=1, max_retries=10, error_status=529, error="overloaded")
    limits = [record("rate_limit_event", rate_limit_info={"status": s, "rateLimitType": "five_hour"}) for s in ("allowed", "rejected")]
    found = run(retry, *limits, says("Done."), ending())
    assert [(e.tool, e.text, e.args.get("attempt")) for e in of_kind(found, "error")] == [
        ("provider", "API error 529: overloaded", 1), ("provider", "rate limit reached: five_hour", None),
    ]  # fmt: skip
    assert signals(found, "exit_status") == ["success"]


def test_a_sub_agents_messages_are_a_run_of_their_own():
    """Its prompt was not typed by a person; one of which only the prompt was passed on is none."""
    prompt = [{"type": "text", "text": "Count the files"}]
    asked = [record("user", message={"role": "user", "content": prompt}, parent_tool_use_id=p) for p in ("task1", "task2")]
    main, sub = read_many(jsonl(*SAMPLE[:1], *asked, says("Three.", parent="task1", message_id="s1"), *SAMPLE[1:]))
    assert (sub.run.segment, sub.run.parent_session_id, sub.run.cost_usd) == ("task1", SESSION, None)
    assert [(e.kind, e.text, dict(e.args)) for e in sub.events] == [
        ("user", "Count the files", {"by": "agent"}),
        ("assistant", "Three.", {}),
    ]
    assert kinds(main) == ["command", "command_result", "assistant"]


def test_the_actions_file_is_one_array():
    """Whose records may lack the session, as its result may lack everything else."""
    records = [{k: v for k, v in r.items() if k != "session_id"} if r["type"] == "user" else r for r in SAMPLE[:-1]]
    found = read_one(
        json.dumps([*records, {"type": "result", "total_cost_usd": 0.5, "duration_ms": 9000, "result": "Done."}], indent=2).encode()
    )
    assert [(e.kind, e.record) for e in found.events] == [("command", 1), ("command_result", 2), ("assistant", 3)]
    assert (found.run.cost_usd, found.run.duration_s, found.run.tokens_out, signals(found, "exit_status")) == (0.5, 9.0, 80, [])


def test_sessions_appended_to_each_other_are_told_apart():
    """By their ids."""
    other = [{**r, "session_id": "other"} for r in SAMPLE]
    assert [t.run.session_id for t in read_many(jsonl(*SAMPLE, *other))] == [SESSION, "other"]


def test_a_session_of_several_turns_has_their_durations_and_the_last_totals():
    """Cost and tokens are told of the whole session so far."""
    more = {**USAGE, "output_tokens": 90}
    found = run(says("a"), ending("a"), says("b", message_id="m2"), ending("b", total_cost_usd=0.75, usage=more))
    assert (found.run.cost_usd, found.run.duration_s, found.run.tokens_out) == (0.75, 9.0, 90)


def test_noise_before_the_first_record_is_named():
    """Such as a warning of the shell."""
    found = read_one(b"(node:12) Warning: slow\n" + jsonl(*SAMPLE))
    assert kinds(found) == ["command", "command_result", "assistant"]
    assert "not a JSON record" in reasons(found)


def test_progress_and_deltas_are_dropped_and_unknown_records_named():
    """What they bring stands in whole messages as well."""
    found = run(
        record("stream_event", event={"type": "content_block_delta", "delta": {"text": "Do"}}),
        record("system", subtype="thinking_tokens", estimated_tokens=9),
        record("system", subtype="task_started", description="x"),
        record("system", subtype="hologram"),
        record("hologram"),
        record("assistant", message=7),
        says("Done."),
        ending(),
    )
    assert kinds(found) == ["assistant"]
    assert [s.reason for s in found.skipped] == [
        "unknown record type 'system/hologram'", "unknown record type 'hologram'", "assistant record of an unknown shape",
    ]  # fmt: skip


def test_failing_hooks_and_compactions_are_told():
    """A hook that worked is not."""
    hook = {"hook_name": "PostToolUse:Edit", "hook_event": "PostToolUse", "stderr": "lint failed", "outcome": "error"}
    found = run(
        record("system", subtype="hook_response", **hook, exit_code=2),
        record("system", subtype="hook_response", hook_name="x", exit_code=0, outcome="success"),
        record("system", subtype="compact_boundary", compact_metadata={"trigger": "auto", "pre_tokens": 900}),
        says("Done."),
    )
    assert [(e.kind, e.tool, e.exit_code) for e in found.events] == [
        ("system", "hook", 2),
        ("compaction", "boundary", None),
        ("assistant", None, None),
    ]


def test_output_without_a_message_is_refused():
    """Only the beginning was written."""
    with pytest.raises(TranscriptError, match="without any message"):
        run()


def test_secrets_are_masked_everywhere():
    """In commands, outputs, errors and the result."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    found = run(bash(f"echo {secret}"), result_of("t1", secret), ending(secret, "error_during_execution", errors=[secret]))
    assert "a1B2c3D4" not in repr(found)


def test_damage_and_odd_values_end_no_batch():
    """Every file is read as far as it can be, or refused in words."""
    denied = ending(permission_denials=[{"tool_use_id": "t1"}], errors=["x"])
    survives_damage(jsonl(*SAMPLE))
    survives_damage(json.dumps(SAMPLE, indent=1).encode())
    survives_odd_values([*SAMPLE[:3], denied], as_lines=True)
