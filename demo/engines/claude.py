"""Claude Code session files: one line a content block, a structured twin beside every tool result."""

import re
from datetime import datetime, timedelta

from steps import Done, Edit, Interrupt, Played, Read, Record, Result, Say, Sh, Think, User

from engines.common import digest, hunks, iso, joined, token, tokens, uuid4

MODEL, VERSION = "claude-sonnet-4-5-20250929", "2.1.62"
_LONG = 30_000  # characters; above, the output goes to a file and a preview is shown
_PREVIEW = 2_000
_PULL = re.compile(r"https://\S+?/(?P<repo>[\w.-]+/[\w.-]+)/pull/(?P<number>\d+)")


def write(played: Played) -> list[Record]:
    """The records of the session file, in order."""
    return _Session(played).records()


class _Session:
    def __init__(self, played: Played) -> None:
        self.played, self.story = played, played.story
        self.id = uuid4("claude", self.story.slug)
        self.lines: list[Record] = []
        self.parent: str | None = None
        self.blocks: list[tuple[Record, datetime]] = []
        self.context, self.turn_began = 14_200, self.story.start

    def records(self) -> list[Record]:
        self.lines.append({"type": "permission-mode", "permissionMode": "acceptEdits", "sessionId": self.id})
        self._user_text(self.story.task, self.story.start)
        for done in self.played.done:
            self._step(done)
        self._flush("end_turn")
        if not isinstance(self.played.done[-1].step, Interrupt):
            self._turn_over()
        return self.lines

    def _step(self, done: Done) -> None:
        step = done.step
        if isinstance(step, Think):
            signature = digest(self.id, step.text)[:48]
            self.blocks.append(({"type": "thinking", "thinking": step.text, "signature": signature}, done.at))
        elif isinstance(step, Say):
            self.blocks.append(({"type": "text", "text": step.text}, done.at))
        elif isinstance(step, User):
            self._flush("end_turn")
            self._turn_over()
            self._user_text(step.text, done.at)
        elif isinstance(step, Interrupt):
            self._flush("end_turn")
            self._conversation("user", {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}, done.at)
        else:
            self._tool(done)

    def _tool(self, done: Done) -> None:
        step, call = done.step, token("toolu_01", 22, self.id, len(self.lines), len(self.blocks))
        if isinstance(step, Sh):
            name, given = "Bash", {"command": step.command, "description": step.why or "Run a command"}
            content, twin, failed = self._shell_result(call, done.result)
        elif isinstance(step, Read):
            name, given = "Read", {"file_path": f"{self.played.cwd}/{step.path}"}
            content, twin, failed = self._read_result(step, done.result)
        elif isinstance(step, Edit):
            name, given, content, twin = self._edit(step, done.result)
            failed = False
        else:
            raise TypeError(f"Claude Code has no {type(step).__name__}")
        call_at = done.at - timedelta(seconds=1 + done.result.seconds)
        self.blocks.append(({"type": "tool_use", "id": call, "name": name, "input": given}, call_at))
        source = self._flush("tool_use")
        block: Record = {"tool_use_id": call, "type": "tool_result", "content": content}
        if name == "Bash":
            block["is_error"] = failed
        self.context += tokens(content)
        extra = {"toolUseResult": twin, "sourceToolAssistantUUID": source}
        self._conversation("user", {"role": "user", "content": [block]}, done.at, extra)
        pull = _PULL.search(content)
        if pull:
            link = {"prNumber": int(pull["number"]), "prUrl": pull[0], "prRepository": pull["repo"]}
            self.lines.append({"type": "pr-link", "sessionId": self.id, **link, "timestamp": iso(done.at)})

    def _shell_result(self, call: str, result: Result) -> tuple[str, Record | str, bool]:
        text = joined(result.stdout, result.stderr)
        if result.code:
            text = f"Exit code {result.code}\n{text}" if text else f"Exit code {result.code}"
            return text, f"Error: {text}", True
        twin: Record = {"stdout": result.stdout.rstrip("\n"), "stderr": result.stderr.rstrip("\n"), "interrupted": False}
        twin |= {"isImage": False, "noOutputExpected": not text}
        if len(text) > _LONG:
            folder = self.played.cwd.replace("/", "-")
            path = f"/home/sam/.claude/projects/{folder}/{self.id}/tool-results/{call}.txt"
            size = f"{len(text) / 1024:.1f}KB"
            preview = text[:_PREVIEW]
            text = f"<persisted-output>\nOutput too large ({size}). Full output saved to: {path}\n\nPreview (first 2KB):\n{preview}\n...\n</persisted-output>"
            twin |= {"stdout": preview, "persistedOutputPath": path, "persistedOutputSize": len(joined(result.stdout, result.stderr))}
        return text, twin, False

    def _read_result(self, step: Read, result: Result) -> tuple[str, Record | str, bool]:
        lines = result.stdout.split("\n")
        shown = "\n".join(f"{n:6}→{line}" for n, line in enumerate(lines, 1))
        file = {"filePath": f"{self.played.cwd}/{step.path}", "content": result.stdout, "numLines": len(lines), "startLine": 1}
        return shown, {"type": "text", "file": {**file, "totalLines": len(lines)}}, False

    def _edit(self, step: Edit, result: Result) -> tuple[str, Record, str, Record]:
        path = f"{self.played.cwd}/{step.path}"
        if not step.old:
            twin: Record = {"type": "create", "filePath": path, "content": step.new, "structuredPatch": [], "originalFile": None}
            return "Write", {"file_path": path, "content": step.new}, f"File created successfully at: {path}", twin
        given = {"file_path": path, "old_string": step.old, "new_string": step.new, "replace_all": False}
        twin = {"filePath": path, "oldString": step.old, "newString": step.new, "originalFile": result.before}
        twin |= {"structuredPatch": _structured(result), "userModified": False, "replaceAll": False}
        return "Edit", given, f"The file {path} has been updated successfully.", twin

    # --- envelopes ----------------------------------------------------------------------------------------------------

    def _user_text(self, text: str, at: datetime) -> None:
        self._flush("end_turn")
        self.turn_began = at
        message = uuid4(self.id, "user", len(self.lines))
        snapshot = {"messageId": message, "trackedFileBackups": {}, "timestamp": iso(at)}
        self.lines.append({"type": "file-history-snapshot", "messageId": message, "snapshot": snapshot, "isSnapshotUpdate": False})
        self.context += tokens(text)
        self._conversation("user", {"role": "user", "content": text}, at, {"permissionMode": "acceptEdits"}, message)

    def _flush(self, stop: str) -> str | None:
        """Write the blocks of one reply; every line repeats the reply's usage."""
        if not self.blocks:
            return None
        reply, asked = token("msg_01", 22, self.id, len(self.lines)), token("req_01", 22, self.id, len(self.lines))
        made = tokens("".join(str(block) for block, _ in self.blocks))
        cached, self.context = self.context, self.context + made
        usage: Record = {"input_tokens": 6, "cache_creation_input_tokens": made, "cache_read_input_tokens": cached, "output_tokens": made}
        usage |= {"service_tier": "standard"}
        last = None
        for block, at in self.blocks:
            message: Record = {"model": MODEL, "id": reply, "type": "message", "role": "assistant", "content": [block]}
            message |= {"stop_reason": stop, "stop_sequence": None, "usage": usage}
            last = self._conversation("assistant", message, at, {"requestId": asked})
        self.blocks = []
        return last

    def _turn_over(self) -> None:
        last = next((line for line in reversed(self.lines) if "timestamp" in line), None)
        at = self.played.done[-1].at if last is None else datetime.fromisoformat(last["timestamp"])
        spent = int((at - self.turn_began).total_seconds() * 1000)
        self._append({"type": "system", "subtype": "turn_duration", "durationMs": spent, "isMeta": False}, at)

    def _conversation(self, kind: str, message: Record, at: datetime, extra: Record | None = None, own: str | None = None) -> str:
        return self._append({"type": kind, "message": message, **(extra or {})}, at, own)

    def _append(self, record: Record, at: datetime, own: str | None = None) -> str:
        own = own or uuid4(self.id, len(self.lines))
        head = {"parentUuid": self.parent, "isSidechain": False}
        tail = {"uuid": own, "timestamp": iso(at), "userType": "external", "entrypoint": "cli", "cwd": self.played.cwd}
        tail |= {"sessionId": self.id, "version": VERSION, "gitBranch": self.story.branch}
        self.lines.append(head | record | tail)
        self.parent = own
        return own


def _structured(result: Result) -> list[Record]:
    patches: list[Record] = []
    for line in hunks(result.before, result.after, 3):
        found = re.match(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line)
        if found:
            start, lines, new_start, new_lines = (int(part or 1) for part in found.groups())
            patches.append({"oldStart": start, "oldLines": lines, "newStart": new_start, "newLines": new_lines, "lines": []})
        else:
            patches[-1]["lines"].append(line)
    return patches
