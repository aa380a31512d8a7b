"""Outcomes without transcripts: which engine was given which task, and whether it was resolved. Pure: bytes -> rows and skips.

Read by content: `{"instance": true, ...}`; a list, or an object with a list, of rows; JSONL of rows; `resolved_ids` beside `unresolved_ids`. A
file that lists only what was resolved says nothing of the rest: it needs the instances there were (`of`).
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from osmia_memory.models import Outcome, Skip

_INSTANCE = re.compile(r"^(?:instance_)?(?P<org>[A-Za-z0-9][\w.-]*?)__(?P<name>[\w.-]+?)-(?:\d+|[0-9a-f]{7,40}(?:-v\w+)?)$")
_ID = ("instance_id", "instanceId", "task_id", "taskId", "session_id", "sessionId", "id")
_RESOLVED = ("resolved", "success", "passed")
_RESOLVED_LISTS = ("resolved_ids", "resolvedIds", "resolved")
_UNRESOLVED_LISTS = ("unresolved_ids", "unresolvedIds", "unresolved", "error_ids", "errorIds", "empty_patch_ids")
_ENGINE, _MODEL = ("engine", "agent", "agent_name"), ("model", "model_name", "model_name_or_path")
_WORDS: Mapping[str, Outcome] = {
    "success": "success", "resolved": "success", "passed": "success", "failure": "failure", "failed": "failure", "unresolved": "failure",
    "partial": "partial", "unknown": "unknown",
}  # fmt: skip


class OutcomeRow(NamedTuple):
    """One engine's attempt at one task. Figures that the row does not give are None."""

    instance: str
    outcome: Outcome
    repo: str | None
    engine: str | None = None
    model: str | None = None
    task_type: str | None = None
    language: str | None = None
    at: datetime | None = None
    duration_s: float | None = None
    cost_usd: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    base_commit: str | None = None


def repo_of(instance: str) -> str | None:
    """`org/name` of an instance id such as `org__name-123`; None if it is of another form."""
    match = _INSTANCE.match(instance)
    return f"{match['org']}/{match['name']}" if match else None


def read(data: bytes, name: str, of: Collection[str] = ()) -> Iterator[OutcomeRow | Skip]:
    """The rows of one file, in its order; what cannot be read comes out as `Skip` with its place. `of` are all instances there were."""
    text = data.decode("utf-8-sig", "replace")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        yield from _lines(text, name)
        return
    yield from _document(whole, name, of)


def instances(data: bytes, name: str) -> set[str]:
    """The ids of all instances that a file names."""
    return {row.instance for row in read(data, name) if isinstance(row, OutcomeRow)}


def _lines(text: str, name: str) -> Iterator[OutcomeRow | Skip]:
    if not any(line.lstrip().startswith("{") for line in text.split("\n")):
        yield Skip(name, "no outcome rows: it is neither JSON nor JSONL")
        return
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            yield Skip(f"{name}:{number}", "no JSON")
            continue
        yield _row(value, f"{name}:{number}")


def _document(whole: Any, name: str, of: Collection[str]) -> Iterator[OutcomeRow | Skip]:
    if isinstance(whole, list):
        yield from (_row(value, f"{name}[{n}]") for n, value in enumerate(whole))
        return
    if not isinstance(whole, dict) or not whole:
        yield Skip(name, "no outcome rows: it holds neither rows, nor an object of instance -> resolved, nor lists of ids")
        return
    if all(isinstance(v, bool) for v in whole.values()):
        yield from (OutcomeRow(key, _of(value), repo_of(key)) for key, value in whole.items())
        return
    resolved, unresolved = _ids(whole, _RESOLVED_LISTS), _ids(whole, _UNRESOLVED_LISTS)
    if resolved is not None:
        if unresolved is None and not of:
            yield Skip(name, "it lists only what was resolved; give a file that names all instances with --of")
            return
        rest = set(unresolved or ()) | (set(of) - set(resolved))
        yield from (OutcomeRow(i, _of(i in set(resolved)), repo_of(i)) for i in sorted({*resolved, *rest}))
        return
    listed = [v for v in whole.values() if isinstance(v, list) and v and all(isinstance(x, dict) for x in v)]
    if len(listed) == 1:
        yield from (_row(value, f"{name}[{n}]") for n, value in enumerate(listed[0]))
    elif all(isinstance(v, dict) for v in whole.values()):
        yield from (_row({"instance_id": key, **value}, f"{name}[{key!r}]") for key, value in whole.items())
    else:
        yield _row(whole, name)


def _ids(whole: Mapping[str, Any], names: Collection[str]) -> list[str] | None:
    lists = [whole[n] for n in names if isinstance(whole.get(n), list) and all(isinstance(x, str) for x in whole[n])]
    return [i for found in lists for i in found] if lists else None


def _row(value: Any, where: str) -> OutcomeRow | Skip:
    if not isinstance(value, dict):
        return Skip(where, f"a row is an object, this is {type(value).__name__}")
    instance = _text(value, _ID)
    if instance is None:
        return Skip(where, f"no id of a task ({', '.join(_ID)})")
    verdict = next((value[n] for n in _RESOLVED if isinstance(value.get(n), bool)), None)
    word = _WORDS.get(str(value.get("outcome", "")).lower())
    if verdict is None and word is None:
        return Skip(where, "it does not say whether the task was resolved")
    millis = _number(value, ("durationMs", "duration_ms"))
    try:
        return OutcomeRow(
            instance,
            word if verdict is None and word is not None else _of(bool(verdict)),
            _text(value, ("repo", "repository")) or repo_of(instance),
            _text(value, _ENGINE),
            _text(value, _MODEL),
            _text(value, ("task_type", "taskType")),
            _text(value, ("language",)),
            _time(_text(value, ("timestamp", "finished_at", "at", "date"))),
            millis / 1000 if millis is not None else _number(value, ("duration_s", "duration")),
            _number(value, ("costUsd", "cost_usd", "cost")),
            _whole(_number(value, ("inputTokens", "tokens_in", "input_tokens"))),
            _whole(_number(value, ("outputTokens", "tokens_out", "output_tokens"))),
            _text(value, ("commitHash", "base_commit")),
        )
    except ValueError as error:
        return Skip(where, str(error))


def _of(resolved: bool) -> Outcome:
    return "success" if resolved else "failure"


def _text(value: Mapping[str, Any], names: Collection[str]) -> str | None:
    return next(
        (str(value[n]) for n in names if isinstance(value.get(n), str | int) and not isinstance(value[n], bool) and value[n] != ""), None
    )


def _number(value: Mapping[str, Any], names: Collection[str]) -> float | None:
    found = next((value[n] for n in names if isinstance(value.get(n), int | float) and not isinstance(value[n], bool)), None)
    return float(found) if found is not None and found >= 0 and found < 1e15 else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        return None  # a month ("2025-12") is no time of a run
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
