"""OpenHands: event streams of both versions (a list, lines, or a folder with a file for each event) and evaluation rows.

An evaluation's `output.jsonl` holds a run a line, with its events in `history`; the resolver's rows name an issue instead of
an instance. What the events say is read elsewhere; here is where they come from and what the row says about them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Environment, Signal, Transcript
from osmia_memory.transcripts import benchmark, openhands_v0, openhands_v1
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import active_seconds, when, whole
from osmia_memory.transcripts.openhands_steps import Steps
from osmia_memory.transcripts.outcome import limit_reason
from osmia_memory.transcripts.records import MISREAD, Content, as_json, parse

ENGINE = "openhands"
_EVENT_FILE = re.compile(r"(?:event-)?(\d+)(?:-[0-9a-f-]{32,36})?\.json")
_CACHE_PAGE = re.compile(r"(?:^|[/:])event_cache/\d+-\d+\.json$")
_KINDS = re.compile(r"\w+Event|Condensation\w*|UserRejectObservation")
_MOUNTS = ("/workspace", "/workspace/project")
_ROW = frozenset({"git_patch", "test_result", "metrics", "instruction", "instance_id", "issue", "metadata", "instance", "error"})


@dataclass
class _Run:
    """One conversation: its events with their records, and what stands beside them."""

    events: list[tuple[int, Any]]
    row: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    session_id: str | None = None


def sniff(head: list[dict[str, Any]]) -> bool:
    """An event of either version, or a row whose history holds some."""
    return any(_is_event(d) or _is_row(d) for d in head)


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict) or "role" in value or "payload" in value:
        return False
    if isinstance(value.get("kind"), str) and _KINDS.fullmatch(value["kind"]):
        return "source" in value and "timestamp" in value
    named = isinstance(value.get("action"), str) or isinstance(value.get("observation"), str)
    return named and ("source" in value or "action_risk" in value or "cause" in value) and "thread_id" not in value


def _is_row(value: dict[str, Any]) -> bool:
    history = value.get("history")
    if not isinstance(history, list) or len(_ROW & value.keys()) < 2 or "trajectory" in value:
        return False
    first = next(_flat(history), (0, None))[1]
    return first is None or _is_event(first) or (isinstance(first, dict) and ("action" in first or "observation" in first))


def read(content: Content, context: Context) -> list[Transcript]:
    """One transcript for each row, or the one of the event stream. Of a folder of events, all are read with the first.

    Raises:
        TranscriptError: the file holds no run, or is one event of a folder that is read with its first.
    """
    if _is_single_event(content) and _is_part(context):
        return []
    if context.source.walked and _CACHE_PAGE.search(context.source.name):  # copies of the event files beside that folder
        return []
    found = []
    for run in _runs(content, context):
        reader = _Reader(run, context)
        reader.read_all()
        if reader.steps.log.events:
            found.append(context.assemble(reader.findings(), reader.steps.log, reader.raw()))
        else:
            context.skips.add(None, "a run without events")
    if not found:
        raise TranscriptError(f"{context.source.name}: OpenHands events without any message")
    return found


def _is_single_event(content: Content) -> bool:
    return len(content.documents) == 1 and _is_event(content.documents[0])


def _base(context: Context) -> str:
    return context.source.name.replace(":", "/").rsplit("/", 1)[-1]


def _neighbours(context: Context) -> list[str]:
    """Names of the event files of this folder, in their order; empty if the source is none of them."""
    if not _EVENT_FILE.fullmatch(_base(context)):
        return []
    numbered = [(int(m[1]), name) for name in context.source.siblings if (m := _EVENT_FILE.fullmatch(name))]
    return [name for _, name in sorted(numbered)]


def _is_part(context: Context) -> bool:
    """The file is read with another: silently in a folder, in words if it was named."""
    names = _neighbours(context)
    if not names or min(names[0], _base(context), key=_number) == _base(context):
        return False
    if not context.source.walked:
        raise TranscriptError(f"{context.source.name}: part of a conversation, which is read with {names[0]}")
    return True


def _number(name: str) -> int:
    match = _EVENT_FILE.fullmatch(name)
    return int(match[1]) if match else 0


def _runs(content: Content, context: Context) -> Iterator[_Run]:
    stream: list[tuple[int, Any]] = []
    for number, value in content.values(context.skips):
        items = list(enumerate(value)) if isinstance(value, list) else [(number, value)]
        for at, item in items:
            if isinstance(item, dict) and _is_row(item):
                yield _Run(list(_flat(item["history"])), item)
            else:
                stream += [(at, event) for _, event in _flat([item])]
    if stream:
        yield _folder(stream, context) if _is_single_event(content) else _Run(stream)


def _flat(history: list[Any]) -> Iterator[tuple[int, Any]]:
    """(place, event) of a history, which in older files is a list of [action, observation] pairs."""
    return enumerate(chain.from_iterable(item if isinstance(item, list) else (item,) for item in history))


def _folder(stream: list[tuple[int, Any]], context: Context) -> _Run:
    """The conversation whose first event file this is; with its state, if that lies where the SDK writes it."""
    events = list(stream)
    for name in _neighbours(context):
        if name != _base(context):
            event = parse(context.source.siblings[name])
            if event is None:
                context.skips.add(None, f"invalid JSON in {name}")
            else:
                events.append((_number(name), event))
    folders = context.source.name.replace(":", "/").split("/")[:-1]
    state = parse(context.source.siblings.get("../base_state.json", b""))
    named = folders[-2] if len(folders) > 1 and folders[-1] == "events" else None
    return _Run(events, state=state if isinstance(state, dict) else {}, session_id=named)


class _Reader:
    """Reads one run: its events in order, then what stands beside them."""

    def __init__(self, run: _Run, context: Context) -> None:
        self.run = run
        self.context = context
        self.steps = Steps(context.log())
        self.v0 = openhands_v0.Reader(self.steps)
        self.v1 = openhands_v1.Reader(self.steps)
        self.row = run.row
        instruction = self.row.get("instruction")
        if isinstance(instruction, str) and not any(_speaks(e) for _, e in run.events[:10]):
            self.v0.take({"action": "message", "source": "user", "args": {"content": instruction}})

    def read_all(self) -> None:
        """Every event; one of an unknown type or shape is named and skipped."""
        seen: set[str] = set()
        for number, event in self.run.events:
            self.steps.record = number
            try:
                if isinstance(event.get("id"), str):
                    if event["id"] in seen:
                        self.context.skips.add(number, "record repeats an earlier one")
                        continue
                    seen.add(event["id"])
                self.steps.ts = when(event.get("timestamp")) or self.steps.ts
                if not (isinstance(event.get("kind"), str) or "action" in event or "observation" in event):
                    self.context.skips.add(number, "no event")
                    continue
                reader = self.v1 if isinstance(event.get("kind"), str) else self.v0
                unknown = reader.take(event)
            except MISREAD:
                self.context.skips.add(number, "event of an unknown shape")
                continue
            if unknown:
                self.context.skips.add(number, f"unknown event {unknown[:60]!r}")
        if self.run.state:
            self._state()
        patch = _dict(self.row.get("test_result")).get("git_patch") or self.row.get("git_patch")
        self.steps.submitted(self.steps.record, patch)

    def _state(self) -> None:
        ending, tokens = self.steps.ending, self.steps.tokens
        try:
            self.v1.base_state(self.run.state)
        except MISREAD:
            self.context.skips.add(None, "base_state.json of an unknown shape")
        self.steps.ending, self.steps.tokens = self.steps.ending or ending, self.steps.tokens or tokens

    def raw(self) -> list[bytes | memoryview]:
        """The run's own bytes, for its version."""
        return [as_json(self.row).encode()] if self.row else [as_json(event).encode() for _, event in self.run.events]

    # --- the whole ----------------------------------------------------------------------------------------------------

    def findings(self) -> Findings:
        """What events and row say about the run."""
        steps, row = self.steps, self.row
        instance, issue = _dict(row.get("instance")), _dict(row.get("issue"))
        metrics = _dict(row.get("metrics"))
        total = _dict(metrics.get("accumulated_token_usage"))
        cost = metrics.get("accumulated_cost")
        names = tuple(str(n) for n in (row.get("instance_id") or instance.get("instance_id"),) if n)
        told = instance.get("repo") or (f"{issue['owner']}/{issue['repo']}" if issue.get("owner") and issue.get("repo") else None)
        model = _dict(_dict(row.get("metadata")).get("llm_config")).get("model")
        commit = row.get("base_commit") or instance.get("base_commit")
        return Findings(
            engine=ENGINE,
            session_id=self._session_id(names, issue),
            names=names,
            model=str(model) if model else steps.model,
            repo=str(told) if told else (steps.repo or next((r for n in names if (r := benchmark.repo_of_instance(n))), None)),
            cwd=None if steps.cwd in _MOUNTS else steps.cwd,  # where every repository is mounted names none
            base_commit=str(commit) if commit else None,
            environment=Environment(os="linux" if steps.interpreter else None, interpreter=steps.interpreter),
            duration_s=active_seconds(steps.log.events),
            cost_usd=float(cost) if isinstance(cost, int | float) and cost > 0 else steps.cost,  # 0: a model without a price
            tokens_in=whole(total.get("prompt_tokens")) or (steps.tokens[0] if steps.tokens else None),
            tokens_out=whole(total.get("completion_tokens")) or (steps.tokens[1] if steps.tokens else None),
            signals=list(self._signals()),
        )

    def _session_id(self, names: tuple[str, ...], issue: dict[str, Any]) -> str:
        """The conversation's own id; else the instance or issue, or the file's name, with the time it began."""
        own = self.steps.session_id or self.run.session_id
        if own:
            return own
        stem = re.sub(r"\.jsonl?$", "", _base(self.context))
        named = f"{issue.get('owner')}/{issue.get('repo')}#{issue.get('number')}" if issue else None
        began = next((e.ts for e in self.steps.log.events if e.ts), None)
        attempt = self.row.get("attempt")
        return (
            (names[0] if names else named or stem)
            + (f"@{began:%Y%m%dT%H%M%SZ}" if began else "")
            + (f"#{attempt}" if attempt is not None else "")
        )

    def _signals(self) -> Iterator[Signal]:
        """How the run ended: by its events, by the row's error, and by the tests if the row has their report."""
        error = self.row.get("error")
        if isinstance(error, str) and error.strip():
            limit = limit_reason(error) or re.search(r"maximum iteration|max(?:imum)? budget", error, re.I)
            yield Signal("limit" if limit else "exit_status", error.strip().splitlines()[0][:200])
        elif self.steps.ending:
            yield self.steps.ending
        if self.steps.claim:
            yield self.steps.claim
        if isinstance(self.row.get("success"), bool) and not self.steps.claim:  # the resolver asks a model, which is no test
            yield Signal("claim", "done" if self.row["success"] else "failed")
        result = _dict(self.row.get("test_result"))
        for report in (_dict(result.get("report")), _dict(self.row.get("report")), result):
            if isinstance(report.get("resolved"), bool):
                yield Signal("resolved", "true" if report["resolved"] else "false")
                return


def _speaks(event: Any) -> bool:
    """A message of the user, in either version."""
    return (
        isinstance(event, dict)
        and (event.get("action") == "message" or event.get("kind") == "MessageEvent")
        and event.get("source") != "agent"
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
