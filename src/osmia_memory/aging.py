"""Confidence as a function of evidence and time.

Knows nothing about storage or about who asks. Pure: the time comes in as `now`, so that neither restarts nor the number of decay
passes can change an answer.
"""

from datetime import datetime, timedelta

from osmia_memory.models import Fact


def effective_confidence(confidence: float, decay_rate: float, last_evidence: datetime, now: datetime, interval_hours: int = 24) -> float:
    """Confidence at `now`, in [0, 1]: `confidence * (1 - decay_rate) ** cycles`.

    `cycles` are the whole `interval_hours` between `last_evidence` and `now`; a future `last_evidence` counts as zero cycles.
    Both times are timezone-aware.

    Raises:
        ValueError: `decay_rate` is outside [0, 1], `interval_hours` is not positive, or a time is naive.
    """
    if not 0 <= decay_rate <= 1:
        raise ValueError(f"`decay_rate` is {decay_rate!r}; it has to be within [0, 1]")
    if interval_hours <= 0:
        raise ValueError(f"`interval_hours` is {interval_hours!r}; it has to be positive")
    if last_evidence.tzinfo is None or now.tzinfo is None:
        raise ValueError("a time without a zone cannot be compared; give timezone-aware times")
    cycles = max(0, (now - last_evidence) // timedelta(hours=interval_hours))
    return float(confidence * (1 - decay_rate) ** cycles)


def current_confidence(fact: Fact, now: datetime, interval_hours: int = 24) -> float:
    """Confidence of `fact` at `now`. A pinned fact does not decay."""
    if fact.pinned:
        return fact.confidence
    return effective_confidence(fact.confidence, fact.decay_rate, fact.last_seen, now, interval_hours)


def is_prunable(fact: Fact, now: datetime, *, threshold: float, interval_hours: int = 24) -> bool:
    """Whether the decay pass removes `fact` at `now`: its confidence is strictly below `threshold` and nobody pinned it."""
    return not fact.pinned and current_confidence(fact, now, interval_hours) < threshold
