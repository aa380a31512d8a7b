"""Every command test works in an empty folder and sees no setting of this machine."""

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    for name in [n for n in os.environ if n.startswith("OSMIA_")]:
        monkeypatch.delenv(name)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def store(folder: Path, demo_store: Path) -> Path:
    """A copy of the store of the shipped runs, at the default place."""
    path = folder / ".osmia" / "memory.duckdb"
    path.parent.mkdir()
    shutil.copy(demo_store, path)
    return path
