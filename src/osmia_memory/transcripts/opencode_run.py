"""One opencode session as messages with parts -> a transcript. Knows the parts and tools; not where they were told."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from osmia_memory.models import Environment, EventKind, Signal, Transcript
from osmia_memory.transcripts import patches
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import EventLog, when, whole, within
from osmia_memory.transcripts.machine import os_of
from osmia_memory.transcripts.outcome import claim_of
from osmia_memory.transcripts.records import MISREAD, as_json

ENGINE = "opencode"
_SILENT_PARTS = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent"})
_EDITS = frozenset({"write", "edit", "multiedit", "patch", "apply_patch"})
_NOTE = re.compile(r"\n*<(bash_metadata|shell_metadata|metadata)>\n?(.*?)\n?</\1>\s*\Z", re.S)
_OLD_NOTE = re.compile(r"\n*\((?:Command timed out after [^)]*|Output was truncated[^)]*)\)\s*\Z")
_NOTE_CHARACTERS = 2_000  # a note stands at the end
_TIMED_OUT = re.compile(r"timed out after|exceeding timeout", re.I)
_ABORTED = re.compile(r"User aborted|Tool execution (?:was )?aborted|interrupted by user", re.I)
_REFUSED = re.compile(r"rejected permission|user (?:has )?(?:rejected|denied|dismissed)|prevents you from using", re.I)
_LIMITS = {"MessageOutputLengthError": "output length", "ContextOverflowError": "context"}


@dataclass
class Message:
    """`info` is the message itself, `parts` the last state of each of its parts with the record that told it."""

    record: int
    info: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)

    def put(self, record: int, part: Any) -> None:
        """A part as it now is."""
        self.parts[str(part["id"])] = (record, part)

    def grow(self, record: int, told: dict[str, Any]) -> None:
        """A piece of a part's text."""
        key, name = str(told["partID"]), str(told["field"])
        _, part = self.parts.get(key, (record, {"type": "text"}))
        if isinstance(told["delta"], str):
            self.parts[key] = (record, {**part, name: str(part.get(name) or "") + told["delta"]})


@dataclass
class Run:
    """What is known of one session. `errors` are (record, time, error)."""

    session_id: str
    info: dict[str, Any] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    errors: list[tuple[int, Any, Any]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    def message(self, record: int, message_id: str) -> Message:
        """The message of an id, begun at a record if it is new."""
        return self.messages.setdefault(message_id, Message(record))


def read_run(run: Run, context: Context) -> Transcript | None:
    """The transcript of a session; None if nothing was said or done in it."""
    reader = _Reader(run, context)
    reader.read()
    if not any(e.kind not in ("system", "error") for e in reader.log.events):
        return None
    return context.assemble(reader.findings(), reader.log, run.raw)


class _Reader:
    def __init__(self, run: Run, context: Context) -> None:
        self.run = run
        self.context = context
        self.log: EventLog = context.log()
        paths = [m.info["path"] for m in run.messages.values() if isinstance(m.info.get("path"), dict)]
        places = (run.info.get("directory"), *(p.get("cwd") for p in paths))
        self.cwd = next((p for p in places if isinstance(p, str) and p), None)
        self.models: Counter[str] = Counter()
        self.tokens: list[int] | None = None
        self.cost: float | None = None
        self.seconds = 0.0
        self.ending: Signal | None = None

    def read(self) -> None:
        """All messages, and the errors of the session; what has an unknown shape is named and skipped."""
        told: set[str] = set()
        for message in self.run.messages.values():
            try:
                self._message(message)
                told.add(as_json(message.info.get("error")))
            except MISREAD:
                self.context.skips.add(message.record, "message of an unknown shape")
        for record, ts, error in self.run.errors:
            if as_json(error) not in told and isinstance(error, dict):  # else the message has told it
                self._error(record, when(ts), error)

    def _message(self, message: Message) -> None:
        role = message.info.get("role")
        if role not in ("user", "assistant"):
            self.context.skips.add(
                message.record, "a part of a message that is not told" if role is None else f"unknown role {str(role)[:60]!r}"
            )
            return
        self.ending = None if role == "user" else self.ending
        time = message.info["time"] if isinstance(message.info.get("time"), dict) else {}
        ts = when(time.get("created"))
        for record, part in list(message.parts.values()):
            try:
                self._part(record, ts, part, message.info)
            except MISREAD:
                self.context.skips.add(record, f"{str(part.get('type'))[:60]} part of an unknown shape")
        if role == "user":
            return
        self._count(message)
        end = when(time.get("completed"))
        self.seconds += (end - ts).total_seconds() if end and ts else 0.0
        if isinstance(message.info.get("error"), dict):
            self._error(message.record, end or ts, message.info["error"])
        elif message.info.get("finish") == "stop":
            self.ending = Signal("exit_status", "end_turn")
        elif message.info.get("finish") == "length":
            self.ending = Signal("limit", "output length")

    def _part(self, record: int, ts: Any, part: dict[str, Any], info: dict[str, Any]) -> None:
        kind = part.get("type")
        own = part["time"] if isinstance(part.get("time"), dict) else {}
        ts = when(own.get("start")) or ts
        origin = part.get("id")
        if kind == "text":
            self._text(record, ts, part, info)
        elif kind == "reasoning":
            if part["text"].strip():
                self.log.add(record, "reasoning", part["text"], ts=ts, origin=origin)
        elif kind == "tool":
            self._tool(record, ts, part)
        elif kind == "file":
            source = part["source"] if isinstance(part.get("source"), dict) else {}
            name = source.get("path") or part.get("filename")
            paths = (within(name, self.cwd),) if isinstance(name, str) else ()
            self.log.add(record, "file_read", ts=ts, tool="mention", paths=paths, origin=origin)
        elif kind == "retry":
            text = _error_text(part.get("error"))
            args = {"retried": True, "attempt": whole(part.get("attempt"))}
            self.log.add(record, "error", text, ts=ts, tool="provider", args=args, is_error=True, origin=origin)
        elif kind == "compaction":
            self.log.add(record, "compaction", "", ts=ts, tool="boundary", args={"auto": part.get("auto") is True}, origin=origin)
        elif kind == "subtask":
            self.log.add(record, "tool_call", str(part.get("prompt") or ""), ts=ts, tool="subtask", origin=origin)
        elif kind not in _SILENT_PARTS:
            self.context.skips.add(record, f"unknown part type {str(kind)[:60]!r}")

    def _text(self, record: int, ts: Any, part: dict[str, Any], info: dict[str, Any]) -> None:
        text = part["text"]
        if not text.strip() or part.get("ignored") is True:
            return
        if info["role"] == "assistant":
            kind: EventKind = "compaction" if info.get("summary") is True else "assistant"
            self.log.add(record, kind, text, ts=ts, origin=part.get("id"))
        elif part.get("synthetic") is True:
            self.log.add(record, "system", text, ts=ts, tool="synthetic", origin=part.get("id"))
        else:
            args = {"by": "agent"} if self.run.info.get("parentID") else None
            self.log.add(record, "user", text, ts=ts, args=args, origin=part.get("id"))

    # --- tools --------------------------------------------------------------------------------------------------------

    def _tool(self, record: int, ts: Any, part: dict[str, Any]) -> None:
        """A call with its state, which holds what it returned once it has ended."""
        state = part["state"]
        name = str(part.get("tool"))
        given = state["input"] if isinstance(state.get("input"), dict) else {}
        meta = state["metadata"] if isinstance(state.get("metadata"), dict) else {}
        time = state["time"] if isinstance(state.get("time"), dict) else {}
        started, ended = when(time.get("start")) or ts, when(time.get("end"))
        origin = part.get("callID")
        status = state.get("status")
        calls = [
            self.log.add(record, kind, text, ts=started, tool=name, args=args, paths=paths, origin=origin)
            for kind, text, paths, args in self._what(name, given, meta)
        ]
        if status not in ("completed", "error"):
            return
        text = str((state.get("output") if status == "completed" else state.get("error")) or "")
        text, flags = _flags(text, status == "error")
        if meta.get("truncated") is True:
            flags["truncated"] = True
        is_command = self.log.events[calls[0]].kind == "command"
        code = whole(meta.get("exit")) if is_command and not flags.keys() & {"timeout", "harness"} else None
        failed = status == "error" or bool(code) or "timeout" in flags
        for call in calls:
            if failed and self.log.events[call].kind == "file_edit":
                self.log.mark(call, is_error=True)
        self.log.add(
            record, "command_result" if is_command else "tool_result", text, ts=ended or started, tool=name, args=flags, answers=calls[0],
            exit_code=code, is_error=failed, duration_s=(ended - started).total_seconds() if ended and started else None, origin=origin,
        )  # fmt: skip

    def _what(
        self, name: str, given: dict[str, Any], meta: dict[str, Any]
    ) -> Iterator[tuple[EventKind, str, tuple[str, ...], dict[str, Any]]]:
        """(kind, text, paths, arguments) of a call; a patch is one for each file."""
        path = given.get("filePath", given.get("path"))
        paths = (within(path, self.cwd),) if isinstance(path, str) and path else ()
        changes = list(patches.from_apply_patch(str(given.get("patchText") or ""))) if name in _EDITS else []
        if name in ("bash", "shell") and isinstance(given.get("command"), str):
            yield "command", given["command"], (), {key: given[key] for key in ("timeout", "workdir") if key in given}
        elif name == "read":
            yield "file_read", "", paths, {key: given[key] for key in ("offset", "limit") if key in given}
        elif changes:
            for change in changes:
                made = {"created": True} if change.created else {"deleted": True} if change.deleted else {}
                yield "file_edit", change.text, tuple(within(p, self.cwd) for p in change.paths), made
        elif name in _EDITS and paths:
            edits = given.get("edits")
            news = [e.get("newString") for e in edits if isinstance(e, dict)] if isinstance(edits, list) else []
            text = "\n".join(str(n) for n in (given.get("content", given.get("newString")), *news) if n)
            made = {"created": True} if meta.get("exists") is False or given.get("oldString") == "" else {}
            yield "file_edit", text, paths, made
        else:
            yield "tool_call", as_json(given), paths, {}

    # --- the harness --------------------------------------------------------------------------------------------------

    def _error(self, record: int, ts: Any, error: dict[str, Any]) -> None:
        name = str(error.get("name"))
        text = _error_text(error)
        if name == "MessageAbortedError":
            at = self.log.add(record, "error", text, ts=ts, tool="harness", args={"harness": "interrupted"})
            self.ending = Signal("exit_status", "interrupted", at)
            return
        at = self.log.add(record, "error", text, ts=ts, tool="provider", args={"name": name}, is_error=True)
        self.ending = Signal("limit", _LIMITS[name], at) if name in _LIMITS else Signal("exit_status", "error", at)

    def _count(self, message: Message) -> None:
        """Tokens and cost of a message: of its steps where they are told, since the message itself may only tell the last one's."""
        info = message.info
        if isinstance(info.get("modelID"), str):
            self.models[info["modelID"]] += 1
        steps = [part for _, part in message.parts.values() if part.get("type") == "step-finish"]
        for told in steps or [info]:
            tokens, cost = told.get("tokens"), told.get("cost")
            if isinstance(tokens, dict):
                cache = tokens["cache"] if isinstance(tokens.get("cache"), dict) else {}
                read, written, thought = whole(cache.get("read")), whole(cache.get("write")), whole(tokens.get("reasoning"))
                before = self.tokens or [0, 0]
                self.tokens = [
                    before[0] + (whole(tokens.get("input")) or 0) + (read or 0) + (written or 0),
                    before[1] + (whole(tokens.get("output")) or 0) + (thought or 0),
                ]
            if isinstance(cost, int | float) and not isinstance(cost, bool):
                self.cost = (self.cost or 0.0) + cost

    def findings(self) -> Findings:
        """What the session says about the run."""
        last = next((e for e in reversed(self.log.events) if e.kind == "assistant"), None)
        claim = claim_of(last.text) if last else None
        told = self.run.info
        model = told["model"].get("id") if isinstance(told.get("model"), dict) else None
        return Findings(
            engine=ENGINE,
            session_id=self.run.session_id,
            parent_session_id=str(told["parentID"]) if told.get("parentID") else None,
            model=self.models.most_common(1)[0][0] if self.models else str(model) if model else None,
            cwd=self.cwd,
            environment=Environment(os=os_of(self.cwd)),
            duration_s=round(self.seconds, 3) or None,
            cost_usd=self.cost,
            tokens_in=self.tokens[0] if self.tokens else None,
            tokens_out=self.tokens[1] if self.tokens else None,
            signals=[*([self.ending] if self.ending else []), *([Signal("claim", claim, last.index)] if last and claim else [])],
        )


def _flags(text: str, failed: bool) -> tuple[str, dict[str, Any]]:
    """(text without the harness's note at its end, what the note says)."""
    end = max(0, len(text) - _NOTE_CHARACTERS)
    note = _NOTE.search(text, end) or _OLD_NOTE.search(text, end)
    flags: dict[str, Any] = {}
    told = note[0] if note else text if failed else ""
    if _ABORTED.search(told):
        flags["harness"] = "interrupted"
    elif failed and _REFUSED.search(told):
        flags["harness"] = "refused"
    elif _TIMED_OUT.search(told):
        flags["timeout"] = True
    if note and "truncated" in note[0]:
        flags["truncated"] = True
    return (text[: note.start()] if note else text), flags


def _error_text(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error or "")
    data = error["data"] if isinstance(error.get("data"), dict) else {}
    return ": ".join(str(t) for t in (error.get("name"), data.get("message") or error.get("message")) if t)
