"""Small transcripts of every format, made by hand. Content is invented."""

import json
from collections.abc import Mapping
from typing import Any

from osmia_memory.models import Event, Transcript
from osmia_memory.transcripts.read import ReadOptions, Source, read

SESSION = "11111111-2222-4333-8444-555555555555"


def jsonl(*records: Any) -> bytes:
    """One record a line."""
    return b"".join(json.dumps(r).encode() + b"\n" for r in records)


def read_many(data: bytes, name: str = "run.jsonl", siblings: Mapping[str, bytes] | None = None, **options: Any) -> list[Transcript]:
    """All transcripts of a file."""
    return read(Source(name, data, siblings or {}), ReadOptions(options.pop("tenant", "ticketing"), **options))


def read_one(data: bytes, name: str = "run.jsonl", siblings: Mapping[str, bytes] | None = None, **options: Any) -> Transcript:
    """The only transcript of a file."""
    (transcript,) = read_many(data, name, siblings, **options)
    return transcript


def kinds(transcript: Transcript) -> list[str]:
    """Kinds of the events in order."""
    return [e.kind for e in transcript.events]


def of_kind(transcript: Transcript, kind: str) -> list[Event]:
    """Events of one kind in order."""
    return [e for e in transcript.events if e.kind == kind]


def reasons(transcript: Transcript) -> str:
    """All reasons of skips, joined."""
    return " | ".join(s.reason for s in transcript.skipped)


def signals(transcript: Transcript, name: str) -> list[str]:
    """Values of one signal."""
    return [s.value for s in transcript.run.signals if s.name == name]


# --- Claude Code ------------------------------------------------------------------------------------------------------


class Claude:
    """Writes a Claude Code session record by record; every record is a second later than the one before."""

    def __init__(self, session: str = SESSION, cwd: str = "/srv/shop", **envelope: Any) -> None:
        self.records: list[dict[str, Any]] = []
        self.envelope = {"sessionId": session, "cwd": cwd, "gitBranch": "main", "version": "2.1.9", "isSidechain": False, **envelope}

    def add(self, kind: str, **fields: Any) -> "Claude":
        """A record with the session's envelope."""
        n = len(self.records)
        stamp = f"2026-03-01T10:{n // 60:02d}:{n % 60:02d}.000Z"
        self.records.append({"uuid": f"u{n}", "parentUuid": f"u{n - 1}", "timestamp": stamp, "type": kind, **self.envelope, **fields})
        return self

    def user(self, content: Any, **fields: Any) -> "Claude":
        """What stands in a person's message."""
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def says(self, *blocks: Any, message_id: str | None = None, usage: Any = None, **fields: Any) -> "Claude":
        """An assistant record; a string is a text block."""
        content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
        message = {"id": message_id or f"msg{len(self.records)}", "model": "claude-opus-9", "role": "assistant", "content": content}
        return self.add("assistant", message={**message, "usage": usage or {"input_tokens": 1, "output_tokens": 1}}, **fields)

    def tool(self, name: str, tool_id: str, **arguments: Any) -> "Claude":
        """A tool call."""
        return self.says({"type": "tool_use", "id": tool_id, "name": name, "input": arguments})

    def result(self, tool_id: str, content: Any, is_error: bool | None = None, twin: Any = None, **fields: Any) -> "Claude":
        """A tool's result, with its structured twin."""
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": tool_id, "content": content}
        if is_error is not None:
            block["is_error"] = is_error
        more = {} if twin is None else {"toolUseResult": twin}
        return self.user([block], **more, **fields)

    def bash(self, line: str, output: str, tool_id: str | None = None, is_error: bool | None = None, twin: Any = None) -> "Claude":
        """A command and its result."""
        tool_id = tool_id or f"toolu_{len(self.records)}"
        self.tool("Bash", tool_id, command=line)
        return self.result(tool_id, output, is_error, twin if twin is not None else {"stdout": output, "stderr": "", "interrupted": False})

    def data(self) -> bytes:
        """The file."""
        return jsonl(*self.records)


# --- Codex ------------------------------------------------------------------------------------------------------------

# Version 7 UUIDs hold their time in the first twelve digits: the child's turn is younger than the child, the parent's older.
PARENT = "01900000-0000-7000-8000-000000000001"
PARENT_TURN = "01900000-1000-7000-8000-000000000002"
CHILD = "01900000-5000-7000-8000-000000000003"
CHILD_TURN = "01900000-5001-7000-8000-000000000004"


class Codex:
    """Writes a Codex rollout record by record."""

    def __init__(self, session: str = PARENT, **meta: Any) -> None:
        self.records: list[dict[str, Any]] = []
        git = {"commit_hash": "abc123", "branch": "main", "repository_url": "git@github.com:acme/shop.git"}
        self.add("session_meta", id=session, cwd="/srv/shop", cli_version="0.140.0", source="cli", git=git, **meta)

    def add(self, kind: str, **payload: Any) -> "Codex":
        """A record, one second after the one before."""
        n = len(self.records)
        stamp = f"2026-03-01T10:{n // 60:02d}:{n % 60:02d}.000Z"
        self.records.append({"timestamp": stamp, "type": kind, "payload": payload})
        return self

    def turn(self, turn_id: str = PARENT_TURN, **fields: Any) -> "Codex":
        """A turn begins."""
        self.add("event_msg", type="task_started", turn_id=turn_id)
        return self.add("turn_context", turn_id=turn_id, cwd="/srv/shop", model="gpt-9", **fields)

    def user(self, text: str) -> "Codex":
        """A message in the user's role, with the event that copies it."""
        self.add("response_item", type="message", role="user", content=[{"type": "input_text", "text": text}])
        return self.add("event_msg", type="user_message", message=text)

    def says(self, text: str, phase: str = "final_answer") -> "Codex":
        """A message of the agent, with the event that copies it."""
        self.add("event_msg", type="agent_message", message=text)
        return self.add("response_item", type="message", role="assistant", content=[{"type": "output_text", "text": text}], phase=phase)

    def call(self, name: str, call_id: str, **arguments: Any) -> "Codex":
        """A function call."""
        return self.add("response_item", type="function_call", name=name, arguments=json.dumps(arguments), call_id=call_id)

    def script(self, call_id: str, source: str) -> "Codex":
        """The JavaScript `exec` tool."""
        return self.add("response_item", type="custom_tool_call", name="exec", input=source, call_id=call_id)

    def output(self, call_id: str, output: Any, kind: str = "function_call_output") -> "Codex":
        """What a call returned."""
        return self.add("response_item", type=kind, call_id=call_id, output=output)

    def data(self) -> bytes:
        """The file."""
        return jsonl(*self.records)


def ran(output: str, code: int = 0, tokens: int = 7, wall: float = 0.5) -> str:
    """A finished command's output as Codex shows it."""
    return (
        f"Chunk ID: 3c8b44\nWall time: {wall} seconds\nProcess exited with code {code}\nOriginal token count: {tokens}\nOutput:\n{output}"
    )


def running(session: int, output: str = "") -> str:
    """A command's output so far."""
    return (
        f"Chunk ID: aa11bb\nWall time: 1.0 seconds\nProcess running with session ID {session}\nOriginal token count: 0\nOutput:\n{output}"
    )


# --- mini-swe-agent ---------------------------------------------------------------------------------------------------

MINI_TASK = """<pr_description>
Consider the following PR description:
Cart total ignores the discount
Steps: add two items.
</pr_description>

<instructions>
# Task Instructions
Provide exactly ONE bash command.
</instructions>"""


def thought(text: str, line: str, created: int | None = None) -> dict[str, Any]:
    """A version 1 reply with one command."""
    message: dict[str, Any] = {"role": "assistant", "content": f"THOUGHT: {text}\n\n```bash\n{line}\n```"}
    if created:
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        message["extra"] = {"response": {"created": created, "usage": usage}}
    return message


def saw(output: str, code: int = 0) -> dict[str, Any]:
    """A version 1 observation."""
    return {"role": "user", "content": f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>"}


PATCH = "diff --git a/shop/cart.py b/shop/cart.py\n--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -1 +1 @@\n-total\n+total - discount\n"


def mini(*messages: Any, instance: str | None = "acme__shop-17", form: str = "mini-swe-agent-1", **info: Any) -> bytes:
    """A trajectory document with system prompt, task, `messages` and the submitted patch."""
    full = [
        {"role": "system", "content": "You can interact with a shell."},
        {"role": "user", "content": MINI_TASK},
        *messages,
        {"role": "user", "content": info.get("submission", PATCH)},
    ]
    told = {
        "exit_status": "Submitted",
        "submission": PATCH,
        "model_stats": {"instance_cost": 0.25, "api_calls": 2},
        "mini_version": "1.15.0",
        "config": {"model": {"model_name": "acme/model-3"}, "environment": {"cwd": "/testbed"}, "environment_type": "x.DockerEnvironment"},
        **info,
    }
    document = {"info": told, "messages": full, "trajectory_format": form}
    if instance:
        document["instance_id"] = instance
    return json.dumps(document, indent=2).encode()
