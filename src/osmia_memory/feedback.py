"""What became of facts that were shown: whether a run used them, and how runs fared with and without. Pure; changes no confidence."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from osmia_memory.aggregate import MIN_RUNS, difference, wilson
from osmia_memory.models import Fact, Outcome

_CODE = re.compile(r"`([^`]+)`(?P<after>[^`]{0,24})")
# A name after which this follows is what did not work; doing it is no use of the fact.
_WARNED = re.compile(
    r"^[\s,(]*(?:fails?|failed|is not|isn't|hangs?|does not|doesn't|cannot|can't|times? out|is missing|is refused|also reads|floods)\b",
    re.I,
)
_PLACEHOLDER = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|…|\.\.\.$")
_MIN_LETTERS = 4


def advice(fact: Fact) -> tuple[str, ...]:
    """The commands, paths and names of a fact that a run would use if it followed it; not those that the fact warns of."""
    found = [" ".join(_PLACEHOLDER.sub(" ", m[1]).split()) for m in _CODE.finditer(fact.content) if not _WARNED.match(m["after"])]
    return tuple(dict.fromkeys(text for text in found if sum(c.isalnum() for c in text) >= _MIN_LETTERS))


def is_used(fact: Fact, actions: Iterable[str]) -> bool:
    """Whether what the fact advises occurs in the run's own commands and edited paths (`actions`)."""
    wanted = [re.compile(rf"(?<![\w./-]){re.escape(text)}(?![\w-])") for text in advice(fact)]
    return any(pattern.search(" ".join(action.split())) for action in actions for pattern in wanted)


class Shown(NamedTuple):
    """One run that was asked about, with what is known of it. `facts` maps each fact shown to whether it was used."""

    run_id: str | None  # None: the run was not read yet
    repo: str | None
    task_type: str | None
    outcome: Outcome
    withheld: bool
    facts: Mapping[str, bool]


class Rate(NamedTuple):
    """Successes among known outcomes; `interval` is None below three."""

    successes: int
    known: int
    interval: tuple[float, float] | None


class Verdict(NamedTuple):
    """How runs fared by what they did with one fact. `difference` is used minus without, at 95 %; None: insufficient data."""

    fact_id: str
    content: str
    shown: int
    used: int
    with_it: Rate
    unused: Rate
    without: Rate
    difference: tuple[float, float] | None


def verdicts(facts: Sequence[Fact], shown: Sequence[Shown], others: Sequence[Shown]) -> list[Verdict]:
    """One verdict for each fact that was ever shown; what seems to do harm first, then what seems to help, then by how often it was shown.

    `shown` are runs with a record (withheld ones too), `others` runs without any. A run compares with a fact's users if it is of a
    repository where the fact was shown.
    """
    found = []
    for fact in facts:
        mine = [s for s in shown if not s.withheld and fact.fact_id in s.facts]
        if not mine:
            continue
        repos = {s.repo for s in mine}
        used = [s for s in mine if s.facts[fact.fact_id]]
        unused = [s for s in mine if not s.facts[fact.fact_id] and s.run_id is not None]
        without = [s for s in (*shown, *others) if s.repo in repos and (s.withheld or fact.fact_id not in s.facts)]
        a, b = _rate(used), _rate(without)
        gap = difference(a.successes, a.known, b.successes, b.known) if min(a.known, b.known) >= MIN_RUNS else None
        found.append(Verdict(fact.fact_id, fact.content, len(mine), len(used), a, _rate(unused), b, gap))
    return sorted(found, key=lambda v: (_harm(v), -v.used, -v.shown, v.fact_id))


def _harm(verdict: Verdict) -> float:
    """Below 0 if users fared worse beyond chance, 0 if nothing can be said."""
    if verdict.difference is None:
        return 0.0
    high = verdict.difference[1]
    return high if high < 0 else 0.0


def _rate(runs: Collection[Shown]) -> Rate:
    known = [s for s in runs if s.outcome in ("success", "failure")]
    successes = sum(s.outcome == "success" for s in known)
    return Rate(successes, len(known), wilson(successes, len(known)) if len(known) >= MIN_RUNS else None)
