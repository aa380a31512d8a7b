"""Where the time comes from."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Anything that knows the time."""

    def now(self) -> datetime:
        """The current time, with a zone."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(UTC)
