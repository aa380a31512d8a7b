"""Claude Code's own output: `--output-format stream-json` lines, the one `json` object, and the array that its CI action keeps.

The same messages as in a session file in another envelope (`session_id`, `parent_tool_use_id`); they are read by the session's
reader. What only this output has is here: how the run ended, what it cost, refused permissions, retries of the provider.
"""

import re
from collections.abc import Iterator
from typing import Any

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Signal, Transcript
from osmia_memory.transcripts.claude_code import ENGINE, Session, split
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import whole
from osmia_memory.transcripts.outcome import limit_reason
from osmia_memory.transcripts.records import MISREAD, Content, Record, as_json

__all__ = ["ENGINE", "read", "sniff"]

_TYPES = frozenset({"system", "assistant", "user", "result", "stream_event", "rate_limit_event"})
# Deltas, progress and control of the process: what they bring stands in whole messages as well.
_IGNORED = frozenset(
    "stream_event rate_limit_event tool_progress tool_use_summary auth_status keep_alive control_request control_response "
    "control_cancel_request prompt_suggestion streamlined_text streamlined_tool_use_summary".split()
)
_IGNORED_SUBTYPES = frozenset(
    "init status thinking_tokens hook_started hook_progress task_started task_progress task_updated task_notification files_persisted "
    "local_command_output elicitation_complete session_state_changed post_turn_summary".split()
)
_API_ERROR = re.compile(
    r"\s*(?:API Error|Invalid API key|Credit balance|Please run /login|OAuth token|.{0,40}\busage limit|Failed to authenticate)", re.I
)
_INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def sniff(head: list[dict[str, Any]]) -> bool:
    """A record of a known type with `session_id`, which in a session file stands beside `sessionId` or not at all."""
    return any(str(r.get("type")) in _TYPES and "session_id" in r and "sessionId" not in r and "payload" not in r for r in head)


def read(content: Content, context: Context) -> list[Transcript]:
    """One transcript for each session of the output, and one for each sub-agent that answered in it.

    Raises:
        TranscriptError: the output holds no message.
    """
    found: list[Transcript] = []
    for records in _sessions(content, context):
        translated = [Record(r.number, r.raw, _as_session_record(r.value)) for r in records]
        own, agents = split(translated, context)
        found += _run(own or [r for r in translated if r.value.get("isSidechain") is not True], context)
        for agent, chain in agents.items():
            if any(r.value.get("type") == "assistant" for r in chain):  # often only the prompt is passed on
                found += _run(chain, context, agent)
    if not found:
        raise TranscriptError(f"{context.source.name}: Claude Code output without any message")
    return found


def _sessions(content: Content, context: Context) -> Iterator[list[Record]]:
    """The records of each session; a record that names none belongs to the one before."""
    sessions: dict[str, list[Record]] = {}
    current: list[Record] = []
    waiting: list[Record] = []
    for number, value in content.values(context.skips):
        for place, item in enumerate(value if isinstance(value, list) else (value,)):
            if not isinstance(item, dict):
                context.skips.add(place if isinstance(value, list) else number, "not a JSON object")
                continue
            record = Record(place if isinstance(value, list) else number, as_json(item).encode(), item)
            if isinstance(item.get("session_id"), str):
                current = sessions.setdefault(item["session_id"], [])
            elif not sessions:
                waiting.append(record)
                continue
            current.append(record)
    for place, records in enumerate(sessions.values()):
        yield [*waiting, *records] if place == 0 else records


def _as_session_record(value: dict[str, Any]) -> dict[str, Any]:
    """The record as it would stand in a session file."""
    parent = value.get("parent_tool_use_id")
    renamed = {"session_id": "sessionId", "tool_use_result": "toolUseResult"}
    record = {renamed.get(key, key): item for key, item in value.items()}
    if isinstance(parent, str):
        record |= {"isSidechain": True, "agentId": parent}
    return record


def _run(records: list[Record], context: Context, agent: str | None = None) -> list[Transcript]:
    stream = _Stream(records, context, agent)
    for record in records:
        stream.take(record)
    if not stream.session.log.events:
        return []
    return [context.assemble(stream.findings(), stream.session.log, [r.raw for r in records])]


class _Stream:
    """Reads the records of one session in order: messages by the session's reader, the rest here."""

    def __init__(self, records: list[Record], context: Context, agent: str | None) -> None:
        self.context = context
        self.session = Session(records, context.log(), context, agent)
        self.session.session_ids = list(dict.fromkeys(i for r in records if isinstance(i := r.value.get("sessionId"), str)))
        self.agent = agent
        self.record = 0
        self.model: str | None = None
        self.began = False
        self.results: list[dict[str, Any]] = []
        self.ending: Signal | None = None

    def take(self, record: Record) -> None:
        """Read one record; an unknown type or a shape nobody wrote down is named and skipped."""
        value = record.value
        kind = str(value.get("type"))
        self.record = record.number
        try:
            if kind in ("assistant", "user"):
                self.session.take(record)
            elif kind == "system":
                self._system(value)
            elif kind == "result":
                self._result(value)
            elif kind == "rate_limit_event":
                self._rate_limit(value.get("rate_limit_info"))
            elif kind not in _IGNORED:
                self.context.skips.add(record.number, f"unknown record type {kind[:60]!r}")
        except MISREAD:
            self.context.skips.add(record.number, f"{kind[:60]} record of an unknown shape")

    def _error(self, text: str, tool: str, **args: Any) -> int:
        return self.session.log.add(self.record, "error", text, ts=self.session.ts, tool=tool, args=args, is_error=True)

    def _system(self, value: dict[str, Any]) -> None:
        log = self.session.log
        match value.get("subtype"):
            case "init":
                self.began = True
                self.model = str(value["model"]) if value.get("model") else self.model
                self.session.take(Record(self.record, b"", {**value, "subtype": None}))  # for the folder and the permissions
            case "api_retry":
                status = whole(value.get("error_status"))
                text = f"API error {status or ''}".strip() + f": {value.get('error') or 'unknown'}"
                self._error(
                    text, "provider", status=status, attempt=value.get("attempt"), max_attempts=value.get("max_retries"), retried=True
                )
            case "compact_boundary":
                meta = value.get("compact_metadata") or {}
                args = {"trigger": str(meta.get("trigger", "")), "pre_tokens": meta.get("pre_tokens")}
                log.add(self.record, "compaction", "", ts=self.session.ts, tool="boundary", args=args)
            case "hook_response":
                self._hook(value)
            case str(subtype) if subtype not in _IGNORED_SUBTYPES:
                self.context.skips.add(self.record, f"unknown record type 'system/{subtype[:60]}'")

    def _hook(self, value: dict[str, Any]) -> None:
        """A hook that failed; of one that did not, only the messages it led to matter."""
        code = whole(value.get("exit_code"))
        if code or value.get("outcome") == "error":
            text = "\n".join(str(value[key]) for key in ("stderr", "stdout", "output") if value.get(key))
            args = {"command": str(value.get("hook_name") or ""), "exit_code": code, "event": str(value.get("hook_event") or "")}
            self.session.log.add(
                self.record, "system", text, ts=self.session.ts, tool="hook", args=args, exit_code=code, is_error=True
            )  # fmt: skip

    def _rate_limit(self, told: Any) -> None:
        if isinstance(told, dict) and told.get("status") == "rejected":
            self._error(f"rate limit reached: {told.get('rateLimitType') or 'unknown'}", "provider", status=429)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _result(self, value: dict[str, Any]) -> None:
        self.results.append(value)
        subtype = str(value.get("subtype") or "")
        text = value["result"] if isinstance(value.get("result"), str) else ""
        self._denied(value.get("permission_denials"))
        errors = [e if isinstance(e, str) else as_json(e) for e in value.get("errors") or ()]
        if errors:
            self._error("\n".join(errors), "harness", ending=subtype)
        if subtype.startswith("error"):
            stopped = str(value.get("terminal_reason") or "").startswith("aborted")
            limit = limit_reason(subtype)
            self.ending = Signal("limit" if limit else "exit_status", "interrupted" if stopped else subtype)
        elif value.get("is_error") is True and self._is_api_error(value, text):
            last = self.session.log.events[-1] if self.session.log.events else None
            told = last is not None and last.kind == "error" and last.tool == "provider"
            at = last.index if told and last else self._error(text, "provider", status=whole(value.get("api_error_status")))
            self.ending = Signal("exit_status", "api_error", at)
            return
        elif value.get("is_error") is True:  # near the context's limit a good answer is marked so too
            self.ending = Signal("exit_status", "unknown")
        elif subtype:
            self.ending = Signal("exit_status", subtype)
        self._last_words(text)

    @staticmethod
    def _is_api_error(value: dict[str, Any], text: str) -> bool:
        """`success` that is marked as an error: the provider's, if a status, the reason of the end or the text says so."""
        status, reason = value.get("api_error_status"), value.get("terminal_reason")
        return bool(status) or reason not in (None, "completed") or bool(_API_ERROR.match(text))

    def _denied(self, denials: Any) -> None:
        """Calls that nobody permitted: no failures of the tool."""
        ids = {str(d.get("tool_use_id")) for d in denials if isinstance(d, dict)} if isinstance(denials, list) else set()
        for event in self.session.log.events if ids else ():
            if event.kind in ("command_result", "tool_result") and event.origin in ids:
                self.session.log.mark(event.index, args={"harness": "refused"})

    def _last_words(self, text: str) -> None:
        """The result repeats the last message; alone it is all that there is of the run."""
        log = self.session.log
        last = next((e for e in reversed(log.events) if e.kind == "assistant"), None)
        if text.strip() and (last is None or last.text.strip() != log.redact(text).strip()):
            log.add(self.record, "assistant", text, ts=self.session.ts, tool="result")

    def findings(self) -> Findings:
        """What the records say about the run."""
        found = self.session.findings()
        found.model = found.model or self.model
        if self.agent is not None:
            return found
        told = [self.ending] if self.ending else []
        if not self.results and not any(s.name == "exit_status" for s in found.signals) and self.began:
            told = [Signal("exit_status", "interrupted")]  # killed, or still running
        if told:
            found.signals = [*(s for s in found.signals if s.name != "exit_status" or not self.results), *told]
        durations = [r["duration_ms"] for r in self.results if _is_number(r.get("duration_ms"))]
        costs = [float(r["total_cost_usd"]) for r in self.results if _is_number(r.get("total_cost_usd"))]
        usages = [r["usage"] for r in self.results if isinstance(r.get("usage"), dict)]
        found.duration_s = sum(durations) / 1000 if durations else found.duration_s
        found.cost_usd = max(costs) if costs else None  # of the whole session so far, as the counts of tokens are
        if usages:
            found.tokens_in = max(sum(whole(u.get(name)) or 0 for name in _INPUT_COUNTS) for u in usages)
            found.tokens_out = max(whole(u.get("output_tokens")) or 0 for u in usages)
        return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
