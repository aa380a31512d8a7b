"""Export and import: byte-equal round trips, facts by hand, evidence, links, other tenants."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from osmia_memory import ids, reconcile
from osmia_memory.errors import InputError, RowError, TenantError
from osmia_memory.models import Edge, Environment, Plan, Signal
from osmia_memory.store import rows
from osmia_memory.store.fact_store import FactStore
from osmia_memory.testing import NOW, a_run, an_evidence
from tests.store.builders import REPO, TENANT, a_claim, remember, remember_text, says

FOLD = reconcile.refold(TENANT)
LATER = NOW + timedelta(days=30)


def text_of(store: FactStore, tenant: str | None = TENANT, **options: Any) -> str:
    """The export as a file."""
    return "".join(rows.line(row) + "\n" for row in store.export_rows(tenant, **options))


def import_text(store: FactStore, text: str, tenant: str = TENANT) -> Any:
    """Import a file."""
    parsed = [rows.parse(line, f"line {n}") for n, line in enumerate(text.splitlines(), 1)]
    return store.import_rows(tenant, parsed, reconcile.refold(tenant), recorded_at=LATER)


def import_dicts(store: FactStore, *given: dict[str, Any]) -> Any:
    """Import rows given as objects."""
    return store.import_rows(TENANT, [rows.parse(row) for row in given], FOLD, recorded_at=LATER)


@pytest.fixture
def rich(store: FactStore) -> FactStore:
    """A store with something of everything."""
    run = a_run(
        "s1",
        model="m-1",
        language="go",
        outcome="success",
        labels=("x",),
        branch="main",
        base_commit="abc",
        environment=Environment(os="linux"),
        signals=(Signal("tests", "passed", 4),),
        cost_usd=0.25,
        times_assumed=True,
        attempts=2,
    )
    quotes = (
        an_evidence(run.run_id, quote="no", at=NOW - timedelta(microseconds=5), polarity="refutes", span=(3, 5)),
        an_evidence(run.run_id, quote="ünï", event_index=7, record=9, at=NOW, origin="o", status="folded"),
    )
    remember(
        store,
        run,
        says(run, "Tests are run with `go test`.", evidence=quotes, claim=a_claim("go test"), anchors=("file:a.go",), tags=("standing",)),
        says(run, "The engine forgets.", scope="engine", owner="codex", engine=None, task_type=None),
        vocabulary=["go", "cmd/main.go"],
    )
    other = a_run("s2", engine="aider", at=NOW + timedelta(hours=3), started_at=None, finished_at=None, segment="")
    remember(
        store,
        other,
        says(
            other,
            "Tests are run with `go test ./...`.",
            claim=a_claim("go test"),
            engine="aider",
            confidence=0.9,
            at=NOW + timedelta(hours=3),
        ),
        says(other, "Old.", at=NOW),
    )
    by_text = {f.content: f for f in store.facts(TENANT)}
    old, engine = by_text["Old."], by_text["The engine forgets."]
    store.apply(Plan(a_run("s3"), (), (replace(old, superseded_by=engine.fact_id, valid_to=LATER, recorded_at=None),)), recorded_at=NOW)
    store.link(
        TENANT,
        [Edge(engine.fact_id, old.fact_id, "supersedes", 0.5, "newer", NOW), Edge(old.fact_id, run.run_id, "relates_to", 1, "", NOW)],
    )
    store.pin(TENANT, engine.fact_id)
    store.set_importance(TENANT, engine.fact_id, 1.5)
    store.edit(TENANT, engine.fact_id, "The engine forgets its folder.")
    import_dicts(
        store,
        {"type": "fact", "content": "By hand.", "fact_kind": "general", "repo": "acme/shop", "valid_from": "2026-02-01T00:00:00Z"},
        {"type": "pattern", "description": "Tasks succeed.", "frequency": 4, "group": {"engine": "codex"}, "interval": [0.1, 0.9]},
        {"type": "engine_profile", "engine": "codex", "sample_count": 4, "by_group": {"task_type=docs": [1, 2]}},
    )
    return store


def test_round_trip_is_byte_equal(rich: FactStore, tmp_path: Path) -> None:
    """Export, import into an empty store, export again: the same bytes, the same knowledge, the same answers, nothing broken."""
    copy = FactStore(tmp_path / "copy.duckdb")
    exported = text_of(rich)

    done = import_text(copy, exported)

    assert text_of(copy) == exported
    assert (done.added, done.extended, done.unchanged, done.runs, done.edges, done.statistics) == (4, 0, 0, 3, 2, 2)
    assert [replace(f, recorded_at=None) for f in copy.facts(TENANT, include_superseded=True)] == [
        replace(f, recorded_at=None) for f in rich.facts(TENANT, include_superseded=True)
    ]
    assert copy.runs(TENANT) == rich.runs(TENANT)
    assert copy.run_versions(TENANT) == rich.run_versions(TENANT)
    assert copy.edges(TENANT) == rich.edges(TENANT)
    assert {k: w for k, (_, w) in copy.states(TENANT).items()} == {k: w for k, (_, w) in rich.states(TENANT).items()}
    assert copy.search(TENANT, [REPO], ["go", "test"], 9) == rich.search(TENANT, [REPO], ["go", "test"], 9)
    assert copy.terms_known(TENANT, "acme/shop", ["cmd/main.go"]) == {"cmd/main.go"}
    assert copy.imported_statistics(TENANT) == rich.imported_statistics(TENANT)
    assert copy.verify(reconcile.refold) == []
    assert rich.verify(reconcile.refold) == []


def test_equal_knowledge_exports_equal_bytes(tmp_path: Path) -> None:
    """Neither the order of runs nor the time of recording shows in an export; on request the times are there and survive."""
    stores = [FactStore(tmp_path / f"{n}.duckdb") for n in range(2)]
    for store, order in zip(stores, ([0, 1, 2], [2, 0, 1]), strict=True):
        for n in order:
            run = a_run(f"s{n}", at=NOW + timedelta(hours=n))
            said = says(run, "Shared.", claim=a_claim("x"), at=NOW + timedelta(hours=n))
            remember(store, run, said, says(run, f"Own {n}."), at=LATER + timedelta(days=n + order[0]))

    assert text_of(stores[0]) == text_of(stores[1])
    timed = text_of(stores[0], recorded=True)
    assert timed != text_of(stores[1], recorded=True)
    copy = FactStore(tmp_path / "copy.duckdb")
    import_text(copy, timed)
    assert text_of(copy, recorded=True) == timed


def test_second_import_changes_nothing(rich: FactStore) -> None:
    """Rows equal to what is known reinforce nothing and are reported as such."""
    exported, facts = text_of(rich), rich.facts(TENANT)

    done = import_text(rich, exported)

    assert (done.added, done.extended, done.unchanged, done.runs) == (0, 0, 4, 0)
    assert text_of(rich) == exported
    assert rich.facts(TENANT) == facts


def test_import_adds_other_runs_testimony(tmp_path: Path) -> None:
    """Two stores that saw different runs come together as if one had seen them all."""
    one, two, both = (FactStore(tmp_path / f"{name}.duckdb") for name in ("one", "two", "both"))
    for n, store in enumerate((one, two)):
        for each in (store, both):
            run = a_run(f"s{n}", at=NOW + timedelta(hours=n))
            remember(each, run, says(run, "Shared.", claim=a_claim("x"), at=NOW + timedelta(hours=n)), says(run, f"Own {n}."))

    done = import_text(one, text_of(two))

    assert (done.added, done.extended, done.runs) == (1, 1, 1)
    assert text_of(one) == text_of(both)


def test_fact_without_evidence_is_a_manual_one(store: FactStore) -> None:
    """A bare row becomes a fact with one witness, under the owner that it names, at its time or the import's."""
    done = import_dicts(
        store,
        {"type": "fact", "content": "For the repository.", "fact_kind": "repo_behaviour", "repo": "acme/shop", "confidence": 0.4},
        {
            "type": "fact",
            "content": "For the engine.",
            "fact_kind": "engine_capability",
            "engine": "codex",
            "valid_from": "2026-01-01T00:00:00Z",
        },
        {
            "type": "fact",
            "content": "For the organisation.",
            "fact_kind": "general",
            "scope": "org",
            "repo": "acme/shop",
            "importance": "pinned",
        },
    )

    facts = {f.content: f for f in store.facts(TENANT)}
    assert done.added == 3
    assert [(f.scope, f.owner) for _, f in sorted(facts.items())] == [("engine", "codex"), ("org", "acme"), ("repo", "acme/shop")]
    repository, engine = facts["For the repository."], facts["For the engine."]
    assert (repository.fact_kind, repository.confidence, repository.valid_from, repository.runs) == ("repo_quirk", 0.4, LATER, 1)
    assert engine.valid_from.isoformat() == "2026-01-01T00:00:00+00:00"
    assert facts["For the organisation."].pinned
    assert store.evidence(TENANT, repository.fact_id) == []
    assert len(store.search(TENANT, [REPO], ["repository", "repositori"], 5) + store.search(TENANT, [REPO], ["for"], 5)) <= 2
    assert store.verify(reconcile.refold) == []


def test_known_text_saved_again_as_pinned_is_pinned(store: FactStore) -> None:
    """A repetition by hand adds no witness, but its pin counts."""
    remember_text(store, "s1", "Tests are run with `pytest`.")
    row = {"type": "fact", "content": "tests are run with `pytest`", "fact_kind": "repo_quirk", "repo": "acme/shop"}

    assert import_dicts(store, row).unchanged == 1
    assert import_dicts(store, {**row, "pinned": True}).extended == 1

    (fact,) = store.facts(TENANT)
    assert (fact.runs, fact.pinned, fact.content) == (1, True, "Tests are run with `pytest`.")
    assert store.verify(reconcile.refold) == []


def test_evidence_makes_witnesses(store: FactStore) -> None:
    """Evidence rows of three runs make a fact of three witnesses; a run without a row of its own gets a bare one."""
    fact = {"type": "fact", "fact_id": "n1", "content": "Port 1 is taken.", "fact_kind": "general", "repo": "acme/shop", "engine": "aider"}
    quotes = [
        {
            "type": "evidence",
            "fact_id": "n1",
            "run_id": f"old-{n}",
            "quote": f"quote {n}",
            "observed_at": f"2026-01-0{n + 1}T00:00:00Z",
            "branch": "dev",
        }
        for n in range(3)
    ]

    import_dicts(store, *quotes, fact)

    (found,) = store.facts(TENANT)
    assert found.fact_id == ids.fact_id(TENANT, "repo", "acme/shop", None, "Port 1 is taken.")
    assert found.runs == 3
    assert [e.quote for e in store.evidence(TENANT, found.fact_id)] == ["quote 0", "quote 1", "quote 2"]
    assert {(r.session_id, r.engine, r.repo, r.branch) for r in store.runs(TENANT)} == {
        (f"old-{n}", "aider", "acme/shop", "dev") for n in range(3)
    }
    assert store.verify(reconcile.refold) == []


def test_import_under_another_tenant_moves_knowledge(rich: FactStore) -> None:
    """An export without tenants can be imported for any; ids, links and marks follow, and the first tenant keeps its own."""
    before = text_of(rich)

    import_text(rich, before, tenant="incident-triage")

    theirs, ours = rich.facts("incident-triage", include_superseded=True), rich.facts(TENANT, include_superseded=True)
    assert [(f.content, f.confidence, f.pinned, f.runs) for f in theirs] == [(f.content, f.confidence, f.pinned, f.runs) for f in ours]
    assert not {f.fact_id for f in theirs} & {f.fact_id for f in ours}
    assert {f.superseded_by for f in theirs} - {None} <= {f.fact_id for f in theirs}
    assert len(rich.edges("incident-triage")) == 2
    assert text_of(rich) == before
    assert rich.verify(reconcile.refold) == []


def test_all_tenants_are_named_in_their_rows(rich: FactStore) -> None:
    """A whole-graph export says whose each row is; importing it for somebody else is refused."""
    remember_text(rich, "s1", "Theirs.", tenant="incident-triage")

    exported = rich.export_rows(None, all_tenants=True)

    assert {row.tenant_id for row in exported} == {TENANT, "incident-triage"}
    theirs = [row for row in exported if row.tenant_id == "incident-triage"]
    with pytest.raises(TenantError, match="incident-triage"):
        rich.import_rows(TENANT, theirs, FOLD, recorded_at=LATER)
    for tenant in ("", " "):
        with pytest.raises(TenantError):
            rich.import_rows(tenant, theirs, FOLD, recorded_at=LATER)
    copy = FactStore(rich.path.parent / "copy.duckdb")
    for tenant in (TENANT, "incident-triage"):
        mine = [row for row in exported if row.tenant_id == tenant]
        copy.import_rows(tenant, mine, reconcile.refold(tenant), recorded_at=LATER)
    assert text_of(copy, None, all_tenants=True) == text_of(rich, None, all_tenants=True)


def test_retracted_fact_is_not_imported_again(store: FactStore) -> None:
    """A tombstone holds against imports too, and the report says so."""
    (fact_id,) = remember_text(store, "s1", "Tests are run with `pytest`.")
    store.retract(TENANT, fact_id, "wrong")

    done = import_dicts(store, {"type": "fact", "content": "Tests are run with `pytest`.", "fact_kind": "general", "repo": "acme/shop"})

    assert (done.added, done.retracted) == (0, 1)
    assert store.facts(TENANT) == []


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([{"type": "fact", "content": "Whose?", "fact_kind": "general"}], RowError, "has no owner; give `owner`, `repo` or `engine`"),
        ([{"type": "evidence", "fact_id": "f1:x", "run_id": "r", "quote": "q"}], RowError, "evidence names the fact 'f1:x'"),
        ([{"type": "edge", "from": "f1:x", "to": "f1:y", "relation": "relates_to"}], InputError, "'f1:x' is none"),
    ],
)
def test_rows_that_do_not_connect_are_refused_as_a_whole(
    store: FactStore, given: list[dict[str, Any]], error: type[Exception], message: str
) -> None:
    """An import happens completely or not at all."""
    good = {"type": "fact", "content": "Good.", "fact_kind": "general", "repo": "acme/shop"}

    with pytest.raises(error, match=message.replace("?", r"\?")):
        import_dicts(store, good, *given)

    assert store.facts(TENANT) == []
    assert import_dicts(store, good).added == 1
