"""OpenHands: events of both versions, folders of event files, rows of evaluations."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Skip, Transcript
from osmia_memory.transcripts.read import ReadOptions, read_all
from tests.transcripts.builders import (
    PATCH,
    jsonl,
    kinds,
    of_kind,
    read_many,
    read_one,
    reasons,
    signals,
)
from tests.transcripts.damage import survives_damage, survives_odd_values

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
DONE = "[The command completed with exit code {}.]"


def stamp(number: int) -> str:
    """Local time without a zone, one second apart."""
    return f"2026-03-01T10:00:{number:02d}.500000"


# --- version 0 --------------------------------------------------------------------------------------------------------


def event(number: int, source: str = "agent", **fields: Any) -> dict[str, Any]:
    """A record of version 0."""
    return {"id": number, "timestamp": stamp(number), "source": source, "message": "", **fields}


def user(text: str, number: int = 0) -> dict[str, Any]:
    """A message of the user."""
    return event(number, "user", action="message", args={"content": text})


def run(number: int, line: str, thought: str = "", **fields: Any) -> dict[str, Any]:
    """A command."""
    return event(number, action="run", args={"command": line, "thought": thought, "is_input": False}, **fields)


def ran(number: int, cause: int, output: str, code: int, suffix: str | None = None, **metadata: Any) -> dict[str, Any]:
    """A command's output."""
    told = {"exit_code": code, "prefix": "", "suffix": DONE.format(code) if suffix is None else suffix, **metadata}
    return event(number, observation="run", cause=cause, content=output, extras={"command": "x", "metadata": told})


def finish(number: int, text: str = "All done.", **args: Any) -> dict[str, Any]:
    """The agent's last action."""
    return event(number, action="finish", args={"final_thought": text, "outputs": {}, **args})


def state(number: int, name: str, **extras: Any) -> dict[str, Any]:
    """The agent's state changed."""
    return event(number, "environment", observation="agent_state_changed", content="", extras={"agent_state": name, **extras})


def reply(response_id: str, tool: str = "c1", **arguments: Any) -> dict[str, Any]:
    """The model's response as it stands at each call and result."""
    call = {"id": tool, "type": "function", "function": {"name": "edit", "arguments": json.dumps(arguments)}}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    told = {"id": response_id, "model": "acme/model-3", "usage": usage, "choices": [{"message": {"content": "x", "tool_calls": [call]}}]}
    return {"tool_call_id": tool, "model_response": told}


def v0(*events: Any) -> Transcript:
    """The transcript of an exported list."""
    return read_one(json.dumps([user("Fix the cart"), *events]).encode(), "trajectory.json")


SAMPLE = [user("Fix the cart"), run(1, "make test", "Test."), ran(2, 1, "1 failed", 2), finish(3), state(4, "finished")]


def test_a_list_of_events_is_a_run():
    """With thought, command, paired result and the agent's last words; ids that skip do not matter."""
    found = v0(run(5, "make test", "Test.", tool_call_metadata=reply("r1")), ran(9, 5, "1 failed", 2, working_dir="/srv/shop"), finish(12))
    assert [(e.kind, e.text, e.record) for e in found.events] == [
        ("user", "Fix the cart", 0), ("reasoning", "Test.", 1), ("command", "make test", 1), ("command_result", "1 failed", 2), ("assistant", "All done.", 3),
    ]  # fmt: skip
    result = found.events[3]
    assert (result.exit_code, result.is_error, result.answers, result.duration_s) == (2, True, 2, 4.0)
    assert (found.run.engine, found.run.cwd, found.run.model, found.run.duration_s) == ("openhands", "/srv/shop", "acme/model-3", 12.0)
    assert (signals(found, "exit_status"), signals(found, "claim"), found.run.outcome) == (["finished"], ["done"], "unknown")


def test_lines_are_read_as_the_list_is():
    """And are known by their lines."""
    assert kinds(read_one(jsonl(*SAMPLE))) == ["user", "reasoning", "command", "command_result", "assistant"]


def test_each_response_is_counted_once():
    """It stands at its calls and at their results."""
    meta = reply("r1")
    found = v0(
        run(1, "ls", tool_call_metadata=meta),
        {**ran(2, 1, "", 0), "tool_call_metadata": meta},
        run(3, "pwd", tool_call_metadata=reply("r2")),
    )
    assert (found.run.tokens_in, found.run.tokens_out) == (200, 20)


def test_totals_are_better_than_responses():
    """Messages without calls carry no response; a cost of 0 is none."""
    totals = {"accumulated_cost": 0.5, "accumulated_token_usage": {"prompt_tokens": 900, "completion_tokens": 70}}
    found = v0(run(1, "ls", tool_call_metadata=reply("r1")), event(2, action="message", args={"content": "Hm."}, llm_metrics=totals))
    assert (found.run.tokens_in, found.run.tokens_out, found.run.cost_usd) == (900, 70, 0.5)
    assert v0(event(2, action="message", args={"content": "Hm."}, llm_metrics={"accumulated_cost": 0.0})).run.cost_usd is None


def test_a_command_that_runs_on_has_no_exit_code_until_it_is_asked_for():
    """What the empty input and typed input bring belongs to it."""
    found = v0(
        run(1, "make slow"),
        ran(2, 1, "step 1", -1, "[The command has no new output after 30 seconds.]"),
        run(3, ""),
        ran(4, 3, "step 2", -1, ""),
        event(5, action="run", args={"command": "y", "is_input": "true"}),
        ran(6, 5, "step 3", 0),
        run(7, "ls"),
        ran(8, 7, "cart.py", 0),
    )
    results = of_kind(found, "command_result")
    assert [(e.text, e.exit_code, e.answers) for e in results] == [
        ("step 1", None, 1),
        ("step 2", None, 1),
        ("step 3", 0, 1),
        ("cart.py", 0, 7),
    ]
    assert [e.tool for e in of_kind(found, "tool_call")] == ["bash.input", "bash.input"]
    assert not any(e.args for e in results)


def test_a_timeout_is_told_by_the_shells_note():
    """Not by words in the output."""
    found = v0(
        run(1, "make"),
        ran(2, 1, "a", -1, "[The command timed out after 120 seconds.]"),
        run(3, "ls"),
        ran(4, 3, "The command timed out after all", 0),
    )
    assert [dict(e.args) for e in of_kind(found, "command_result")] == [{"timeout": True}, {}]


def test_a_command_that_was_not_run_is_a_refusal():
    """It says nothing of the command."""
    text = "ERROR: Cannot execute multiple commands at once.\nPlease run each command separately"
    (result,) = of_kind(v0(run(1, "ls\npwd"), ran(2, 1, text, -1, "")), "command_result")
    assert (result.args, result.exit_code, result.is_error) == ({"harness": "refused"}, None, True)


def test_long_texts_cost_no_more_than_their_length():
    """A page of blank lines in a task, one endless word in an output."""
    task = "Please fix.\n# Problem Statement\nISSUE:\nx" + "\n" * 50_000 + "<issue>" * 50
    found = read_one(jsonl(user(task), run(2, "cat"), ran(3, 2, "a" * 1_000_000, 0)))
    assert len(found.events[-1].text) == 1_000_000


def test_a_result_whose_call_is_missing_brings_its_command():
    """Events may be lost."""
    observed = ran(2, 1, "ok", 0)
    observed["extras"]["command"] = "make test"
    assert [(e.kind, e.text) for e in v0(observed).events[1:]] == [("command", "make test"), ("command_result", "ok")]


def test_edits_have_what_the_model_wrote():
    """The action of some versions has only the path; the result knows whether the file is new."""
    call = event(
        1,
        action="edit",
        args={"path": "/w/a.py", "content": "", "thought": ""},
        tool_call_metadata=reply("r", command="str_replace", path="/w/a.py", old_str="a", new_str="b"),
    )
    made = event(3, action="write", args={"path": "/w/b.py", "content": "x"})
    found = v0(
        call,
        event(2, observation="edit", cause=1, content="-a\n+b", extras={"prev_exist": True}),
        made,
        event(4, observation="write", cause=3, content="", extras={"prev_exist": False}),
    )
    assert [(e.text, e.paths, dict(e.args)) for e in of_kind(found, "file_edit")] == [
        ("b", ("/w/a.py",), {"old_string": "a"}), ("x", ("/w/b.py",), {"created": True}),
    ]  # fmt: skip
    assert [e.answers for e in of_kind(found, "tool_result")] == [1, 3]


def test_a_failed_edit_is_marked():
    """Its error names it as the cause."""
    found = v0(
        event(1, action="edit", args={"path": "a.py", "new_str": "b"}),
        event(2, observation="error", cause=1, content="ERROR: no match", extras={}),
    )
    edit, result = found.events[1:]
    assert (edit.is_error, result.kind, result.is_error, result.answers) == (True, "tool_result", True, 1)


def test_file_functions_of_older_notebooks_are_reads_and_edits():
    """And other code is a call; a `-` failure is in the text."""
    cells = (
        "open_file('/w/a.py')",
        "edit_file_by_replace(\n'/w/a.py', to_replace='a', new_content='b')",
        "create_file(filename='/w/n.py')",
        "x = 1",
    )
    found = v0(*(event(n, action="run_ipython", args={"code": c}) for n, c in enumerate(cells, 1)))
    assert [(e.kind, e.paths, dict(e.args)) for e in found.events[1:]] == [
        ("file_read", ("/w/a.py",), {}), ("file_edit", ("/w/a.py",), {}), ("file_edit", ("/w/n.py",), {"created": True}), ("tool_call", (), {}),
    ]  # fmt: skip
    failed = v0(
        event(1, action="run_ipython", args={"code": cells[1]}),
        event(2, observation="run_ipython", cause=1, content="[No exact match found in /w/a.py"),
    )
    assert [e.is_error for e in failed.events[1:]] == [True, True]


def test_what_the_harness_adds_is_not_the_users():
    """System prompt, recalled instructions, automatic answers."""
    found = v0(
        event(1, action="system", args={"content": "You are an agent."}),
        event(2, "user", action="recall", args={"query": "Fix"}),
        event(3, "environment", observation="recall", content="Added", extras={"repo_name": "acme/shop", "repo_instructions": "Run make."}),
        event(4, action="message", args={"content": "What now?"}),
        user("Please continue working on the task on whatever approach you think is suitable.", 5),
        user("Also the tax", 6),
    )
    assert [(e.kind, e.text[:9]) for e in found.events] == [
        ("user", "Fix the c"), ("system", "You are a"), ("system", "Run make."), ("assistant", "What now?"), ("system", "Please co"), ("user", "Also the "),
    ]  # fmt: skip
    assert found.run.repo == "acme/shop"


@pytest.mark.parametrize(
    ("last", "status", "outcome"),
    [
        (state(9, "finished"), ["finished"], "unknown"),
        (state(9, "error", reason="AgentStuckInLoopError"), ["error"], "failure"),
        (state(9, "rejected"), ["rejected"], "failure"),
        (state(9, "stopped"), ["interrupted"], "unknown"),
        (state(9, "awaiting_user_input"), [], "unknown"),
        (event(9, action="reject", args={"outputs": {"reason": "Too vague"}}), ["rejected"], "failure"),
        (finish(9, task_completed="false"), ["finished"], "failure"),
    ],
)
def test_the_last_state_is_how_the_run_ended(last: dict[str, Any], status: list[str], outcome: str):
    """A state that was left does not count."""
    found = v0(state(7, "rate_limited"), state(8, "running"), last)
    assert (signals(found, "exit_status"), found.run.outcome) == (status, outcome)


def test_errors_without_a_cause_are_the_harness_or_the_providers():
    """And loops are told."""
    found = v0(
        event(1, "environment", observation="error", content="litellm.RateLimitError: slow down", extras={"error_id": "STATUS$ERROR_LLM"}),
        event(2, "environment", observation="error", content="Agent is lost", extras={}),
        event(3, "environment", observation="loop_detection", content="Four times the same"),
    )
    assert [e.tool for e in of_kind(found, "error")] == ["provider", "harness", "harness"]


def test_a_rejected_action_is_a_refusal():
    """Of the user."""
    found = v0(run(1, "rm -r x"), event(2, "user", observation="user_rejected", cause=1, content="Action has been rejected"))
    assert found.events[-1].args == {"harness": "refused"}


def test_a_mount_names_no_repository():
    """Every run has its checkout in the same folder."""
    found = v0(run(1, "ls"), ran(2, 1, "", 0, working_dir="/workspace"))
    assert (found.run.repo, found.run.cwd) == (None, None)
    assert v0(run(1, "ls"), ran(2, 1, "", 0, working_dir="/workspace/shop")).run.repo == "local/shop"


def test_unknown_events_are_named_and_silent_ones_are_not():
    """And events of an unknown shape."""
    found = v0(
        event(1, action="hologram", args={}),
        event(2, observation="null", cause=1, content=""),
        event(3, action="run", args={}),
        event(4, observation="hologram"),
        "x",
        {"id": 5},
    )
    assert [s.reason for s in found.skipped] == [
        "unknown event 'action hologram'", "event of an unknown shape", "unknown event 'observation hologram'", "event of an unknown shape", "no event",
    ]  # fmt: skip


# --- version 1 --------------------------------------------------------------------------------------------------------


def new(kind: str, number: int, source: str = "agent", **fields: Any) -> dict[str, Any]:
    """A record of version 1."""
    return {"kind": kind, "id": f"e{number}", "timestamp": stamp(number), "source": source, **fields}


def typed(text: str, number: int = 0, **fields: Any) -> dict[str, Any]:
    """A message of the user."""
    return new("MessageEvent", number, "user", llm_message={"role": "user", "content": [{"type": "text", "text": text}]}, **fields)


def acts(number: int, tool: str, thought: str = "", **action: Any) -> dict[str, Any]:
    """An action."""
    told = [{"type": "text", "text": thought}] if thought else []
    return new("ActionEvent", number, thought=told, action={"kind": "X", **action}, tool_name=tool, tool_call_id=f"c{number}")


def sees(number: int, action: int, tool: str, text: str, **observation: Any) -> dict[str, Any]:
    """What an action led to."""
    told = {"kind": "X", "content": [{"type": "text", "text": text}], "is_error": False, **observation}
    return new(
        "ObservationEvent", number, "environment", observation=told, action_id=f"e{action}", tool_name=tool, tool_call_id=f"c{action}"
    )


def changed(number: int, key: str, value: Any) -> dict[str, Any]:
    """The conversation's state changed."""
    return new("ConversationStateUpdateEvent", number, "environment", key=key, value=value)


def v1(*events: Any) -> Transcript:
    """The transcript of lines."""
    return read_one(jsonl(typed("Fix the cart"), *events), "events.jsonl")


SAMPLE_1 = [
    typed("Fix the cart"), acts(1, "terminal", "Test.", command="make test"), sees(2, 1, "terminal", "1 failed", exit_code=2, metadata={"exit_code": 2}),
    acts(3, "file_editor", command="str_replace", path="a.py", old_str="a", new_str="b"), sees(4, 3, "file_editor", "Edited"), acts(5, "finish", message="All done."),
]  # fmt: skip


def test_lines_of_the_sdk_are_a_run():
    """Commands by exit code, edits by their arguments, the end by its message."""
    found = read_one(jsonl(*SAMPLE_1), "events.jsonl")
    assert [(e.kind, e.text) for e in found.events] == [
        ("user", "Fix the cart"), ("reasoning", "Test."), ("command", "make test"), ("command_result", "1 failed"),
        ("file_edit", "b"), ("tool_result", "Edited"), ("assistant", "All done."),
    ]  # fmt: skip
    assert (found.events[3].exit_code, found.events[3].answers, found.events[3].duration_s) == (2, 2, 1.0)
    assert dict(found.events[4].args) == {"old_string": "a"}
    assert (signals(found, "claim"), found.run.outcome) == (["done"], "unknown")


def test_a_thought_told_twice_is_read_once():
    """As reasoning and between tags."""
    action = {**acts(1, "terminal", "<think>Look.</think>\n\nNow.", command="ls"), "reasoning_content": "Look."}
    assert [e.text for e in of_kind(v1(action), "reasoning")] == ["Look.", "Now."]


def test_the_exit_code_may_stand_in_the_metadata():
    """-1 there is none; folder and interpreter are told with it."""
    found = v1(
        acts(1, "execute_bash", command="ls"),
        sees(
            2,
            1,
            "execute_bash",
            "a",
            exit_code=None,
            metadata={"exit_code": 0, "working_dir": "/srv/shop", "py_interpreter_path": "/usr/bin/python3"},
        ),
        acts(3, "execute_bash", command="make"),
        sees(4, 3, "execute_bash", "", timeout=True, metadata={"exit_code": -1}),
    )
    assert [(e.exit_code, dict(e.args)) for e in of_kind(found, "command_result")] == [(0, {}), (None, {"timeout": True})]
    assert (found.run.cwd, found.run.environment.interpreter) == ("/srv/shop", "/usr/bin/python3")


def test_an_observation_whose_action_is_missing_brings_its_command():
    """Unless it was not run, which is a refusal as well."""
    found = v1(
        sees(2, 1, "terminal", "Cannot execute multiple commands at once.", is_error=True, command="ls\npwd", metadata={"exit_code": -1})
    )
    assert [(e.kind, dict(e.args)) for e in found.events[1:]] == [("command", {}), ("command_result", {"harness": "refused"})]


def test_system_prompt_and_added_context_are_not_the_users():
    """Skills and rules are appended by the harness."""
    found = read_one(jsonl(
        new("SystemPromptEvent", 1, system_prompt={"text": "You are an agent."}), typed("Fix it", 2, extended_content=[{"text": "Skill: carts"}]),
        new("MessageEvent", 3, llm_message={"role": "assistant", "content": [{"text": "Which?"}, {"type": "image"}], "reasoning_content": "Hm."}),
    ))  # fmt: skip
    assert [(e.kind, e.text) for e in found.events] == [
        ("system", "You are an agent."), ("user", "Fix it"), ("system", "Skill: carts"), ("reasoning", "Hm."), ("assistant", "Which?\n[image]"),
    ]  # fmt: skip


def test_errors_of_a_tool_and_of_the_conversation_differ():
    """The one is a result, the other the end."""
    found = v1(
        acts(1, "file_editor", command="create", path="a.py", file_text="x"),
        new("AgentErrorEvent", 2, tool_name="file_editor", tool_call_id="c1", error="path must be absolute"),
        new("ConversationErrorEvent", 3, "environment", code="LLMBadRequestError", detail="no such model"),
        changed(4, "execution_status", "error"),
    )
    edit, result, error = found.events[1:]
    assert (edit.is_error, result.is_error, result.answers) == (True, True, 1)
    assert (error.tool, error.text, found.run.outcome) == ("provider", "LLMBadRequestError: no such model", "failure")


@pytest.mark.parametrize(
    ("last", "name", "value", "outcome"),
    [
        (changed(9, "execution_status", "finished"), "exit_status", ["finished"], "unknown"),
        (changed(9, "execution_status", "stuck"), "exit_status", ["stuck"], "failure"),
        (changed(9, "execution_status", "idle"), "exit_status", [], "unknown"),
        (new("InterruptEvent", 9, "user"), "exit_status", ["interrupted"], "unknown"),
        (new("PauseEvent", 9, "user"), "exit_status", ["interrupted"], "unknown"),
        (new("ConversationErrorEvent", 9, code="MaxIterationsReached", detail="500"), "limit", ["MaxIterationsReached"], "failure"),
    ],
)
def test_the_last_status_is_how_the_conversation_ended(last: dict[str, Any], name: str, value: list[str], outcome: str):
    """A pause and an interruption say nothing of the work."""
    found = v1(changed(8, "execution_status", "running"), last)
    assert (signals(found, name), found.run.outcome) == (value, outcome)


def test_totals_are_summed_over_the_agents_models_and_not_over_time():
    """The last of the running totals counts; a cost of 0 is none."""

    def stats(cost: float, tokens: int) -> dict[str, Any]:
        used = {"model": "acme/model-3", "prompt_tokens": tokens, "completion_tokens": 7}
        helper = {"accumulated_cost": 0.25, "accumulated_token_usage": {**used, "model": "acme/small", "completion_tokens": 1}}
        return {"usage_to_metrics": {"agent": {"accumulated_cost": cost, "accumulated_token_usage": used}, "condenser": helper}}

    found = v1(changed(1, "stats", stats(0.5, 100)), changed(2, "stats", stats(1.5, 300)))
    assert (found.run.cost_usd, found.run.tokens_in, found.run.tokens_out, found.run.model) == (1.75, 600, 8, "acme/model-3")
    assert v1(changed(1, "stats", {"usage_to_metrics": {"agent": {"accumulated_cost": 0.0}}})).run.cost_usd is None


def test_refusals_are_told_with_their_reason():
    """A person's reason is their word, a hook's is not."""
    refused = [
        new(
            "UserRejectObservation",
            n,
            tool_name="terminal",
            tool_call_id="c1",
            action_id="e1",
            rejection_reason="Never push",
            rejection_source=s,
        )
        for n, s in ((2, "user"), (3, "hook"))
    ]
    found = v1(acts(1, "terminal", command="git push"), *refused)
    assert [(e.kind, e.args.get("harness")) for e in found.events[2:]] == [
        ("command_result", "refused"),
        ("user", None),
        ("command_result", "refused"),
    ]


def test_condensations_are_compactions_told_once():
    """The summary stands in two events."""
    found = v1(
        new("Condensation", 1, summary="Did a."), new("CondensationSummaryEvent", 2, summary="Did a."), new("CondensationRequest", 3)
    )
    assert kinds(found) == ["user", "compaction"]


def test_calls_of_an_agent_behind_the_editor_protocol_are_told_once():
    """They are repeated as they go on."""
    call = {"tool_call_id": "t1", "title": "make test", "tool_kind": "execute", "raw_input": {"command": "make test"}}
    edit = {
        "tool_call_id": "t2",
        "title": "Edit",
        "tool_kind": "edit",
        "raw_input": {"file_path": "a.py", "new_string": "b"},
        "status": "failed",
    }
    found = v1(
        new("ACPToolCallEvent", 1, **call, status="in_progress"), new("ACPToolCallEvent", 2, **call, status="completed", raw_output="ok"),
        new("ACPToolCallEvent", 3, **call, status="completed", raw_output="ok"), new("ACPToolCallEvent", 4, **edit, content=[{"text": "no match"}]),
    )  # fmt: skip
    assert [(e.kind, e.text, e.is_error) for e in found.events[1:]] == [
        ("command", "make test", False), ("command_result", "ok", False), ("file_edit", "b", True), ("tool_result", "no match", True),
    ]  # fmt: skip


def test_repeated_unknown_and_silent_kinds():
    """A repeated event is named, an unknown kind too; deltas are dropped."""
    again = acts(1, "terminal", command="ls")
    found = v1(
        again,
        again,
        new("HologramEvent", 2),
        new("StreamingDeltaEvent", 3),
        new("ActionEvent", 4, tool_name="x", action=None, tool_call={"arguments": '{"a": 1}'}),
    )
    assert [e.text for e in found.events[1:]] == ["ls", '{"a":1}']
    assert [s.reason for s in found.skipped] == ["record repeats an earlier one", "unknown event 'HologramEvent'"]


# --- folders ----------------------------------------------------------------------------------------------------------

UUID = "0b0b0b0b-0000-4000-8000-00000000000{}"


def write_v1(folder: Path) -> Path:
    """A conversation as the SDK keeps it."""
    events = folder / "0123abcd" / "events"
    events.mkdir(parents=True)
    for n, item in enumerate(SAMPLE_1):
        (events / f"event-{n:05d}-{UUID.format(n)}.json").write_text(json.dumps(item))
    state = {
        "id": "c0ffee",
        "agent": {"llm": {"model": "acme/model-3"}},
        "workspace": {"working_dir": "/srv/shop"},
        "execution_status": "finished",
    }
    (events.parent / "base_state.json").write_text(json.dumps(state))
    return events


def all_of(*paths: Path) -> tuple[list[Transcript], list[Skip]]:
    """(transcripts, skips) of files and folders."""
    found = list(read_all([str(p) for p in paths], ReadOptions("t")))
    return [t for t in found if isinstance(t, Transcript)], [s for s in found if isinstance(s, Skip)]


def test_a_folder_of_events_is_one_run(tmp_path: Path):
    """Read with its first file, and with the state above it."""
    events = write_v1(tmp_path)
    (found,), skips = all_of(tmp_path)
    assert (kinds(found), skips) == (kinds(read_one(jsonl(*SAMPLE_1))), [])
    assert (found.run.session_id, found.run.model, found.run.cwd, signals(found, "exit_status")) == (
        "c0ffee",
        "acme/model-3",
        "/srv/shop",
        ["finished"],
    )
    assert [e.record for e in found.events] == [0, 1, 1, 2, 3, 4, 5]
    (by_name,), _ = all_of(sorted(events.iterdir())[0])
    assert by_name.run.run_id == found.run.run_id
    none, (skip,) = all_of(sorted(events.iterdir())[2])
    assert (none, "read with" in skip.reason or "read together" in skip.reason) == ([], True)


def test_an_archive_of_events_gives_what_the_folder_gives(tmp_path: Path):
    """But for the state above them, which lies in another folder of the archive."""
    write_v1(tmp_path / "a")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for path in sorted((tmp_path / "a").rglob("*.json")):
            data = path.read_bytes()
            member = tarfile.TarInfo(str(path.relative_to(tmp_path / "a")))
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    (found,), skips = all_of(tmp_path / "a.tar")
    assert (len(found.events), found.run.session_id, skips) == (7, "0123abcd", [])


def test_numbered_event_files_of_version_0_are_one_run(tmp_path: Path):
    """The pages of the cache beside them are copies; a broken file is named."""
    events = tmp_path / "sessions" / "s1" / "events"
    (events.parent / "event_cache").mkdir(parents=True)
    events.mkdir()
    for n, item in enumerate(SAMPLE):
        (events / f"{n * 5}.json").write_text(json.dumps(item))
    (events / "99.json").write_text("{")
    (events.parent / "event_cache" / "0-25.json").write_text(json.dumps(SAMPLE))
    (found,), skips = all_of(tmp_path)
    assert (kinds(found), found.run.session_id) == (["user", "reasoning", "command", "command_result", "assistant"], "s1")
    assert "invalid JSON in 99.json" in reasons(found)
    assert [s.where.rsplit("/", 1)[-1] for s in skips] == ["99.json"]
    _, (named,) = all_of(events / "5.json")
    assert named.reason == "part of a conversation, which is read with 0.json"


def test_numbered_files_that_are_whole_runs_are_read_each(tmp_path: Path):
    """A list is no event."""
    for n in (1, 2):
        (tmp_path / f"{n}.json").write_text(json.dumps([user(f"Task {n}"), finish(3)]))
    found, _ = all_of(tmp_path)
    assert [t.run.title for t in found] == ["Task 1", "Task 2"]


# --- evaluations ------------------------------------------------------------------------------------------------------

TASK = "<uploaded_files>\n/workspace/shop\n</uploaded_files>\n<issue_description>\nCart ignores the discount\n</issue_description>\nFollow these steps:\n1. Look."


def row(*history: Any, **fields: Any) -> dict[str, Any]:
    """A line of `output.jsonl`."""
    told = {
        "instance_id": "acme__shop-17",
        "instance": {"repo": "acme/shop", "base_commit": "abc123"},
        "metadata": {"llm_config": {"model": "acme/model-3"}},
        "metrics": {"accumulated_cost": 0.75, "accumulated_token_usage": {"prompt_tokens": 900, "completion_tokens": 70}},
        "test_result": {"git_patch": PATCH},
        "error": None,
    }
    return {**told, "history": [user(TASK), *(history or (run(1, "ls"), ran(2, 1, "cart.py", 0), finish(3)))], **fields}


def one_row(*history: Any, **fields: Any) -> Transcript:
    """The transcript of a row."""
    return read_one(jsonl(row(*history, **fields)), "output.jsonl")


def test_a_row_is_a_run_with_all_that_stands_in_it():
    """The task without its frame, and the patch at its end."""
    found = one_row()
    assert (found.run.repo, found.run.base_commit, found.run.model) == ("acme/shop", "abc123", "acme/model-3")
    assert (found.run.cost_usd, found.run.tokens_in, found.run.tokens_out) == (0.75, 900, 70)
    assert found.run.description == "Cart ignores the discount"
    assert kinds(found) == ["system", "user", "system", "command", "command_result", "assistant", "file_edit"]
    assert (found.events[-1].tool, found.events[-1].paths, found.events[-1].text) == ("submission", ("shop/cart.py",), PATCH)


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"test_result": {"git_patch": PATCH, "report": {"resolved": True}}}, "success"),
        ({"test_result": {"report": {"resolved": False}}}, "failure"),
        ({"report": {"resolved": True}}, "success"),
        ({"error": "RuntimeError: Agent reached maximum iteration. Current iteration: 100"}, "failure"),
        ({"error": "AgentStuckInLoopError: Agent got stuck in a loop"}, "failure"),
        ({"error": "", "test_result": {}}, "unknown"),
    ],
)
def test_tests_decide_then_the_error(fields: dict[str, Any], outcome: str):
    """An agent that finished is no success."""
    assert one_row(**fields).run.outcome == outcome


def test_reaching_the_limit_of_iterations_is_a_limit():
    """By the words of the row."""
    assert signals(one_row(error="RuntimeError: Agent reached maximum iteration."), "limit") == [
        "RuntimeError: Agent reached maximum iteration."
    ]


def test_an_unpriced_model_has_no_cost():
    """0.0 would be a cheap run in a statistic."""
    assert one_row(metrics={"accumulated_cost": 0.0}).run.cost_usd is None


def test_rows_of_one_instance_are_told_apart():
    """By attempt and beginning."""
    found = read_many(jsonl(row(attempt=1), row(attempt=2), row(instance_id="acme__shop-18")), "output.jsonl")
    assert [t.run.session_id.split("@")[0] + t.run.session_id[-2:] for t in found] == [
        "acme__shop-17#1",
        "acme__shop-17#2",
        "acme__shop-180Z",
    ]


def test_histories_of_pairs_and_flat_events_are_read():
    """Older rows have neither ids nor sources; results follow their calls."""
    flat = [
        {"action": "message", "content": "Fix the cart", "action_risk": None},
        {"action": "run", "command": "ls", "thought": "Look.", "action_risk": None},
        {"observation": "run", "command": "ls", "content": "cart.py\r\n\r\nroot@bcd395:/workspace # ", "exit_code": 0, "command_id": -1},
        {"action": "message", "content": "It is in cart.py", "action_risk": None},
        {"action": "finish", "thought": "Fixed.", "outputs": {}},
    ]
    pairs = [
        [flat[0], {"observation": "null", "content": ""}],
        [flat[1], flat[2]],
        [flat[3], {"observation": "null", "content": ""}],
        [flat[4]],
    ]
    for history in (flat, pairs):
        found = read_one(jsonl({**row(), "history": history}), "output.jsonl")
        assert [(e.kind, e.text) for e in found.events[:-1]] == [
            ("user", "Fix the cart"), ("reasoning", "Look."), ("command", "ls"), ("command_result", "cart.py\n"), ("assistant", "It is in cart.py"), ("assistant", "Fixed."),
        ]  # fmt: skip
        assert (found.events[3].exit_code, found.events[3].answers) == (0, 2)


def test_rows_of_the_new_benchmarks_hold_events_of_version_1():
    """With the same row around them."""
    found = read_one(jsonl({**row(), "history": SAMPLE_1}), "output.jsonl")
    assert kinds(found)[:3] == ["user", "reasoning", "command"]
    assert found.run.repo == "acme/shop"


def test_the_resolvers_rows_name_an_issue():
    """A model's opinion of the result is no test; the instruction stands in where no message does."""
    issue = {"owner": "acme", "repo": "shop", "number": 5, "title": "Discount"}
    told = {
        "issue": issue,
        "instruction": "Please fix.\n# Problem Statement\nCart ignores the discount\n\nIMPORTANT: You should ONLY",
        "success": True,
        "git_patch": PATCH,
        "metrics": {},
    }
    found = read_one(jsonl({**told, "history": [run(1, "ls"), ran(2, 1, "cart.py", 0)]}), "output.jsonl")
    assert (found.run.session_id.split("@")[0], found.run.repo, found.run.description) == (
        "acme/shop#5",
        "acme/shop",
        "Cart ignores the discount",
    )
    assert (signals(found, "claim"), found.run.outcome, found.events[-1].tool) == (["done"], "unknown", "submission")


def test_a_row_without_history_is_named_and_the_others_read():
    """An instance that never began."""
    broken = {**row(), "history": [], "instruction": None, "test_result": {}}
    (found,) = read_many(jsonl(broken, row(), "text"), "output.jsonl")
    assert reasons(found).startswith("a run without events")
    with pytest.raises(TranscriptError, match="without any message"):
        read_many(jsonl(broken), "output.jsonl")


# --- all --------------------------------------------------------------------------------------------------------------


def test_secrets_are_masked_everywhere():
    """In commands, outputs, edits, errors and patches of both versions."""
    old = [
        run(1, SECRET, SECRET),
        ran(2, 1, SECRET, 0),
        event(3, action="edit", args={"path": SECRET, "new_str": SECRET, "old_str": SECRET}),
        event(4, observation="error", content=SECRET),
    ]
    nested = [
        acts(1, "terminal", SECRET, command=SECRET),
        sees(2, 1, "terminal", SECRET),
        acts(3, "x", value=SECRET),
        new("ConversationErrorEvent", 4, code="X", detail=SECRET),
    ]
    found = [one_row(*old, error=SECRET, test_result={"git_patch": PATCH + f"+{SECRET}\n"}), v1(*nested)]
    assert "a1B2c3D4" not in repr(found)


def test_damage_and_odd_values_end_no_batch():
    """Every file is read as far as it can be, or refused in words."""
    survives_damage(jsonl(*SAMPLE))
    survives_damage(jsonl(*SAMPLE_1))
    survives_damage(jsonl(row()))
    survives_odd_values(
        [
            *SAMPLE,
            event(5, action="edit", args={"path": "a"}, tool_call_metadata=reply("r")),
            event(6, observation="recall", extras={"microagent_knowledge": [{}]}),
        ],
        as_lines=True,
    )
    survives_odd_values(
        [*SAMPLE_1, changed(9, "full_state", {"id": "x", "agent": {"llm": {}}, "workspace": {}, "stats": {"usage_to_metrics": {"a": {}}}})],
        as_lines=True,
    )
    survives_odd_values(row(), as_lines=False)
