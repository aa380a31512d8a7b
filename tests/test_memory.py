"""The facade: one tenant's view of a store. What it answers, what it changes, and what it cannot reach."""

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from osmia_memory.config import Settings
from osmia_memory.errors import InputError, StoreError, TenantError
from osmia_memory.memory import Block, Memory
from osmia_memory.models import Skip
from osmia_memory.testing import FixedClock
from tests.product import (
    LINT,
    NO_JUST,
    NOW,
    PYTEST_FAILS,
    REPO,
    TESTS_RUN,
    a_memory,
    a_task_run,
    bytes_of,
    contents,
    exported,
    id_of,
    learn,
    osmia,
    sh,
)

TASK = "`python -m pytest` fails on tests/test_cart.py, run the tests another way"


def ask(memory: Memory, task: str = TASK, repo: str | None = REPO, **options: Any) -> Block:
    """The block for a task on the shop."""
    return memory.prior_knowledge(task, repo=repo, **options)


def rows(*facts: dict[str, Any]) -> bytes:
    """Rows of an import file; facts of the shop unless they say otherwise."""
    return b"".join(json.dumps({"type": "fact", "fact_kind": "repo_quirk", "repo": REPO, **f}).encode() + b"\n" for f in facts)


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that read two runs which agree on most."""
    memory = a_memory(tmp_path_factory.mktemp("two"))
    learn(memory, a_task_run("s1", PYTEST_FAILS, TESTS_RUN, LINT, day=3), a_task_run("s2", PYTEST_FAILS, TESTS_RUN, NO_JUST))
    return memory.store_path


class Shared(NamedTuple):
    """A store of two tenants, and what it holds of the first, `ticketing`."""

    path: Path
    fact_id: str
    run_id: str
    export: str
    generation: int


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, two_runs: Path) -> Shared:
    """The two runs and a fact about their engine, beside a run of `incident-triage` in another repository by another engine."""
    folder = tmp_path_factory.mktemp("shared")
    shutil.copy(two_runs, folder / "memory.duckdb")
    memory = a_memory(folder)
    memory.import_rows(rows({"content": "aider asks before it adds files.", "scope": "engine", "owner": "aider"}), name="rows")
    learn(a_memory(folder, "incident-triage"), a_task_run("s9", NO_JUST, repo="acme/other", engine="opencode"))
    memory.import_rows(rows({"content": "The cart listens on port 1."}, {"content": "The cart listens on port 2."}), name="rows")
    port = next(f.fact_id for f in memory.facts() if "port" in f.content)
    memory.pin(id_of(memory, "asks before"), True)
    memory.import_outcomes([("x", json.dumps({f"t-{n}": True for n in range(3)}).encode())], engine="aider", repo=REPO)
    memory.record_injection("s1", repo=REPO, engine="aider", fact_ids=[port], tokens=9)
    memory.take_spool()
    run_id = next(r.run_id for r in memory.store.runs("ticketing") if r.session_id == "s1")
    return Shared(memory.store_path, port, run_id, exported(memory), memory.store.generation())


@pytest.fixture
def memory(tmp_path: Path, two_runs: Path) -> Memory:
    """A memory of two runs, to do with as one likes."""
    shutil.copy(two_runs, tmp_path / "memory.duckdb")
    return a_memory(tmp_path)


# --- tenants ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tenant", ["", "  ", None])
def test_a_missing_tenant_is_an_error(tmp_path: Path, tenant: Any) -> None:
    """Never a wildcard."""
    with pytest.raises(TenantError, match="no wildcard"):
        Memory(tmp_path / "memory.duckdb", tenant)


def as_it_was(memory: Memory) -> list[str]:
    """Contents of the facts as of now, from a copy of the past."""
    with memory.at(as_of=memory.clock()) as past:
        return [f.content for f in past.facts()]


@pytest.mark.parametrize(
    "reach",
    [
        lambda m, fact_id, run_id: m.facts(),
        lambda m, fact_id, run_id: m.facts(repo=REPO, min_runs=1),
        lambda m, fact_id, run_id: m.facts(engine="aider"),
        lambda m, fact_id, run_id: m.testimony(fact_id),
        lambda m, fact_id, run_id: ask(m, engine="aider").text,
        lambda m, fact_id, run_id: ask(m).facts,
        lambda m, fact_id, run_id: ask(m).known,
        lambda m, fact_id, run_id: ask(m, repo=None).known,
        lambda m, fact_id, run_id: list(m.export_rows()),
        lambda m, fact_id, run_id: list(m.export_rows(repo=REPO, recorded=True)),
        lambda m, fact_id, run_id: m.statistics()["runs"],
        lambda m, fact_id, run_id: m.statistics(repo=REPO)["groups"],
        lambda m, fact_id, run_id: m.forget(repo=REPO)[0],
        lambda m, fact_id, run_id: m.forget(repo=REPO, dry_run=True)[0],
        lambda m, fact_id, run_id: m.related(fact_id, 4),
        lambda m, fact_id, run_id: m.history(fact_id),
        lambda m, fact_id, run_id: m.changes(),
        lambda m, fact_id, run_id: m.feedback(),
        lambda m, fact_id, run_id: m.feedback(repo=REPO),
        lambda m, fact_id, run_id: as_it_was(m),
        lambda m, fact_id, run_id: m.store.injections(m.tenant),
        lambda m, fact_id, run_id: m.statistics()["patterns"],
        lambda m, fact_id, run_id: m.statistics()["expected"],
    ],
)
def test_another_tenant_reads_nothing(shared: Shared, tmp_path: Path, reach: Callable[[Memory, str, str], Any]) -> None:
    """Every read of another tenant is as of an empty memory; the same read of the owner gives something."""
    shutil.copy(shared.path, tmp_path / "memory.duckdb")

    nobody = reach(a_memory(tmp_path, "nobody"), shared.fact_id, shared.run_id)
    found = reach(a_memory(tmp_path, "incident-triage"), shared.fact_id, shared.run_id)

    assert not nobody
    assert all(word not in str(found) for word in ("pytest", REPO, "aider", "s1"))
    memory = a_memory(tmp_path)
    assert exported(memory) == shared.export
    assert reach(memory, shared.fact_id, shared.run_id)


@pytest.mark.parametrize(
    "reach",
    [
        lambda m, fact_id, run_id: m.fact(fact_id),
        lambda m, fact_id, run_id: m.fact(fact_id[:9]),
        lambda m, fact_id, run_id: m.retract(fact_id, "not mine"),
        lambda m, fact_id, run_id: m.edit(fact_id, "Not mine."),
        lambda m, fact_id, run_id: m.pin(fact_id, True),
        lambda m, fact_id, run_id: m.pin(fact_id, False),
        lambda m, fact_id, run_id: m.restore(fact_id),
        lambda m, fact_id, run_id: m.restorable(fact_id),
        lambda m, fact_id, run_id: m.forget(run=run_id),
        lambda m, fact_id, run_id: m.forget(run="s1"),
    ],
)
def test_another_tenant_changes_nothing(shared: Shared, reach: Callable[[Memory, str, str], Any]) -> None:
    """Every decision on a fact or run of another tenant is refused as on an unknown one, and leaves no trace."""
    with pytest.raises(InputError):
        reach(a_memory(shared.path.parent, "incident-triage"), shared.fact_id, shared.run_id)

    memory = a_memory(shared.path.parent)
    assert memory.store.generation() == shared.generation
    assert exported(memory) == shared.export


def test_tenants_that_saw_the_same_keep_facts_of_their_own(tmp_path: Path) -> None:
    """Equal words, other ids; retracting one leaves the other."""
    ours, theirs = a_memory(tmp_path), a_memory(tmp_path, "incident-triage")
    for memory in (ours, theirs):
        learn(memory, a_task_run("s1", TESTS_RUN))
    assert contents(ours) == contents(theirs)
    assert id_of(ours, "bin/test") != id_of(theirs, "bin/test")

    theirs.retract(id_of(theirs, "bin/test"), "")

    assert len(ours.facts()) == 1
    assert theirs.facts() == []


def test_a_row_of_another_tenant_is_not_imported(memory: Memory) -> None:
    """A file says whose it is; moving it takes an export without tenants."""
    with pytest.raises(TenantError, match="incident-triage"):
        memory.import_rows(rows({"content": "Somebody else's fact on carts.", "tenant_id": "incident-triage"}), name="rows")


# --- asking -----------------------------------------------------------------------------------------------------------


def test_a_block_tells_what_belongs_to_the_task(memory: Memory) -> None:
    """Text, the facts behind it, and that the repository is known."""
    block = ask(memory)
    assert block.known
    assert "`python -m pytest` fails here" in block.text
    assert block.text.count("\n- **") == len(block.facts) > 0


def test_unknown_and_known_but_empty_differ(memory: Memory) -> None:
    """Both give the empty string; `known` tells them apart, for repositories and for tenants."""
    stranger = a_memory(memory.store_path.parent, "incident-triage")
    unrelated = "translate the greeting on the landing page into Portuguese"
    assert ask(memory, unrelated) == Block("", (), known=True)
    assert ask(memory, repo="acme/unknown") == Block("", (), known=False)
    assert ask(memory, unrelated, repo=None) == Block("", (), known=True)
    assert ask(stranger, repo=None) == Block("", (), known=False)
    assert ask(stranger) == Block("", (), known=False)


def test_a_run_without_facts_makes_its_repository_known(tmp_path: Path) -> None:
    """It was read, and taught nothing."""
    memory = a_memory(tmp_path)
    learn(memory, a_task_run("s1"))
    assert memory.facts() == []
    assert ask(memory) == Block("", (), known=True)


def test_asking_writes_nothing(memory: Memory) -> None:
    """Every read leaves the file as it was, and makes none."""
    data = memory.store_path.read_bytes()
    fact_id = id_of(memory, "make lint")
    ask(memory), memory.facts(), memory.fact(fact_id), memory.testimony(fact_id), memory.statistics(), memory.verify(), memory.doctor()
    list(memory.export_rows())
    assert memory.store_path.read_bytes() == data

    nowhere = Memory(memory.store_path.parent / "no" / "store.duckdb", "ticketing")
    assert (ask(nowhere).text, nowhere.facts(), list(nowhere.export_rows()), nowhere.statistics()["runs"]) == ("", [], [], 0)
    assert nowhere.testimony(fact_id) == []
    assert nowhere.doctor()["state"] == "missing"
    assert not (memory.store_path.parent / "no").exists()


@pytest.mark.parametrize(
    "decide",
    [
        lambda m: m.retract("f1:00", "why"),
        lambda m: m.restore("f1:00"),
        lambda m: m.edit("f1:00", "New words."),
        lambda m: m.pin("f1:00", True),
        lambda m: m.fact("f1:00"),
        lambda m: m.restorable("f1:00"),
        lambda m: m.forget(run="s1"),
        lambda m: m.verify(),
    ],
)
def test_deciding_about_nothing_makes_no_store(tmp_path: Path, decide: Callable[[Memory], Any]) -> None:
    """A decision needs something to decide about."""
    with pytest.raises(InputError):
        decide(a_memory(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_is_an_error_of_the_store(tmp_path: Path) -> None:
    """Not an OSError from the depths."""
    with pytest.raises(StoreError, match="too long"):
        Memory(tmp_path / ("a" * 300), "ticketing").facts()


def test_bounds_of_a_block_hold(memory: Memory) -> None:
    """The number of bullets and the size are upper bounds, by argument before settings; none at all is possible."""
    whole = ask(memory, task_type="bug_fix")
    assert len(whole.facts) > 1
    assert len(ask(memory, task_type="bug_fix", max_facts=1).facts) == 1
    assert ask(memory, task_type="bug_fix", max_facts=0).text == ""
    small = ask(memory, task_type="bug_fix", budget_tokens=75)
    assert len(small.text) <= 300
    assert small.text.count("\n- ") == len(small.facts) == 1
    assert ask(memory, budget_tokens=0).text == ""
    narrow = Memory(memory.store_path, "ticketing", Settings(max_facts_per_query=1), FixedClock(NOW))
    assert len(ask(narrow, task_type="bug_fix").facts) == 1


def test_facts_that_have_faded_are_not_shown(memory: Memory) -> None:
    """At a later time the same memory is less sure, then silent; at the same time it says the same."""

    def at(days: int) -> Block:
        return ask(Memory(memory.store_path, "ticketing", clock=FixedClock(NOW + timedelta(days=days))))

    assert at(0) == at(0)
    soon, late = at(0).facts[0].parts["confidence"], at(60).facts[0].parts["confidence"]
    assert late < soon
    assert at(5000).text == ""


def test_facts_are_filtered_by_every_filter(memory: Memory) -> None:
    """Repository, engine, kind and number of runs; most supported first."""
    learn(memory, a_task_run("s3", sh("bin/test", "7 passed in 0.10s"), engine="opencode", repo="acme/till"))
    assert {f.owner for f in memory.facts()} == {REPO, "acme/till"}
    assert {f.owner for f in memory.facts(repo="acme/till")} == {"acme/till"}
    assert memory.facts(repo="acme/till", engine="aider") == []
    assert len(memory.facts(repo="acme/till", engine="opencode")) == 1
    assert {f.fact_kind for f in memory.facts(kind="failure_pattern")} == {"failure_pattern"}
    assert {f.runs for f in memory.facts(min_runs=2)} == {2}
    assert [f.runs for f in memory.facts()] == sorted((f.runs for f in memory.facts()), reverse=True)


def test_a_fact_is_found_by_the_beginning_of_its_id(memory: Memory) -> None:
    """With its tag or without; an ambiguous, empty or unknown beginning is an error that says so."""
    fact_id = id_of(memory, "make lint")
    assert memory.fact(fact_id).fact_id == memory.fact(fact_id[:10]).fact_id == memory.fact(fact_id[3:12]).fact_id == fact_id
    for prefix, says in (("f1:", "beginning of|no fact"), ("", "no fact"), ("f1:zz", "no fact"), ("%", "no fact"), ("r1:", "no fact")):
        with pytest.raises(InputError, match=says):
            memory.fact(prefix)


def test_testimony_names_every_run_and_its_words(memory: Memory) -> None:
    """Oldest first, with the place of each quote."""
    told = memory.testimony(id_of(memory, "python -m pytest"))
    assert [w["run"]["session"] for w in told] == ["s1", "s2"]
    assert all(w["evidence"] and w["source"].startswith("heuristic:") for w in told)
    assert any("No module named pytest" in e["quote"] for w in told for e in w["evidence"])
    assert memory.testimony("f1:unknown") == []


def test_many_facts_are_shortlisted_by_words(tmp_path: Path) -> None:
    """Of more facts than are ranked whole, the one that matches is found, however old it is."""
    memory = a_memory(tmp_path)
    crowd = ({"content": f"`tools/step{n}` needs the file `data/{n}.csv`.", "valid_from": "2026-05-09T00:00:00Z"} for n in range(3100))
    old = {"content": "`tools/ferry` refuses to dock without `--tide-table`.", "valid_from": "2026-02-01T00:00:00Z"}
    memory.import_rows(rows(old, *crowd), name="rows")
    block = ask(memory, "tools/ferry does not dock: it refuses the tide table")
    assert "--tide-table" in block.text
    assert block.known


# --- deciding ---------------------------------------------------------------------------------------------------------


def test_a_retracted_fact_stays_away(memory: Memory) -> None:
    """From every read, through new runs and new versions of its runs; restoring brings it back as it was."""
    fact = memory.fact(id_of(memory, "python -m pytest"))

    memory.retract(fact.fact_id, "the runner was replaced")
    learn(memory, a_task_run("s3", PYTEST_FAILS, TESTS_RUN), a_task_run("s2", PYTEST_FAILS, TESTS_RUN, LINT))

    assert "python -m pytest" not in " ".join(contents(memory)) + ask(memory).text + exported(memory).replace('"run"', "")
    with pytest.raises(InputError):
        memory.fact(fact.fact_id)
    assert memory.restorable(fact.fact_id[3:9]) == fact.fact_id

    memory.restore(fact.fact_id)

    assert memory.fact(fact.fact_id) == fact
    assert memory.verify() == []


def test_restoring_needs_a_name(memory: Memory) -> None:
    """The empty beginning is the beginning of every id; it names none."""
    memory.retract(id_of(memory, "make lint"), "")
    for prefix in ("", " ", "f1:", "f1:zzz"):
        with pytest.raises(InputError):
            memory.restorable(prefix)


def test_an_edited_wording_stays(memory: Memory) -> None:
    """Through a further run that says it in the old words; its id and evidence stay, and it is found by its new words."""
    fact_id = id_of(memory, "make lint")
    memory.edit(fact_id, "The linter is `make lint`; run it before the harbourmaster reviews.")

    learn(memory, a_task_run("s3", LINT))

    fact = memory.fact(fact_id)
    assert (fact.content, fact.runs) == ("The linter is `make lint`; run it before the harbourmaster reviews.", 2)
    assert "harbourmaster" in ask(memory, "what does the harbourmaster review with make lint?").text
    assert len(memory.testimony(fact_id)) == 2


def test_a_pinned_fact_stays(memory: Memory) -> None:
    """Through further runs and for years, where an unpinned one fades."""
    fact_id = id_of(memory, "python -m pytest")
    memory.pin(fact_id, True)

    learn(memory, a_task_run("s3", PYTEST_FAILS, TESTS_RUN))

    later = Memory(memory.store_path, "ticketing", clock=FixedClock(NOW + timedelta(days=5000)))
    assert memory.fact(fact_id).pinned
    assert [r.fact.fact_id for r in ask(later).facts] == [fact_id]
    memory.pin(fact_id, False)
    assert ask(later).facts == ()


def test_what_people_write_is_redacted(memory: Memory) -> None:
    """A reason, a wording and imported rows pass the same redaction as transcripts."""
    secret = "ghp_" + "q7Rt2LmZx9Vb4Nc8Kd3Hs6Jw1Yp5Ga0FuEiT"
    wording = memory.edit(id_of(memory, "make lint"), f"Lint with token {secret} set.")
    memory.retract(id_of(memory, "bin/test` runs"), f"leaks {secret}")
    memory.import_rows(rows({"content": f"Deploys want GITHUB_TOKEN={secret} in the environment."}), name="rows")
    assert "[REDACTED:" in wording
    assert wording in contents(memory)
    assert secret.encode() not in bytes_of(memory.store_path.parent)
    assert sum("[REDACTED:" in content for content in contents(memory)) == 2


# --- forgetting -------------------------------------------------------------------------------------------------------


def test_forgetting_needs_one_thing_to_forget(memory: Memory) -> None:
    """Neither nothing, which would be everything, nor two."""
    for chosen in ({}, {"run": "s1", "repo": REPO}):
        with pytest.raises(InputError, match="exactly one"):
            memory.forget(**chosen)
    assert len(memory.store.runs("ticketing")) == 2


@pytest.mark.parametrize("which", [{"run": "s-secretive"}, {"repo": "acme/secretive"}], ids=["run", "repo"])
def test_forgetting_removes_the_text(memory: Memory, which: dict[str, str]) -> None:
    """Not a byte of what only that run said is left in the folder; before, it was there; what others say stays."""
    learn(memory, a_task_run("s-secretive", sh("zebrafish build", "bash: zebrafish: command not found", 127), NO_JUST, repo="acme/secretive",
                             title="Feed the zebrafish", description="Feed the zebrafish."))  # fmt: skip
    ours, runs = exported(memory, repo=REPO), len(memory.store.runs("ticketing"))
    assert b"zebrafish" in bytes_of(memory.store_path.parent)
    planned = memory.forget(**which, dry_run=True)
    assert b"zebrafish" in bytes_of(memory.store_path.parent)

    done = memory.forget(**which)

    assert done == planned
    assert done[0] == 1
    assert done[1] >= 1
    assert b"zebrafish" not in bytes_of(memory.store_path.parent)
    assert exported(memory, repo=REPO) == ours
    assert len(memory.store.runs("ticketing")) == runs - 1
    assert memory.verify() == []


def test_forgetting_a_repository_takes_facts_by_hand_too(memory: Memory) -> None:
    """And the dry run counts them."""
    memory.import_rows(rows({"content": "Carts are frozen on Fridays, said the owner."}), name="rows")
    planned = memory.forget(repo=REPO, dry_run=True)
    assert memory.forget(repo=REPO) == planned == (2, 5)
    assert memory.facts() == []
    assert memory.forget(repo=REPO) == (0, 0)
    assert ask(memory).known is False


def test_a_forgotten_run_can_be_learned_again(memory: Memory) -> None:
    """Forgetting is no tombstone: who extracts the transcript again wants it back."""
    before = exported(memory)
    memory.forget(run="s2")
    assert exported(memory) != before
    learn(memory, a_task_run("s2", PYTEST_FAILS, TESTS_RUN, NO_JUST))
    assert exported(memory) == before


def test_a_run_is_forgotten_by_its_id_or_session(memory: Memory) -> None:
    """An unknown one is an error."""
    with pytest.raises(InputError, match="no run 's7'"):
        memory.forget(run="s7")
    run_id = next(r.run_id for r in memory.store.runs("ticketing") if r.session_id == "s1")
    assert memory.forget(run=run_id)[0] == 1
    assert memory.forget(run="s2")[0] == 1


# --- rows -------------------------------------------------------------------------------------------------------------


def test_an_export_imports_to_the_same_export(memory: Memory, tmp_path: Path) -> None:
    """Runs, facts, evidence, pins, wordings and links, byte for byte; a second import changes nothing."""
    memory.pin(id_of(memory, "make lint"), True)
    memory.edit(id_of(memory, "bin/test` runs"), "Run `bin/test`\u2028or nothing at all.")
    ends = sorted(f.fact_id for f in memory.facts())[:2]
    edge = {"type": "edge", "from": ends[0], "to": ends[1], "relation": "relates_to", "created_at": "2026-05-09T00:00:00Z"}
    memory.import_rows(json.dumps(edge).encode(), name="rows")
    text = exported(memory)
    assert '"type":"edge"' in text
    other = a_memory(tmp_path, name="other.duckdb")

    report = other.import_rows(text.encode(), name="rows")

    assert (report.rejected, report.known) == ((), 0)
    assert exported(other) == text
    again = other.import_rows(text.encode(), name="rows")
    assert exported(other) == text
    assert again.known == len(other.facts())
    assert other.verify() == []


def test_the_export_of_a_repository_is_whole_by_itself(memory: Memory, tmp_path: Path) -> None:
    """Its facts come with their evidence and runs, and nothing of other repositories."""
    learn(memory, a_task_run("s3", sh("till test", "bash: till: command not found", 127), repo="acme/till"))
    text = exported(memory, repo=REPO)
    assert "till" not in text
    assert text.count('"type":"evidence"') > 0
    assert set(text.splitlines()) < set(exported(memory).splitlines())
    other = a_memory(tmp_path, name="other.duckdb")
    assert other.import_rows(text.encode(), name="rows").rejected == ()
    assert exported(other, repo=REPO) == text


def test_bad_rows_are_named_and_the_rest_is_imported(tmp_path: Path) -> None:
    """With file, line and field; blank lines count as lines."""
    memory = a_memory(tmp_path)
    good = rows({"content": "Carts are frozen on Fridays."})
    bad = [
        b"{",
        b"[1]",
        b'{"type": "fct"}',
        b"[" * 100_000,
        b"\xff",
        *rows({"content": "A cart.", "confidnce": 1}, {"content": ""}).splitlines(),
    ]

    report = memory.import_rows(b"\n".join([*bad, b"", good]), name="rows.jsonl")

    assert report.added == 1
    assert [where for where, _ in report.rejected] == [f"rows.jsonl:{n}" for n in range(1, 8)]
    told = " ".join(reason for _, reason in report.rejected)
    assert all(word in told for word in ("did you mean `fact`", "did you mean `confidence`", "`content`"))
    assert "line" not in report.rejected[5][1]


def test_importing_only_bad_rows_stores_nothing(tmp_path: Path) -> None:
    """Nothing is added; a dry run does not even make a store."""
    memory = a_memory(tmp_path)
    assert memory.import_rows(rows({"content": "Fine, but only tried."}), name="rows", dry_run=True).added == 1
    assert not memory.store_path.exists()
    assert memory.import_rows(b"{\n{", name="rows")[:2] == (0, 0)
    assert memory.facts() == []


def test_unknown_fields_are_passed_over_on_request(tmp_path: Path) -> None:
    """And only then."""
    memory = a_memory(tmp_path)
    data = rows({"content": "Carts are frozen on Fridays.", "colour": "red"})
    assert memory.import_rows(data, name="rows").added == 0
    assert memory.import_rows(data, name="rows", ignore_unknown=True).added == 1


# --- the store --------------------------------------------------------------------------------------------------------


def test_statistics_count_runs_with_known_outcomes(tmp_path: Path) -> None:
    """A rate rests on known outcomes, and a sub-agent's run is no run of its own."""
    memory = a_memory(tmp_path)
    learn(memory, *(a_task_run(f"s{n}", TESTS_RUN, outcome=o) for n, o in enumerate(["success", "success", "failure", "unknown"])))
    learn(memory, a_task_run("s5", TESTS_RUN, outcome="success", parent_session_id="s1"))
    figures = memory.statistics(repo=REPO)
    (shop,) = [g for g in figures["groups"] if dict(g.key) == {"repo": REPO}]
    assert (figures["runs"], shop.runs, shop.known, shop.successes) == (4, 4, 3, 2)
    assert memory.statistics(repo="acme/unknown")["runs"] == 0


def test_imported_statistics_are_told_beside_those_of_the_runs(memory: Memory) -> None:
    """A pattern, and the profile of an engine that no run here is of; on the command line too."""
    given = [
        {"type": "pattern", "description": "Runs on Fridays fail more often.", "runs": 9, "hits": 7, "group": {"repo": REPO}},
        {"type": "engine_profile", "engine": "goose", "sample_count": 5, "success_rate": 0.8, "strengths": ["docs"]},
        {"type": "engine_profile", "engine": "aider", "sample_count": 99, "success_rate": 0.1},
    ]
    assert memory.import_rows(b"\n".join(json.dumps(row).encode() for row in given), name="rows").added == 3
    figures = memory.statistics()
    assert [p.description for p in memory.statistics(repo=REPO)["patterns"]] == ["Runs on Fridays fail more often."]
    assert {p.engine: p.sample_count for p in figures["profiles"]} == {"aider": 2, "goose": 5}
    told = osmia("stats", "--engines", "--patterns", "--store", memory.store_path).out
    assert "goose: 5 runs, 80% success\n    strong: docs" in told
    assert "Runs on Fridays fail more often." in told


def test_extraction_goes_through_broken_paths(tmp_path: Path) -> None:
    """A path that is not there is a skip, like any file that cannot be read."""
    (skip,) = a_memory(tmp_path).extract([str(tmp_path / "missing.jsonl")])
    assert isinstance(skip, Skip)
    assert "No such file" in skip.reason


def test_a_copied_store_is_a_store(memory: Memory, tmp_path: Path) -> None:
    """Nothing depends on the path it was made at."""
    shutil.copy(memory.store_path, tmp_path / "copy.duckdb")
    copy = a_memory(tmp_path, name="copy.duckdb")
    assert exported(copy) == exported(memory)
    assert osmia("verify", "--store", tmp_path / "copy.duckdb").out == "the store is sound\n"


def test_what_other_repositories_of_the_owner_share_is_told_where_it_fits(tmp_path: Path) -> None:
    """Two repositories and three runs; not to the repository's own facts beside it, not to other owners, not for another task, two lines at most."""
    memory = a_memory(tmp_path)
    org = REPO.partition("/")[0]
    shared = ["`make proto` needs `protoc` on the path.", "`protoc` output goes to `gen/`.", "`protoc` plugins are pinned in `buf.yaml`."]
    told = [
        {"content": content, "repo": f"{org}/{name}", "witnesses": [{"run_id": f"{name}-{n}"} for n in range(2)]}
        for content in shared
        for name in ("ledger", "billing")
    ]
    memory.import_rows(rows(*told, {"content": "The cart has a cache."}), name="rows")
    task = "regenerate the protoc output: `make proto` does not find protoc plugins of buf.yaml in gen/"
    text = ask(memory, task).text
    assert text.count("**Pattern**") == 2
    assert f"4 runs in other repositories of {org}" in text
    assert "**Pattern**" not in ask(memory, "the cart forgets its total").text
    assert "**Pattern**" not in ask(memory, task, repo="zeta/shop").text
    memory.import_rows(rows(*({"content": content} for content in shared)), name="own")
    assert "**Pattern**" not in ask(memory, task).text
