"""Whether two candidates of one run say the same, or the contrary. Pure."""

import re
from collections.abc import Sequence
from dataclasses import replace

from osmia_memory import ids
from osmia_memory.extract import naming, wording
from osmia_memory.models import Candidate
from osmia_memory.similarity import same_statement, terms

SAME_MEANING = 0.6  # of the words beside the names, where the names are equal or fewer
SAME_SOURCE = 0.34  # likewise, where the same result is quoted as well


def is_known(candidate: Candidate, rules: Sequence[Candidate]) -> bool:
    """A rule's fact says it already."""
    return any(says_the_same(candidate, rule) or same_slot(candidate, rule) or _rests_on_the_same(candidate, rule) for rule in rules)


def says_the_same(a: Candidate, b: Candidate) -> bool:
    """The same fact, the same sentence, or no other names in nearly the same words."""
    if (a.scope, a.owner) != (b.scope, b.owner):
        return False
    if same_statement(a.content, b.content) or _fact_id(a) == _fact_id(b):
        return True
    alike = _names_no_more(a, b) and _shared_words(a, b) >= SAME_MEANING
    return alike and wording.polarity(a.content)[1] == wording.polarity(b.content)[1]


def _rests_on_the_same(candidate: Candidate, rule: Candidate) -> bool:
    """It names nothing that the rule's fact does not, and has no other sources: it quotes the same passage, or says it in similar words."""
    if (candidate.scope, candidate.owner) != (rule.scope, rule.owner) or not _names_no_more(candidate, rule):
        return False
    if not {e.event_index for e in candidate.evidence} <= {e.event_index for e in rule.evidence}:
        return False
    pairs = [(a, b) for a in candidate.evidence for b in rule.evidence if a.event_index == b.event_index]
    if any(a.span[0] < b.span[1] and b.span[0] < a.span[1] for a, b in pairs):
        return True
    return bool(pairs) and _shared_words(candidate, rule) >= SAME_SOURCE


def _names_no_more(a: Candidate, b: Candidate) -> bool:
    """All names and numbers of `a` stand in `b`, and there are some."""
    text = " ".join((b.content, *(b.claim or ()), *b.anchors))
    names = [word for name in naming.names(a.content) for word in name.split()]
    return bool(names) and all(word in text for word in names) and set(_NUMBER.findall(a.content)) <= set(_NUMBER.findall(text))


def _shared_words(a: Candidate, b: Candidate) -> float:
    """The share of the words of `a`, names aside, that `b` has too."""
    mine, theirs = (terms(naming.prose(c.content)).keys() for c in (a, b))
    return len(mine & theirs) / len(mine) if mine else 0.0


_NUMBER = re.compile(r"\d[\d.]*")


def same_slot(a: Candidate, b: Candidate) -> bool:
    """Their claims are about the same property of the same thing."""
    if a.claim is None or b.claim is None or (a.scope, a.owner) != (b.scope, b.owner):
        return False
    return tuple(map(str.lower, a.claim.slot)) == tuple(map(str.lower, b.claim.slot))


def _fact_id(c: Candidate) -> str:
    return ids.fact_id("", c.scope, c.owner, c.claim, c.content)


def contradict(earlier: Candidate, later: Candidate, *, same_chunk: bool) -> bool:
    """Both cannot hold: other values of one property, told by different parts, or a sentence and its negation."""
    if (earlier.scope, earlier.owner) != (later.scope, later.owner):
        return False
    values = {c.claim.value.lower() for c in (earlier, later) if c.claim is not None}
    if not same_chunk and same_slot(earlier, later) and len(values) == 2:
        return True
    (a, sign_a), (b, sign_b) = wording.polarity(earlier.content), wording.polarity(later.content)
    return sign_a != sign_b and same_statement(a, b)


def merged(earlier: Candidate, later: Candidate, most: int) -> Candidate:
    """The later wording with the evidence of both, the `most` latest pieces of it, and the higher confidence."""
    evidence = {(e.event_index, e.span): e for e in (*later.evidence, *earlier.evidence)}
    anchors = dict.fromkeys((*later.anchors, *earlier.anchors))
    return replace(
        later,
        evidence=tuple(sorted(evidence.values(), key=lambda e: e.event_index)[-most:]),
        confidence=max(earlier.confidence, later.confidence),
        claim=later.claim or earlier.claim,
        anchors=tuple(anchors),
    )
