"""Stand-ins for what a test must not wait for."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        """The time it was set to."""
        return self.time

    def advance(self, **parts: float) -> None:
        """Move on, for example `advance(minutes=5)`."""
        self.time += timedelta(**parts)
