"""The demo's transcripts as shipped: readable, whole, free of this machine, and as the answer key says."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import osmia_memory

ROOT = Path(__file__).parents[1]
DATA = Path(osmia_memory.__file__).parent / "demo"
RUNS = DATA / "runs"
CLAUDE, CODEX, MINI = (sorted(RUNS.glob(p)) for p in ("claude-code/*.jsonl", "codex/*.jsonl", "mini-swe-agent/*.traj.json"))
KEY = json.loads((ROOT / "demo/expected.json").read_text())
MAX_BYTES = 600 * 1024


def records(path: Path) -> list[dict[str, Any]]:
    """Lines of a JSONL file, or messages of a trajectory."""
    if path.name.endswith(".traj.json"):
        messages: list[dict[str, Any]] = json.loads(path.read_text())["messages"]
        return messages
    return [json.loads(line) for line in path.read_text().splitlines()]


def strings(value: Any) -> Iterator[str]:
    """All strings of a JSON value, with JSON inside of strings unpacked."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)
    elif isinstance(value, str):
        yield value
        if value.startswith('{"'):
            yield from strings(json.loads(value))


def blocks(path: Path, kind: str) -> list[dict[str, Any]]:
    """The content blocks of that type in a Claude Code session."""
    contents = (record["message"]["content"] for record in records(path) if "message" in record)
    return [block for content in contents if isinstance(content, list) for block in content if block["type"] == kind]


def payloads(path: Path, *kinds: str) -> list[dict[str, Any]]:
    """The payloads of those types in a Codex rollout."""
    return [record["payload"] for record in records(path) if record["payload"].get("type") in kinds]


def says(content: str, must_mention: list[list[str]]) -> bool:
    """The content holds one word of every list."""
    return all(any(word in content.lower() for word in words) for words in must_mention)


def test_there_are_enough_runs_of_three_engines():
    """At least ten runs, and no engine has only one."""
    assert len(CLAUDE) + len(CODEX) + len(MINI) >= 10
    assert min(len(CLAUDE), len(CODEX), len(MINI)) >= 2


@pytest.mark.parametrize("path", [*CLAUDE, *CODEX, *MINI], ids=lambda path: path.name)
def test_every_record_is_an_object(path: Path):
    """Each line, or each message, parses to an object."""
    assert records(path)
    assert all(isinstance(record, dict) for record in records(path))


@pytest.mark.parametrize("path", CLAUDE, ids=lambda path: path.name)
def test_claude_calls_have_results(path: Path):
    """Every tool_use has one tool_result, with the structured twin in the same record."""
    results = [block["tool_use_id"] for block in blocks(path, "tool_result")]
    assert [block["id"] for block in blocks(path, "tool_use")] == results
    assert all("toolUseResult" in r for r in records(path) if '"tool_result"' in json.dumps(r))


@pytest.mark.parametrize("path", CLAUDE, ids=lambda path: path.name)
def test_claude_lines_form_a_chain_and_repeat_usage(path: Path):
    """Every parent is an earlier record, and all lines of one reply carry the same usage."""
    seen: set[str | None] = {None}
    usages: dict[str, set[str]] = {}
    for record in records(path):
        if "parentUuid" in record:
            assert record["parentUuid"] in seen
            seen.add(record["uuid"])
        if record["type"] == "assistant":
            usages.setdefault(record["message"]["id"], set()).add(json.dumps(record["message"]["usage"]))
    assert all(len(usage) == 1 for usage in usages.values())


@pytest.mark.parametrize("path", CODEX, ids=lambda path: path.name)
def test_codex_calls_have_outputs(path: Path):
    """Every call has one output, and what was left running ends in a later `write_stdin`."""
    calls = [p["call_id"] for p in payloads(path, "function_call", "custom_tool_call")]
    outputs = payloads(path, "function_call_output", "custom_tool_call_output")
    assert calls == [p["call_id"] for p in outputs]
    running = [n for n, p in enumerate(outputs) if "Process running with session ID" in p["output"]]
    assert all("Process exited with code" in outputs[n + 1]["output"] for n in running)


@pytest.mark.parametrize("path", CODEX, ids=lambda path: path.name)
def test_codex_totals_only_grow(path: Path):
    """The cumulative counts never fall, and the last ones are the sum of all."""
    infos = [p["info"] for p in payloads(path, "token_count")]
    totals = [info["total_token_usage"]["total_tokens"] for info in infos]
    assert totals == sorted(totals)
    assert totals[-1] == sum(info["last_token_usage"]["total_tokens"] for info in infos)


@pytest.mark.parametrize("path", MINI, ids=lambda path: path.name)
def test_mini_replies_have_observations(path: Path):
    """Every reply is followed by what came back, and `api_calls` counts the replies."""
    roles = [message["role"] for message in records(path)]
    replies = [n for n, role in enumerate(roles) if role == "assistant"]
    assert all(roles[n + 1] == "user" for n in replies)
    assert json.loads(path.read_text())["info"]["model_stats"]["api_calls"] == len(replies)


def test_no_path_of_the_machine_they_were_made_on():
    """Absolute paths lie in the invented home folder or in /usr; the temporary folder left no trace."""
    text = "\n".join(s for path in [*CLAUDE, *CODEX, *MINI] for record in records(path) for s in strings(record))
    paths = set(re.findall(r"(?<![\w.~/<>:*})-])/(?:home|usr|tmp|var|root|opt|srv|work|mnt|private|Users|nix)/[\w.-]*", text))
    assert "/home/sam" in paths
    assert paths <= {"/home/sam", "/usr/lib", "/usr/bin"}


def test_they_stay_small():
    """The data that every installation carries is below 600 KB."""
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < MAX_BYTES


def test_outcomes_beside_them_are_of_several_kinds():
    """Some runs have an outcome beside them, of three kinds, and some have none."""
    files = sorted(RUNS.rglob("*.outcome.json"))
    assert {json.loads(path.read_text())["outcome"] for path in files} == {"success", "failure", "partial"}
    assert len(files) < len(CLAUDE) + len(CODEX) + len(MINI)
    stems = {path.name.split(".")[0] for path in [*CLAUDE, *CODEX, *MINI]}
    assert all(path.name.removesuffix(".outcome.json") in stems for path in files)


@pytest.mark.parametrize("run", KEY["runs"], ids=lambda run: run["run"])
def test_answer_key_quotes_stand_where_it_says(run: dict[str, Any]):
    """Every quote of the key is in the record it names."""
    texts = ["\n".join(strings(record)) for record in records(RUNS / run["run"])]
    wrong = [(f["id"], e["quote"]) for f in run["facts"] for e in f["evidence"] if e["quote"] not in texts[e["line"]]]
    assert not wrong


def test_answer_key_covers_every_run():
    """No run is missing from the key; each fact and trap satisfies its own terms, and no fact a trap's."""
    assert sorted(RUNS / run["run"] for run in KEY["runs"]) == sorted([*CLAUDE, *CODEX, *MINI])
    for run in KEY["runs"]:
        assert all(says(item["content"], item["must_mention"]) for item in (*run["facts"], *run["traps"]))
        assert not any(says(fact["content"], trap["must_mention"]) for fact in run["facts"] for trap in run["traps"])


def test_several_facts_are_seen_by_more_than_one_engine():
    """Corroboration across engines has something to show."""
    engine = {fact["id"]: run["engine"] for run in KEY["runs"] for fact in run["facts"]}
    shared = [group for group, ids in KEY["same"].items() if len({engine[i] for i in ids}) > 1]
    assert {"runner", "plain-pytest", "flaky", "baseline", "schema-twice", "integration", "fakeclock"} <= set(shared)


def test_planted_secrets_are_there_to_be_masked():
    """Each planted secret stands in tool output of at least two runs."""
    texts = [path.read_text() for path in [*CLAUDE, *CODEX, *MINI]]
    assert all(sum(secret in text for text in texts) >= 2 for secret in KEY["secrets"])


def test_an_injected_block_stands_in_tool_output_only():
    """One run prints a memory block like ours; no agent or person says it."""
    found = [record for path in [*CLAUDE, *CODEX, *MINI] for record in records(path) if "## Prior Knowledge" in json.dumps(record)]
    assert [record["payload"]["type"] for record in found] == ["function_call_output"]


def test_one_run_claims_what_its_last_test_run_denies():
    """The agent says that all tests pass; the last test output before it says `1 failed`."""
    path = RUNS / "claude-code/2026-03-16-drain-limit.jsonl"
    tested = [b["content"] for b in blocks(path, "tool_result") if re.search(r"\d+ (?:passed|failed)", b["content"])]
    assert "1 failed" in tested[-1]
    assert "All tests pass" in blocks(path, "text")[-1]["text"]
    assert not path.with_suffix(".outcome.json").exists()


def test_tasks_ask_for_facts_that_the_runs_hold():
    """The demo's new tasks name groups of the key, and no run was given the same task."""
    tasks = json.loads((DATA / "tasks.json").read_text())
    assert len(tasks) == 3
    wanted = [fact["group"] for task in tasks for fact in task["comes_back"]]
    assert set(wanted) <= set(KEY["same"])
    assert not {task["title"] for task in tasks} & {run["task"] for run in KEY["runs"]}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git", path="/usr/bin:/bin") is None, reason="the maker works on a git repository")
def test_the_maker_still_makes_them(tmp_path: Path):
    """Playing the first story again runs the same commands to the same exit codes."""
    subprocess.run(
        [sys.executable, str(ROOT / "demo/make_runs.py"), "--first", "1", "--out", str(tmp_path)], check=True, capture_output=True
    )
    name = "claude-code/2026-03-02-retry-cap.jsonl"
    codes = [[str(b["content"]).partition("\n")[0][:12] for b in blocks(folder / name, "tool_result")] for folder in (RUNS, tmp_path)]
    assert codes[0] == codes[1]
