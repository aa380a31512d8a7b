"""Our own way in: one TaskRun as JSON, or one a line, with its events in `events`.

For any engine without a reader, and for the controller that started the run and knows how it ended. The fields are those of
`TaskRun`; an event has `kind` and `text`, and the fields of `Event` as far as they are known. After a run's line, lines with
a `kind` are further events of it.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, cast, get_args

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Environment, EventKind, Signal, TaskRun, TaskType, Transcript
from osmia_memory.transcripts import outcome, repo_key
from osmia_memory.transcripts.context import UNKNOWN_ENGINE, Context, Findings
from osmia_memory.transcripts.events import EventLog, when, whole, within
from osmia_memory.transcripts.records import MISREAD, Content, as_json
from osmia_memory.transcripts.sidecar import as_outcome

_KINDS: frozenset[str] = frozenset(get_args(EventKind))
_TASK_TYPES: frozenset[str] = frozenset(get_args(TaskType))
_OWN = frozenset({f.name for f in fields(TaskRun)})
_RUN_KEYS = _OWN | {
    "type", "events", "instance_id", "id", "tenant", "task", "prompt", "failure_reason", "limit_reason", "watchdog_reason", "reason", "exit_status",
    "exit_code", "claim", "review", "resolved", "landed", "url", "remote",
}  # fmt: skip
_EVENT_KEYS = frozenset(
    {
        "index",
        "record",
        "ts",
        "time",
        "timestamp",
        "kind",
        "type",
        "text",
        "tool",
        "args",
        "answers",
        "exit_code",
        "is_error",
        "duration_s",
        "duration",
        "paths",
        "origin",
    }
)
_SIGNAL_NAMES = (
    "exit_status",
    "exit_code",
    "claim",
    "limit_reason",
    "watchdog_reason",
    "failure_reason",
    "reason",
    "review",
    "landed",
    "resolved",
)


def sniff(head: list[dict[str, Any]]) -> bool:
    """A run has `engine` with fields of a TaskRun, or a list of events that have kinds of ours."""
    return any(_is_run(d) for d in head)


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict) or "payload" in value or "trajectory_format" in value:
        return False
    events = value.get("events")
    if isinstance(events, list) and events:
        return any(isinstance(e, dict) and str(e.get("kind")) in _KINDS for e in events)
    told = {"session_id", "instance_id", "outcome", "description", "title", "task", "events", "exit_status", "run_id"}
    return "engine" in value and bool(told & value.keys())


def read(content: Content, context: Context) -> list[Transcript]:
    """One transcript for each run of the file.

    Raises:
        TranscriptError: the file holds no run.
    """
    found = []
    if content.cut:
        context.skips.add(None, "the document is cut off")
    for place, (number, run, following) in enumerate(_runs(content, context)):
        reader = _Reader(run, context, number, place, by_line=not content.documents)
        reader.read_all(following)
        raw = [as_json(run).encode(), *(as_json(event).encode() for _, event in following)]
        found.append(context.assemble(reader.findings(), reader.log, raw))
    if not found:
        raise TranscriptError(f"{context.source.name}: no run among the records")
    return found


def _runs(content: Content, context: Context) -> Iterator[tuple[int, dict[str, Any], list[tuple[int, dict[str, Any]]]]]:
    """(line, run, the event lines that follow it)."""
    current: tuple[int, dict[str, Any], list[tuple[int, dict[str, Any]]]] | None = None
    seen: set[bytes] = set()
    for number, value in content.values(context.skips):
        for item in value if isinstance(value, list) else (value,):
            if _is_run(item):
                digest = hashlib.sha256(as_json(item).encode()).digest()
                if digest in seen:
                    context.skips.add(number, "record repeats an earlier one")
                    continue
                seen.add(digest)
                if current:
                    yield current
                current = (number, item, [])
            elif current and isinstance(item, dict) and str(item.get("kind")) in _KINDS:
                current[2].append((number, item))
            else:
                context.skips.add(number, "neither a run nor an event of one")
    if current:
        yield current


class _Reader:
    """Reads one run. `line` is its line in the file; in a JSON document events are numbered by their place in `events`."""

    def __init__(self, run: dict[str, Any], context: Context, line: int, place: int, by_line: bool) -> None:
        self.run = run
        self.context = context
        self.line = line
        self.place = place
        self.by_line = by_line
        self.log: EventLog = context.log()
        self.indices: dict[Any, int] = {}  # the file's index of an event -> ours
        self.last_call: int | None = None
        self.cwd = self._text("cwd")
        unknown = sorted(set(run) - _RUN_KEYS)
        if unknown:
            context.skips.add(line, f"unknown fields: {', '.join(unknown)[:200]}")

    def read_all(self, following: list[tuple[int, dict[str, Any]]]) -> None:
        """All events; one of an unknown kind or shape is named and skipped."""
        own = self.run.get("events")
        numbered = [(self.line if self.by_line else i, e) for i, e in enumerate(own if isinstance(own, list) else ())]
        for place, (number, event) in enumerate([*numbered, *following]):
            try:
                self._event(place, number, event)
            except MISREAD:
                self.context.skips.add(number, "event of an unknown shape")

    def _event(self, place: int, number: int, event: dict[str, Any]) -> None:
        kind = str(event.get("kind"))
        if kind not in _KINDS:
            self.context.skips.add(number, f"unknown event kind {kind[:40]!r}")
            return
        record = event["record"] if isinstance(event.get("record"), int) else number
        args = event["args"] if isinstance(event.get("args"), dict) else {}
        paths = event.get("paths") or ()
        text = event.get("text")
        at = self.log.add(
            record,
            cast(EventKind, kind),
            text if isinstance(text, str) else "" if text is None else as_json(text),
            ts=_first_time(event, "ts", "time", "timestamp"),
            tool=str(event["tool"]) if event.get("tool") else None,
            args=args,
            answers=self._answers(event, kind),
            exit_code=whole(event.get("exit_code")),
            is_error=event.get("is_error") is True,
            duration_s=_number(event.get("duration_s", event.get("duration"))),
            paths=tuple(within(p, self.cwd) for p in ([paths] if isinstance(paths, str) else paths) if isinstance(p, str)),
            origin=str(event["origin"]) if event.get("origin") else None,
        )
        self.indices[event.get("index", place)] = at
        if kind in ("command", "tool_call", "file_read", "file_edit"):
            self.last_call = at

    def _answers(self, event: dict[str, Any], kind: str) -> int | None:
        """The call that a result belongs to: as told, else the last one."""
        if not kind.endswith("_result"):
            return None
        told = event.get("answers")
        return self.indices.get(told) if told is not None else self.last_call

    def _text(self, *names: str) -> str | None:
        return next((v for name in names if isinstance(v := self.run.get(name), str) and v), None)

    def findings(self) -> Findings:
        """The run's own fields."""
        run = self.run
        engine = self._text("engine") or self.context.options.engine or UNKNOWN_ENGINE
        repo = self._text("repo", "remote", "url")
        kind = str(run.get("task_type"))
        labels = run.get("labels")
        return Findings(
            engine=engine,
            session_id=self._text("session_id", "instance_id", "id", "run_id") or f"{self.context.source.name}#{self.place}",
            segment=str(run.get("segment") or ""),
            parent_session_id=self._text("parent_session_id"),
            names=tuple(v for name in ("instance_id", "id", "run_id") if (v := self._text(name))),
            model=self._text("model"),
            repo=(repo_key.from_url(repo) or repo) if repo else None,
            cwd=self.cwd,
            branch=self._text("branch"),
            base_commit=self._text("base_commit"),
            environment=_environment(run.get("environment")),
            title=self._text("title") and " ".join((self._text("title") or "").split()),
            description=self._text("description", "task", "prompt") or self._text("title"),
            task_type=cast(TaskType, kind) if kind in _TASK_TYPES else None,
            language=self._text("language"),
            labels=tuple(str(label) for label in labels) if isinstance(labels, list) else (),
            started_at=when(run.get("started_at")),
            finished_at=when(run.get("finished_at")),
            duration_s=_number(run.get("duration_s")),
            cost_usd=_number(run.get("cost_usd")),
            tokens_in=whole(run.get("tokens_in")),
            tokens_out=whole(run.get("tokens_out")),
            attempts=whole(run.get("attempts")) or 1,
            signals=list(self._signals()),
        )

    def _signals(self) -> Iterator[Signal]:
        """The run's own signs, and what the agent's last words claim where the run does not say."""
        named: set[str] = set()
        listed = self.run.get("signals")
        for item in listed if isinstance(listed, list) else ():
            name, value = (item.get("name"), item.get("value")) if isinstance(item, dict) else (None, None)
            if isinstance(name, str) and value is not None:
                named.add(name)
                yield Signal(name, _word(value), self.indices.get(item.get("event_index")))
        for key in _SIGNAL_NAMES:
            value = self.run.get(key)
            if value is None or value == "":
                continue
            name = "exit_status" if key == "exit_code" else key
            if key.endswith("reason"):
                signal = (
                    Signal("limit", _word(value)) if key != "failure_reason" and key != "reason" else outcome.reason_signal(_word(value))
                )
            else:
                signal = Signal(name, _word(value))
            named.add(signal.name)
            yield signal
        last = next((e for e in reversed(self.log.events) if e.kind in ("assistant", "command_result", "tool_result")), None)
        claim = outcome.claim_of(last.text) if last is not None and last.kind == "assistant" and "claim" not in named else None
        if last is not None and claim:
            yield Signal("claim", claim, last.index)
        given = as_outcome(self.run.get("outcome"))
        if given:
            yield Signal("given", given)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _environment(value: Any) -> Environment:
    told: Mapping[str, Any] = value if isinstance(value, dict) else {}
    return Environment(*(str(told[name]) if told.get(name) else None for name in ("os", "shell", "sandbox", "interpreter")))


def _first_time(event: dict[str, Any], *names: str) -> datetime | None:
    return next((t for name in names if (t := when(event.get(name)))), None)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
