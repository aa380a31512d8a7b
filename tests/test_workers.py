"""Reading in several processes: the same digests in the same order, whatever becomes of the processes."""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from osmia_memory import workers
from osmia_memory.digest import Digest
from osmia_memory.extract import heuristics
from osmia_memory.models import Skip
from osmia_memory.transcripts.context import ReadOptions
from osmia_memory.transcripts.redact import Redactor
from osmia_memory.transcripts.sources import Source
from tests.product import LINT, PYTEST_FAILS, TESTS_RUN, a_task_run, as_jsonl, says

OPTIONS = ReadOptions(tenant="ticketing", redactor=Redactor(b"k" * 32))
LONG = says("word " * 20_000)  # 100 kB


def sources(count: int) -> list[Source | Skip]:
    """Files of one run each; every third is none."""
    made: list[Source | Skip] = []
    for n in range(count):
        data = b"no transcript" if n % 3 == 2 else as_jsonl(a_task_run(f"s{n}", LONG, PYTEST_FAILS, TESTS_RUN, LINT))
        made.append(Source(f"{n}.jsonl", data))
    return [*made, Skip("gone.jsonl", "cannot be read")]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Workers are worth it at once; the processes that were started."""
    processes: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def remembered(*args: object, **kwargs: object) -> subprocess.Popen[bytes]:
        processes.append(popen(*args, **kwargs))  # type: ignore[call-overload]
        return processes[-1]

    monkeypatch.setattr(workers, "_WORTH_IT", 0)
    monkeypatch.setattr(subprocess, "Popen", remembered)
    yield processes
    assert all(p.poll() is not None for p in processes), "a worker outlived its batch"


def test_workers_change_neither_what_is_found_nor_its_order(started: list[subprocess.Popen[bytes]]) -> None:
    """Digests and skips come out as they do without workers."""
    alone = list(workers.digests(sources(20), OPTIONS, {}))

    together = list(workers.digests(sources(20), OPTIONS, {}, workers=2))

    assert together == alone
    assert sum(isinstance(d, Digest) for d in together) == 14
    assert len(started) == 2


def test_what_a_dead_worker_had_in_hand_is_done_here(started: list[subprocess.Popen[bytes]]) -> None:
    """Killing the process loses nothing and is no error."""
    alone = list(workers.digests(sources(20), OPTIONS, {}))
    together: list[Digest | Skip] = []
    for found in workers.digests(sources(20), OPTIONS, {}, workers=1):
        together.append(found)
        for process in started:
            process.kill()

    assert started
    assert together == alone


def test_a_worker_that_cannot_start_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that is not there, or cannot import this package."""
    monkeypatch.setattr(workers, "_WORTH_IT", 0)
    alone = list(workers.digests(sources(6), OPTIONS, {}))
    for interpreter in ("/no/such/python", "/bin/false"):
        monkeypatch.setattr(sys, "executable", interpreter)
        assert list(workers.digests(sources(6), OPTIONS, {}, workers=1)) == alone


def test_a_batch_that_is_not_read_to_its_end_leaves_no_process(started: list[subprocess.Popen[bytes]]) -> None:
    """The fixture looks at the processes afterwards."""
    batch = workers.digests(sources(30), OPTIONS, {}, workers=2)

    assert len(list(itertools.islice(batch, 3))) == 3
    batch.close()  # type: ignore[attr-defined]

    assert started


def test_a_small_batch_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """One session after a task is read faster than a process starts."""
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: pytest.fail("a process was started"))

    assert len(list(workers.digests(sources(6), OPTIONS, {}, workers=2))) == 7


def test_runs_known_already_are_not_extracted_again(started: list[subprocess.Popen[bytes]]) -> None:
    """Their digests say so, from workers too."""
    first = [d for d in workers.digests(sources(6), OPTIONS, {}) if isinstance(d, Digest)]
    known = {d.run.run_id: (d.run.version, heuristics.EXTRACTOR) for d in first}

    again = [d for d in workers.digests(sources(6), OPTIONS, known, workers=1) if isinstance(d, Digest)]

    assert [d.extraction for d in again] == [None] * len(first)


@pytest.mark.slow
def test_a_worker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """Even if that one is killed: its pipes close."""
    script = tmp_path / "starts.py"
    script.write_text(
        "import sys, os\n"
        "from osmia_memory import workers\n"
        "from tests.test_workers import OPTIONS, sources\n"
        "workers._WORTH_IT = 0\n"
        "popen = workers.subprocess.Popen\n"
        "def told(*a, **k):\n"
        "    p = popen(*a, **k); print(p.pid, flush=True); return p\n"
        "workers.subprocess.Popen = told\n"
        "for n, found in enumerate(workers.digests(sources(30), OPTIONS, {}, workers=1)):\n"
        "    if n == 5: os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}, capture_output=True, timeout=60
    )
    assert ended.returncode == -9, ended.stderr.decode()
    worker = ended.stdout.decode().strip()
    assert any(is_over(worker) for _ in range(100)), f"worker {worker} still runs"


def is_over(pid: str) -> bool:
    """The process has ended, whether or not anybody took notice of it; asking takes a moment."""
    subprocess.run(["sleep", "0.1"], check=True)
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False).stdout.strip()
    return not state or state.startswith("Z")
