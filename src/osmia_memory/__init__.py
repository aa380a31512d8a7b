"""Episodic memory for coding agents. Importing this package has no effects and loads nothing heavy.

The public names below are loaded when they are first used; everything else is found in its module.

    memory = Memory(Path("memory.duckdb"), "ticketing")
    for report in memory.extract(["runs/"]): ...
    prompt = memory.prior_knowledge(task, repo="acme/shop").text + task
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from osmia_memory.config import Settings
    from osmia_memory.errors import InputError, OsmiaMemoryError, WorldError
    from osmia_memory.memory import Block, ImportReport, Memory
    from osmia_memory.models import Fact, Ranked, Skip
    from osmia_memory.pipeline import RunReport

__all__ = [
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

_HOMES = {
    **dict.fromkeys(("Block", "ImportReport", "Memory"), "memory"),
    **dict.fromkeys(("Fact", "Ranked", "Skip"), "models"),
    **dict.fromkeys(("InputError", "OsmiaMemoryError", "WorldError"), "errors"),
    "RunReport": "pipeline",
    "Settings": "config",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
