"""A run's candidates become a plan; a fact is what its witnesses make it, in whatever order they came."""

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmia_memory import folding, ids, reconcile
from osmia_memory.models import Candidate, Claim, Discard, Fact, Insert, Reinforce, Retire, Witness
from osmia_memory.testing import NOW, a_candidate, a_run, an_evidence

CLAIM = Claim("tests", "command", "pytest", "works")


def witness(run_id: str, *, hours: int = 0, origin: str | None = None, **changes: object) -> Witness:
    """What one run says about one claim."""
    evidence = an_evidence(run_id, at=NOW + timedelta(hours=hours), origin=origin)
    candidate = replace(a_candidate(claim=CLAIM, evidence=(evidence,)), **changes)  # type: ignore[arg-type]
    return Witness(ids.fact_id("ticketing", "repo", "acme/shop", CLAIM, ""), run_id, candidate, evidence.observed_at)


def known(*witnesses: Witness) -> dict[str, tuple[Fact, tuple[Witness, ...]]]:
    """The state that a store would give back."""
    fact = reconcile.fold("ticketing", witnesses)
    return {fact.fact_id: (fact, witnesses)}


def candidate_of(run_id: str) -> Candidate:
    return witness(run_id).candidate


def test_a_new_claim_is_inserted() -> None:
    """Nobody said it before."""
    plan = reconcile.plan(a_run(), [candidate_of("r1:a")], {})
    assert [type(d) for d in plan.decisions] == [Insert]
    assert plan.facts[0].runs == 1
    assert plan.facts[0].confidence == 0.7


def test_a_second_run_reinforces_the_same_fact() -> None:
    """Confidence closes part of the gap to the cap; the id and the count of facts stay."""
    run = a_run("s2")
    plan = reconcile.plan(run, [candidate_of(run.run_id)], known(witness("r1:a")))
    (decision,) = plan.decisions
    assert isinstance(decision, Reinforce)
    assert decision.independent
    assert plan.facts[0].runs == 2
    assert plan.facts[0].confidence == pytest.approx(0.7 + 0.3 * (0.98 - 0.7))


def test_what_was_seen_again_lasts_longer() -> None:
    """One run: the rule's own decay; eight runs: a quarter of it."""
    assert reconcile.fold("ticketing", [witness("r1:a")]).decay_rate == 0.01
    assert reconcile.fold("ticketing", [witness(f"r1:{n}") for n in range(8)]).decay_rate == 0.0025


def test_a_resumed_session_that_repeats_records_is_no_second_witness() -> None:
    """Evidence with the engine's own id of a record that another run cites too counts once."""
    run = a_run("resumed")
    repeated = witness(run.run_id, origin="call_7").candidate
    plan = reconcile.plan(run, [repeated], known(witness("r1:a", origin="call_7")))
    (decision,) = plan.decisions
    assert isinstance(decision, Reinforce)
    assert not decision.independent
    assert plan.facts[0].runs == 1
    assert plan.facts[0].confidence == 0.7


def test_planning_the_same_run_again_changes_nothing() -> None:
    """The run's own earlier testimony is replaced, not added to."""
    run = a_run()
    first = reconcile.plan(run, [candidate_of(run.run_id)], {})
    again = reconcile.plan(run, [candidate_of(run.run_id)], known(first.decisions[0].witness), previous=frozenset({first.facts[0].fact_id}))  # type: ignore[union-attr]
    assert again.facts == first.facts


def test_what_a_new_version_no_longer_says_is_retired() -> None:
    """A fact left without a witness is gone; one that others support stays with the rest of its evidence."""
    run = a_run()
    alone = known(witness(run.run_id))
    plan = reconcile.plan(run, [], alone, previous=frozenset(alone))
    assert [type(d) for d in plan.decisions] == [Retire]
    assert plan.gone == tuple(alone)
    shared = known(witness(run.run_id), witness("r1:b"))
    plan = reconcile.plan(run, [], shared, previous=frozenset(shared))
    assert plan.gone == ()
    assert plan.facts[0].runs == 1


def test_a_retracted_fact_does_not_come_back() -> None:
    """The tombstone is consulted, and the candidate is discarded with the reason."""
    run = a_run()
    fact_id = witness(run.run_id).fact_id
    plan = reconcile.plan(run, [candidate_of(run.run_id)], {}, tombstones=frozenset({fact_id}))
    assert plan.facts == ()
    assert [d.reason for d in plan.decisions if isinstance(d, Discard)] == ["retracted earlier"]


def test_pins_survive_a_refold() -> None:
    """What a person set is kept when another run comes in."""
    state = known(witness("r1:a"))
    (fact_id,) = state
    pinned = {fact_id: (replace(state[fact_id][0], pinned=True, importance=2.0), state[fact_id][1])}
    run = a_run("s2")
    plan = reconcile.plan(run, [candidate_of(run.run_id)], pinned)
    assert plan.facts[0].pinned
    assert plan.facts[0].importance == 2.0


def test_refuting_evidence_lowers_confidence() -> None:
    """A run whose quotes all speak against the claim."""
    against = witness("r1:b", evidence=(an_evidence("r1:b", polarity="refutes"),))
    fact = reconcile.fold("ticketing", [witness("r1:a"), against])
    assert (fact.runs, fact.refuting_runs) == (1, 1)
    assert fact.confidence == pytest.approx(0.7 * 0.7)


def test_a_fold_needs_witnesses_of_one_fact() -> None:
    """Nothing folded is an error of the caller."""
    with pytest.raises(ValueError, match="one fact"):
        reconcile.fold("ticketing", [])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("run `make` first", "do not run `make` first"),
        ("the service answers 401", "the service answers 403"),
        ("works with v1.2", "works with v1.3"),
    ],
)
def test_negation_numbers_and_versions_make_different_facts(a: str, b: str) -> None:
    """Similar sentences that say different things are never one fact."""
    assert ids.fact_id("t", "repo", "o/r", None, a) != ids.fact_id("t", "repo", "o/r", None, b)
    assert ids.fact_id("t", "repo", "o/r", None, a) == ids.fact_id("t", "repo", "o/r", None, f"  {a.upper()}.")


WITNESSES = st.lists(
    st.builds(
        lambda n, hours, origin, confidence: witness(f"r1:{n}", hours=hours, origin=origin, confidence=confidence),
        st.integers(0, 6),
        st.integers(0, 500),
        st.sampled_from([None, "call_1", "call_2", "call_3"]),
        st.sampled_from([0.6, 0.7, 0.8]),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda w: w.run_id,
)


@given(WITNESSES, st.randoms(use_true_random=False))
def test_order_does_not_matter(witnesses: list[Witness], random: object) -> None:
    """Any permutation of the witnesses folds to the same fact."""
    shuffled = list(witnesses)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert reconcile.fold("ticketing", shuffled) == reconcile.fold("ticketing", witnesses)


@given(WITNESSES)
def test_more_witnesses_never_lower_confidence(witnesses: list[Witness]) -> None:
    """Supporting evidence is monotone, and nothing passes the cap."""
    confidences = [reconcile.fold("ticketing", witnesses[: n + 1]).confidence for n in range(len(witnesses))]
    assert confidences[-1] <= folding.CONFIDENCE_CAP
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(confidences))
