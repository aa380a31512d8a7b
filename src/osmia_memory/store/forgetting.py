"""Taking knowledge away for good: a run, a repository, or what has decayed. Text is removed, not hidden."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple

from osmia_memory.models import Candidate, Evidence, Fact, Witness
from osmia_memory.store import codec, lexical
from osmia_memory.store.applying import remove_facts, write_facts
from osmia_memory.store.operations import RETRACTED, Connection, Operations, checked_tenant, journal, take_numbers
from osmia_memory.store.reading import witnesses_of

Fold = Callable[[Sequence[Witness]], Fact]

_PRUNE_AT_ONCE = 5000  # facts read and judged per session: about 100 ms


class Forgotten(NamedTuple):
    """What was removed, and how many facts live on because other runs say the same."""

    runs: int
    facts: int
    refolded: int


class Forgetting(Operations):
    """Removal for good."""

    def _compact(self) -> None:
        """Write the file anew, without the bytes of deleted rows."""
        raise NotImplementedError

    def forget_run(self, tenant: str, run_id: str, fold: Fold, *, at: datetime | None = None, who: str = "") -> Forgotten:
        """Remove a run: its row, testimony, quotes and names, and the facts that nobody else supports. Others are folded anew.

        Then the file is written anew, so that not even its bytes are left. A run that is not there: nothing happens.
        """
        whose = checked_tenant(tenant)
        return self._forget(whose, "forget_run", run_id, "r.run_id = ?", [codec.storable(run_id)], [], fold, at, who)
