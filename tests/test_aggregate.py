"""Statistics carry their sample counts and intervals, and say nothing below three runs."""

from datetime import timedelta

import pytest

from osmia_memory import aggregate
from osmia_memory.aggregate import RunRow
from osmia_memory.models import Outcome
from osmia_memory.testing import NOW


def rows(outcomes: str, *, engine: str = "codex", repo: str = "acme/shop", task_type: str = "bug_fix") -> list[RunRow]:
    """One run a letter: s(uccess), f(ailure), u(nknown)."""
    names: dict[str, Outcome] = {"s": "success", "f": "failure", "u": "unknown"}
    return [
        RunRow(repo, engine, "m1", task_type, "python", names[o], 60.0 + n, 0.5, NOW + timedelta(days=n)) for n, o in enumerate(outcomes)
    ]


@pytest.mark.parametrize(
    ("hits", "runs", "low", "high"),
    [(5, 10, 0.2366, 0.7634), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 1, 0.2065, 1.0)],
)
def test_wilson_intervals_are_the_published_ones(hits: int, runs: int, low: float, high: float) -> None:
    """Values of the score interval without continuity correction at 95 %."""
    assert aggregate.wilson(hits, runs) == pytest.approx((low, high), abs=1e-4)


def test_under_three_runs_there_is_insufficient_data() -> None:
    """No interval, no pattern, no rate."""
    (stats,) = aggregate.group(rows("sf"), ("repo",))
    assert stats.interval is None
    assert aggregate.patterns(rows("sf"), "t") == []
    assert all(p.success_rate is None for p in aggregate.profiles(rows("sf")))


def test_unknown_outcomes_count_as_runs_but_not_in_rates() -> None:
    """Two successes of three known; four runs in all."""
    (stats,) = aggregate.group(rows("ssfu"), ("repo",))
    assert (stats.runs, stats.known, stats.successes) == (4, 3, 2)
    assert stats.median_duration_s == 61.5


def test_a_pattern_rests_on_its_statistic() -> None:
    """n, k, the interval, the group and the first and last time are all there."""
    pattern = next(p for p in aggregate.patterns(rows("sssf"), "t") if set(p.group) == {"repo", "task_type"})
    assert (pattern.hits, pattern.runs) == (3, 4)
    assert pattern.group == {"repo": "acme/shop", "task_type": "bug_fix"}
    assert pattern.description.startswith("Bug fix tasks in acme/shop succeed in 3 of 4 runs (95 % interval 30% to 95%)")
    assert (pattern.first_seen, pattern.last_seen) == (NOW, NOW + timedelta(days=3))


def test_strengths_and_weaknesses_need_more_than_chance() -> None:
    """A group is told only if its interval excludes the engine's own rate."""
    data = rows("s" * 30, task_type="docs") + rows("f" * 30, task_type="refactor")
    profile = next(p for p in aggregate.profiles(data) if p.model is None)
    assert profile.sample_count == 60
    assert profile.strengths == ("docs tasks: 30 of 30 runs succeeded, against 50% overall",)
    assert profile.weaknesses == ("refactor tasks: 0 of 30 runs succeeded, against 50% overall",)
    even = next(p for p in aggregate.profiles(rows("sfsf", task_type="docs") + rows("sfsf", task_type="test")) if p.model is None)
    assert even.strengths == even.weaknesses == ()


def test_a_perfect_record_has_no_weak_side() -> None:
    """The upper bound of 4 of 4 is a hair below 1: no weakness follows from that."""
    data = rows("ssss", task_type="docs") + rows("ssssss", task_type="test")
    assert all(p.weaknesses == p.strengths == () for p in aggregate.profiles(data))
