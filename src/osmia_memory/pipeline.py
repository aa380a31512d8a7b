"""Where the stages meet: digests of transcripts -> plan -> store. No logic of its own."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from osmia_memory import ids, reconcile
from osmia_memory.digest import Digest
from osmia_memory.extract import heuristics
from osmia_memory.models import Applied, Discard, Insert, Plan, Reinforce, Retire, Skip, TaskRun
from osmia_memory.store.applying import state_after
from osmia_memory.store.fact_store import FactStore

_BATCH = 40  # runs written at once: planning and writing them holds the store for about 0.1 s
_BATCH_SECONDS = 2.0


@dataclass
class RunReport:
    """What became of one run; `plan` is None for a version that was stored already."""

    digest: Digest
    plan: Plan | None
    applied: Applied | None

    @property
    def run(self) -> TaskRun:
        """The run."""
        return self.digest.run


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
        self.skipped += report.digest.skipped
        self.masked.update(report.digest.masked)
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


def preview(items: Iterable[Digest | Skip]) -> Iterator[RunReport | Skip]:
    """The plans against an empty memory: what each run says, nothing written."""
    for item in items:
        if isinstance(item, Skip) or item.extraction is None:
            yield item if isinstance(item, Skip) else RunReport(item, None, None)
        else:
            found = item.extraction
            yield RunReport(item, reconcile.plan(item.run, found.candidates, {}, discarded=found.discarded), None)


def store_runs(items: Iterable[Digest | Skip], store: FactStore, clock: Callable[[], datetime], tenant: str) -> Iterator[RunReport | Skip]:
    """Store what each run says; a report is given only after its run is committed. The store is let go of between short writes.

    A new version of a run replaces the stored one, unless it ended earlier: that is a `Skip`.
    """
    known: dict[str, tuple[str, str]] = {**store.run_versions(tenant)}
    waiting: list[Digest] = []
    started = time.monotonic()
    for item in items:
        if isinstance(item, Skip):
            yield item
            continue
        run = item.run
        if any(run.run_id == earlier.run.run_id for earlier in waiting):  # a copy, or another version of a run of this batch
            yield from _write(waiting, store, clock(), known)
            waiting, started = [], time.monotonic()
        if known.get(run.run_id) == (run.version, heuristics.EXTRACTOR):
            yield RunReport(item, None, Applied(unchanged=True))
            continue
        if item.extraction is None or (run.run_id in known and _is_older(run, store.run(tenant, run.run_id))):
            yield Skip(run.source, f"an earlier state of run {run.run_id}, of which a later one is stored")
            continue
        waiting.append(item)
        if len(waiting) >= _BATCH or time.monotonic() - started > _BATCH_SECONDS:  # little is lost with the process
            yield from _write(waiting, store, clock(), known)
            waiting, started = [], time.monotonic()
    if waiting:
        yield from _write(waiting, store, clock(), known)


def _is_older(run: TaskRun, stored: TaskRun | None) -> bool:
    """A copy of a session made before it ended must not undo what the rest of it taught, in whatever order the two are read."""
    if stored is None or run.finished_at is None or stored.finished_at is None:
        return False
    return not (run.times_assumed or stored.times_assumed) and run.finished_at < stored.finished_at


def _write(waiting: Sequence[Digest], store: FactStore, now: datetime, versions: dict[str, tuple[str, str]]) -> list[RunReport]:
    """Plan one run after the other on the state that the one before left, and apply all plans in one transaction.

    No run stands twice in `waiting`, and each has its extraction. `versions` are those in the store by run id; what is stored here is added.
    """
    tenant = waiting[0].run.tenant_id
    found = [d.extraction or heuristics.Extraction((), ()) for d in waiting]
    named = {ids.fact_id(tenant, c.scope, c.owner, c.claim, c.content) for e in found for c in e.candidates}
    plans: list[Plan] = []
    with store.session(write=True) as session:
        previous = {d.run.run_id: frozenset(session.facts_of_run(tenant, d.run.run_id)) for d in waiting if d.run.run_id in versions}
        touched = sorted(named.union(*previous.values()))
        state, tombstones = session.state_for(tenant, touched), frozenset(session.tombstones(tenant, touched))
        for each, said in zip(waiting, found, strict=True):
            before = previous.get(each.run.run_id, frozenset())
            plan = reconcile.plan(each.run, said.candidates, state, previous=before, tombstones=tombstones, discarded=said.discarded)
            state = state_after(state, plan)
            plans.append(plan)
        vocabularies = [d.vocabulary for d in waiting]
        applied = session.apply_many(plans, recorded_at=now, extractor=heuristics.EXTRACTOR, vocabularies=vocabularies)
    versions |= {d.run.run_id: (d.run.version, heuristics.EXTRACTOR) for d in waiting}
    return [RunReport(d, plan, done) for d, plan, done in zip(waiting, plans, applied, strict=True)]
