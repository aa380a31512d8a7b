"""Claude Code session files: `<session>.jsonl` and its sub-agents' `agent-<id>.jsonl`, old and new layout.

One record a line in a tree of `uuid`/`parentUuid`, read in file order. What the harness wrote into a person's messages
(reminders, command markup, summaries) is told apart from what the person typed.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Environment, Signal, Transcript
from osmia_memory.transcripts import claude_tools, repo_key
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import EventLog, when, whole
from osmia_memory.transcripts.machine import os_of
from osmia_memory.transcripts.outcome import claim_of
from osmia_memory.transcripts.records import MISREAD, Content, Record, decode

ENGINE = "claude-code"
_KNOWN = frozenset({"user", "assistant", "system", "attachment", "progress", "queue-operation", "pr-link", "permission-mode"})
# Housekeeping that holds nothing of the run. `progress` repeats sub-agents' messages, which have files of their own.
_IGNORED = frozenset(
    "file-history-snapshot file-history-delta summary mode last-prompt ai-title custom-title agent-name agent-color agent-setting "
    "bridge-session tag worktree-state content-replacement speculation-accept marble-origami-commit marble-origami-snapshot started result "
    "relocated-session pr-unlink".split()
)
_IGNORED_PREFIXES = tuple(f'{{"type":"{name}"'.encode() for name in sorted(_IGNORED))
_PROGRESS = b'"type":"progress","data":{'
_TAGS = re.compile(r"<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics|user-prompt-submit-hook)>.*?(?:</\1>|\Z)\s*", re.S)
_MARKUP = re.compile(
    r"\s*<(local-command-[a-z]+|command-[a-z]+|task-notification|teammate-message|bash-[a-z]+|post-tool-use-hook|tick|channel)\b"
)
_INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_SUMMARY_START = "This session is being continued from a previous conversation"
_INTERRUPTED = "[Request interrupted by user"


def sniff(head: list[dict[str, Any]]) -> bool:
    """A record of a session has a known type and `sessionId`; the oldest ones without it have other ids of the format."""
    return any(
        str(r.get("type")) in _KNOWN | _IGNORED
        and (("sessionId" in r and "projectHash" not in r) or "leafUuid" in r or r.get("type") == "file-history-snapshot")
        for r in head
    )


def read(content: Content, context: Context) -> list[Transcript]:
    """The session, and one transcript for each sub-agent whose records stand in the same file.

    Raises:
        TranscriptError: the file holds no message of a run.
    """
    records = [r for r in decode(content.lines, context.skips, _IGNORED_PREFIXES) if not _is_noise(r.raw)]
    main, chains = split(records, context)
    transcripts = []
    if main:
        whole = [memoryview(context.source.data)] if not chains else [r.raw for r in main]
        transcripts.append(_run(main, context, whole))
    transcripts += [_run(chain_records, context, [r.raw for r in chain_records], agent) for agent, chain_records in chains.items()]
    found = [t for t in transcripts if t is not None]
    if not found:
        raise TranscriptError(f"{context.source.name}: a Claude Code session file without any message")
    return found


def _is_noise(raw: bytes) -> bool:
    """A `progress` record other than a hook's, seen without parsing."""
    return raw.find(_PROGRESS, 0, 900) >= 0 and b'"hook_progress"' not in raw


def split(records: list[Record], context: Context) -> tuple[list[Record], dict[str, list[Record]]]:
    """(the session's own records, records of each sub-agent by its id), repeated records dropped."""
    main: list[Record] = []
    chains: dict[str, list[Record]] = {}
    roots: dict[str, str] = {}
    seen: set[str] = set()
    for record in records:
        value = record.value
        uuid = value.get("uuid")
        if isinstance(uuid, str):
            if uuid in seen:
                context.skips.add(record.number, "record repeats an earlier one")
                continue
            seen.add(uuid)
        if value.get("isSidechain") is True:
            root = value.get("agentId") or roots.get(str(value.get("parentUuid"))) or uuid
            roots[str(uuid)] = str(root)
            chains.setdefault(str(root), []).append(record)
        else:
            main.append(record)
    if not any(r.value.get("type") in ("user", "assistant") for r in main):
        main = []
    return main, chains


def _run(records: list[Record], context: Context, raw: list[Any], agent: str | None = None) -> Transcript | None:
    session = Session(records, context.log(), context, agent)
    for record in records:
        session.take(record)
    if not session.log.events:
        return None
    return context.assemble(session.findings(), session.log, raw)


class Session:
    """Reads the records of one session or sub-agent in order."""

    def __init__(self, records: list[Record], log: EventLog, context: Context, agent: str | None) -> None:
        self.log = log
        self.context = context
        self.agent = agent
        self.record = 0
        self.ts: datetime | None = None
        self.cwd: str | None = None
        self.session_ids: list[str] = []
        self.branches: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.usage: dict[str, tuple[int, int]] = {}
        self.repos: Counter[str] = Counter()
        self.turns_s = 0.0
        self.efforts: list[str] = []
        self.signals: list[Signal] = []
        self.hooks_seen: set[tuple[str, str]] = set()
        self.tools = claude_tools.Tools(log, lambda: _call_ids(records))
        self._records = records
        self._handlers: dict[str, Callable[[dict[str, Any]], None]] = {
            "user": self._user,
            "assistant": self._assistant,
            "system": self._system,
            "attachment": self._attachment,
            "progress": self._progress,
            "queue-operation": self._queued,
            "pr-link": self._pr_link,
            "permission-mode": lambda _: None,  # read with the envelope
        }

    def take(self, record: Record) -> None:
        """Read one record; an unknown type or a shape nobody wrote down is named and skipped."""
        value = record.value
        kind = str(value.get("type"))
        handler = self._handlers.get(kind)
        if handler is None:
            if kind not in _IGNORED:
                self.context.skips.add(record.number, f"unknown record type {kind[:60]!r}")
            return
        self.record = record.number
        try:
            self._envelope(value)
            handler(value)
        except MISREAD:
            self.context.skips.add(record.number, f"{kind} record of an unknown shape")

    def _envelope(self, value: dict[str, Any]) -> None:
        self.ts = when(value.get("timestamp")) or self.ts
        cwd = value.get("cwd")
        if cwd and self.cwd is None and isinstance(cwd, str):
            self.cwd = self.tools.root = cwd
        session_id = value.get("sessionId")
        if isinstance(session_id, str) and session_id not in self.session_ids:
            self.session_ids.append(session_id)
        if value.get("permissionMode"):
            self.tools.mode = str(value["permissionMode"])
        branch = value.get("gitBranch")
        if branch and branch != "HEAD":
            self.branches[branch] += 1

    @cached_property
    def typed(self) -> set[str]:
        """Texts that stand in the file as messages of their own."""
        return {text.strip() for text in chain.from_iterable(_typed_texts(r.value) for r in self._records)}

    # --- people -------------------------------------------------------------------------------------------------------

    def _user(self, value: dict[str, Any]) -> None:
        content = value["message"]["content"]
        origin = value.get("uuid")
        twin = value.get("toolUseResult")
        if isinstance(content, str):
            self._said(content, value, origin)
            return
        for block in content:
            kind = block.get("type")
            if kind == "tool_result":
                self.tools.result(self.record, self.ts, block, twin)
            elif kind == "text":
                self._said(block.get("text") or "", value, origin)
            elif kind in ("image", "document"):
                self.log.add(self.record, "user", f"[{kind}]", ts=self.ts, origin=origin)

    def _said(self, text: str, value: dict[str, Any], origin: str | None) -> None:
        """A text in a person's message: typed, or put there by the harness."""
        if value.get("isCompactSummary") or text.startswith(_SUMMARY_START):
            self.log.add(self.record, "compaction", text, ts=self.ts, origin=origin)
            return
        if _INTERRUPTED in text[:60]:
            self.log.add(self.record, "error", text, ts=self.ts, tool="harness", args={"harness": "interrupted"}, origin=origin)
            return
        for match in _TAGS.finditer(text) if "<" in text else ():
            self.log.add(self.record, "system", match[0].strip(), ts=self.ts, tool=match[1], origin=origin)
        text = _TAGS.sub("", text) if "<" in text else text
        if not text.strip():
            return
        markup = _MARKUP.match(text)
        if markup:
            self._markup(markup[1], text, origin)
        elif value.get("isMeta") or value.get("promptSource") == "system" or _is_caveat(text):
            self.log.add(self.record, "system", text, ts=self.ts, origin=origin)
        else:
            by = {"by": "agent"} if self.agent else None
            self.log.add(self.record, "user", text, ts=self.ts, args=by, origin=origin)

    def _markup(self, tag: str, text: str, origin: str | None) -> None:
        """Command markup: what a person typed inside it is theirs, the rest is the harness's."""
        if tag == "bash-input":
            self.tools.typed_command(self.record, self.ts, _inside("bash-input", text), origin)
        elif tag in ("bash-stdout", "bash-stderr"):
            output = "\n".join(filter(None, (_inside("bash-stdout", text), _inside("bash-stderr", text))))
            self.tools.typed_result(self.record, self.ts, output, origin)
        elif tag.startswith("command-"):
            self.log.add(self.record, "system", _inside("command-name", text) or text, ts=self.ts, tool="slash-command", origin=origin)
            typed = _inside("command-args", text)
            if typed:
                self.log.add(self.record, "user", typed, ts=self.ts, origin=origin)
        elif tag == "task-notification":
            self.tools.notification(self.record, self.ts, text, origin)
        else:
            self.log.add(self.record, "system", text, ts=self.ts, tool=tag, origin=origin)

    def _queued(self, value: dict[str, Any]) -> None:
        """Text typed while the agent worked, unless it stands in the file as a message of its own."""
        text = value.get("content")
        if value.get("operation") != "enqueue" or not isinstance(text, str) or text.strip() in self.typed:
            return
        self.typed.add(text.strip())
        self._said(text, {}, None)

    # --- the agent ----------------------------------------------------------------------------------------------------

    def _assistant(self, value: dict[str, Any]) -> None:
        message = value["message"]
        origin = value.get("uuid")
        model = message.get("model")
        if model == "<synthetic>" or value.get("isApiErrorMessage"):
            text = claude_tools.flat(message.get("content"))
            is_error = bool(value.get("isApiErrorMessage"))
            if is_error or text.strip() != "No response requested.":
                self.log.add(self.record, "error", text, ts=self.ts, tool="provider", is_error=True, origin=origin)
            return
        self._count(message, model)
        if value.get("effort") and value["effort"] not in self.efforts:
            self.efforts.append(str(value["effort"]))
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            kind = block.get("type")
            if kind == "text":
                if block["text"].strip():
                    self.log.add(self.record, "assistant", block["text"], ts=self.ts, origin=origin)
            elif kind == "thinking":
                if block.get("thinking"):
                    self.log.add(self.record, "reasoning", block["thinking"], ts=self.ts, origin=origin)
            elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
                self.tools.call(self.record, self.ts, block)
            elif isinstance(kind, str) and kind.endswith("tool_result"):
                self.tools.result(self.record, self.ts, block, None)

    def _count(self, message: dict[str, Any], model: Any) -> None:
        """Tokens by the largest count of a message id: its lines repeat one usage that grows as the reply is streamed."""
        key = str(message.get("id"))
        usage = message.get("usage")
        if isinstance(model, str) and key not in self.usage:
            self.models[model] += 1
        if isinstance(usage, dict):
            told = [whole(usage.get(name)) or 0 for name in _INPUT_COUNTS]
            tokens_out = whole(usage.get("output_tokens")) or 0
            before = self.usage.get(key, (0, 0))
            self.usage[key] = (max(before[0], sum(told)), max(before[1], tokens_out))

    # --- the harness --------------------------------------------------------------------------------------------------

    def _system(self, value: dict[str, Any]) -> None:
        match value.get("subtype"):
            case "stop_hook_summary":
                self._stop_hooks(value)
            case "compact_boundary" | "microcompact_boundary":
                meta = value.get("compactMetadata") or {}
                args = {"trigger": str(meta.get("trigger", "")), "pre_tokens": meta.get("preTokens")}
                self.log.add(self.record, "compaction", "", ts=self.ts, tool="boundary", args=args)
            case "away_summary":  # a model's recap of what was read before
                self.log.add(self.record, "compaction", str(value.get("content", "")), ts=self.ts, tool="away_summary")
            case "api_error":
                self._api_error(value)
            case "turn_duration":
                self.turns_s += value["durationMs"] / 1000
            case "local_command":
                self._said(str(value.get("content", "")), {"isMeta": True}, value.get("uuid"))
            case _:
                text = value.get("content")
                if isinstance(text, str) and text:
                    self.log.add(self.record, "system", text, ts=self.ts, tool=str(value.get("subtype")))

    def _stop_hooks(self, value: dict[str, Any]) -> None:
        errors = [str(e.get("message") or e) if isinstance(e, dict) else str(e) for e in value.get("hookErrors") or ()]
        if not errors and not value.get("preventedContinuation"):
            return
        commands = [str(info.get("command", "")) for info in value.get("hookInfos") or () if isinstance(info, dict)]
        text = "\n".join(errors) or str(value.get("stopReason") or "")
        args = {"command": "; ".join(filter(None, commands)), "exit_code": None, "event": "Stop"}
        self.log.add(self.record, "system", text, ts=self.ts, tool="hook", args=args, is_error=True, origin=value.get("uuid"))

    def _api_error(self, value: dict[str, Any]) -> None:
        error = value.get("error")
        status = error.get("status") if isinstance(error, dict) else None
        nested = error.get("error") if isinstance(error, dict) else None
        told = nested.get("message") if isinstance(nested, dict) else None
        text = f"API error {status or ''}".strip() + (f": {told}" if told else "")
        args = {"status": status, "attempt": value.get("retryAttempt"), "max_attempts": value.get("maxRetries")}
        self.log.add(self.record, "error", text, ts=self.ts, tool="provider", args=args, is_error=True, origin=value.get("uuid"))

    def _progress(self, value: dict[str, Any]) -> None:
        data = value["data"]
        if data.get("type") == "hook_progress":
            self._hook_ran(str(data.get("hookEvent", "")), str(data.get("command", "")))

    def _hook_ran(self, event: str, command: str) -> None:
        """Each hook once a session: it runs at every turn."""
        if command and (event, command) not in self.hooks_seen:
            self.hooks_seen.add((event, command))
            args = {"command": command, "exit_code": None, "event": event}
            self.log.add(self.record, "system", "", ts=self.ts, tool="hook", args=args)

    def _attachment(self, value: dict[str, Any]) -> None:
        item = value["attachment"]
        kind = item.get("type")
        origin = value.get("uuid")
        if kind == "queued_command":
            prompt = claude_tools.flat(item.get("prompt"))
            task_note = item.get("commandMode") == "task-notification"
            self._said(prompt, {"isMeta": True} if task_note and not prompt.startswith("<task") else {}, origin)
        elif isinstance(kind, str) and kind.startswith("hook_"):
            self._hook(kind, item, origin)
        elif kind == "diagnostics":
            self._diagnostics(item, origin)
        elif kind == "edited_text_file":
            paths = self.tools.paths(item.get("filename"))
            self.log.add(self.record, "system", str(item.get("snippet", "")), ts=self.ts, tool="edited_file", paths=paths, origin=origin)
        elif kind == "file":
            file = (item.get("content") or {}).get("file") or {}
            call = self.log.add(
                self.record, "file_read", ts=self.ts, tool="mention", paths=self.tools.paths(item.get("filename")), origin=origin
            )
            self.log.add(self.record, "tool_result", str(file.get("content") or ""), ts=self.ts, answers=call, origin=origin)
        elif kind == "goal_status" and not item.get("sentinel"):
            met = bool(item.get("met"))
            args = {"met": met}
            at = self.log.add(
                self.record, "system", str(item.get("reason") or item.get("condition") or ""), ts=self.ts, tool="goal", args=args
            )
            self.signals.append(Signal("claim", "done" if met else "goal not met", at))

    def _hook(self, kind: str, item: dict[str, Any], origin: str | None) -> None:
        event = str(item.get("hookEvent", ""))
        if kind == "hook_additional_context":
            for text in dict.fromkeys(claude_tools.texts(item.get("content"))):
                self.log.add(self.record, "system", text, ts=self.ts, tool="hook", args={"event": event}, origin=origin)
            return
        code = whole(item.get("exitCode"))
        blocked = kind in ("hook_blocking_error", "hook_stopped_continuation")
        if code or blocked:
            nested = item.get("blockingError") if isinstance(item.get("blockingError"), dict) else {}
            command = item.get("command") or (nested or {}).get("command") or ""
            text = "\n".join(filter(None, (str(item.get("stderr") or ""), str(item.get("stdout") or ""))))
            text = text or str((nested or {}).get("blockingError") or item.get("message") or item.get("content") or "")
            args = {"command": str(command), "exit_code": code, "event": event}
            self.log.add(
                self.record, "system", text, ts=self.ts, tool="hook", args=args, exit_code=code, is_error=True,
                duration_s=_seconds(item.get("durationMs")), origin=origin,
            )  # fmt: skip

    def _diagnostics(self, item: dict[str, Any], origin: str | None) -> None:
        lines: list[str] = []
        names: list[str] = []
        for file in item.get("files") or ():
            path = self.tools.paths(str(file.get("uri", "")).removeprefix("file://"))
            names += path
            for d in file.get("diagnostics") or ():
                row = ((d.get("range") or {}).get("start") or {}).get("line")
                lines.append(f"{path[0] if path else ''}:{'' if row is None else row + 1}: {d.get('severity', '')}: {d.get('message', '')}")
        if lines:
            self.log.add(self.record, "system", "\n".join(lines), ts=self.ts, tool="diagnostics", paths=tuple(names), origin=origin)

    def _pr_link(self, value: dict[str, Any]) -> None:
        url = str(value.get("prUrl") or "")
        key = repo_key.from_url(f"https://github.com/{value.get('prRepository')}") if value.get("prRepository") else repo_key.from_url(url)
        if key:
            self.repos[key] += 1
        if url and not any(s.name == "pr" and s.value == url for s in self.signals):
            self.signals.append(Signal("pr", url))

    # --- the whole ----------------------------------------------------------------------------------------------------

    def findings(self) -> Findings:
        """What the records say about the run."""
        stem = self.context.source.name.rsplit("/", 1)[-1]
        ids = self.session_ids or [stem.removesuffix(".jsonl")]
        session_id = next((i for i in ids if i in stem), ids[-1])
        others = [i for i in ids if i != session_id]
        agent = self.agent
        pushed = next(self.tools.repos(), None)
        linked = self.repos.most_common(1)
        return Findings(
            engine=ENGINE,
            session_id=session_id,
            segment=agent or "",
            parent_session_id=session_id if agent else (others[0] if others else None),
            model=self.models.most_common(1)[0][0] if self.models else None,
            repo=pushed or (linked[0][0] if linked else None),
            cwd=self.cwd,
            branch=self.branches.most_common(1)[0][0] if self.branches else None,
            environment=Environment(os=os_of(self.cwd)),
            labels=tuple(f"effort:{e}" for e in self.efforts),
            duration_s=self.turns_s or None,
            tokens_in=sum(i for i, _ in self.usage.values()) if self.usage else None,
            tokens_out=sum(o for _, o in self.usage.values()) if self.usage else None,
            signals=[*self.signals, *self._ending()],
        )

    def _ending(self) -> Iterator[Signal]:
        """How the last turn ended: interrupted, with an error of the provider, or with words that claim something."""
        for event in reversed(self.log.events):
            if event.kind == "error":
                yield Signal("exit_status", "interrupted" if event.args.get("harness") == "interrupted" else "api_error", event.index)
                return
            if event.kind == "assistant":
                claim = claim_of(event.text)
                if claim:
                    yield Signal("claim", claim, event.index)
                return
            if event.kind not in ("system", "compaction", "injected_memory", "user", "command_result"):
                return


def _call_ids(records: list[Record]) -> Iterator[str]:
    """Ids of all tool calls."""
    for record in records:
        message = record.value.get("message")
        content = message.get("content") if record.value.get("type") == "assistant" and isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") != "text" and isinstance(block.get("id"), str):
                yield block["id"]


def _typed_texts(value: dict[str, Any]) -> Iterator[str]:
    """Texts that stand as messages of their own, so that the queue's copy of them is not a second one."""
    if value.get("type") == "user":
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            yield from (str(b.get("text")) for b in content if isinstance(b, dict) and b.get("type") == "text")
    elif value.get("type") == "attachment":
        item = value.get("attachment")
        if isinstance(item, dict) and item.get("type") == "queued_command":
            yield claude_tools.flat(item.get("prompt"))


def _inside(tag: str, text: str) -> str:
    match = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.S)
    return match[1].strip() if match else ""


def _is_caveat(text: str) -> bool:
    return text.startswith(("Caveat: The messages below were generated by the user", "A session-scoped Stop hook is now active"))


def _seconds(milliseconds: Any) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, int | float) else None
