"""kill -9 at any moment, and several processes at once: nothing acknowledged is lost, nothing is doubled."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from osmia_memory import reconcile
from osmia_memory.store.fact_store import FactStore
from osmia_memory.testing import a_run
from tests.store.builders import REPO, TENANT, remember_text

ROOT = Path(__file__).parents[2]

WRITER = """
import sys
from tests.store.builders import TENANT, remember_text
from osmia_memory.store.fact_store import FactStore
name, count = sys.argv[2], int(sys.argv[3])
store = FactStore(sys.argv[1], lock_wait_seconds=60)
for n in range(count):
    remember_text(store, f"{name}{n}", "Shared by all runs.", f"Part {name}{n} is built with `make {name}{n}`.", f"Part {name}{n} is slow.")
    print(f"{name}{n}", flush=True)
    if n % 5 == 4:
        store.merge_postings()
    if n % 7 == 6:
        store.compact()
"""

READER = """
import sys, time
from tests.store.builders import REPO, TENANT
from osmia_memory.store.fact_store import FactStore
store = FactStore(sys.argv[1], lock_wait_seconds=60)
seen = 0
while seen < int(sys.argv[2]):
    found = len(store.runs(TENANT))
    assert found >= seen, "a reader saw the store shrink"
    assert len(store.search(TENANT, [REPO], ["slow"], 10_000)) >= seen
    seen = found
print("done", flush=True)
"""


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def check(store: FactStore, acknowledged: list[str]) -> None:
    """All acknowledged runs are there once, with their facts, found by search, and the store is sound."""
    sessions = [run.session_id for run in store.runs(TENANT)]
    assert len(sessions) == len(set(sessions))
    assert set(acknowledged) <= set(sessions)
    assert store.verify(reconcile.refold) == []
    by_content = {fact.content: fact for fact in store.facts(TENANT)}
    assert len(by_content) == 2 * len(sessions) + (1 if sessions else 0)
    if sessions:
        assert by_content["Shared by all runs."].runs == len(sessions)
    assert len(store.search(TENANT, [REPO], ["slow"], 10_000)) == len(sessions)


@pytest.mark.slow
def test_killed_writer_loses_nothing_it_acknowledged(store: FactStore) -> None:
    """Six times killed at a random moment of storing, merging or compacting; the next process goes on where it was."""
    choose = random.Random(28)
    acknowledged: list[str] = []
    for attempt in range(6):
        with start(WRITER, str(store.path), f"w{attempt}-", "1000") as process:
            assert process.stdout is not None
            acknowledged.append(process.stdout.readline().strip())
            time.sleep(choose.uniform(0, 0.6))
            process.kill()
            acknowledged += process.stdout.read().split()
        check(store, acknowledged)
    assert len(acknowledged) >= 6
    remember_text(store, "after", "Shared by all runs.", "Part after is built with `make after`.", "Part after is slow.")
    check(store, [*acknowledged, "after"])


@pytest.mark.slow
def test_processes_share_the_store(store: FactStore) -> None:
    """Three writers and two readers in processes of their own: every write arrives, no reader sees less than before, nobody fails."""
    each = 4
    processes = [start(WRITER, str(store.path), f"p{n}-", str(each)) for n in range(3)]
    processes += [start(READER, str(store.path), str(3 * each)) for _ in range(2)]
    outputs = [process.communicate(timeout=300) for process in processes]

    assert [error for _, error in outputs] == [""] * 5
    assert [process.returncode for process in processes] == [0] * 5
    check(store, [name for out, _ in outputs[:3] for name in out.split()])
    assert len(store.runs(TENANT)) == 3 * each


def test_processes_that_create_the_store_together_share_it(store: FactStore) -> None:
    """Whoever is first makes the file; the others find it and lose nothing."""
    processes = [start(WRITER, str(store.path), f"c{n}-", "1") for n in range(4)]
    outputs = [process.communicate(timeout=120) for process in processes]

    assert [error for _, error in outputs] == [""] * 4
    check(store, [f"c{n}-0" for n in range(4)])
    assert [p.name for p in store.path.parent.iterdir()] == [store.path.name]
    assert a_run("c0-0").run_id in store.known_runs(TENANT)
