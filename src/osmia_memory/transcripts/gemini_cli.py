"""Gemini CLI sessions: the document `session-*.json`, and the log `session-*.jsonl` that is replayed to the same messages.

In the log a message is written again as it grows (the last one counts), `$set` changes what is said of the session, and
`$rewindTo` takes back a message and all after it. The project is told only by a hash.
"""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Environment, Signal, Transcript
from osmia_memory.transcripts import gemini_tools
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import active_seconds, when, whole
from osmia_memory.transcripts.machine import os_of
from osmia_memory.transcripts.outcome import claim_of
from osmia_memory.transcripts.records import MISREAD, Content, as_json

ENGINE = "gemini-cli"
_INJECTED = re.compile(r"\s*(?:System: Please continue\.|<session_context>|This is the Gemini CLI\. We are setting up the context)")
_SUMMARY = re.compile(r"\s*<state_snapshot>")
_FILES_FOLLOW = re.compile(r"^--- Content from referenced files ---", re.M)
_SHELL_BY_USER = re.compile(
    r"I ran the following shell command:\n```\w*\n(.*?)\n```\n+This produced the following result:\n```\n?(.*?)\n?```\s*\Z", re.S
)
_CANCELLED = re.compile(r"request cancelled|cancelled by (?:the )?user", re.I)


class _Session(NamedTuple):
    """One conversation. `messages` are (record, message)."""

    meta: dict[str, Any]
    messages: list[tuple[int, Any]]
    raw: bytes | None  # None: the whole file


def sniff(head: list[dict[str, Any]]) -> bool:
    """A session says its id and the hash of its project."""
    return any("sessionId" in r and "projectHash" in r for r in head)


def read(content: Content, context: Context) -> list[Transcript]:
    """One transcript for each session of the file.

    Raises:
        TranscriptError: the file holds no message of a person or the agent.
    """
    if content.cut:
        context.skips.add(None, "the document is cut off")
    found = []
    for session in _documents(content, context) if content.documents else [_replayed(content, context)]:
        reader = _Reader(session, context)
        reader.run()
        if any(e.kind != "system" for e in reader.log.events):
            found.append(context.assemble(reader.findings(), reader.log, [session.raw or context.source.data]))
        elif content.documents:
            context.skips.add(None, "a Gemini CLI session without any message")
    if not found:
        raise TranscriptError(f"{context.source.name}: a Gemini CLI session without any message of a person or the agent")
    return found


def _documents(content: Content, context: Context) -> Iterator[_Session]:
    """The sessions of JSON documents; a message list is numbered by its places."""
    for document in content.documents:
        if isinstance(document, dict) and "sessionId" in document and isinstance(document.get("messages"), list):
            whole_file = len(content.documents) == 1
            yield _Session(document, list(enumerate(document["messages"])), None if whole_file else as_json(document).encode())
        else:
            context.skips.add(None, "no Gemini CLI session")


def _replayed(content: Content, context: Context) -> _Session:
    """The session that the lines of a log amount to."""
    meta: dict[str, Any] = {}
    messages: dict[str, tuple[int, Any]] = {}
    for number, record in content.values(context.skips):
        if isinstance(record.get("$rewindTo"), str):
            ids = list(messages)
            gone = ids[ids.index(record["$rewindTo"]) :] if record["$rewindTo"] in messages else ids
            for each in gone:
                del messages[each]
            context.skips.add(number, f"{len(gone)} messages taken back by a rewind")
        elif isinstance(record.get("$set"), dict):
            meta |= {key: value for key, value in record["$set"].items() if key != "messages"}
            listed = record["$set"].get("messages")
            if isinstance(listed, list):
                messages = {str(m.get("id")): (number, m) for m in listed if isinstance(m, dict)}
        elif isinstance(record.get("id"), str):
            messages[record["id"]] = (number, record)
        elif "sessionId" in record:
            meta |= record
        else:
            context.skips.add(number, f"unknown record with the keys {', '.join(record)[:60]}")
    return _Session(meta, list(messages.values()), None)


class _Reader:
    """Reads the messages of one session in order."""

    def __init__(self, session: _Session, context: Context) -> None:
        self.meta = session.meta
        self.messages = session.messages
        self.context = context
        self.log = context.log()
        folders = self.meta.get("directories")
        cwd = folders[0] if isinstance(folders, list) and folders and isinstance(folders[0], str) else None
        self.tools = gemini_tools.Tools(self.log, cwd)
        self.is_part = self.meta.get("kind") == "subagent"
        self.record = 0
        self.ts: datetime | None = None
        self.models: Counter[str] = Counter()
        self.tokens: list[int] | None = None
        self.cancelled: int | None = None

    def run(self) -> None:
        """Read every message; one of an unknown type or shape is named and skipped."""
        for number, message in self.messages:
            try:
                self._message(number, message)
            except MISREAD:
                self.context.skips.add(number, "message of an unknown shape")

    def _message(self, number: int, message: dict[str, Any]) -> None:
        kind = message.get("type")
        self.record = number
        self.ts = when(message.get("timestamp")) or self.ts
        origin = message.get("id")
        if kind == "user":
            self.cancelled = None
            self._user(message, origin)
        elif kind == "gemini":
            self.cancelled = None
            self._gemini(message, origin)
        elif kind in ("info", "warning", "error"):
            text = _text(message.get("content"))
            if _CANCELLED.search(text):
                args = {"harness": "interrupted"}
                self.cancelled = self.log.add(number, "error", text, ts=self.ts, tool="harness", args=args, origin=origin)
            elif kind == "error":
                self.log.add(number, "error", text, ts=self.ts, tool="provider", is_error=True, origin=origin)
            else:
                self.log.add(number, "system", text, ts=self.ts, tool=str(kind), origin=origin)
        else:
            self.context.skips.add(number, f"unknown message type {str(kind)[:60]!r}")

    def _user(self, message: dict[str, Any], origin: Any) -> None:
        """What a person typed; files it refers to and words of the harness in its place are told apart."""
        text = _text(message.get("content"))
        shown = _text(message.get("displayContent"))
        ran = _SHELL_BY_USER.match(text)
        files = _FILES_FOLLOW.search(text)
        if ran:
            self.tools.typed_command(self.record, self.ts, ran[1], ran[2], origin)
        elif _SUMMARY.match(text):
            self.log.add(self.record, "compaction", text, ts=self.ts, origin=origin)
        elif _INJECTED.match(text):
            self.log.add(self.record, "system", text, ts=self.ts, tool="context", origin=origin)
        elif re.fullmatch(r"/[a-z-]+(?: .*)?", text.strip()):
            self.log.add(self.record, "system", text.strip(), ts=self.ts, tool="slash-command", origin=origin)
        else:
            typed = shown or (text[: files.start()] if files else text)
            if typed.strip():
                args = {"by": "agent"} if self.is_part else None
                self.log.add(self.record, "user", typed.strip(), ts=self.ts, args=args, origin=origin)
            if files:
                self.log.add(self.record, "system", text[files.start() :], ts=self.ts, tool="context", origin=origin)

    def _gemini(self, message: dict[str, Any], origin: Any) -> None:
        self._count(message)
        thoughts = [f"{t.get('subject') or ''}: {t.get('description') or ''}".strip(": ") for t in message.get("thoughts") or ()]
        if any(thoughts):
            self.log.add(self.record, "reasoning", "\n".join(thoughts), ts=self.ts, origin=origin)
        text = _text(message.get("content"))
        if text.strip():
            self.log.add(self.record, "assistant", text, ts=self.ts, origin=origin)
        for call in message.get("toolCalls") or ():
            self.tools.call(self.record, self.ts, call)

    def _count(self, message: dict[str, Any]) -> None:
        """Tokens of one reply: its input holds what was cached; what it thought is told beside its output."""
        if isinstance(message.get("model"), str):
            self.models[message["model"]] += 1
        told = message.get("tokens")
        if isinstance(told, dict):
            one = {name: whole(told.get(name)) or 0 for name in ("input", "tool", "output", "thoughts")}
            before = self.tokens or [0, 0]
            self.tokens = [before[0] + one["input"] + one["tool"], before[1] + one["output"] + one["thoughts"]]

    def findings(self) -> Findings:
        """What the session says about the run."""
        session_id = str(self.meta.get("sessionId") or "")
        folder = self.context.source.name.replace(":", "/").rsplit("/", 2)[:-1]
        last = next((e for e in reversed(self.log.events) if e.kind == "assistant"), None)
        claim = claim_of(last.text) if last else None
        signals = [Signal("claim", claim, last.index)] if last and claim and self.cancelled is None else []
        if self.cancelled is not None:
            signals.append(Signal("exit_status", "interrupted", self.cancelled))
        return Findings(
            engine=ENGINE,
            session_id=session_id,
            parent_session_id=folder[-1] if self.is_part and folder else None,
            model=self.models.most_common(1)[0][0] if self.models else None,
            cwd=self.tools.root,
            environment=Environment(os=os_of(self.tools.root)),
            started_at=when(self.meta.get("startTime")),
            finished_at=when(self.meta.get("lastUpdated")),
            duration_s=active_seconds(self.log.events),
            tokens_in=self.tokens[0] if self.tokens else None,
            tokens_out=self.tokens[1] if self.tokens else None,
            signals=signals,
        )


def _text(content: Any) -> str:
    """The text of a content that is a string, a part or a list of them; media are named, not shown."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "\n".join(t for part in parts if (t := _part(part)))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"])
    return "[media]" if "inlineData" in part or "fileData" in part else ""
