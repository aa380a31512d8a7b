"""Aider's `--analytics-log`: lines of `{event, properties, user_id, time}`. A run is one launch that sent messages.

It holds no text: what a run cost, which models and commands it used, how it ended. Who ran it is not kept.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Signal, Transcript
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import EventLog, when, whole
from osmia_memory.transcripts.records import Content, Record, decode

ENGINE = "aider"
_KEPT = ("main_model", "edit_format", "prompt_tokens", "completion_tokens", "cost", "reason")
_SILENT = frozenset({"launched", "exit", "auto_commits", "repo", "no-repo", "message_send_starting"})


def sniff(head: list[dict[str, Any]]) -> bool:
    """Lines with an `event`, its `properties` and a `user_id`."""
    return any(isinstance(r.get("event"), str) and isinstance(r.get("properties"), dict) and "user_id" in r for r in head)


def read(content: Content, context: Context) -> list[Transcript]:
    """One transcript for each launch that sent a message.

    Raises:
        TranscriptError: none did.
    """
    records = decode(content.lines, context.skips)
    found = []
    seen: Counter[str] = Counter()
    for launch in _launches([r for r in records if _is_event(r, context)]):
        if not any(r.value["event"] == "message_send" for r in launch):
            continue  # a look at the help, a wrong option: nothing was asked
        log = context.log()
        findings = _findings(launch, log)
        seen[findings.session_id] += 1
        findings.segment = str(seen[findings.session_id]) if seen[findings.session_id] > 1 else ""
        found.append(context.assemble(findings, log, [r.raw for r in launch]))
    if not found:
        raise TranscriptError(f"{context.source.name}: an Aider analytics log in which no message was sent")
    return found


def _is_event(record: Record, context: Context) -> bool:
    known = isinstance(record.value.get("event"), str) and isinstance(record.value.get("properties"), dict)
    if not known:
        context.skips.add(record.number, "no analytics event")
    return known


def _launches(records: Iterable[Record]) -> list[list[Record]]:
    """The events from one start to the next; a log may begin within one."""
    found: list[list[Record]] = [[]]
    for record in records:
        if record.value["event"] == "launched":
            found.append([])
        found[-1].append(record)
    return found


def _findings(launch: list[Record], log: EventLog) -> Findings:
    """What the events of one launch say about it."""
    models: Counter[str] = Counter()
    tokens, cost, signals = [0, 0], 0.0, []
    for record in launch:
        name, told = record.value["event"], record.value["properties"]
        at = None
        if name not in _SILENT:
            args = {key: told[key] for key in _KEPT if isinstance(told.get(key), str | int | float)}
            at = log.add(record.number, "system", name, ts=when(record.value.get("time")), tool="analytics", args=args)
        if name == "message_send":
            models[str(told.get("main_model"))] += 1
            tokens[0] += whole(told.get("prompt_tokens")) or 0
            tokens[1] += whole(told.get("completion_tokens")) or 0
            price = told.get("cost")
            cost += price if isinstance(price, int | float) and not isinstance(price, bool) else 0.0
        elif name == "exit":
            done = str(told.get("reason")).startswith("Completed")
            signals = [Signal("exit_status", "completed" if done else "session_end", at)]
    times = [t for r in launch if (t := when(r.value.get("time")))]
    started = min(times) if times else None
    return Findings(
        engine=ENGINE,
        session_id=f"analytics-{started:%Y-%m-%dT%H:%M:%S}" if started else "analytics",
        model=models.most_common(1)[0][0],
        description="",
        started_at=started,
        finished_at=max(times) if times else None,
        cost_usd=round(cost, 6),
        tokens_in=tokens[0] or None,
        tokens_out=tokens[1] or None,
        signals=signals,
    )
