"""What tests of the whole share: the shipped runs, read once."""

from pathlib import Path

import pytest

import osmia_memory
from tests.product import a_memory

DEMO_RUNS = Path(osmia_memory.__file__).parent / "demo" / "runs"


@pytest.fixture(scope="session")
def demo_runs() -> Path:
    """The folder of the shipped transcripts."""
    return DEMO_RUNS


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has read them, for tenant `ticketing`. To read from; whoever writes copies it."""
    memory = a_memory(tmp_path_factory.mktemp("demo"))
    assert len(list(memory.extract([str(DEMO_RUNS)]))) == 14
    return memory.store_path
