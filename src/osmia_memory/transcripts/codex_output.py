"""What Codex tools return -> text, exit code, time and tokens. Pure; knows every shape the output has had."""

import re
from dataclasses import dataclass, field
from typing import Any

from osmia_memory.transcripts.events import whole
from osmia_memory.transcripts.records import parse

_HEADER = re.compile(
    r"(?:Chunk ID: \S+\n)?(?:Exit code: (?P<early>-?\d+)\n)?Wall time:? (?P<wall>[\d.]+) seconds?\n"
    r"(?:Process exited with code (?P<code>-?\d+)\n|Process running with session ID (?P<session>\w+)\n)?"
    r"(?:Original token count: (?P<tokens>\d+)\n)?(?:Total output lines: \d+\n)?(?:Output:(?:\n|\Z))?(?:Total output lines: \d+\n\n?)?",
)
_SCRIPT = re.compile(
    r"Script (?P<state>completed|failed|terminated|running with cell ID (?P<cell>\w+))\n(?:Wall time:? (?P<wall>[\d.]+) seconds?\n)?(?:Output:(?:\n|\Z))?"
)
_HARNESS = (
    ("interrupted", re.compile(r"aborted by user|(?:command|tool call) (?:was )?(?:aborted|interrupted|cancelled)", re.I)),
    ("refused", re.compile(r"(?:exec command |apply_patch |patch )?rejected(?: by user|:)|(?:user|approval) (?:denied|rejected)|.{0,40}blocked by policy", re.I)),
)  # fmt: skip
_FAILED = re.compile(
    r"(?:exec_command|write_stdin|apply_patch|collab spawn|\w+ tool) (?:verification )?failed\b|failed to parse (?:function )?arguments|unsupported call|unknown (?:tool|process|session)|execution error|err:|Error:",
    re.I,
)
_TIMED_OUT = re.compile(r"timed out after \d+|command timed out", re.I)
_CUT = re.compile(r"…\d+ (?:tokens|chars) truncated…|\[\.\.\. omitted \d+ of \d+ lines \.\.\.\]|^Warning: truncated output", re.M)


@dataclass(frozen=True, slots=True)
class Output:
    """One tool's return. `session` is set while its process still runs; `cell` while its script does."""

    text: str
    exit_code: int | None = None
    duration_s: float | None = None
    is_error: bool = False
    session: str | None = None
    cell: str | None = None
    args: dict[str, Any] = field(default_factory=dict)
    parts: tuple[str, ...] = ()  # of a script: what it printed, part by part


def read_output(output: Any) -> Output:
    """Take the harness's header off an output: plain text, JSON text, a list of parts, or an object."""
    if isinstance(output, list):
        return _from_parts([str(p.get("text")) for p in output if isinstance(p, dict) and isinstance(p.get("text"), str)])
    if isinstance(output, dict):
        return _from_object(output) or _from_text(str(output.get("content") or output.get("output") or ""))
    text = output if isinstance(output, str) else ""
    if text.startswith("{"):
        found = _from_object(parse(text))
        if found:
            return found
    return _from_text(text)


def _from_object(value: Any) -> Output | None:
    """`{"output", "metadata": {"exit_code", "duration_seconds"}}`, or what a script's `exec_command` returns."""
    if not isinstance(value, dict) or not isinstance(value.get("output"), str):
        return None
    meta = value["metadata"] if isinstance(value.get("metadata"), dict) else value
    code = whole(meta.get("exit_code"))
    wall = meta.get("duration_seconds", meta.get("wall_time_seconds"))
    if meta is value and not {"exit_code", "wall_time_seconds", "session_id", "chunk_id"} & value.keys():
        return None
    session = value.get("session_id")
    tokens = value.get("original_token_count")
    return _flagged(
        value["output"],
        code,
        float(wall) if isinstance(wall, int | float) else None,
        whole(tokens),
        session=str(session) if session is not None and code is None else None,
    )


def _from_text(text: str) -> Output:
    if text.startswith("Script "):
        return _from_parts([text])
    match = None
    if text.startswith("Command: "):  # the command may have many lines
        match = re.search(rf"^{_HEADER.pattern}", text, re.M)
    elif text.startswith(("Chunk ID: ", "Wall time", "Exit code: ")):
        match = _HEADER.match(text)
    if match is None:
        failed = bool(_FAILED.match(text))
        return _flagged(text, None, None, None, is_error=failed)
    code = match["code"] or match["early"]
    tokens = match["tokens"]
    return _flagged(
        text[match.end() :],
        int(code) if code else None,
        float(match["wall"]),
        int(tokens) if tokens else None,
        session=match["session"],
    )


def _from_parts(parts: list[str]) -> Output:
    """A list of text parts: the first one is, or begins with, the header."""
    first = parts[0] if parts else ""
    script = _SCRIPT.match(first)
    if script is None:
        return _flagged("\n".join(parts), None, None, None) if first.startswith("Script ") else _from_text("\n".join(parts))
    rest = [p for p in (first[script.end() :], *parts[1:]) if p.strip()]
    inner = [_from_object(parse(p)) if p.lstrip().startswith("{") else None for p in rest]
    texts = [found.text if found else p for found, p in zip(inner, rest, strict=True)]
    single = inner[0] if len(inner) == 1 else None
    tokens = single.args.get("output_tokens") if single else None
    return _flagged(
        "\n".join(texts),
        single.exit_code if single else None,
        float(script["wall"]) if script["wall"] else None,
        tokens,
        is_error=script["state"] == "failed",
        session=single.session if single else None,
        cell=script["cell"],
        parts=tuple(rest),
    )


def _flagged(
    text: str,
    code: int | None,
    wall: float | None,
    tokens: int | None,
    *,
    is_error: bool = False,
    session: str | None = None,
    cell: str | None = None,
    parts: tuple[str, ...] = (),
) -> Output:
    args: dict[str, Any] = {}
    if tokens is not None:
        args["output_tokens"] = tokens
    harness = next((word for word, pattern in _HARNESS if pattern.match(text)), None) if code is None else None
    if harness:
        args["harness"] = harness
    ended_early = code == 124 or (code is None and is_error) or text.startswith("command timed out")
    if ended_early and _TIMED_OUT.search(text[:300]):
        args["timeout"] = True
        code = None
    if ("truncated" in text or "omitted" in text) and _CUT.search(text):
        args["truncated"] = True
    failed = is_error or harness is not None or "timeout" in args or (code is not None and code != 0)
    return Output(text, code, wall, failed, session, cell, args, parts)
