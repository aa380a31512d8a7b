"""Runs -> patterns and engine profiles: statistics with sample counts and intervals. Pure; recomputed, never decayed."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from osmia_memory import ids
from osmia_memory.models import EngineProfile, Outcome, Pattern

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


def wilson(hits: int, runs: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of a rate, in [0, 1]. Source: E. B. Wilson, JASA 22 (1927) 209."""
    if runs <= 0:
        raise ValueError("an interval needs at least one run")
    rate, z2 = hits / runs, _Z95**2
    centre = (rate + z2 / (2 * runs)) / (1 + z2 / runs)
    half = _Z95 / (1 + z2 / runs) * math.sqrt(rate * (1 - rate) / runs + z2 / (4 * runs * runs))
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
    """Statistics by the named fields, most runs first. Rows without one of them are left out."""
    by_key: dict[tuple[tuple[str, str], ...], list[RunRow]] = {}
    for row in rows:
        values = [getattr(row, name) for name in names]
        if all(values):
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


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def profiles(rows: Sequence[RunRow]) -> list[EngineProfile]:
    """One profile an engine and one an engine and model. A strength or weakness is a group whose interval excludes the engine's own rate."""
    found: list[EngineProfile] = []
    for names in (("engine",), ("engine", "model")):
        for stats in group(rows, names):
            own = [r for r in rows if all(getattr(r, name) == value for name, value in stats.key)]
            found.append(_profile(stats, own))
    return found


def _profile(stats: GroupStats, rows: list[RunRow]) -> EngineProfile:
    rate = stats.successes / stats.known if stats.known >= MIN_RUNS else None
    strengths: list[str] = []
    weaknesses: list[str] = []
    by_group: dict[str, tuple[int, int]] = {}
    for name in ("task_type", "language", "repo"):
        for part in group(rows, (name,)):
            label = f"{name}={part.key[0][1]}"
            by_group[label] = (part.successes, part.known)
            if part.interval is None or rate is None or part.known == stats.known or part.successes == rate * part.known:
                continue
            told = f"{_PHRASES[name](part.key[0][1])}: {part.successes} of {part.known} runs succeeded, against {rate:.0%} overall"
            if part.interval[0] > rate:
                strengths.append(told)
            elif part.interval[1] < rate:
                weaknesses.append(told)
    key = dict(stats.key)
    return EngineProfile(key["engine"], key.get("model"), stats.runs, rate, stats.interval, tuple(strengths), tuple(weaknesses), by_group)
