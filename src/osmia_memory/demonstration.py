"""The demo runs: where they are, and a memory that reads them, by rules alone or with a recorded model. For `demo`, cassettes and benchmarks."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from osmia_memory import recording
from osmia_memory.budget import Budget
from osmia_memory.config import Settings
from osmia_memory.memory import Memory
from osmia_memory.model_pass import ModelPass
from osmia_memory.recording import Origin

RUNS = Path(__file__).parent / "demo" / "runs"
TASKS = Path(__file__).parent / "demo" / "tasks.json"
TENANT = "demo"
NOW = datetime(2026, 3, 30, 9, 0, tzinfo=UTC)  # three days after the last shipped run, so that the block is the same on any day
MASK_KEY = b"k" * 32  # the demo's secrets are invented; a recorded request has to be the same in every store


def memory(store: Path) -> Memory:
    """The demo's memory in this file."""
    return Memory(store, TENANT, Settings(), lambda: NOW, mask_key=MASK_KEY)


@contextmanager
def recorded_model(arm: str, folder: Path = recording.FOLDER) -> Iterator[tuple[ModelPass, Origin]]:
    """A model pass that is answered from an arm's cassette, for the demo runs.

    Raises:
        InputError: there is no such cassette, or at the end not all of it was asked for.
    """
    path = recording.path_of(arm, folder=folder)
    origin = recording.origin_of(path)
    with recording.playing(path):
        yield ModelPass(completer(origin), Budget(), concurrency=1, window_tokens=origin.window_tokens), origin


def completer(origin: Origin, **options: Any) -> Any:
    """The completer whose requests an arm's cassette answers."""
    from osmia_memory.llm import LiteLlmCompleter, Price

    price = None
    if origin.usd_per_million_in is not None and origin.usd_per_million_out is not None:
        price = Price(origin.usd_per_million_in, origin.usd_per_million_out)
    base_url = f"http://{recording.HOST}/v1" if origin.has_base_url else None
    options = {"sleep": lambda seconds: None, "passed_on": (recording.missing(),), **options}
    return LiteLlmCompleter(origin.model, base_url=base_url, api_key="recorded", price=price, at_once=1, **options)
