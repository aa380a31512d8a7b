"""Which facts of one owner say the same, replace each other or speak against each other. Pure: a function of the facts alone.

Nothing here depends on the order in which runs were read: the facts carry event times, and later is what was observed later. Two facts whose
supporting runs took place on different branches, in different environments or at unrelated commits are not compared.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations
from types import MappingProxyType
from typing import Literal, NamedTuple

from osmia_memory import sentences, slots
from osmia_memory.folding import fold
from osmia_memory.models import Edge, Fact, TaskRun, Witness
from osmia_memory.similarity import plain_form, same_statement

Kind = Literal["same", "supersedes", "contradicts"]
SAME = "the same statement in other words"
DEFAULT_BRANCHES = frozenset(("main", "master", "trunk", "develop", "development", "head"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where the runs behind a fact took place, as far as known. Empty sets: nothing is known."""

    branches: frozenset[str] = frozenset()
    commits: frozenset[str] = frozenset()
    environments: frozenset[tuple[str, str]] = frozenset()  # (("os", "darwin"), ("os", "linux"), ...)

    @classmethod
    def of(cls, runs: Iterable[TaskRun]) -> "Place":
        """The places of these runs."""
        branches: set[str] = set()
        commits: set[str] = set()
        environments: set[tuple[str, str]] = set()
        for run in runs:
            if run.branch:
                branches.add(run.branch)
            if run.base_commit:
                commits.add(run.base_commit)
            named = (("os", run.environment.os), ("sandbox", run.environment.sandbox), ("interpreter", run.environment.interpreter))
            environments |= {(name, value) for name, value in named if value}
        return cls(frozenset(branches), frozenset(commits), frozenset(environments))


class Link(NamedTuple):
    """What `newer` is to `older`. For "same", `newer` is the fact that stands for both: the one observed first."""

    newer: str
    older: str
    kind: Kind
    reason: str


Ancestry = Mapping[str, frozenset[str]]  # commit -> its ancestors among the known commits
NOWHERE = Place()


class Rules(NamedTuple):
    """What people, models and repositories add to the facts. Pairs are sets of two fact ids."""

    apart: frozenset[frozenset[str]] = frozenset()  # a person said that they do not replace each other
    nominated: frozenset[frozenset[str]] = frozenset()  # a model has named them, and code has checked what it could
    ancestry: Ancestry = MappingProxyType({})


NO_RULES = Rules()
Known = Mapping[str, tuple[Fact, Sequence[Witness]]]


class Settled(NamedTuple):
    """The facts with their marks, and the links to keep."""

    facts: tuple[Fact, ...]
    edges: tuple[Edge, ...]


def resolve(known: Known, places: Mapping[str, Place], rules: Rules = NO_RULES) -> Settled:
    """What these facts are to each other. `known` holds each fact as its own witnesses make it, `places` where each was seen.

    A fact that re-words another adds its witnesses to the one that was observed first, and is superseded by it.
    """
    owners: dict[tuple[str, str, str], list[Fact]] = {}
    for fact, _ in known.values():
        owners.setdefault((fact.tenant_id, fact.scope, fact.owner), []).append(fact)
    facts: list[Fact] = []
    found: list[Link] = []
    for members in owners.values():
        same = _same(members)
        merged = _merged(members, same, known)
        facts += merged
        aliases = {link.older for link in same}
        pairs = _candidate_pairs([f for f in merged if f.fact_id not in aliases], rules.nominated)
        compared = [p for p in pairs if frozenset((p[0].fact_id, p[1].fact_id)) not in rules.apart]
        found += [*same, *_judged(compared, places, rules)]
    return _marked(facts, found)


def _merged(facts: Sequence[Fact], same: Iterable[Link], known: Known) -> list[Fact]:
    """The facts, with what the re-wordings of each testify added to it."""
    heads: dict[str, list[str]] = {}
    for link in same:
        heads.setdefault(link.newer, []).append(link.older)
    merged = []
    for fact in facts:
        others = [w for alias in heads.get(fact.fact_id, ()) for w in known[alias][1]]
        if others:
            whole = fold(fact.tenant_id, [*known[fact.fact_id][1], *(replace(w, fact_id=fact.fact_id) for w in others)])
            fact = replace(fact, **{name: getattr(whole, name) for name in SUMMED})
        merged.append(fact)
    return merged


SUMMED = ("confidence", "decay_rate", "valid_from", "last_seen", "runs", "refuting_runs", "engine", "engines")  # what re-wordings add to


def _candidate_pairs(facts: Sequence[Fact], nominated: frozenset[frozenset[str]]) -> list[tuple[Fact, Fact]]:
    """Pairs that share a key or were nominated, earlier evidence first."""
    groups: dict[str, list[Fact]] = {}
    for fact in facts:
        for key in slots.keys(fact):
            if not key.startswith(("first\x1f", "last\x1f", "plain\x1f")):
                groups.setdefault(key, []).append(fact)
    pairs = {}
    for members in groups.values():
        for a, b in combinations(sorted(members, key=_age), 2):
            pairs[a.fact_id, b.fact_id] = (a, b)
    by_id = {f.fact_id: f for f in facts}
    for pair in nominated:
        if pair <= by_id.keys() and len(pair) == 2:
            a, b = sorted((by_id[i] for i in pair), key=_age)
            pairs[a.fact_id, b.fact_id] = (a, b)
    return list(pairs.values())


def _age(fact: Fact) -> tuple[datetime, datetime, str]:
    return fact.last_seen, fact.valid_from, fact.fact_id


# --- the same in other words --------------------------------------------------------------------------------------------


def _same(facts: Sequence[Fact]) -> list[Link]:
    """Each fact that only re-words another, linked to the one of its group that is pinned or was observed first."""
    groups: dict[str, list[Fact]] = {}
    for fact in facts:
        for key in slots.keys(fact):
            groups.setdefault(key, []).append(fact)
    heads = {f.fact_id: f for f in facts}
    for members in groups.values():
        for a, b in combinations(sorted(members, key=lambda f: (f.valid_from, f.fact_id)), 2):
            first, second = _head(a, heads), _head(b, heads)
            if first is not second and say_the_same(a, b):
                keep, drop = sorted((first, second), key=lambda f: (not f.pinned, f.valid_from, f.fact_id))
                if not drop.pinned:  # what a person pinned stays as it is
                    heads[drop.fact_id] = keep
    found = []
    for fact in facts:
        head = _head(fact, heads)
        if head is not fact:
            found.append(Link(head.fact_id, fact.fact_id, "same", SAME))
    return found


def _head(fact: Fact, heads: Mapping[str, Fact]) -> Fact:
    while heads[fact.fact_id].fact_id != fact.fact_id:
        fact = heads[fact.fact_id]
    return fact


def say_the_same(a: Fact, b: Fact) -> bool:
    """Whether one is a re-wording of the other. Negations, numbers, versions, paths and names have to be equal."""
    if a.claim is not None and b.claim is not None:
        if a.claim.slot == b.claim.slot:
            return slots.folded_value(a.claim.value) == slots.folded_value(b.claim.value)
        if a.source.startswith("heuristic:") and b.source.startswith("heuristic:"):
            return False
    if plain_form(a.content) == plain_form(b.content):
        return True
    return sentences.conditions(a.content) == sentences.conditions(b.content) and same_statement(a.content, b.content)


# --- another value, or the contrary ---------------------------------------------------------------------------------------


def disagreement(a: Fact, b: Fact) -> str | None:
    """Why the two cannot both hold under the same circumstances; None if they can, or if that is not sure."""
    if a.claim is not None and b.claim is not None:
        if a.claim.slot == b.claim.slot and slots.takes_one_value(a.claim) and _circumstances(a) == _circumstances(b):
            return f"another value of the same claim: {a.claim.value} / {b.claim.value}"
        return None
    if sentences.are_opposite(a.content, b.content) and sentences.conditions(a.content) == sentences.conditions(b.content):
        return "the contrary of each other"
    values = slots.other_value(a.content, b.content)
    if values is not None and _same_circumstances(a.content, b.content, values):
        return f"another value of the same thing: {values.one} / {values.other}"
    return None


def _circumstances(fact: Fact) -> frozenset[str]:
    assert fact.claim is not None
    return frozenset(c for c in sentences.conditions(fact.content) if c.rsplit(" ", 1)[-1] not in fact.claim.value.casefold())


def _same_circumstances(a: str, b: str, values: slots.Values) -> bool:
    mine, theirs = sentences.conditions(a), sentences.conditions(b)
    return {c for c in mine if values.one.lower() not in c} == {c for c in theirs if values.other.lower() not in c}


def _judged(pairs: Iterable[tuple[Fact, Fact]], places: Mapping[str, Place], rules: Rules) -> list[Link]:
    found = []
    for a, b in pairs:
        reason = disagreement(a, b)
        if reason is None and frozenset((a.fact_id, b.fact_id)) in rules.nominated:
            reason = "a model found that they disagree"
        if reason is None:
            continue
        order = _order(a, b, places.get(a.fact_id, NOWHERE), places.get(b.fact_id, NOWHERE), rules.ancestry)
        if order is None:
            continue
        newer, older = order
        is_later = newer.last_seen > older.last_seen or _descends(newer, older, places, rules.ancestry)
        kind: Kind = "supersedes" if is_later and newer.runs >= older.runs and not older.pinned else "contradicts"
        found.append(Link(newer.fact_id, older.fact_id, kind, reason))
    return found


def _order(a: Fact, b: Fact, at_a: Place, at_b: Place, ancestry: Ancestry) -> tuple[Fact, Fact] | None:
    """(newer, older); None if they hold in different places. Ancestry of commits goes before time."""
    if _differ(at_a.environments, at_b.environments):
        return None
    if _is_ancestor(at_a.commits, at_b.commits, ancestry):
        return b, a
    if _is_ancestor(at_b.commits, at_a.commits, ancestry):
        return a, b
    if not _share_a_branch(at_a, at_b):
        return None
    return (b, a) if _age(b) > _age(a) else (a, b)


def _descends(newer: Fact, older: Fact, places: Mapping[str, Place], ancestry: Ancestry) -> bool:
    mine, theirs = places.get(newer.fact_id, NOWHERE), places.get(older.fact_id, NOWHERE)
    return _is_ancestor(theirs.commits, mine.commits, ancestry)


def _is_ancestor(older: frozenset[str], newer: frozenset[str], ancestry: Ancestry) -> bool:
    """Every known commit of the one is before some commit of the other, and none the other way round."""
    if not older or not newer or older & newer:
        return False
    reached = frozenset().union(*(ancestry.get(c, frozenset()) for c in newer))
    back = frozenset().union(*(ancestry.get(c, frozenset()) for c in older))
    return older <= reached and not newer & back


def _differ(a: frozenset[tuple[str, str]], b: frozenset[tuple[str, str]]) -> bool:
    """A part of the environment is known for both and has nothing in common: both hold, each in its own."""
    return any(not {v for n, v in a if n == name} & {v for n, v in b if n == name} for name in {n for n, _ in a} & {n for n, _ in b})


def _share_a_branch(a: Place, b: Place) -> bool:
    """Whether both were seen in one line of development: an equal branch, or several each, so that neither is of one branch only."""
    mine, theirs = ({_branch(n) for n in p.branches} for p in (a, b))
    if mine and theirs:
        return bool(mine & theirs) or (len(mine) > 1 and len(theirs) > 1)
    if a.commits and b.commits:  # detached at commits whose order nobody knows
        return bool(a.commits & b.commits)
    return True


def _branch(name: str) -> str:
    return "" if name.lower() in DEFAULT_BRANCHES else name


# --- what follows for the facts -----------------------------------------------------------------------------------------


def _marked(facts: Sequence[Fact], found: Iterable[Link]) -> Settled:
    """Mark what is superseded, and give each link as an edge. A fact that re-words another is superseded by it; of several that replace
    a fact, the latest does. Pinned facts stay. A dispute with a fact that is itself superseded is over.
    """
    by_id = {f.fact_id: f for f in facts}
    replaced: dict[str, str] = {}
    kept: list[Link] = []
    for link in sorted(found, key=lambda x: (_age(by_id[x.newer]), x)):
        if link.kind != "contradicts":
            replaced[link.older] = link.newer
        kept.append(link)
    alive = [k for k in kept if k.kind != "contradicts" or not {k.newer, k.older} & replaced.keys()]
    marked = []
    for fact in facts:
        by = replaced.get(fact.fact_id)
        marked.append(replace(fact, superseded_by=by, valid_to=None if by is None else _until(fact, by_id[by])))
    return Settled(tuple(marked), tuple(sorted((_edge(k, by_id) for k in alive), key=lambda e: (e.from_id, e.to_id, e.relation))))


def _until(old: Fact, new: Fact) -> datetime:
    return new.valid_from if new.valid_from > old.valid_from else max(old.last_seen, new.last_seen)


def _edge(link: Link, by_id: Mapping[str, Fact]) -> Edge:
    newer, older = by_id[link.newer], by_id[link.older]
    weight = round(newer.confidence, 4)
    at = max(newer.last_seen, older.last_seen)
    return Edge(link.newer, link.older, "supersedes" if link.kind == "same" else link.kind, weight, link.reason, at)


def weaker(a: Fact, b: Fact) -> Fact:
    """The one of two that disagree which has less behind it: fewer runs, then less confidence, then older."""
    return min((a, b), key=lambda f: (f.runs - f.refuting_runs, f.confidence, _age(f)))
