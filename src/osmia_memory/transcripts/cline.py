"""Cline: a session's `*.messages.json`, and a task's `api_conversation_history.json` (tools as XML in its older form).

What a task cost, which model it used and when stands beside it (`ui_messages.json`, `task_metadata.json`); how a session ended
in its `<id>.json`. A session's compacted copy is not read where the whole lies beside it.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Environment, Signal, Transcript
from osmia_memory.transcripts import cline_text
from osmia_memory.transcripts.cline_tools import Tools
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import active_seconds, when, whole
from osmia_memory.transcripts.machine import os_of
from osmia_memory.transcripts.outcome import claim_of, limit_reason
from osmia_memory.transcripts.records import MISREAD, Content, parse

ENGINE = "cline"
_ENDS = frozenset({"completed", "failed", "error", "cancelled", "aborted"})
_MESSAGES = ".messages.json"


def sniff(head: list[dict[str, Any]]) -> bool:
    """A session's messages or record, or a list of messages that opens with a task of Cline's."""
    return any(_is_session(r) or _is_record(r) for r in head) or _is_task(head)


def _is_session(r: dict[str, Any]) -> bool:
    return isinstance(r.get("messages"), list) and "sessionId" in r and "agent" in r and "projectHash" not in r


def _is_record(r: dict[str, Any]) -> bool:
    return "session_id" in r and "messages_path" in r


def _is_task(head: list[Any]) -> bool:
    texts = [str(r.get("content"))[:4000] for r in head[:1] if isinstance(r, dict) and r.get("role") == "user"]
    whole = [str(r.get("content")) for r in head[:1] if isinstance(r, dict)]
    return any("<task>" in t or "<user_message>" in t for t in texts) and any("<environment_details>" in t for t in whole)


def read(content: Content, context: Context) -> list[Transcript]:
    """The session or task of a file.

    Raises:
        TranscriptError: it holds no message, is a session's record, or a compacted copy of what lies beside it.
    """
    name = context.source.name
    document = content.documents[0] if content.documents else None
    if isinstance(document, dict) and _is_record(document):
        beside = str(document["messages_path"]).replace("\\", "/").rsplit("/", 1)[-1]
        raise TranscriptError(f"{name}: a Cline session's record; it is read together with its messages (`{beside}`)")
    meta: dict[str, Any] = document if isinstance(document, dict) else {}
    messages = meta.get("messages") if meta else document
    if not isinstance(messages, list):
        raise TranscriptError(f"{name}: a Cline session without messages")
    if content.cut:
        context.skips.add(len(messages), "the document is cut off here")
    whole_file = _whole_beside(meta, messages, context)
    if whole_file:
        raise TranscriptError(f"{name}: a compacted copy of a Cline session that stands whole in `{whole_file}`")
    reader = _Reader(meta, messages, context)
    reader.run()
    if not any(e.kind != "system" for e in reader.log.events):
        raise TranscriptError(f"{name}: a Cline session without any message")
    return [context.assemble(reader.findings(), reader.log, [context.source.data, *reader.beside_raw])]


def _whole_beside(meta: Mapping[str, Any], messages: list[Any], context: Context) -> str | None:
    """The neighbour that holds the whole session, if this file is its compacted copy."""
    first = messages[0] if messages and isinstance(messages[0], dict) else {}
    told = first["metadata"] if isinstance(first.get("metadata"), dict) else {}
    if not str(told.get("kind")).startswith("compaction"):
        return None
    own = context.source.name.rsplit("/", 1)[-1]
    for name in context.source.siblings:
        if name.endswith(_MESSAGES) and name != own:
            other = parse(context.source.siblings[name])
            if isinstance(other, dict) and other.get("sessionId") == meta.get("sessionId"):
                return name
    return None


class _Reader:
    """Reads the messages of one session or task in order."""

    def __init__(self, meta: dict[str, Any], messages: list[Any], context: Context) -> None:
        self.meta = meta
        self.messages = messages
        self.context = context
        self.log = context.log()
        self.beside_raw: list[bytes] = []
        name = context.source.name.replace(":", "/")
        base = name.rsplit("/", 1)[-1]
        self.record = self._beside(f"{base.removesuffix(_MESSAGES)}.json") if base.endswith(_MESSAGES) else {}
        self.record = self.record or (self._beside(f"{meta.get('sessionId')}.json") if meta else {})
        shown = {} if meta else self._beside("ui_messages.json")
        self.task = cline_text.task_facts(shown, {} if meta else self._beside("task_metadata.json"))
        self.task_id = name.rsplit("/", 2)[-2] if "/" in name else base
        self.tools = Tools(self.log, context.skips)
        self.tools.root = next((str(self.record[k]) for k in ("workspace_root", "cwd") if self.record.get(k)), None)
        told = self.record["metadata"] if isinstance(self.record.get("metadata"), dict) else {}
        self.fork: dict[str, Any] = told["fork"] if isinstance(told.get("fork"), dict) else {}
        self.forked_at = when(self.fork.get("forkedAt"))
        self.ts: datetime | None = None
        self.models: Counter[str] = Counter()
        self.tokens: list[int] | None = None
        self.cost: float | None = None
        self.typed = False

    def _beside(self, name: str) -> Any:
        """A neighbouring file's value, `{}` if there is none; it becomes part of the run's version."""
        data = self.context.source.siblings.get(name, b"")
        value = parse(data) if data else None
        if value is None:
            return {}
        self.beside_raw.append(data)
        return value if isinstance(value, dict | list) else {}

    def run(self) -> None:
        """Read every message; one of an unknown role or shape is named and skipped."""
        if isinstance(self.meta.get("system_prompt"), str):
            self.log.add(0, "system", self.meta["system_prompt"], tool="system-prompt")
        for number, message in enumerate(self.messages):
            try:
                self._message(number, message)
            except MISREAD:
                self.context.skips.add(number, "message of an unknown shape")

    def _message(self, number: int, message: dict[str, Any]) -> None:
        role = message.get("role")
        self.ts = when(message.get("ts")) or self.ts
        self.tools.at(number, self.ts, message.get("id"))
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        told = message["metadata"] if isinstance(message.get("metadata"), dict) else {}
        if role == "assistant":
            self._count(message)
            for block in blocks:
                self._said(block)
        elif role == "user" and told.get("kind") == "compaction_summary":
            self.tools.add("compaction", "\n".join(str(b.get("text") or "") for b in blocks))
        elif role == "user":
            for block in blocks:
                self._given(block)
        else:
            self.context.skips.add(number, f"unknown role {str(role)[:60]!r}")

    def _said(self, block: dict[str, Any]) -> None:
        """A block of the agent's."""
        kind = block.get("type")
        if kind == "text":
            before, calls = cline_text.xml_calls(block["text"])
            if before.strip():
                self.tools.add("assistant", before.strip())
            for name, arguments in calls:
                self.tools.xml_call(name, arguments)
        elif kind == "thinking":
            if str(block.get("thinking") or "").strip():
                self.tools.add("reasoning", block["thinking"])
        elif kind == "tool_use":
            self.tools.call(block)
        elif kind != "redacted_thinking":
            self.context.skips.add(self.tools.number, f"unknown block type {str(kind)[:60]!r}")

    def _given(self, block: dict[str, Any]) -> None:
        """A block in the person's role: typed, a tool's result, or put there by the harness."""
        kind = block.get("type")
        if kind == "tool_result":
            self.tools.result(block)
        elif kind == "file":
            self.tools.mention(block)
        elif kind == "text":
            for part in cline_text.parts(block["text"]):
                if part.kind == "environment" and self.tools.root is None:
                    self.tools.root = cline_text.folder(part.text)
                if part.kind == "typed":
                    self.tools.add("user", part.text)
                elif part.kind == "result":
                    self.tools.xml_result(part.name, part.text)
                elif part.kind != "rest" or not self.tools.xml_output(part.text):
                    self.tools.add("user" if part.kind == "rest" else "compaction" if part.kind == "compaction" else "system", part.text,
                                   None if part.kind in ("rest", "compaction") else part.kind)  # fmt: skip
        elif kind in ("image", "document"):
            return
        else:
            self.context.skips.add(self.tools.number, f"unknown block type {str(kind)[:60]!r}")

    def _count(self, message: dict[str, Any]) -> None:
        """Tokens and cost of one reply, unless a fork copied it. The input holds what was cached."""
        info = message["modelInfo"] if isinstance(message.get("modelInfo"), dict) else {}
        if info.get("id"):
            self.models[str(info["id"])] += 1
        told = message.get("metrics")
        copied = self.forked_at is not None and self.ts is not None and self.ts < self.forked_at
        if not isinstance(told, dict) or copied:
            return
        before = self.tokens or [0, 0]
        self.tokens = [before[0] + (whole(told.get("inputTokens")) or 0), before[1] + (whole(told.get("outputTokens")) or 0)]
        if isinstance(told.get("cost"), int | float):
            self.cost = (self.cost or 0.0) + told["cost"]

    def findings(self) -> Findings:
        """What the messages, and what lies beside them, say about the run."""
        model = self.models.most_common(1)[0][0] if self.models else self.task.model or self.record.get("model")
        parent = self.fork.get("forkedFromSessionId")
        return Findings(
            engine=ENGINE,
            session_id=str(self.meta.get("sessionId") or self.task_id),
            parent_session_id=str(parent) if parent else None,
            model=str(model) if model else None,
            cwd=self.tools.root,
            environment=Environment(os=os_of(self.tools.root)),
            started_at=self.task.started,
            finished_at=self.task.finished,
            duration_s=active_seconds(self.log.events),
            cost_usd=self.cost if self.cost is not None else self.task.cost,
            tokens_in=self.tokens[0] if self.tokens else self.task.tokens_in,
            tokens_out=self.tokens[1] if self.tokens else self.task.tokens_out,
            signals=self._signals(),
        )

    def _signals(self) -> list[Signal]:
        found = []
        status = str(self.record.get("status") or "")
        if status in _ENDS:
            found.append(Signal("exit_status", status))
        elif limit_reason(status):
            found.append(Signal("limit", status))
        last = next((e for e in reversed(self.log.events) if e.kind in ("assistant", "user")), None)
        if last and last.kind == "assistant":
            claim = "done" if self.tools.completed == last.index else claim_of(last.text)
            found += [Signal("claim", claim, last.index)] if claim else []
        return found
