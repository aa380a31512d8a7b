"""Builders for tests, ours and our users': transcripts, facts, a clock that stands still and a model that says what it is told."""

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel

from osmia_memory import ids
from osmia_memory.budget import Budget
from osmia_memory.llm import Attempt, Completion, Reading, Request, State, read_text
from osmia_memory.models import Candidate, Claim, Event, EventKind, Evidence, Fact, TaskRun, Transcript

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


def a_run(
    session_id: str = "s1",
    *,
    tenant: str = "ticketing",
    engine: str = "codex",
    repo: str | None = "acme/shop",
    at: datetime = NOW,
    **changes: Any,
) -> TaskRun:
    """A finished run; `changes` are any other fields of `TaskRun`."""
    run = TaskRun(
        run_id=ids.run_id(tenant, engine, session_id),
        tenant_id=tenant,
        engine=engine,
        session_id=session_id,
        version="v1",
        repo=repo,
        title="a task",
        description="a task",
        task_type="bug_fix",
        cwd="/home/dev/shop",
        started_at=at,
        finished_at=at + timedelta(minutes=5),
    )
    return replace(run, **changes)


class Tape:
    """Records a transcript step by step: `Tape().sh("pytest", "1 passed in 0.1s").transcript()`."""

    def __init__(self, run: TaskRun | None = None) -> None:
        self.run = run or a_run()
        self.events: list[Event] = []

    def add(self, kind: EventKind, text: str = "", **fields: Any) -> "Tape":
        """Any event; time moves on by a second an event."""
        index = len(self.events)
        assert self.run.started_at is not None
        self.events.append(Event(index, index, kind, text, ts=self.run.started_at + timedelta(seconds=index), **fields))
        return self

    def user(self, text: str) -> "Tape":
        """A turn of a person."""
        return self.add("user", text)

    def say(self, text: str) -> "Tape":
        """A message of the agent."""
        return self.add("assistant", text)

    def sh(
        self,
        line: str,
        output: str = "",
        exit_code: int | None = 0,
        *,
        seconds: float | None = None,
        origin: str | None = None,
        args: Mapping[str, Any] | None = None,
        call_args: Mapping[str, Any] | None = None,
    ) -> "Tape":
        """A shell command and its result."""
        self.add("command", line, tool="shell", origin=origin, args=call_args or {})
        return self.add(
            "command_result", output, answers=len(self.events) - 1, exit_code=exit_code, duration_s=seconds, origin=origin, args=args or {}
        )

    def edit(self, path: str, new: str = "x = 1", old: str = "") -> "Tape":
        """An edit of one file by the engine's edit tool."""
        return self.add("file_edit", new, tool="Edit", paths=(path,), args={"old_string": old})

    def create(self, path: str, text: str = "print(1)") -> "Tape":
        """A new file written by the engine's tool."""
        return self.add("file_edit", text, tool="Write", paths=(path,), args={"created": True})

    def transcript(self) -> Transcript:
        """What was recorded so far."""
        return Transcript(self.run, tuple(self.events))


def an_evidence(run_id: str = "r1:a", *, quote: str = "a quote", at: datetime = NOW, **changes: Any) -> Evidence:
    """Evidence in event 0 of a run."""
    return replace(Evidence(run_id, 0, 0, quote, (0, len(quote)), at), **changes)


def a_candidate(
    content: str = "Tests are run with `pytest <path>`.",
    *,
    run_id: str = "r1:a",
    at: datetime = NOW,
    claim: Claim | None = None,
    **changes: Any,
) -> Candidate:
    """A candidate of the repository `acme/shop` with one piece of evidence."""
    candidate = Candidate(
        content, "repo_quirk", "repo", "acme/shop", 0.7, 0.01, "heuristic:test@1", (an_evidence(run_id, at=at),), claim, "codex", "bug_fix"
    )
    return replace(candidate, **changes)


def a_fact(content: str = "Tests are run with `pytest <path>`.", *, tenant: str = "ticketing", at: datetime = NOW, **changes: Any) -> Fact:
    """A fact of the repository `acme/shop`, seen in one run."""
    claim = changes.get("claim")
    scope, owner = changes.get("scope", "repo"), changes.get("owner", "acme/shop")
    fact = Fact(ids.fact_id(tenant, scope, owner, claim, content), tenant, content, "repo_quirk", "repo", "acme/shop", 0.7, 0.01, at, at, 1)
    return replace(fact, **changes)


class FixedClock:
    """A clock that shows what it was told."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """The time."""
        return self.now


@dataclass(frozen=True)
class ScriptedReply:
    """One reply of a `ScriptedCompleter`.

    Attributes:
        text: What the model writes; read as a real reply is, so that prose, fences and wrong schemas have the state they deserve.
        state: Overrides what `text` would come to: `refused`, `truncated` and `failed` need no text.
        tokens_in, tokens_out, cost_usd: What the request costs.
    """

    text: str = ""
    state: State | None = None
    tokens_in: int = 100
    tokens_out: int = 20
    cost_usd: float | None = 0.0


Scripted = ScriptedReply | BaseModel | str


class ScriptedCompleter:
    """A `Completer` that replies from a script: no model, no network, one attempt for each call.

    `replies` are taken in order, or chosen by a function of the request; a text or a model stands for a reply of it:

        completer = ScriptedCompleter(['{"facts": []}', ScriptedReply(state="refused")])
        completer.complete(request, Budget()).state   # "ok"
        len(completer.calls)                          # 1

    `calls` are the requests so far. The budget is asked for exactly what the reply will cost.

    Raises:
        AssertionError: `complete` is called after the end of the script.
    """

    def __init__(self, replies: Sequence[Scripted] | Callable[[Request], Scripted], *, model: str = "scripted/model") -> None:
        self.model = model
        self.calls: list[Request] = []
        self._replies = replies
        self._lock = threading.Lock()

    def count_tokens(self, text: str) -> int:
        """A quarter of the characters, rounded up."""
        return math.ceil(len(text) / 4)

    def complete(self, request: Request, budget: Budget) -> Completion:
        """The next reply of the script; raises as every completer does."""
        with self._lock:
            reply = self._next(request)
            reservation = budget.reserve(reply.tokens_in, reply.tokens_out, reply.cost_usd)
            self.calls.append(request)
        reading = read_text(reply.text, request.wire)
        if reply.state is not None and reply.state != reading.state:
            assert reply.state != "ok", f"the script says ok, but its text is not: {reading.detail}"
            reading = Reading(reply.state, None, f"{reply.state}, says the script")
        attempt = Attempt(reading.state, self.model, reply.tokens_in, reply.tokens_out, reply.cost_usd, 0.0, reading.detail)
        budget.settle(reservation, attempt)
        return Completion(reading.state, reading.parsed, (attempt,), reading.detail)

    def _next(self, request: Request) -> ScriptedReply:
        if callable(self._replies):
            reply = self._replies(request)
        else:
            assert len(self.calls) < len(self._replies), f"the script is over: it has {len(self._replies)} replies"
            reply = self._replies[len(self.calls)]
        if isinstance(reply, BaseModel):
            return ScriptedReply(reply.model_dump_json())
        return ScriptedReply(reply) if isinstance(reply, str) else reply
