"""Tool calls of Claude Code and their results -> events, paired also where the result comes by another way.

A background command's output arrives in the result of a later tool or in a notification; a refusal by the user, an
interruption and a cancelled sibling are no failures of the tool.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import cached_property
from typing import Any

from osmia_memory.models import EventKind
from osmia_memory.transcripts import repo_key
from osmia_memory.transcripts.events import EventLog, within
from osmia_memory.transcripts.records import as_json

_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (-?\d+)(?:\n|$)")
_TIMED_OUT = re.compile(r"Command timed out after|timed out after \d+")
_HARNESS = (
    ("refused", re.compile(r"(?:Error: )?(?:<tool_use_error>)?(?:The user doesn't want to (?:proceed|take)|User rejected|Permission (?:for|to) .{0,80}(?:denied|rejected)|Permission denied by|Blocked: |.{0,40}has been denied|Hook .{0,60}(?:denied|blocked))")),
    ("interrupted", re.compile(r"\[Request interrupted by user|Interrupted by user|The operation was aborted")),
    ("cascade", re.compile(r"<tool_use_error>(?:Sibling tool call errored|Cancelled: parallel tool call)|Sibling tool call errored")),
)  # fmt: skip
_SAID_WHEN_REFUSING = re.compile(
    r"(?:the user said|user provided the following reason[^:]*):\s*\n?(.+?)(?:\n\nNote: The user's next message|\Z)", re.S
)
_REMINDER = re.compile(r"\s*<system-reminder>.*?(?:</system-reminder>|\Z)", re.S)
_PERSISTED = "<persisted-output>"
_STARTED = re.compile(r"Command (?:running in|was (?:manually )?(?:moved to|backgrounded)).{0,60}? (?:with )?ID: (\w+)")
_CUT = re.compile(r"^\.\.\. \[\d+ (?:lines|characters) truncated\] \.\.\.$|^\[Output truncated|^\[Truncated:", re.M)
_FIELD = re.compile(r"<(task_id|task-id|status|exit_code|output|stdout|stderr|summary)>\s*(.*?)\s*</\1>", re.S)
_CODE_IN_SUMMARY = re.compile(r"\bexit code (-?\d+)")
_FINISHED = frozenset({"completed", "failed", "killed", "stopped"})
_DEFAULT_PATIENCE_S = 120.0
_UNATTENDED_MODES = frozenset({"auto", "bypassPermissions", "dontAsk"})
_LONGEST_ATTENDED_S = 10.0
_READS = {"Read": "file_path", "NotebookRead": "notebook_path"}
_POLLS = frozenset({"BashOutput", "TaskOutput", "AgentOutput", "KillShell", "KillBash", "TaskStop"})
_TASK_KEYS = ("task_id", "bash_id", "shell_id")
_SHELLS = frozenset({"Bash", "PowerShell"})
_KEPT_ARGS = ("timeout", "run_in_background", "dangerouslyDisableSandbox", "description")


class Tools:
    """Pairs calls and results of one session."""

    def __init__(self, log: EventLog, call_ids: Callable[[], Iterable[str]]) -> None:
        self.log = log
        self._call_ids = call_ids
        self._early: dict[str, tuple[int, datetime | None, dict[str, Any], Any]] = {}
        self.root: str | None = None  # the checkout's folder
        self.mode: str | None = None  # of permissions, as last told
        self._calls: dict[str, int] = {}
        self._background: dict[str, int] = {}  # task id -> index of its command
        self._polled: dict[str, str] = {}  # tool_use id -> task id that it asks for
        self._typed: int | None = None  # the person's own shell command that waits for its output
        self._outputs_naming_remotes: list[str] = []
        self._answered: set[str] = set()

    @cached_property
    def _expected(self) -> frozenset[str]:
        """Ids of all calls of the file, looked up when a result has none before it: some are written before their calls."""
        return frozenset(self._call_ids())

    def paths(self, *names: Any) -> tuple[str, ...]:
        """The paths, relative to the checkout where they lie in it."""
        return tuple(within(name, self.root) for name in names if isinstance(name, str) and name)

    def repos(self) -> Iterator[str]:
        """Repository keys that outputs of `git remote` and `git push` named."""
        for text in self._outputs_naming_remotes:
            yield from repo_key.from_git_output(text)

    # --- calls --------------------------------------------------------------------------------------------------------

    def call(self, record: int, ts: datetime | None, block: dict[str, Any]) -> None:
        """A `tool_use` block."""
        name = str(block.get("name"))
        given = block.get("input")
        arguments: dict[str, Any] = given if isinstance(given, dict) else {"input": given}
        origin = block.get("id")
        if origin in self._calls:
            return
        kind: EventKind = "tool_call"
        text = ""
        paths: tuple[str, ...] = ()
        args: dict[str, Any] = {}
        if name in _SHELLS:
            kind, text = "command", str(arguments.get("command", ""))
            args = {key: arguments[key] for key in _KEPT_ARGS if key in arguments}
        elif name in _READS:
            kind, paths = "file_read", self.paths(arguments.get(_READS[name]))
            args = {key: arguments[key] for key in ("offset", "limit") if key in arguments}
        elif name in ("Edit", "Write", "MultiEdit", "NotebookEdit"):
            kind, text = "file_edit", _written(name, arguments)
            args = _replaced(name, arguments)
            paths = self.paths(arguments.get("file_path") or arguments.get("notebook_path"))
        else:
            text = as_json(arguments)
            paths = self.paths(arguments.get("path"))
        if name in _POLLS:
            self._polled[str(origin)] = next((str(arguments[key]) for key in _TASK_KEYS if key in arguments), "")
        self._calls[str(origin)] = self.log.add(record, kind, text, ts=ts, tool=name, args=args, paths=paths, origin=origin)
        if str(origin) in self._early:
            self.result(*self._early.pop(str(origin)))

    def typed_command(self, record: int, ts: datetime | None, line: str, origin: str | None) -> None:
        """A shell command that the person ran in the session."""
        self._typed = self.log.add(record, "command", line, ts=ts, tool="user-shell", args={"by": "user"}, origin=origin)

    def typed_result(self, record: int, ts: datetime | None, text: str, origin: str | None) -> None:
        """The output of the person's own command; it has no exit code."""
        self.log.add(record, "command_result", text, ts=ts, tool="user-shell", answers=self._typed, origin=origin)
        self._typed = None

    # --- results ------------------------------------------------------------------------------------------------------

    def result(self, record: int, ts: datetime | None, block: dict[str, Any], twin: Any) -> None:
        """A `tool_result` block, with the record's structured twin, of which only flags are used."""
        origin = str(block.get("tool_use_id"))
        if origin in self._answered:
            return
        if origin not in self._calls and origin in self._expected:
            self._early.setdefault(origin, (record, ts, block, twin))
            return
        self._answered.add(origin)
        call = self._calls.get(origin)
        name = self.log.events[call].tool if call is not None else None
        text = flat(block.get("content"))
        is_error = block.get("is_error") is True
        reminders = _REMINDER.findall(text) if "<system-reminder>" in text else []
        text = _REMINDER.sub("", text) if reminders else text
        args = _flags(text, is_error)
        if name in _SHELLS:
            self._command_result(record, ts, origin, text, is_error, args, twin if isinstance(twin, dict) else {})
        else:
            if isinstance(twin, dict) and twin.get("userModified"):
                args["user_modified"] = True
            self._tool_result(record, ts, origin, text, is_error, args, twin)
        if args.get("harness") == "refused" and (said := _SAID_WHEN_REFUSING.search(text)):
            self.log.add(record, "user", said[1], ts=ts, origin=origin)
        for reminder in reminders:
            self.log.add(record, "system", reminder.strip(), ts=ts, tool="system-reminder", origin=origin)

    def _command_result(
        self, record: int, ts: datetime | None, origin: str, text: str, is_error: bool, args: dict[str, Any], twin: dict[str, Any]
    ) -> None:
        call = self._calls[origin]
        code: int | None = None if is_error else 0
        started = twin.get("backgroundTaskId") or ((m := _STARTED.match(text)) and m[1])
        if match := _EXIT_CODE.match(text) if is_error else None:
            code, text = int(match[1]), text[match.end() :]
        elif twin.get("interrupted"):
            code, is_error = None, True
            args.setdefault("harness", "interrupted")
        elif started:
            self._background[str(started)] = call
            code = None
            args["background"] = str(started)
        elif not is_error and twin.get("returnCodeInterpretation"):  # grep, diff, test: 1 is an answer, not an error
            code = 1
            args["interpretation"] = str(twin["returnCodeInterpretation"])
        if is_error and code is None and _TIMED_OUT.search(text[:300]):
            args["timeout"] = True
        line = self.log.events[call].text
        if "git" in line and ("push" in line or "remote" in line):
            self._outputs_naming_remotes.append(text)
        duration = None if started else self._duration(call, ts)
        self.log.add(
            record, "command_result", text, ts=ts, tool=self.log.events[call].tool, args=args, answers=call, exit_code=code,
            is_error=is_error, duration_s=duration, origin=origin,
        )  # fmt: skip

    def _duration(self, call: int, ts: datetime | None) -> float | None:
        """Seconds between call and result; None if they may hold the time a person took to permit the command.

        In the modes that ask, a `sed` "ran" for minutes; more than the command's own timeout is waiting in any mode.
        """
        event = self.log.events[call]
        if ts is None or event.ts is None:
            return None
        seconds = (ts - event.ts).total_seconds()
        timeout = event.args.get("timeout")
        patience = timeout / 1000 if isinstance(timeout, int | float) else _DEFAULT_PATIENCE_S
        if self.mode is not None and self.mode not in _UNATTENDED_MODES:
            patience = min(patience, _LONGEST_ATTENDED_S - 5)
        return seconds if 0 <= seconds <= patience + 5 else None

    def _tool_result(
        self, record: int, ts: datetime | None, origin: str, text: str, is_error: bool, args: dict[str, Any], twin: Any
    ) -> None:
        call = self._calls.get(origin)
        name = self.log.events[call].tool if call is not None else None
        if call is not None and self.log.events[call].kind == "file_edit":
            created = isinstance(twin, dict) and twin.get("type") == "create"
            if is_error or created:
                self.log.mark(call, is_error=is_error, args={"created": True} if created else None)
        self.log.add(record, "tool_result", text, ts=ts, tool=name, args=args, answers=call, is_error=is_error, origin=origin)
        if name in _POLLS:
            self._fetched(record, ts, text, origin)
        elif name == "AskUserQuestion" and isinstance(twin, dict):
            for answer in _own_words(twin):
                self.log.add(record, "user", answer, ts=ts, origin=origin)

    def notification(self, record: int, ts: datetime | None, text: str, origin: str | None) -> None:
        """The harness says that a background task ended."""
        self.log.add(record, "system", text, ts=ts, tool="task-notification", origin=origin)
        self._fetched(record, ts, text, origin)

    def _fetched(self, record: int, ts: datetime | None, text: str, origin: str | None) -> None:
        """Output of a background command, told by another tool: a result of the command that was started."""
        fields = {key.replace("-", "_"): value for key, value in _FIELD.findall(text)}
        call = self._background.get(fields.get("task_id") or self._polled.get(str(origin), ""))
        if call is None:
            return
        code = fields.get("exit_code") or ((m := _CODE_IN_SUMMARY.search(fields.get("summary", ""))) and m[1])
        output = "\n".join(filter(None, (fields.get("output"), fields.get("stdout"), fields.get("stderr"))))
        if not output and fields.get("status") not in _FINISHED:
            return
        self.log.add(
            record, "command_result", output, ts=ts, tool=self.log.events[call].tool, answers=call,
            exit_code=int(code) if code else None, is_error=bool(code and code != "0"), origin=origin,
        )  # fmt: skip


def flat(content: Any) -> str:
    """The text of a content that is a string or a list of blocks; images are named, not shown."""
    return content if isinstance(content, str) else "\n".join(texts(content))


def texts(content: Any) -> Iterator[str]:
    """The texts of a list of strings and blocks."""
    if isinstance(content, str):
        yield content
        return
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            yield block
        elif isinstance(block, dict):
            if isinstance(block.get("text"), str):
                yield block["text"]
            elif block.get("type") in ("image", "document"):
                yield f"[{block['type']}]"
            elif block.get("type") == "tool_reference":
                yield str(block.get("tool_name", ""))


def _replaced(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The text that an edit replaces; nothing for a whole file."""
    edits = arguments.get("edits") if name == "MultiEdit" else [arguments]
    old = [str(e["old_string"]) for e in edits or [] if isinstance(e, dict) and e.get("old_string")] if isinstance(edits, list) else []
    return {"old_string": "\n".join(old)} if old else {}


def _written(name: str, arguments: dict[str, Any]) -> str:
    """The new text of an edit."""
    if name == "MultiEdit":
        edits = arguments.get("edits")
        return "\n".join(str(e.get("new_string", "")) for e in edits if isinstance(e, dict)) if isinstance(edits, list) else ""
    key = {"Edit": "new_string", "Write": "content", "NotebookEdit": "new_source"}[name]
    return str(arguments.get(key) or "")


def _flags(text: str, is_error: bool) -> dict[str, Any]:
    args: dict[str, Any] = {}
    if is_error:
        found = next((word for word, pattern in _HARNESS if pattern.match(text)), None)
        if found:
            args["harness"] = found
    if text.startswith(_PERSISTED) or _CUT.search(text, max(0, len(text) - 400)):
        args["truncated"] = True
    return args


def _own_words(twin: dict[str, Any]) -> Iterator[str]:
    """Answers to the agent's questions that are none of the options it offered."""
    offered = {
        str(option.get("label"))
        for question in twin.get("questions") or ()
        if isinstance(question, dict)
        for option in question.get("options") or ()
        if isinstance(option, dict)
    }
    answers = twin.get("answers")
    for answer in answers.values() if isinstance(answers, dict) else ():
        rest = answer if isinstance(answer, str) else ""
        for label in sorted(offered, key=len, reverse=True):
            rest = rest.replace(label, "")
        if re.search(r"\w", rest):
            yield answer
