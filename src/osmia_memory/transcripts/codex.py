"""Codex rollout files: `rollout-<time>-<id>.jsonl`, lines of `{timestamp, type, payload}`.

A fork's or sub-agent's file begins with its parent's history, copied and re-stamped: it is left out, so that one run's
records are not witnesses twice. A command that outlives its call is joined with the `write_stdin` that brings its end.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Environment, Signal, Transcript
from osmia_memory.transcripts import codex_own, codex_tools, repo_key
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import EventLog, when
from osmia_memory.transcripts.machine import os_of
from osmia_memory.transcripts.outcome import claim_of
from osmia_memory.transcripts.records import MISREAD, Content, Record, decode

ENGINE = "codex"
_TYPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_IGNORED_TYPES = frozenset({"world_state", "inter_agent_communication_metadata", "state"})
# Copies of response items, progress, and what other threads do: they have files of their own.
_IGNORED_EVENTS = frozenset(
    "agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break agent_message_delta agent_reasoning_delta exec_command_begin "
    "exec_command_output_delta patch_apply_begin mcp_tool_call_begin mcp_tool_call_end mcp_startup_update mcp_startup_complete web_search_begin web_search_end "
    "context_compacted entered_review_mode thread_name_updated thread_rolled_back thread_goal_updated sub_agent_activity background_event plan_update plan_delta "
    "turn_diff item_started item_completed dynamic_tool_call_request dynamic_tool_call_response image_generation_end view_image_tool_call session_configured "
    "undo_started undo_completed shutdown_complete thread_settings_applied".split()
)
_IGNORED_ITEMS = frozenset(
    {"ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "compaction_trigger", "additional_tools"}
)
_INJECTED = re.compile(
    r"\s*(?:<(environment_context|user_instructions|turn_aborted|subagent_notification|permissions instructions|skills_instructions|collaboration_mode|INSTRUCTIONS|"
    r"user_action|apps_instructions|plugins_instructions|personality_spec|model_switch|multi_agent_mode|skill|recommended_plugins|realtime_conversation|hook_prompt|goal_context|codex_internal_context)\b|"
    r"# AGENTS\.md instructions\b(?=.*<INSTRUCTIONS>))",
    re.S,
)
_WRAPPED = re.compile(
    r"\s*# (?:Files mentioned by the user|Context from my IDE setup|In app browser)\b.*?^## My request(?: for Codex)?:[ \t]*\n?",
    re.S | re.M,
)
_SHELL_BY_USER = re.compile(r"\s*<user_shell_command>\s*<command>\s*(.*?)\s*</command>\s*<result>\s*(.*?)\s*</result>", re.S)


# Handlers: methods of the rollout, or of its tools where the name has no underscore.
_ITEMS: Mapping[str, str] = {
    "message": "_message",
    "reasoning": "_reasoning",
    "function_call": "function_call",
    "custom_tool_call": "custom_call",
    "local_shell_call": "local_shell",
    "web_search_call": "hosted_call",
    "tool_search_call": "hosted_call",
    "image_generation_call": "hosted_call",
    "function_call_output": "result",
    "custom_tool_call_output": "result",
    "local_shell_call_output": "result",
    "tool_search_output": "result",
    "agent_message": "_agent_message",
}
_EVENTS: Mapping[str, str] = {
    "user_message": "_user_event",
    "agent_message": "_agent_event",
    "token_count": "_token_count",
    "task_started": "_turn_began",
    "turn_started": "_turn_began",
    "task_complete": "_turn_ended",
    "turn_complete": "_turn_ended",
    "turn_aborted": "_aborted",
    "exec_command_end": "exec_end",
    "patch_apply_end": "patch_end",
    "exited_review_mode": "_reviewed",
    "error": "_error",
    "stream_error": "_error",
    "warning": "_warning",
    "guardian_warning": "_warning",
    "model_reroute": "_warning",
}


def sniff(head: list[dict[str, Any]]) -> bool:
    """Lines with a `payload` object and one of the rollout's types."""
    return any(isinstance(r.get("payload"), dict) and str(r.get("type")) in _TYPES | _IGNORED_TYPES for r in head)


def read(content: Content, context: Context) -> list[Transcript]:
    """The session of a rollout, without the history it copied.

    Raises:
        TranscriptError: the file holds no turn of its own.
    """
    records = [r for r in decode(content.lines, context.skips) if isinstance(r.value.get("payload"), dict) or _odd(r, context)]
    meta: dict[str, Any] = next((r.value["payload"] for r in records if r.value.get("type") == "session_meta"), {})
    start = codex_own.own_start(records, meta)
    own = codex_own.without_repeats(records[start:], context.skips)
    session = _Rollout(own, context, meta)
    session.tokens_before = codex_own.copied_tokens(records[:start])
    for record in own:
        session.take(record)
    session.close()
    if not session.log.events:
        what = "only its parent's history" if start else "no message"
        raise TranscriptError(f"{context.source.name}: a Codex rollout with {what}")
    raw = [memoryview(context.source.data)] if not start else [r.raw for r in (records[0], *own)]
    return [context.assemble(session.findings(), session.log, raw)]


def _odd(record: Record, context: Context) -> bool:
    """Name a line without payload; always False."""
    if record.value.get("record_type") != "state":
        context.skips.add(record.number, f"unknown record type {str(record.value.get('type'))[:60]!r}")
    return False


class _Rollout:
    """Reads the records of one session in order."""

    def __init__(self, records: list[Record], context: Context, meta: dict[str, Any]) -> None:
        self.log: EventLog = context.log()
        self.tools = codex_tools.Tools(self.log)
        self.context = context
        self.meta = meta
        self.record = 0
        self.ts: datetime | None = None
        self.cwd = self.tools.root = str(meta["cwd"]) if meta.get("cwd") else None
        self.models: Counter[str] = Counter()
        self.efforts: list[str] = []
        self.sandbox: str | None = None
        self.shell: str | None = None
        self.tokens: tuple[int, int] | None = None
        self.tokens_before = (0, 0)
        self.turn_began: datetime | None = None
        self.turns_s = 0.0
        self.signals: list[Signal] = []
        self.last_end: Signal | None = None
        items = [r.value["payload"] for r in records if r.value.get("type") == "response_item"]
        self.has_messages = {str(p.get("role")) for p in items if p.get("type") == "message"}
        self.by_agent = bool(isinstance(meta.get("source"), dict) or meta.get("thread_source") == "subagent")

    def take(self, record: Record) -> None:
        """Read one record; an unknown type or a shape nobody wrote down is named and skipped."""
        value, payload = record.value, record.value["payload"]
        kind = str(value.get("type"))
        self.record = self.tools.record = record.number
        self.ts = self.tools.ts = when(value.get("timestamp")) or self.ts
        try:
            if kind == "response_item":
                self._dispatch(payload, _ITEMS, _IGNORED_ITEMS)
            elif kind == "event_msg":
                self._dispatch(payload, _EVENTS, _IGNORED_EVENTS)
            elif kind == "turn_context":
                self._turn_context(payload)
            elif kind == "compacted":
                self.log.add(self.record, "compaction", str(payload.get("message") or ""), ts=self.ts)
            elif kind != "session_meta" and kind not in _IGNORED_TYPES:
                self.context.skips.add(record.number, f"unknown record type {kind[:60]!r}")
        except MISREAD:
            self.context.skips.add(record.number, f"{kind}/{str(payload.get('type'))[:60]} record of an unknown shape")

    def _dispatch(self, payload: dict[str, Any], handlers: Mapping[str, str], ignored: frozenset[str]) -> None:
        kind = str(payload.get("type"))
        name = handlers.get(kind)
        if name is None and handlers is _ITEMS:
            name = "function_call" if kind.endswith("_call") else "result" if kind.endswith("_output") else None
        if name is not None:
            getattr(self if name.startswith("_") else self.tools, name)(payload)
        elif kind not in ignored and not kind.startswith(("collab_", "realtime_", "hook_", "guardian_", "terminal_")):
            self.context.skips.add(self.record, f"unknown record type {kind[:60]!r}")

    # --- messages -----------------------------------------------------------------------------------------------------

    def _message(self, payload: dict[str, Any]) -> None:
        role = payload.get("role")
        texts = _texts(payload.get("content"))
        if role == "assistant":
            text = "\n".join(texts)
            if text.strip():
                args = {"phase": str(payload["phase"])} if payload.get("phase") else None
                self.log.add(self.record, "assistant", text, ts=self.ts, args=args)
        elif role == "user":
            for text in texts:
                self._said(text)
        else:
            for text in texts:
                self.log.add(self.record, "system", text, ts=self.ts, tool=str(role))

    def _said(self, text: str) -> None:
        """A text in the user's role: typed, or put there by the harness."""
        if not text.strip() or re.fullmatch(r"\s*</?image\b[^>]*>\s*", text):
            return
        ran = _SHELL_BY_USER.match(text)
        if ran:
            self.tools.typed_command(ran[1], ran[2])
            return
        injected = _INJECTED.match(text)
        if injected:
            if injected[1] == "environment_context":
                self._environment(text)
            self.log.add(self.record, "system", text, ts=self.ts, tool=injected[1] or "AGENTS.md")
            return
        wrapped = _WRAPPED.match(text)
        if wrapped:
            self.log.add(self.record, "system", wrapped[0].strip(), ts=self.ts, tool="context")
            text = text[wrapped.end() :]
        self.log.add(self.record, "user", text, ts=self.ts, args={"by": "agent"} if self.by_agent else None)

    def _environment(self, text: str) -> None:
        fields = dict(re.findall(r"<(cwd|shell|sandbox_mode|network_access)>\s*([^<]*?)\s*</\1>", text))
        self.cwd = self.tools.root = self.cwd or fields.get("cwd")
        self.shell = fields.get("shell") or self.shell
        if fields.get("sandbox_mode"):
            network = fields.get("network_access")
            self.sandbox = fields["sandbox_mode"] + (f", network {network}" if network else "")

    def _reasoning(self, payload: dict[str, Any]) -> None:
        text = "\n".join(_texts(payload.get("summary")) or _texts(payload.get("content")))
        if text.strip():
            self.log.add(self.record, "reasoning", text, ts=self.ts)

    def _agent_message(self, payload: dict[str, Any]) -> None:
        """A message between agents."""
        text = "\n".join(_texts(payload.get("content"))) or str(payload.get("message") or "")
        self.log.add(self.record, "system", text, ts=self.ts, tool="agent_message")

    def _user_event(self, payload: dict[str, Any]) -> None:
        if "user" not in self.has_messages:  # else it is a copy
            self._said(str(payload.get("message") or ""))

    def _agent_event(self, payload: dict[str, Any]) -> None:
        if "assistant" not in self.has_messages:
            self.log.add(self.record, "assistant", str(payload.get("message") or ""), ts=self.ts)

    def close(self) -> None:
        """Sort in what was only known at the end."""
        moved = self.tools.close()
        if moved:
            self.signals = [_moved(signal, moved) for signal in self.signals]
            self.last_end = self.last_end and _moved(self.last_end, moved)

    # --- the harness --------------------------------------------------------------------------------------------------

    def _turn_context(self, payload: dict[str, Any]) -> None:
        if payload.get("model"):
            self.models[str(payload["model"])] += 1
        effort = payload.get("effort")
        if effort and effort not in self.efforts:
            self.efforts.append(str(effort))
        policy = payload.get("sandbox_policy")
        if isinstance(policy, dict) and (policy.get("type") or policy.get("mode")):
            network = policy.get("network_access")
            limited = network is False or network == "restricted"
            self.sandbox = str(policy.get("type") or policy.get("mode")) + (", no network" if limited else "")
        if self.cwd is None and isinstance(payload.get("cwd"), str):
            self.cwd = self.tools.root = payload["cwd"]

    def _token_count(self, payload: dict[str, Any]) -> None:
        """The last cumulative total; the counts between repeat each other."""
        self.tokens = codex_own.total_tokens(payload) or self.tokens

    def _turn_ended(self, payload: dict[str, Any]) -> None:
        self._add_turn(payload)
        self.last_end = Signal("exit_status", "task_complete")

    def _turn_began(self, _: dict[str, Any]) -> None:
        self.turn_began = self.ts

    def _add_turn(self, payload: dict[str, Any]) -> None:
        told = payload.get("duration_ms")
        if isinstance(told, int | float):
            self.turns_s += told / 1000
        elif self.turn_began and self.ts:
            self.turns_s += (self.ts - self.turn_began).total_seconds()
        self.turn_began = None

    def _aborted(self, payload: dict[str, Any]) -> None:
        self._add_turn(payload)
        reason = str(payload.get("reason") or "interrupted")
        at = self.log.add(
            self.record, "error", f"turn aborted: {reason}", ts=self.ts, tool="harness", args={"harness": "interrupted", "reason": reason}
        )
        self.last_end = Signal("exit_status", "turn_aborted", at) if reason == "interrupted" else Signal("limit", reason, at)

    def _error(self, payload: dict[str, Any]) -> None:
        retried = payload.get("type") == "stream_error"
        text = str(payload.get("message") or "")
        at = self.log.add(self.record, "error", text, ts=self.ts, tool="provider", args={"retried": retried}, is_error=True)
        if not retried:
            self.last_end = Signal("exit_status", "error", at)

    def _warning(self, payload: dict[str, Any]) -> None:
        self.log.add(self.record, "system", str(payload.get("message") or payload.get("reason") or ""), ts=self.ts, tool="warning")

    def _reviewed(self, payload: dict[str, Any]) -> None:
        review = payload.get("review_output")
        if not isinstance(review, dict):
            return
        lines = [str(review.get("overall_correctness") or ""), str(review.get("overall_explanation") or "")]
        for finding in review.get("findings") or ():
            place = finding.get("code_location") or {}
            rows = place.get("line_range") or {}
            where = f"{place.get('absolute_file_path', '')}:{rows.get('start', '')}"
            lines.append(f"- {finding.get('title', '')} ({where})\n  {finding.get('body', '')}")
        at = self.log.add(self.record, "assistant", "\n".join(filter(None, lines)), ts=self.ts, tool="review")
        if review.get("overall_correctness"):
            self.signals.append(Signal("review", str(review["overall_correctness"]), at))

    # --- the whole ----------------------------------------------------------------------------------------------------

    def findings(self) -> Findings:
        """What the records say about the run."""
        git = self.meta["git"] if isinstance(self.meta.get("git"), dict) else {}
        stem = self.context.source.name.rsplit("/", 1)[-1].removesuffix(".jsonl")
        last = next((e for e in reversed(self.log.events) if e.kind in ("assistant", "command_result")), None)
        claim = claim_of(last.text) if last is not None and last.kind == "assistant" else None
        ending = [self.last_end] if self.last_end else []
        pushed = self.tools.repos()
        url = git.get("repository_url")
        role = self.meta.get("agent_role")
        return Findings(
            engine=ENGINE,
            session_id=str(self.meta.get("id") or self.meta.get("session_id") or stem),
            parent_session_id=codex_own.parent_of(self.meta),
            model=self.models.most_common(1)[0][0] if self.models else None,
            repo=(repo_key.from_url(url) if isinstance(url, str) else None) or next(pushed, None),
            cwd=self.cwd,
            branch=str(git["branch"]) if git.get("branch") else None,
            base_commit=str(git["commit_hash"]) if git.get("commit_hash") else None,
            environment=Environment(os=os_of(self.cwd), shell=self.shell, sandbox=self.sandbox),
            labels=(*(f"effort:{e}" for e in self.efforts), *([f"agent:{role}"] if role else [])),
            duration_s=self.turns_s or None,
            tokens_in=_grown(self.tokens[0], self.tokens_before[0]) if self.tokens else None,
            tokens_out=_grown(self.tokens[1], self.tokens_before[1]) if self.tokens else None,
            signals=[*self.signals, *ending, *([Signal("claim", claim, last.index if last else None)] if claim else [])],
        )


def _grown(total: int, before: int) -> int:
    return total - before if total >= before else total


def _moved(signal: Signal, moved: dict[int, int]) -> Signal:
    return signal if signal.event_index is None else replace(signal, event_index=moved[signal.event_index])


def _texts(content: Any) -> list[str]:
    """Texts of a message's parts; images are named, not shown."""
    if isinstance(content, str):
        return [content]
    found: list[str] = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            found.append(part["text"])
        elif isinstance(part, dict) and "image" in str(part.get("type")):
            found.append("[image]")
    return found
