"""Entries of a block that belong together become one: failures of one pattern, and both sides of a contradiction. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from osmia_memory.models import Fact, Ranked

MAX_FAMILY = 3  # failures of one pattern in one line
FAMILY_WORDS = 5  # that they open with alike


def families(ranked: Sequence[Ranked], visible: Sequence[Fact]) -> list[Ranked]:
    """Failures of one pattern become one entry: the best ranked of them, and the most frequent others beside it."""
    told: set[str] = set()
    result = []
    for entry in ranked:
        if entry.fact.fact_id in told:
            continue
        others = [f for f in family(entry.fact, visible) if f.fact_id != entry.fact.fact_id and f.runs >= 2]
        others.sort(key=lambda f: (-f.runs, f.fact_id))
        told |= {f.fact_id for f in (entry.fact, *others)}
        result.append(replace(entry, also=tuple(others[: MAX_FAMILY - 1])))
    return result


def family(fact: Fact, facts: Iterable[Fact]) -> list[Fact]:
    """Failures that say the same of one subject and differ in the error alone: same claim but for its qualifier, same opening words."""
    if fact.claim is None or fact.fact_kind != "failure_pattern":
        return [fact]
    opening = fact.content.split(" ")[:FAMILY_WORDS]
    return [
        f
        for f in facts
        if f.claim is not None
        and f.fact_kind == fact.fact_kind
        and (f.scope, f.owner, f.claim.subject, f.claim.attribute) == (fact.scope, fact.owner, fact.claim.subject, fact.claim.attribute)
        and f.content.split(" ")[:FAMILY_WORDS] == opening
    ]


def disputes(ranked: Sequence[Ranked], visible: Mapping[str, Fact], contradictions: Collection[tuple[str, str]]) -> list[Ranked]:
    """Both sides of an unresolved contradiction become one entry: the better ranked side, disputed by the other."""
    against: dict[str, str] = {}
    for a, b in sorted(contradictions):
        against.setdefault(a, b)
        against.setdefault(b, a)
    told: set[str] = set()
    result = []
    for entry in ranked:
        other = visible.get(against.get(entry.fact.fact_id, ""))
        if entry.fact.fact_id in told:
            continue
        if other is not None:
            told.add(other.fact_id)
            entry = replace(entry, disputed_by=other)
        result.append(entry)
    return result
