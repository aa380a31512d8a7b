"""Importing the package costs nothing and does nothing; its public names are these."""

import subprocess
import sys
from pathlib import Path

import pytest

import osmia_memory

HEAVY = (
    "duckdb",
    "pydantic",
    "numpy",
    "jinja2",
    "typer",
    "rich",
    "litellm",
    "instructor",
    "wordllama",
    "tokenizers",
    "tree_sitter",
    "yaml",
    "orjson",
)

_PROBE = """
import logging, os, sys, threading, warnings
def state():
    return os.getcwd(), sorted(os.listdir(".")), threading.active_count(), list(logging.root.handlers), dict(os.environ), list(warnings.filters)
before, modules = state(), set(sys.modules)
{statement}
assert state() == before, (before, state())
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - modules}}))
"""


def loaded_by(statement: str, folder: Path) -> set[str]:
    """Top-level modules that a statement loads in a fresh process, after a check that it did nothing else."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _PROBE.format(statement=statement)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy_and_has_no_effects(tmp_path: Path) -> None:
    """No file, thread, handler, variable or filter; nothing but the package and the standard library."""
    loaded = loaded_by("import osmia_memory", tmp_path)
    assert "osmia_memory" in loaded
    assert loaded <= {"osmia_memory", *sys.stdlib_module_names}


def test_the_values_and_errors_load_nothing_heavy(tmp_path: Path) -> None:
    """A caller that only catches errors pays for no database."""
    loaded = loaded_by("from osmia_memory import Fact, InputError, OsmiaMemoryError, Settings, Skip", tmp_path)
    assert loaded.isdisjoint(HEAVY)


def test_the_facade_loads_what_a_query_needs_and_no_more(tmp_path: Path) -> None:
    """The database, but neither the command line nor readers, templates or models; still no effects."""
    loaded = loaded_by("from osmia_memory import Memory", tmp_path)
    assert "duckdb" in loaded
    assert loaded.isdisjoint({"typer", "rich", "jinja2", "pydantic", "wordllama", "tokenizers", "tree_sitter", "litellm", "yaml"})


def test_the_public_names_are_pinned() -> None:
    """A new one is a promise: add it here on purpose."""
    assert osmia_memory.__all__ == [
        "Block",
        "Fact",
        "ImportReport",
        "InputError",
        "Memory",
        "OsmiaMemoryError",
        "Ranked",
        "RunReport",
        "Settings",
        "Skip",
        "WorldError",
    ]


@pytest.mark.parametrize("name", osmia_memory.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """Under its own name, with a docstring, and listed by `dir`."""
    found = getattr(osmia_memory, name)
    assert found.__name__ == name
    assert found.__doc__
    assert name in dir(osmia_memory)


def test_another_name_is_no_attribute() -> None:
    """As with any module."""
    with pytest.raises(AttributeError, match="Memori"):
        _ = osmia_memory.Memori  # type: ignore[attr-defined]
