"""From transcripts to a store: what is learned, once, in whatever order, and what a new version of a run changes."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from osmia_memory import pipeline, reconcile
from osmia_memory.digest import digest, digests_of
from osmia_memory.extract import heuristics
from osmia_memory.memory import Memory
from osmia_memory.models import Insert, Reinforce, Retire, Skip
from osmia_memory.pipeline import RunReport, Totals
from osmia_memory.testing import NOW, Tape, a_run
from osmia_memory.transcripts.context import ReadOptions
from osmia_memory.transcripts.redact import Redactor
from osmia_memory.transcripts.sources import Source
from tests.product import (
    LINT,
    NO_JUST,
    PYTEST_FAILS,
    REPO,
    TESTS_RUN,
    a_memory,
    a_task_run,
    as_jsonl,
    contents,
    edits,
    exported,
    learn,
    says,
    sh,
)
from tests.transcripts import builders


def kinds(report: RunReport | Skip) -> list[str]:
    """Names of the decisions of a run that was stored."""
    assert isinstance(report, RunReport)
    assert report.plan is not None
    return sorted(type(decision).__name__ for decision in report.plan.decisions)


def writes(memory: Memory) -> int:
    """How often the store was written."""
    return memory.store.generation()


# --- what is learned --------------------------------------------------------------------------------------------------


def test_a_run_becomes_facts_with_the_words_of_the_transcript(tmp_path: Path) -> None:
    """What failed, what worked instead and how to lint; each with a quote that stands in the cited record."""
    memory = a_memory(tmp_path)
    run = a_task_run("s1", PYTEST_FAILS, TESTS_RUN, LINT)

    learn(memory, run)

    told = " | ".join(contents(memory))
    assert all(word in told for word in ("python -m pytest", "bin/test", "make lint"))
    for fact in memory.facts():
        assert (fact.owner, fact.runs, fact.tenant_id) == (REPO, 1, "ticketing")
        for witness in memory.testimony(fact.fact_id):
            assert all(e["quote"] in run["events"][e["event"]]["text"] for e in witness["evidence"])


def test_formats_of_engines_and_our_own_agree_on_a_fact(tmp_path: Path) -> None:
    """A Claude session and a TaskRun that saw the same are two witnesses of one fact."""
    claude = (
        builders.Claude(cwd="/srv/shop").user("Build it").bash("just build", "Exit code 127\nbash: just: command not found", is_error=True)
    )
    (tmp_path / "session.jsonl").write_bytes(claude.data())
    memory = a_memory(tmp_path)

    list(memory.extract([str(tmp_path / "session.jsonl")], repo=REPO))
    learn(memory, a_task_run("s1", NO_JUST))

    (fact,) = [f for f in memory.facts() if "`just`" in f.content]
    assert (fact.runs, fact.engines) == (2, ("aider", "claude-code"))


def test_a_preview_shows_plans_and_writes_nothing(tmp_path: Path) -> None:
    """Each run as if nothing were known, and no store."""
    memory = a_memory(tmp_path)

    reports = learn(memory, a_task_run("s1", TESTS_RUN), a_task_run("s2", TESTS_RUN), dry_run=True)

    assert [kinds(r) for r in reports] == [["Insert"], ["Insert"]]
    assert list(tmp_path.iterdir()) == []


def test_a_preview_takes_transcripts_built_by_hand() -> None:
    """The stage itself needs no file."""
    tape = Tape(a_run()).user("Build it").sh("just build", "bash: just: command not found", 127)

    (report,) = pipeline.preview([digest(tape.transcript())])

    assert kinds(report) == ["Insert"]


def test_what_cannot_be_read_is_a_skip_and_the_rest_goes_on(tmp_path: Path) -> None:
    """A broken file between two good ones."""
    for name, data in (
        ("a.jsonl", as_jsonl(a_task_run("a", TESTS_RUN))),
        ("b.jsonl", b"\x00\x01"),
        ("c.jsonl", as_jsonl(a_task_run("c", LINT))),
    ):
        (tmp_path / name).write_bytes(data)
    memory = a_memory(tmp_path)

    reports = list(memory.extract([str(tmp_path)]))

    assert sorted(Path(r.where).name for r in reports if isinstance(r, Skip)) == ["b.jsonl"]
    assert {r.session_id for r in memory.store.runs("ticketing")} == {"a", "c"}


def test_a_report_is_given_only_once_its_run_is_stored(tmp_path: Path) -> None:
    """Whoever stops reading reports has lost nothing that was reported."""
    memory = a_memory(tmp_path)
    runs = [a_task_run(f"s{n}", TESTS_RUN) for n in range(90)]

    stored_at_report = []
    for report in memory.extract(["-"], stdin=as_jsonl(*runs)):
        assert isinstance(report, RunReport)
        if len(stored_at_report) % 30 == 0:
            assert memory.store.run("ticketing", report.run.run_id)
        stored_at_report.append(report)

    assert len(memory.store.runs("ticketing")) == len(stored_at_report) == 90
    assert next(f.runs for f in memory.facts()) == 90


def test_totals_count_what_happened(tmp_path: Path) -> None:
    """Runs, decisions by kind, discards by reason and masks by kind."""
    memory = a_memory(tmp_path)
    reports = learn(memory, a_task_run("s1", TESTS_RUN), a_task_run("s2", TESTS_RUN, sh("cat /home/ada/notes")))

    totals = Totals()
    for report in [*reports, *learn(memory, a_task_run("s1", TESTS_RUN))]:
        assert isinstance(report, RunReport)
        totals.add(report)

    assert (totals.runs, totals.unchanged, totals.inserted, totals.reinforced, totals.retired) == (3, 1, 1, 1, 0)
    assert totals.masked["home"] == 1


# --- once -------------------------------------------------------------------------------------------------------------


def test_unchanged_runs_are_not_written_again(tmp_path: Path) -> None:
    """The second extraction plans nothing and leaves the store as it was, byte for byte."""
    memory = a_memory(tmp_path)
    runs = [a_task_run(f"s{n}", TESTS_RUN, LINT, NO_JUST) for n in range(3)]
    learn(memory, *runs)
    before, data = writes(memory), memory.store_path.read_bytes()

    reports = learn(memory, *runs)

    assert [(r.plan, r.applied.unchanged) for r in reports if isinstance(r, RunReport) and r.applied] == [(None, True)] * 3
    assert writes(memory) == before
    assert memory.store_path.read_bytes() == data


def test_the_shipped_runs_are_not_written_again(demo_store: Path, demo_runs: Path) -> None:
    """The same for every format."""
    memory = Memory(demo_store, "ticketing")
    before = writes(memory)

    reports = list(memory.extract([str(demo_runs)]))

    assert [isinstance(r, RunReport) and r.plan is None for r in reports] == [True] * 14
    assert writes(memory) == before


def test_one_run_given_twice_counts_once(tmp_path: Path) -> None:
    """The same file by two names is one run, one witness and one insertion."""
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(as_jsonl(a_task_run("s1", TESTS_RUN)))
    memory = a_memory(tmp_path)

    reports = list(memory.extract([str(tmp_path)]))

    assert [isinstance(r, RunReport) and r.plan is None for r in reports] == [False, True]
    assert [f.runs for f in memory.facts()] == [1]


# --- new versions -----------------------------------------------------------------------------------------------------

YOUNG = a_task_run("s1", NO_JUST, LINT)
GROWN = {**a_task_run("s1", NO_JUST, LINT, sh("bin/build", "built in 3 s"), TESTS_RUN), "finished_at": "2026-05-04T09:30:00Z"}
REPAIRED = a_task_run("s1", sh("just build", "built in 3 s"), LINT, TESTS_RUN)


def test_a_grown_file_is_a_new_version_whose_plan_is_a_diff(tmp_path: Path) -> None:
    """What is new is added, what still holds is kept, what no longer follows is retired; one run, no second population."""
    memory = a_memory(tmp_path)
    learn(memory, YOUNG)
    first = {f.content: f.fact_id for f in memory.facts()}

    (report,) = learn(memory, REPAIRED)

    assert isinstance(report, RunReport)
    assert report.plan is not None
    by_kind = {kind: [d for d in report.plan.decisions if isinstance(d, kind)] for kind in (Insert, Reinforce, Retire)}
    retired = [d.fact_id for d in by_kind[Retire] if isinstance(d, Retire)]
    assert retired == [fact_id for content, fact_id in first.items() if "`just` is not installed" in content]
    now = {f.content: f.fact_id for f in memory.facts()}
    assert {c for c in first if c in now} == {c for c in first if "make lint" in c}
    assert all(now[c] == first[c] for c in first if c in now)
    assert any("bin/test" in content for content in now)
    assert len(memory.store.runs("ticketing")) == 1
    assert memory.verify() == []


def test_a_new_version_equals_a_fresh_start(tmp_path: Path) -> None:
    """Nothing of the earlier version stays behind."""
    through, fresh = a_memory(tmp_path, name="a.duckdb"), a_memory(tmp_path, name="b.duckdb")
    learn(through, YOUNG)
    learn(through, GROWN)
    learn(fresh, GROWN)
    assert exported(through) == exported(fresh)


def test_a_new_outcome_beside_a_run_is_a_new_version(tmp_path: Path) -> None:
    """The transcript did not change, what is known of its end did."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(as_jsonl(a_task_run("s1", TESTS_RUN)))
    memory = a_memory(tmp_path)
    list(memory.extract([str(path)]))
    (tmp_path / "run.outcome.json").write_text(json.dumps({"outcome": "failure"}))

    (report,) = memory.extract([str(path)])

    assert isinstance(report, RunReport)
    assert report.plan is not None
    assert [r.outcome for r in memory.store.runs("ticketing")] == ["failure"]


def test_two_versions_of_a_run_in_one_call_end_as_the_later(tmp_path: Path) -> None:
    """A copy of a session made while it ran lies beside the whole one, before it or after it."""
    wanted = a_memory(tmp_path, name="wanted.duckdb")
    learn(wanted, GROWN)
    for number, order in enumerate(([YOUNG, GROWN], [GROWN, YOUNG])):
        memory = a_memory(tmp_path, name=f"{number}.duckdb")
        learn(memory, *order)
        assert exported(memory) == exported(wanted)
        assert memory.verify() == []


def test_an_earlier_state_of_a_stored_run_is_skipped_and_writes_nothing(tmp_path: Path) -> None:
    """Else a backup would undo what the rest of the session taught, at every extraction of the folder."""
    memory = a_memory(tmp_path)
    learn(memory, YOUNG, GROWN)
    before = writes(memory)

    reports = learn(memory, YOUNG, GROWN)

    assert isinstance(reports[0], Skip)
    assert "a later one is stored" in reports[0].reason
    assert isinstance(reports[1], RunReport)
    assert reports[1].plan is None
    assert writes(memory) == before


# --- in any order -----------------------------------------------------------------------------------------------------


def test_the_order_of_import_does_not_matter(tmp_path: Path) -> None:
    """Four runs of which one gives other numbers than another, in six orders: the same export byte for byte."""
    runs = [
        a_task_run("s1", PYTEST_FAILS, TESTS_RUN, day=3),
        a_task_run("s2", NO_JUST, sh("bin/test", "41 passed in 2.50s"), LINT, day=4, engine="opencode"),
        a_task_run("s3", LINT, says("Use `bin/test`, never `python -m pytest`, in this repo.", "user"), day=4),
        a_task_run("s4", edits("shop/cart.py"), TESTS_RUN, NO_JUST, day=5, outcome="success"),
    ]
    exports = set()
    for number, order in enumerate(list(itertools.permutations(runs))[::4]):
        memory = a_memory(tmp_path, name=f"{number}.duckdb")
        learn(memory, *order)
        exports.add(exported(memory))
    (only,) = exports
    assert only.count('"type":"run"') == 4


def test_one_call_or_many_make_no_difference(tmp_path: Path, demo_store: Path, demo_runs: Path) -> None:
    """The shipped runs, engine by engine and last first, know what they know together."""
    memory = a_memory(tmp_path)
    for folder in sorted(demo_runs.iterdir(), reverse=True):
        files = sorted(p for p in folder.iterdir() if not p.name.endswith(".outcome.json"))
        list(memory.extract([str(path) for path in reversed(files)]))
    assert exported(memory) == exported(Memory(demo_store, "ticketing"))


# --- what a model added -----------------------------------------------------------------------------------------------


def with_a_model_s_word(memory: Memory, run: dict[str, Any]) -> str:
    """Store a run as if a model had proposed one more fact; the fact's content."""
    (found,) = [d for d in digests_of(Source("run.json", json.dumps(run).encode()), memory_options(memory), {}) if not isinstance(d, Skip)]
    assert found.extraction is not None
    proposed = replace(
        found.extraction.candidates[0], content="Rounding happens once, in `totals.py`.", claim=None, source="llm:extract_facts@v1:abc123"
    )
    plan = reconcile.plan(found.run, (*found.extraction.candidates, proposed), {})
    memory.store.apply(plan, recorded_at=NOW, extractor=heuristics.EXTRACTOR + "+extract_facts@v1:abc123")
    return proposed.content


def memory_options(memory: Memory) -> ReadOptions:
    """How this memory reads transcripts."""
    return ReadOptions(tenant=memory.tenant, redactor=Redactor(memory.store.redaction_key()))


def test_what_a_model_said_of_a_run_outlives_new_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was paid for; rules that read the same version anew keep it, and the stored run still says so."""
    memory = a_memory(tmp_path)
    run = a_task_run("s1", PYTEST_FAILS, TESTS_RUN)
    content = with_a_model_s_word(memory, run)
    (unchanged,) = learn(memory, run)
    assert isinstance(unchanged, RunReport)
    assert unchanged.plan is None

    monkeypatch.setattr(heuristics, "EXTRACTOR", "heuristics@newer")
    (again,) = learn(memory, run)

    assert isinstance(again, RunReport)
    assert again.plan is not None
    assert content in contents(memory)
    assert memory.store.run_version("ticketing", again.run.run_id) == (again.run.version, "heuristics@newer+extract_facts@v1:abc123")


def test_what_a_model_said_of_a_run_goes_with_the_version_it_read(tmp_path: Path) -> None:
    """A grown file is another text; the model has to read it again."""
    memory = a_memory(tmp_path)
    content = with_a_model_s_word(memory, a_task_run("s1", PYTEST_FAILS, TESTS_RUN))

    learn(memory, a_task_run("s1", PYTEST_FAILS, TESTS_RUN, LINT))

    assert content not in contents(memory)
