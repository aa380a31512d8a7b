"""Costs as ratios, measured side by side, so that a busy machine does not decide them."""

import random
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from osmia_memory import ids, reconcile, similarity
from osmia_memory.models import Insert, Plan, Witness
from osmia_memory.store.fact_store import FactStore
from osmia_memory.testing import NOW, a_run
from tests.store.builders import EXTRACTOR, REPO, TENANT, says

QUERY = "fix the retry of the ledger export when the session token of a worker expires in src/part77/worker.py"


def plans(runs: int, facts_each: int, *, quotes: int = 3, seed: int = 3) -> Iterator[Plan]:
    """Runs that say things nobody else says."""
    choose = random.Random(seed)
    words = [f"word{n}" for n in range(3000)] + ["retry", "ledger", "export", "session", "token", "worker"]
    for n in range(runs):
        run = a_run(f"s{seed}-{n}", at=NOW + timedelta(minutes=n))
        witnesses = []
        for k in range(facts_each):
            content = f"In `src/part{n}/file{k}.py` " + " ".join(choose.choices(words, k=15))
            candidate = says(run, content, quotes=[f"quote {q} of {k}" for q in range(quotes)])
            witnesses.append(Witness(ids.fact_id(TENANT, *REPO, None, content), run.run_id, candidate, NOW))
        yield Plan(run, tuple(map(Insert, witnesses)), tuple(reconcile.fold(TENANT, [w]) for w in witnesses))


def fastest(work: Callable[[], object], repeats: int = 7) -> float:
    """The shortest of several runs, in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


@pytest.mark.slow
def test_search_among_ten_thousand_facts_costs_little_more_than_among_a_hundred(tmp_path: Path) -> None:
    """A hundred times the facts take less than ten times as long; merging the tail makes it faster, not slower."""
    small, large = FactStore(tmp_path / "small.duckdb"), FactStore(tmp_path / "large.duckdb")
    small.apply_many(list(plans(1, 100)), recorded_at=NOW)
    for part in range(10):
        large.apply_many(list(plans(10, 100, seed=part)), recorded_at=NOW)
    terms = similarity.query_terms(QUERY)

    def search(store: FactStore) -> float:
        with store.session() as session:
            assert session.search(TENANT, [REPO], terms, 50)
            return fastest(lambda: session.search(TENANT, [REPO], terms, 50))

    unmerged, found = search(large), large.search(TENANT, [REPO], terms, 50)
    large.merge_postings()
    small.merge_postings()

    assert large.search(TENANT, [REPO], terms, 50) == found
    assert len(large.facts(TENANT)) == 10_000
    assert search(large) < 10 * search(small)
    assert search(large) < 1.5 * unmerged


def test_a_batch_in_one_transaction_is_much_faster_than_single_writes(tmp_path: Path) -> None:
    """Sixty runs at once take less than half of what they take one by one."""
    prepared = list(plans(60, 12))
    single, batch = FactStore(tmp_path / "single.duckdb"), FactStore(tmp_path / "batch.duckdb")
    for store in (single, batch):
        store.redaction_key()

    def one_by_one() -> None:
        with single.session(write=True) as session:
            for plan in prepared:
                session.apply(plan, recorded_at=NOW, extractor=EXTRACTOR)

    alone = fastest(one_by_one, repeats=1)
    together = fastest(lambda: batch.apply_many(prepared, recorded_at=NOW, extractors=[EXTRACTOR] * len(prepared)), repeats=1)

    assert together < alone / 2
    assert batch.states(TENANT) == single.states(TENANT)


def test_small_writes_do_not_swell_the_file(store: FactStore) -> None:
    """Twenty-five sessions of one small run each leave a file of less than four times what one session leaves."""
    prepared = list(plans(25, 4))
    for plan in prepared:
        store.apply(plan, recorded_at=NOW, extractor=EXTRACTOR)
    at_once = FactStore(store.path.parent / "at_once.duckdb")
    at_once.apply_many(prepared, recorded_at=NOW, extractors=[EXTRACTOR] * len(prepared))

    assert store.path.stat().st_size < 4 * at_once.path.stat().st_size
