"""Shared by all tests."""

import os
from pathlib import Path

import pytest
from harbor_queue.storage import Store


def pytest_configure(config):
    """Stop before anything could reach the live broker."""
    if os.environ.get("HARBOR_ENV") != "test":
        raise pytest.UsageError("HARBOR_ENV is not 'test': refusing to run against the live broker (see tools/check)")


@pytest.fixture
def store(tmp_path: Path):
    """An empty queue."""
    store = Store(tmp_path / "jobs.db")
    yield store
    store.connection.close()
