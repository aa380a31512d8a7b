"""What facts are to each other: a function of the facts, whatever the order. Content is invented."""

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest

from osmia_memory import folding
from osmia_memory.models import Claim, Fact, Witness
from osmia_memory.relations import NO_RULES, NOWHERE, Known, Place, Rules, resolve
from osmia_memory.testing import NOW, a_candidate, an_evidence

ID = itertools.count()


def told(
    content: str, *, day: int = 0, runs: int = 1, claim: Claim | None = None, owner: str = "northwind/orders"
) -> tuple[Fact, list[Witness]]:
    """A fact that `runs` runs have said, the last of them on that day."""
    fact_id = f"f1:{next(ID):04}"
    candidate = a_candidate(content, owner=owner, claim=claim)
    witnesses = []
    for n in range(runs):
        at = NOW + timedelta(days=day) - timedelta(hours=runs - 1 - n)
        run_id = f"r1:{fact_id}-{n}"
        witnesses.append(Witness(fact_id, run_id, replace(candidate, evidence=(an_evidence(run_id, at=at),)), at))
    return folding.fold("ticketing", witnesses), witnesses


def known(*facts: tuple[Fact, list[Witness]]) -> Known:
    """As `resolve` wants it."""
    return {fact.fact_id: (fact, witnesses) for fact, witnesses in facts}


def relation(
    a: tuple[Fact, list[Witness]], b: tuple[Fact, list[Witness]], at_a: Place = NOWHERE, at_b: Place = NOWHERE, rules: Rules = NO_RULES
) -> str:
    """ "b supersedes a", "a contradicts b", ... or "nothing"."""
    names = {a[0].fact_id: "a", b[0].fact_id: "b"}
    settled = resolve(known(a, b), {a[0].fact_id: at_a, b[0].fact_id: at_b}, rules)
    told_by_edge = [f"{names[e.from_id]} {e.relation} {names[e.to_id]}" for e in settled.edges]
    superseded = {names[f.fact_id]: names[f.superseded_by] for f in settled.facts if f.superseded_by}
    for edge in settled.edges:
        if edge.relation == "supersedes":
            assert superseded == {names[edge.to_id]: names[edge.from_id]}
    return ", ".join(told_by_edge) or "nothing"


PORT, OTHER_PORT = "The dev server listens on port 8080.", "The dev server listens on port 9090."


def test_the_newer_value_with_as_much_evidence_supersedes() -> None:
    """Event time decides, not the order in which the facts are given."""
    old, new = told(PORT), told(OTHER_PORT, day=3)
    assert relation(old, new) == "b supersedes a"
    assert relation(new, old) == "a supersedes b"


def test_a_newer_value_with_less_evidence_contradicts() -> None:
    """Both stay, and the dispute is on record."""
    assert relation(told(PORT, runs=3), told(OTHER_PORT, day=3)) == "b contradicts a"


def test_values_of_one_moment_contradict() -> None:
    """Nobody can say which is newer."""
    assert "contradicts" in relation(told(PORT), told(OTHER_PORT))


def test_claims_are_compared_by_their_slot() -> None:
    """The content may be worded in any way; other slots and lists do not speak against each other."""
    port = Claim("dev server", "port", "", "8080")
    assert (
        relation(told("Port: 8080.", claim=port), told("It moved to 9090.", day=1, claim=port._replace(value="9090"))) == "b supersedes a"
    )
    assert (
        relation(told("Port: 8080.", claim=port), told("TLS port: 9090.", claim=port._replace(qualifier="tls", value="9090"))) == "nothing"
    )
    needs = Claim("tests", "needs", "", "redis")
    assert relation(told("Redis.", claim=needs), told("Postgres.", day=1, claim=needs._replace(value="postgres"))) == "nothing"


def test_a_pinned_fact_is_not_superseded() -> None:
    """What a person pinned stays until a person says otherwise."""
    fact, witnesses = told(PORT)
    assert relation((replace(fact, pinned=True), witnesses), told(OTHER_PORT, day=3)) == "b contradicts a"


@pytest.mark.parametrize(
    ("at_a", "at_b"),
    [
        (Place(branches=frozenset({"fix/a"})), Place(branches=frozenset({"feature/b"}))),
        (Place(environments=frozenset({("os", "darwin")})), Place(environments=frozenset({("os", "linux")}))),
        (Place(commits=frozenset({"a1"})), Place(commits=frozenset({"b2"}))),
    ],
    ids=["branches", "environments", "commits"],
)
def test_what_holds_in_different_places_does_not_contradict(at_a: Place, at_b: Place) -> None:
    """Each holds where it was seen; in one place they do contradict."""
    assert relation(told(PORT), told(OTHER_PORT, day=3), at_a, at_b) == "nothing"
    assert relation(told(PORT), told(OTHER_PORT, day=3), at_a, at_a) == "b supersedes a"


def test_ancestry_goes_before_time_and_branches() -> None:
    """A run that is later by the clock may have worked on an older commit."""
    at_old, at_new = Place(commits=frozenset({"c1"})), Place(commits=frozenset({"c2"}))
    rules = Rules(ancestry={"c2": frozenset({"c1"})})
    assert relation(told(PORT, day=3), told(OTHER_PORT), at_old, at_new, rules) == "b supersedes a"


def test_a_rewording_adds_its_witnesses() -> None:
    """The fact that was observed first stands for both, with the runs of both."""
    first, again = told("The lint step fails without `node` installed."), told("Lint step fails without `node` installed", day=2, runs=2)
    settled = resolve(known(first, again), {})
    kept, dropped = settled.facts
    assert (kept.runs, kept.superseded_by) == (3, None)
    assert kept.confidence > first[0].confidence
    assert dropped.superseded_by == kept.fact_id


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Do run `make clean` first.", "Do not run `make clean` first."),
        ("The API returns 401 for bad tokens.", "The API returns 403 for bad tokens."),
        ("`pip install ledger==1.2` works.", "`pip install ledger==1.3` works."),
    ],
)
def test_negation_and_numbers_are_never_merged(a: str, b: str) -> None:
    """They may contradict or supersede, but they are two facts."""
    assert {f.runs for f in resolve(known(told(a), told(b, day=1)), {}).facts} == {1}


def test_pairs_that_a_person_keeps_apart_stay() -> None:
    """A restored fact is not superseded again by the same one."""
    old, new = told(PORT), told(OTHER_PORT, day=3)
    assert relation(old, new, rules=Rules(apart=frozenset({frozenset((old[0].fact_id, new[0].fact_id))}))) == "nothing"


def test_other_owners_are_never_compared() -> None:
    """Another repository's port is its own."""
    assert relation(told(PORT), told(OTHER_PORT, day=3, owner="northwind/ledger")) == "nothing"


def test_a_chain_ends_at_the_latest() -> None:
    """Of several values in turn only the last is current, and any order of the facts gives the same."""
    facts = [told(f"The dev server listens on port {port}.", day=day) for day, port in enumerate((8080, 8081, 8082))]
    results = set()
    for order in itertools.permutations(facts):
        settled = resolve(known(*order), {})
        results.add((frozenset(settled.facts), settled.edges))
    ((settled_facts, _),) = results
    last = facts[-1][0].fact_id
    assert {f.superseded_by for f in settled_facts} == {None, last}
