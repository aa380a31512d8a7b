"""opencode sessions: an export, the storage folder (by its session file), the server's event stream, `run --format json`.

All of them are messages with parts; a part or message that is told again replaces what was told before, and deltas only count
where the whole does not come.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Transcript
from osmia_memory.transcripts.context import Context
from osmia_memory.transcripts.opencode_run import ENGINE, Run, read_run
from osmia_memory.transcripts.records import MISREAD, Content, as_json, parse

__all__ = ["ENGINE", "read", "sniff"]

_OUTPUT_TYPES = frozenset({"step_start", "step_finish", "tool_use", "text", "reasoning", "error"})
_STREAM_PREFIXES = ("session.", "message.", "server.", "permission.", "question.", "todo.", "file.", "lsp.", "installation.", "pty.", "vcs.",
                    "command.", "mcp.", "project.", "tui.", "ide.", "worktree.", "workspace.", "global.", "plugin.", "catalog.", "models-dev.",
                    "reference.", "account.", "integration.")  # fmt: skip
_HOUSEKEEPING = frozenset({"session.idle", "session.diff", "session.status", "session.deleted", "session.compacted"})


def sniff(head: list[dict[str, Any]]) -> bool:
    """Ids of opencode's kinds (`ses_`, `msg_`, `prt_`) in one of its shapes."""
    return any(_is_export(r) or _is_event(r) or _is_output(r) or _is_session(r) or _is_message(r) for r in head)


def _is_export(r: dict[str, Any]) -> bool:
    return isinstance(r.get("messages"), list) and isinstance(r.get("info"), dict) and str(r["info"].get("id")).startswith("ses_")


def _is_event(r: dict[str, Any]) -> bool:
    event = r["payload"] if isinstance(r.get("payload"), dict) and "directory" in r else r
    return isinstance(event.get("properties"), dict) and str(event.get("type")).startswith(_STREAM_PREFIXES)


def _is_output(r: dict[str, Any]) -> bool:
    return str(r.get("type")) in _OUTPUT_TYPES and str(r.get("sessionID")).startswith("ses_") and ("part" in r or "error" in r)


def _is_session(r: dict[str, Any]) -> bool:
    return str(r.get("id")).startswith("ses_") and isinstance(r.get("time"), dict)


def _is_message(r: dict[str, Any]) -> bool:
    return str(r.get("sessionID")).startswith("ses_") and str(r.get("id")).startswith(("msg_", "prt_"))


def read(content: Content, context: Context) -> list[Transcript]:
    """One transcript for each session that the file tells of.

    Raises:
        TranscriptError: it holds no message with its parts.
    """
    if content.cut:
        context.skips.add(None, "the document is cut off")
    runs = _Runs(context)
    for number, value in content.values(context.skips):
        for item in value if isinstance(value, list) else (value,):
            try:
                runs.take(number, item)
            except MISREAD:
                context.skips.add(number, "record of an unknown shape")
    found = [t for run in runs.by_id.values() if (t := read_run(run, context))]
    if not found:
        raise TranscriptError(f"{context.source.name}: {runs.why_nothing}")
    return found


@dataclass
class _Runs:
    """The sessions of a file, gathered record by record."""

    context: Context
    by_id: dict[str, Run] = field(default_factory=dict)
    why_nothing: str = "opencode records without any message"

    def take(self, number: int, item: Any) -> None:
        """One record of whichever shape."""
        if not isinstance(item, dict):
            raise TypeError("a record is an object")
        if _is_export(item):
            self._export(item)
        elif _is_event(item):
            event = item["payload"] if "directory" in item and isinstance(item.get("payload"), dict) else item
            self._event(number, str(event["type"]), event["properties"], as_json(item).encode())
        elif _is_output(item):
            self._output(number, item)
        elif _is_session(item):
            self._stored(item)
        elif _is_message(item):
            self.why_nothing = "an opencode message without its session: give the session's file, or `opencode export SESSION`"
        else:
            self.context.skips.add(number, f"unknown record type {str(item.get('type'))[:60]!r}")

    def _run(self, session_id: Any) -> Run:
        return self.by_id.setdefault(str(session_id), Run(str(session_id)))

    def _export(self, item: dict[str, Any]) -> None:
        run = self._run(item["info"]["id"])
        run.info = item["info"]
        for place, told in enumerate(item["messages"]):
            message = run.message(place, str(told["info"]["id"]))
            message.info = told["info"]
            for part in told.get("parts") or ():
                message.put(place, part)
        run.raw.append(as_json(item).encode())

    def _event(self, number: int, kind: str, told: dict[str, Any], raw: bytes) -> None:
        """An event of the server's stream."""
        if kind in ("session.updated", "session.created"):
            self._run(told["info"]["id"]).info = told["info"]
        elif kind == "message.updated":
            self._run(told["info"]["sessionID"]).message(number, str(told["info"]["id"])).info = told["info"]
        elif kind == "message.part.updated":
            self._run(told["part"]["sessionID"]).message(number, str(told["part"]["messageID"])).put(number, told["part"])
        elif kind == "message.part.delta":
            self._run(told["sessionID"]).message(number, str(told["messageID"])).grow(number, told)
        elif kind == "message.removed":
            self._run(told["sessionID"]).messages.pop(str(told["messageID"]), None)
        elif kind == "message.part.removed":
            self._run(told["sessionID"]).message(number, str(told["messageID"])).parts.pop(str(told["partID"]), None)
        elif kind == "session.error":
            if told.get("sessionID"):
                self._run(told["sessionID"]).errors.append((number, None, told.get("error")))
        elif kind.startswith(("session.", "message.")) and kind not in _HOUSEKEEPING:
            self.context.skips.add(number, f"unknown record type {kind[:60]!r}")
        session_id = told.get("sessionID") or (told.get("info") or told.get("part") or {}).get("sessionID")
        if str(session_id) in self.by_id:
            self.by_id[str(session_id)].raw.append(raw)

    def _output(self, number: int, item: dict[str, Any]) -> None:
        """A line of `opencode run --format json`: the agent's parts, without the prompt."""
        run = self._run(item["sessionID"])
        run.raw.append(as_json(item).encode())
        if item["type"] == "error":
            run.errors.append((number, item.get("timestamp"), item.get("error")))
            return
        part = item["part"]
        message = run.message(number, str(part["messageID"]))
        message.info = message.info or {"role": "assistant", "time": {"created": item.get("timestamp")}}
        message.put(number, {"time": {"start": item.get("timestamp")}, **part})

    def _stored(self, info: dict[str, Any]) -> None:
        """A session's file in the storage folder: its messages and their parts lie in folders beside it."""
        run = self._run(info["id"])
        run.info = info
        run.raw.append(as_json(info).encode())
        files = list(_message_files(Path(self.context.source.name), run.session_id))
        if not files:
            self.why_nothing = "an opencode session's file without the folder of its messages; unpack an archive, or use `opencode export`"
        loaded = [(told, raw, path) for path in files if (told := parse(raw := _bytes(path))) and isinstance(told, dict)]
        loaded.sort(key=lambda each: (str(_created(each[0])), str(each[0].get("id"))))
        for place, (told, raw, path) in enumerate(loaded):
            message = run.message(place, str(told.get("id")))
            message.info = told
            run.raw.append(raw)
            for part_path in _part_files(path, run.session_id):
                raw = _bytes(part_path)
                part = parse(raw)
                if isinstance(part, dict):
                    message.put(place, part)
                    run.raw.append(raw)
                else:
                    self.context.skips.add(place, "invalid JSON in the file of a part")
        if len(loaded) < len(files):
            self.context.skips.add(None, f"{len(files) - len(loaded)} message files that are no JSON")


def _created(info: dict[str, Any]) -> Any:
    time = info.get("time")
    return time.get("created") if isinstance(time, dict) else 0


def _message_files(session: Path, session_id: str) -> Iterable[Path]:
    """`storage/session/<project>/<id>.json` -> `storage/message/<id>/*.json`; in older versions `session/info` and `session/message`."""
    if session.name != f"{session_id}.json" or len(session.parts) < 3:
        return []
    for folder in (session.parents[2] / "message" / session_id, session.parents[1] / "message" / session_id):
        found = sorted(folder.glob("msg_*.json"))
        if found:
            return found
    return []


def _part_files(message: Path, session_id: str) -> list[Path]:
    """`storage/part/<message>/*.json`, in older versions `session/part/<session>/<message>/*.json`."""
    root = message.parents[2]
    return sorted([*(root / "part" / message.stem).glob("*.json"), *(root / "part" / session_id / message.stem).glob("*.json")])


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
