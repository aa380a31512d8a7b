"""Where the stages meet: transcripts -> candidates -> plan -> store. No logic of its own."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from osmia_memory import ids, reconcile
from osmia_memory.extract import heuristics
from osmia_memory.models import Applied, Discard, Insert, Plan, Reinforce, Retire, Skip, TaskRun, Transcript
from osmia_memory.store.applying import state_after
from osmia_memory.store.fact_store import FactStore

_BATCH = 40  # runs written at once: planning and writing them holds the store for about 0.1 s
_BATCH_SECONDS = 2.0


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
    """Extract and store each run; a report is given only after its run is committed. The store is let go of between short writes.

    A new version of a run replaces the stored one, unless it ended earlier: that is a `Skip`.
    """
    known: dict[str, dict[str, tuple[str, str]]] = {}
    waiting: list[tuple[Transcript, heuristics.Extraction]] = []
    started = time.monotonic()
    for item in items:
        if isinstance(item, Skip):
            yield item
            continue
        tenant, run = item.run.tenant_id, item.run
        if tenant not in known:
            known[tenant] = {**store.run_versions(tenant)}
        if any(run.run_id == earlier.run.run_id for earlier, _ in waiting):  # a copy, or another version of a run of this batch
            yield from _write(waiting, store, clock(), known[tenant])
            waiting, started = [], time.monotonic()
        if known[tenant].get(run.run_id) == (run.version, heuristics.EXTRACTOR):
            yield RunReport(item, None, Applied(unchanged=True))
            continue
        if run.run_id in known[tenant] and _is_older(run, store.run(tenant, run.run_id)):
            yield Skip(run.source, f"an earlier state of run {run.run_id}, of which a later one is stored")
            continue
        waiting.append((item, heuristics.extract(item)))
        if len(waiting) >= _BATCH or time.monotonic() - started > _BATCH_SECONDS:  # little is lost with the process
            yield from _write(waiting, store, clock(), known[tenant])
            waiting, started = [], time.monotonic()
    if waiting:
        yield from _write(waiting, store, clock(), known[waiting[0][0].run.tenant_id])


def _is_older(run: TaskRun, stored: TaskRun | None) -> bool:
    """A copy of a session made before it ended must not undo what the rest of it taught, in whatever order the two are read."""
    if stored is None or run.finished_at is None or stored.finished_at is None:
        return False
    return not (run.times_assumed or stored.times_assumed) and run.finished_at < stored.finished_at


def _write(
    waiting: Sequence[tuple[Transcript, heuristics.Extraction]], store: FactStore, now: datetime, versions: dict[str, tuple[str, str]]
) -> list[RunReport]:
    """Plan one run after the other on the state that the one before left, and apply all plans in one transaction.

    No run stands twice in `waiting`. `versions` are those in the store by run id; what is stored here is added.
    """
    tenant = waiting[0][0].run.tenant_id
    named = {ids.fact_id(tenant, c.scope, c.owner, c.claim, c.content) for _, found in waiting for c in found.candidates}
    plans: list[Plan] = []
    with store.session(write=True) as session:
        previous = {t.run.run_id: frozenset(session.facts_of_run(tenant, t.run.run_id)) for t, _ in waiting if t.run.run_id in versions}
        touched = sorted(named.union(*previous.values()))
        state, tombstones = session.state_for(tenant, touched), frozenset(session.tombstones(tenant, touched))
        for transcript, found in waiting:
            before = previous.get(transcript.run.run_id, frozenset())
            plan = reconcile.plan(
                transcript.run, found.candidates, state, previous=before, tombstones=tombstones, discarded=found.discarded
            )
            state = state_after(state, plan)
            plans.append(plan)
        vocabularies = [heuristics.vocabulary(t) for t, _ in waiting]
        applied = session.apply_many(plans, recorded_at=now, extractor=heuristics.EXTRACTOR, vocabularies=vocabularies)
    versions |= {t.run.run_id: (t.run.version, heuristics.EXTRACTOR) for t, _ in waiting}
    return [RunReport(t, plan, done) for (t, _), plan, done in zip(waiting, plans, applied, strict=True)]
