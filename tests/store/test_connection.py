"""What the file may be, who may hold it, and what an error says."""

import contextlib
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from osmia_memory import reconcile
from osmia_memory.errors import (
    InternalError,
    OsmiaMemoryError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
    StoreVersionError,
    WorldError,
)
from osmia_memory.store import connection as connections
from osmia_memory.store import migrations
from osmia_memory.store.fact_store import FactStore, Session
from tests.store.builders import REPO, TENANT, remember_text


@contextlib.contextmanager
def held_elsewhere(path: Path, *, read_only: bool = False, seconds: float = 60) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the file open."""
    code = (
        f"import duckdb, time; c = duckdb.connect({str(path)!r}, read_only={read_only}); print('open', flush=True); time.sleep({seconds})"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        try:
            yield process
        finally:
            process.kill()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_reading_a_missing_store_finds_nothing_and_creates_nothing(tmp_path: Path) -> None:
    """A question about a store that is not there has an empty answer and leaves no file or folder behind."""
    store = FactStore(tmp_path / "not" / "yet" / "memory.duckdb")

    assert store.facts(TENANT) == []
    assert store.search(TENANT, [REPO], ["pytest"], 5) == []
    assert not store.known_repo(TENANT, "acme/shop")
    assert store.generation() == 0
    assert list(tmp_path.iterdir()) == []


def test_new_store_is_private_and_appears_complete(tmp_path: Path) -> None:
    """The first write makes the folder, and a file that only its owner may read; nothing else is left beside it."""
    store = FactStore(tmp_path / "new" / "memory.duckdb")

    remember_text(store, "s1", "Tests are run with `pytest`.")

    assert mode_of(store.path) == 0o600
    assert mode_of(store.path.parent) == 0o700
    assert [p.name for p in store.path.parent.iterdir()] == ["memory.duckdb"]
    assert len(store.facts(TENANT)) == 1


def test_write_ahead_log_is_private_too(store: FactStore) -> None:
    """The log holds the same text as the file, so it has the same permissions while it exists."""
    remember_text(store, "s1", "Tests are run with `pytest`.")

    with store.session(write=True) as session:
        session.pin(TENANT, session.facts(TENANT)[0].fact_id)
        assert mode_of(Path(f"{store.path}.wal")) == 0o600


def test_empty_file_becomes_a_store(store: FactStore) -> None:
    """A file made by `mktemp` reads as an empty store and is replaced by a real one at the first write."""
    store.path.touch(mode=0o644)

    assert store.facts(TENANT) == []
    remember_text(store, "s1", "Tests are run with `pytest`.")

    assert len(store.facts(TENANT)) == 1
    assert mode_of(store.path) == 0o600


def test_sqlite_file_is_refused_with_the_way_out(store: FactStore) -> None:
    """The store of an Osmia controller is recognised by its first bytes and left alone."""
    content = b"SQLite format 3\0" + bytes(4080)
    store.path.write_bytes(content)

    with pytest.raises(StoreCorruptError, match=r"SQLite database.*import"):
        store.facts(TENANT)
    with pytest.raises(StoreCorruptError, match=r"memory\.duckdb"):
        remember_text(store, "s1", "Tests are run with `pytest`.")
    assert store.path.read_bytes() == content


@pytest.mark.parametrize("content", [b"hello", b"# notes\n" * 200, b"PAR1" + bytes(100), bytes(4096)])
def test_other_file_is_refused_and_left_alone(store: FactStore, content: bytes) -> None:
    """Something else at the path is named and not touched."""
    store.path.write_bytes(content)

    with pytest.raises(StoreCorruptError, match="is not a store"):
        remember_text(store, "s1", "Tests are run with `pytest`.")
    assert store.path.read_bytes() == content


@pytest.mark.parametrize("kept", [16, 100, 4096, 12288, 100_000])
def test_truncated_store_is_corrupt(store: FactStore, kept: int) -> None:
    """A store cut short names the file and says what can be done."""
    remember_text(store, "s1", "Tests are run with `pytest`.")
    store.path.write_bytes(store.path.read_bytes()[:kept])

    with pytest.raises(StoreCorruptError, match=r"memory\.duckdb.*damaged or cut short.*restore"):
        store.facts(TENANT)


def test_damaged_block_is_corrupt(store: FactStore) -> None:
    """A flipped byte is found by DuckDB's checksum and reported, never served."""
    remember_text(store, "s1", *(f"Tests of part {i} are run with `pytest part{i}`." for i in range(50)))
    data = bytearray(store.path.read_bytes())
    for position in range(12288 + 4000, len(data), 1000):
        data[position] ^= 0xFF
    store.path.write_bytes(data)

    with pytest.raises(StoreCorruptError):
        store.facts(TENANT)


def test_newer_storage_version_is_named(store: FactStore) -> None:
    """A file of a later DuckDB is not called corrupt: the message says to upgrade."""
    remember_text(store, "s1", "Tests are run with `pytest`.")
    data = bytearray(store.path.read_bytes())
    data[12:20] = struct.pack("<Q", 5000)
    words = struct.iter_unpack("<Q", data[8:4096])
    checksum = 5381
    for (word,) in words:
        checksum ^= word * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
    data[:8] = struct.pack("<Q", checksum)
    store.path.write_bytes(data)

    with pytest.raises(StoreVersionError, match=r"newer release.*Upgrade"):
        store.facts(TENANT)


def test_newer_schema_is_named(store: FactStore) -> None:
    """A store with a migration that this release does not know is not touched."""
    remember_text(store, "s1", "Tests are run with `pytest`.")
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("INSERT INTO migrations VALUES (99, 'later', now()::TIMESTAMP)")

    for ask in (lambda: store.facts(TENANT), lambda: remember_text(store, "s2", "Another.")):
        with pytest.raises(StoreVersionError, match="schema is version 99"):
            ask()


def test_foreign_duckdb_file_is_left_alone(store: FactStore) -> None:
    """Somebody's analysis database does not get our tables."""
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("CREATE TABLE sales (x INTEGER)")

    with pytest.raises(StoreCorruptError, match="not a store of this package"):
        remember_text(store, "s1", "Tests are run with `pytest`.")
    with duckdb.connect(str(store.path)) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("sales",)]


def test_folder_and_unreadable_file_are_errors_of_the_world(tmp_path: Path) -> None:
    """A folder in the place of the file is reported with its path, not as a traceback."""
    with pytest.raises(StoreError, match="Is a directory"):
        FactStore(tmp_path).facts(TENANT)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot"):
        remember_text(FactStore(tmp_path / "file" / "memory.duckdb"), "s1", "Tests are run with `pytest`.")


# --- locks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theirs_read_only", [False, True])
def test_locked_store_names_file_and_holder(store: FactStore, theirs_read_only: bool) -> None:
    """Waiting is bounded, and the error says which process to look at."""
    remember_text(store, "s1", "Tests are run with `pytest`.")
    impatient = FactStore(store.path, lock_wait_seconds=0.3)

    with held_elsewhere(store.path, read_only=theirs_read_only) as process:
        started = time.monotonic()
        with pytest.raises(StoreLockedError) as caught:
            remember_text(impatient, "s2", "Another.")
        assert time.monotonic() - started < 3

    message = str(caught.value)
    assert repr(str(store.path)) in message
    assert "python" in message
    assert f"(pid {process.pid})" in message
    assert caught.value.retryable


def test_waiting_ends_when_the_holder_goes(store: FactStore) -> None:
    """Whoever waits gets in as soon as the other process is done."""
    remember_text(store, "s1", "Tests are run with `pytest`.")

    with held_elsewhere(store.path, seconds=0.5):
        assert len(FactStore(store.path, lock_wait_seconds=30).facts(TENANT)) == 1


def test_readers_of_two_processes_do_not_wait_for_each_other(store: FactStore) -> None:
    """Reading is shared."""
    remember_text(store, "s1", "Tests are run with `pytest`.")

    with held_elsewhere(store.path, read_only=True):
        assert len(FactStore(store.path, lock_wait_seconds=0).facts(TENANT)) == 1


def test_nothing_is_held_between_operations(store: FactStore) -> None:
    """After each operation another process can open the file for writing at once."""
    remember_text(store, "s1", "Tests are run with `pytest`.")
    store.facts(TENANT)

    code = f"import duckdb; duckdb.connect({str(store.path)!r}).close()"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_looking_at_the_file_does_not_drop_our_own_lock(store: FactStore) -> None:
    """A second thread that reads the header must not release the first one's POSIX lock, or another process could write meanwhile."""
    remember_text(store, "s1", "Tests are run with `pytest`.")
    code = f"import duckdb; duckdb.connect({str(store.path)!r}).close()"

    with store.session(write=True):
        other = threading.Thread(target=_try_to_read, args=[store.path])
        other.start()
        other.join()
        refused = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "Could not set lock" in refused.stderr


def _try_to_read(path: Path) -> None:
    with contextlib.suppress(StoreLockedError):
        FactStore(path, lock_wait_seconds=0.1).facts(TENANT)


def test_threads_of_one_process_take_turns(store: FactStore) -> None:
    """Twelve threads that write and read the same file, through stores of their own, lose nothing."""
    remember_text(store, "s0", "Tests are run with `pytest`.")

    def work(number: int) -> None:
        mine = FactStore(store.path, lock_wait_seconds=60)
        remember_text(mine, f"t{number}", f"Part {number} is built with `make part{number}`.")
        mine.facts(TENANT)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(work, range(12)))

    assert len(store.facts(TENANT)) == 13
    assert store.verify(reconcile.refold) == []


def test_operations_within_a_session_use_its_connection(store: FactStore) -> None:
    """A call on the store inside its own session does not wait for itself; a write inside a session for reading is a defect of the caller."""
    (fact_id,) = remember_text(store, "s1", "Tests are run with `pytest`.")

    with store.session(write=True):
        assert len(store.facts(TENANT)) == 1
    with store.session(), pytest.raises(InternalError, match="write=True"):
        store.pin(TENANT, fact_id)


def test_read_only_store_refuses_writes_and_creates_nothing(store: FactStore) -> None:
    """`read_only=True` reads what is there and says no to the rest."""
    reader = FactStore(store.path, read_only=True)

    with pytest.raises(StoreError, match="read-only"):
        remember_text(reader, "s1", "Tests are run with `pytest`.")
    assert not store.path.exists()
    remember_text(store, "s1", "Tests are run with `pytest`.")
    assert len(reader.facts(TENANT)) == 1


# --- extensions and errors --------------------------------------------------------------------------------------------


def test_extensions_are_never_fetched(store: FactStore) -> None:
    """Neither installing nor loading of extensions happens by itself, on no kind of connection."""
    remember_text(store, "s1", "Tests are run with `pytest`.")
    for write in (False, True):
        with connections.opened(store.path, write=write, may_upgrade=True, wait_seconds=5) as connection:
            settings = dict(connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())
        assert settings["autoinstall_known_extensions"] == "false"
        assert settings["autoload_known_extensions"] == "false"
        assert settings["memory_limit"] == "244.1 MiB"


def test_every_refusal_of_duckdb_is_translated(tmp_path: Path) -> None:
    """No exception class of DuckDB leaves the store; what the world refuses is not called a defect of ours."""
    kinds = {k for k in vars(duckdb).values() if isinstance(k, type) and issubclass(k, duckdb.Error)}
    assert len(kinds) > 20
    for kind in kinds:
        with pytest.raises(OsmiaMemoryError), connections.translated(tmp_path / "x"):
            raise kind("some refusal")
        if issubclass(kind, duckdb.OperationalError):
            with pytest.raises(WorldError), connections.translated(tmp_path / "x"):
                raise kind("some refusal")


def test_failed_write_leaves_nothing_behind(store: FactStore) -> None:
    """An exception inside a transaction undoes it, and the session goes on."""
    (fact_id,) = remember_text(store, "s1", "Tests are run with `pytest`.")

    with store.session(write=True) as session:
        with pytest.raises(OsmiaMemoryError):
            _delete_then_fail(session)
        session.pin(TENANT, fact_id)
    fact = store.fact(TENANT, fact_id)
    assert fact is not None
    assert fact.pinned


def _delete_then_fail(session: Session) -> None:
    with session._writing() as connection:
        connection.execute("DELETE FROM facts")
        raise OsmiaMemoryError("something went wrong")


def test_redaction_key_belongs_to_the_store(tmp_path: Path) -> None:
    """32 random bytes, made once with the store: the same on every call, another one in another store."""
    one, other = FactStore(tmp_path / "one.duckdb"), FactStore(tmp_path / "other.duckdb")

    key = one.redaction_key()

    assert len(key) == 32
    assert one.redaction_key() == key
    remember_text(one, "s1", "Tests are run with `pytest`.")
    one.compact()
    assert FactStore(one.path, read_only=True).redaction_key() == key
    assert other.redaction_key() != key


def test_process_names_show_the_script(tmp_path: Path) -> None:
    """For an interpreter the script is what people recognise; a process that is gone has no name."""
    script = tmp_path / "keeper.py"
    script.write_text("print('up', flush=True)\nimport time\ntime.sleep(60)\n")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        name = connections.process_name(process.pid)
        process.kill()
    assert name is not None
    assert name.endswith("keeper.py")
    assert connections.process_name(process.pid) is None


def test_left_overs_of_killed_processes_are_cleared(store: FactStore) -> None:
    """A folder that a killed process left beside the store goes with the next compaction."""
    remember_text(store, "s1", "Tests are run with `pytest`.")
    left = store.path.parent / f".{store.path.name}.new-abc"
    left.mkdir()
    (left / "memory.duckdb").write_bytes(b"old text")

    store.compact()

    assert not left.exists()
    assert [p.name for p in store.path.parent.iterdir()] == ["memory.duckdb"]
    assert store.doctor()["schema_version"] == migrations.NEWEST
