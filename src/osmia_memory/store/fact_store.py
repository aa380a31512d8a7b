"""The store of facts: one DuckDB file, opened for one operation or one short session at a time."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osmia_memory.errors import InternalError, StoreError
from osmia_memory.store import connection as connections
from osmia_memory.store import diagnosis
from osmia_memory.store.applying import Applying
from osmia_memory.store.checking import Checking
from osmia_memory.store.editing import Editing
from osmia_memory.store.forgetting import Fold, Forgetting
from osmia_memory.store.injections import Ledgered
from osmia_memory.store.ledger import Ledger
from osmia_memory.store.lexical import Searching
from osmia_memory.store.operations import Connection, checked_tenant, of_tenant
from osmia_memory.store.pruning import Pruning
from osmia_memory.store.reading import Reading
from osmia_memory.store.relating import Relating
from osmia_memory.store.undoing import Undoing

if TYPE_CHECKING:
    from osmia_memory.models import EngineProfile, Pattern
    from osmia_memory.store.importing import Imported
    from osmia_memory.store.rows import Row
    from osmia_memory.store.surroundings import Surroundings


class _AllOperations(Reading, Searching, Applying, Editing, Relating, Undoing, Checking, Ledger, Ledgered):
    """Every operation, wherever its connection comes from."""


class Session(_AllOperations):
    """The same operations on one open connection; each write is a transaction of its own."""

    def __init__(self, connection: Connection, path: Path, *, write: bool) -> None:
        self._connection = connection
        self._path = path
        self._may_write = write

    def _reading(self) -> AbstractContextManager[Connection]:
        return nullcontext(self._connection)

    def _open_for_writing(self) -> AbstractContextManager[Connection]:
        if not self._may_write:
            raise InternalError("a write within a session for reading; open it with `write=True`")
        return nullcontext(self._connection)

    def _transaction(self, connection: Connection) -> AbstractContextManager[Connection]:
        return connections.transaction(connection, self._path)


class FactStore(_AllOperations, Forgetting, Pruning):
    """One store. Nothing is opened until the first operation, and nothing stays open after it (about 13 ms each).

    Any number of processes may use one file: readers together, a writer alone, each waiting up to `lock_wait_seconds` for its turn.
    """

    def __init__(self, path: Path | str, *, lock_wait_seconds: float = 5.0, read_only: bool = False) -> None:
        self.path = Path(path)
        self.lock_wait_seconds = lock_wait_seconds
        self.read_only = read_only
        self._open = threading.local()  # the session that this thread is in

    @contextmanager
    def session(self, *, write: bool = False) -> Iterator[Session]:
        """One connection for several operations. Others wait meanwhile: keep it below 200 ms and come back for more.

        Raises:
            StoreLockedError: another process held the store for all of `lock_wait_seconds`.
            StoreCorruptError, StoreVersionError, StoreError: the file cannot be used; the message says what to do.
        """
        if write and self.read_only:
            raise StoreError(f"{str(self.path)!r} was opened read-only; nothing can be stored in it")
        current: Session | None = getattr(self._open, "session", None)
        if current is not None:
            yield current
            return
        with connections.opened(self.path, write=write, may_upgrade=not self.read_only, wait_seconds=self.lock_wait_seconds) as connection:
            self._open.session = Session(connection, self.path, write=write)
            try:
                yield self._open.session
            finally:
                self._open.session = None

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self.session() as session, session._reading() as connection:
            yield connection

    @contextmanager
    def _open_for_writing(self) -> Iterator[Connection]:
        with self.session(write=True) as session, session._open_for_writing() as connection:
            yield connection

    def _transaction(self, connection: Connection) -> AbstractContextManager[Connection]:
        return connections.transaction(connection, self.path)

    def compact(self) -> None:
        """Write the file anew: smaller, and without the bytes of deleted rows. Others wait about a second for 100 MB.

        Raises:
            StoreLockedError: as `session`; also if this thread is within a session.
        """
        if self.read_only:
            raise StoreError(f"{str(self.path)!r} was opened read-only; it cannot be written anew")
        connections.compact(self.path, wait_seconds=self.lock_wait_seconds)

    def doctor(self) -> dict[str, Any]:
        """What can be said about the file, whatever state it is in (`diagnosis.doctor`)."""
        return diagnosis.doctor(self.path, wait_seconds=min(self.lock_wait_seconds, 0.5))

    # Rows are pydantic models; importing it takes 60 ms, which a query should not pay.

    def export_rows(self, tenant: str | None, *, all_tenants: bool = False, recorded: bool = False) -> "list[Row]":
        """All knowledge of a tenant (with `all_tenants`: of each, named in its rows), sorted; `rows.line` makes a row a line of text.

        Equal knowledge gives equal rows, unless `recorded` asks for the times of recording. Retracted and pruned facts are left out.
        """
        from osmia_memory.store import exporting

        of_tenant(tenant, all_tenants=all_tenants)
        with self.session() as session:
            if not all_tenants:
                return exporting.snapshot(session._connection, checked_tenant(tenant), label=None, recorded=recorded)
            found: list[Row] = []
            for name in session.known_tenants():
                found += exporting.snapshot(session._connection, name, label=name, recorded=recorded)
        return found

    def rows_with_times(self, tenant: str, *, retracted_after: datetime | None = None) -> "list[Row]":
        """`export_rows` of one tenant with the times of recording; facts that were retracted after that time are among them."""
        from osmia_memory.store import exporting

        with self.session() as session:
            return exporting.snapshot(
                session._connection, checked_tenant(tenant), label=None, recorded=True, retracted_after=retracted_after
            )

    def surroundings(self, tenant: str) -> "Surroundings":
        """What bears on the tenant's facts without being a row."""
        from osmia_memory.store import surroundings

        with self._reading() as connection:
            return surroundings.read(connection, checked_tenant(tenant))

    def import_rows(
        self, tenant: str, given: "Iterable[Row]", fold: Fold, *, recorded_at: datetime, around: "Surroundings | None" = None
    ) -> "Imported":
        """Add the knowledge of these rows (`rows.parse`) to the tenant, in one transaction. `fold` makes witnesses a fact.

        Facts and runs get the ids of their content under this tenant. `recorded_at` also stands in for event times that a row lacks.
        `around` comes with the rows into an empty store.

        Raises:
            RowError: a fact without owner, evidence for an unknown fact.
            InputError: a link whose ends are unknown.
            TenantError: a row of another tenant.
        """
        from osmia_memory.store import importing, surroundings

        with self.session(write=True) as session:
            incoming = importing.connect(tenant, given, at=recorded_at, known_runs=session.known_runs(tenant))
            known = session.state_for(tenant, incoming.facts)
            with session._writing() as connection:
                if around is not None:
                    surroundings.write(connection, checked_tenant(tenant), around)
                return importing.store(connection, incoming, known, fold)

    def imported_statistics(self, tenant: str) -> "tuple[list[Pattern], list[EngineProfile]]":
        """Patterns and engine profiles that were imported without their runs."""
        from osmia_memory.store import importing, rows

        with self._reading() as connection:
            bodies = connection.execute(
                "SELECT body FROM imported_statistics WHERE tenant_id = ? ORDER BY row_key", [checked_tenant(tenant)]
            ).fetchall()
        found = [rows.parse(row[0]) for row in bodies]
        patterns = [importing.pattern(row, tenant) for row in found if isinstance(row, rows.PatternRow)]
        return patterns, [importing.profile(row) for row in found if isinstance(row, rows.EngineProfileRow)]

    def redaction_key(self) -> bytes:
        """32 random bytes of this store, for masks that are equal within it only. Creates the store if there is none."""
        if not self.path.exists() or not self.path.stat().st_size:
            with self.session(write=True):
                pass
        with self._reading() as connection:
            found: bytes = connection.execute("SELECT redaction_key FROM state").fetchall()[0][0]
        return found
