"""Whatever is given instead of a store, a transcript or text: one line that says what is wrong, never a traceback, and nothing is harmed."""

import gzip
import io
import json
import lzma
import os
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from tests.product import LINT, REPO, TESTS_RUN, Ran, a_task_run, as_jsonl, osmia, osmia_process

RUN = as_jsonl(a_task_run("s1", TESTS_RUN, LINT))
FACT = json.dumps({"type": "fact", "content": "Carts are frozen on Fridays.", "fact_kind": "repo_quirk", "repo": REPO}).encode()


# --- something else than a store --------------------------------------------------------------------------------------


def a_folder(path: Path, good: Path) -> None:
    """A directory instead of a file."""
    path.mkdir()


def a_sqlite_file(path: Path, good: Path) -> None:
    """The store of another tool."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE episodes (id TEXT)")
    connection.close()


def a_foreign_database(path: Path, good: Path) -> None:
    """A DuckDB file of somebody else."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE sales (amount INTEGER)")


def a_newer_store(path: Path, good: Path) -> None:
    """A store that a later release has migrated."""
    path.write_bytes(good.read_bytes())
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO migrations VALUES (99, 'of the future', now())")


def a_cut_store(path: Path, good: Path) -> None:
    """The beginning of a store."""
    path.write_bytes(good.read_bytes()[:9000])


def a_scratched_store(path: Path, good: Path) -> None:
    """A store with noise where its tables were."""
    data = bytearray(good.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(bytes(data))


def a_text(path: Path, good: Path) -> None:
    """A file that somebody wrote."""
    path.write_text("To do: buy a store.\n")


def a_transcript(path: Path, good: Path) -> None:
    """The transcript, given as the store."""
    path.write_bytes(RUN)


NO_STORES = (a_folder, a_sqlite_file, a_foreign_database, a_newer_store, a_cut_store, a_scratched_store, a_text, a_transcript)
COMMANDS: tuple[list[str], ...] = (
    ["extract", "run.jsonl"],
    ["query", "--repo", REPO, "--task", "make lint"],
    ["list"],
    ["show", "f1:00"],
    ["stats"],
    ["pin", "f1:00"],
    ["forget", "--repo", REPO],
    ["import", "facts.jsonl"],
    ["export"],
    ["verify"],
)


def content(path: Path) -> bytes | list[str]:
    """What is at a path, to compare."""
    return sorted(p.name for p in path.iterdir()) if path.is_dir() else path.read_bytes()


@pytest.mark.parametrize("make", NO_STORES, ids=lambda make: make.__name__)
def test_something_else_than_a_store_is_refused_and_left_alone(make: Callable[[Path, Path], None], folder: Path, demo_store: Path) -> None:
    """Every command ends with 1 and one error that names the file; `doctor` describes it."""
    (folder / "run.jsonl").write_bytes(RUN)
    (folder / "facts.jsonl").write_bytes(FACT)
    (folder / "osmia-config.yaml").write_text("memory:\n  lock_wait_seconds: 0.1\n")
    path = folder / "thing.duckdb"
    make(path, demo_store)
    before = content(path)
    for command in COMMANDS:
        ran = osmia(*command, "--store", path)
        errors = [line for line in ran.err.splitlines() if line.startswith("error: ")]
        assert (ran.status, ran.out, len(errors)) == (1, "", 1), (command, ran)
        assert "thing.duckdb" in errors[0], command
    report = osmia("doctor", "--json", "--store", path)
    assert report.status == 0
    assert report.value["state"] not in ("ok", "missing", "empty")
    assert report.value["problem"]
    assert content(path) == before
    assert sorted(p.name for p in folder.iterdir()) == ["facts.jsonl", "osmia-config.yaml", "run.jsonl", "thing.duckdb"]


@pytest.mark.parametrize("tenths", range(1, 10))
def test_a_store_cut_anywhere_never_ends_in_a_traceback(tenths: int, folder: Path, demo_store: Path) -> None:
    """What lies before the cut may still be read; what does not is an error, and no answer is made up."""
    whole = demo_store.read_bytes()
    path = folder / "memory.duckdb"
    path.write_bytes(whole[: len(whole) * tenths // 10])
    for command in (["query", "--repo", "northwind/harbor-queue", "--task", "tools/check"], ["list"], ["export"], ["verify"]):
        ran = osmia(*command, "--store", path)
        assert ran.status == 0 or (ran.status, "error: " in ran.err) == (1, True), ran
        if command[0] != "verify" and ran.status == 0:
            assert ran.out == osmia(*command, "--store", demo_store).out


def test_an_empty_file_is_an_empty_store(folder: Path) -> None:
    """As `mktemp` makes one: nothing is known, and extraction fills it."""
    path = folder / "memory.duckdb"
    path.touch()
    assert osmia("list", "--store", path) == Ran(0, "", "tenant: ticketing\n")
    assert path.stat().st_size == 0
    assert osmia("extract", "-", "--store", path, stdin=RUN).status == 0
    assert osmia("list", "--store", path).out != ""


def test_a_path_that_cannot_be(folder: Path) -> None:
    """A name too long, and a folder below a file."""
    (folder / "file").touch()
    for path in ("a" * 300, "file/memory.duckdb"):
        for command in (["list"], ["query", "--task", "x"], ["extract", "-"], ["export"]):
            ran = osmia(*command, "--store", path, stdin=RUN)
            assert (ran.status, ran.out, "error: " in ran.err) in ((1, "", True), (0, "", False)), ran
        assert osmia("extract", "-", "--store", path, stdin=RUN).status == 1


# --- a store that is taken --------------------------------------------------------------------------------------------


@pytest.fixture
def taken(store: Path) -> Iterator[int]:
    """A second process holds the store for writing; its pid."""
    script = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate()


def test_a_taken_store_says_who_holds_it(taken: int, folder: Path, store: Path) -> None:
    """After a bounded wait, with the pid; `doctor` works; afterwards the store is as it was."""
    (folder / "run.jsonl").write_bytes(RUN)
    (folder / "facts.jsonl").write_bytes(FACT)
    (folder / "osmia-config.yaml").write_text(f"memory:\n  lock_wait_seconds: 0.1\n  store_path: {store}\n")
    for command in COMMANDS:
        ran = osmia(*command)
        assert (ran.status, ran.out) == (1, ""), (command, ran)
        assert f"(pid {taken})" in ran.err
    report = osmia("doctor", "--json").value
    assert (report["state"], report["holder"]["pid"]) == ("locked", taken)


def test_a_store_is_free_again_when_its_holder_has_gone(store: Path) -> None:
    """Waiting is bounded, not refused: a writer that ends in time is waited for."""
    script = "import duckdb, sys, time; held = duckdb.connect(sys.argv[1]); print(flush=True); time.sleep(0.4)"
    with subprocess.Popen([sys.executable, "-c", script, str(store)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert osmia("list").status == 0


# --- something else than a transcript ---------------------------------------------------------------------------------


def tar_of(mode: str) -> bytes:
    """An archive with two transcripts."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{mode}") as archive:
        for name in ("a", "b"):
            data = as_jsonl(a_task_run(name, TESTS_RUN, description=os.urandom(20_000).hex()))
            entry = tarfile.TarInfo(f"runs/{name}.jsonl")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


NO_TRANSCRIPTS = {
    "empty": b"",
    "white": b" \n\n\t",
    "binary": bytes(range(256)) * 40,
    "nul": b"\0" * 5000,
    "prose": b"Dear agent, please fix the cart.\n",
    "cut-json": RUN[: len(RUN) // 2],
    "deep": b"[" * 200_000,
    "deep-object": b'{"a":' * 100_000,
    "other-json": b'{"name": "shop", "version": "1.0"}\n',
    "list": b"[1, 2, 3]",
    "number": b"17",
    "bom": b"\xef\xbb\xbf",
    "utf-16": "Räume".encode("utf-16"),
    "elf": Path(sys.executable).resolve().read_bytes()[:20_000],
    "cut-gzip": gzip.compress(RUN * 50)[:-20],
    "cut-xz": lzma.compress(RUN * 50)[:-20],
    "bad-gzip": b"\x1f\x8b\x08\x00" + b"\xff" * 100,
    "cut-tar": tar_of("")[:1000],
    "cut-tar-gz": tar_of("gz")[:2000],
    "cut-tar-xz": tar_of("xz")[:2000],
    "zstd": b"\x28\xb5\x2f\xfd" + b"\0" * 50,
    "sqlite": b"SQLite format 3\0" + b"\0" * 4000,
    "engine-without-events": b'{"engine": "aider"}',
    "run-of-wrong-types": b'{"engine": 5, "session_id": [], "events": {"kind": 1}, "outcome": {}, "started_at": {}}',
    "event-of-wrong-types": b'{"engine": "aider", "session_id": "s", "events": [{"kind": "command", "text": {"a": [1]}, "exit_code": "x", "paths": 7}, 5, null]}',
}


@pytest.mark.parametrize("name", NO_TRANSCRIPTS)
def test_something_else_than_a_transcript_is_named(name: str, folder: Path) -> None:
    """As a file, on standard input and in a folder beside a good one, which is read all the same."""
    path = folder / ("thing.jsonl.zst" if name == "zstd" else "thing.jsonl")
    path.write_bytes(NO_TRANSCRIPTS[name])
    for ran in (osmia("extract", path, "--dry-run"), osmia("extract", "-", "--dry-run", stdin=NO_TRANSCRIPTS[name])):
        assert ran.status in (0, 1), ran
        assert ran.status == 0 or "error: no run could be read" in ran.err
        assert ran.status == 0 or "skipped 1:" in ran.err
    (folder / "good.jsonl").write_bytes(RUN)
    beside = osmia("extract", folder, "--dry-run", "--json")
    assert beside.status == 0
    assert any(row["source"].endswith("good.jsonl") for row in beside.rows)


@pytest.mark.parametrize("mode", ["", "gz", "xz"])
def test_a_cut_archive_gives_what_is_whole(mode: str, folder: Path) -> None:
    """The first run is read, the damage is named; the whole archive gives both."""
    data = tar_of(mode)
    (folder / "whole.tar").write_bytes(data)
    (folder / "cut.tar").write_bytes(data[: len(data) * 2 // 3])
    assert len(osmia("extract", "whole.tar", "--dry-run", "--json").rows) == 2
    cut = osmia("extract", "cut.tar", "--dry-run", "--json")
    assert len(cut.rows) <= 1
    assert "damaged archive" in cut.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(folder: Path) -> None:
    """Is skipped like one that is not there."""
    (folder / "secret.jsonl").write_bytes(RUN)
    (folder / "secret.jsonl").chmod(0)
    assert "Permission denied" in osmia("extract", "secret.jsonl").err


def test_a_file_whose_reading_fails() -> None:
    """The kernel refuses: a skip with its reason, by every command that reads a file."""
    unreadable = "/proc/self/mem"
    if not Path(unreadable).exists():
        pytest.skip("needs a file that opens and cannot be read")
    assert (ran := osmia("extract", unreadable)).status == 1
    assert "cannot be read" in ran.err
    assert (ran := osmia("import", unreadable)).status == 1
    assert "cannot read" in ran.err
    assert osmia("query", "--task", f"@{unreadable}").status == 2


# --- something else than rows and text --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in NO_TRANSCRIPTS if n not in ("empty", "white")])
def test_something_else_than_rows_is_named(name: str, folder: Path) -> None:
    """Nothing is imported, and the line is said."""
    ran = osmia("import", "-", stdin=NO_TRANSCRIPTS[name])
    assert ran.status == 1
    assert "-:1: " in ran.err
    assert osmia("list").out == ""


@pytest.mark.parametrize("data", [b"\xff\xfe", b"prose", b'{"text": 5}', b'{"no": "text"}', b"[1]", b"[" * 100_000, b'{"text": "a"}\n{'])
def test_something_else_than_text_to_redact(data: bytes) -> None:
    """Is an error; what came before it was masked."""
    ran = osmia("redact", stdin=data)
    assert ran.status == 1
    assert "error: " in ran.err
    assert len(ran.rows) == data.count(b"\n")


def test_a_process_shows_no_traceback_either(folder: Path) -> None:
    """The same, without this test's own process around it."""
    (folder / "thing.duckdb").write_text("no store")
    for arguments, data in ((["list", "--store", "thing.duckdb"], b""), (["import", "-"], b"[" * 100_000), (["redact"], b"\xff")):
        ran = osmia_process(*arguments, stdin=data, cwd=folder)
        assert (ran.status, "Traceback" in ran.err) == (1, False)


def test_a_failing_export_leaves_nothing_behind(folder: Path, store: Path) -> None:
    """A store that turns out unreadable half way leaves no `.part` file and the old export as it was."""
    (folder / "out.jsonl").write_text("the old one\n")
    store.write_bytes(store.read_bytes()[:5000])
    assert osmia("export", "--out", "out.jsonl").status == 1
    assert (folder / "out.jsonl").read_text() == "the old one\n"
    assert not list(folder.glob("*.part"))
