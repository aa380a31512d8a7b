"""Confidence over time."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmia_memory import aging
from osmia_memory.testing import NOW, a_fact


@pytest.mark.parametrize(
    ("hours", "expected"),
    [(0, 0.8), (23, 0.8), (24, 0.72), (47.9, 0.72), (48, 0.648), (-100, 0.8)],
)
def test_confidence_falls_by_whole_cycles(hours: float, expected: float) -> None:
    """A cycle that has not ended yet costs nothing, and evidence from the future counts as fresh."""
    assert aging.effective_confidence(0.8, 0.1, NOW - timedelta(hours=hours), NOW) == pytest.approx(expected)


def test_the_interval_is_the_length_of_a_cycle() -> None:
    """With a week as interval, ten days are one cycle."""
    assert aging.effective_confidence(0.8, 0.5, NOW - timedelta(days=10), NOW, interval_hours=168) == pytest.approx(0.4)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 5000), st.integers(0, 5000))
def test_confidence_never_rises_with_age(confidence: float, decay_rate: float, younger: int, older: int) -> None:
    """Later is never more certain, and the result stays within [0, confidence]."""
    younger, older = sorted((younger, older))
    at = [aging.effective_confidence(confidence, decay_rate, NOW - timedelta(hours=h), NOW) for h in (younger, older)]
    assert 0 <= at[1] <= at[0] <= confidence


@pytest.mark.parametrize(
    ("decay_rate", "last", "interval", "word"),
    [(1.1, NOW, 24, "decay_rate"), (-0.1, NOW, 24, "decay_rate"), (0.1, NOW, 0, "interval_hours"), (0.1, datetime(2026, 1, 1), 24, "zone")],  # noqa: DTZ001
)
def test_impossible_input_is_named(decay_rate: float, last: datetime, interval: int, word: str) -> None:
    """A rate outside [0, 1], an interval of zero and a time without a zone are errors that say which."""
    with pytest.raises(ValueError, match=word):
        aging.effective_confidence(0.8, decay_rate, last, NOW, interval)


def test_pinned_facts_neither_decay_nor_get_pruned() -> None:
    """What a person pinned keeps its confidence; the same fact unpinned is pruned."""
    old = a_fact(at=NOW - timedelta(days=400), decay_rate=0.05, pinned=True)

    assert aging.current_confidence(old, NOW) == old.confidence
    assert not aging.is_prunable(old, NOW, threshold=0.05)
    assert aging.is_prunable(a_fact(at=NOW - timedelta(days=400), decay_rate=0.05), NOW, threshold=0.05)


def test_only_facts_strictly_below_the_threshold_are_pruned() -> None:
    """A fact exactly at the threshold stays."""
    fact = a_fact(confidence=0.05, decay_rate=0.0)

    assert not aging.is_prunable(fact, NOW, threshold=0.05)
    assert aging.is_prunable(fact, NOW, threshold=0.0501)
