"""Sources -> digests in order, in this process and, once a batch proves large, in worker processes beside it.

A worker is a plain child of this interpreter that talks over its pipes: it needs no guard in the caller's main module, and it ends with
this process however that ends, because its stdin closes.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from osmia_memory.digest import Digest, Known, digests_of
from osmia_memory.models import Skip
from osmia_memory.transcripts.context import ReadOptions
from osmia_memory.transcripts.sources import FolderFiles, Source

_WORTH_IT = 4 * 1024**2  # bytes read before workers start: starting one costs about as much as reading these
_MAX_WORKERS = 3  # each takes about 100 MB
_MAX_ACCOMPANYING = 1024**2  # bytes that are sent along with a source
_GONE = (EOFError, OSError, pickle.UnpicklingError)

_WORKER = "import sys; from osmia_memory.digest import serve; serve(sys.stdin.buffer, sys.stdout.buffer)"

_Found = list[Digest | Skip]
_Pending = tuple[Source | None, Future[_Found]]  # the source while another process has it


def spare_processors() -> int:
    """How many workers this machine can keep busy beside this process."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(0, min(usable - 1, _MAX_WORKERS))


def digests(
    sources: Iterable[Source | Skip], options: ReadOptions, known: Known, *, workers: int = 0, keep: bool = False
) -> Iterator[Digest | Skip]:
    """The digests of all sources, in the order of the sources. What a worker that ended had in hand is done here.

    With `keep`, each has its transcript, and no workers take part: sending transcripts costs as much as reading them.
    """
    if keep:
        for source in sources:
            yield from [source] if isinstance(source, Skip) else digests_of(source, options, known, keep=True)
        return
    crew: _Crew | None = None
    pending: deque[_Pending] = deque()
    seen = 0
    try:
        for source in sources:
            if isinstance(source, Skip):
                pending.append((None, _known_already([source])))
            else:
                seen += len(source.data)
                if crew is None and workers and seen > _WORTH_IT:
                    crew = _Crew(workers, options, known)
                if crew is not None and crew.has_room() and _travels(source):
                    pending.append((source, crew.ask(source)))
                else:
                    pending.append((None, _known_already(digests_of(source, options, known))))
            while pending and pending[0][1].done():
                yield from _result(pending.popleft(), options, known)
        while pending:
            yield from _result(pending.popleft(), options, known)
    finally:
        if crew is not None:
            crew.dismiss()


def _known_already(found: _Found) -> Future[_Found]:
    future: Future[_Found] = Future()
    future.set_result(found)
    return future


def _result(pending: _Pending, options: ReadOptions, known: Known) -> _Found:
    source, future = pending
    try:
        return future.result()
    except _GONE:
        assert source is not None
        return digests_of(source, options, known)


def _travels(source: Source) -> bool:
    """It can be sent to another process at little cost."""
    beside = source.siblings
    return isinstance(beside, FolderFiles) or sum(map(len, beside.values())) < _MAX_ACCOMPANYING


class _Crew:
    """Worker processes, each with a thread here that feeds it one source after the other."""

    def __init__(self, count: int, options: ReadOptions, known: Known) -> None:
        self._start = pickle.dumps((options, dict(known)))
        self._own = threading.local()
        self._workers: list[subprocess.Popen[bytes]] = []
        self._room = 2 * count  # one in work and one waiting for each
        self._asked: list[Future[_Found]] = []
        self._lost = False
        self._threads = ThreadPoolExecutor(count)

    def has_room(self) -> bool:
        """Whether a source given now is soon begun."""
        self._asked = [f for f in self._asked if not f.done()]
        return not self._lost and len(self._asked) < self._room

    def ask(self, source: Source) -> Future[_Found]:
        """The digests to come; the future raises one of `_GONE` if the worker ends first."""
        future = self._threads.submit(self._answer, source)
        self._asked.append(future)
        return future

    def _answer(self, source: Source) -> _Found:
        try:
            worker = self._worker()
            assert worker.stdin is not None
            assert worker.stdout is not None
            pickle.dump(source, worker.stdin)
            worker.stdin.flush()
            found: _Found = pickle.load(worker.stdout)
        except _GONE:
            self._lost = True
            raise
        return found

    def _worker(self) -> subprocess.Popen[bytes]:
        """The process of this thread."""
        if not hasattr(self._own, "worker"):
            command = [sys.executable, "-P", "-c", _WORKER]  # -P: nothing of the folder it is started in is imported
            # A session of its own: an interrupt at the keyboard is for this process alone, which then closes the pipes.
            worker = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
            )
            self._own.worker = worker
            self._workers.append(worker)
            assert worker.stdin is not None
            worker.stdin.write(self._start)
        return self._own.worker  # type: ignore[no-any-return]

    def dismiss(self) -> None:
        """End the workers, whatever they are doing."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.kill()  # what it had in hand is either taken or no longer wanted
        self._threads.shutdown(wait=True)
        for worker in self._workers:
            worker.communicate()
