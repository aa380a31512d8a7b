"""Runs -> patterns and engine profiles: statistics with sample counts and intervals. Pure; recomputed, never decayed."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from osmia_memory import ids
from osmia_memory.models import ACROSS, Claim, EngineProfile, Fact, Outcome, Pattern

MIN_RUNS = 3  # fewer are "insufficient data"
_Z95 = 1.959964


class RunRow(NamedTuple):
    """What statistics need of one run; sub-agents' runs are not among them."""

    repo: str | None
    engine: str
    model: str | None
    task_type: str
    language: str | None
    outcome: Outcome
    duration_s: float | None
    cost_usd: float | None
    started_at: datetime


def wilson(hits: int, runs: int, z: float = _Z95) -> tuple[float, float]:
    """The Wilson score interval of a rate, in [0, 1], by default at 95 %. Source: E. B. Wilson, JASA 22 (1927) 209."""
    if runs <= 0:
        raise ValueError("an interval needs at least one run")
    rate, z2 = hits / runs, z**2
    centre = (rate + z2 / (2 * runs)) / (1 + z2 / runs)
    half = z / (1 + z2 / runs) * math.sqrt(rate * (1 - rate) / runs + z2 / (4 * runs * runs))
    return (max(0.0, centre - half), min(1.0, centre + half))


class GroupStats(NamedTuple):
    """Runs that share `key`. Rates are over runs with a known outcome; medians over runs that report the figure."""

    key: tuple[tuple[str, str], ...]  # (("repo", "org/api"), ("task_type", "bug_fix"))
    runs: int
    known: int
    successes: int
    interval: tuple[float, float] | None  # None: insufficient data
    median_duration_s: float | None
    median_cost_usd: float | None
    first_seen: datetime
    last_seen: datetime


def group(rows: Iterable[RunRow], names: Sequence[str]) -> list[GroupStats]:
    """Statistics by the named fields, most runs first. Rows that do not know one of them are left out."""
    by_key: dict[tuple[tuple[str, str], ...], list[RunRow]] = {}
    for row in rows:
        values = [getattr(row, name) for name in names]
        if all(value and value != "unknown" for value in values):
            by_key.setdefault(tuple(zip(names, values, strict=True)), []).append(row)
    return sorted((_stats(key, members) for key, members in by_key.items()), key=lambda s: (-s.runs, s.key))


def _stats(key: tuple[tuple[str, str], ...], rows: list[RunRow]) -> GroupStats:
    known = [r for r in rows if r.outcome in ("success", "failure")]
    successes = sum(r.outcome == "success" for r in known)
    durations = [r.duration_s for r in rows if r.duration_s is not None]
    costs = [r.cost_usd for r in rows if r.cost_usd is not None]
    times = [r.started_at for r in rows]
    return GroupStats(
        key,
        len(rows),
        len(known),
        successes,
        wilson(successes, len(known)) if len(known) >= MIN_RUNS else None,
        statistics.median(durations) if len(durations) >= MIN_RUNS else None,
        statistics.median(costs) if len(costs) >= MIN_RUNS else None,
        min(times),
        max(times),
    )


_PHRASES: Mapping[str, Callable[[str], str]] = {
    "repo": lambda v: f"in {v}",
    "engine": lambda v: f"with {v}",
    "model": lambda v: f"({v})",
    "task_type": lambda v: f"{v.replace('_', ' ')} tasks",
    "language": lambda v: f"on {v} code",
}


def patterns(rows: Sequence[RunRow], tenant_id: str) -> list[Pattern]:
    """Success rates and durations by task type, repository, language, engine and model; groups under three runs say nothing."""
    found: list[Pattern] = []
    for names in (
        ("repo",),
        ("repo", "task_type"),
        ("repo", "engine"),
        ("language", "task_type"),
        ("engine",),
        ("engine", "model"),
        ("engine", "task_type"),
    ):
        for stats in group(rows, names):
            if stats.interval is not None:
                found.append(_pattern(stats, tenant_id))
    return found


def _pattern(stats: GroupStats, tenant_id: str) -> Pattern:
    assert stats.interval is not None
    words = [_PHRASES[name](value) for name, value in stats.key]
    subject = " ".join(words) if words[0].endswith("tasks") else "Tasks " + " ".join(words)
    if any(w.endswith("tasks") for w in words):
        subject = " ".join(sorted(words, key=lambda w: not w.endswith("tasks")))
    low, high = stats.interval
    pace = f"; median duration {_minutes(stats.median_duration_s)}" if stats.median_duration_s else ""
    description = f"{subject[:1].upper()}{subject[1:]} succeed in {stats.successes} of {stats.known} runs (95 % interval {low:.0%} to {high:.0%}){pace}."
    return Pattern(
        ids.content_id("p1", [tenant_id, "success_rate", [list(k) for k in stats.key]]),
        description,
        stats.known,
        round(low, 4),
        stats.known,
        stats.successes,
        (round(low, 4), round(high, 4)),
        dict(stats.key),
        stats.first_seen,
        stats.last_seen,
    )


def recurring(facts: Sequence[Fact], rows: Sequence[RunRow], tenant_id: str) -> list[Pattern]:
    """What at least three runs of a repository met (failures, fix-ups, floods), with the share of its runs; most frequent first."""
    runs_of: dict[str, int] = {}
    for row in rows:
        if row.repo:
            runs_of[row.repo] = runs_of.get(row.repo, 0) + 1
    found = []
    for fact in facts:
        if fact.scope != "repo" or fact.fact_kind != "failure_pattern" or fact.runs < MIN_RUNS:
            continue
        runs = max(runs_of.get(fact.owner, 0), fact.runs)
        low, high = wilson(fact.runs, runs)
        description = f"In {fact.owner}, {fact.runs} of {runs} runs: {fact.content}"
        pattern_id = ids.content_id("p1", [tenant_id, "recurring", fact.fact_id])
        interval, group_key = (round(low, 4), round(high, 4)), {"repo": fact.owner}
        found.append(
            Pattern(pattern_id, description, fact.runs, interval[0], runs, fact.runs, interval, group_key, fact.valid_from, fact.last_seen)
        )
    return sorted(found, key=lambda p: (-p.hits, p.pattern_id))


def across_repositories(facts: Iterable[Fact], org: str) -> list[Fact]:
    """What runs of two or more repositories of one organisation say in the same words, at least three runs in all, as facts of the organisation.

    Recomputed from the facts of the repositories whenever it is asked for; nothing of it is stored.
    """
    said: dict[tuple[str, Claim | None], list[Fact]] = {}
    for fact in facts:
        if fact.scope == "repo" and fact.owner.partition("/")[0] == org:
            said.setdefault((fact.content, fact.claim), []).append(fact)
    found = []
    for (content, claim), members in said.items():
        repos, runs = {f.owner for f in members}, sum(f.runs for f in members)
        if len(repos) < 2 or runs < MIN_RUNS:
            continue
        best = max(members, key=lambda f: (f.confidence, f.fact_id))
        key = [best.tenant_id, "across", org, content, list(claim) if claim else None]
        found.append(
            replace(
                best,
                fact_id=ids.content_id("p1", key),
                scope="org",
                owner=org,
                runs=runs,
                refuting_runs=sum(f.refuting_runs for f in members),
                valid_from=min(f.valid_from for f in members),
                last_seen=max(f.last_seen for f in members),
                engines=tuple(sorted({e for f in members for e in f.engines})),
                pinned=False,
                importance=1.0,
                tags=tuple(sorted({*best.tags, ACROSS} - {"standing"})),  # how another repository is run is not to be told unasked
            )
        )
    return sorted(found, key=lambda f: (-f.runs, f.fact_id))


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


_CHANCE = 0.05  # of one false line in a whole report
_GROUPED = ("task_type", "language", "repo")
MAX_LINES = 3  # strengths, and weaknesses, of one engine


def profiles(rows: Sequence[RunRow]) -> list[EngineProfile]:
    """One profile an engine and one an engine and model.

    A strength or weakness is a kind of task (task type, language, repository) at which the engine does better or worse than the other
    engines do at the same kind, by more than chance: the interval of the difference excludes zero at a level that allows for all the
    comparisons made. How hard a kind of task is thus does not count for or against an engine.
    """
    by_engine = _compared(rows)
    found: list[EngineProfile] = []
    for names in (("engine",), ("engine", "model")):
        for stats in group(rows, names):
            own = [r for r in rows if all(getattr(r, name) == value for name, value in stats.key)]
            lines = by_engine.get(stats.key[0][1], ()) if len(names) == 1 else ()
            found.append(_profile(stats, own, lines))
    return found


class Comparison(NamedTuple):
    """An engine beside all others at one kind of task. `low` and `high` bound the difference of the rates."""

    name: str
    value: str
    hits: int
    runs: int
    other_hits: int
    other_runs: int
    low: float
    high: float


def _compared(rows: Sequence[RunRow]) -> dict[str, list[Comparison]]:
    """The differences that are more than chance, by engine, the largest first."""
    known = [r for r in rows if r.outcome in ("success", "failure")]
    counted: dict[tuple[str, str], dict[str, list[int]]] = {}
    for row in known:
        for name in _GROUPED:
            value = getattr(row, name)
            if value and value != "unknown":
                tally = counted.setdefault((name, value), {}).setdefault(row.engine, [0, 0])
                tally[0] += row.outcome == "success"
                tally[1] += 1
    pairs = [
        (kind, engine, counts, [sum(c[n] for e, c in engines.items() if e != engine) for n in (0, 1)])
        for kind, engines in counted.items()
        for engine, counts in engines.items()
        if counts[1] >= MIN_RUNS and sum(c[1] for c in engines.values()) - counts[1] >= MIN_RUNS
    ]
    z = statistics.NormalDist().inv_cdf(1 - _CHANCE / 2 / max(1, len(pairs)))
    found: dict[str, list[Comparison]] = {}
    for (name, value), engine, (hits, runs), (other_hits, other_runs) in pairs:
        low, high = difference(hits, runs, other_hits, other_runs, z)
        if low > 0 or high < 0:
            found.setdefault(engine, []).append(Comparison(name, value, hits, runs, other_hits, other_runs, low, high))
    return {e: sorted(lines, key=lambda c: (-max(c.low, -c.high), c.name, c.value)) for e, lines in found.items()}


def difference(hits: int, runs: int, other_hits: int, other_runs: int, z: float = _Z95) -> tuple[float, float]:
    """Interval of the difference of two rates. Source: R. G. Newcombe, Statistics in Medicine 17 (1998) 873, method 10."""
    rate, other = hits / runs, other_hits / other_runs
    (low, high), (other_low, other_high) = wilson(hits, runs, z), wilson(other_hits, other_runs, z)
    gap = rate - other
    return (
        gap - math.sqrt((rate - low) ** 2 + (other_high - other) ** 2),
        gap + math.sqrt((high - rate) ** 2 + (other - other_low) ** 2),
    )


def _profile(stats: GroupStats, rows: list[RunRow], lines: Sequence[Comparison]) -> EngineProfile:
    rate = stats.successes / stats.known if stats.known >= MIN_RUNS else None
    by_group: dict[str, tuple[int, int]] = {}
    for name in _GROUPED:
        for part in group(rows, (name,)):
            by_group[f"{name}={part.key[0][1]}"] = (part.successes, part.known)
    strengths = tuple(_told(c) for c in lines if c.low > 0)[:MAX_LINES]
    weaknesses = tuple(_told(c) for c in lines if c.high < 0)[:MAX_LINES]
    key = dict(stats.key)
    return EngineProfile(key["engine"], key.get("model"), stats.runs, rate, stats.interval, strengths, weaknesses, by_group)


def _told(c: Comparison) -> str:
    what = _PHRASES[c.name](c.value)
    return f"{what}: {c.hits} of {c.runs} runs succeeded, {c.other_hits} of {c.other_runs} with other engines"
