"""What every reader is given, and how its findings become a `Transcript`. Knows no file format."""

import hashlib
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime

from osmia_memory import ids
from osmia_memory.models import Environment, Event, Outcome, Signal, TaskRun, TaskType, Transcript
from osmia_memory.transcripts import outcome as outcomes
from osmia_memory.transcripts import repo_key, sidecar, task
from osmia_memory.transcripts.events import EventLog, span
from osmia_memory.transcripts.records import Skips
from osmia_memory.transcripts.redact import Redactor
from osmia_memory.transcripts.sources import Source

UNKNOWN_ENGINE = "unknown"
_MAX_DESCRIPTION = 20_000  # characters; a task with a pasted log
_FILES = re.compile(r"[\w/.-]*\w\.[A-Za-z]{1,6}\b")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _one_off_redactor() -> Redactor:
    return Redactor(secrets.token_bytes(32))


@dataclass(frozen=True)
class ReadOptions:
    """What the caller knows better than the file.

    `redactor` should carry the store's key; without one a key made for this process is used, so that nothing is ever read
    unredacted. `at` stands in for the times of formats without any.
    """

    tenant: str
    repo: str | None = None
    engine: str | None = None
    outcome: Outcome | None = None
    at: datetime | None = None
    redactor: Redactor = field(default_factory=_one_off_redactor)


@dataclass
class Findings:
    """What a reader found out about one run, before redaction."""

    engine: str
    session_id: str
    segment: str = ""
    parent_session_id: str | None = None
    names: tuple[str, ...] = ()  # names that a test report or a sidecar may know the run by
    model: str | None = None
    repo: str | None = None
    cwd: str | None = None
    branch: str | None = None
    base_commit: str | None = None
    environment: Environment = field(default_factory=Environment)
    title: str | None = None
    description: str | None = None  # None: the first user event
    task_type: TaskType | None = None
    language: str | None = None
    labels: tuple[str, ...] = ()
    started_at: datetime | None = None
    finished_at: datetime | None = None
    duration_s: float | None = None
    cost_usd: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    attempts: int = 1
    signals: list[Signal] = field(default_factory=list)


@dataclass
class Context:
    """One file being read."""

    source: Source
    options: ReadOptions
    skips: Skips
    masked: Counter[str] = field(default_factory=Counter)  # the redactor's counts when reading began

    @classmethod
    def of(cls, source: Source, options: ReadOptions) -> "Context":
        """A fresh context for `source`."""
        return cls(source, options, Skips(source.name), Counter(options.redactor.counts))

    def log(self) -> EventLog:
        """A builder for one run's events."""
        return EventLog(self.options.redactor)

    def assemble(self, found: Findings, log: EventLog, raw: Iterable[bytes | memoryview]) -> Transcript:
        """The transcript of one run. `raw` are the run's own records; with what lies beside they make its version."""
        beside = sidecar.read_beside(self.source.name, self.source.siblings, (found.session_id, *found.names))
        events = tuple(log.events)
        engine = found.engine if found.engine != UNKNOWN_ENGINE or not beside.engine else "-".join(beside.engine.lower().split())
        started, finished, assumed = self._times(found, events)
        description = _task_text(events) if found.description is None else self.options.redactor.redact(found.description)
        description = description[:_MAX_DESCRIPTION]
        signals = (*found.signals, *outcomes.beside_signals(beside, self.options.outcome))
        run = TaskRun(
            run_id=ids.run_id(self.options.tenant, engine, found.session_id, found.segment),
            tenant_id=self.options.tenant,
            engine=engine,
            session_id=found.session_id,
            version=self._version(raw, beside),
            segment=found.segment,
            parent_session_id=found.parent_session_id,
            repo=self._repo(found, beside),
            model=found.model or beside.model,
            task_type=found.task_type or task.task_type(description),
            title=found.title or task.title(description),
            description=description,
            labels=tuple(dict.fromkeys((*found.labels, *beside.labels, *([f"agent:{beside.agent}"] if beside.agent else [])))),
            language=found.language or _language(events),
            branch=_branch(found.branch, beside.branches),
            base_commit=found.base_commit or beside.base_commit,
            cwd=found.cwd,
            environment=found.environment,
            started_at=started,
            finished_at=finished,
            times_assumed=assumed,
            duration_s=found.duration_s if found.duration_s is not None or assumed else (finished - started).total_seconds() or None,
            cost_usd=found.cost_usd,
            tokens_in=found.tokens_in,
            tokens_out=found.tokens_out,
            attempts=found.attempts,
            outcome=outcomes.decide(found.signals, beside, self.options.outcome),
            signals=signals,
            source=self.source.name,
        )
        read = Transcript(self._redacted(run), events, self.skips.result(), self._masked_here())
        self.masked = Counter(self.options.redactor.counts)  # what the next run of this file masks is its own
        return read

    def _times(self, found: Findings, events: Iterable[Event]) -> tuple[datetime, datetime, bool]:
        first, last = span([found.started_at, found.finished_at, *(e.ts for e in events)])
        if first is not None and last is not None:
            return found.started_at or first, found.finished_at or last, False
        assumed = self.options.at or self.source.mtime or _EPOCH
        return assumed, assumed, True

    def _repo(self, found: Findings, beside: sidecar.Beside) -> str | None:
        option = self.options.repo
        given = option and (repo_key.from_url(option) or option)
        return given or beside.repo or found.repo or (repo_key.from_cwd(found.cwd) if found.cwd else None)

    def _version(self, raw: Iterable[bytes | memoryview], beside: sidecar.Beside) -> str:
        digest = hashlib.sha256()
        for piece in raw:
            digest.update(piece)
        outside = [str(value) for value in (self.options.outcome, self.options.repo, *_fields(beside).values())]
        digest.update("\x1f".join(outside).encode("utf-8", "replace"))
        return digest.hexdigest()

    def _redacted(self, run: TaskRun) -> TaskRun:
        redact = self.options.redactor.redact
        return replace(
            run,
            repo=run.repo and redact(run.repo),
            engine=redact(run.engine),
            model=run.model and redact(run.model),
            session_id=redact(run.session_id),
            segment=redact(run.segment),
            parent_session_id=run.parent_session_id and redact(run.parent_session_id),
            base_commit=run.base_commit and redact(run.base_commit),
            language=run.language and redact(run.language),
            environment=Environment(*(value and redact(value) for value in astuple(run.environment))),
            title=redact(run.title),
            branch=run.branch and redact(run.branch),
            cwd=run.cwd and redact(run.cwd),
            source=redact(run.source),
            labels=tuple(redact(label) for label in run.labels),
            signals=tuple(Signal(s.name, redact(s.value), s.event_index) for s in run.signals),
        )

    def _masked_here(self) -> Mapping[str, int]:
        return {kind: n - self.masked[kind] for kind, n in self.options.redactor.counts.items() if n > self.masked[kind]}


def _fields(beside: sidecar.Beside) -> dict[str, object]:
    return {name: getattr(beside, name) for name in beside.__dataclass_fields__}


def _task_text(events: Iterable[Event]) -> str:
    """The first user text with a meaning, else the first one; it is redacted already."""
    first = ""
    for event in events:
        if event.kind == "user" and event.text.strip():
            if task.title(event.text):
                return event.text.strip()
            first = first or event.text.strip()
    return first


def _language(events: Iterable[Event]) -> str | None:
    """By the files edited, else read, else named in commands."""
    edited = [p for e in events if e.kind == "file_edit" for p in e.paths]
    read = [p for e in events if e.kind == "file_read" for p in e.paths]
    return (
        task.language(edited)
        or task.language(read)
        or task.language(w for e in events if e.kind == "command" for w in _FILES.findall(e.text))
    )


def _branch(own: str | None, beside: tuple[str, ...]) -> str | None:
    """The recorder's branch; where it names several, the session's own unless that is the trunk it started on."""
    if not beside:
        return own
    if len(beside) == 1 or own in (None, "main", "master"):
        return beside[0]
    return own
