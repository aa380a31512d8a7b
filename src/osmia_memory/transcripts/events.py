"""Builds a transcript's events: one redaction per text, consecutive indices, our own memory blocks cut out.

Knows nothing of any file format.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from osmia_memory.models import Event, EventKind
from osmia_memory.transcripts.redact import Redactor

_HEADING = "## Prior Knowledge"
# A block as our template renders it, also with line numbers or quote marks before each line, and inside a JSON string.
_EDGE = r"(?:[ \t>|│]*(?:\d+[ \t]*(?:→|\t|:|\|))?[ \t]*)"
_BLANK = rf"(?:\r?\n{_EDGE}(?=\r?(?:\n|\Z)))*"
_BLOCK = re.compile(
    rf"^{_EDGE}{_HEADING}[ \t]*{_BLANK}\r?\n{_EDGE}The following observations from previous tasks may be relevant:[^\n]*"
    rf"(?:{_BLANK}\r?\n{_EDGE}- [^\n]*)*(?:\r?\n)?",
    re.M,
)
_ESCAPED = re.compile(
    rf"{_HEADING}(?:\\r)?(?:\\n)+The following observations from previous tasks may be relevant:"
    r"(?:(?:(?:\\r)?\\n)+- (?:(?!\\r?\\n|\\n)(?:\\.|[^\"\\\n]))*)*"
)


class EventLog:
    """Collects the events of one transcript. Every text is redacted once, here and nowhere else."""

    __slots__ = ("events", "redact")

    def __init__(self, redactor: Redactor) -> None:
        self.events: list[Event] = []
        self.redact = redactor.redact

    def add(
        self,
        record: int,
        kind: EventKind,
        text: str = "",
        *,
        ts: datetime | None = None,
        tool: str | None = None,
        args: Mapping[str, Any] | None = None,
        answers: int | None = None,
        exit_code: int | None = None,
        is_error: bool = False,
        duration_s: float | None = None,
        paths: tuple[str, ...] = (),
        origin: str | None = None,
    ) -> int:
        """Append an event and return its index. A block of our memory inside `text` becomes an event of its own after it.

        Raises:
            TypeError: `text` is something else; the caller names the record.
        """
        if type(text) is not str:
            raise TypeError("the text of an event is a string")
        if text:
            text = self.redact(text.replace("\0", "") if "\0" in text else text)
        blocks: list[str] = []
        if _HEADING in text:
            text, blocks = _cut(text)
        if paths:
            paths = tuple([self.redact(path) for path in paths])
        safe = {key: self._safe(value) for key, value in args.items()} if args else {}
        if type(origin) is not str:
            origin = None
        index = len(self.events)
        if not blocks or text.strip() or kind not in ("user", "system"):
            self.events.append(Event(index, record, kind, text, ts, tool, safe, answers, exit_code, is_error, duration_s, paths, origin))
        for block in blocks:
            self.events.append(Event(len(self.events), record, "injected_memory", block, ts, origin=origin))
        return index

    def _safe(self, value: Any) -> Any:
        """An argument with every text in it redacted."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            return {self.redact(str(key)): self._safe(item) for key, item in value.items()}
        return [self._safe(item) for item in value] if isinstance(value, list) else value

    def mark(self, index: int, *, is_error: bool = False, args: Mapping[str, Any] | None = None) -> None:
        """What a result says about its call: that it failed, or more of its arguments (numbers and flags only)."""
        event = self.events[index]
        merged = {**event.args, **args} if args else event.args
        self.events[index] = replace(event, args=merged, is_error=event.is_error or is_error)

    def sort(self) -> dict[int, int]:
        """Put events that were added late where their records stand; returns old index -> new index."""
        order = sorted(self.events, key=lambda e: e.record)
        moved = {e.index: i for i, e in enumerate(order)}
        self.events = [self._moved(e, moved) for e in order]
        return moved

    @staticmethod
    def _moved(event: Event, moved: Mapping[int, int]) -> Event:
        index, answers = moved[event.index], None if event.answers is None else moved[event.answers]
        return event if (index, answers) == (event.index, event.answers) else replace(event, index=index, answers=answers)


def _cut(text: str) -> tuple[str, list[str]]:
    """(text without our memory blocks, the blocks)."""
    blocks: list[str] = []
    for pattern in (_BLOCK, _ESCAPED):
        blocks += pattern.findall(text)
        text = pattern.sub("", text)
    return text, blocks


def when(value: Any) -> datetime | None:
    """An aware UTC time from ISO text or Unix seconds (or milliseconds); None if it is neither."""
    try:
        if isinstance(value, str):
            parsed = datetime.fromisoformat(value)
            if parsed.tzinfo is UTC:
                return parsed
            return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def whole(value: Any) -> int | None:
    """`value` if it is a whole number (which `true` is not)."""
    return value if type(value) is int else None


def within(path: str, root: str | None) -> str:
    """`path` relative to the checkout if it lies in it, with forward slashes."""
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("/", "\\"):
        path = path[len(root) + 1 :]
    return path.replace("\\", "/") if "\\" in path else path


def span(times: Iterable[datetime | None]) -> tuple[datetime | None, datetime | None]:
    """(earliest, latest) of the times that are known."""
    known = [t for t in times if t is not None]
    return (min(known), max(known)) if known else (None, None)


def active_seconds(events: Iterable[Event]) -> float | None:
    """Seconds of work: from each thing a person typed to the last event before the next; None without times.

    What lies between is the person's time, which may be days.
    """
    total, began, last = 0.0, None, None
    for event in events:
        if event.ts is None:
            continue
        if event.kind == "user" or began is None:
            total += (last - began).total_seconds() if began and last else 0.0
            began = event.ts
        last = event.ts
    total += (last - began).total_seconds() if began and last else 0.0
    return max(total, 0.0) or None
