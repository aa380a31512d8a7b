"""SWE-agent trajectories of 0.x and 1.x."""

import json
from typing import Any

import pytest

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Transcript
from tests.transcripts.builders import PATCH, kinds, of_kind, read_many, read_one, reasons, signals
from tests.transcripts.damage import survives_damage, survives_odd_values

PROMPT = (
    "We're currently solving the following issue within our repository. Here's the issue text:\nISSUE:\nCart total ignores the discount\n"
    "Add two items.\n\nINSTRUCTIONS:\nNow, you're going to solve this issue on your own.\n\n(Open file: n/a)\n(Current directory: /acme__shop)\nbash-$"
)
CONFIG = {
    "agent": {"model": {"name": "acme/model-3"}, "templates": {"instance_template": "ISSUE:\n{{problem_statement}}\n\nINSTRUCTIONS:\n"}},
    "env": {"deployment": {"type": "docker"}, "repo": {"github_url": "https://github.com/acme/shop", "base_commit": "0123456789abcdef"}},
    "problem_statement": {"id": "acme__shop-17"},
}


def step(action: str, observation: str = "", thought: str = "", file: str = "n/a", **fields: Any) -> dict[str, Any]:
    """A step of 0.x, whose state is text."""
    state = json.dumps({"open_file": file, "working_dir": "/acme__shop"}) + "\n"
    response = f"{thought}\n```\n{action}\n```"
    return {"action": action, "observation": observation, "response": response, "thought": thought, "state": state, **fields}


def traj(*steps: Any, history: Any = None, **fields: Any) -> dict[str, Any]:
    """A document with its prompt."""
    head = [
        {"role": "system", "content": "SETTING: You are a programmer.", "agent": "primary"},
        {"role": "user", "content": PROMPT, "agent": "primary"},
    ]
    stats = {"instance_cost": 0.5, "tokens_sent": 900, "tokens_received": 70, "api_calls": 3}
    info = {"exit_status": "submitted", "submission": PATCH, "model_stats": stats}
    return {"environment": "swe_main", "trajectory": list(steps), "history": head if history is None else history, "info": info, **fields}


def run(*steps: Any, name: str = "acme__shop-17.traj", **fields: Any) -> Transcript:
    """The transcript of a document."""
    return read_one(json.dumps(traj(*steps, **fields)).encode(), name)


def sample() -> bytes:
    """A small trajectory."""
    return json.dumps(
        traj(step("ls -a\n", "cart.py\n", "Look."), step("edit 1:1\nx\nend_of_edit", "File updated.", file="/acme__shop/cart.py"))
    ).encode()


# --- the run ----------------------------------------------------------------------------------------------------------


def test_a_trajectory_is_a_run_with_what_it_tells():
    """Cost and tokens; the repository in the folder's name; neither times nor a duration."""
    found = run(step("ls", "cart.py"))
    assert (found.run.engine, found.run.repo, found.run.cwd) == ("swe-agent", "acme/shop", "/acme__shop")
    assert (found.run.cost_usd, found.run.tokens_in, found.run.tokens_out) == (0.5, 900, 70)
    assert (found.run.times_assumed, found.run.duration_s, found.run.model) == (True, None, None)


def test_a_replay_or_a_model_without_a_price_has_no_cost():
    """0 would be a cheap run in a statistic."""
    found = run(step("ls"), info={"model_stats": {"instance_cost": 0, "tokens_sent": 0, "tokens_received": 0}})
    assert (found.run.cost_usd, found.run.tokens_in, found.run.tokens_out) == (None, None, None)


@pytest.mark.parametrize("config", [CONFIG, json.dumps(CONFIG)])
def test_what_is_replayed_tells_model_repository_and_commit(config: Any):
    """An object, or a string of JSON."""
    found = run(step("ls"), name="x.traj", replay_config=config)
    assert (found.run.model, found.run.repo, found.run.base_commit) == ("acme/model-3", "acme/shop", "0123456789abcdef")
    assert found.run.environment.sandbox == "docker"


def test_head_is_no_commit():
    """What it was then, nobody knows now."""
    config = {**CONFIG, "env": {"repo": {"github_url": "https://github.com/acme/shop", "base_commit": "HEAD"}}}
    assert run(step("ls"), replay_config=config).run.base_commit is None


def test_older_runs_have_their_model_in_the_name_of_their_folder():
    """As the first of its parts."""
    name = "runs/gpt9__swe-bench-dev__default__t-0.00__p-0.95__c-3.00__install-1/acme__shop-17.traj"
    assert run(step("ls"), name=name).run.model == "gpt9"
    assert run(step("ls"), name="runs/my__own/acme__shop-17.traj").run.model is None


@pytest.mark.parametrize(
    ("folder", "name", "repo"),
    [
        ("/testbed", "acme__shop-17.traj", "acme/shop"),
        ("/testbed", "batch__install-1__acme__shop-17.traj", "acme/shop"),
        ("/testbed", "last.traj", "local/testbed"),
        ("/acme__shop", "last.traj", "acme/shop"),
        ("/__home__kim__src__shop", "last.traj", "local/shop"),
    ],
)
def test_the_repository_is_in_the_folder_or_the_instance(folder: str, name: str, repo: str):
    """A local folder is written with its path, of which only the last part is its name."""
    assert run({**step("ls"), "state": {"working_dir": folder, "open_file": "n/a"}}, name=name).run.repo == repo


def test_the_task_is_told_apart_from_the_instructions():
    """And from the prompt of the shell."""
    found = run(step("ls"))
    assert kinds(found)[:4] == ["system", "system", "user", "system"]
    assert found.run.description == "Cart total ignores the discount\nAdd two items."
    assert "bash-$" not in found.events[3].text


def test_a_task_in_a_template_of_ones_own_is_found():
    """By the text around its place."""
    config = {"agent": {"templates": {"instance_template": "Solve this: {{problem_statement}}\nRules: one command."}}}
    history = [{"role": "user", "content": "Solve this: Cart is wrong\nRules: one command.", "agent": "main"}]
    assert run(step("ls"), history=history, replay_config=config).run.description == "Cart is wrong"


def test_an_example_shown_to_the_agent_is_no_part_of_the_run():
    """Its commands belong to another repository."""
    history = [
        {"role": "system", "content": "Rules.", "agent": "primary"},
        {"role": "user", "content": "Here is a demonstration: pip install other", "is_demo": True, "agent": "primary"},
        {"role": "user", "content": [{"type": "text", "text": PROMPT}], "agent": "primary"},
    ]
    found = run(step("ls"), history=history)
    assert "demonstration" not in "".join(e.text for e in found.events)
    assert found.run.title == "Cart total ignores the discount"
    assert "an example shown to the agent" in reasons(found)


def test_two_runs_of_one_instance_are_two_and_a_grown_one_is_the_same():
    """Told apart by their first step; the prompts that 1.x repeats in it do not count."""
    first, other = step("ls", execution_time=0.11), step("ls", execution_time=0.12)
    ids = [run(*steps).run.run_id for steps in ([first], [first, step("pwd")], [other], [{**first, "query": ["long"]}])]
    assert ids[0] == ids[1] == ids[3] != ids[2]


def test_a_report_beside_it_decides():
    """It knows the run by its instance."""
    siblings = {"report.json": b'{"acme__shop-17": {"resolved": false}}'}
    assert read_one(sample(), "acme__shop-17.traj", siblings).run.outcome == "failure"


@pytest.mark.parametrize(
    ("status", "limit", "outcome"),
    [
        ("submitted", [], "unknown"),
        ("submitted (exit_cost)", ["submitted (exit_cost)"], "failure"),
        ("exit_context", ["exit_context"], "failure"),
        ("exit_error", [], "failure"),
        ("exit_forfeit", [], "failure"),
        (None, [], "unknown"),
    ],
)
def test_the_status_is_weak(status: str | None, limit: list[str], outcome: str):
    """Most runs that fail their tests say `submitted`; a limit is one."""
    found = run(step("ls"), info={"exit_status": status, "submission": PATCH})
    assert (signals(found, "limit"), found.run.outcome) == (limit, outcome)
    assert signals(found, "exit_status") == ([status] if status else [])


def test_an_empty_submission_is_a_failure():
    """Nothing was changed."""
    found = run(step("submit"), info={"exit_status": "submitted", "submission": ""})
    assert (signals(found, "claim"), found.run.outcome) == (["empty patch"], "failure")


def test_attempts_are_counted():
    """An agent that retries keeps each."""
    assert run(step("ls"), attempts=[{}, {}]).run.attempts == 2


# --- steps ------------------------------------------------------------------------------------------------------------


def test_a_step_is_a_thought_a_command_and_its_result():
    """Without exit code, which the format does not have."""
    events = run(step("ls -a\n", "cart.py\r\nsetup.py\r\n", "I look around.\n", execution_time=0.25)).events[4:7]
    assert [(e.kind, e.text, e.record) for e in events] == [
        ("reasoning", "I look around.", 0), ("command", "ls -a", 0), ("command_result", "cart.py\nsetup.py", 0),
    ]  # fmt: skip
    assert (events[2].answers, events[2].exit_code, events[2].is_error, events[2].duration_s) == (5, None, False, 0.25)


def test_an_exit_code_is_read_where_the_shell_leaked_it():
    """Its mark is no output."""
    (result,) = of_kind(run(step("make", "boom///PROCESS-DONE:2:PROCESS-DONE///")), "command_result")
    assert (result.text, result.exit_code, result.is_error) == ("boom", 2, True)


@pytest.mark.parametrize(
    ("action", "kind", "paths", "text"),
    [
        ("open setup.py 10", "file_read", ("setup.py",), ""),
        ('open "src/cart.py"', "file_read", ("src/cart.py",), ""),
        ("scroll_down", "file_read", ("src/cart.py",), "scroll_down"),
        ("create new.py", "file_edit", ("new.py",), ""),
        ("edit 4:5\n    total -= 1\nend_of_edit", "file_edit", ("src/cart.py",), "    total -= 1"),
        ("edit\n    total -= 1\nend_of_edit", "file_edit", ("src/cart.py",), "    total -= 1"),
        ("edit 'a = 1' 'a = 2'", "file_edit", ("src/cart.py",), "a = 2"),
        ("insert 'import x' 3", "file_edit", ("src/cart.py",), "import x"),
        ("str_replace_editor view /acme__shop/a.py --view_range 1 9", "file_read", ("a.py",), ""),
        ("str_replace_editor create /acme__shop/a.py --file_text 'x = 1\ny = 2'", "file_edit", ("a.py",), "x = 1\ny = 2"),
        ("str_replace_editor str_replace /acme__shop/a.py --old_str 'x' --new_str 'y'", "file_edit", ("a.py",), "y"),
        ("find_file cart.py", "tool_call", (), "find_file cart.py"),
        ("pytest -k 'a b'", "command", (), "pytest -k 'a b'"),
        ("echo 'unclosed", "command", (), "echo 'unclosed"),
    ],
)
def test_the_agents_own_tools_are_no_shell_commands(action: str, kind: str, paths: tuple[str, ...], text: str):
    """They are reads, edits of the open file, and searches."""
    call = run(step(action, "ok", file="/acme__shop/src/cart.py")).events[4]
    assert (call.kind, call.paths, call.text) == (kind, paths, text)


def test_a_replaced_text_is_kept_with_its_edit():
    """In either form of the tool."""
    edits = of_kind(run(step("edit 'a' 'b'"), step("str_replace_editor str_replace /x --old_str 'a' --new_str 'b'")), "file_edit")[:2]
    assert [dict(e.args) for e in edits] == [{"old_string": "a"}, {"old_string": "a"}]


@pytest.mark.parametrize(
    "told",
    [
        "Your proposed edit has introduced new syntax error(s).",
        "No replacement was performed, old_str did not appear",
        "Your edit was not applied (file not modified):",
    ],
)
def test_an_edit_that_was_not_made_is_marked(told: str):
    """As its result is."""
    edit, result = run(step("edit 'a' 'b'", told)).events[4:6]
    assert (edit.is_error, result.is_error) == (True, True)
    assert not run(step("edit 'a' 'b'", "Text replaced. Please review")).events[4].is_error


@pytest.mark.parametrize(
    ("told", "args"),
    [
        ("Interactive operation 'vim' is not supported by this environment", {"harness": "refused"}),
        ("\nEXECUTION TIMED OUT", {"timeout": True}),
        ("The command 'make' was cancelled because it took more than 30 seconds.", {"timeout": True}),
        ("a\n<response clipped><NOTE>", {"truncated": True}),
        ("the command timed out in our test", {}),
    ],
)
def test_what_the_harness_says_of_a_command_is_told_apart(told: str, args: dict[str, Any]):
    """Blocked, cancelled or cut."""
    assert of_kind(run(step("make", told)), "command_result")[0].args == args


def test_the_end_by_the_harness_is_an_error():
    """A step without an action of the agent."""
    found = run(step("ls"), step("", "Exited (autosubmitted)", "Exit due to cost limit"), step("exit_format", ""))
    assert [(e.kind, e.text) for e in found.events[6:9]] == [
        ("assistant", "Exit due to cost limit"), ("error", "Exited (autosubmitted)"), ("error", "exit_format"),
    ]  # fmt: skip


def test_the_submission_is_the_last_edit_and_told_once():
    """The command that submits prints it as well; line ends of a terminal are no part of a path."""
    patch = PATCH.replace("\n", "\r\n")
    found = run(step("ls"), step("submit", "\r\n" + patch), info={"submission": "\r\n" + patch, "exit_status": "submitted"})
    assert [(e.kind, e.tool, e.paths) for e in found.events[-2:]] == [
        ("tool_call", "submit", ()),
        ("file_edit", "submission", ("shop/cart.py",)),
    ]
    assert found.events[-1].text == PATCH


def test_a_submission_that_is_no_patch_is_no_edit():
    """Such as a flag."""
    found = run(step("submit 'flag{x}'", "Wrong flag!"), info={"submission": "flag{x}", "exit_status": "submitted"})
    assert kinds(found)[-2:] == ["tool_call", "tool_result"]


# --- other files ------------------------------------------------------------------------------------------------------


def test_a_demonstration_has_only_a_history():
    """Its prompts of the shell tell folder and open file; no output is no text."""
    tail = "\n(Open file: {})\n(Current directory: /acme__shop)\nbash-$"
    history = [
        {"role": "user", "content": PROMPT, "agent": "main", "message_type": "observation"},
        {"role": "assistant", "content": "Open it.", "thought": "Open it.", "action": "open cart.py", "agent": "main"},
        {"role": "tool", "content": "1:x" + tail.format("/acme__shop/cart.py"), "agent": "main"},
        {"role": "assistant", "content": "Change it.", "action": "edit 'x' 'y'", "agent": "main"},
        {
            "role": "tool",
            "content": "Your command ran successfully and did not produce any output." + tail.format("/acme__shop/cart.py"),
            "agent": "main",
        },
        {"role": "assistant", "content": "Hand it in.", "action": "submit", "agent": "main"},
        {"role": "tool", "content": PATCH + tail.format("n/a"), "agent": "main"},
    ]
    found = read_one(json.dumps({"history": history}).encode(), "simple.traj")
    assert [(e.kind, e.text, e.paths) for e in found.events[3:]] == [
        ("reasoning", "Open it.", ()), ("file_read", "", ("cart.py",)), ("tool_result", "1:x", ()),
        ("reasoning", "Change it.", ()), ("file_edit", "y", ("cart.py",)), ("tool_result", "", ()),
        ("reasoning", "Hand it in.", ()), ("tool_call", "submit", ()), ("file_edit", PATCH, ("shop/cart.py",)),
    ]  # fmt: skip
    assert (found.run.repo, found.run.outcome) == ("acme/shop", "unknown")


def test_a_cut_document_is_read_up_to_the_cut():
    """And says so."""
    data = json.dumps(traj(step("ls", "cart.py"), step("pwd", "/acme__shop"))).encode()
    found = read_one(data[: data.index(b'"pwd"') + 3], "acme__shop-17.traj")
    assert of_kind(found, "command")[0].text == "ls"
    assert "the document is cut off here" in reasons(found)


def test_steps_of_an_unknown_shape_are_named():
    """And the others read."""
    found = run("x", {"action": "ls", "observation": 7, "state": 3}, step("pwd", "/"))
    assert [e.text for e in of_kind(found, "command")] == ["ls", "pwd"]
    assert reasons(found) == "not a step"


def test_a_trajectory_without_steps_is_refused():
    """In words."""
    with pytest.raises(TranscriptError, match="a SWE-agent trajectory without steps"):
        read_many(b'{"environment": "swe_main", "trajectory": [], "history": [], "info": {}}', "x.traj")


def test_secrets_are_masked_everywhere():
    """In actions, observations, edits and the submission."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    steps = (step(f"echo {secret}", secret, secret), step(f"edit '{secret}' '{secret}'", secret), step(f"create {secret}.py"))
    assert "a1B2c3D4" not in repr(run(*steps, info={"submission": PATCH + f"+{secret}\n"}))


def test_damage_and_odd_values_end_no_batch():
    """Every file is read as far as it can be, or refused in words."""
    survives_damage(sample())
    survives_odd_values(json.loads(sample()) | {"replay_config": CONFIG}, as_lines=False)
