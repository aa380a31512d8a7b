"""The product as a whole, for tests: runs as TaskRun JSON, a memory that read them, and the command line. Content is invented."""

import contextlib
import functools
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from osmia_memory.cli.app import main
from osmia_memory.memory import Memory
from osmia_memory.models import Skip
from osmia_memory.pipeline import RunReport
from osmia_memory.testing import FixedClock

NOW = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
REPO = "acme/shop"
Events = list[dict[str, Any]]


# --- runs -------------------------------------------------------------------------------------------------------------


def sh(line: str, output: str = "", code: int = 0) -> Events:
    """A command and what it returned."""
    return [{"kind": "command", "text": line}, {"kind": "command_result", "text": output, "exit_code": code}]


def says(text: str, kind: str = "assistant") -> Events:
    """An event that is only text."""
    return [{"kind": kind, "text": text}]


def edits(path: str, text: str = "total = round(total, 2)") -> Events:
    """A change of a file."""
    return [{"kind": "file_edit", "paths": [path], "text": text}]


PYTEST_FAILS = sh("python -m pytest tests/test_cart.py", "/usr/bin/python: No module named pytest", 1)
TESTS_RUN = sh("bin/test", "40 passed in 2.20s")
LINT = sh("make lint", "All checks passed!")
NO_JUST = sh("just build", "bash: just: command not found", 127)


def a_task_run(session: str, *steps: Events, day: int = 4, **fields: Any) -> dict[str, Any]:
    """A run of an engine without a reader of its own, on the given day of May 2026."""
    times = {"started_at": f"2026-05-{day:02d}T09:00:00Z", "finished_at": f"2026-05-{day:02d}T09:05:00Z"}
    events = [*says("Fix the rounding of the cart total.", "user"), *(event for step in steps for event in step)]
    told = {"engine": "aider", "session_id": session, "repo": REPO, **times, "title": "Fix rounding", "events": events}
    return {**told, **fields}


def as_jsonl(*runs: Mapping[str, Any]) -> bytes:
    """Runs as a file, one a line."""
    return b"".join(json.dumps(run).encode() + b"\n" for run in runs)


def as_document(*runs: Mapping[str, Any]) -> bytes:
    """Runs as one JSON document, in which a record's number does not depend on the runs before it."""
    return json.dumps(runs, indent=1).encode()


# --- a memory ---------------------------------------------------------------------------------------------------------


def a_memory(folder: Path, tenant: str = "ticketing", *, now: datetime = NOW, name: str = "memory.duckdb") -> Memory:
    """The tenant's memory in a file of this folder, with a clock that stands."""
    return Memory(folder / name, tenant, clock=FixedClock(now))


@functools.cache
def _an_empty_store() -> bytes:
    """A store without knowledge, made once: making one takes longer than filling it."""
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(Path(folder) / "memory.duckdb", "ticketing")
        memory.store.redaction_key()
        return memory.store_path.read_bytes()


def ready(memory: Memory) -> Memory:
    """The same memory, with an empty store if it had none."""
    if not memory.store_path.exists():
        memory.store_path.write_bytes(_an_empty_store())
    return memory


def learn(memory: Memory, *runs: Mapping[str, Any], **options: Any) -> list[RunReport | Skip]:
    """Extract and store these runs."""
    if not options.get("dry_run"):
        ready(memory)
    return list(memory.extract(["-"], stdin=as_document(*runs), **options))


def contents(memory: Memory, **filters: Any) -> set[str]:
    """What is known, in words."""
    return {fact.content for fact in memory.facts(**filters)}


def id_of(memory: Memory, word: str) -> str:
    """The only fact whose content holds this word."""
    (found,) = [fact.fact_id for fact in memory.facts() if word in fact.content]
    return found


def exported(memory: Memory, **options: Any) -> str:
    """The export as one text."""
    return "".join(line + "\n" for line in memory.export_rows(**options))


def bytes_of(folder: Path) -> bytes:
    """Everything that lies in a folder, one file after the other."""
    return b"".join(p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file())


# --- the command line -------------------------------------------------------------------------------------------------


class Ran(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[Any]:
        """Its output as JSON, one value a line."""
        return [json.loads(line) for line in self.out.split("\n") if line]

    @property
    def value(self) -> Any:
        """Its output as one JSON value."""
        (value,) = self.rows
        return value


def osmia(*arguments: str | Path, stdin: bytes = b"") -> Ran:
    """A command in this process. A traceback would come out as the exception that it is."""
    out, err = io.BytesIO(), io.BytesIO()
    streams = io.TextIOWrapper(io.BytesIO(stdin)), io.TextIOWrapper(out), io.TextIOWrapper(err)
    before = sys.stdin
    status: Any = 0
    with contextlib.redirect_stdout(streams[1]), contextlib.redirect_stderr(streams[2]):
        sys.stdin = streams[0]
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = end.code
        finally:
            sys.stdin = before
            for stream in streams[1:]:
                stream.flush()
    return Ran(status or 0, out.getvalue().decode(), err.getvalue().decode())


def osmia_process(*arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None, **environment: str) -> Ran:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "osmia_memory.cli.app", *map(str, arguments)]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OSMIA_")}
    done = subprocess.run(command, input=stdin, capture_output=True, cwd=cwd, env={**clean, **environment}, timeout=60, check=False)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def everything_in(path: Path) -> bytes:
    """Every value of every table, uncompressed: DuckDB may pack what a search of the file's bytes would miss."""
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = [row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return "\n".join(str(row) for table in tables for row in connection.execute(f'SELECT * FROM "{table}"').fetchall()).encode()
