"""Where the stages meet: digests of transcripts -> plan -> store. No logic of its own."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from osmia_memory import folding, ids, reconcile
from osmia_memory.digest import Digest, Known, is_current
from osmia_memory.extract import heuristics
from osmia_memory.models import Applied, Candidate, Discard, Insert, Plan, Reinforce, Retire, Skip, TaskRun
from osmia_memory.spool import Injection
from osmia_memory.store.applying import state_after
from osmia_memory.store.fact_store import FactStore, Session
from osmia_memory.store.injections import Recorded
from osmia_memory.store.ledger import DONE
from osmia_memory.store.reading import State

if TYPE_CHECKING:  # rules alone do without the checks of a model's proposals
    from osmia_memory.extract.proposals import Drop

_BATCH = 40  # runs written at once: planning and writing them holds the store for about 0.1 s
_BATCH_SECONDS = 2.0


@dataclass(frozen=True)
class Proposals:
    """What the model pass did for one run. `states` counts its parts; a part that was never asked is `pending`."""

    states: Mapping[str, int]
    requests: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None  # None: no price is known
    dropped: "tuple[Drop, ...]"
    details: tuple[str, ...]  # what went wrong, one redacted line a part
    kept: int = 0  # proposals that stand, those of earlier commands included
    plan: Plan | None = None  # of rules and model together; None if nothing was answered

    @property
    def is_partial(self) -> bool:
        """Some part has no good answer yet."""
        return any(count for state, count in self.states.items() if state not in DONE)


@dataclass
class RunReport:
    """What became of one run; `plan` is None for a version that was stored already, `proposals` where no model was asked."""

    digest: Digest
    plan: Plan | None
    applied: Applied | None
    proposals: Proposals | None = None

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


def store_runs(
    items: Iterable[Digest | Skip], store: FactStore, clock: Callable[[], datetime], tenant: str, stored: Known | None = None
) -> Iterator[RunReport | Skip]:
    """Store what each run says; a report is given only after its run is committed. The store is let go of between short writes.

    A new version of a run replaces the stored one, unless it ended earlier: that is a `Skip`. `stored` are the versions in the store, where
    the caller has asked for them already.
    """
    known: dict[str, tuple[str, str]] = {**(store.run_versions(tenant) if stored is None else stored)}
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
        if is_current(known.get(run.run_id), run):
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
    extractors = [_extractor(versions.get(d.run.run_id), d.run) for d in waiting]
    plans: list[Plan] = []
    with store.session(write=True) as session:
        waiting, used = _with_uses(waiting, session, tenant)
        found = [d.extraction or heuristics.Extraction((), ()) for d in waiting]
        named = {ids.fact_id(tenant, c.scope, c.owner, c.claim, c.content) for e in found for c in e.candidates}
        previous = {d.run.run_id: frozenset(session.facts_of_run(tenant, d.run.run_id)) for d in waiting if d.run.run_id in versions}
        touched = sorted(named.union(*previous.values()))
        state, tombstones = session.state_for(tenant, touched), frozenset(session.tombstones(tenant, touched))
        for each, said, extractor in zip(waiting, found, extractors, strict=True):
            before = previous.get(each.run.run_id, frozenset())
            kept = told_by_model(state, before, each.run.run_id) if "+" in extractor else ()
            plan = reconcile.plan(
                each.run, (*said.candidates, *kept), state, previous=before, tombstones=tombstones, discarded=said.discarded
            )
            state = state_after(state, plan)
            plans.append(plan)
        vocabularies = [d.vocabulary for d in waiting]
        applied = session.apply_many(plans, recorded_at=now, extractors=extractors, vocabularies=vocabularies)
        session.note_uses(tenant, used)
    versions |= {d.run.run_id: (d.run.version, extractor) for d, extractor in zip(waiting, extractors, strict=True)}
    return [RunReport(d, plan, done) for d, plan, done in zip(waiting, plans, applied, strict=True)]


def _with_uses(waiting: Sequence[Digest], store: Session, tenant: str) -> tuple[Sequence[Digest], dict[str, tuple[str, frozenset[str]]]]:
    """The digests, with testimony marked that a run gave because our block had told it so; and the uses, by session."""
    recorded = {r.session: r for r in store.injections(tenant) if not r.withheld}
    marked: list[Digest] = []
    uses: dict[str, tuple[str, frozenset[str]]] = {}
    for each in waiting:
        record = recorded.get(each.run.session_id)
        if record is None and each.shown:
            record = _from_block(each, store, tenant)
        if record is None:
            marked.append(each)
            continue
        from osmia_memory import feedback  # its statistics cost 8 ms that a run without a record should not pay

        shown = store.facts_by_id(tenant, record.fact_ids)
        used = frozenset(f.fact_id for f in shown if feedback.is_used(f, each.actions))
        uses[each.run.session_id] = (each.run.run_id, used)
        marked.append(_marked(each, tenant, used))
    return marked, uses


def _from_block(digest: Digest, store: Session, tenant: str) -> Recorded | None:
    """What the block in a transcript showed, put into the ledger; None if none of its lines is a fact here."""
    run = digest.run
    owners = [(scope, owner) for scope, owner in (("repo", run.repo), ("engine", run.engine)) if owner]
    facts = [f for f in store.facts(tenant, owners) if any(line.startswith(f.content.rstrip(".")) for line in digest.shown)]
    if not facts:
        return None
    ids_shown = tuple(sorted(f.fact_id for f in facts))
    at = run.started_at or run.finished_at
    assert at is not None, "readers give every run a time"
    told = Injection(f"block-{run.run_id}", tenant, run.session_id, at.isoformat(), run.repo, run.engine, ids_shown, 0, False)
    store.record_injections([told])
    return Recorded(run.session_id, at, run.repo, ids_shown, False, None, None)


def _marked(digest: Digest, tenant: str, used: frozenset[str]) -> Digest:
    if digest.extraction is None or not used:
        return digest
    said = tuple(
        replace(c, tags=(*c.tags, folding.TOLD)) if ids.fact_id(tenant, c.scope, c.owner, c.claim, c.content) in used else c
        for c in digest.extraction.candidates
    )
    return digest._replace(extraction=digest.extraction._replace(candidates=said))


def _extractor(stored: tuple[str, str] | None, run: TaskRun) -> str:
    """These rules, and what a model has said of the same version of the run: newer rules are no reason to pay for it again."""
    by_model = stored[1].partition("+")[2] if stored is not None and stored[0] == run.version else ""
    return f"{heuristics.EXTRACTOR}+{by_model}" if by_model else heuristics.EXTRACTOR


def told_by_model(state: State, fact_ids: Iterable[str], run_id: str) -> tuple[Candidate, ...]:
    """The testimony of a run that a model proposed, among these facts."""
    witnesses = [w for fact_id in sorted(fact_ids) if fact_id in state for w in state[fact_id][1]]
    return tuple(w.candidate for w in witnesses if w.run_id == run_id and w.candidate.source.startswith("llm:"))
