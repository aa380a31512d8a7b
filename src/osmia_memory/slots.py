"""What two sentences have in common when one states another value than the other. Pure; standard library only.

A claim gives its slot. A sentence without one gives *frames*: its words up to the place where a single value follows ("the default branch of
`x` is", "`x` listens on", "was founded by"). Two sentences with the same frame and another value cannot both hold; frames after which several
values may stand side by side ("needs", "is imported by") give nothing. What is uncertain gives nothing: two facts then stay side by side.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from osmia_memory.models import Claim, Fact
from osmia_memory.similarity import STOP_WORDS, statement_parts, stem

# Verbs and participles after which one more value takes nothing from the other; by stem.
_SEVERAL = frozenset(
    stem(word)
    for word in """
    need needs require requires depend depends use uses used import imports imported call calls called read reads write writes wrote change changed
    changes contain contains hold holds include includes support supports accept accepts reject rejects rejected refuse refused fail fails failed break
    breaks broken test tests tested check checked checks cover covered covers affect affected cause caused trigger triggered share shared block blocked
    want wants ask asked forbid forbids allow allows allowed mention mentions know knows known work works see seen show shows shown fix fixed touch
    touched update updated updates compare compared skip skipped ignore ignored pass passes run runs appear appears occur occurs happen happens help
    helps come comes go goes matter matters differ differs available due error failure
    """.split()
)
# "the cause of", "a part of": there may be others.
_OF_SEVERAL = frozenset(
    "cause causes part parts member members example examples reason reasons subclass wrapper dependency caller user problem issue bug sign symptom "
    "source way list number set pair kind result".split()
)
_MANY_ATTRIBUTES = re.compile(
    r"\b(?:needs?|requires?|depends?|uses?|imports?|calls?|contains?|includes?|supports?|accepts?|rejects?|refused|fails?|tests?|checks?|changes? with"
    r"|dead end|asked|matches|pushes|fix-?up|pitfalls?|flags?|options?|wants|floods|touches|reads|writes|also|has|have|steps?|dirty files|coupled"
    r"|own script|cuts|repeats|accident|sandbox|shell|provider|limit|affects?|causes?|members?|exports?|files?|covers?|callers?|users?|examples?|notes?)\b",
    re.I,
)

_COPULA = frozenset("is are was were equals becomes became remains".split())
_PREPOSITIONS = frozenset("in at on to as from with under by of for into".split())
_ARTICLES = frozenset("the its their our".split())
_INDEFINITE = frozenset(("a", "an"))
_ONE_VALUE = frozenset("returns takes lasts costs expects prints equals defaults listens".split())  # verbs with one object
_DROPPED = frozenset("now currently today already still nowadays".split())
_CONDITIONS = frozenset(
    "when if unless while with without under on in for before after during only except because since until via locally whenever where outside inside "
    "through but and or than".split()
)
_MAX_KEY, _MAX_NAME, _MAX_WORDS = 24, 7, 3

_TOKEN = re.compile(r"`[^`]+`|[^\s]+")
_NUMBER = re.compile(r"[~<>=v]*\d[\d.,:_x-]*\+?(?:%|[a-zA-Z]{1,3})?")
_CODE = re.compile(r"\S*[/_.\\:=@#<>*$+-]\S*|\w*[a-z][A-Z]\w*|\S*\d\S*")
_SENTENCES = re.compile(r"(?<=[a-z0-9`)\]])[.!?;:]\s+\S")

ValueKind = Literal["number", "code", "name", "word"]


class Frame(NamedTuple):
    """One way to read a sentence: `key` (folded words up to the value) and the words of the rest as they stand."""

    key: str
    rest: tuple[str, ...]


# --- slots of claims --------------------------------------------------------------------------------------------------


def takes_one_value(claim: Claim) -> bool:
    """Whether another value of the same slot speaks against this one; yes-or-no claims and lists never do."""
    if claim.value.casefold() in ("yes", "seen"):
        return False
    return not _MANY_ATTRIBUTES.search(claim.attribute.replace("_", " "))


def folded_value(value: str) -> str:
    """A claim's value as compared: case, white space, code marks and a final stop aside."""
    return " ".join(value.replace("`", "").split()).rstrip(".").casefold()


# --- frames of sentences ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 15)
def words(content: str) -> tuple[str, ...]:
    """The words of one sentence, code marks, final stop and "now" aside; empty for several sentences or clauses."""
    text = " ".join(content.split()).rstrip(".!")
    if _SENTENCES.search(text) or "?" in text:
        return ()
    found = (t.strip("`\"'“”,()") for t in _TOKEN.findall(text))
    return tuple(t for t in found if t and t.lower() not in _DROPPED)


@lru_cache(maxsize=1 << 15)
def frames(content: str) -> tuple[Frame, ...]:
    """All frames of a sentence, the longest first."""
    tokens = words(content)
    if not 3 <= len(tokens) <= _MAX_KEY + _MAX_NAME:
        return ()
    low = [t.lower() for t in tokens]
    ends = [at for at in range(1, min(len(low) - 1, _MAX_KEY)) if _leads_to_value(low, at)]
    return tuple(Frame(" ".join(low[: at + 1]), tokens[at + 1 :]) for at in reversed(ends))


def _leads_to_value(low: Sequence[str], at: int) -> bool:
    """Whether one value follows the word at `at`."""
    word, before = low[at], low[at - 1]
    if word in _COPULA:
        return _has_definite_attribute(low[:at])
    if word in _ONE_VALUE:
        return True
    if word == "of" and at >= 3 and low[at - 2] in (_ARTICLES | _INDEFINITE) and _has_verb(low[: at - 2]):
        return before not in _OF_SEVERAL
    if word in _PREPOSITIONS and (before.endswith(("ed", "en", "s", "t", "rn")) or low[at - 2 : at - 1] == ["is"]):
        follows_copula = at >= 2 and low[at - 2] in _COPULA
        is_finite = before.endswith("s") and not before.endswith("ss") and before not in _COPULA and at >= 2
        is_participle = at >= 2 and before.endswith(("ed", "en")) and low[at - 2] not in _PREPOSITIONS
        return (follows_copula or is_finite or is_participle) and stem(before) not in _SEVERAL and before not in _OF_SEVERAL
    return False


def _has_definite_attribute(subject: Sequence[str]) -> bool:
    """The subject is an attribute of something: "the author of x", "the default branch", "x's child", "its port"."""
    if any(w.endswith(("'s", "’s")) for w in subject):
        return True
    return len(subject) >= 2 and subject[0] in _ARTICLES and subject[1] not in _OF_SEVERAL


def _has_verb(low: Sequence[str]) -> bool:
    return any(w in _COPULA or (w.endswith("s") and len(w) > 3 and not w.endswith(("ss", "us"))) or w.endswith("ed") for w in low[1:])


class Values(NamedTuple):
    """What stands in the place of the value in two sentences with the same frame."""

    one: str
    other: str


def other_value(a: str, b: str) -> Values | None:
    """The two values, if two sentences are the same but for one value that only one thing can have; else None."""
    by_key = {frame.key: frame.rest for frame in frames(b)}
    for key, rest in frames(a):
        if key in by_key:
            return _values(rest, by_key[key])  # the longest frame decides: a shorter one would take more for the value
    return None


def _values(one: Sequence[str], other: Sequence[str]) -> Values | None:
    end = 0
    while end < min(len(one), len(other)) and one[-1 - end].lower() == other[-1 - end].lower():
        end += 1
    mine, theirs = one[: len(one) - end], other[: len(other) - end]
    if not mine or not theirs:
        # what is left over is a condition, or a part of a longer name ("York" in "New York"): the whole is the value
        mine, theirs = tuple(one), tuple(other)
        if len(mine) == len(theirs) or _kind(mine) != "name" or _kind(theirs) != "name":
            return None
    if len(mine) == len(theirs) > 1 and mine[0].lower() == theirs[0].lower() and mine[0].islower():  # "port 8080"
        mine, theirs = mine[1:], theirs[1:]
    kinds = {_kind(mine), _kind(theirs)}
    if None in kinds or ("number" in kinds and len(kinds) > 1) or mine == theirs:
        return None
    return Values(" ".join(mine), " ".join(theirs))


def _kind(value: Sequence[str]) -> ValueKind | None:
    """What kind of thing a value is; None if it is none (a clause, a condition, a list)."""
    if value[0].lower() in _PREPOSITIONS:
        return None
    if len(value) == 1 and _NUMBER.fullmatch(value[0]):
        return "number"
    if len(value) == 2 and _NUMBER.fullmatch(value[0]) and value[1].islower() and value[1] not in _CONDITIONS:
        return "number"
    if len(value) <= _MAX_NAME and all(t[:1].isupper() or not t[:1].isascii() or t.lower() in _JOINING for t in value):
        return "name"
    if any(t.lower() in _CONDITIONS or t.lower() in _NO for t in value):
        return None
    if len(value) <= 2 and any(_CODE.fullmatch(t) for t in value):
        return "code"
    return "word" if len(value) <= _MAX_WORDS else None


_JOINING = frozenset("of the and de la le du von van der den da di del el al bin ibn y e in on for at to with".split())
_NO = frozenset("not no never nor neither cannot".split())


# --- opposite sentences -----------------------------------------------------------------------------------------------

_NEGATIVE = re.compile(
    r"\b(?:(?:does|do|did|is|are|was|were|can|could|must|should|will|has|have|need)(?: not|n['’]t)|cannot|no longer|never|not|(?:is|are) no)\b",
    re.I,
)
_ANTONYMS = {
    second: first
    for first, second in (
        pair.split("/")
        for pair in """
        passes/fails pass/fail passing/failing enabled/disabled enables/disables required/optional supported/unsupported
        works/breaks allowed/forbidden accepted/rejected accepts/rejects allows/forbids green/red before/after include/exclude
        includes/excludes included/excluded present/missing on/off true/false public/private synchronous/asynchronous ascending/descending
        mutable/immutable stable/unstable inclusive/exclusive first/last valid/invalid online/offline keeps/drops
        """.split()
    )
}


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
    text = " ".join(tokens)
    negations = len(_NEGATIVE.findall(text))
    # a word after a condition ("with gpgSign on") is a circumstance, not what is said
    turned, core, in_condition = 0, [], False
    for token in _NEGATIVE.sub(_affirmed, text).split():
        low = token.lower()
        in_condition = in_condition or low in ("when", "if", "unless", "with", "without", "while", "after", "before", "under", "until")
        if not in_condition and low in _ANTONYMS:
            turned += 1
            low = _ANTONYMS[low]
        if low not in ("a", "an", "the", "any", "do", "does", "be"):
            core.append(token if _CODE.fullmatch(token) else stem(low))
    if negations + turned > 2 or len(core) < 2:
        return None
    return Stance(" ".join(core), (negations + turned) % 2 == 0)


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
    r"|\b(?:on|in|for|at|behind)\s+(?:the |a |an )?(macos|mac|darwin|linux|windows|wsl|alpine|ubuntu|debian|arm64?|x86\S*|ci|docker|containers?|production|prod|"
    r"staging|development|dev|tests?|release|debug|python|node|go|postgres\w*|mysql|sqlite|v\d\S*|\d{1,2}\.\d{1,2}(?:\.\d+)?(?![\d.:]))\b"
    r"|\b(locally|offline|online|interactively)\b",
    re.I,
)


def conditions(content: str) -> frozenset[str]:
    """The circumstances that a sentence names, folded."""
    return frozenset(m[0].lower().replace("`", "") for m in _CONDITION.finditer(content))


# --- keys -----------------------------------------------------------------------------------------------------------------


def keys(fact: Fact) -> frozenset[str]:
    """Under these keys stand all facts that may say the same as this one, the contrary, or another value; of one owner."""
    return frozenset(_keys(fact))


def _keys(fact: Fact) -> Iterator[str]:
    if fact.claim is not None:
        if takes_one_value(fact.claim):
            yield "slot\x1f" + "\x1f".join(part.casefold() for part in fact.claim.slot)
        if fact.source.startswith("heuristic:"):  # a rule words what it claims always in the same way
            return
    for frame in frames(fact.content):
        yield "frame\x1f" + frame.key
    turned = stance(fact.content)
    if turned is not None:
        yield "stance\x1f" + turned.core
    exact, plain = statement_parts(fact.content)
    if plain:
        yield "\x1f".join(("first", *exact, plain[0]))
        yield "\x1f".join(("last", *exact, plain[-1]))


# --- what a model may be asked about --------------------------------------------------------------------------------------

# Verbs that say the same of a value: "listens on", "binds to", "uses port", "is served at".
_LIGHT_VERBS = frozenset(
    stem(word)
    for word in """
    use uses using listen listens bind binds bound run runs serve serves served set sets default defaults expose exposes start starts take takes have has
    keep keeps live lives stay stays store stores stored configure configured need needs require requires expect expects be been return returns
    answer answers respond responds give gives call calls want wants find finds found sit sits work works now moved move switched switch changed
    change raised lowered currently longer anymore instead
    """.split()
)


def differ_in_one_thing(a: str, b: str) -> bool:
    """Whether two sentences are about the same thing in the same circumstances and differ in one number, name or negation alone.

    They may be worded with other verbs. Weaker than `other_value` and `are_opposite`: enough to ask somebody, not enough to decide.
    """
    if not words(a) or not words(b) or conditions(a) != conditions(b):
        return False
    (exact_a, plain_a), (exact_b, plain_b) = statement_parts(a), statement_parts(b)
    about_a, about_b = _subject_words(plain_a), _subject_words(plain_b)
    if about_a != about_b or not about_a:
        return False
    names_a, names_b = ([t for t in exact if _CODE.fullmatch(t)] for exact in (exact_a, exact_b))
    signs = (len(exact_a) - len(names_a)) % 2 != (len(exact_b) - len(names_b)) % 2
    only_a, only_b = [t for t in names_a if t not in names_b], [t for t in names_b if t not in names_a]
    if len(about_a) + len(set(names_a) & set(names_b)) < 2:
        return False  # "the port is 8080" could be anything's
    if signs:
        return not only_a and not only_b
    return len(only_a) == len(only_b) == 1 and _kind(only_a) == _kind(only_b) and _kind(only_a) is not None


def about(content: str) -> tuple[str, ...]:
    """The words that two sentences have to share to be about the same thing, sorted; empty where there are none."""
    found = _subject_words(statement_parts(content)[1]) if words(content) else frozenset()
    return tuple(sorted(found))


def _subject_words(plain: Sequence[str]) -> frozenset[str]:
    return frozenset(w for w in plain if w not in _LIGHT_VERBS and w not in STOP_WORDS)
