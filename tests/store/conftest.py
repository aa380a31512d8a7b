"""Stores in a temporary folder."""

from pathlib import Path

import pytest

from osmia_memory.store.fact_store import FactStore


@pytest.fixture
def store(tmp_path: Path) -> FactStore:
    """A store that does not exist yet."""
    return FactStore(tmp_path / "memory.duckdb")
