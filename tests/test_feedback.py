"""The ledger of injections: what was shown, what was used, how runs fared. Content is invented."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from osmia_memory import feedback, spool
from osmia_memory.feedback import Shown, is_used
from osmia_memory.memory import Memory
from osmia_memory.testing import a_fact
from tests.product import LINT, NOW, PYTEST_FAILS, REPO, TESTS_RUN, Events, a_memory, a_task_run, id_of, learn, osmia, sh

TASK = "`python -m pytest` fails on tests/test_cart.py, run the tests another way"


@pytest.mark.parametrize(
    ("content", "actions", "used"),
    [
        ("`python -m pytest` fails here; `bin/test <path>` runs the tests.", ["bin/test tests/test_cart.py"], True),
        ("`python -m pytest` fails here; `bin/test <path>` runs the tests.", ["python -m pytest tests"], False),
        ("Linting is `make lint`.", ["cd app && make lint"], True),
        ("Linting is `make lint`.", ["make lint-docs"], False),
        ("`just` is not installed.", ["just build"], False),
        ("`src/cart.py` and `src/total.py` have to change together.", ["src/total.py"], True),
        ("Invoices are rounded per line.", ["make lint"], False),
    ],
)
def test_a_use_is_seen_in_what_the_run_did(content: str, actions: list[str], used: bool) -> None:
    """Its own commands and edits; doing what a fact warns of is no use of it."""
    assert is_used(a_fact(content), actions) is used


def shown(session: str, memory: Memory, *contents: str) -> None:
    """Put on record that the coming run is shown these facts."""
    memory.record_injection(session, repo=REPO, engine="aider", fact_ids=[id_of(memory, c) for c in contents], tokens=50)


def test_failure_20_only_what_was_used_counts(tmp_path: Path) -> None:
    """A failed run that was shown twenty facts and used one: only that one is blamed, and no confidence moves for being shown."""
    memory = a_memory(tmp_path)
    learn(memory, a_task_run("s0", LINT, TESTS_RUN))
    rows = [
        {"type": "fact", "content": f"`bin/gen{n} --all` writes `gen/{n}.py`.", "fact_kind": "repo_quirk", "repo": REPO} for n in range(19)
    ]
    memory.import_rows("\n".join(map(json.dumps, rows)).encode(), name="rows")
    facts = {f.fact_id: (f.confidence, f.runs) for f in memory.facts()}
    memory.record_injection("s1", repo=REPO, engine="aider", fact_ids=sorted(facts)[:20], tokens=400)
    learn(memory, a_task_run("s1", sh("bin/gen7 --all", "done"), outcome="failure"))
    found = {v.content: (v.shown, v.used, v.with_it.known, v.with_it.successes) for v in memory.feedback()}
    assert len(found) == 20
    assert {content for content, (_, used, _, _) in found.items() if used} == {"`bin/gen7 --all` writes `gen/7.py`."}
    assert found["`bin/gen7 --all` writes `gen/7.py`."] == (1, 1, 1, 0)
    assert {i: c for i, c in facts.items() if i in {f.fact_id for f in memory.facts()}} == {
        f.fact_id: (f.confidence, f.runs) for f in memory.facts() if f.fact_id in facts
    }


@pytest.mark.parametrize("told", [False, True])
def test_doing_what_the_block_said_is_no_independent_witness(tmp_path: Path, told: bool) -> None:
    """The same run raises the count of a fact unless that fact had been shown to it."""
    memory = a_memory(tmp_path)
    learn(memory, a_task_run("s0", LINT))
    before = next(f for f in memory.facts() if "make lint" in f.content)
    if told:
        shown("s1", memory, "make lint")
    learn(memory, a_task_run("s1", LINT, day=6))
    after = next(f for f in memory.facts() if "make lint" in f.content)
    assert (after.runs, after.confidence > before.confidence) == ((1, False) if told else (2, True))
    assert after.last_seen > before.last_seen, "that it still works is news"
    assert memory.verify() == []


def test_a_block_in_the_transcript_is_a_record_too(tmp_path: Path) -> None:
    """A controller that injects by itself need not record: the readers know our block."""
    memory = a_memory(tmp_path)
    learn(memory, a_task_run("s0", PYTEST_FAILS, TESTS_RUN), a_task_run("s2", PYTEST_FAILS, TESTS_RUN, day=5))
    block = memory.prior_knowledge(TASK, repo=REPO)
    assert block.facts
    given: Events = [{"kind": "user", "text": f"{block.text}\nFix the rounding."}]
    before = {f.fact_id: f.runs for f in memory.facts()}
    learn(memory, a_task_run("s3", given, TESTS_RUN, day=7))
    found = {v.fact_id: v for v in memory.feedback()}
    assert found.keys() == {r.fact.fact_id for r in block.facts}
    assert all(v.shown == 1 for v in found.values())
    used = {i for i, v in found.items() if v.used}
    assert used
    assert all(f.runs == before[f.fact_id] for f in memory.facts() if f.fact_id in used)


def test_with_and_without_are_compared_in_the_same_repository() -> None:
    """Runs that used it against runs without it; shown but unused apart; another repository does not count."""
    fact = a_fact("Linting is `make lint`.")
    used = [Shown(f"u{n}", REPO, "bug_fix", "failure", False, {fact.fact_id: True}) for n in range(8)]
    unused = [Shown(f"n{n}", REPO, "bug_fix", "success", False, {fact.fact_id: False}) for n in range(2)]
    withheld = [Shown(f"w{n}", REPO, "bug_fix", "success", True, {fact.fact_id: False}) for n in range(5)]
    others = [Shown(f"o{n}", REPO, "bug_fix", "success", False, {}) for n in range(4)]
    elsewhere = [Shown(f"e{n}", "zeta/shop", "bug_fix", "success", False, {}) for n in range(50)]
    harmless = a_fact("Docs are built by `make docs`.")
    helped = [Shown("h", REPO, "docs", "success", False, {harmless.fact_id: True})]
    first, second = feedback.verdicts([harmless, fact], [*used, *unused, *withheld, *helped], [*others, *elsewhere])
    assert (first.fact_id, first.shown, first.used) == (fact.fact_id, 10, 8)
    assert (first.with_it[:2], first.unused[:2], first.without[:2]) == ((0, 8), (2, 2), (10, 10))
    assert first.difference is not None
    assert first.difference[1] < 0
    assert second.difference is None


# --- the spool ------------------------------------------------------------------------------------------------------------


def test_query_records_without_writing_to_the_store(tmp_path: Path) -> None:
    """The block is as without it; the record waits beside the store and is taken in by the next command that writes, once."""
    memory = a_memory(tmp_path)
    learn(memory, a_task_run("s0", PYTEST_FAILS, TESTS_RUN), a_task_run("s2", PYTEST_FAILS, TESTS_RUN, day=5))
    before = memory.store_path.read_bytes()
    plain = ["query", "--repo", REPO, "--task", TASK, "--store", memory.store_path, "--now", NOW.isoformat()]
    assert osmia(*plain, "--record", "s9").out == osmia(*plain).out != ""
    assert memory.store_path.read_bytes() == before
    (path,) = spool.folder_of(memory.store_path).glob("*.json")
    assert path.stat().st_mode & 0o077 == 0
    copy = path.read_bytes()
    assert [v.shown for v in memory.feedback()] == [1] * len(memory.feedback())
    assert not list(spool.folder_of(memory.store_path).glob("*.json"))
    path.write_bytes(copy)  # as after a crash between taking in and removing
    assert {v.shown for v in memory.feedback()} == {1}


def test_a_share_of_runs_is_shown_nothing(tmp_path: Path) -> None:
    """Decided by the run's id: the same every time, and about as many as asked for."""
    memory = a_memory(tmp_path)
    learn(memory, a_task_run("s0", PYTEST_FAILS, TESTS_RUN), a_task_run("s2", PYTEST_FAILS, TESTS_RUN, day=5))
    plain = ["query", "--repo", REPO, "--task", TASK, "--store", memory.store_path, "--now", NOW.isoformat(), "--record", "r1"]
    assert osmia(*plain, "--withhold-share", "1").out == ""
    assert osmia(*plain, "--withhold-share", "0").out != ""
    assert 180 < sum(spool.share(f"run-{n}", 0.2) for n in range(1000)) < 220
    assert all(v.with_it.known == 0 for v in memory.feedback())


def test_what_is_no_record_is_set_aside(tmp_path: Path) -> None:
    """Named, kept, and no hindrance to the others."""
    memory = a_memory(tmp_path)
    learn(memory, a_task_run("s0", LINT))
    shown("s1", memory, "make lint")
    folder = spool.folder_of(memory.store_path)
    for name, text in (("a.json", "{"), ("b.json", "[]"), ("c.json", '{"key": "c"}')):
        (folder / name).write_text(text)
    bad = memory.take_spool()
    assert [Path(p).name for p, _ in bad] == ["a.json", "b.json", "c.json"]
    assert sorted(p.name for p in folder.iterdir()) == ["a.bad", "b.bad", "c.bad"]
    assert [v.shown for v in memory.feedback()] == [1]


def test_records_of_other_tenants_stay_theirs(tmp_path: Path) -> None:
    """One tenant's feedback shows nothing of another's records."""
    memory = a_memory(tmp_path)
    learn(memory, a_task_run("s0", LINT))
    shown("s1", memory, "make lint")
    other = Memory(memory.store_path, "incident-triage", clock=memory.clock)
    assert other.feedback() == []
    assert [v.shown for v in memory.feedback()] == [1]


@pytest.mark.slow
def test_a_killed_recorder_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    """kill -9 at any moment: every key that was printed is in the ledger, once, while another process takes the spool in."""
    memory = a_memory(tmp_path)
    learn(memory, a_task_run("s0", LINT))
    code = (
        "import sys, pathlib\nfrom osmia_memory.memory import Memory\n"
        "m = Memory(pathlib.Path(sys.argv[1]), 'ticketing')\nn = 0\n"
        "while True:\n    n += 1\n    print(m.record_injection(f's{n}', repo=None, engine=None, fact_ids=['f1:a'], tokens=1), flush=True)\n"
    )
    said: list[str] = []
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", code, str(memory.store_path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said.append(process.stdout.readline().strip())
            time.sleep(0.15)
            memory.take_spool()
            os.kill(process.pid, signal.SIGKILL)
            said += [line for line in process.stdout.read().split("\n")[:-1] if line]  # what follows the last newline was cut off
    memory.take_spool()
    with duckdb.connect(str(memory.store_path), read_only=True) as connection:
        keys = [row[0] for row in connection.execute("SELECT key FROM injections").fetchall()]
    assert set(said) <= set(keys)
    assert len(keys) == len(set(keys))
    assert len(said) > 20
