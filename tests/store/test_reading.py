"""Reads keep to their tenant and owners, whatever the names look like."""

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osmia_memory import reconcile
from osmia_memory.errors import InputError, TenantError
from osmia_memory.models import Claim, Edge
from osmia_memory.store.fact_store import FactStore
from osmia_memory.testing import NOW, a_run
from tests.store.builders import REPO, TENANT, a_claim, remember, remember_text, says

LATER = NOW + timedelta(days=1)
HOSTILE = [
    "' OR '1'='1",
    "%",
    "_",
    "*",
    "ticketing' --",
    'ticketing"; DROP TABLE facts; --',
    "tickéting",
    "ticketing ",
    "Ticketing",
    "tick\u200beting",
    "\x00",
    "租户",
    "null",
    "../ticketing",
    "$tenant",
    "{tenant}",
]


def everything(store: FactStore, tenant: str, repo: str = "acme/shop") -> list[object]:
    """The answer to every tenanted question."""
    own = [f.fact_id for f in store.facts(tenant)]
    return [
        store.facts(tenant, [("repo", repo)], include_superseded=True),
        store.facts_by_id(tenant, own),
        store.find(tenant, "f1:"),
        store.find(tenant, "r1:"),
        store.runs(tenant),
        store.runs(tenant, repo),
        store.run_rows(tenant),
        store.run_versions(tenant),
        store.states(tenant),
        store.search(tenant, [("repo", repo)], ["pytest", "secret"], 10),
        store.term_statistics(tenant, [("repo", repo)], ["pytest"]).documents,
        store.terms_known(tenant, repo, ["conftest.py"]),
        store.known_repo(tenant, repo),
        store.tombstones(tenant),
        store.changes(tenant),
        store.edges(tenant),
        store.export_rows(tenant),
    ]


def test_hostile_tenants_see_only_their_own(store: FactStore) -> None:
    """Tenants whose names are SQL, wildcards or look-alikes of each other: over every read each sees its own rows and no other's."""
    tenants = [TENANT, *HOSTILE]
    for tenant in tenants:
        run = a_run("s1", tenant=tenant)
        with store.session(write=True):
            remember(store, run, says(run, f"The secret of {tenant!r} is in `pytest`.", claim=a_claim(tenant)), vocabulary=["conftest.py"])
            (fact,) = store.facts(tenant)
            store.pin(tenant, fact.fact_id)
            store.link(tenant, [Edge(fact.fact_id, run.run_id, "relates_to", 1, "", NOW)])

    with store.session():
        assert not any(everything(store, "somebody else"))
        for tenant in tenants:
            (fact,) = store.facts(tenant)
            assert fact.claim == a_claim(tenant)
            answers = everything(store, tenant)
            assert all(a for a in answers if a != {})
            assert [len(a) for a in answers if isinstance(a, list)] == [1] * 10 + [4]
    assert store.known_tenants() == sorted(tenants)
    assert {f.tenant_id for f in store.facts(None, all_tenants=True)} == set(tenants)
    assert {r.tenant_id for r in store.runs(None, all_tenants=True)} == set(tenants)
    assert store.verify(reconcile.refold) == []


def test_ids_of_another_tenant_open_nothing(store: FactStore) -> None:
    """Knowing an id is not enough: reads by id and writes by id keep to the tenant too."""
    run = a_run("s1")
    remember(store, run, says(run, "The secret is in `pytest`.", claim=a_claim("x")))
    (mine,) = store.facts(TENANT)
    other = "incident-triage"
    remember(store, a_run("s1", tenant=other))

    with store.session(write=True):
        assert store.fact(other, mine.fact_id) is None
        assert store.facts_by_id(other, [mine.fact_id]) == []
        assert store.run(other, run.run_id) is None
        assert store.run_version(other, run.run_id) is None
        assert store.evidence(other, mine.fact_id) == []
        assert store.witnesses(other, mine.fact_id) == ()
        assert store.state_for(other, [mine.fact_id]) == {}
        assert store.facts_of_run(other, run.run_id) == set()
        assert store.same_slot(other, [(*REPO, "tests", "command", "unit")]) == []
        assert store.edges(other, [mine.fact_id]) == []
        for decide in (store.pin, store.unpin, store.restore):
            with pytest.raises(InputError, match="no fact"):
                decide(other, mine.fact_id)
        with pytest.raises(InputError, match="no fact"):
            store.retract(other, mine.fact_id, "theirs")
        with pytest.raises(InputError, match="no fact"):
            store.edit(other, mine.fact_id, "theirs")
        with pytest.raises(InputError, match="is none"):
            store.link(other, [Edge(a_run("s1", tenant=other).run_id, mine.fact_id, "relates_to", 1, "", NOW)])
    assert store.forget_run(other, run.run_id, reconcile.refold(other)) == (0, 0, 0)
    assert store.facts(TENANT) == [mine]


@pytest.mark.parametrize("tenant", ["", " ", None])
def test_missing_tenant_is_an_error_everywhere(store: FactStore, tenant: str) -> None:
    """No read takes a missing tenant for all of them."""
    questions = [
        lambda: store.facts(tenant),
        lambda: store.fact(tenant, "f1:x"),
        lambda: store.find(tenant, "f1"),
        lambda: store.runs(tenant),
        lambda: store.run(tenant, "r1:x"),
        lambda: store.run_rows(tenant),
        lambda: store.run_versions(tenant),
        lambda: store.run_version(tenant, "r1:x"),
        lambda: store.state_for(tenant, []),
        lambda: store.facts_of_run(tenant, "r1:x"),
        lambda: store.tombstones(tenant),
        lambda: store.search(tenant, [REPO], ["x"], 5),
        lambda: store.term_statistics(tenant, [REPO], ["x"]),
        lambda: store.terms_known(tenant, "acme/shop", ["x"]),
        lambda: store.known_repo(tenant, "acme/shop"),
        lambda: store.edges(tenant),
        lambda: store.changes(tenant),
        lambda: store.export_rows(tenant),
    ]
    for ask in questions:
        with pytest.raises(TenantError):
            ask()


def test_tenant_and_all_tenants_contradict_each_other(store: FactStore) -> None:
    """A whole-graph read is explicit and names no tenant."""
    with pytest.raises(TenantError, match="not both"):
        store.facts(TENANT, all_tenants=True)


@settings(max_examples=6, deadline=None)
@given(name=st.text(min_size=1).filter(lambda t: t.strip() and t != TENANT), owner=st.text(min_size=1), word=st.text())
def test_any_text_is_only_text(name: str, owner: str, word: str) -> None:
    """Whatever a tenant, an owner, an id prefix or a term is made of, it is compared, not interpreted."""
    with TemporaryDirectory() as folder:
        store = FactStore(Path(folder) / "memory.duckdb")
        remember_text(store, "s1", "The secret is in `pytest`.")
        run = a_run("s1", tenant=name)
        remember(store, run, says(run, "Ours.", owner=owner))
        (ours,) = store.facts(name)

        assert [f.content for f in store.facts(TENANT, [REPO, ("repo", owner)])] == ["The secret is in `pytest`."]
        assert [f.content for f in store.facts(name, [("repo", owner)])] == ["Ours."]
        assert store.find(name, "f1:") == [ours.fact_id]
        assert set(store.find(name, word)) <= {ours.fact_id, run.run_id}
        assert len(store.search(TENANT, [REPO, ("repo", owner)], ["secret", word], 10)) == 1


# --- facts ------------------------------------------------------------------------------------------------------------


def test_facts_are_those_of_the_owners(store: FactStore) -> None:
    """None means all, an empty list none, a pair its own; latest evidence first."""
    run = a_run("s1")
    remember(
        store,
        run,
        says(run, "Of the shop.", at=NOW),
        says(run, "Of the engine.", scope="engine", owner="codex", at=LATER),
        says(run, "Of another.", owner="acme/other", at=NOW - timedelta(days=1)),
    )

    assert [f.content for f in store.facts(TENANT)] == ["Of the engine.", "Of the shop.", "Of another."]
    assert [f.content for f in store.facts(TENANT, limit=1)] == ["Of the engine."]
    assert [f.content for f in store.facts(TENANT, [REPO])] == ["Of the shop."]
    assert [f.content for f in store.facts(TENANT, [REPO, ("engine", "codex")])] == ["Of the engine.", "Of the shop."]
    assert store.facts(TENANT, [("engine", "acme/shop")]) == []
    assert store.facts(TENANT, []) == []


def test_find_takes_any_beginning_of_an_id(store: FactStore) -> None:
    """A few characters are enough, with the tag or without; an empty prefix finds nothing rather than all."""
    (fact_id,) = remember_text(store, "s1", "Tests are run with `pytest`.")
    digits = fact_id.removeprefix("f1:")

    assert store.find(TENANT, fact_id[:6]) == [fact_id]
    assert fact_id in store.find(TENANT, digits[:5])
    assert store.find(TENANT, a_run("s1").run_id[:8]) == [a_run("s1").run_id]
    with store.session():
        for prefix in ("", " ", "f1:%", "%", "_", "f1:" + digits + "0"):
            assert fact_id not in store.find(TENANT, prefix)


def test_slot_finds_rivals(store: FactStore) -> None:
    """Facts with the same slot and another value are found by it, in one owner."""
    run = a_run("s1")
    remember(
        store,
        run,
        says(run, "Use pytest.", claim=a_claim("pytest")),
        says(run, "Use tox.", claim=a_claim("tox")),
        says(run, "Lint with ruff.", claim=Claim("lint", "command", "", "ruff")),
        says(run, "Elsewhere pytest.", claim=a_claim("pytest"), owner="acme/other"),
    )

    assert {f.content for f in store.same_slot(TENANT, [(*REPO, "tests", "command", "unit")])} == {"Use pytest.", "Use tox."}
    assert store.same_slot(TENANT, [(*REPO, "tests", "command", "other")]) == []


def test_known_repository_differs_from_a_known_empty_one(store: FactStore) -> None:
    """A repository that was seen and says nothing is known; one that was never seen is not."""
    remember(store, a_run("s1", repo="acme/quiet"))
    remember_text(store, "s2", "Tests are run with `pytest`.")

    assert store.known_repo(TENANT, "acme/quiet")
    assert store.known_repo(TENANT, "acme/shop")
    assert not store.known_repo(TENANT, "acme/never")
    assert not store.known_repo("incident-triage", "acme/shop")


def test_vocabulary_is_that_of_the_repository(store: FactStore) -> None:
    """Names of a run count for its repository only, and go when a new version no longer has them."""
    remember(store, a_run("s1"), vocabulary=["src/cart.py", "make", ""])
    remember(store, a_run("s2", repo="acme/other"), vocabulary=["src/other.py"])

    asked = ["src/cart.py", "src/other.py", "make", "unheard", ""]
    assert store.terms_known(TENANT, "acme/shop", asked) == {"src/cart.py", "make"}
    assert store.terms_known(TENANT, "acme/other", asked) == {"src/other.py"}
    remember(store, a_run("s1", version="v2"), vocabulary=["make"])
    assert store.terms_known(TENANT, "acme/shop", asked) == {"make"}


def test_run_rows_are_what_statistics_need(store: FactStore) -> None:
    """One row a run with its figures and its parent, in order of time."""
    remember(store, a_run("s2", at=LATER, outcome="failure", duration_s=3.0, parent_session_id="s1"))
    remember(store, a_run("s1", outcome="success", cost_usd=0.5, tokens_in=10, tokens_out=2, language="go", model="m"))

    first, second = store.run_rows(TENANT)

    assert (first.engine, first.model, first.language, first.outcome, first.cost_usd, first.tokens_in) == (
        "codex",
        "m",
        "go",
        "success",
        0.5,
        10,
    )
    assert (first.started_at, first.finished_at, first.parent_session_id) == (NOW, NOW + timedelta(minutes=5), None)
    assert (second.outcome, second.duration_s, second.parent_session_id) == ("failure", 3.0, "s1")


def test_generation_grows_with_every_write(store: FactStore) -> None:
    """A reader that keeps a snapshot sees by one number that it is old."""
    seen = [store.generation()]
    (fact_id,) = remember_text(store, "s1", "Tests are run with `pytest`.")
    seen.append(store.generation())
    store.pin(TENANT, fact_id)
    seen.append(store.generation())
    store.facts(TENANT)
    seen.append(store.generation())

    assert seen == [0, 1, 2, 2]
