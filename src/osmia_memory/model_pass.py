"""The second pass: a model reads a run in parts and proposes facts, code verifies them, and what stands is stored beside the rules' facts.

The rules' result is stored before the first request, so no trouble with a model can lose it. Every request is recorded with its cost as
soon as its run's answers are in. A part that was answered well is never asked for again; the others stay pending, and the run is `partial`.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from osmia_memory import ids, prompting, reconcile
from osmia_memory.budget import Budget
from osmia_memory.digest import Digest
from osmia_memory.errors import CapReached, OsmiaMemoryError
from osmia_memory.extract import heuristics, proposals
from osmia_memory.extract.proposals import Drop, Verified
from osmia_memory.extract.window import Chunk, window
from osmia_memory.extract.wire import ReplyV1
from osmia_memory.llm import Completer, Completion, Request
from osmia_memory.models import Candidate, Plan, Skip, TaskRun, Transcript
from osmia_memory.pipeline import Proposals, RunReport, told_by_model
from osmia_memory.prompting import Prompt
from osmia_memory.store.fact_store import FactStore
from osmia_memory.store.ledger import DONE, ChunkState
from osmia_memory.store.ledger import Request as Recorded

MAX_FACTS = 12  # of one run, beside those of the rules
MAX_REPLY_TOKENS = 2_000
WINDOW_TOKENS = 12_000
_FAILURES_IN_A_ROW = 5  # then nothing more is asked: a wrong key or a provider that is down answers no other part either

Redact = Callable[[str], str]


class NotAsked(OsmiaMemoryError):
    """A part was not sent, or its answer has not come yet; it stays pending."""


class Task(NamedTuple):
    """One part of a run to ask about. `key` is the same whenever the same text is asked with the same prompt."""

    run_id: str
    chunk: Chunk
    key: str
    request: Request

    @property
    def custom_id(self) -> str:
        """Names the task in a batch file: letters, digits and hyphens, at most 64."""
        return f"{self.run_id}-{self.key}".replace(":", "-")[:64]


@dataclass(frozen=True)
class ModelPass:
    """Whom to ask, and how much. `ask` stands for the completer where the replies come from somewhere else, such as a batch file."""

    completer: Completer
    budget: Budget
    concurrency: int = 4
    window_tokens: int = WINDOW_TOKENS  # of the run's text in one request; the prompt around it takes about 3,000 more
    again: bool = False  # also what was answered already
    ask: Callable[[Task], Completion] | None = None

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt in force."""
        return prompting.load("extract_facts", "v1")

    @property
    def source(self) -> str:
        """What accepted proposals name as their source."""
        return f"llm:{self.prompt.id}"

    def answer(self, task: Task) -> Completion:
        """The completion of one task.

        Raises:
            CapReached, NotAsked: nothing was sent.
        """
        return self.ask(task) if self.ask else self.completer.complete(task.request, self.budget)

    def tasks(self, digest: Digest) -> tuple[Task, ...]:
        """Everything that the model can be asked about one run."""
        if digest.transcript is None or digest.extraction is None:
            return ()
        found = []
        for chunk in window(digest.transcript, self.completer.count_tokens, budget_tokens=self.window_tokens):
            # What the rules found is not said: the question depends on the run alone, and newer rules are no reason to ask again.
            messages = self.prompt.render(record=chunk.text, part=chunk.number, parts=chunk.of)
            key = ids.content_id("c1", [self.prompt.id, chunk.text])
            found.append(Task(digest.run.run_id, chunk, key, Request(messages, self.prompt.wire, MAX_REPLY_TOKENS)))
        return tuple(found)

    def answered(self, run: TaskRun, tasks: Sequence[Task], store: FactStore | None) -> dict[str, str]:
        """Key -> state of those of a run's tasks that need no asking."""
        if store is None or self.again or not tasks:
            return {}
        stored = store.chunk_states(run.tenant_id, [run.run_id], self.prompt.id)
        keys = {task.key for task in tasks}
        return {key: state for (_, key), state in stored.items() if state in DONE and key in keys}

    def open_tasks(self, report: RunReport, store: FactStore | None) -> tuple[Task, ...]:
        """What is still to be asked about a run."""
        tasks = self.tasks(report.digest)
        done = self.answered(report.run, tasks, store)
        return tuple(task for task in tasks if task.key not in done)


@dataclass
class _Work:
    """One run on its way."""

    report: RunReport
    transcript: Transcript
    tasks: tuple[Task, ...]
    before: dict[str, str]  # chunk key -> state of those that are not asked again
    answers: dict[str, Future[Completion]] = field(default_factory=dict)


def propose(
    reports: Iterable[RunReport | Skip], the: ModelPass, store: FactStore, clock: Callable[[], datetime], redact: Redact
) -> Iterator[RunReport | Skip]:
    """The same reports, each with what the model pass did for its run, once that is stored."""
    waiting: deque[_Work | Skip] = deque()
    asking = _Asking(the)
    with ThreadPoolExecutor(the.concurrency) as pool:
        try:
            for report in reports:
                waiting.append(report if isinstance(report, Skip) else _begin(report, the, asking, store, pool))
                while waiting and (len(waiting) > the.concurrency or _is_ready(waiting[0])):
                    yield _finish(waiting.popleft(), the, store, clock, redact)
            while waiting:
                yield _finish(waiting.popleft(), the, store, clock, redact)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class _Asking:
    """Asks until too many parts in a row have failed."""

    def __init__(self, the: ModelPass) -> None:
        self._the = the
        self._failed = 0
        self._lock = threading.Lock()

    def __call__(self, task: Task) -> Completion:
        with self._lock:
            if self._failed >= _FAILURES_IN_A_ROW and self._the.ask is None:
                raise NotAsked(f"nothing more was asked after {_FAILURES_IN_A_ROW} parts in a row had failed")
        completion = self._the.answer(task)
        with self._lock:
            self._failed = self._failed + 1 if completion.state == "failed" else 0
        return completion


def _begin(report: RunReport, the: ModelPass, asking: _Asking, store: FactStore, pool: ThreadPoolExecutor) -> _Work | Skip:
    if report.digest.transcript is None:
        return Skip(report.run.source, "its events were not kept, so no model was asked about it")
    tasks = the.tasks(report.digest)
    before = the.answered(report.run, tasks, store)
    work = _Work(report, report.digest.transcript, tasks, before)
    work.answers = {task.key: pool.submit(asking, task) for task in tasks if task.key not in before}
    return work


def _is_ready(work: _Work | Skip) -> bool:
    return isinstance(work, Skip) or all(f.done() for f in work.answers.values())


def _finish(work: _Work | Skip, the: ModelPass, store: FactStore, clock: Callable[[], datetime], redact: Redact) -> RunReport | Skip:
    """Record what was spent, store what stands, then say which parts are done: killed in between, a part is asked once more."""
    if isinstance(work, Skip):
        return work
    tenant, run = work.report.run.tenant_id, work.report.run
    completions, not_asked = _collected(work)
    for key, completion in completions.items():
        attempts = [
            Recorded(a.model, a.state, a.tokens_in, a.tokens_out, a.cost_usd, a.latency_s, redact(a.error)) for a in completion.attempts
        ]
        store.record_requests(tenant, run.run_id, the.prompt.id, key, attempts, at=clock())
    verified = _verified(work, completions, the, redact)
    states = {t.key: work.before.get(t.key) or _state(completions.get(t.key)) for t in work.tasks}
    stored = _store(work, verified, states, the, store, clock()) if completions else _Stored()
    chunks = [
        ChunkState(
            run.run_id,
            the.prompt.id,
            t.key,
            t.chunk.number,
            t.chunk.of,
            states[t.key],
            the.completer.model,
            redact(completions[t.key].detail) if t.key in completions else not_asked[t.key],
        )
        for t in work.tasks
        if t.key in completions or t.key in not_asked
    ]
    store.record_chunks(tenant, chunks, at=clock())
    dropped = (*(d for v in verified for d in v.dropped), *stored.dropped)
    return replace(work.report, proposals=_summary(chunks, completions, states, dropped, stored))


def _collected(work: _Work) -> tuple[dict[str, Completion], dict[str, str]]:
    """(completions, reasons of the parts that were not asked), both by key."""
    completions, not_asked = {}, {}
    for key, future in work.answers.items():
        try:
            completions[key] = future.result()
        except (CapReached, NotAsked) as reason:
            not_asked[key] = str(reason)
    return completions, not_asked


def _state(completion: Completion | None) -> str:
    if completion is None:
        return "pending"
    if completion.state == "ok" and isinstance(completion.parsed, ReplyV1) and not completion.parsed.facts:
        return "empty"
    return completion.state


def _verified(work: _Work, completions: Mapping[str, Completion], the: ModelPass, redact: Redact) -> list[Verified]:
    """What code makes of the replies."""
    assert work.report.digest.extraction is not None
    rules = work.report.digest.extraction.candidates
    return [
        proposals.verify(work.transcript, task.chunk.number, done.parsed, rules, redact, the.source)
        for task in work.tasks
        if (done := completions.get(task.key)) is not None and done.state == "ok" and isinstance(done.parsed, ReplyV1)
    ]


class _Stored(NamedTuple):
    kept: int = 0
    dropped: tuple[Drop, ...] = ()
    plan: Plan | None = None


def _store(
    work: _Work, verified: Sequence[Verified], states: Mapping[str, str], the: ModelPass, store: FactStore, now: datetime
) -> _Stored:
    """Replace the run's testimony by what the rules and the model say together; what earlier answers said stays."""
    run, extraction = work.report.run, work.report.digest.extraction
    assert extraction is not None
    with store.session(write=True) as session:
        before = frozenset(session.facts_of_run(run.tenant_id, run.run_id))
        earlier = _told_earlier(work, told_by_model(session.state_for(run.tenant_id, before), before, run.run_id), states, the)
        settled = proposals.settle([*earlier, *(pair for v in verified for pair in v.numbered)])
        kept = sorted(settled.kept, key=lambda c: (-c.confidence, c.content))
        beyond = tuple(Drop("beyond the limit", c.content) for c in kept[MAX_FACTS:])
        candidates = (*extraction.candidates, *kept[:MAX_FACTS])
        touched = {ids.fact_id(run.tenant_id, c.scope, c.owner, c.claim, c.content) for c in candidates} | before
        state, tombstones = session.state_for(run.tenant_id, touched), frozenset(session.tombstones(run.tenant_id, touched))
        plan = reconcile.plan(run, candidates, state, previous=before, tombstones=tombstones, discarded=extraction.discarded)
        session.apply_many(
            [plan], recorded_at=now, extractors=[_extractor(states, the)], vocabularies=[work.report.digest.vocabulary], again=True
        )
    return _Stored(len(kept[:MAX_FACTS]), (*settled.dropped, *beyond), plan)


def _extractor(states: Mapping[str, str], the: ModelPass) -> str:
    """The rules and the prompt; how many parts of a partial run were answered is said too."""
    answered = sum(state in DONE for state in states.values())
    progress = "" if answered == len(states) else f"[{answered}/{len(states)}]"
    return f"{heuristics.EXTRACTOR}+{the.prompt.id}{progress}"


def _told_earlier(work: _Work, told: Sequence[Candidate], states: Mapping[str, str], the: ModelPass) -> Iterator[tuple[int, Candidate]]:
    """Testimony from answers of earlier commands that still counts, with the number of its part.

    Of the same prompt: unless its part was asked again. Of another one: until this prompt has read the whole run.
    """
    complete = all(state in DONE for state in states.values())
    parts = {index: task for task in work.tasks for index in task.chunk.events}
    for candidate in told:
        task = parts.get(candidate.evidence[0].event_index)
        answered_anew = task is not None and task.key in work.answers and states[task.key] in DONE
        if (candidate.source == the.source and not answered_anew) or (candidate.source != the.source and not complete):
            yield (task.chunk.number if task else 0), candidate


def _summary(
    chunks: Sequence[ChunkState],
    completions: Mapping[str, Completion],
    states: Mapping[str, str],
    dropped: Sequence[Drop],
    stored: _Stored,
) -> Proposals:
    attempts = [a for c in completions.values() for a in c.attempts]
    costs = [a.cost_usd for a in attempts]
    return Proposals(
        states=Counter(states.values()),
        requests=len(attempts),
        tokens_in=sum(a.tokens_in for a in attempts),
        tokens_out=sum(a.tokens_out for a in attempts),
        cost_usd=None if None in costs else sum(c for c in costs if c is not None),
        dropped=tuple(dropped),
        details=tuple(f"part {c.number} of {c.parts}: {c.detail}" for c in chunks if c.detail and c.state not in DONE),
        kept=stored.kept,
        plan=stored.plan,
    )
