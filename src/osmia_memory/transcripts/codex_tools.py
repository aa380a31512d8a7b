"""Calls of Codex's tools and what they returned -> events, paired also where the end comes by a later call.

Most test commands return "still running" first; the exit code arrives in the result of a later `write_stdin` (or `wait`) for the same
process.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from osmia_memory.models import EventKind
from osmia_memory.transcripts import codex_script, patches, repo_key
from osmia_memory.transcripts.codex_output import Output, read_output
from osmia_memory.transcripts.events import EventLog, whole, within
from osmia_memory.transcripts.records import as_json, parse

_DURATION = re.compile(r"\A(Exit code: -?\d+\n)Duration: ([\d.]+) seconds\n")
_KEPT_ARGS = ("workdir", "yield_time_ms", "timeout_ms", "sandbox_permissions", "with_escalated_permissions", "justification", "tty")


class Tools:
    """Pairs calls and results of one rollout. `record` and `ts` are those of the record being read."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.record = 0
        self.ts: datetime | None = None
        self.root: str | None = None  # the checkout's folder
        self.remotes: list[str] = []
        self.calls: dict[str, list[int]] = {}
        self.answered: set[str] = set()
        self.processes: dict[str, int] = {}  # running process or script -> index of its command
        self.asked: dict[str, str] = {}  # call id of a poll -> the process it asks for
        self.patched: set[str] = set()
        self.ended: dict[str, tuple[int, datetime | None, dict[str, Any]]] = {}  # call id -> its exec_command_end

    # --- calls --------------------------------------------------------------------------------------------------------

    def function_call(self, payload: dict[str, Any]) -> None:
        """A call of a declared tool; shell tools are commands, patches are edits."""
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

    def custom_call(self, payload: dict[str, Any]) -> None:
        """A call with free text: a patch, or a script with commands in it."""
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

    def local_shell(self, payload: dict[str, Any]) -> None:
        """The oldest form of a command."""
        action = payload.get("action") or {}
        command = action.get("command")
        line = codex_script.shell_line([str(w) for w in command]) if isinstance(command, list) else str(command or "")
        args = {"workdir": action["working_directory"]} if action.get("working_directory") else None
        self._called(str(payload.get("call_id") or payload.get("id")), "command", line, "local_shell", args)

    def hosted_call(self, payload: dict[str, Any]) -> None:
        """A search or picture made by the provider."""
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

    def repos(self) -> Iterator[str]:
        """Repository keys that outputs of `git remote` and `git push` named."""
        for text in self.remotes:
            yield from repo_key.from_git_output(text)

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
        return tuple(within(name, self.root) for name in names if isinstance(name, str) and name)

    def typed_command(self, line: str, output: str) -> None:
        """A command that the person ran in the session."""
        call = self.log.add(self.record, "command", line, ts=self.ts, tool="user-shell", args={"by": "user"})
        self._answer(call, read_output(_DURATION.sub(r"\1Wall time: \2 seconds\n", output)), "user-shell", None)

    # --- results ------------------------------------------------------------------------------------------------------

    def result(self, payload: dict[str, Any]) -> None:
        """What a call returned."""
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

    def exec_end(self, payload: dict[str, Any]) -> None:
        """The event in which older versions told that a process ended."""
        self.ended[str(payload.get("call_id"))] = (self.record, self.ts, payload)

    def patch_end(self, payload: dict[str, Any]) -> None:
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

    def close(self) -> dict[int, int]:
        """Exit codes of processes that ended unobserved, from the events that older versions keep.

        Returns the new index of every event by its old one where events were sorted in, else {}.
        """
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
        return self.log.sort() if len(self.log.events) > before else {}


def _command_line(name: str, arguments: dict[str, Any]) -> str | None:
    """The command line of a shell tool's call, or None if the tool is none."""
    command = arguments.get("cmd", arguments.get("command"))
    if name not in ("exec_command", "shell", "shell_command", "local_shell", "container.exec", "unified_exec", "exec") or command is None:
        return None
    return codex_script.shell_line([str(w) for w in command]) if isinstance(command, list) else str(command)
