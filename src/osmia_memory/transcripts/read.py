"""Files of finished runs -> transcripts. Which reader a file needs is decided by its content, never by its name."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Skip, Transcript
from osmia_memory.transcripts import (
    aider,
    aider_analytics,
    claude_code,
    claude_stream,
    cline,
    codex,
    codex_exec,
    gemini_cli,
    mini_swe,
    opencode,
    openhands,
    swe_agent,
    taskrun,
)
from osmia_memory.transcripts.context import Context, ReadOptions
from osmia_memory.transcripts.records import Content, take_apart
from osmia_memory.transcripts.sidecar import is_sidecar
from osmia_memory.transcripts.sources import Source, expected_to_be_one, sources

__all__ = ["READERS", "ReadOptions", "Reader", "Source", "read", "read_all", "read_source"]


class Reader(NamedTuple):
    """One format. `sniff` looks at the file's first objects; `read` makes transcripts of a file it recognised."""

    engine: str
    files: str  # how a person knows the format
    sniff: Callable[[list[dict[str, Any]]], bool]
    read: Callable[[Content, Context], list[Transcript]]


READERS: tuple[Reader, ...] = (
    Reader(mini_swe.ENGINE, "mini-swe-agent *.traj.json", mini_swe.sniff, mini_swe.read),
    Reader(swe_agent.ENGINE, "SWE-agent *.traj", swe_agent.sniff, swe_agent.read),
    Reader(openhands.ENGINE, "OpenHands events or output.jsonl", openhands.sniff, openhands.read),
    Reader(codex_exec.ENGINE, "`codex exec --json` output", codex_exec.sniff, codex_exec.read),
    Reader(claude_stream.ENGINE, "Claude Code stream-json output", claude_stream.sniff, claude_stream.read),
    Reader(codex.ENGINE, "Codex rollout-*.jsonl", codex.sniff, codex.read),
    Reader(claude_code.ENGINE, "Claude Code session *.jsonl", claude_code.sniff, claude_code.read),
    Reader(gemini_cli.ENGINE, "Gemini CLI session-*.json", gemini_cli.sniff, gemini_cli.read),
    Reader(opencode.ENGINE, "opencode export or storage", opencode.sniff, opencode.read),
    Reader(cline.ENGINE, "Cline messages.json or api_conversation_history.json", cline.sniff, cline.read),
    Reader(aider_analytics.ENGINE, "Aider analytics log", aider_analytics.sniff, aider_analytics.read),
    Reader("any", "TaskRun JSON or JSONL", taskrun.sniff, taskrun.read),
)


class TextReader(NamedTuple):
    """A format that is no JSON. `sniff` looks at the bytes; `read` is given the lines."""

    engine: str
    files: str
    sniff: Callable[[bytes], bool]
    read: Callable[[Content, Context], list[Transcript]]


TEXT_READERS: tuple[TextReader, ...] = (TextReader(aider.ENGINE, "Aider .aider.chat.history.md", aider.sniff, aider.read),)

# First objects looked at, then more: a session may begin with a page of housekeeping.
_HEADS = (5, 80)


def read(source: Source, options: ReadOptions) -> list[Transcript]:
    """All runs of one file, redacted.

    Raises:
        TranscriptError: nothing recognises the file, or it holds no run.
    """
    text_reader = next((r for r in TEXT_READERS if r.sniff(source.data)), None)
    if text_reader:
        return text_reader.read(Content(len(source.data), source.data.split(b"\n"), []), Context.of(source, options))
    content = take_apart(source.data, source.name)
    reader = next((r for count in _HEADS for r in READERS if r.sniff(content.head(count))), None)
    if reader is None:
        formats = ", ".join([*(r.files for r in READERS), *(r.files for r in TEXT_READERS)])
        raise TranscriptError(
            f"{source.name}: {_looks_like(content)}; none of the known formats ({formats}). "
            "Pass the run as TaskRun JSON: its fields and an `events` list."
        )
    return reader.read(content, Context.of(source, options))


def read_source(source: Source, options: ReadOptions) -> list[Transcript | Skip]:
    """All runs of one file, or a `Skip` if it could not be read; nothing for files that were walked past."""
    try:
        return [*read(source, options)]
    except TranscriptError as error:
        if is_sidecar(source.name):
            return [Skip(source.name, "accompanies a transcript: it is read together with it")]
        if not source.walked or expected_to_be_one(source.name):
            return [Skip(source.name, str(error).removeprefix(f"{source.name}: "))]
        return []


def read_all(paths: Iterable[str], options: ReadOptions, stdin: bytes | None = None) -> Iterator[Transcript | Skip]:
    """The transcripts behind `paths`, file by file, and a `Skip` for each file that could not be read.

    Of folders, globs and archives, files whose name says that they are no transcript are passed over without a word.
    """
    for item in sources(paths, stdin):
        if isinstance(item, Skip):
            yield item
        else:
            yield from read_source(item, options)


# What a file of a format without a reader has in its first objects.
_STRANGERS: tuple[tuple[str, frozenset[str]], ...] = (
    ("recorded replies of a Gemini model, not a session", frozenset({"method", "response"})),
)


def _looks_like(content: Content) -> str:
    head = content.head(_HEADS[0])
    name = next((name for name, keys in _STRANGERS if any(keys <= o.keys() for o in head)), None)
    if name:
        return f"looks like {name}"
    shape = "JSON" if content.documents else "JSONL"
    keys = ", ".join(list(head[0])[:8]) if head else ""
    return f"{shape} whose first object has the keys {keys}" if keys else f"{shape} without objects"
