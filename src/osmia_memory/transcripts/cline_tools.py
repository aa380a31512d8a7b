"""Tool calls of Cline and their results -> events, paired: tools of its sessions by id, tools as XML by their order."""

import re
from datetime import datetime
from typing import Any, NamedTuple

from osmia_memory.models import EventKind
from osmia_memory.transcripts import cline_text, patches
from osmia_memory.transcripts.events import EventLog, within
from osmia_memory.transcripts.records import Skips, as_json, parse

_COMMANDS = frozenset({"execute_command", "run_commands", "bash"})
_READS = frozenset({"read_file", "read_files"})
_EDITS = frozenset({"editor", "write_to_file", "replace_in_file", "apply_diff", "insert_content", "search_and_replace", "apply_patch"})
_CODE = re.compile(r"\b(?:exit(?:ed)?(?: with)?(?: status)? code|Exit code)[: ]+(-?\d+)", re.I)
_DONE = re.compile(r"\A\s*Command executed\b[^\n]*?\.(?:\s*\(?Exit code:? (?P<code>-?\d+)\)?[^\n]*)?\s*(?:Output:\n?)?", re.I)
_TIMED_OUT = re.compile(r"Command timed out after|timed out after \d+", re.I)
_REFUSED = re.compile(r"The user denied this operation|user (?:rejected|denied)|requires? approval", re.I)
_ABORTED = re.compile(r"Command was aborted|interrupted by (?:the )?user", re.I)
_FAILED = re.compile(r"\A\s*(?:The tool execution failed|Error (?:executing|reading|writing|editing)|<error>)", re.I)
_MADE = re.compile(r"\A\s*(?:Created|File created|New file)", re.I)


class Returned(NamedTuple):
    """One answer of a tool; `worked` is None where it does not say."""

    text: str
    worked: bool | None


class Tools:
    """Pairs calls and results of one session. The checkout's folder is `root`."""

    def __init__(self, log: EventLog, skips: Skips) -> None:
        self.log = log
        self.skips = skips
        self.root: str | None = None
        self.number = 0
        self.completed: int | None = None  # index of the words with which the agent handed in its work
        self._ts: datetime | None = None
        self._origin: Any = None
        self._calls: dict[str, list[int]] = {}
        self._open: list[int] = []  # calls as XML that wait for their results
        self._answering: int | None = None

    def at(self, number: int, ts: datetime | None, origin: Any) -> None:
        """The message that is read from now on."""
        self.number, self._ts, self._origin, self._answering = number, ts, origin, None

    def add(self, kind: EventKind, text: str, tool: str | None = None) -> int:
        """An event that is no call."""
        return self.log.add(self.number, kind, text, ts=self._ts, tool=tool, origin=self._origin)

    # --- calls --------------------------------------------------------------------------------------------------------

    def call(self, block: dict[str, Any]) -> None:
        """A `tool_use` block."""
        call_id = str(block.get("id"))
        if call_id not in self._calls:
            given = block["input"] if isinstance(block.get("input"), dict) else {"input": block.get("input")}
            self._calls[call_id] = self._called(str(block.get("name")), given)

    def xml_call(self, name: str, given: dict[str, str]) -> None:
        """A call that stands as XML in a reply."""
        self._open += self._called(name, given)

    def _called(self, name: str, given: dict[str, Any]) -> list[int]:
        if name in ("attempt_completion", "submit_and_exit", "plan_mode_respond", "ask_followup_question"):
            text = next((str(given[k]) for k in ("result", "summary", "response", "question") if given.get(k)), "")
            at = self.add("assistant", text, name)
            if name in ("attempt_completion", "submit_and_exit"):
                self.completed = at
            line = given.get("command")
            return [self._event("command", line, name)] if isinstance(line, str) and line.strip() else []
        if name in _COMMANDS:
            listed = given.get("commands", given.get("command"))
            lines = [_line(c) for c in (listed if isinstance(listed, list) else [listed])]
            return [self._event("command", line, name) for line in lines]
        if name in _READS:
            return [self._event("file_read", "", name, self._paths(given))]
        if name in _EDITS:
            return self._edits(name, given)
        return [self._event("tool_call", as_json(given), name, self._paths(given))]

    def _edits(self, name: str, given: dict[str, Any]) -> list[int]:
        changes = list(patches.from_apply_patch(str(given.get("input") or given.get("patch") or ""))) if name == "apply_patch" else []
        if changes:
            return [self._event("file_edit", c.text, name, tuple(within(p, self.root) for p in c.paths), c.created) for c in changes]
        text = next((str(given[k]) for k in ("new_text", "content", "file_text", "replace") if isinstance(given.get(k), str)), "")
        text = text or cline_text.replaced_by(str(given.get("diff") or ""))
        return [self._event("file_edit", text, name, self._paths(given))]

    def _event(self, kind: EventKind, text: str, tool: str, paths: tuple[str, ...] = (), created: bool = False) -> int:
        args = {"created": True} if created else None
        return self.log.add(self.number, kind, text, ts=self._ts, tool=tool, args=args, paths=paths, origin=self._origin)

    def _paths(self, given: dict[str, Any]) -> tuple[str, ...]:
        listed = given.get("files") or given.get("paths") or ()
        names = [given.get("path"), *(f.get("path") if isinstance(f, dict) else f for f in (listed if isinstance(listed, list) else ()))]
        return tuple(within(n, self.root) for n in names if isinstance(n, str) and n)

    def mention(self, block: dict[str, Any]) -> None:
        """A file that a person named, given with its content."""
        at = self._event("file_read", "", "mention", self._paths(block))
        text = block.get("content")
        self.log.add(
            self.number, "tool_result", text if isinstance(text, str) else "", ts=self._ts, tool="mention", answers=at, origin=self._origin
        )  # fmt: skip

    # --- results ------------------------------------------------------------------------------------------------------

    def result(self, block: dict[str, Any]) -> None:
        """A `tool_result` block: one answer for each command that the call ran, or one for the call."""
        calls = self._calls.get(str(block.get("tool_use_id")), [])
        found = _returned(block.get("content"), block.get("is_error") is True)
        if calls and len(found) == len(calls):
            for call, one in zip(calls, found, strict=True):
                self._answer(call, one)
            return
        worked = False if any(r.worked is False for r in found) else next((r.worked for r in found if r.worked), None)
        self._answer(calls[0] if calls else None, Returned("\n".join(r.text for r in found), worked))

    def xml_result(self, name: str, text: str) -> None:
        """The result of the oldest call of that name that has none; its output may follow in a block of its own."""
        call = next((c for c in self._open if self.log.events[c].tool == name), None)
        if call is None:  # `attempt_completion` answers with what the person says next
            if text.strip():
                self.add("system", text.strip(), "tool-note")
            return
        self._open.remove(call)
        if text.strip():
            self._answer(call, Returned(text, None))
        else:
            self._answering = call

    def xml_output(self, text: str) -> bool:
        """The output that was announced by the block before; False if none was."""
        call, self._answering = self._answering, None
        if call is None:
            return False
        self._answer(call, Returned(text, None))
        return True

    def _answer(self, call: int | None, one: Returned) -> None:
        event = self.log.events[call] if call is not None else None
        text, code = one.text, None
        flags: dict[str, Any] = {}
        failed = one.worked is False or bool(_FAILED.match(text))
        if _REFUSED.search(text[:200]):
            flags["harness"], failed = "refused", True
        if event and event.kind == "command":
            text, code = _of_command(text, one.worked)
            if _TIMED_OUT.search(text[:300]) and failed:
                flags, code = {"timeout": True}, None
            elif _ABORTED.search(text[:200]) and failed:
                flags, code = {"harness": "interrupted"}, None
            failed = failed or bool(code)
        if event and event.kind == "file_edit" and call is not None:
            self.log.mark(call, is_error=failed, args={"created": True} if _MADE.match(text) and not failed else None)
        self.log.add(
            self.number, "command_result" if event and event.kind == "command" else "tool_result", text, ts=self._ts,
            tool=event.tool if event else None, args=flags, answers=call, exit_code=code, is_error=failed, origin=self._origin,
        )  # fmt: skip


def _line(command: Any) -> str:
    """A command line, also where program and arguments are apart."""
    if isinstance(command, dict):
        arguments = command.get("args")
        return " ".join([str(command.get("command") or ""), *(str(a) for a in (arguments if isinstance(arguments, list) else ()))])
    return str(command or "")


def _returned(content: Any, failed: bool) -> list[Returned]:
    """The answers of a result: `{query, result, success}` alone, in a list or as JSON text, or text blocks."""
    value = parse(content) if isinstance(content, str) and content.lstrip().startswith(("{", "[")) else None
    items = value if isinstance(value, list) else [value] if isinstance(value, dict) else content
    found = []
    for item in items if isinstance(items, list) else [items]:
        if isinstance(item, dict) and "success" in item:
            told = item.get("result") or item.get("error") or ""
            found.append(Returned(told if isinstance(told, str) else as_json(told), bool(item["success"]) and not failed))
        elif isinstance(item, dict):
            text = item.get("text")
            found.append(Returned(text if isinstance(text, str) else as_json(item), False if failed else None))
        else:
            found.append(Returned(item if isinstance(item, str) else "", False if failed else None))
    return found or [Returned("", False if failed else None)]


def _of_command(text: str, worked: bool | None) -> tuple[str, int | None]:
    """(output, exit code) of a command: 0 where it is said to have worked, else the code that the text names."""
    head = _DONE.match(text)
    if head:
        named = head["code"] or (m[1] if (m := _CODE.search(text[-80:])) else None)
        return text[head.end() :], int(named) if named else None
    if worked:
        return text, 0
    match = _CODE.search(text[:200]) or _CODE.search(text[-200:])
    return text, int(match[1]) if match and worked is False else None
