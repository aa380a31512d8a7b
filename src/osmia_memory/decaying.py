"""The decay pass, once or again and again beside a long-running command. It crosses tenants; nothing else prunes."""

import logging
import threading
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from osmia_memory import aging
from osmia_memory.config import Settings
from osmia_memory.errors import OsmiaMemoryError
from osmia_memory.models import Fact
from osmia_memory.store.fact_store import FactStore

_LOG = logging.getLogger(__name__)


class Decayed(NamedTuple):
    """What a pass did, or would do: how many facts were pruned, by tenant."""

    pruned: dict[str, int]


def decay(store: FactStore, settings: Settings, now: datetime, *, dry_run: bool = False) -> Decayed:
    """Remove the text of every fact whose confidence at `now` is strictly below the threshold; a stub stays.

    The bytes are gone from the file as well: it is written anew if anything was removed.

    Raises:
        StoreLockedError, StoreError: the store cannot be had. What was pruned so far stays so; the next pass does the rest.
    """

    def is_prunable(fact: Fact) -> bool:
        return aging.is_prunable(fact, now, threshold=settings.prune_threshold, interval_hours=settings.decay_interval_hours)

    pruned = store.prune(is_prunable, at=now, dry_run=dry_run)
    if not dry_run and (pruned or store.has_unerased()):  # also what an earlier pass removed before it lost the store
        store.compact()
    return Decayed(dict(sorted(pruned.items())))


class DecayThread:
    """Runs the pass every `settings.decay_interval_hours` until it is stopped.

    A pass that fails is logged with its reason and tried again at the next interval: memory must not take a server down with it.
    `clock` tells the time of a pass; `interval_seconds` is for tests.
    """

    def __init__(
        self, store: FactStore, settings: Settings, clock: Callable[[], datetime], *, interval_seconds: float | None = None
    ) -> None:
        self._store, self._settings, self._clock = store, settings, clock
        self._interval = settings.decay_interval_hours * 3600.0 if interval_seconds is None else interval_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="osmia-memory-decay", daemon=True)

    def start(self) -> "DecayThread":
        """Begin; the first pass comes after one interval."""
        self._thread.start()
        return self

    def stop(self, timeout_seconds: float = 5.0) -> bool:
        """End after the pass that is running, if any. False if that took longer than `timeout_seconds`."""
        self._stopping.set()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def __enter__(self) -> "DecayThread":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            try:
                done = decay(self._store, self._settings, self._clock())
            except (OsmiaMemoryError, OSError) as error:
                _LOG.warning("the decay pass over %s failed and is tried again in %.0f s: %s", self._store.path, self._interval, error)
                continue
            _LOG.info("decay pass over %s: pruned %s", self._store.path, done.pruned or "none")
