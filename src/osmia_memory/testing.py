"""Builders for tests, ours and our users': transcripts, facts and a clock that stands still."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from osmia_memory import ids
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
