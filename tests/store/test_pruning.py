"""The decay pass in the store: text that goes for good, stubs that stay, and what stays because other facts lean on it."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from osmia_memory import aging, reconcile
from osmia_memory.models import Edge, Fact
from osmia_memory.store.fact_store import FactStore
from osmia_memory.store.pruning import Replaced, without_support
from osmia_memory.testing import NOW, a_run
from tests.store.builders import REPO, TENANT, a_claim, remember, remember_text, says
from tests.store.test_forgetting import bytes_of

LATER = NOW + timedelta(days=2)


def fading(store: FactStore, days: int) -> dict[str, int]:
    """A decay pass some days after `NOW`."""
    now = NOW + timedelta(days=days)
    return store.prune(lambda fact: aging.is_prunable(fact, now, threshold=0.3), at=now)


def test_decay_pass_removes_text_of_all_tenants(store: FactStore) -> None:
    """What has faded loses its text, quotes, anchors, links and index; the pinned and the strong stay; the pass counts by tenant."""
    other = "incident-triage"
    run, theirs = a_run("s1"), a_run("s1", tenant=other)
    remember(
        store,
        run,
        says(
            run, "Zebrafish fade.", quotes=["zebrafish quote"], decay_rate=0.1, anchors=("file:zebrafish.py",), claim=a_claim("zebrafish")
        ),
        says(run, "Pinned fish stay.", decay_rate=0.1),
        says(run, "Slow fish stay.", decay_rate=0.001),
    )
    remember(store, theirs, says(theirs, "Their zebrafish fade too.", decay_rate=0.1))
    by_text = {f.content: f.fact_id for f in store.facts(TENANT)}
    store.pin(TENANT, by_text["Pinned fish stay."])
    store.link(TENANT, [Edge(by_text["Zebrafish fade."], by_text["Slow fish stay."], "relates_to", 1, "zebrafish reason", NOW)])
    assert fading(store, 1) == {}

    assert fading(store, 30) == {TENANT: 1, other: 1}

    assert {f.content for f in store.facts(TENANT)} == {"Pinned fish stay.", "Slow fish stay."}
    assert store.facts(other) == []
    assert store.search(TENANT, [REPO], ["zebrafish"], 5) == []
    assert store.edges(TENANT) == []
    assert [r.type for r in store.export_rows(other)] == ["run"]
    store.compact()
    assert b"ebrafish" not in bytes_of(store)
    assert fading(store, 30) == {}
    assert store.verify(reconcile.refold) == []


def test_later_evidence_revives_a_pruned_fact_with_its_history(store: FactStore) -> None:
    """The stub keeps who said it and when, so the fact that comes back counts its old witnesses."""
    remember_text(store, "s1", "Fish sleep.")
    remember_text(store, "s2", "Fish sleep.", at=NOW + timedelta(hours=1))
    fading(store, 400)
    (fact_id,) = {*store.facts_of_run(TENANT, a_run("s1").run_id)}
    stub, witnesses = store.state_for(TENANT, [fact_id])[fact_id]
    assert (stub.content, stub.runs, len(witnesses)) == ("", 2, 2)
    assert {w.candidate.content for w in witnesses} == {""}

    remember_text(store, "s3", "Fish sleep.", at=NOW + timedelta(days=401))

    (fact,) = store.facts(TENANT)
    assert (fact.fact_id, fact.content, fact.runs, fact.valid_from) == (fact_id, "Fish sleep.", 3, NOW)
    assert len(store.search(TENANT, [REPO], ["fish"], 5)) == 1
    assert store.verify(reconcile.refold) == []


def test_decay_pass_on_a_missing_store_creates_nothing(tmp_path: Path) -> None:
    """Nothing to do leaves nothing behind."""
    missing = FactStore(tmp_path / "none" / "memory.duckdb")

    assert fading(missing, 1000) == {}
    assert not missing.path.parent.exists()


def test_decay_pass_judges_again_before_it_removes(store: FactStore) -> None:
    """A fact that gained evidence between reading and removing is kept."""
    remember_text(store, "s1", "Fish sleep.")
    asked: list[str] = []

    def prunable_once(fact: object) -> bool:
        asked.append("")
        return len(asked) == 1

    assert store.prune(prunable_once, at=LATER) == {}
    assert len(store.facts(TENANT)) == 1
    assert replace(store.facts(TENANT)[0], recorded_at=None).runs == 1


def everything(_: Fact) -> bool:
    """All has faded."""
    return True


def test_a_rewording_stays_with_the_fact_that_counts_it(store: FactStore) -> None:
    """Its testimony is part of the other's confidence, which no pass may change; both go together."""
    first, second = a_run("s1"), a_run("s2", at=LATER)
    remember(store, first, says(first, "The lint step fails without `node` installed.", decay_rate=0.01))
    remember(store, second, says(second, "Lint step fails without `node` installed", at=LATER, decay_rate=0.2))
    (before,) = store.facts(TENANT)
    assert before.runs == 2

    assert fading(store, 20) == {}
    assert store.facts(TENANT) == [before]
    assert store.verify(reconcile.refold) == []

    assert fading(store, 900) == {TENANT: 2}
    assert store.facts(TENANT, include_superseded=True) == []


def test_what_replaced_a_fact_stays_as_long_as_that(store: FactStore) -> None:
    """A value that was replaced does not come back because its successor fades sooner; once both have faded, both go."""
    old, new = a_run("s1"), a_run("s2", at=LATER)
    remember(store, old, says(old, "The dev server listens on port 8080.", decay_rate=0.001))
    remember(store, new, says(new, "The dev server listens on port 8081.", at=LATER, decay_rate=0.3))

    assert fading(store, 60) == {}
    assert [f.content[-5:] for f in store.facts(TENANT)] == ["8081."]

    assert fading(store, 4000) == {TENANT: 2}


def test_a_replaced_value_goes_alone(store: FactStore) -> None:
    """The older value that has faded is pruned; the current one stays as it is."""
    old, new = a_run("s1"), a_run("s2", at=LATER)
    remember(store, old, says(old, "The dev server listens on port 8080.", decay_rate=0.3))
    remember(store, new, says(new, "The dev server listens on port 8081.", at=LATER, decay_rate=0.001))
    current = store.facts(TENANT)

    assert fading(store, 60) == {TENANT: 1}
    assert store.facts(TENANT, include_superseded=True) == current
    assert store.verify(reconcile.refold) == []


@pytest.mark.parametrize(
    ("faded", "links", "goes"),
    [
        ("abc", [], "abc"),
        ("ab", [("b", "a", False)], "ab"),
        ("b", [("b", "a", False)], ""),
        ("a", [("b", "a", False)], "a"),
        ("a", [("b", "a", True)], ""),
        ("bc", [("b", "a", False), ("c", "b", False)], ""),  # "a" stays, so does what replaced it, and what replaced that
        ("bcd", [("b", "a", False), ("d", "b", True)], "c"),
    ],
)
def test_what_leans_on_what(faded: str, links: list[tuple[str, str, bool]], goes: str) -> None:
    """Each link is (the newer fact, the older, whether they say the same)."""
    assert without_support(faded, [Replaced(*link) for link in links]) == set(goes)


def test_a_dry_run_counts_what_the_pass_removes(store: FactStore) -> None:
    """Retracted and superseded facts are counted as they are pruned; nothing is written before that."""
    ids = remember_text(store, "s1", "Fish sleep.", "Fish swim.", "The port is 1.")
    remember_text(store, "s2", "The port is 2.", at=LATER)
    store.retract(TENANT, ids[0], "nonsense")
    before = store.path.read_bytes()

    counted = store.prune(everything, at=LATER, dry_run=True)

    assert store.path.read_bytes() == before
    assert counted == store.prune(everything, at=LATER) == {TENANT: 4}
    assert list(store.tombstones(TENANT)) == [ids[0]]


def test_a_pass_that_was_killed_is_remembered(store: FactStore) -> None:
    """Between removal and the writing of the new file the bytes are still there; the store knows it, and compaction ends it."""
    remember_text(store, "s1", "Zebrafish fade.", "Fish swim.")
    assert not store.has_unerased()

    fading(store, 400)  # killed here

    assert store.has_unerased()
    store.compact()
    assert not store.has_unerased()
    assert b"ebrafish" not in bytes_of(store)
