"""Decisions by hand, each with a line in the journal and none of its content."""

from dataclasses import replace
from datetime import timedelta

import pytest

from osmia_memory import reconcile
from osmia_memory.errors import InputError
from osmia_memory.models import Edge, Plan
from osmia_memory.store.fact_store import FactStore
from osmia_memory.testing import NOW, a_run
from tests.store.builders import REPO, TENANT, remember, remember_text, says


def test_pin_and_unpin(store: FactStore) -> None:
    """A pin can be set later and taken away; the journal keeps what was before."""
    (fact_id,) = remember_text(store, "s1", "Tests are run with `pytest`.")

    store.pin(TENANT, fact_id, at=NOW, who="ada")
    assert store.facts(TENANT)[0].pinned
    store.unpin(TENANT, fact_id, at=NOW + timedelta(hours=1))
    assert not store.facts(TENANT)[0].pinned

    later, first = store.changes(TENANT)
    assert (first.what, first.subject, first.who, first.at, first.before) == ("pin", fact_id, "ada", NOW, {"pinned": False})
    assert (later.what, later.before) == ("unpin", {"pinned": True})
    assert store.changes(TENANT, limit=1) == [later]


def test_retracted_fact_leaves_every_read_and_comes_back_as_it_was(store: FactStore) -> None:
    """Retraction hides a fact from reads and from reconciliation; `restore` undoes it exactly."""
    (fact_id,) = remember_text(store, "s1", "Tests are run with `pytest`.")
    before = store.export_rows(TENANT, recorded=True)

    store.retract(TENANT, fact_id, "it is tox", at=NOW)

    assert store.facts(TENANT, include_superseded=True) == []
    assert store.fact(TENANT, fact_id) is None
    assert store.find(TENANT, "f1:") == []
    assert store.search(TENANT, [REPO], ["pytest"], 5) == []
    assert store.state_for(TENANT, [fact_id]) == {}
    assert store.facts_of_run(TENANT, a_run("s1").run_id) == set()
    assert [row.type for row in store.export_rows(TENANT)] == ["run"]
    assert store.tombstones(TENANT, [fact_id, "f1:other"]) == {fact_id: (fact_id, "it is tox", NOW)}
    store.restore(TENANT, fact_id)
    assert store.export_rows(TENANT, recorded=True) == before
    assert store.tombstones(TENANT) == {}


def test_restored_fact_is_current_again(store: FactStore) -> None:
    """A superseded fact can be brought back by one command; the link that said so goes."""
    old_id, new_id = remember_text(store, "s1", "Old.", "New.")
    store.link(TENANT, [Edge(new_id, old_id, "supersedes", 1.0, "newer", NOW)])
    run = a_run("s2")
    plan_fact = store.state_for(TENANT, [old_id])[old_id][0]
    store.apply(Plan(run, (), (replace(plan_fact, superseded_by=new_id, valid_to=NOW),)), recorded_at=NOW)
    assert [f.fact_id for f in store.facts(TENANT)] == [new_id]

    store.restore(TENANT, old_id)

    assert {f.fact_id for f in store.facts(TENANT)} == {old_id, new_id}
    assert store.edges(TENANT) == []
    assert store.changes(TENANT)[0].before["superseded_by"] == new_id


def test_edited_wording_is_shown_and_searched(store: FactStore) -> None:
    """The fact keeps its id, its evidence and the witnesses' own words; None gives those back."""
    (fact_id,) = remember_text(store, "s1", "Tests are run with `pytest`.")

    store.edit(TENANT, fact_id, "Run `pytest -x` first.")

    assert [f.content for f in store.facts(TENANT)] == ["Run `pytest -x` first."]
    assert store.state_for(TENANT, [fact_id])[fact_id][0].content == "Tests are run with `pytest`."
    assert len(store.search(TENANT, [REPO], ["first"], 5) or store.search(TENANT, [REPO], ["-x"], 5)) == 1
    assert store.verify(reconcile.refold) == []
    store.edit(TENANT, fact_id, None)
    assert [f.content for f in store.facts(TENANT)] == ["Tests are run with `pytest`."]
    with pytest.raises(InputError, match="empty"):
        store.edit(TENANT, fact_id, "  ")


def test_journal_holds_no_content(store: FactStore) -> None:
    """What was said or is said now is not in the journal, so forgetting does not have to look there."""
    (fact_id,) = remember_text(store, "s1", "The unspeakable is run with `pytest`.")
    store.edit(TENANT, fact_id, "An unspeakable edit.")
    store.edit(TENANT, fact_id, "Another unspeakable edit.")
    store.retract(TENANT, fact_id, "unspeakable reason")

    assert [c.what for c in store.changes(TENANT)] == ["retract", "edit", "edit"]
    assert "unspeakable" not in str(store.changes(TENANT))


def test_links_connect_what_is_known(store: FactStore) -> None:
    """A link has two known ends, is there once, takes a new reason, and can be cut."""
    one, two = remember_text(store, "s1", "One.", "Two.")
    edge = Edge(one, two, "contradicts", 0.5, "says the opposite", NOW)

    assert store.link(TENANT, [edge, edge]) == 1
    assert store.link(TENANT, [Edge(one, two, "contradicts", 0.7, "still", NOW)]) == 1
    assert store.edges(TENANT, [two]) == [Edge(one, two, "contradicts", 0.7, "still", NOW)]
    assert store.edges(TENANT, ["f1:other"]) == []
    with pytest.raises(InputError, match="'f1:nobody' is none"):
        store.link(TENANT, [Edge(one, "f1:nobody", "relates_to", 1, "", NOW)])
    store.unlink(TENANT, [edge])
    assert store.edges(TENANT) == []


def test_links_go_with_their_facts(store: FactStore) -> None:
    """A link to a fact that is gone is gone too."""
    one = remember_text(store, "s1", "One.")[0]
    run = a_run("s2")
    remember(store, run, says(run, "Two."))
    (two,) = store.facts_of_run(TENANT, run.run_id)
    store.link(TENANT, [Edge(one, two, "relates_to", 1, "", NOW)])

    remember(store, a_run("s2", version="v2"))

    assert store.edges(TENANT) == []
    assert store.verify(reconcile.refold) == []
