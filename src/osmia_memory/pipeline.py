"""Where the stages meet: transcripts -> candidates -> plan -> store. No logic of its own."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from osmia_memory import ids, reconcile
from osmia_memory.extract import heuristics
from osmia_memory.models import Applied, Discard, Insert, Plan, Reinforce, Retire, Skip, Transcript
from osmia_memory.store.fact_store import FactStore, Session

_SESSION_SECONDS = 0.15  # how long a batch holds the store before it lets others in


@dataclass
class RunReport:
    """What became of one run; `plan` is None for a version that was stored already."""

    transcript: Transcript
    plan: Plan | None
    applied: Applied | None


@dataclass
class Totals:
    """Counts over all runs of one call."""

    runs: int = 0
    unchanged: int = 0
    inserted: int = 0
    reinforced: int = 0
    retired: int = 0
    discarded: Counter[str] = field(default_factory=Counter)
    skipped: list[Skip] = field(default_factory=list)
    masked: Counter[str] = field(default_factory=Counter)

    def add(self, report: RunReport) -> None:
        """Count one run."""
        self.runs += 1
        self.skipped += report.transcript.skipped
        self.masked.update(report.transcript.masked)
        if report.plan is None:
            self.unchanged += 1
            return
        for decision in report.plan.decisions:
            match decision:
                case Insert():
                    self.inserted += 1
                case Reinforce():
                    self.reinforced += 1
                case Retire():
                    self.retired += 1
                case Discard():
                    self.discarded[decision.reason] += 1


def preview(items: Iterable[Transcript | Skip]) -> Iterator[RunReport | Skip]:
    """The plans against an empty memory: what each run says, nothing written."""
    for item in items:
        if isinstance(item, Skip):
            yield item
        else:
            found = heuristics.extract(item)
            yield RunReport(item, reconcile.plan(item.run, found.candidates, {}, discarded=found.discarded), None)


def store_runs(items: Iterable[Transcript | Skip], store: FactStore, clock: Callable[[], datetime]) -> Iterator[RunReport | Skip]:
    """Extract and store each run, one transaction a run; the store is let go of between short sessions."""
    known: dict[str, Mapping[str, tuple[str, str]]] = {}
    waiting: list[tuple[Transcript, heuristics.Extraction]] = []
    started = time.monotonic()
    for item in items:
        if isinstance(item, Skip):
            yield item
            continue
        tenant = item.run.tenant_id
        if tenant not in known:
            known[tenant] = store.run_versions(tenant)
        if known[tenant].get(item.run.run_id) == (item.run.version, heuristics.EXTRACTOR):
            yield RunReport(item, None, Applied(unchanged=True))
            continue
        waiting.append((item, heuristics.extract(item)))
        if time.monotonic() - started > 1.0:  # write what is ready about once a second: little is lost with the process
            yield from _write(waiting, store, clock)
            waiting, started = [], time.monotonic()
    yield from _write(waiting, store, clock)


def _write(waiting: list[tuple[Transcript, heuristics.Extraction]], store: FactStore, clock: Callable[[], datetime]) -> Iterator[RunReport]:
    todo = list(waiting)
    while todo:
        done: list[RunReport] = []
        with store.session(write=True) as session:
            opened = time.monotonic()
            while todo and time.monotonic() - opened < _SESSION_SECONDS:
                transcript, found = todo.pop(0)
                done.append(_store_one(session, transcript, found, clock()))
        yield from done


def _store_one(session: Session, transcript: Transcript, found: heuristics.Extraction, now: datetime) -> RunReport:
    run = transcript.run
    named = [ids.fact_id(run.tenant_id, c.scope, c.owner, c.claim, c.content) for c in found.candidates]
    previous = frozenset(session.facts_of_run(run.tenant_id, run.run_id))
    wanted = sorted({*named, *previous})
    plan = reconcile.plan(
        run,
        found.candidates,
        session.state_for(run.tenant_id, wanted),
        previous=previous,
        tombstones=frozenset(session.tombstones(run.tenant_id, wanted)),
        discarded=found.discarded,
    )
    applied = session.apply(plan, recorded_at=now, extractor=heuristics.EXTRACTOR, vocabulary=heuristics.vocabulary(transcript))
    return RunReport(transcript, plan, applied)
