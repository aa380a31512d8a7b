"""What a single sentence says, as far as forms tell: its words, the circumstances it names, and whether another says the contrary. Pure.

Knows forms, not meanings. What is uncertain gives nothing: two facts then stay side by side.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from osmia_memory.similarity import stem, unglued

CODE = re.compile(r"\S*[/_.\\:=@#<>*$+-]\S*|\w*[a-z][A-Z]\w*|\S*\d\S*")
COPULA = frozenset("is are was were equals becomes became remains".split())
_DROPPED = frozenset("now currently today already still nowadays".split())
_TOKEN = re.compile(r"`[^`]+`|[^\s]+")
_SENTENCES = re.compile(r"(?<=[a-z0-9`)\]])[.!?;:]\s+\S")


@lru_cache(maxsize=1 << 15)
def words(content: str) -> tuple[str, ...]:
    """The words of one sentence, code marks, final stop and "now" aside; empty for several sentences or clauses."""
    text = " ".join(content.split()).rstrip(".!")
    if _SENTENCES.search(text) or "?" in text:
        return ()
    found = (t.strip("`\"'“”,()") for t in _TOKEN.findall(text))
    return tuple(t for t in found if t and t.lower() not in _DROPPED)


# --- opposite sentences -----------------------------------------------------------------------------------------------

_NEGATIVE = re.compile(
    r"\b(?:(?:does|do|did|is|are|was|were|can|could|must|should|will|has|have|need)(?: not|n['’]t)|cannot|no longer|never|not|(?:is|are) no)\b",
    re.I,
)
# From here on a sentence tells a circumstance: what is turned round there ("fails when it is not set") makes another circumstance.
CLAUSES = frozenset(
    "when if unless while until after before that which who whose where because since once although though whenever".split()
)
_PHRASES = frozenset("with without under".split())  # hold no verb, so a negated verb behind them is the sentence's own


def _opposites(pairs: str) -> dict[str, str]:
    return {second: first for first, second in (pair.split("/") for pair in pairs.split())}


_OPPOSITE_VERBS = _opposites(
    "passes/fails pass/fail works/breaks accepts/rejects allows/forbids enables/disables includes/excludes include/exclude keeps/drops"
)
_OPPOSITE_STATES = _opposites(
    """
    passing/failing enabled/disabled required/optional supported/unsupported allowed/forbidden accepted/rejected green/red included/excluded
    present/missing on/off true/false public/private synchronous/asynchronous ascending/descending mutable/immutable stable/unstable
    inclusive/exclusive first/last valid/invalid online/offline
    """
)
_BEFORE_STATES = COPULA | frozenset("be been being stays stay to in as works runs run works".split())
_DEGREES = frozenset("not no longer always all fully by default again only".split())


class Stance(NamedTuple):
    """A sentence without its negations: equal `core` and another `sign` are opposite statements."""

    core: str
    sign: bool


@lru_cache(maxsize=1 << 15)
def stance(content: str) -> Stance | None:
    """The stance of a single sentence; None where nothing of it can be turned round, or too much."""
    tokens = words(content)
    if len(tokens) < 3:
        return None
    clause = next((n for n, t in enumerate(tokens) if t.lower() in CLAUSES), len(tokens))
    said, circumstance = " ".join(tokens[:clause]), tokens[clause:]
    negations = len(_NEGATIVE.findall(said))
    plain = _NEGATIVE.sub(_affirmed, said).split()
    phrase = next((n for n, t in enumerate(plain) if t.lower() in _PHRASES), len(plain))
    turned, core = 0, []
    for at, token in enumerate((*plain, *circumstance)):
        low = token.lower()
        if at < phrase and (first := _opposite_of(plain, at)) is not None:
            turned += 1
            low = first
        if low not in ("a", "an", "the", "any", "do", "does", "be"):
            core.append(token if CODE.fullmatch(token) else low if at >= len(plain) else stem(low))
    if negations + turned > 2 or len(core) < 2:
        return None
    return Stance(" ".join(core), (negations + turned) % 2 == 0)


def _opposite_of(tokens: Sequence[str], at: int) -> str | None:
    """The word that the one at `at` is the opposite of, where it is what the sentence says; a "public key" is only called so."""
    low = tokens[at].lower()
    before = next((t.lower() for t in reversed(tokens[:at]) if t.lower() not in _DEGREES), "")
    if low in _OPPOSITE_VERBS:
        return _OPPOSITE_VERBS[low] if before and before not in ("the", "a", "an", "to") else None
    if low in _OPPOSITE_STATES and (before in _BEFORE_STATES or (at == len(tokens) - 1 and before not in ("the", "a", "an"))):
        return _OPPOSITE_STATES[low]
    return None


def _affirmed(match: re.Match[str]) -> str:
    first = match[0].split()[0].lower().removesuffix("n't").removesuffix("n’t")
    if first == "cannot":
        return "can"
    return first if first in ("is", "are", "was", "were", "can", "could", "must", "should", "will", "has", "have", "need") else ""


def are_opposite(a: str, b: str) -> bool:
    """Whether two sentences say the contrary of each other under the same conditions."""
    one, other = stance(a), stance(b)
    return one is not None and other is not None and one.core == other.core and one.sign != other.sign


# --- conditions ---------------------------------------------------------------------------------------------------------

_CONDITION = re.compile(
    r"\b(?:when|if|unless|while|without|with|under|until|except|only|before|after|during|outside|inside|whenever|as long as)\s+(?:the |a |an )?`?([\w./=-]+)"
    r"|\b(?:on|in|for|at|behind)\s+(?:the |a |an )?(?:(?:python|pypy|node|go|java|jdk|ruby|php|rust|swift|xcode|postgres\w*|mysql|chrome|firefox)"
    r"(?:\s+v?\d[\w.]*)?|macos|mac|darwin|linux|windows|wsl|alpine|ubuntu|debian|arm64?|x86\S*|ci|docker|containers?|production|prod|"
    r"staging|development|dev|tests?|release|debug|sqlite|v\d\S*|\d{1,2}\.\d{1,2}(?:\.\d+)?(?![\d.:]))\b"
    r"|\b(locally|offline|online|interactively)\b",
    re.I,
)

_WHEN = re.compile(r"^when(?:ever)?\b")


def conditions(content: str) -> frozenset[str]:
    """The circumstances that a sentence names, folded."""
    return frozenset(_WHEN.sub("if", m[0].lower()).replace("`", "").rstrip(".,;:") for m in _CONDITION.finditer(unglued(content)))
