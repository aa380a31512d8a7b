"""Knowledge as it was: by event time, by recording time, in any order of import. Content is invented."""

import itertools
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osmia_memory import aging
from osmia_memory.decaying import decay
from osmia_memory.errors import InputError
from osmia_memory.memory import Memory
from osmia_memory.testing import FixedClock
from tests.product import LINT, NO_JUST, NOW, PYTEST_FAILS, REPO, TESTS_RUN, a_memory, a_task_run, exported, id_of, learn, osmia

DAYS = [NOW - timedelta(days=d) for d in (20, 15, 10, 5)]
TASK = "`python -m pytest` fails on tests/test_cart.py, run the tests another way; mind the port of the dev server"


def run(name: str, at: datetime, *events: Any) -> dict[str, Any]:
    """A run of the shop that ended at that time."""
    return {**a_task_run(name, *events), "started_at": (at - timedelta(minutes=9)).isoformat(), "finished_at": at.isoformat()}


RUNS = [
    run("s1", DAYS[0], PYTEST_FAILS, TESTS_RUN),
    run("s2", DAYS[1], LINT),
    run("s3", DAYS[2], PYTEST_FAILS, TESTS_RUN),
    run("s4", DAYS[3], NO_JUST),
]


def row(content: str, at: datetime) -> bytes:
    """A fact of the shop, observed then."""
    fact = {"type": "fact", "content": content, "fact_kind": "repo_quirk", "repo": REPO, "valid_from": at.isoformat()}
    return json.dumps(fact).encode()


def answers(memory: Memory, at: datetime) -> tuple[str, list[str], tuple[tuple[str, int, float], ...]]:
    """Block, export and facts as of a time."""
    with memory.at(as_of=at) as past:
        facts = tuple(sorted((f.content, f.runs, aging.current_confidence(f, at)) for f in past.facts()))
        return past.prior_knowledge(TASK, repo=REPO).text, exported_lines(past), facts


def exported_lines(memory: Memory) -> list[str]:
    """The whole export."""
    return list(memory.export_rows())


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Four runs and a port that moved."""
    memory = a_memory(tmp_path)
    learn(memory, *RUNS)
    memory.import_rows(row("The dev server listens on port 8080.", DAYS[0]), name="rows")
    memory.import_rows(row("The dev server listens on port 9090.", DAYS[2]), name="rows")
    return memory


def test_nothing_observed_later_is_visible(memory: Memory) -> None:
    """Runs, facts, counts and what was superseded are as they were; before the first run there is nothing."""
    for at in (DAYS[0], DAYS[1], DAYS[2], DAYS[3]):
        with memory.at(as_of=at) as past:
            assert all(f.last_seen <= at for f in past.facts())
            assert all(r.finished_at is not None and r.finished_at <= at for r in past.store.runs("ticketing"))
            ports = {f.content for f in past.facts() if "listens" in f.content}
            assert ports == {"The dev server listens on port 8080." if at < DAYS[2] else "The dev server listens on port 9090."}
            assert past.statistics()["runs"] == DAYS.index(at) + 1
    with memory.at(as_of=DAYS[0] - timedelta(days=1)) as past:
        assert (past.facts(), past.prior_knowledge(TASK, repo=REPO)) == ([], ("", (), False))


def test_the_present_is_the_past_of_tomorrow(memory: Memory) -> None:
    """As of a later time everything is there, byte for byte."""
    with memory.at(as_of=NOW + timedelta(days=1)) as past:
        assert exported_lines(past) == exported_lines(memory)


def test_confidence_is_that_of_the_time(memory: Memory) -> None:
    """What has faded since was strong then."""
    old = Memory(memory.store_path, "ticketing", clock=FixedClock(NOW + timedelta(days=300)))
    with old.at(as_of=DAYS[3]) as past:
        then = past.prior_knowledge(TASK, repo=REPO).facts
    now = {r.fact.fact_id: r.parts["confidence"] for r in old.prior_knowledge(TASK, repo=REPO).facts}
    assert then
    assert all(r.parts["confidence"] > now.get(r.fact.fact_id, 0) for r in then)


def test_failure_2_any_order_gives_the_same_past(tmp_path: Path) -> None:
    """Every permutation of the runs answers alike at every time, and facts are valid from the time of the event."""
    found = set()
    for number, order in enumerate(list(itertools.permutations(RUNS))[::3]):
        (tmp_path / str(number)).mkdir()
        memory = a_memory(tmp_path / str(number))
        learn(memory, *order)
        found.add(json.dumps([answers(memory, at) for at in DAYS]))
        assert {f.valid_from for f in memory.facts()} <= set(DAYS)
    assert len(found) == 1
    assert all(len(of_day[2]) for of_day in json.loads(found.pop()))


def test_known_at_goes_by_recording_time(tmp_path: Path) -> None:
    """A run that ended long ago and was read yesterday was not known the day before; nor was a pin, a wording or a retraction."""
    clock = FixedClock(NOW)
    memory = Memory(tmp_path / "memory.duckdb", "ticketing", clock=clock)
    learn(memory, RUNS[0])
    first = exported_lines(memory)
    clock.now = NOW + timedelta(days=2)
    learn(memory, RUNS[1])
    lint = id_of(memory, "make lint")
    memory.pin(lint, True)
    memory.edit(lint, "Linting is `make lint`.")
    both = exported_lines(memory)
    clock.now = NOW + timedelta(days=4)
    memory.retract(lint, "no longer")

    def known(day: int) -> list[str]:
        with memory.at(known_at=NOW + timedelta(days=day)) as past:
            return exported_lines(past)

    assert known(1) == first
    assert known(3) == both
    assert known(5) == exported_lines(memory)
    with memory.at(known_at=NOW - timedelta(days=1)) as past:
        assert past.facts() == []


def test_the_store_is_only_read(memory: Memory) -> None:
    """Asking about the past leaves no trace."""
    before = memory.store_path.read_bytes()
    answers(memory, DAYS[1])
    assert memory.store_path.read_bytes() == before


def test_a_time_without_a_zone_is_misuse(memory: Memory) -> None:
    """Nobody knows which moment it means."""
    with pytest.raises(InputError, match="zone"), memory.at(as_of=datetime(2026, 5, 1)):  # noqa: DTZ001
        pass


@pytest.mark.parametrize(
    "command", [["query", "--repo", REPO, "--task", TASK], ["list"], ["stats"], ["export"], ["show"], ["explain"], ["related"]]
)
def test_every_read_takes_it(memory: Memory, command: list[str]) -> None:
    """The command line has both options on every command that reads; --now stays the clock."""
    if command[0] in ("show", "explain", "related"):
        command = [*command, id_of(memory, "make lint")]
    asked = [*command, "--store", memory.store_path, "--now" if command[0] == "query" else "--as-of", NOW.isoformat()]
    assert osmia(*asked).status == 0
    early = osmia(*command, "--store", memory.store_path, "--as-of", (DAYS[1] - timedelta(hours=1)).isoformat())
    assert "make lint" not in early.out
    assert early.status == (1 if command[0] in ("show", "explain", "related") else 0)
    assert osmia(*command, "--store", memory.store_path, "--known-at", "never").status == 2


# --- properties ---------------------------------------------------------------------------------------------------------

TOLD = st.lists(
    st.tuples(
        st.sampled_from(["8080", "8081", "8082"]),
        st.integers(0, 40),  # days before now
        st.integers(0, 5),  # which run says so
    ),
    min_size=1,
    max_size=7,
    unique_by=lambda t: t[2],
)


def port_rows(told: Sequence[tuple[str, int, int]]) -> list[bytes]:
    """Runs that each say on which port the dev server listens."""
    found = []
    for port, days, number in told:
        at = (NOW - timedelta(days=days)).isoformat()
        fact = json.loads(row(f"The dev server listens on port {port}.", NOW - timedelta(days=days)))
        found.append(json.dumps(fact | {"witnesses": [{"run_id": f"r{number}", "observed_at": at}]}).encode())
    return found


@settings(max_examples=8, deadline=None)
@given(told=TOLD, data=st.data())
def test_order_repetition_and_restarts_change_nothing(
    told: list[tuple[str, int, int]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any order, any repetition, any restart between: equal exports and equal answers."""
    rows = port_rows(told)
    order = data.draw(st.permutations(rows))
    one, other = (a_memory(tmp_path_factory.mktemp("order")) for _ in range(2))
    for line in rows:
        one.import_rows(line, name="rows")
    for line in [*order, *order[:2]]:
        Memory(other.store_path, "ticketing", clock=other.clock).import_rows(line, name="rows")
    assert exported_lines(one) == exported_lines(other)
    assert one.verify() == other.verify() == []


@settings(max_examples=8, deadline=None)
@given(told=TOLD, more=st.integers(1, 40), later=st.integers(0, 400))
def test_support_never_lowers_and_time_never_raises(
    told: list[tuple[str, int, int]], more: int, later: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One more run for a fact raises its confidence or leaves it; the passing of time lowers it or leaves it."""
    memory = a_memory(tmp_path_factory.mktemp("monotone"))
    for line in port_rows(told):
        memory.import_rows(line, name="rows")
    (fact, *_) = sorted(memory.store.facts("ticketing", include_superseded=True), key=lambda f: f.fact_id)
    extra = json.loads(row(fact.content, NOW - timedelta(days=more))) | {"witnesses": [{"run_id": "one more"}]}
    memory.import_rows(json.dumps(extra).encode(), name="rows")
    after = memory.store.facts_by_id("ticketing", [fact.fact_id])[0]
    assert (after.confidence, after.runs) >= (fact.confidence, fact.runs)
    assert aging.current_confidence(after, NOW + timedelta(days=later)) <= aging.current_confidence(after, NOW)


@settings(max_examples=6, deadline=None)
@given(told=TOLD, again=st.integers(100, 900))
def test_prune_and_revival_keep_the_history(told: list[tuple[str, int, int]], again: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A fact that was pruned and is seen again has all its runs and its first time."""
    memory = a_memory(tmp_path_factory.mktemp("revival"))
    port = told[0][0]
    for line in port_rows([t for t in told if t[0] == port]):
        memory.import_rows(line, name="rows")
    (before,) = memory.facts()
    late = NOW + timedelta(days=again)
    decay(memory.store, memory.settings, late)
    line = json.loads(row(before.content, late)) | {"witnesses": [{"run_id": "again", "observed_at": late.isoformat()}]}
    memory.import_rows(json.dumps(line).encode(), name="rows")
    (after,) = memory.facts()
    assert (after.content, after.valid_from, after.last_seen, after.runs) == (before.content, before.valid_from, late, before.runs + 1)


def test_halves_give_the_same_export(tmp_path: Path, demo_runs: Path) -> None:
    """The shipped runs at once, backwards, or in two halves: byte-equal exports."""
    files = sorted(str(p) for p in demo_runs.rglob("*") if p.is_file() and p.suffix in (".jsonl", ".json") and "outcome" not in p.name)
    exports = []
    for number, batches in enumerate(([files], [files[::-1]], [files[1::2], files[::2]])):
        memory = a_memory(tmp_path / str(number))
        for batch in batches:
            list(memory.extract(batch))
        exports.append(exported(memory))
    assert exports[0] == exports[1] == exports[2]
    assert len(exports[0]) > 20
