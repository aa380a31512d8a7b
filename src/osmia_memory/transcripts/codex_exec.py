"""Output of `codex exec --json`: `thread.started`, `turn.*` and `item.*` events, one a line, without times, model or cost.

A run captured so has the thread id of its rollout file, so that both are versions of one run. The thread id holds the only
clock. Lines of stderr may stand between the events.
"""

import re
import shlex
from collections.abc import Iterator
from typing import Any

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Signal, Transcript
from osmia_memory.transcripts.codex_own import uuid_time
from osmia_memory.transcripts.codex_script import shell_line
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import EventLog, when, whole
from osmia_memory.transcripts.outcome import claim_of
from osmia_memory.transcripts.records import MISREAD, Content, as_json

ENGINE = "codex"
_TYPES = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.updated", "item.completed"})
_RETRIED = re.compile(r"re-?connecting|retrying|\b\d+/\d+\b", re.I)
_OTHER_CALLS = ("mcp_tool_call", "collab_tool_call", "web_search", "todo_list")
_NO_ARGUMENTS = frozenset({"id", "type", "status", "result", "error", "server", "tool"})
_Records = list[tuple[int, dict[str, Any]]]


def sniff(head: list[dict[str, Any]]) -> bool:
    """An event of a thread, a turn or an item by its dotted type."""
    return any(str(r.get("type")) in _TYPES and "payload" not in r for r in head)


def read(content: Content, context: Context) -> list[Transcript]:
    """One transcript for each thread of the capture.

    Raises:
        TranscriptError: no event holds anything of a run.
    """
    found = []
    for place, records in enumerate(_threads(content, context)):
        thread = _Thread(context, place)
        for number, value in records:
            thread.take(number, value)
        if thread.log.events:
            found.append(context.assemble(thread.findings(), thread.log, [as_json(value).encode() for _, value in records]))
    if not found:
        raise TranscriptError(f"{context.source.name}: output of `codex exec --json` without any item")
    return found


def _threads(content: Content, context: Context) -> Iterator[_Records]:
    """The records of each thread; a thread that is resumed in the same file goes on."""
    threads: dict[str, _Records] = {}
    current: _Records | None = None
    for number, value in content.values(context.skips):
        for item in value if isinstance(value, list) else (value,):
            if not isinstance(item, dict):
                context.skips.add(number, "not a JSON object")
                continue
            if item.get("type") == "thread.started" or current is None:
                current = threads.setdefault(str(item.get("thread_id") or ""), [])
            current.append((number, item))
    yield from threads.values()


class _Thread:
    """Reads the events of one thread in order."""

    def __init__(self, context: Context, place: int) -> None:
        self.log: EventLog = context.log()
        self.context = context
        self.place = place
        self.record = 0
        self.thread_id: str | None = None
        self.calls: dict[str, int] = {}  # item id -> index of its call; ids start anew with every turn of a process
        self.tokens: tuple[int, int] | None = None
        self.ending: Signal | None = None

    def take(self, number: int, value: dict[str, Any]) -> None:
        """Read one event; an unknown type or a shape nobody wrote down is named and skipped."""
        self.record = number
        kind = str(value.get("type"))
        try:
            match kind:
                case "thread.started":
                    self.thread_id = self.thread_id or str(value["thread_id"])
                case "turn.started":
                    self.calls.clear()
                    self.ending = Signal("exit_status", "interrupted")  # until the turn's end is told
                case "turn.completed":
                    self._usage(value.get("usage"))
                    self.ending = Signal("exit_status", "task_complete")
                case "turn.failed":
                    self._failed(value.get("error"))
                case "error":
                    self._error(str(value.get("message") or ""))
                case "item.started" | "item.updated" | "item.completed":
                    self._item(value["item"], kind.removeprefix("item."))
                case _:
                    self.context.skips.add(number, f"unknown record type {kind[:60]!r}")
        except MISREAD:
            self.context.skips.add(number, f"{kind[:60]} record of an unknown shape")

    def _usage(self, usage: Any) -> None:
        """The total of the thread so far, of which the last is the largest."""
        if isinstance(usage, dict):
            told = (whole(usage.get("input_tokens")) or 0, whole(usage.get("output_tokens")) or 0)
            self.tokens = max(self.tokens or told, told)

    def _failed(self, error: Any) -> None:
        text = str(error.get("message") or "") if isinstance(error, dict) else str(error or "")
        last = self.log.events[-1] if self.log.events else None
        at = (
            last.index
            if last is not None and last.kind == "error" and last.text == self.log.redact(text)
            else self._error(text, final=True)
        )
        self.ending = Signal("exit_status", "error", at)

    def _error(self, text: str, final: bool = False) -> int:
        args = {"retried": not final and bool(_RETRIED.search(text))}
        return self.log.add(self.record, "error", text, tool="provider", args=args, is_error=True)

    # --- items --------------------------------------------------------------------------------------------------------

    def _item(self, item: dict[str, Any], stage: str) -> None:
        kind = str(item.get("type") or item.get("item_type"))
        if kind == "command_execution":
            self._command(item, stage)
        elif kind in _OTHER_CALLS:
            if stage == "completed":
                self._call(item, kind)
        elif stage != "completed":
            return
        elif kind in ("agent_message", "assistant_message"):
            self._text("assistant", item)
        elif kind == "reasoning":
            self._text("reasoning", item)
        elif kind == "file_change":
            self._edits(item)
        elif kind == "error":  # a warning: the turn goes on
            self.log.add(self.record, "system", str(item.get("message") or ""), tool="warning")
        else:
            self.context.skips.add(self.record, f"unknown item type {kind[:60]!r}")

    def _text(self, kind: Any, item: dict[str, Any]) -> None:
        if item["text"].strip():
            self.log.add(self.record, kind, item["text"])

    def _command(self, item: dict[str, Any], stage: str) -> None:
        key = str(item.get("id"))
        if key not in self.calls:
            self.calls[key] = self.log.add(self.record, "command", _line(item["command"]), tool="exec")
        if stage != "completed":
            return
        call = self.calls.pop(key)
        code = whole(item.get("exit_code"))
        status = item.get("status")
        self.log.add(
            self.record, "command_result", str(item.get("aggregated_output") or ""), tool="exec",
            args={"harness": "refused"} if status == "declined" else None,
            answers=call, exit_code=code, is_error=bool(code) or status in ("failed", "declined"),
        )  # fmt: skip

    def _edits(self, item: dict[str, Any]) -> None:
        for change in item["changes"]:
            told = change.get("kind")
            kind = told.get("type") if isinstance(told, dict) else told
            move = told.get("move_path") if isinstance(told, dict) else None
            args = {"created": True} if kind == "add" else {"deleted": True} if kind == "delete" else None
            paths = tuple(p.replace("\\", "/") for p in (change.get("path"), move) if isinstance(p, str))
            self.log.add(
                self.record, "file_edit", str(change.get("diff") or ""), tool="apply_patch", args=args, paths=paths,
                is_error=item.get("status") in ("failed", "declined"),
            )  # fmt: skip

    def _call(self, item: dict[str, Any], kind: str) -> None:
        """A call of another tool, with its result where one is told."""
        arguments = item.get("arguments") if "arguments" in item else {k: v for k, v in item.items() if k not in _NO_ARGUMENTS}
        name = ".".join(str(item[k]) for k in ("server", "tool") if item.get(k)) or kind
        call = self.log.add(self.record, "tool_call", as_json(arguments), tool=name)
        result, error = item.get("result"), item.get("error")
        if result is None and error is None:
            return
        failed = error is not None or item.get("status") == "failed"
        self.log.add(self.record, "tool_result", _shown(error if error is not None else result), tool=name, answers=call, is_error=failed)

    # --- the whole ----------------------------------------------------------------------------------------------------

    def findings(self) -> Findings:
        """What the events say about the run."""
        last = next((e for e in reversed(self.log.events) if e.kind in ("assistant", "command_result")), None)
        claim = claim_of(last.text) if last is not None and last.kind == "assistant" else None
        stem = self.context.source.name.rsplit("/", 1)[-1].removesuffix(".jsonl")
        return Findings(
            engine=ENGINE,
            session_id=self.thread_id or (f"{stem}#{self.place}" if self.place else stem),
            started_at=when(uuid_time(self.thread_id or "")),
            tokens_in=self.tokens[0] if self.tokens else None,
            tokens_out=self.tokens[1] if self.tokens else None,
            signals=[*([self.ending] if self.ending else []), *([Signal("claim", claim, last.index if last else None)] if claim else [])],
        )


def _line(command: Any) -> str:
    """The script inside `/bin/bash -lc '...'`, or the command as it stands."""
    if isinstance(command, list):
        return shell_line([str(word) for word in command])
    if not isinstance(command, str):
        raise TypeError("a command is text or a list of words")
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    line = shell_line(words)
    return (
        line
        if len(words) >= 3 and line == words[-1] and re.search(r"(?:^|[/\\])(?:bash|zsh|sh|dash|pwsh|powershell)", words[0])
        else command
    )


def _shown(value: Any) -> str:
    """A tool's result as text: its text parts, else its JSON."""
    if isinstance(value, str):
        return value
    parts = value.get("content") if isinstance(value, dict) else None
    texts = [p["text"] for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str)] if isinstance(parts, list) else []
    if texts:
        return "\n".join(texts)
    return value["message"] if isinstance(value, dict) and isinstance(value.get("message"), str) else as_json(value)
