"""Plans in, knowledge out: replaced versions, idempotence, refolds, tenants."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from osmia_memory import ids, reconcile
from osmia_memory.errors import InternalError, TenantError
from osmia_memory.models import Applied, Environment, Insert, Plan, Reinforce, Signal, Witness
from osmia_memory.store.applying import state_after
from osmia_memory.store.fact_store import FactStore
from osmia_memory.testing import NOW, a_candidate, a_run, an_evidence
from tests.store.builders import EXTRACTOR, REPO, TENANT, a_claim, plan_for, remember, remember_text, says, without_recording

LATER = NOW + timedelta(days=3)


def test_what_was_stored_comes_back_equal(store: FactStore) -> None:
    """Runs, facts, testimony and evidence survive the way through the file field by field."""
    run = a_run(
        "s1",
        segment="2",
        model="m-1",
        language="python",
        outcome="partial",
        labels=("a", "b"),
        branch="main",
        base_commit="abc",
        environment=Environment(os="linux", shell="bash"),
        signals=(Signal("tests", "failed", 3), Signal("claim", "done")),
        duration_s=12.5,
        cost_usd=0.25,
        tokens_in=2**40,
        tokens_out=7,
        attempts=2,
        times_assumed=True,
        parent_session_id="s0",
        source="run.jsonl",
        finished_at=None,
    )
    run = replace(run, run_id=ids.run_id(TENANT, run.engine, "s1", "2"))
    quote = 'error: "naïve" \u202e\x00 🐝\n## not a heading'
    evidence = (
        an_evidence(run.run_id, quote=quote, at=NOW, event_index=4, record=9, status="folded", origin="o-1"),
        an_evidence(run.run_id, quote="", at=NOW - timedelta(microseconds=1), polarity="refutes"),
    )
    candidate = says(
        run,
        "`make test` fails\nwithout a database",
        evidence=evidence,
        claim=a_claim("make test"),
        anchors=("file:a.py",),
        tags=("standing",),
    )
    plan = plan_for(store, run, [candidate])

    store.apply(plan, recorded_at=LATER, extractor=EXTRACTOR)

    (fact,) = store.facts(TENANT)
    assert store.run(TENANT, run.run_id) == run
    assert store.runs(TENANT, "acme/shop") == [run]
    assert fact.recorded_at == LATER
    assert without_recording(fact) == plan.facts[0]
    assert store.witnesses(TENANT, fact.fact_id) == (Witness(fact.fact_id, run.run_id, candidate, NOW),)
    assert store.evidence(TENANT, fact.fact_id) == [evidence[1], evidence[0]]
    assert store.verify(reconcile.refold) == []


def test_same_version_again_writes_nothing(store: FactStore) -> None:
    """The key is the run's version and the extractor's: equal, and not even the generation moves."""
    run = a_run()
    first = remember(store, run, says(run, "Tests are run with `pytest`."))
    generation, content = store.generation(), store.path.read_bytes()

    again = remember(store, run, says(run, "Something else."))

    assert first == Applied(inserted=1)
    assert again == Applied(unchanged=True)
    assert (store.generation(), store.path.read_bytes()) == (generation, content)
    assert store.run_version(TENANT, run.run_id) == ("v1", EXTRACTOR)
    assert store.run_versions(TENANT) == {run.run_id: ("v1", EXTRACTOR)}
    assert store.known_runs(TENANT) == {run.run_id}


def test_new_extractor_reads_the_same_version_again(store: FactStore) -> None:
    """A new extractor version is a reason to write."""
    run = a_run()
    remember(store, run, says(run, "Tests are run with `pytest`."))

    applied = store.apply(plan_for(store, run, [says(run, "Tests are run with `tox`.")]), recorded_at=NOW, extractor="rules@2")

    assert applied == Applied(inserted=1, retired=1)
    assert [f.content for f in store.facts(TENANT)] == ["Tests are run with `tox`."]


def test_new_version_replaces_what_the_run_said(store: FactStore) -> None:
    """A grown file adds, keeps and retires; nothing of the old version is doubled, and kept facts keep the time they were recorded."""
    old = a_run()
    remember(store, old, says(old, "Kept.", quotes=["one"]), says(old, "Dropped."), at=NOW)
    new = replace(old, version="v2")

    applied = remember(store, new, says(new, "Kept.", quotes=["one", "two"]), says(new, "Added."), at=LATER)

    facts = {f.content: f for f in store.facts(TENANT)}
    assert applied == Applied(inserted=2, retired=1)  # it alone says "Kept.", so it says it anew
    assert set(facts) == {"Kept.", "Added."}
    assert [e.quote for e in store.evidence(TENANT, facts["Kept."].fact_id)] == ["one", "two"]
    assert (facts["Kept."].recorded_at, facts["Added."].recorded_at) == (NOW, LATER)
    assert len(store.runs(TENANT)) == 1
    assert store.verify(reconcile.refold) == []


def test_fact_that_others_support_outlives_its_retirement(store: FactStore) -> None:
    """When one run takes its word back, the fact is folded from the rest."""
    one, other = a_run("s1"), a_run("s2", at=LATER)
    claim = a_claim("pytest")
    remember(store, one, says(one, "Tests are run with `pytest`.", claim=claim))
    remember(store, other, says(other, "Tests are run with `pytest`.", claim=claim, at=LATER))
    assert [f.runs for f in store.facts(TENANT)] == [2]

    remember(store, replace(other, version="v2"))

    (fact,) = store.facts(TENANT)
    assert (fact.runs, fact.last_seen) == (1, NOW)
    assert store.facts_of_run(TENANT, other.run_id) == set()
    assert store.facts_of_run(TENANT, one.run_id) == {fact.fact_id}
    assert store.verify(reconcile.refold) == []


def test_many_plans_at_once_equal_one_after_the_other(store: FactStore) -> None:
    """A batch in one transaction leaves the same knowledge as single writes; `state_after` stands in for asking the store."""
    single = FactStore(store.path.parent / "single.duckdb")
    runs = [a_run(f"s{n}", at=NOW + timedelta(hours=n)) for n in range(6)] + [a_run("s1", version="v2")]
    said = [[says(r, f"Part {k} is built with `make`.", claim=a_claim(f"make {k}")) for k in range(n % 4, 5)] for n, r in enumerate(runs)]
    for run, candidates in zip(runs, said, strict=True):
        remember(single, run, *candidates, vocabulary=["make"])

    state = store.state_for(TENANT, [])
    previous: dict[str, frozenset[str]] = {}
    plans = []
    for run, candidates in zip(runs, said, strict=True):
        plan = reconcile.plan(run, candidates, state, previous=previous.get(run.run_id, frozenset()))
        previous[run.run_id] = frozenset(d.witness.fact_id for d in plan.decisions if isinstance(d, Insert | Reinforce))
        state = state_after(state, plan)
        plans.append(plan)
    applied = store.apply_many(plans, recorded_at=NOW, extractors=[EXTRACTOR] * len(plans), vocabularies=[["make"]] * len(plans))

    assert len(applied) == 7
    assert store.generation() == 1
    assert store.states(TENANT) == single.states(TENANT)
    assert {k: (without_recording(f), w) for k, (f, w) in store.states(TENANT).items()} == {
        k: (without_recording(f), w) for k, (f, w) in state.items()
    }
    assert store.runs(TENANT) == single.runs(TENANT)
    assert store.verify(reconcile.refold) == []


def test_testimony_by_hand_adds_up_and_stores_no_run(store: FactStore) -> None:
    """Plans of the run "" belong to no transcript: each adds or replaces its own facts' manual testimony, and no other's."""
    by_hand = replace(a_run(), run_id="")
    for content in ("First.", "Second.", "First."):
        candidate = a_candidate(content, run_id="", evidence=())
        fact_id = ids.fact_id(TENANT, *REPO, None, content)
        witness = Witness(fact_id, "", candidate, NOW)
        store.apply(Plan(by_hand, (Insert(witness),), (reconcile.fold(TENANT, [witness]),)), recorded_at=NOW)

    assert sorted((f.content, f.runs) for f in store.facts(TENANT)) == [("First.", 1), ("Second.", 1)]
    assert store.runs(TENANT) == []
    assert store.verify(reconcile.refold) == []


def test_what_people_set_survives_new_evidence(store: FactStore) -> None:
    """Pins, weights and wordings stay when later runs fold the fact anew."""
    (fact_id,) = remember_text(store, "s1", "Tests are run with `pytest`.")
    store.pin(TENANT, fact_id)
    store.set_importance(TENANT, fact_id, 1.5)
    store.edit(TENANT, fact_id, "Run the tests with `pytest -x`.")

    remember_text(store, "s2", "Tests are run with `pytest`.")

    fact = store.fact(TENANT, fact_id)
    assert fact is not None
    assert (fact.runs, fact.pinned, fact.importance, fact.content) == (2, True, 1.5, "Run the tests with `pytest -x`.")
    assert store.verify(reconcile.refold) == []


def test_retracted_fact_stays_away_even_if_the_plan_does_not_know(store: FactStore) -> None:
    """A tombstone is consulted on write; what later runs say of the fact is not added to it."""
    (fact_id,) = remember_text(store, "s1", "Tests are run with `pytest`.")
    run = a_run("s2")
    unaware = plan_for(store, run, [says(run, "Tests are run with `pytest`."), says(run, "Other.")])
    store.retract(TENANT, fact_id, "it is tox")

    store.apply(unaware, recorded_at=NOW, extractor=EXTRACTOR)

    assert [f.content for f in store.facts(TENANT)] == ["Other."]
    store.restore(TENANT, fact_id)
    assert [w.run_id for w in store.witnesses(TENANT, fact_id)] == [a_run("s1").run_id]
    assert store.verify(reconcile.refold) == []


def test_gone_fact_releases_what_it_superseded(store: FactStore) -> None:
    """If the run behind a newer value takes it back, the older value is current again."""
    old_id, new_id = remember_text(store, "s1", "Old.")[0], remember_text(store, "s2", "New.")[0]
    run = a_run("s3")
    fact = store.fact(TENANT, old_id)
    assert fact is not None
    store.apply(Plan(run, (), (replace(fact, superseded_by=new_id, valid_to=LATER),)), recorded_at=NOW)
    assert [f.content for f in store.facts(TENANT)] == ["New."]
    assert len(store.facts(TENANT, include_superseded=True)) == 2

    remember(store, replace(a_run("s2"), version="v2"))

    (current,) = store.facts(TENANT)
    assert (current.content, current.superseded_by, current.valid_to) == ("Old.", None, None)


@pytest.mark.parametrize("tenant", ["", "  ", "\n"])
def test_run_without_tenant_is_refused(store: FactStore, tenant: str) -> None:
    """A missing tenant is an error, never a wildcard."""
    with pytest.raises(TenantError, match="a tenant is required"):
        store.apply(Plan(a_run(tenant=tenant), (), ()), recorded_at=NOW)
    assert not store.path.exists()


def test_plan_must_keep_to_its_tenant_and_run(store: FactStore) -> None:
    """A fact of another tenant or testimony of another run in a plan is refused before anything is written."""
    run, foreign = a_run("s1"), a_run("s1", tenant="incident-triage")
    strange = plan_for(store, foreign, [says(foreign, "Theirs.")])

    with pytest.raises(TenantError, match="incident-triage"):
        store.apply(Plan(run, (), strange.facts), recorded_at=NOW)
    with pytest.raises(InternalError, match="testimony of run"):
        store.apply(Plan(run, strange.decisions, ()), recorded_at=NOW)
    assert not store.path.exists()


def test_times_are_moments(store: FactStore) -> None:
    """A time in another zone is stored as the moment it means; one without a zone is refused."""
    tokyo = timezone(timedelta(hours=9))
    run = a_run("s1", at=datetime(2026, 3, 1, 9, 0, 0, 123456, tzinfo=tokyo))
    remember(store, run, says(run, "Tests are run with `pytest`.", at=run.started_at or NOW))

    (fact,) = store.facts(TENANT)
    assert fact.valid_from == datetime(2026, 3, 1, 0, 0, 0, 123456, tzinfo=UTC)
    with pytest.raises(ValueError, match="has no zone"):
        remember(store, a_run("s2", started_at=datetime(2026, 3, 1)), says(a_run("s2"), "Other."))  # noqa: DTZ001


def test_halves_of_surrogate_pairs_do_not_stop_a_batch(store: FactStore) -> None:
    """Text that UTF-8 cannot hold is stored with a mark in its place, so that every span still fits."""
    run = a_run("s1", title="broken \ud83d title")
    remember(store, run, says(run, "Output has \udc1d in it.", quotes=["x \ud83d y"], claim=a_claim("x")), vocabulary=["a\ud83d"])

    (fact,) = store.facts(TENANT)
    assert fact.content == "Output has ? in it."
    assert [e.quote for e in store.evidence(TENANT, fact.fact_id)] == ["x ? y"]
    assert store.runs(TENANT)[0].title == "broken ? title"
    assert store.verify(reconcile.refold) == []
