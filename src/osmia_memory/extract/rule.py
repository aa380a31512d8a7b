"""What a rule is, and the values it gives. Pure.

A rule is a small function from a `View` to `Finding`s; `Rule` adds what it assigns and why. `find_all` runs rules and
turns findings into candidates.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from osmia_memory.extract.view import View
from osmia_memory.models import Candidate, Claim, Evidence, FactKind, Scope

MAX_EVIDENCE = 4
MAX_CONTENT = 380


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a rule saw. `evidence` may hold None for quotes that were not found; at least one must be real."""

    content: str
    kind: FactKind
    claim: Claim
    evidence: tuple[Evidence | None, ...]
    scope: Scope = "repo"
    anchors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    strength: float = 0.0  # added to the rule's confidence


@dataclass(frozen=True, slots=True)
class Rule:
    """A named, versioned rule with the confidence and decay it assigns, and why those."""

    name: str
    version: int
    confidence: float
    decay_rate: float
    why: str
    find: Callable[[View], Iterable[Finding]]

    @property
    def source(self) -> str:
        """`heuristic:<name>@<version>`."""
        return f"heuristic:{self.name}@{self.version}"


def candidates(rule: Rule, view: View) -> Iterator[Candidate]:
    """What the rule proposes for this run; findings without evidence or owner are dropped."""
    run = view.transcript.run
    for finding in rule.find(view):
        evidence = tuple(e for e in finding.evidence if e is not None)[:MAX_EVIDENCE]
        owner = run.engine if finding.scope == "engine" else run.repo
        if not evidence or not owner or len(finding.content) > MAX_CONTENT:
            continue
        yield Candidate(
            content=finding.content,
            fact_kind=finding.kind,
            scope=finding.scope,
            owner=owner,
            confidence=round(min(0.9, max(0.05, rule.confidence + finding.strength)), 3),
            decay_rate=0.05 if "environment" in finding.tags else rule.decay_rate,
            source=rule.source,
            evidence=evidence,
            claim=finding.claim,
            engine=run.engine,
            task_type=run.task_type,
            anchors=finding.anchors,
            tags=finding.tags,
        )
