"""Rows as knowledge of one tenant. What comes in is folded anew.

Ids in a file only connect its rows: each fact and run gets the id of its content under the tenant.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from osmia_memory import ids
from osmia_memory.errors import RowError, TenantError
from osmia_memory.models import Candidate, Claim, Edge, EngineProfile, Environment, Evidence, Fact, Pattern, Signal, TaskRun, Witness
from osmia_memory.store import applying, editing, rows
from osmia_memory.store.applying import MANUAL_RUN, Batch, RunEntry
from osmia_memory.store.exporting import TOLD
from osmia_memory.store.forgetting import Fold
from osmia_memory.store.operations import Connection, checked_tenant, insert

_STATISTICS = {"tenant_id": "VARCHAR", "kind": "VARCHAR", "row_key": "VARCHAR", "body": "VARCHAR"}


class Imported(NamedTuple):
    """What an import did. A row equal to what is known changes nothing and counts as `unchanged`."""

    added: int = 0  # facts that were not known
    extended: int = 0  # known facts that gained testimony
    unchanged: int = 0
    retracted: int = 0  # rows of facts that somebody retracted here; they stay away
    runs: int = 0
    edges: int = 0
    statistics: int = 0  # patterns and engine profiles


@dataclass
class Incoming:
    """The rows of one import, connected: facts with their witnesses under the tenant's ids."""

    tenant: str
    at: datetime  # stands in for times that are not given
    runs: dict[str, RunEntry] = field(default_factory=dict)
    facts: dict[str, tuple[rows.FactRow, list[Witness]]] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    statistics: list[rows.PatternRow | rows.EngineProfileRow] = field(default_factory=list)
    recorded: dict[tuple[str, str], datetime] = field(default_factory=dict)
    new_ids: dict[str, str] = field(default_factory=dict)  # id in the file -> id here


def connect(tenant: str, given: Iterable[rows.Row], *, at: datetime, known_runs: Iterable[str] = ()) -> Incoming:
    """Rows as facts, witnesses, runs and links of `tenant`. Pure; `known_runs` are run ids that evidence may name without a run row.

    Raises:
        RowError: a fact without owner, or evidence for a fact that is not among the rows.
        TenantError: a row of another tenant.
    """
    found = Incoming(checked_tenant(tenant), at, new_ids={run_id: run_id for run_id in known_runs})
    by_type: dict[type[rows.Row], list[Any]] = {model: [] for model in rows.TYPES.values()}
    for row in given:
        if row.tenant_id is not None and row.tenant_id != tenant:
            raise TenantError(
                f"a row of tenant {row.tenant_id!r} cannot be imported for tenant {tenant!r}; export it without its tenant to move it"
            )
        by_type[type(row)].append(row)
    for run in by_type[rows.RunRow]:
        _take_run(found, run)
    quotes: dict[str, list[rows.EvidenceRow]] = {}
    for quote in by_type[rows.EvidenceRow]:
        quotes.setdefault(quote.fact_id, []).append(quote)
    for fact in by_type[rows.FactRow]:
        fact_id = _fact_id(found.tenant, fact)
        named = quotes.pop(fact.fact_id, []) if fact.fact_id else []
        _take_fact(found, fact_id, fact, named if fact.fact_id == fact_id else [*named, *quotes.pop(fact_id, [])])
    for missing in quotes:
        raise RowError(f"evidence names the fact {missing!r}, but no fact row of this file has that `fact_id`")
    for edge in by_type[rows.EdgeRow]:
        if edge.made_by == "code":
            continue
        from_id, to_id = (found.new_ids.get(end, end) for end in (edge.from_id, edge.to_id))
        found.edges.append(Edge(from_id, to_id, edge.relation, edge.weight, edge.reason, edge.created_at or at))
    found.statistics = [*by_type[rows.PatternRow], *by_type[rows.EngineProfileRow]]
    return found


def _take_run(found: Incoming, row: rows.RunRow) -> None:
    told = {name: getattr(row, name) for name in rows.RunRow.model_fields if name in {f.name for f in fields(TaskRun)}}
    known = {f.name for f in fields(Environment)}
    told |= {
        "run_id": ids.run_id(found.tenant, row.engine, row.session_id, row.segment),
        "tenant_id": found.tenant,
        "version": row.version or ids.content_id("v1", rows.as_dict(row)),
        "environment": Environment(**{k: v for k, v in row.environment.items() if k in known}),
        "signals": tuple(Signal(s.name, s.value, s.event_index) for s in row.signals),
    }
    run = TaskRun(**told)
    found.new_ids |= {run.run_id: run.run_id, row.run_id or run.run_id: run.run_id}
    found.runs[run.run_id] = RunEntry(run, row.vocabulary, row.extractor, row.recorded_at)


def _fact_id(tenant: str, row: rows.FactRow) -> str:
    scope, owner = _owner(row)
    return ids.fact_id(tenant, scope, owner, _claim(row), row.unedited or row.content)


def _claim(row: rows.FactRow) -> Claim | None:
    return None if row.claim is None else Claim(**row.claim.model_dump())


def _owner(row: rows.FactRow) -> tuple[Any, str]:
    scope = row.scope or ("repo" if row.repo or row.owner else "engine" if row.engine else None)
    by_scope = {"repo": row.repo, "engine": row.engine, "org": row.repo.partition("/")[0] if row.repo else None}
    owner = row.owner or (by_scope[scope] if scope else None)
    if scope is None or not owner:
        raise RowError(f"the fact {row.content[:60]!r} has no owner; give `owner`, `repo` or `engine`")
    return scope, owner


def _take_fact(found: Incoming, fact_id: str, row: rows.FactRow, quotes: Sequence[rows.EvidenceRow]) -> None:
    if row.fact_id:
        found.new_ids[row.fact_id] = fact_id
    told = {w.run_id: w for w in row.witnesses}
    for run_id in {q.run_id for q in quotes} - set(told):
        told[run_id] = rows.WitnessRow(run_id=run_id)
    if not told:
        told[MANUAL_RUN] = rows.WitnessRow()
    mine = found.facts.setdefault(fact_id, (row, []))[1]
    for run_id, said in sorted(told.items()):
        own = [q for q in quotes if q.run_id == run_id]
        new_id = run_id if run_id == MANUAL_RUN else _run_of(found, run_id, row, own)
        if any(w.run_id == new_id for w in mine):
            continue
        evidence = tuple(_evidence(new_id, q, row.valid_from or found.at) for q in own)
        latest = max((e.observed_at for e in evidence), default=row.valid_from or found.at)
        mine.append(
            Witness(
                fact_id,
                new_id,
                _candidate(row, said, own, evidence),
                said.observed_at or (row.valid_from if row.witnesses else None) or latest,
            )
        )
        if said.recorded_at or row.recorded_at:
            found.recorded[fact_id, new_id] = said.recorded_at or row.recorded_at or found.at


def _run_of(found: Incoming, run_id: str, row: rows.FactRow, quotes: Sequence[rows.EvidenceRow]) -> str:
    """The id here of a run that the file names; a run of which nothing else is known gets a row of its own."""
    if run_id not in found.new_ids:
        first = quotes[0] if quotes else None
        place: dict[str, Any] = (
            {} if first is None else {"branch": first.branch, "base_commit": first.base_commit, "environment": first.environment or {}}
        )
        repo = row.repo or (row.owner if row.scope == "repo" else None)
        _take_run(found, rows.RunRow(run_id=run_id, engine=row.engine or "unknown", session_id=run_id, repo=repo, source="import", **place))
    return found.new_ids[run_id]


def _evidence(run_id: str, row: rows.EvidenceRow, otherwise: datetime) -> Evidence:
    return Evidence(
        run_id,
        row.event_index,
        row.event_index if row.record is None else row.record,
        row.quote,
        row.span or (0, len(row.quote)),
        row.observed_at or otherwise,
        row.status,
        row.polarity,
        row.origin,
    )


def _candidate(row: rows.FactRow, said: rows.WitnessRow, quotes: Sequence[rows.EvidenceRow], evidence: tuple[Evidence, ...]) -> Candidate:
    scope, owner = _owner(row)
    base: dict[str, Any] = {name: getattr(row, name) for name in TOLD}
    base |= {"content": row.unedited or row.content, "source": row.source or next((q.source for q in quotes if q.source), "import")}
    own = {name: getattr(said, name) for name in said.model_fields_set if name in TOLD}
    return Candidate(scope=scope, owner=owner, claim=_claim(row), evidence=evidence, **{**base, **own})


def batch_of(
    incoming: Incoming, known: Mapping[str, tuple[Fact, tuple[Witness, ...]]], retracted: Iterable[str], fold: Fold
) -> tuple[Batch, Imported]:
    """What has to be written so that the store knows the incoming facts too, and the count of it. `known` is the state of the facts among them."""
    batch, away = Batch({}), set(retracted)
    counts = {"added": 0, "extended": 0, "unchanged": 0, "retracted": 0}
    for fact_id, (row, told) in incoming.facts.items():
        old, before = known.get(fact_id, (None, ()))
        have = {w.run_id for w in before}
        # Testimony by hand for what runs have said already is a repetition, not one more witness.
        new = [w for w in told if w.run_id not in have and not (have and w.run_id == MANUAL_RUN)]
        pins = old is not None and row.pinned and not old.pinned
        if fact_id in away or not (new or pins):
            counts["retracted" if fact_id in away else "unchanged"] += 1
            continue
        folded = fold([*before, *new])
        batch.facts[fact_id] = _marked(folded, row, old, incoming.new_ids)
        batch.witnesses |= {(fact_id, w.run_id): w for w in new}
        if old is None and row.unedited is not None:
            batch.edited[fact_id] = row.content
        counts["added" if old is None else "extended"] += 1
    batch.recorded = {key: at for key, at in incoming.recorded.items() if key in batch.witnesses}
    return batch, Imported(**counts)


def _marked(folded: Fact, row: rows.FactRow, old: Fact | None, new_ids: Mapping[str, str]) -> Fact:
    if old is not None:
        marks = {n: getattr(old, n) for n in ("importance", "valid_to", "superseded_by", "recorded_at")}
        return replace(folded, **marks, pinned=old.pinned or row.pinned)
    superseded_by = None if row.superseded_by is None else new_ids.get(row.superseded_by, row.superseded_by)
    return replace(
        folded,
        importance=row.importance,
        pinned=row.pinned,
        valid_to=row.valid_to,
        superseded_by=superseded_by,
        recorded_at=row.recorded_at,
    )


def store(connection: Connection, incoming: Incoming, known: Mapping[str, tuple[Fact, tuple[Witness, ...]]], fold: Fold) -> Imported:
    """Write the incoming rows within the caller's transaction."""
    wanted = [list(incoming.facts)]
    gone = connection.execute("SELECT fact_id FROM tombstones WHERE fact_id IN (SELECT unnest(?::VARCHAR[]))", wanted).fetchall()
    retracted = {row[0] for row in gone}
    batch, done = batch_of(incoming, known, retracted, fold)
    for run_id, no, at in connection.execute("SELECT run_id, no, recorded_at FROM runs WHERE tenant_id = ?", [incoming.tenant]).fetchall():
        batch.stored_runs[run_id] = (no, at)
    batch.runs = {run_id: entry for run_id, entry in incoming.runs.items() if run_id not in batch.stored_runs}
    numbers = applying.write(connection, batch, incoming.at)
    editing.write_edges(connection, incoming.tenant, incoming.edges)
    applying.relate(connection, batch, numbers)
    bodies = {(row.type, _statistic_key(row)): rows.line(row.model_copy(update={"tenant_id": None})) for row in incoming.statistics}
    for kind, key in bodies:
        connection.execute("DELETE FROM imported_statistics WHERE tenant_id = ? AND kind = ? AND row_key = ?", [incoming.tenant, kind, key])
    insert(connection, "imported_statistics", _STATISTICS, [(incoming.tenant, *key, body) for key, body in bodies.items()])
    return done._replace(runs=len(batch.runs), edges=len(incoming.edges), statistics=len(bodies))


def _statistic_key(row: rows.PatternRow | rows.EngineProfileRow) -> str:
    if isinstance(row, rows.PatternRow):
        return row.pattern_id or row.description
    return ids.canonical([row.engine, row.model])


def pattern(row: rows.PatternRow, tenant: str) -> Pattern:
    """A pattern that came without its runs."""
    never = datetime.fromtimestamp(0, UTC)
    named = {n: getattr(row, n) for n in ("description", "frequency", "confidence", "runs", "hits", "interval")}
    pattern_id = row.pattern_id or ids.content_id("p1", [tenant, row.description])
    return Pattern(pattern_id, **named, group=dict(row.group), first_seen=row.first_seen or never, last_seen=row.last_seen or never)


def profile(row: rows.EngineProfileRow) -> EngineProfile:
    """A profile that came without its runs."""
    return EngineProfile(**{f.name: getattr(row, f.name) for f in fields(EngineProfile)})
