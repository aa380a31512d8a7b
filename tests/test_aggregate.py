"""Statistics carry their sample counts and intervals, and say nothing below three runs."""

import random
from datetime import timedelta

import pytest

from osmia_memory import aggregate
from osmia_memory.aggregate import RunRow
from osmia_memory.models import Outcome
from osmia_memory.testing import NOW, a_fact


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


def test_strengths_and_weaknesses_are_against_other_engines_at_the_same_kind_of_task() -> None:
    """An engine is strong where it does better than others do there; that refactorings are hard for all is no weakness of one."""
    data = rows("s" * 30, engine="codex", task_type="docs") + rows("f" * 28 + "ss", engine="codex", task_type="refactor")
    data += rows("f" * 20 + "s" * 10, engine="aider", task_type="docs") + rows("f" * 29 + "s", engine="aider", task_type="refactor")
    codex, aider = (next(p for p in aggregate.profiles(data) if p.model is None and p.engine == e) for e in ("codex", "aider"))
    assert codex.sample_count == 60
    assert codex.strengths[0] == "docs tasks: 30 of 30 runs succeeded, 10 of 30 with other engines"
    assert codex.weaknesses == ()
    assert aider.weaknesses[0] == "docs tasks: 10 of 30 runs succeeded, 30 of 30 with other engines"
    assert not any("refactor" in line for p in (codex, aider) for line in (*p.strengths, *p.weaknesses))


def test_engines_of_one_rate_have_neither() -> None:
    """Of 200 reports over engines that differ by chance alone, with repositories of different difficulty, hardly any holds a line."""
    rng = random.Random(7)
    told = 0
    for _ in range(200):
        data = []
        for engine in ("a", "b", "c", "d"):
            for repo, rate in (("acme/easy", 0.8), ("acme/even", 0.5), ("acme/hard", 0.15)):
                data += rows("".join("s" if rng.random() < rate else "f" for _ in range(40)), engine=engine, repo=repo)
        told += any(p.strengths or p.weaknesses for p in aggregate.profiles(data))
    assert told <= 20  # 5 % are allowed


@pytest.mark.parametrize(("a", "b", "low", "high"), [((56, 70), (48, 80), 0.0524, 0.3339), ((9, 10), (3, 10), 0.1705, 0.8090)])
def test_the_interval_of_a_difference_is_the_published_one(a: tuple[int, int], b: tuple[int, int], low: float, high: float) -> None:
    """Newcombe's examples for his method 10."""
    assert aggregate.difference(*a, *b) == pytest.approx((low, high), abs=1e-4)


def test_what_recurs_has_its_share_of_the_runs() -> None:
    """Failures that three runs met are patterns with n, k and an interval; fewer are not."""
    met = a_fact("`just` is not installed.", owner="acme/shop", fact_kind="failure_pattern", runs=3)
    once = a_fact("`tox` is not installed.", owner="acme/shop", fact_kind="failure_pattern", runs=2)
    (pattern,) = aggregate.recurring([met, once], rows("ssffs"), "t")
    assert (pattern.hits, pattern.runs, pattern.interval) == (3, 5, tuple(round(x, 4) for x in aggregate.wilson(3, 5)))
    assert pattern.description == "In acme/shop, 3 of 5 runs: `just` is not installed."


def test_what_two_repositories_of_one_owner_share_is_the_owners() -> None:
    """Two repositories and three runs are needed, of one organisation."""
    shop, cart, other = (a_fact("`just` is not installed.", owner=o, runs=2) for o in ("acme/shop", "acme/cart", "zeta/cart"))
    (found,) = aggregate.across_repositories([shop, cart, other], "acme")
    assert (found.scope, found.owner, found.runs, found.content) == ("org", "acme", 4, "`just` is not installed.")
    assert aggregate.across_repositories([shop, other], "acme") == []


def test_a_perfect_record_has_no_weak_side() -> None:
    """The upper bound of 4 of 4 is a hair below 1: no weakness follows from that."""
    data = rows("ssss", task_type="docs") + rows("ssssss", task_type="test")
    assert all(p.weaknesses == p.strengths == () for p in aggregate.profiles(data))
