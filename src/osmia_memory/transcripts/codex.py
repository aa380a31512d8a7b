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
from osmia_memory.models import Environment, EventKind, Signal, Transcript
from osmia_memory.transcripts import codex_own, codex_script, patches, repo_key
from osmia_memory.transcripts.codex_output import Output, read_output
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import EventLog, when, whole, within
from osmia_memory.transcripts.machine import os_of
from osmia_memory.transcripts.outcome import claim_of
from osmia_memory.transcripts.records import Content, Record, as_json, decode, parse

ENGINE = "codex"
_MISREAD = (TypeError, KeyError, AttributeError, ValueError, IndexError)
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
_KEPT_ARGS = ("workdir", "yield_time_ms", "timeout_ms", "sandbox_permissions", "with_escalated_permissions", "justification", "tty")


_ITEMS: Mapping[str, str] = {
    "message": "_message",
    "reasoning": "_reasoning",
    "function_call": "_function_call",
    "custom_tool_call": "_custom_call",
    "local_shell_call": "_local_shell",
    "web_search_call": "_web_search",
    "tool_search_call": "_web_search",
    "image_generation_call": "_web_search",
    "function_call_output": "_result",
    "custom_tool_call_output": "_result",
    "local_shell_call_output": "_result",
    "tool_search_output": "_result",
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
    "exec_command_end": "_exec_end",
    "patch_apply_end": "_patch_end",
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
        self.context = context
        self.meta = meta
        self.record = 0
        self.ts: datetime | None = None
        self.cwd: str | None = str(meta["cwd"]) if meta.get("cwd") else None
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
        self.remotes: list[str] = []
        self.calls: dict[str, list[int]] = {}
        self.answered: set[str] = set()
        self.processes: dict[str, int] = {}  # running process or script -> index of its command
        self.asked: dict[str, str] = {}  # call id of a poll -> the process it asks for
        self.patched: set[str] = set()
        self.ended: dict[str, tuple[int, datetime | None, dict[str, Any]]] = {}  # call id -> its exec_command_end
        items = [r.value["payload"] for r in records if r.value.get("type") == "response_item"]
        self.has_messages = {str(p.get("role")) for p in items if p.get("type") == "message"}
        self.by_agent = bool(isinstance(meta.get("source"), dict) or meta.get("thread_source") == "subagent")

    def take(self, record: Record) -> None:
        """Read one record; an unknown type or a shape nobody wrote down is named and skipped."""
        value, payload = record.value, record.value["payload"]
        kind = str(value.get("type"))
        self.record = record.number
        self.ts = when(value.get("timestamp")) or self.ts
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
        except _MISREAD:
            self.context.skips.add(record.number, f"{kind}/{str(payload.get('type'))[:60]} record of an unknown shape")

    def _dispatch(self, payload: dict[str, Any], handlers: Mapping[str, str], ignored: frozenset[str]) -> None:
        kind = str(payload.get("type"))
        name = handlers.get(kind)
        if name is None and handlers is _ITEMS:
            name = "_function_call" if kind.endswith("_call") else "_result" if kind.endswith("_output") else None
        if name is not None:
            getattr(self, name)(payload)
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
            call = self.log.add(self.record, "command", ran[1], ts=self.ts, tool="user-shell", args={"by": "user"})
            output = read_output(
                re.sub(
                    r"^Duration: .*\n",
                    "",
                    re.sub(r"^(Exit code: -?\d+)\nDuration: ([\d.]+) seconds\n", r"\1\nWall time: \2 seconds\n", ran[2]),
                )
            )
            self._answer(call, output, "user-shell", None)
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
        self.cwd = self.cwd or fields.get("cwd")
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

    # --- calls --------------------------------------------------------------------------------------------------------

    def _function_call(self, payload: dict[str, Any]) -> None:
        name = str(payload.get("name") or payload.get("type"))
        given = payload.get("arguments", payload.get("action"))
        parsed = parse(given) if isinstance(given, str) else given
        arguments: dict[str, Any] = parsed if isinstance(parsed, dict) else {"input": given}
        call_id = str(payload.get("call_id"))
        if call_id in self.calls and payload.get("call_id"):
            return
        line = _command_line(name, arguments)
        if name == "apply_patch":
            self._patch(call_id, str(arguments.get("input") or arguments.get("patch") or ""))
        elif line is not None:
            args = {key: arguments[key] for key in _KEPT_ARGS if key in arguments}
            self._called(call_id, "command", line, name, args)
        elif name == "view_image":
            self._called(call_id, "file_read", "", name, None, self._paths(arguments.get("path")))
        else:
            tool = f"{payload['namespace']}.{name}" if payload.get("namespace") else name
            process = arguments.get("session_id", arguments.get("cell_id")) if name in ("write_stdin", "wait") else None
            if process is not None:
                self.asked[call_id] = str(process)
            text = given if isinstance(given, str) else as_json(arguments)
            self._called(call_id, "tool_call", text, tool)

    def _custom_call(self, payload: dict[str, Any]) -> None:
        name, source = str(payload.get("name")), str(payload.get("input") or "")
        call_id = str(payload.get("call_id"))
        if call_id in self.calls:
            return
        if name == "apply_patch":
            self._patch(call_id, source)
        elif name != "exec" or not self._script(call_id, source):
            self._called(call_id, "tool_call", source, name)

    def _script(self, call_id: str, source: str) -> bool:
        """The commands and patches of a script; False if it has none that can be told."""
        found = False
        for call in codex_script.calls(source):
            if call.tool == "apply_patch" and call.text:
                found |= self._patch(call_id, call.text)
            elif call.tool == "write_stdin" and call.session:
                self.asked[call_id] = call.session
            elif call.text:
                found = True
                self._called(call_id, "command", call.text, "exec", {"workdir": call.workdir} if call.workdir else None)
        return found

    def _local_shell(self, payload: dict[str, Any]) -> None:
        action = payload.get("action") or {}
        command = action.get("command")
        line = codex_script.shell_line([str(w) for w in command]) if isinstance(command, list) else str(command or "")
        args = {"workdir": action["working_directory"]} if action.get("working_directory") else None
        self._called(str(payload.get("call_id") or payload.get("id")), "command", line, "local_shell", args)

    def _web_search(self, payload: dict[str, Any]) -> None:
        text = as_json(payload.get("action") or payload.get("arguments") or {})
        self._called(str(payload.get("call_id") or payload.get("id")), "tool_call", text, str(payload["type"]).removesuffix("_call"))

    def _patch(self, call_id: str, text: str) -> bool:
        changes = list(patches.from_apply_patch(text))
        self.patched.add(call_id)
        for change in changes:
            self._edited(call_id, change)
        if not changes:
            self._called(call_id, "tool_call", text, "apply_patch")
        return True

    def _edited(self, call_id: str, change: patches.FileChange, failed: bool = False) -> None:
        args = {"created": True} if change.created else {"deleted": True} if change.deleted else None
        self._called(call_id, "file_edit", change.text, "apply_patch", args, self._paths(*change.paths), failed)

    def _called(
        self, call_id: str, kind: EventKind, text: str, tool: str, args: dict[str, Any] | None = None, paths: tuple[str, ...] = (),
        failed: bool = False,
    ) -> None:  # fmt: skip
        at = self.log.add(
            self.record,
            kind,
            text,
            ts=self.ts,
            tool=tool,
            args=args,
            paths=paths,
            is_error=failed,
            origin=call_id if call_id != "None" else None,
        )
        self.calls.setdefault(call_id, []).append(at)

    def _paths(self, *names: Any) -> tuple[str, ...]:
        return tuple(within(name, self.cwd) for name in names if isinstance(name, str) and name)

    # --- results ------------------------------------------------------------------------------------------------------

    def _result(self, payload: dict[str, Any]) -> None:
        call_id = str(payload.get("call_id"))
        if call_id in self.answered:
            return
        self.answered.add(call_id)
        output = read_output(payload.get("output", payload.get("tools")))
        calls = self.calls.get(call_id, [])
        commands = [i for i in calls if self.log.events[i].kind == "command"]
        asked = self.asked.get(call_id)
        started = self.processes.get(asked) if asked is not None else None
        if started is not None and asked is not None:
            self._process_output(asked, started, output, call_id)
        elif commands:
            self._command_output(commands, output, call_id)
        else:
            call = calls[0] if calls else None
            self._mark_failed_edits(calls, output)
            tool = self.log.events[call].tool if call is not None else None
            self.log.add(
                self.record, "tool_result", output.text, ts=self.ts, tool=tool, args=output.args, answers=call, exit_code=output.exit_code,
                is_error=output.is_error, duration_s=output.duration_s, origin=call_id,
            )  # fmt: skip

    def _command_output(self, commands: list[int], output: Output, call_id: str) -> None:
        """One result for the command, or one for each where a script printed as many parts as it ran commands."""
        if len(commands) > 1 and len(output.parts) == len(commands):
            for call, part in zip(commands, output.parts, strict=True):
                self._answer(call, read_output(part), "exec", call_id)
            return
        call = commands[-1]
        running = output.session or (f"cell:{output.cell}" if output.cell else None)
        if running:
            self.processes[running] = call
            self.processes[running.removeprefix("cell:")] = call
        self._answer(call, output, self.log.events[call].tool, call_id)

    def _process_output(self, process: str, started: int, output: Output, call_id: str) -> None:
        """What a poll brought: a further result of the command that was left running."""
        if output.session is None and output.cell is None and (output.exit_code is not None or not output.is_error):
            self.processes.pop(process, None)
        if output.is_error and output.exit_code is None and "harness" not in output.args:  # the poll failed, not the command
            self.log.add(self.record, "tool_result", output.text, ts=self.ts, answers=self._first(call_id), is_error=True, origin=call_id)
        else:
            self._answer(started, output, self.log.events[started].tool, call_id)

    def _first(self, call_id: str) -> int | None:
        return next(iter(self.calls.get(call_id, ())), None)

    def _answer(self, call: int, output: Output, tool: str | None, call_id: str | None) -> None:
        line = self.log.events[call].text
        if "git" in line and ("push" in line or "remote" in line):
            self.remotes.append(output.text)
        self.log.add(
            self.record, "command_result", output.text, ts=self.ts, tool=tool, args=output.args, answers=call, exit_code=output.exit_code,
            is_error=output.is_error, duration_s=output.duration_s, origin=call_id,
        )  # fmt: skip

    def _mark_failed_edits(self, calls: list[int], output: Output) -> None:
        if output.is_error:
            for call in calls:
                if self.log.events[call].kind == "file_edit":
                    self.log.mark(call, is_error=True)

    def _exec_end(self, payload: dict[str, Any]) -> None:
        self.ended[str(payload.get("call_id"))] = (self.record, self.ts, payload)

    def _patch_end(self, payload: dict[str, Any]) -> None:
        """Edits that no call of the record shows, such as a patch that went through the shell."""
        call_id = str(payload.get("call_id"))
        if call_id in self.patched:
            return
        self.patched.add(call_id)
        for change in patches.from_changes(payload.get("changes")):
            if not self._known_edit(self._paths(*change.paths)):
                self._edited(call_id, change, failed=payload.get("success") is False)

    def _known_edit(self, paths: tuple[str, ...]) -> bool:
        """A script's patch has another call id than the event that reports it."""
        recent = self.log.events[-6:]
        return any(e.kind == "file_edit" and e.paths == tuple(map(self.log.redact, paths)) for e in recent)

    def close(self) -> None:
        """Exit codes of processes that ended unobserved, from the events that older versions keep."""
        coded = {e.answers for e in self.log.events if e.kind == "command_result" and e.exit_code is not None}
        before = len(self.log.events)
        for call_id, (number, ts, payload) in self.ended.items():
            code = whole(payload.get("exit_code"))
            for call in self.calls.get(call_id, ())[-1:]:
                if self.log.events[call].kind == "command" and call not in coded and code is not None:
                    self.record, self.ts = number, ts
                    text = payload.get("aggregated_output")
                    output = Output(text if isinstance(text, str) else "", code, is_error=code != 0)
                    self._answer(call, output, "exec_command_end", call_id)
        if len(self.log.events) > before:
            moved = self.log.sort()
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
            self.cwd = payload["cwd"]

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
        pushed = (key for text in self.remotes for key in repo_key.from_git_output(text))
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


def _command_line(name: str, arguments: dict[str, Any]) -> str | None:
    """The command line of a shell tool's call, or None if the tool is none."""
    command = arguments.get("cmd", arguments.get("command"))
    if name not in ("exec_command", "shell", "shell_command", "local_shell", "container.exec", "unified_exec", "exec") or command is None:
        return None
    return codex_script.shell_line([str(w) for w in command]) if isinstance(command, list) else str(command)
