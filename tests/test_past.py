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
from tests.product import LINT, NO_JUST, NOW, PYTEST_FAILS, REPO, TESTS_RUN, a_memory, a_task_run, exported, id_of, learn, osmia, ready

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


def test_the_past_is_a_memory_that_learnt_no_more(tmp_path: Path, memory: Memory) -> None:
    """As of each day, the export is that of a memory which was given only the runs up to that day."""
    ports = [row("The dev server listens on port 8080.", DAYS[0]), row("The dev server listens on port 9090.", DAYS[2])]
    for number, at in enumerate(DAYS):
        other = a_memory(tmp_path, name=f"{number}.duckdb")
        learn(other, *RUNS[: number + 1])
        for line in ports[: 1 if at < DAYS[2] else 2]:
            other.import_rows(line, name="rows")
        with memory.at(as_of=at) as past:
            assert exported_lines(past) == exported_lines(other)


def decide(memory: Memory) -> None:
    """Everything that people, models and checkouts can add to what runs say."""
    told = [
        {"type": "run", "engine": "codex", "session_id": c, "repo": REPO, "base_commit": c, "finished_at": DAYS[n].isoformat()}
        for n, c in enumerate(("c1", "c0"))
    ]
    told += [
        {**json.loads(row(f"The cache server listens on port {port}.", DAYS[n])), "witnesses": [{"run_id": run_id}]}
        for n, (port, run_id) in enumerate(((6380, "c1"), (6379, "c0")))
    ]
    for n, run_id in enumerate(("c1", "c0")):
        told[n]["run_id"] = run_id
    told += [
        {**json.loads(row("Releases are cut from `release`.", DAYS[1])), "fact_id": "n1", "superseded_by": "n2"},
        {**json.loads(row("Releases are tagged on `main`.", DAYS[2])), "fact_id": "n2"},
        {"type": "edge", "from": "n2", "to": "n1", "relation": "supersedes", "reason": "moved", "created_at": DAYS[2].isoformat()},
        json.loads(row("Payments go through the blue gateway.", DAYS[0])),
        json.loads(row("Card charges use the green provider.", DAYS[1])),
        json.loads(row("Nobody believes this.", DAYS[1])),
    ]
    memory.import_rows("\n".join(map(json.dumps, told)).encode(), name="rows")
    memory.store.order_commits(memory.tenant, REPO, {"c1": ["c0"]})
    memory.restore(next(f.fact_id for f in memory.store.facts(memory.tenant, include_superseded=True) if "8080" in f.content))
    memory.store.nominate(memory.tenant, [(id_of(memory, "blue"), id_of(memory, "green"))], "a model", at=memory.clock())
    memory.pin(id_of(memory, "make lint"), True)
    memory.edit(id_of(memory, "make lint"), "Linting is `make lint`.")
    memory.store.set_importance(memory.tenant, id_of(memory, "`main`"), 0.5, at=memory.clock())
    memory.retract(id_of(memory, "Nobody"), "indeed")


def test_the_present_is_the_past_of_tomorrow(memory: Memory) -> None:
    """As of a later time everything is there, byte for byte: decisions, order of commits, links by hand, times of recording."""
    decide(memory)
    assert {"6380", "8080", "9090", "`main`", "green"} <= {word.strip(".") for f in memory.facts() for word in f.content.split()}
    for moment in ({"as_of": NOW + timedelta(days=1)}, {"known_at": NOW + timedelta(days=1)}):
        with memory.at(**moment) as past:
            assert exported_lines(past) == exported_lines(memory)
            assert list(past.export_rows(recorded=True)) == list(memory.export_rows(recorded=True))
            assert past.verify() == []


def test_a_fact_is_seen_from_its_event_and_a_run_counts_once_it_ended(tmp_path: Path) -> None:
    """Between the two, the fact is there and nothing is known of how the run ended."""
    memory, event = a_memory(tmp_path), DAYS[0] - timedelta(minutes=4)
    ran = run("s1", DAYS[0], [{**one, "ts": event.isoformat()} for one in LINT])
    learn(memory, {**ran, "outcome": "success", "cost_usd": 1.5})
    (fact,) = memory.facts()
    assert fact.valid_from == event
    with memory.at(as_of=event) as past:
        (then,) = past.facts()
        assert (then.fact_id, then.confidence) == (fact.fact_id, fact.confidence)
        assert past.statistics()["runs"] == 0
        (told,) = past.store.runs("ticketing")
        assert (told.outcome, told.finished_at, told.cost_usd, told.signals) == ("unknown", None, None, ())
        assert not past.store.terms_known("ticketing", REPO, ["make"])
    with memory.at(as_of=event - timedelta(seconds=1)) as past:
        assert (past.facts(), past.store.runs("ticketing")) == ([], [])
    with memory.at(as_of=DAYS[0]) as past:
        assert past.statistics()["runs"] == 1


def test_the_clock_stands_at_the_time_of_the_event(memory: Memory) -> None:
    """What had been recorded by one time, as of another: confidence is that of the second."""
    for moment, clock in (
        ({"as_of": DAYS[1], "known_at": NOW}, DAYS[1]),
        ({"as_of": NOW, "known_at": DAYS[1]}, NOW),
        ({"known_at": DAYS[1]}, DAYS[1]),
    ):
        with memory.at(**moment) as past:
            assert past.clock() == clock


def test_confidence_is_that_of_the_time(memory: Memory) -> None:
    """What has faded since was strong then."""
    old = Memory(memory.store_path, "ticketing", clock=FixedClock(NOW + timedelta(days=300)))
    with old.at(as_of=DAYS[3]) as past:
        then = past.prior_knowledge(TASK, repo=REPO).facts
    now = {r.fact.fact_id: r.parts["confidence"] for r in old.prior_knowledge(TASK, repo=REPO).facts}
    assert then
    assert all(r.parts["confidence"] > now.get(r.fact.fact_id, 0) for r in then)


def test_failure_2_any_order_gives_the_same_past(tmp_path: Path) -> None:
    """Permutations of the runs answer alike at every time, and facts are valid from the time of the event."""
    found = set()
    for number, order in enumerate(list(itertools.permutations(RUNS))[::8]):
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


# Each row: what is decided on days 2, 4 and 6; "undo" takes back the day before.
DECISIONS = [
    ("pin", "undo", "pin"),
    ("unpin", "pin", "undo"),
    ("retract", "restore", "undo"),
    ("retract", "undo", "retract"),
    ("retract", "restore", "retract"),
    ("restore the older", "undo", "pin"),
    ("nominate", "undo", "nominate"),
    ("weigh", "weigh more", "pin"),
    ("edit", "pin", "retract"),
]


def decide_on(memory: Memory, what: str) -> None:
    """One decision about the port, or about two sentences."""
    everything = {f.content: f.fact_id for f in memory.store.facts(memory.tenant, include_superseded=True)}
    port = next((i for content, i in everything.items() if "9090" in content or "reworded" in content), "")
    match what:
        case "pin" | "unpin":
            memory.pin(port, what == "pin")
        case "retract":
            memory.retract(port, "no longer")
        case "restore":
            memory.restore(next(iter(memory.store.tombstones(memory.tenant))))
        case "restore the older":
            memory.restore(next(i for content, i in everything.items() if "8080" in content))
        case "nominate":
            pair = tuple(sorted(i for content, i in everything.items() if "gateway" in content or "provider" in content))
            memory.store.nominate(memory.tenant, [(pair[0], pair[1])], "a model", at=memory.clock())
        case "weigh" | "weigh more":
            memory.store.set_importance(memory.tenant, port, 0.5 if what == "weigh" else 0.7, at=memory.clock())
        case "edit":
            memory.edit(port, "The port is reworded.")
        case _:
            memory.undo()


@pytest.mark.parametrize("decisions", DECISIONS, ids=" ".join)
def test_decisions_are_undone_as_far_as_the_journal_tells(decisions: tuple[str, ...], tmp_path: Path) -> None:
    """After each decision the export was something; asked later with `known_at`, it is the same again."""
    clock = FixedClock(NOW)
    memory = ready(Memory(tmp_path / "memory.duckdb", "ticketing", clock=clock))
    contents = ("The dev server listens on port 8080.", "The dev server listens on port 9090.")
    contents += ("Payments go through the blue gateway.", "Card charges use the green provider.")
    memory.import_rows(b"\n".join(row(content, DAYS[n % 4]) for n, content in enumerate(contents)), name="rows")
    exports = [exported_lines(memory)]
    for number, what in enumerate(decisions, 1):
        clock.now = NOW + timedelta(days=2 * number)
        decide_on(memory, what)
        exports.append(exported_lines(memory))
    for number, export in enumerate(exports):
        with memory.at(known_at=NOW + timedelta(days=2 * number + 1)) as past:
            assert exported_lines(past) == export


def test_a_pruned_fact_says_so_whenever_it_was_known(memory: Memory) -> None:
    """`show` and `explain` tell when it was pruned, from the time on when it was observed; before that it is unknown."""
    fact_id = id_of(memory, "make lint")
    decay(memory.store, memory.settings, NOW + timedelta(days=4000))
    for command in ("show", "explain"):
        said = osmia(command, fact_id, "--store", memory.store_path, "--as-of", DAYS[1].isoformat())
        assert said.status == 1
        assert "was pruned at" in said.err
        early = osmia(command, fact_id, "--store", memory.store_path, "--as-of", DAYS[0].isoformat())
        assert early.status == 1
        assert "has no fact" in early.err
        assert f"{memory.store_path} as of {DAYS[0]:%Y-%m-%d}" in early.err


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


@settings(max_examples=5, deadline=None)
@given(told=TOLD, data=st.data())
def test_order_repetition_and_restarts_change_nothing(
    told: list[tuple[str, int, int]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any order, any repetition, any restart between: equal exports and equal answers."""
    rows = port_rows(told)
    order = data.draw(st.permutations(rows))
    one, other = (ready(a_memory(tmp_path_factory.mktemp("order"))) for _ in range(2))
    one.import_rows(b"\n".join(rows), name="rows")
    for line in [*order, *order[:1]]:
        Memory(other.store_path, "ticketing", clock=other.clock).import_rows(line, name="rows")
    assert exported_lines(one) == exported_lines(other)
    assert one.verify() == other.verify() == []


@settings(max_examples=5, deadline=None)
@given(told=TOLD, more=st.integers(1, 40), later=st.integers(0, 400))
def test_support_never_lowers_and_time_never_raises(
    told: list[tuple[str, int, int]], more: int, later: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One more run for a fact raises its confidence or leaves it; the passing of time lowers it or leaves it."""
    memory = ready(a_memory(tmp_path_factory.mktemp("monotone")))
    memory.import_rows(b"\n".join(port_rows(told)), name="rows")
    (fact, *_) = sorted(memory.store.facts("ticketing", include_superseded=True), key=lambda f: f.fact_id)
    extra = json.loads(row(fact.content, NOW - timedelta(days=more))) | {"witnesses": [{"run_id": "one more"}]}
    memory.import_rows(json.dumps(extra).encode(), name="rows")
    after = memory.store.facts_by_id("ticketing", [fact.fact_id])[0]
    assert (after.confidence, after.runs) >= (fact.confidence, fact.runs)
    assert aging.current_confidence(after, NOW + timedelta(days=later)) <= aging.current_confidence(after, NOW)


@settings(max_examples=5, deadline=None)
@given(told=TOLD, again=st.integers(100, 900))
def test_prune_and_revival_keep_the_history(told: list[tuple[str, int, int]], again: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A fact that was pruned and is seen again has all its runs and its first time."""
    memory = ready(a_memory(tmp_path_factory.mktemp("revival")))
    port = told[0][0]
    memory.import_rows(b"\n".join(port_rows([t for t in told if t[0] == port])), name="rows")
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
