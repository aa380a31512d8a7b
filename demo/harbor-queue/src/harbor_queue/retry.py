"""When a failed job is tried again."""

from datetime import timedelta

BASE_SECONDS = 20


def delay(attempt: int, job_id: str) -> timedelta:
    """How long to wait after `attempt` failures of `job_id`; doubles each time."""
    return timedelta(seconds=BASE_SECONDS * 2**attempt)
