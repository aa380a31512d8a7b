"""The frozen values that cross a module boundary, and their closed sets of kinds.

Knows nothing about files, storage, clocks or models. A change is a new value (`dataclasses.replace`). All times are
timezone-aware UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

Outcome = Literal["success", "failure", "partial", "unknown"]
TaskType = Literal["bug_fix", "feature", "refactor", "test", "docs", "review", "chore", "question", "unknown"]
FactKind = Literal["success_pattern", "failure_pattern", "repo_quirk", "general"]
Scope = Literal["repo", "engine", "org"]
Relation = Literal["relates_to", "contradicts", "supersedes"]
Polarity = Literal["supports", "refutes"]
QuoteStatus = Literal["exact", "folded"]
EventKind = Literal[
    "user",  # typed by a person
    "assistant",
    "reasoning",
    "command",  # a shell command; `text` is the command line
    "command_result",  # its output; `answers` is the index of the command
    "file_read",
    "file_edit",  # `paths` are the files, `text` what was written
    "tool_call",  # any other tool; `text` is its arguments as JSON
    "tool_result",
    "error",  # of the harness or the provider
    "system",
    "compaction",  # a summary of earlier history
    "injected_memory",  # a block of ours, recognised; never a source
]

ACROSS = "across repositories"  # tag of what several repositories of one owner have in common
CODE_CHANGING: frozenset[str] = frozenset({"bug_fix", "feature", "refactor", "test"})


# --- runs and their events --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Signal:
    """One sign of how a run ended. Signals may disagree; disagreement lowers confidence.

    `name` is one of exit_status, claim, tests, lint, build, limit, review, resolved, landed, pr, given.
    """

    name: str
    value: str
    event_index: int | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a run took place, as far as the transcript tells."""

    os: str | None = None
    shell: str | None = None
    sandbox: str | None = None
    interpreter: str | None = None


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One finished attempt of one engine at one task.

    `run_id` is the content id of (tenant, engine, session_id, segment); `version` hashes the run's own records and its
    outcome, so a grown file is a new version of the same run.
    """

    run_id: str
    tenant_id: str
    engine: str
    session_id: str
    version: str
    segment: str = ""  # which part of the session: "" for the whole, else a counter or a sub-agent's id
    parent_session_id: str | None = None  # of a sub-agent, a fork or a resumed session
    repo: str | None = None  # "org/name"; None where nothing tells
    model: str | None = None
    task_type: TaskType = "unknown"
    title: str = ""  # one line
    description: str = ""  # the task as given, without harness text
    labels: tuple[str, ...] = ()
    language: str | None = None
    cwd: str | None = None  # the checkout's folder; paths in events may be below it
    branch: str | None = None
    base_commit: str | None = None
    environment: Environment = Environment()
    started_at: datetime | None = None
    finished_at: datetime | None = None
    times_assumed: bool = False  # the format has no times; `--at` or the file's mtime stands in
    duration_s: float | None = None
    cost_usd: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    attempts: int = 1
    outcome: Outcome = "unknown"
    signals: tuple[Signal, ...] = ()
    source: str = ""  # the file or archive member it was read from


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a run; its `index` in the transcript is its identity."""

    index: int
    record: int  # 0-based record (line, or message index) of the source file
    kind: EventKind
    text: str = ""
    ts: datetime | None = None
    tool: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    answers: int | None = None  # for a result: the index of the call it belongs to
    exit_code: int | None = None  # None: not reported (still running, or the format does not say)
    is_error: bool = False  # the harness marked it so
    duration_s: float | None = None
    paths: tuple[str, ...] = ()
    origin: str | None = None  # the engine's own id of the record; equal in files that copy history


class Skip(NamedTuple):
    """Something that was not read, and why. `where` names the file and record."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """A run and its ordered events; `events[i].index == i`. Everything in it is redacted."""

    run: TaskRun
    events: tuple[Event, ...]
    skipped: tuple[Skip, ...] = ()
    masked: Mapping[str, int] = field(default_factory=dict)  # secrets masked, by kind


# --- knowledge --------------------------------------------------------------------------------------------------------


class Claim(NamedTuple):
    """What a fact says in fixed form. The first three fields are its slot; `value` is what may change over time."""

    subject: str
    attribute: str
    qualifier: str
    value: str

    @property
    def slot(self) -> tuple[str, str, str]:
        """(subject, attribute, qualifier)."""
        return (self.subject, self.attribute, self.qualifier)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A verbatim quote and where it stands. `span` is the half-open character range in that event's text."""

    run_id: str
    event_index: int
    record: int
    quote: str
    span: tuple[int, int]
    observed_at: datetime
    status: QuoteStatus = "exact"
    polarity: Polarity = "supports"
    origin: str | None = None  # of the event; runs whose evidence shares an origin are one witness


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one run proposes to know. Stored as that run's testimony (a `Witness`) for the fact with its id."""

    content: str  # one self-contained line, without counts, dates or confidences
    fact_kind: FactKind
    scope: Scope
    owner: str  # the repo, the engine's name, or the part of the repo before "/"
    confidence: float  # before corroboration, in [0, 0.9]
    decay_rate: float  # per cycle
    source: str  # "heuristic:flaky_test@1"
    evidence: tuple[Evidence, ...]
    claim: Claim | None = None
    engine: str | None = None
    task_type: TaskType | None = None
    anchors: tuple[str, ...] = ()  # "file:…", "symbol:…", "test:…"
    tags: tuple[str, ...] = ()  # "standing", "environment", "episode", ...


@dataclass(frozen=True, slots=True)
class Witness:
    """One run's testimony for one fact. A fact is a fold over its witnesses, in whatever order they came."""

    fact_id: str
    run_id: str  # "" for a row that was imported or saved by hand
    candidate: Candidate
    observed_at: datetime  # event time of the latest evidence


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing known, folded from its witnesses (`folding.fold`)."""

    fact_id: str
    tenant_id: str
    content: str
    fact_kind: FactKind
    scope: Scope
    owner: str
    confidence: float  # earned from evidence, before decay
    decay_rate: float
    valid_from: datetime  # first observed
    last_seen: datetime  # latest supporting evidence
    runs: int  # independent supporting runs; 1 for a manual fact
    refuting_runs: int = 0
    claim: Claim | None = None
    engine: str | None = None
    engines: tuple[str, ...] = ()  # engines of the supporting runs, sorted
    task_type: TaskType | None = None
    anchors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    importance: float = 1.0
    pinned: bool = False
    valid_to: datetime | None = None
    superseded_by: str | None = None
    recorded_at: datetime | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A typed link between two nodes of one tenant."""

    from_id: str
    to_id: str
    relation: Relation
    weight: float
    reason: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Pattern:
    """A statistic over at least three runs, phrased. `interval` is Wilson's at 95 %."""

    pattern_id: str
    description: str
    frequency: int  # = hits
    confidence: float  # the interval's lower bound for a rate
    runs: int
    hits: int
    interval: tuple[float, float]
    group: Mapping[str, str]
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """What the runs say about one engine (and model). Rates are over runs with a known outcome."""

    engine: str
    model: str | None
    sample_count: int
    success_rate: float | None  # None: insufficient data
    interval: tuple[float, float] | None
    strengths: tuple[str, ...]
    weaknesses: tuple[str, ...]
    by_group: Mapping[str, tuple[int, int]]  # "task_type=bug_fix" -> (successes, known outcomes)


# --- plans and reports ------------------------------------------------------------------------------------------------


class Insert(NamedTuple):
    """A fact nobody has claimed before."""

    witness: Witness


class Reinforce(NamedTuple):
    """One more run says the same. `independent` is False if it only repeats records of a run already counted."""

    witness: Witness
    independent: bool


class Discard(NamedTuple):
    """A candidate that is not stored, and why."""

    candidate: Candidate
    reason: str


class Retire(NamedTuple):
    """A fact that an earlier version of this run claimed and the new version does not."""

    fact_id: str


Decision = Insert | Reinforce | Discard | Retire


@dataclass(frozen=True, slots=True)
class Plan:
    """All decisions for one run. Applying it twice changes nothing the second time."""

    run: TaskRun
    decisions: tuple[Decision, ...]
    facts: tuple[Fact, ...]  # the state of every touched fact after the plan
    gone: tuple[str, ...] = ()  # ids of facts left without any witness


@dataclass(frozen=True, slots=True)
class Applied:
    """What a plan did to the store."""

    inserted: int = 0
    reinforced: int = 0
    retired: int = 0
    unchanged: bool = False  # this version of the run was stored already


@dataclass(frozen=True, slots=True)
class Query:
    """What the next run is about."""

    tenant_id: str
    task: str
    repo: str | None = None
    engine: str | None = None
    task_type: TaskType | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A fact chosen for a block, with the parts its score was made of."""

    fact: Fact
    score: float
    parts: Mapping[str, float]
    standing: bool = False  # shown because it helps most tasks here, not because it matches the text
    disputed_by: Fact | None = None  # the other side of a contradiction that nobody has resolved
    also: tuple[Fact, ...] = ()  # further facts of the same pattern, told in the same bullet
