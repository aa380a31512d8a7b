"""Files that lie beside a transcript and say how the run ended or where it took place. Bytes in, values out.

`<stem>.meta.json` (a recorder's notes), `<stem>.outcome.json` (a given outcome), SWE-bench's `report.json` (the tested outcome) and
the later ones of a folder with a file for each event are read together with their transcript and are no transcripts themselves; so is what Cline
writes beside a task, and the single messages and parts of opencode's storage.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from osmia_memory.models import Outcome
from osmia_memory.transcripts import repo_key
from osmia_memory.transcripts.records import parse

OUTCOMES: frozenset[str] = frozenset(get_args(Outcome))
_NAMES = re.compile(
    r"(?:^|\.)(?:meta|outcome)\.json$|^(?:report|results?|all_preds|preds|metadata|(?:base_)?state)\.jsonl?$|^exit_statuses.*\.ya?ml$|^journal\.jsonl$|^event-0*[1-9]\d*-[0-9a-f-]{32,36}\.json$"
    r"|^(?:ui_messages|task_metadata)\.json$|^(?:msg|prt)_\w+\.json$",
    re.I,
)
_WORDS: Mapping[str, Outcome] = {
    "success": "success", "succeeded": "success", "passed": "success", "pass": "success", "resolved": "success", "ok": "success",
    "failure": "failure", "failed": "failure", "fail": "failure", "error": "failure", "unresolved": "failure",
    "partial": "partial", "partially": "partial", "unknown": "unknown",
}  # fmt: skip
_REASON_KEYS = ("failure_reason", "limit_reason", "watchdog_reason", "reason")


@dataclass(frozen=True, slots=True)
class Beside:
    """What the neighbouring files say. Everything is optional."""

    repo: str | None = None
    branches: tuple[str, ...] = ()
    model: str | None = None
    engine: str | None = None
    base_commit: str | None = None
    agent: str | None = None  # what kind of sub-agent the transcript is of
    labels: tuple[str, ...] = ()
    outcome: Outcome | None = None
    resolved: bool | None = None
    landed: str | None = None
    reason: str | None = None


def is_sidecar(name: str) -> bool:
    """The file's name says that it accompanies transcripts."""
    return bool(_NAMES.search(name.rsplit("/", 1)[-1]))


def stems(name: str) -> tuple[str, ...]:
    """What a sidecar of this file may be called before its `.meta.json`: `a.b.jsonl` -> (`a.b`, `a`)."""
    base = name.rsplit("/", 1)[-1]
    parts = base.split(".")
    return tuple(".".join(parts[:n]) for n in range(len(parts) - 1, 0, -1)) or (base,)


def read_beside(name: str, siblings: Mapping[str, bytes], ids: Iterable[str]) -> Beside:
    """Everything the neighbours of `name` say about it. `ids` are the names a test report may know the run by."""
    meta = _first(siblings, name, "meta.json")
    given = _first(siblings, name, "outcome.json")
    known = {*ids, *stems(name)}
    resolved = _verdict(parse(siblings.get("report.json", b"")), known)
    resolved = _verdict(parse(siblings.get("results.json", b"")), known, lists_only=True) if resolved is None else resolved
    outcome, own_verdict, reason = given_outcome(given)
    meta = meta if isinstance(meta, dict) else {}
    if outcome is None and own_verdict is None:
        outcome, own_verdict, reason = given_outcome({k: v for k, v in meta.items() if k in ("outcome", "resolved", *_REASON_KEYS)})
    return Beside(
        repo=_repo(meta),
        branches=tuple(b for b in _strings(meta.get("branches")) + _strings(meta.get("branch")) if b not in ("None", "HEAD", "")),
        model=_string(meta.get("model")),
        engine=_string(meta.get("engine")),
        base_commit=_string(meta.get("base_commit")),
        agent=_string(meta.get("agentType")),
        labels=tuple(_strings(meta.get("labels"))),
        outcome=outcome,
        resolved=own_verdict if own_verdict is not None else resolved,
        landed=_string(meta.get("outcome_git")) or _string(meta.get("landed")),
        reason=reason,
    )


def given_outcome(value: Any) -> tuple[Outcome | None, bool | None, str | None]:
    """(outcome, tested resolution, reason) of a word, or of an object with `outcome`, `resolved`, `reason`."""
    if isinstance(value, str):
        return as_outcome(value), None, None
    if not isinstance(value, dict):
        return None, None, None
    resolved = value.get("resolved")
    reason = next((r for key in _REASON_KEYS if (r := _string(value.get(key)))), None)
    return as_outcome(value.get("outcome")), resolved if isinstance(resolved, bool) else None, reason


def as_outcome(value: Any) -> Outcome | None:
    """The outcome that a word such as `passed` or `failed` means, or None."""
    return _WORDS.get(value.strip().lower()) if isinstance(value, str) else None


def _first(siblings: Mapping[str, bytes], name: str, ending: str) -> Any:
    for stem in stems(name):
        data = siblings.get(f"{stem}.{ending}")
        if data is not None:
            return parse(data)
    return None


def _verdict(report: Any, known: set[str], lists_only: bool = False) -> bool | None:
    """Tested resolution: `{resolved}`, `{id: {resolved}}`, or lists of ids that are resolved and not."""
    if not isinstance(report, dict):
        return None
    for key, verdict in (("resolved", True), ("resolved_ids", True), ("unresolved_ids", False), ("error_ids", False)):
        ids = report.get(key)
        if isinstance(ids, list) and known & {i for i in ids if isinstance(i, str)}:
            return verdict
    if lists_only:
        return None
    for value in (report, *(report[key] for key in known if key in report)):
        if isinstance(value, dict) and isinstance(value.get("resolved"), bool):
            return bool(value["resolved"])
    return None


def _repo(meta: Mapping[str, Any]) -> str | None:
    """`org/name` from `repo`, or from `source` of the form `org/name@ref:path`."""
    for key in ("repo", "repository", "source"):
        value = _string(meta.get(key))
        if value is None:
            continue
        found = repo_key.from_url(value)
        if found:
            return found
        value = value.split("@")[0].removesuffix(".git")
        if re.fullmatch(r"[\w.-]+(?:/[\w.-]+)+", value):
            return value
    return None


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [v for v in value if isinstance(v, str)] if isinstance(value, list) else []
