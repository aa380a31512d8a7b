"""A model names pairs of facts that cannot both hold; code has chosen the pairs it may name, and code decides what follows.

A named pair is kept as a nomination, in one journal entry a command, so that `undo` takes all of them back. What replaces what follows from
event time, evidence, branch and environment, as for every other pair (`relations.resolve`).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from osmia_memory import prompting, relations, slots
from osmia_memory.budget import Budget
from osmia_memory.errors import CapReached
from osmia_memory.extract.wire import NominationsV1
from osmia_memory.llm import Completer, Completion, Request
from osmia_memory.models import Fact
from osmia_memory.sentences import conditions, words
from osmia_memory.similarity import STOP_WORDS, statement_parts, stem

MAX_REPLY_TOKENS = 800
MAX_LISTED = 12  # facts of one request
Record = Callable[[str, Completion], None]


@dataclass(frozen=True)
class Group:
    """Facts of one owner, oldest first, of which some pairs may disagree. A pair is two positions, the older first."""

    facts: tuple[Fact, ...]
    pairs: frozenset[tuple[int, int]]

    @property
    def text(self) -> str:
        """As the model reads it, numbered from 1."""
        return "\n".join(f"{n} ({f.last_seen:%Y-%m-%d}) {f.content}" for n, f in enumerate(self.facts, 1))


class Nominations(NamedTuple):
    """What came of one command. `dropped` counts pairs that were named and not on offer; `unanswered` requests without a good reply."""

    pairs: tuple[tuple[str, str], ...]
    requests: int
    dropped: int
    unanswered: int


_CLAUSE_END = re.compile(r"[,;:.]\s|\b(?:since|because|as|but|and|so)\b", re.I)
_ENDED = re.compile(r"\bno longer\b|\b(?:not|nothing|n['’]t)\b.*\bany ?more\b", re.I)
_GONE = re.compile(r"\b(?:is|are|was|were|has been|have been)\s+(?:renamed|moved|dropped|removed|deleted|replaced|retired|gone)\b", re.I)
_SAID_OF_CHANGE = frozenset(stem(w) for w in "longer nothing more anymore now".split()) | {"no", "not"}


def may_disagree(a: Fact, b: Fact) -> bool:
    """Whether a model may name this pair: one owner, not yet related, and different in one thing alone, or one tells that the other ended."""
    if (a.tenant_id, a.scope, a.owner) != (b.tenant_id, b.scope, b.owner) or a.superseded_by or b.superseded_by:
        return False
    if relations.disagreement(a, b) is not None or relations.say_the_same(a, b):
        return False
    if a.claim is not None and b.claim is not None:
        return False  # claims are compared by their slots
    older, newer = sorted((a, b), key=lambda f: (f.last_seen, f.fact_id))
    return slots.differ_in_one_thing(a.content, b.content) or tells_the_end_of(newer.content, older.content)


def tells_the_end_of(newer: str, older: str) -> bool:
    """Whether the newer sentence says "no longer" of all that it speaks of, and the older one speaks of that too; or that what the older
    one gives as its value was renamed or dropped.
    """
    if not conditions(newer) <= conditions(older):
        return False
    known = _content_words(older)
    for clause in _CLAUSE_END.split(newer):
        if _ENDED.search(clause):
            said = _content_words(clause)
            return bool(said) and said <= known and len(_content_words(newer) & known) >= 2
        if gone := _GONE.search(clause):
            said = _content_words(clause[: gone.start()])
            value = _content_words(" ".join(words(older)[-1:]))
            return bool(value) and value <= said <= known and len(known) > len(said) and not slots.verbs_of_several(words(older))
    return False


def _content_words(text: str) -> frozenset[str]:
    """Names, numbers and the stems of words, without those of most sentences."""
    exact, plain = statement_parts(text)
    found = (*exact, *plain)
    return frozenset(w.casefold() for w in found if w in slots.SELECTORS or (w not in STOP_WORDS and w not in _SAID_OF_CHANGE))


def groups(facts: Sequence[Fact]) -> Iterator[Group]:
    """What to ask about: facts that may disagree, oldest first, each set at most `MAX_LISTED` long."""
    ordered = sorted(facts, key=lambda f: (f.last_seen, f.fact_id))
    by_words: dict[tuple[str, ...], list[Fact]] = {}
    for fact in ordered:
        key = slots.about(fact.content)
        if key:
            by_words.setdefault((fact.tenant_id, fact.scope, fact.owner, *key), []).append(fact)
    sets = [members[-MAX_LISTED:] for members in by_words.values()]
    for at, fact in enumerate(ordered):
        if _ENDED.search(fact.content) or _GONE.search(fact.content):
            sets.append(
                [*[f for f in ordered[:at] if f.owner == fact.owner and tells_the_end_of(fact.content, f.content)][1 - MAX_LISTED :], fact]
            )
    asked: set[tuple[str, str]] = set()
    for listed in sets:
        pairs = {
            (i, j) for (i, a), (j, b) in combinations(enumerate(listed), 2) if (a.fact_id, b.fact_id) not in asked and may_disagree(a, b)
        }
        asked |= {(listed[i].fact_id, listed[j].fact_id) for i, j in pairs}
        if pairs:
            yield Group(tuple(listed), frozenset(pairs))


def nominate(found: Sequence[Group], completer: Completer, budget: Budget, record: Record) -> Nominations:
    """Ask about each group; the pairs named are those that were on offer."""
    prompt = prompting.load("reconcile", "v1")
    named: set[tuple[str, str]] = set()
    asked = dropped = unanswered = 0
    for group in found:
        try:
            completion = completer.complete(Request(prompt.render(record=group.text), prompt.wire, MAX_REPLY_TOKENS), budget)
        except CapReached:
            unanswered += 1
            continue
        asked += 1
        record(prompt.id, completion)
        if completion.state != "ok" or not isinstance(completion.parsed, NominationsV1):
            unanswered += 1
            continue
        for pair in completion.parsed.pairs:
            places = tuple(sorted((pair.older - 1, pair.newer - 1)))
            if places in group.pairs:
                named.add((group.facts[places[0]].fact_id, group.facts[places[1]].fact_id))
            else:
                dropped += 1
    return Nominations(tuple(sorted(named)), asked, dropped, unanswered)
