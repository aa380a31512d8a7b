"""Opening one DuckDB file for one short piece of work: locks, permissions, and what a refusal of DuckDB means.

Knows nothing about facts. Every foreign exception is translated here, in `translated`.
"""

import contextlib
import fcntl
import os
import random
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NoReturn

import duckdb

from osmia_memory.errors import InternalError, StoreCorruptError, StoreError, StoreLockedError, StoreVersionError
from osmia_memory.store import migrations

Connection = duckdb.DuckDBPyConnection
FileKind = Literal["missing", "empty", "duckdb"]

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    # A store must never fetch code: DuckDB answers a SQLite file by downloading an extension for it.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "threads": str(min(2, os.cpu_count() or 1)),  # a helper beside agents that compile; two threads search a million facts in time
    "memory_limit": "256MB",  # with Python, DuckDB's code and an embedding the process stays below 500 MB
    "default_block_size": "65536",  # a small store takes 0.5 MB instead of 2, and a small write is no slower
}
_FIRST_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE_SECONDS = 0.15

# POSIX locks belong to the process: closing *any* descriptor of the file, even one that only looked at its first bytes, drops the lock
# that DuckDB holds on it. So within this process one piece of work on a file follows the other, across all `FactStore` objects.
_guards: dict[str, threading.Lock] = {}
_guards_guard = threading.Lock()


def _guard(path: Path) -> threading.Lock:
    with _guards_guard:
        return _guards.setdefault(os.path.realpath(path), threading.Lock())


@contextlib.contextmanager
def opened(path: Path, *, write: bool, may_upgrade: bool, wait_seconds: float) -> Iterator[Connection]:
    """A connection to a store with the current schema; closed (and checkpointed) at the end.

    For reading, a missing file is an empty store in memory: asking creates nothing. For writing, it is created with mode 0600.

    Raises:
        StoreLockedError: another process (or thread) held it for `wait_seconds`.
        StoreCorruptError, StoreVersionError, StoreError: it cannot be used; the message says what to do.
    """
    wait = _Wait(path, wait_seconds)
    with only_us(path, wait_seconds), translated(path):
        connection = _connect(path, write=write, may_upgrade=may_upgrade, wait=wait)
        try:
            yield connection
        finally:
            connection.close()


@contextlib.contextmanager
def only_us(path: Path, wait_seconds: float) -> Iterator[None]:
    """No other thread of this process works on the store meanwhile.

    Raises:
        StoreLockedError: one did for all of `wait_seconds`.
    """
    guard = _guard(path)
    if not guard.acquire(timeout=max(0.0, wait_seconds)):
        raise _locked(path, os.getpid(), wait_seconds)
    try:
        yield
    finally:
        guard.release()


@contextlib.contextmanager
def transaction(connection: Connection, path: Path) -> Iterator[Connection]:
    """All of it or nothing. Counts the store's generation up."""
    _make_private_wal(path)
    connection.execute("BEGIN")
    try:
        yield connection
        connection.execute("UPDATE state SET generation = generation + 1")
        connection.execute("COMMIT")
    except BaseException:  # also on a keyboard interrupt: the connection goes on being used by its session
        with contextlib.suppress(duckdb.Error):  # a failed COMMIT has ended the transaction already
            connection.execute("ROLLBACK")
        raise


def _make_private_wal(path: Path) -> None:
    """DuckDB would create the write-ahead log readable for everyone; it keeps the mode of one that is there."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(f"{path}.wal", os.O_CREAT | os.O_EXCL, 0o600))


# --- the file ---------------------------------------------------------------------------------------------------------


def file_kind(path: Path) -> FileKind:
    """What is at `path`, from its first 16 bytes. Nobody in this process may hold the store open.

    Raises:
        StoreCorruptError: something else than a DuckDB file.
        StoreError: a folder, or a file that may not be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        raise StoreError(f"cannot read the store {str(path)!r}: {error.strerror}; pass another file with `--store`") from error
    if not head:
        return "empty"
    if head[8:12] == b"DUCK":
        return "duckdb"
    if head.startswith(b"SQLite format 3"):
        raise StoreCorruptError(
            f"{str(path)!r} is a SQLite database, perhaps the store of an Osmia controller; it was left as it is. "
            "Pass another file with `--store`, and bring its knowledge over as rows: export it there as JSONL, then `osmia-memory import`"
        )
    raise StoreCorruptError(
        f"{str(path)!r} is not a store (it begins with {head!r}); it was left as it is. Pass another file with `--store`, or move this one away"
    )


def _connect(path: Path, *, write: bool, may_upgrade: bool, wait: "_Wait") -> Connection:
    if not write and file_kind(path) != "duckdb":
        connection = duckdb.connect(config=_CONFIG)
        migrations.migrate(connection)
        return connection
    while True:
        if write:
            _create_if_missing(path)
        connection = wait.for_it(lambda: duckdb.connect(str(path), read_only=not write, config=_CONFIG))
        try:
            if _is_current(connection, path, upgrade=write):
                return connection
        except BaseException:  # whatever it is, Ctrl-C included: an open connection would go on holding the file
            connection.close()
            raise
        connection.close()  # an older schema, opened for reading: bring it up to date, then look again
        if not may_upgrade:
            raise StoreVersionError(f"{str(path)!r} has an older schema; open it once for writing to bring it up to date")
        _connect(path, write=True, may_upgrade=True, wait=wait).close()


def _is_current(connection: Connection, path: Path, *, upgrade: bool) -> bool:
    version = migrations.version_of(connection)
    if version == 0 and migrations.is_foreign(connection):
        raise StoreCorruptError(
            f"{str(path)!r} is a DuckDB database but not a store of this package; it was left as it is. Pass another file with `--store`"
        )
    if version > migrations.NEWEST:
        raise _newer(path, f"its schema is version {version}, this release knows {migrations.NEWEST}")
    if version < migrations.NEWEST and upgrade:
        version = migrations.migrate(connection)
    return version == migrations.NEWEST


class _Wait:
    """Bounded waiting for one file; whoever waits longer asks less often."""

    def __init__(self, path: Path, seconds: float) -> None:
        self.path = path
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds

    def for_it(self, connect: Callable[[], Connection]) -> Connection:
        """What `connect` returns, once no other process is in the way and the file stayed the same meanwhile."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            before = _identity(self.path)
            holder = None
            try:
                connection = connect()
            except duckdb.IOException as error:
                if "Could not set lock" not in str(error) and _identity(self.path) == before:
                    raise
                holder = _holder(str(error))
            else:
                if _identity(self.path) == before:
                    return connection
                connection.close()  # compaction put a new file here in between; this connection has the old, unlinked one
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise _locked(self.path, holder, self.seconds)
            time.sleep(min(pause * random.uniform(0.5, 1.5), left))
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _create_if_missing(path: Path) -> None:
    """A complete new store appears at `path` in one step, readable for its owner only."""
    kind = file_kind(path)
    if kind == "duckdb":
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _private_folder(path) as folder:
            fresh = folder / path.name
            with duckdb.connect(str(fresh), config=_CONFIG) as connection:
                migrations.migrate(connection)
            fresh.chmod(0o600)
            if kind == "empty":
                _replace_empty(path, fresh)
            else:
                with contextlib.suppress(FileExistsError):  # another process was faster; its store is as good
                    os.link(fresh, path)
    except OSError as error:
        raise StoreError(f"cannot create the store {str(path)!r}: {error.strerror}; pass another file with `--store`") from error


def _replace_empty(path: Path, fresh: Path) -> None:
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = os.fstat(file.fileno())
        if found.st_size == 0 and _identity(path) == (found.st_dev, found.st_ino):
            fresh.replace(path)


@contextlib.contextmanager
def _private_folder(path: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.new-", dir=path.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compact(path: Path, *, wait_seconds: float) -> None:
    """Write the store anew. DuckDB frees the blocks of deleted rows but leaves their bytes in the file; afterwards they are gone.

    Nobody can write for as long as copying takes: about a second for 100 MB.
    """
    wait = _Wait(path, wait_seconds)
    with only_us(path, wait_seconds), translated(path):
        if file_kind(path) != "duckdb":
            return
        for left_over in path.parent.glob(f".{path.name}.new-*"):  # of a process that was killed while it did this
            shutil.rmtree(left_over, ignore_errors=True)
        while True:
            _connect(path, write=True, may_upgrade=True, wait=wait).close()  # empties the log
            # Held read-only: that keeps writers out, and leaves alone the log that the next one may begin once the new file is in place.
            with wait.for_it(lambda: _attached(path)) as holder, _private_folder(path) as folder:
                if not Path(f"{path}.wal").exists():
                    _copy(holder, folder / path.name)
                    (folder / path.name).replace(path)
                    return


def _attached(path: Path) -> Connection:
    connection = duckdb.connect(config=_CONFIG)
    try:
        connection.execute(f"ATTACH {_quoted(path)} AS kept (READ_ONLY)")
    except BaseException:  # as above
        connection.close()
        raise
    return connection


def _copy(holder: Connection, fresh: Path) -> None:
    holder.execute(f"ATTACH {_quoted(fresh)} AS fresh")
    holder.execute("COPY FROM DATABASE kept TO fresh")
    holder.execute("UPDATE fresh.state SET unerased = FALSE")
    holder.execute("DETACH fresh")
    fresh.chmod(0o600)


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


# --- refusals ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """DuckDB's refusals as errors of this package."""
    try:
        yield
    except duckdb.Error as error:
        _raise_translated(path, error)


def _raise_translated(path: Path, error: duckdb.Error) -> NoReturn:
    text, name = str(error), repr(str(path))
    first = text.strip().partition("\n")[0] or type(error).__name__
    if "storage version" in text or "newer version of DuckDB" in text:
        raise _newer(path, first) from error
    if isinstance(error, duckdb.OutOfMemoryException):
        raise StoreError(
            f"{name}: the operation needs more than {_CONFIG['memory_limit']} of memory; nothing was changed ({first})"
        ) from error
    if "No space left" in text:
        raise StoreError(f"{name}: the disk is full; nothing was changed. Free some space and try again") from error
    if "Permission denied" in text or "read-only" in text.lower():
        raise StoreError(
            f"{name} may not be written by this user; change its permissions or pass another file with `--store` ({first})"
        ) from error
    unreadable = any(sign in text for sign in ("Corrupt", "not a valid DuckDB", "Could not read enough bytes"))
    if unreadable or isinstance(error, duckdb.FatalException | duckdb.InternalException | duckdb.SerializationException):
        raise StoreCorruptError(
            f"{name} is damaged or cut short and cannot be read: {first}. Move it away and restore a copy, "
            "or start an empty store and extract the runs again"
        ) from error
    if isinstance(error, duckdb.OperationalError):
        raise StoreError(f"{name} cannot be used: {first}") from error
    raise InternalError(f"{name}: the store sent a statement that DuckDB refused: {first}") from error


def _newer(path: Path, detail: str) -> StoreVersionError:
    return StoreVersionError(
        f"{str(path)!r} was written by a newer release: {detail}. Upgrade osmia-memory (and duckdb), or pass another file"
    )


def _locked(path: Path, pid: int | None, waited_seconds: float) -> StoreLockedError:
    who = "another process holds it"
    if pid == os.getpid():
        who = f"another part of this process (pid {pid}) holds it"
    elif pid is not None:
        who = f"{process_name(pid) or 'another process'} (pid {pid}) holds it"
    return StoreLockedError(
        f"cannot open {str(path)!r}: {who}, still after {waited_seconds:g} s. DuckDB allows one writing process; "
        "try again, close that one or pass another file with `--store`"
    )


def _holder(message: str) -> int | None:
    found = re.search(r"\(PID (\d+)\)", message)
    return int(found[1]) if found else None


def process_name(pid: int) -> str | None:
    """The program that runs as `pid`, with the script or module of an interpreter; None where that cannot be seen."""
    try:
        words = [w for w in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0") if w]
    except OSError:
        return None
    if not words:
        return None
    program = Path(words[0]).name
    arguments = words[1:]
    if not program.startswith("python") or "-c" in arguments:
        return program
    script = next((w for w in arguments if not w.startswith("-")), None)
    return program if script is None else f"{program} {Path(script).name}"
