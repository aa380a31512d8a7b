"""Tool calls of Gemini CLI, which hold their results -> pairs of events. Knows every shape a shell command's result has had."""

import re
from datetime import datetime
from typing import Any, NamedTuple

from osmia_memory.models import EventKind
from osmia_memory.transcripts.events import EventLog, when, within
from osmia_memory.transcripts.records import as_json

_READS = ("read_file", "read_many_files")
_EDITS = ("write_file", "replace", "edit")
_UNFINISHED = frozenset({"validating", "scheduled", "executing", "awaiting_approval"})
_HEAD = re.compile(r"(?:Command: .*?\nDirectory: [^\n]*\n)?(?:Output|Stdout): ", re.S)
_TAIL = re.compile(
    r"(?:\nError: (?P<error>[^\n]*))?(?:\nExit Code: (?P<code>[^\n]*))?(?:\nSignal: (?P<signal>[^\n]*))?"
    r"(?:\nBackground PIDs: [^\n]*)?(?:\nProcess Group PGID: [^\n]*)?\s*\Z"
)
_TAIL_CHARACTERS = 2_000
_STDERR = re.compile(r"\nStderr: ", re.M)
_TIMED_OUT = re.compile(r"Command was automatically cancelled because it exceeded the timeout|Command timed out")
_STOPPED = re.compile(r"Command was cancelled by user")
_BEFORE_STOP = re.compile(r" Below is the output before it was cancelled:\n")
_BACKGROUND = re.compile(r"Command moved to background \(PID: (\d+)\)")
_REFUSED = re.compile(r"did not allow|denied by policy|not in the allowed|rejected", re.I)
_CUT = re.compile(
    r"<tool_output_masked>|\[CONTENT TRUNCATED\]|^Output too large|\.\.\. \[\d+ (?:lines|characters) (?:truncated|omitted)\]", re.M
)
_MADE = re.compile(r"(?:Successfully (?:created|overwrote|modified)[^/\n]*|Created new file: ?)(/[^\n]+?)\.?(?: \(|\Z|\n)")


class Ran(NamedTuple):
    """What a shell command's result says: its output, exit code (None: not told), and flags."""

    text: str
    exit_code: int | None
    args: dict[str, Any]


def shell_result(text: str, is_success: bool) -> Ran:
    """Take the fields off a result. The newer form tells the exit code only if it is not 0."""
    if background := _BACKGROUND.match(text):
        return Ran(text, None, {"background": background[1]})
    if (timed_out := _TIMED_OUT.match(text)) or _STOPPED.match(text):
        output = _BEFORE_STOP.split(text, maxsplit=1)[1] if _BEFORE_STOP.search(text) else ""
        return Ran(output, None, {"timeout": True} if timed_out else {"harness": "interrupted"})
    head = _HEAD.match(text)
    if head is None:
        return Ran(text, None, {})
    tail = _TAIL.search(text, max(head.end(), len(text) - _TAIL_CHARACTERS))
    assert tail is not None, "it matches at the end of any text"
    told = {name: value for name, value in tail.groupdict().items() if value not in (None, "(none)", "0") or name == "code"}
    code = told.get("code")
    error = told.get("error")
    parts = [p for p in _STDERR.split(text[head.end() : tail.start()]) if p.strip() not in ("", "(empty)")]
    output = "\n".join([*parts, *([str(error)] if error else [])])
    if code is None:
        return Ran(output, 0 if is_success and not error and not told.get("signal") else None, {})
    return Ran(output, int(code) if re.fullmatch(r"-?\d+", code) else None, {})


class Tools:
    """Writes the calls of one session. `root` is the checkout's folder as far as it is known."""

    def __init__(self, log: EventLog, root: str | None) -> None:
        self.log = log
        self.root = root

    def typed_command(self, record: int, ts: datetime | None, line: str, output: str, origin: Any) -> None:
        """A command that the person ran in the session; its exit code is not told."""
        call = self.log.add(record, "command", line, ts=ts, tool="user-shell", args={"by": "user"}, origin=origin)
        self.log.add(record, "command_result", output, ts=ts, tool="user-shell", answers=call, origin=origin)

    def call(self, record: int, ts: datetime | None, call: dict[str, Any]) -> None:
        """A call and what it returned."""
        name = str(call["name"])
        given = call.get("args")
        arguments: dict[str, Any] = given if isinstance(given, dict) else {}
        result, failed = _result(call)
        if self.root is None and name in _EDITS:
            self.root = _root(str(arguments.get("file_path") or ""), result)
        kind, text, paths = self._what(name, arguments, given)
        args = {"directory": arguments["dir_path"]} if kind == "command" and isinstance(arguments.get("dir_path"), str) else {}
        origin = call.get("id")
        at = self.log.add(record, kind, text, ts=ts, tool=name, args=args, paths=paths, origin=origin)
        status = str(call.get("status"))
        if status in _UNFINISHED:
            return
        ended = when(call.get("timestamp")) or ts
        flags: dict[str, Any] = {"truncated": True} if _CUT.search(result) else {}
        if status == "cancelled":
            flags["harness"] = "refused" if _REFUSED.search(result) else "interrupted"
        code = None
        if kind == "command":
            result, code, more = shell_result(result, status == "success")
            flags |= more
        failed = failed or status in ("error", "cancelled") or bool(code) or bool(flags.get("timeout"))
        if kind == "file_edit":
            made = "created" in result.split("\n", 1)[0].lower()
            self.log.mark(at, is_error=failed, args={"created": True} if made and not failed else None)
        self.log.add(
            record, "command_result" if kind == "command" else "tool_result", result, ts=ended, tool=name, args=flags, answers=at,
            exit_code=code, is_error=failed, origin=origin,
        )  # fmt: skip

    def _what(self, name: str, arguments: dict[str, Any], given: Any) -> tuple[EventKind, str, tuple[str, ...]]:
        """(kind, text, paths) of a call."""
        if name == "run_shell_command" and "command" in arguments:
            return "command", str(arguments["command"]), ()
        listed = arguments.get("paths") or arguments.get("include")
        names = [arguments.get("file_path") or arguments.get("absolute_path"), *(listed if isinstance(listed, list) else ())]
        paths = tuple(within(n, self.root) for n in names if isinstance(n, str) and n)
        if name in _READS:
            return "file_read", "", paths
        if name in _EDITS:
            return "file_edit", str(arguments.get("content", arguments.get("new_string")) or ""), paths
        return "tool_call", as_json(given), paths


def _result(call: dict[str, Any]) -> tuple[str, bool]:
    """(text, whether it is an error) of a call's result: function responses, texts, or what was shown."""
    listed = call.get("result")
    texts: list[str] = []
    failed = False
    for part in listed if isinstance(listed, list) else [listed]:
        response = part.get("functionResponse", {}).get("response") if isinstance(part, dict) else None
        if isinstance(response, dict):
            told = response.get("output", response.get("error"))
            failed = failed or ("output" not in response and "error" in response)
            texts.append(told if isinstance(told, str) else as_json(response if told is None else told))
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif isinstance(part, str):
            texts.append(part)
    shown = call.get("resultDisplay")
    return ("\n".join(texts) if texts else shown if isinstance(shown, str) else ""), failed


def _root(path: str, result: str) -> str | None:
    """The checkout's folder, by a result that gives in full the path that the call gave in part."""
    made = _MADE.search(result)
    whole = made[1] if made else ""
    return whole.removesuffix(f"/{path}") if path and not path.startswith("/") and whole.endswith(f"/{path}") else None
