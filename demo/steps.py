"""What a scripted run is made of, and what playing it gives. No engine's format is known here."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Think:
    """Reasoning the engine keeps to itself."""

    text: str


@dataclass(frozen=True)
class Say:
    """Text the engine shows."""

    text: str


@dataclass(frozen=True)
class User:
    """A turn of the person."""

    text: str


@dataclass(frozen=True)
class Sh:
    """A shell command. `seed` is Python's hash seed for it: what makes the flaky test fail or pass.

    `yields` (Codex): seconds after which the command is left running; a `Poll` fetches the rest.
    `waits`: seconds that it waits by its nature. The record tells these; what comes on top is this machine's load.
    """

    command: str
    why: str = ""
    seed: int = 0
    yields: float | None = None
    waits: int = 0


@dataclass(frozen=True)
class Poll:
    """Wait for the command that was left running."""

    waits: int = 0


@dataclass(frozen=True)
class Edit:
    """Replace `old`, which occurs once in the file, by `new`. An empty `old` makes a new file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Read:
    """Look at a file."""

    path: str


@dataclass(frozen=True)
class Interrupt:
    """The person stops the engine."""


@dataclass(frozen=True)
class Malformed:
    """A reply that the engine's harness rejects for its form (mini-swe-agent)."""

    text: str


Step = Think | Say | User | Sh | Poll | Edit | Read | Interrupt | Malformed


@dataclass(frozen=True)
class Result:
    """What a step did. `code` is None while the command is still running or after the harness killed it."""

    stdout: str = ""
    stderr: str = ""
    code: int | None = 0
    seconds: int = 0  # as the record tells it
    before: str = ""  # of an edited file
    after: str = ""
    timed_out: bool = False


@dataclass(frozen=True)
class Done:
    """A step with its result and the simulated time at which the result was there."""

    step: Step
    result: Result
    at: datetime


@dataclass(frozen=True)
class Story:
    """One scripted run. `task` is the first turn; `outcome` is what a job runner wrote beside it, if it did."""

    slug: str
    engine: str
    start: datetime
    branch: str
    task: str
    steps: tuple[Step, ...]
    outcome: dict[str, str] | None = None
    keep: bool = False  # the change lands on main, so that later runs see it
    issue: int = 0  # mini-swe-agent: the number in the instance id
    exit_status: str = "Submitted"


@dataclass(frozen=True)
class Played:
    """A story with everything that happened, ready to be written in its engine's format."""

    story: Story
    done: tuple[Done, ...]
    base_commit: str
    cwd: str
    repository_url: str
    submission: str = ""

    @property
    def day(self) -> str:
        """The date it began, `2026-03-02`."""
        return self.story.start.date().isoformat()


Record = dict[str, Any]


def started(text: str) -> datetime:
    """A story's start, `2026-03-02 09:14`, in UTC."""
    return datetime.fromisoformat(f"{text}:00+00:00")
