"""Which records of a Codex rollout are its own: a fork or sub-agent copies its parent's history, re-stamped, into its file."""

import re
from datetime import timedelta
from typing import Any

from osmia_memory.transcripts.events import when, whole
from osmia_memory.transcripts.records import Record, Skips

_SPAWNED = b"You are the newly spawned agent."  # the last record of a history copied for a sub-agent
_BURST = timedelta(seconds=1)  # a copied history is stamped within milliseconds


def own_start(records: list[Record], meta: dict[str, Any]) -> int:
    """Index of the first record that is the session's own: 0, unless it began as a copy of another's history."""
    own_id = str(meta.get("id", ""))
    copied_metas = [
        i for i, r in enumerate(records) if r.value.get("type") == "session_meta" and str(r.value["payload"].get("id", "")) != own_id
    ]
    if not copied_metas and not meta.get("forked_from_id") and not parent_of(meta):
        return 0
    born = uuid_time(own_id)
    turns = [i for i, r in enumerate(records) if _turn_id(r) is not None]
    ages = [uuid_time(str(_turn_id(records[i]))) for i in turns]
    if born is not None and ages and all(age is not None for age in ages):
        old = [i for i, age in zip(turns, ages, strict=True) if age is not None and age < born]
        if not old and not copied_metas:
            return 0
        return next((i for i, age in zip(turns, ages, strict=True) if age is not None and age >= born), len(records))
    return _after_burst(records, copied_metas)


def _after_burst(records: list[Record], copied_metas: list[int]) -> int:
    """Where ids tell nothing: the first turn stamped after the moment in which the history was copied."""
    if not copied_metas:
        return 0
    spawned = next((i for i, r in enumerate(records) if _SPAWNED in r.raw), copied_metas[-1])
    copied_at = when(records[spawned].value.get("timestamp"))
    turns = [i for i in range(spawned, len(records)) if _turn_id(records[i]) is not None]
    for i in turns or (i for i in range(spawned, len(records)) if _is_user_message(records[i])):
        stamp = when(records[i].value.get("timestamp"))
        if spawned != copied_metas[-1] or copied_at is None or (stamp is not None and stamp - copied_at > _BURST):
            return i
    return len(records)


def _is_user_message(record: Record) -> bool:
    payload = record.value["payload"]
    return "user" in (payload.get("role"), str(payload.get("type")).removesuffix("_message"))


def copied_tokens(records: list[Record]) -> tuple[int, int]:
    """(in, out) of the last total in a copied history: the totals of the copy go on from there."""
    for record in reversed(records):
        payload = record.value["payload"]
        if payload.get("type") == "token_count" and (usage := total_tokens(payload)):
            return usage
    return (0, 0)


def total_tokens(payload: dict[str, Any]) -> tuple[int, int] | None:
    """(in, out) of a `token_count` event's running total; None if it has none."""
    info = payload.get("info")
    usage = info.get("total_token_usage") if isinstance(info, dict) else None
    if not isinstance(usage, dict):
        return None
    return whole(usage.get("input_tokens")) or 0, whole(usage.get("output_tokens")) or 0


def _turn_id(record: Record) -> Any:
    """The id of the turn that the record opens, or None."""
    value, payload = record.value, record.value["payload"]
    opens = value.get("type") == "turn_context" or (
        value.get("type") == "event_msg" and payload.get("type") in ("task_started", "turn_started")
    )
    return payload.get("turn_id", "") if opens else None


def uuid_time(text: str) -> int | None:
    """Milliseconds of a version 7 UUID, or None."""
    match = re.fullmatch(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", text, re.I)
    return int(match[1] + match[2], 16) if match else None


def parent_of(meta: dict[str, Any]) -> str | None:
    """The session that this one was forked or spawned from."""
    source = meta.get("source")
    sub = source.get("subagent") if isinstance(source, dict) else None
    spawn = sub.get("thread_spawn") if isinstance(sub, dict) else None
    spawned_by = spawn.get("parent_thread_id") if isinstance(spawn, dict) else None
    found = meta.get("forked_from_id") or spawned_by or meta.get("parent_thread_id")
    return str(found) if found else None


def without_repeats(records: list[Record], skips: Skips) -> list[Record]:
    """Drop response items that repeat an earlier line byte for byte."""
    kept: list[Record] = []
    seen: set[bytes] = set()
    for record in records:
        if (
            record.value.get("type") == "response_item"
            and record.value["payload"].get("type") != "reasoning"
            and record.value.get("timestamp")
        ):
            if record.raw in seen and record.raw.count(b'}{"') == 0:
                skips.add(record.number, "record repeats an earlier one")
                continue
            seen.add(record.raw)
        kept.append(record)
    return kept
