"""mini-swe-agent trajectories of both versions."""

import json

import pytest

from osmia_memory.errors import TranscriptError
from tests.transcripts.builders import PATCH, kinds, mini, of_kind, read_many, read_one, reasons, saw, thought

LONG = (
    "<returncode>0</returncode>\n<warning>\nThe output of your last command was too long.\n</warning><output_head>\nfirst\n</output_head>\n"
    "<elided_chars>\n27751 characters elided\n</elided_chars>\n<output_tail>\nlast\n</output_tail>"
)
TIMEOUT = (
    "The last command <command>make slow</command> timed out and has been killed.\nThe output of the command was:\n <output>\nstep 1\n</output>\n"
    "Please try another command and make sure to avoid those requiring interactive input."
)
FORMAT = "Please always provide EXACTLY ONE action in triple backticks, found 2 actions."


def signals(transcript, name: str) -> list[str]:
    """Values of one signal."""
    return [s.value for s in transcript.run.signals if s.name == name]


# --- the run ----------------------------------------------------------------------------------------------------------


def test_a_trajectory_is_a_run_with_its_surroundings():
    """Repository from the instance id, model, cost, tokens, times and sandbox from the document."""
    run = read_one(mini(thought("look", "ls", 1772359200), saw("a"), thought("fix", "sed -i s/a/b/ cart.py", 1772359260), saw(""))).run
    assert (run.engine, run.repo, run.model, run.cwd) == ("mini-swe-agent", "acme/shop", "acme/model-3", "/testbed")
    assert (run.cost_usd, run.tokens_in, run.tokens_out) == (0.25, 200, 20)
    assert (run.environment.os, run.environment.sandbox) == ("linux", "docker")
    assert (run.duration_s, run.times_assumed) == (60.0, False)
    assert run.language == "python"


def test_the_task_is_told_apart_from_the_benchmarks_instructions():
    """The same instructions in 500 runs are no knowledge of any repository."""
    transcript = read_one(mini(thought("look", "ls"), saw("a")))
    assert [(e.kind, e.record) for e in transcript.events[:3]] == [("system", 0), ("system", 1), ("user", 1)]
    assert transcript.run.description == "Cart total ignores the discount\nSteps: add two items."
    assert transcript.run.title == "Cart total ignores the discount"
    assert "exactly ONE" in transcript.events[1].text


@pytest.mark.parametrize(
    ("content", "template"),
    [
        ("Please solve this issue: Cart is wrong\n\nYou can execute bash commands and edit files.", ""),
        ("# Mission\nDo this: Cart is wrong\n\nRules:\n1. One command.", "# Mission\nDo this: {{task}}\n\nRules:\n1. One command."),
        ("Cart is wrong", ""),
    ],
)
def test_a_task_in_another_template_is_found_too(content: str, template: str):
    """By the configured template, or by the default one; otherwise the whole text is the task."""
    document = json.loads(mini(thought("look", "ls"), saw("a")))
    document["messages"][1]["content"] = content
    document["info"]["config"]["agent"] = {"instance_template": template}
    assert read_one(json.dumps(document).encode()).run.description == "Cart is wrong"


def test_two_runs_of_one_instance_are_two_runs_and_a_re_read_one_is_the_same():
    """Told apart by their start; the same file again is the same run."""
    first = mini(thought("look", "ls", 1772359200), saw("a"))
    second = mini(thought("look", "ls", 1772445600), saw("a"))
    grown = mini(thought("look", "ls", 1772359200), saw("a"), thought("more", "ls", 1772359300), saw("b"))
    runs = [read_one(data).run for data in (first, second, grown, first)]
    assert runs[0].run_id == runs[2].run_id == runs[3].run_id != runs[1].run_id
    assert runs[0].version == runs[3].version != runs[2].version


def test_a_run_without_instance_id_is_known_by_its_file():
    """The name of the file stands in."""
    data = mini(thought("look", "ls"), saw("a"), instance=None)
    assert read_one(data, "out/acme__shop-17.traj.json").run.repo == "acme/shop"
    assert read_one(data, "out/last_run.traj.json").run.repo == "local/testbed"


def test_times_are_carried_on_and_assumed_only_if_there_are_none():
    """A message without a time has that of the one before."""
    events = read_one(mini(thought("a", "ls", 1772359200), saw("a"), thought("b", "ls"), saw("b"))).events
    assert len({e.ts for e in events}) == 1
    bare = read_one(mini(thought("a", "ls"), saw("a")))
    assert bare.run.times_assumed
    assert {e.ts for e in bare.events} == {None}
    assert bare.run.started_at is not None


# --- version 1 --------------------------------------------------------------------------------------------------------


def test_a_reply_is_a_thought_and_a_command_of_one_record():
    """And its observation is paired, out of its template."""
    events = read_one(mini(thought("I look around.", "ls -la"), saw("cart.py", 0), thought("Test.", "pytest"), saw("1 failed", 1))).events[
        3:7
    ]
    assert [(e.record, e.kind, e.text) for e in events[:3]] == [
        (2, "reasoning", "I look around."), (2, "command", "ls -la"), (3, "command_result", "cart.py"),
    ]  # fmt: skip
    result = read_one(mini(thought("Test.", "pytest"), saw("1 failed", 1))).events[5]
    assert (result.text, result.exit_code, result.is_error, result.answers) == ("1 failed", 1, True, 4)


def test_a_command_ends_where_the_agents_own_rule_ends_it():
    """At the first fence that begins a line: an indented one is part of the command."""
    line = "cat <<'EOF' > README.md\n    ```python\n    x = 1\n    ```\nEOF"
    (command, *_) = of_kind(read_one(mini(thought("write", line), saw(""))), "command")
    assert command.text == line


def test_cut_output_is_joined_and_marked():
    """Head and tail, and how much is missing."""
    (result,) = of_kind(read_one(mini(thought("a", "ls -R"), {"role": "user", "content": LONG})), "command_result")
    assert (result.text, result.args, result.exit_code) == ("first\n27751 characters elided\nlast", {"truncated": True}, 0)


def test_a_timeout_is_a_result_without_exit_code():
    """With what had been printed so far."""
    (result,) = of_kind(read_one(mini(thought("a", "make slow"), {"role": "user", "content": TIMEOUT})), "command_result")
    assert (result.text, result.exit_code, dict(result.args), result.answers) == ("step 1", None, {"timeout": True}, 4)


@pytest.mark.parametrize("reply", ["```bash\nls\n```\nand\n```bash\npwd\n```", "I am done."])
def test_a_rejected_reply_ran_nothing(reply: str):
    """No command or two: the reminder is an error of the format."""
    transcript = read_one(mini({"role": "assistant", "content": reply}, {"role": "user", "content": FORMAT}, thought("a", "ls"), saw("x")))
    assert kinds(transcript)[3:6] == ["assistant", "error", "reasoning"]
    assert transcript.events[4].tool == "format"
    assert len(of_kind(transcript, "command")) == 1


def test_the_submitted_patch_is_an_edit_of_the_last_record():
    """The last message repeats it, and is no message of a person."""
    transcript = read_one(mini(thought("done", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff --cached")))
    last = transcript.events[-1]
    assert (last.kind, last.tool, last.text, last.paths, last.record) == ("file_edit", "submission", PATCH, ("shop/cart.py",), 3)
    assert last.answers == len(transcript.events) - 2
    assert len(of_kind(transcript, "user")) == 1


def test_a_bare_list_of_messages_is_a_trajectory():
    """As the command line tool writes it."""
    messages = json.loads(mini(thought("a", "ls"), saw("x")))["messages"]
    transcript = read_one(json.dumps(messages, indent=1).encode(), "local.traj.json")
    assert (transcript.run.engine, transcript.run.session_id) == ("mini-swe-agent", "local")
    assert kinds(transcript)[-2:] == ["command_result", "file_edit"]


def test_a_cut_trajectory_is_read_as_far_as_it_goes():
    """And where it was cut is named."""
    data = mini(*[m for n in range(9) for m in (thought(f"step {n}", f"echo {n}", 1772359200 + n), saw(str(n)))])
    transcript = read_one(data[: data.index(b"echo 6")])
    assert of_kind(transcript, "command")[-1].text == "echo 5"
    assert "the document is cut off here" in reasons(transcript)


def test_a_document_without_messages_holds_no_run():
    """Recognised, but empty."""
    with pytest.raises(TranscriptError, match="without messages"):
        read_many(json.dumps({"trajectory_format": "mini-swe-agent-1", "info": {}, "messages": []}).encode())


def test_a_newer_format_is_read_as_far_as_it_is_known():
    """And it is said."""
    transcript = read_one(mini(thought("a", "ls"), saw("x"), {"role": "oracle", "content": "?"}, 7, form="mini-swe-agent-3"))
    assert len(of_kind(transcript, "command_result")) == 1
    assert "newer trajectory format 'mini-swe-agent-3'" in reasons(transcript)
    assert "unknown role 'oracle'" in reasons(transcript)
    assert "not a message" in reasons(transcript)


# --- version 2 --------------------------------------------------------------------------------------------------------


def tool_call(call_id: str, line: str) -> dict:
    """A call of the bash tool."""
    return {"id": call_id, "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": line})}}


def observed(call_id: str, content: str, **extra) -> dict:
    """What a call returned."""
    return {"role": "tool", "tool_call_id": call_id, "content": content, "extra": extra}


def test_tool_calls_are_commands_paired_by_id():
    """Several in one reply, each with its own result; times and codes stand in `extra`."""
    reply = {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [tool_call("c1", "make a"), tool_call("c2", "make b")],
        "extra": {"timestamp": 1772359200.5},
    }
    data = mini(
        reply,
        observed("c1", "A\n[exit code 0]", returncode=0, timestamp=1772359201.0, raw_output="A"),
        observed("c2", "B\n[exit code 2]", returncode=2, timestamp=1772359202.0),
        form="mini-swe-agent-1.1",
    )
    transcript = read_one(data)
    assert [(e.kind, e.text) for e in transcript.events[3:6]] == [("reasoning", "I look."), ("command", "make a"), ("command", "make b")]
    assert [(e.text, e.answers, e.exit_code) for e in of_kind(transcript, "command_result")] == [("A", 4, 0), ("B", 5, 2)]
    assert transcript.run.duration_s == 1.5
    assert not transcript.skipped


def test_a_reply_without_text_and_a_foreign_tool_are_read():
    """`content` is null there; what is not bash is a tool call."""
    foreign = {"id": "c1", "function": {"name": "search", "arguments": '{"q": "x"}'}}
    data = mini({"role": "assistant", "content": None, "tool_calls": [foreign]}, observed("c1", "found", returncode=0))
    call, result = read_one(data).events[3:5]
    assert (call.kind, call.tool, result.kind, result.answers) == ("tool_call", "search", "tool_result", 3)


def test_what_was_not_run_or_timed_out_has_no_exit_code():
    """The return code says -1, the exception says why."""
    reply = {"role": "assistant", "content": None, "tool_calls": [tool_call("c1", "make slow"), tool_call("c2", "make b")]}
    data = mini(
        reply,
        observed("c1", "Exception", returncode=-1, exception_info="An error occurred: Command 'make slow' timed out after 60 seconds"),
        observed("c2", "", returncode=-1, exception_info="action was not executed"),
    )
    slow, never = of_kind(read_one(data), "command_result")
    assert (slow.exit_code, dict(slow.args)) == (None, {"timeout": True})
    assert (never.exit_code, dict(never.args)) == (None, {"harness": "cascade"})


def test_a_format_error_and_the_exit_of_version_2_are_known():
    """By what `extra` says of them."""
    error = {"role": "user", "content": "Tool call error:\n<error>Unknown tool</error>", "extra": {"interrupt_type": "FormatError"}}
    document = json.loads(mini({"role": "assistant", "content": "hm"}, error))
    document["info"] = {"config": {}}
    document["messages"][-1] = {"role": "exit", "content": "", "extra": {"exit_status": "LimitsExceeded", "submission": ""}}
    document["trajectory_format"] = "mini-swe-agent-1.1"
    transcript = read_one(json.dumps(document).encode())
    assert transcript.events[-1].tool == "format"
    assert (signals(transcript, "exit_status"), signals(transcript, "limit")) == (["LimitsExceeded"], ["LimitsExceeded"])
    assert transcript.run.outcome == "failure"


def test_the_response_form_is_read_like_the_chat_form():
    """Replies as `output` items, results as `function_call_output`."""
    reply = {
        "object": "response",
        "created_at": 1772359200,
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'},
        ],
    }
    result = {"type": "function_call_output", "call_id": "c1", "output": "a\n[exit code 0]", "extra": {"returncode": 0}}
    transcript = read_one(mini(reply, result, form="mini-swe-agent-1.1"))
    assert [(e.kind, e.text) for e in transcript.events[3:6]] == [("reasoning", "I look."), ("command", "ls"), ("command_result", "a")]


def test_text_commands_of_version_2_have_their_own_fence():
    """`mswea_bash_command` instead of `bash`."""
    data = mini({"role": "assistant", "content": "Look.\n\n```mswea_bash_command\nls\n```"}, saw("a"), form="mini-swe-agent-1.1")
    assert [(e.kind, e.text) for e in read_one(data).events[3:6]] == [("reasoning", "Look."), ("command", "ls"), ("command_result", "a")]


# --- outcome ----------------------------------------------------------------------------------------------------------


def test_submitted_says_nothing_about_success():
    """It stands on failing runs too."""
    transcript = read_one(mini(thought("a", "ls"), saw("x")))
    assert (signals(transcript, "exit_status"), signals(transcript, "claim")) == (["Submitted"], ["submitted"])
    assert transcript.run.outcome == "unknown"


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("resolved", [True, False])
def test_the_test_report_beside_it_decides(nested: bool, resolved: bool):
    """In both its shapes."""
    verdict = {"resolved": resolved, "tests_status": {}}
    report = json.dumps({"acme__shop-17": verdict} if nested else verdict).encode()
    transcript = read_one(mini(thought("a", "ls"), saw("x")), "acme__shop-17/acme__shop-17.traj.json", {"report.json": report})
    assert transcript.run.outcome == ("success" if resolved else "failure")
    assert signals(transcript, "resolved") == [str(resolved).lower()]


def test_an_empty_patch_is_no_success():
    """Submitted without a change."""
    transcript = read_one(mini(thought("a", "ls"), saw("x"), submission=""))
    assert signals(transcript, "claim") == ["empty patch"]
    assert transcript.run.outcome == "failure"
