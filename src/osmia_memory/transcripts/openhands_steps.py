"""Calls and results of OpenHands in either version -> events, paired by the id that a result names.

Knows neither version's records. A command that is still running (exit code -1) is joined with the inputs that fetch the rest.
"""

import re
from datetime import datetime
from typing import Any

from osmia_memory.models import Signal
from osmia_memory.transcripts import patches
from osmia_memory.transcripts.events import EventLog, whole, within

_PROMPT = re.compile(r"(?:\r?\n)?[\w.-]+@[\w.-]+:\S* [#$] ?\Z")
_HARD_TIMEOUT = re.compile(r"The command timed out after")
_NOT_RUN = re.compile(
    r"\s*(?:ERROR:\s*)?(?:Cannot execute multiple commands at once|The previous command is still running|Your command .{0,400}? is NOT executed)",
    re.S,
)
_CLIPPED = re.compile(r"<response clipped>|\[\.\.\. Observation truncated due to length \.\.\.\]")
_THINK = re.compile(r"<think>(.*?)(?:</think>|\Z)", re.S)


class Steps:
    """What both versions write to: the log, the calls that wait for results, and what was learnt of the run on the way.

    `record` and `ts` are those of the event being read.
    """

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.record = 0
        self.ts: datetime | None = None
        self.cwd: str | None = None
        self.interpreter: str | None = None
        self.repo: str | None = None
        self.model: str | None = None
        self.tokens: tuple[int, int] | None = None
        self.cost: float | None = None
        self.ending: Signal | None = None
        self.claim: Signal | None = None
        self.session_id: str | None = None
        self.calls: dict[str, int] = {}
        self.last: int | None = None  # the call that a result without a cause belongs to
        self._running: int | None = None  # the command that the shell is still busy with
        self._asked: dict[int, int] = {}  # input to a running command -> that command

    def add(self, kind: Any, text: str, **fields: Any) -> int:
        """An event of the record being read."""
        return self.log.add(self.record, kind, text, ts=self.ts, **fields)

    def say(self, kind: Any, text: Any, **fields: Any) -> None:
        """An event with a text, unless the text is blank."""
        if isinstance(text, str) and text.strip():
            self.add(kind, text.strip(), **fields)

    def think(self, *texts: Any) -> None:
        """What the agent thought, once where it stands twice."""
        told: list[str] = []
        for text in texts:
            if isinstance(text, str):
                told += [t for part in (*_THINK.findall(text), _THINK.sub("", text)) if (t := part.strip()) and t not in told]
        for text in told:
            self.add("reasoning", text)

    def called(self, key: Any, kind: Any, text: str, tool: str, **fields: Any) -> int:
        """A call, known to results by `key`."""
        self.last = self.add(kind, text, tool=tool, **fields)
        self.calls[str(key)] = self.last
        return self.last

    def command(self, key: Any, line: str, tool: str, is_input: bool = False) -> None:
        """A shell command; an empty one, or input to what runs, only asks for more of its output."""
        if is_input or not line.strip():
            call = self.called(key, "tool_call", line, f"{tool}.input")
            if self._running is not None:
                self._asked[call] = self._running
        else:
            self.called(key, "command", line, tool)

    def edit(self, key: Any, arguments: dict[str, Any], tool: str) -> None:
        """A call of the file editor: a look at a file, or a change of it."""
        path = arguments.get("path")
        paths = self.paths(path)
        verb = arguments.get("command")
        if verb == "view":
            self.called(key, "file_read", "", tool, paths=paths)
            return
        args: dict[str, Any] = {"created": True} if verb == "create" else {}
        if isinstance(arguments.get("old_str"), str) and arguments["old_str"]:
            args["old_string"] = arguments["old_str"]
        text = next((arguments[k] for k in ("file_text", "new_str", "content") if isinstance(arguments.get(k), str)), "")
        self.called(key, "file_edit", text, tool, args=args, paths=paths)

    def submitted(self, record: int, patch: Any) -> None:
        """The patch that the run left behind."""
        text = patch.replace("\r\n", "\n") if isinstance(patch, str) else ""
        if paths := patches.paths_of_diff(text):
            self.log.add(record, "file_edit", text, ts=self.ts, tool="submission", paths=paths)

    def paths(self, name: Any) -> tuple[str, ...]:
        """The path, relative to the checkout where it lies in it."""
        return (within(name, self.cwd),) if isinstance(name, str) and name else ()

    # --- results ------------------------------------------------------------------------------------------------------

    def call_of(self, key: Any, line: Any = None) -> int | None:
        """The call a result belongs to. One that the record lacks is made of the command line that the result repeats."""
        if key is None:
            return self.last
        if str(key) not in self.calls and isinstance(line, str) and line.strip():
            self.called(key, "command", line, "bash")
        return self.calls.get(str(key))

    def ran(self, call: int | None, text: str, code: Any, *, note: str = "", is_error: bool = False, timed_out: bool = False) -> None:
        """What a command printed. `code` -1 (or none): not finished, or never begun. `note` is what the shell's wrapper adds."""
        call = self._asked.get(call, call) if call is not None else None
        told = whole(code)
        exit_code = None if told == -1 else told
        args: dict[str, Any] = {}
        if _NOT_RUN.match(text):
            args["harness"], is_error = "refused", True
        elif timed_out or _HARD_TIMEOUT.search(note):
            args["timeout"] = True
        if _CLIPPED.search(text):
            args["truncated"] = True
        if "harness" not in args:
            self._running = call if told == -1 else None
        self._result("command_result", call, _without_prompt(text.replace("\r\n", "\n")), exit_code, args, is_error or bool(exit_code))

    def returned(self, call: int | None, text: str, *, is_error: bool = False, harness: str | None = None) -> None:
        """What any other call returned."""
        is_command = call is not None and self.log.events[call].kind == "command"
        if is_error and call is not None and self.log.events[call].kind == "file_edit":
            self.log.mark(call, is_error=True)
        if harness is None and is_command and _NOT_RUN.match(text):
            harness = "refused"
        args: dict[str, Any] = {"harness": harness} if harness else {}
        if _CLIPPED.search(text):
            args["truncated"] = True
        self._result("command_result" if is_command else "tool_result", call, text, None, args, is_error)

    def _result(self, kind: Any, call: int | None, text: str, code: int | None, args: dict[str, Any], is_error: bool) -> None:
        event = self.log.events[call] if call is not None else None
        began = event.ts if event is not None else None
        seconds = (self.ts - began).total_seconds() if self.ts and began else None
        self.add(
            kind, text, tool=event.tool if event is not None else None, answers=call, exit_code=code, is_error=is_error, args=args,
            duration_s=seconds if seconds and seconds > 0 else None,
        )  # fmt: skip
        if call == self.last:
            self.last = None

    def located(self, metadata: Any) -> None:
        """Folder and interpreter as the first command found them."""
        if isinstance(metadata, dict):
            folder, python = metadata.get("working_dir"), metadata.get("py_interpreter_path")
            self.cwd = self.cwd or (folder if isinstance(folder, str) and folder else None)
            self.interpreter = self.interpreter or (python if isinstance(python, str) and python else None)


def _without_prompt(text: str) -> str:
    """`text` without the prompt that older shells leave at its end; only the end is searched."""
    at = max(0, len(text) - 300)
    return text[:at] + _PROMPT.sub("", text[at:])
