"""Candidates of one run against what is known -> a Plan. Pure: knows nothing about storage, clocks or models.

What a candidate does to a fact is worked out from the fact's witnesses (`folding.fold`), so the order in which runs are imported cannot matter.
"""

import collections
from collections.abc import Iterable, Mapping
from dataclasses import replace

from osmia_memory import ids
from osmia_memory.folding import earned, fold, is_independent, lasting, refold
from osmia_memory.models import Candidate, Decision, Discard, Fact, Insert, Plan, Reinforce, Retire, TaskRun, Witness

MANUAL_RUN = ""  # the run id of rows that were imported or saved by hand

__all__ = ["earned", "fold", "lasting", "plan", "reasons", "refold"]

Known = Mapping[str, tuple[Fact, tuple[Witness, ...]]]


def plan(
    run: TaskRun,
    candidates: Iterable[Candidate],
    known: Known,
    *,
    previous: frozenset[str] = frozenset(),
    tombstones: frozenset[str] = frozenset(),
    discarded: Iterable[Discard] = (),
) -> Plan:
    """What to store for this run.

    `known` holds the state of every fact that the candidates or `previous` name; `previous` are the facts that an earlier
    version of this run witnessed; `tombstones` are retracted facts, which nothing brings back.
    """
    decisions: list[Decision] = list(discarded)
    facts: dict[str, Fact] = {}
    named: set[str] = set()
    for candidate in candidates:
        fact_id = ids.fact_id(run.tenant_id, candidate.scope, candidate.owner, candidate.claim, candidate.content)
        if fact_id in tombstones:
            decisions.append(Discard(candidate, "retracted earlier"))
            continue
        if fact_id in named:
            decisions.append(Discard(candidate, "said twice in this run"))
            continue
        named.add(fact_id)
        witness = Witness(fact_id, run.run_id, candidate, max(e.observed_at for e in candidate.evidence))
        others = [w for w in known[fact_id][1] if w.run_id != run.run_id] if fact_id in known else []
        facts[fact_id] = _with_marks(fold(run.tenant_id, [*others, witness]), known.get(fact_id))
        decisions.append(Reinforce(witness, is_independent(witness, others)) if others else Insert(witness))
    gone = []
    for fact_id in sorted(previous - named):
        decisions.append(Retire(fact_id))
        rest = [w for w in known[fact_id][1] if w.run_id != run.run_id] if fact_id in known else []
        if rest:
            facts[fact_id] = _with_marks(fold(run.tenant_id, rest), known.get(fact_id))
        else:
            gone.append(fact_id)
    return Plan(run, tuple(decisions), tuple(facts.values()), tuple(gone))


def _with_marks(fact: Fact, known: tuple[Fact, tuple[Witness, ...]] | None) -> Fact:
    """The folded fact with what people and edges have set on it."""
    if known is None:
        return fact
    old = known[0]
    return replace(fact, importance=old.importance, pinned=old.pinned, valid_to=old.valid_to, superseded_by=old.superseded_by)


def reasons(decisions: Iterable[Decision]) -> dict[str, int]:
    """How many candidates were discarded, by reason, most frequent first."""
    return dict(collections.Counter(d.reason for d in decisions if isinstance(d, Discard)).most_common())
