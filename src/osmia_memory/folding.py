"""Witnesses -> a fact. Pure: knows nothing about storage, clocks or models.

A fact is a fold over its witnesses, one for each run that said it: they are sorted by event time before anything looks at them, so it is the
same in whatever order the runs were read.
"""

import collections
import math
from collections.abc import Callable, Sequence

from osmia_memory.models import Candidate, Fact, Witness

TOLD = "told"  # tag of testimony by a run that was shown the fact and used it
CONFIDENCE_CAP = 0.98
GAP_CLOSED_PER_RUN = 0.3  # of the distance to the cap, by each further independent run: 0.7 -> 0.78 -> 0.84 -> 0.88
LOST_PER_REFUTATION = 0.3  # of the confidence, by each independent run that refutes


def fold(tenant_id: str, witnesses: Sequence[Witness]) -> Fact:
    """The fact that these witnesses make, the same in whatever order they are given.

    Confidence starts at the strongest testimony and is earned by independent runs; runs whose evidence shares a record
    (a resumed or forked session) are one witness. The wording is the one with most evidence.

    Raises:
        ValueError: no witness, or witnesses of different facts.
    """
    if len({w.fact_id for w in witnesses}) != 1:
        raise ValueError("a fact is folded from the witnesses of one fact")
    ordered = sorted(witnesses, key=lambda w: (w.observed_at, w.run_id))
    supporting = [w for w in ordered if not _refutes(w)]
    groups = _independent([w for w in supporting if not _was_told(w)] or supporting[:1])
    against = _independent([w for w in ordered if _refutes(w)])
    basis = supporting or ordered
    told = [w for w in basis if w.candidate.content] or basis  # a pruned fact left testimony without words
    spoken = _wording(told)
    engines = tuple(sorted({w.candidate.engine for w in basis if w.candidate.engine}))
    first = told[0].candidate
    return Fact(
        fact_id=ordered[0].fact_id,
        tenant_id=tenant_id,
        content=spoken.content,
        fact_kind=spoken.fact_kind,
        scope=first.scope,
        owner=first.owner,
        confidence=earned(max(w.candidate.confidence for w in basis), len(groups), len(against)),
        decay_rate=lasting(min(w.candidate.decay_rate for w in basis), len(groups)),
        valid_from=basis[0].observed_at,
        last_seen=basis[-1].observed_at,
        runs=len(groups),
        refuting_runs=len(against),
        claim=first.claim,
        engine=engines[0] if len(engines) == 1 else None,
        engines=engines,
        task_type=spoken.task_type,
        anchors=tuple(sorted({a for w in basis for a in w.candidate.anchors})),
        tags=tuple(sorted(set(spoken.tags) - {TOLD})),
        source=spoken.source,
    )


def _was_told(witness: Witness) -> bool:
    """The run did it because our block said so: a use, not one more witness."""
    return TOLD in witness.candidate.tags


def _wording(witnesses: Sequence[Witness]) -> Candidate:
    """The testimony whose words rest on most evidence; the latest among equals."""
    weight: dict[str, int] = collections.Counter()
    for w in witnesses:
        weight[w.candidate.content] += len(w.candidate.evidence)
    return max(witnesses, key=lambda w: (weight[w.candidate.content], w.observed_at, w.candidate.content)).candidate


def earned(initial: float, supporting: int, refuting: int = 0) -> float:
    """Confidence in [0, 0.98] of a claim that `supporting` independent runs made and `refuting` refuted."""
    confidence = initial
    for _ in range(supporting - 1):
        confidence += max(0.0, CONFIDENCE_CAP - confidence) * GAP_CLOSED_PER_RUN
    return round(confidence * (1 - LOST_PER_REFUTATION) ** refuting, 4)


def lasting(decay_rate: float, supporting: int) -> float:
    """Decay per cycle of a claim that `supporting` independent runs made: what was seen again and again stays true longer.

    Divided by 1 + log2(runs): with 0.01 a day, a claim of one run halves in 69 days, one of 32 runs in 415.
    """
    return round(decay_rate / (1 + math.log2(max(1, supporting))), 6)


def _refutes(witness: Witness) -> bool:
    return all(e.polarity == "refutes" for e in witness.candidate.evidence) and bool(witness.candidate.evidence)


def _independent(witnesses: Sequence[Witness]) -> list[list[Witness]]:
    """Witnesses grouped into independent ones: those that cite a common record of the engine are one."""
    groups: list[tuple[set[str], list[Witness]]] = []
    for witness in witnesses:
        origins = {e.origin for e in witness.candidate.evidence if e.origin}
        joined = [g for g in groups if origins & g[0] or any(w.run_id == witness.run_id for w in g[1])]
        merged = (set().union(origins, *(g[0] for g in joined)), [*(w for g in joined for w in g[1]), witness])
        groups = [g for g in groups if all(g is not j for j in joined)] + [merged]
    return [members for _, members in groups]


def is_independent(witness: Witness, others: Sequence[Witness]) -> bool:
    """Whether this testimony shares no record with that of the others."""
    return not _was_told(witness) and len(_independent([*others, witness])) > len(_independent(others))


def refold(tenant_id: str) -> Callable[[Sequence[Witness]], Fact]:
    """`fold` for one tenant, as the store wants it."""
    return lambda witnesses: fold(tenant_id, witnesses)
