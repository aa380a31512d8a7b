"""Knowledge of one tenant as rows. Equal knowledge gives equal rows, in the same order."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

from osmia_memory.models import Environment, Evidence, Fact, TaskRun, Witness
from osmia_memory.store import codec, rows
from osmia_memory.store.applying import MANUAL_RUN, RunEntry
from osmia_memory.store.operations import HELD, Connection
from osmia_memory.store.reading import witnesses_of

# What a fact row and its witness rows have in common.
TOLD = ("content", "fact_kind", "confidence", "decay_rate", "source", "engine", "task_type", "anchors", "tags")


class _Known(NamedTuple):
    """A fact as stored: what its witnesses say, what a person made of it, and when each witness was recorded."""

    fact: Fact
    edited: str | None
    witnesses: Sequence[Witness]
    recorded: Mapping[str, datetime]  # by run id


def fact_row(known: _Known, *, tenant: str | None, recorded: bool) -> rows.FactRow:
    """A fact with its witnesses; the time of recording only on request."""
    fact = known.fact
    told: dict[str, Any] = {
        "fact_id": fact.fact_id,
        "tenant_id": tenant,
        "content": fact.content if known.edited is None else known.edited,
        "unedited": None if known.edited is None else fact.content,
        "last_seen": None if fact.last_seen == fact.valid_from else fact.last_seen,
        "claim": None if fact.claim is None else rows.ClaimRow(**fact.claim._asdict()),
        "importance": None if fact.importance == 1.0 else fact.importance,
        "pinned": fact.pinned or None,
        "refuting_runs": fact.refuting_runs or None,
        "recorded_at": fact.recorded_at if recorded else None,
        "witnesses": _witness_rows(known, recorded=recorded),
    }
    for name in ("fact_kind", "scope", "owner", "engine", "task_type", "confidence", "decay_rate", "valid_from", "anchors", "tags"):
        told[name] = getattr(fact, name)
    for name in ("valid_to", "superseded_by", "source", "runs", "engines"):
        told[name] = getattr(fact, name)
    return rows.FactRow(**{name: value for name, value in told.items() if value not in (None, (), "")})


def _witness_rows(known: _Known, *, recorded: bool) -> tuple[rows.WitnessRow, ...]:
    fact = known.fact
    found = []
    for witness in sorted(known.witnesses, key=lambda w: w.run_id):
        own: dict[str, Any] = {n: getattr(witness.candidate, n) for n in TOLD if getattr(witness.candidate, n) != getattr(fact, n)}
        if witness.run_id != MANUAL_RUN:
            own["run_id"] = witness.run_id
        if witness.observed_at != fact.valid_from:
            own["observed_at"] = witness.observed_at
        if recorded and known.recorded[witness.run_id] != fact.recorded_at:
            own["recorded_at"] = known.recorded[witness.run_id]
        found.append(rows.WitnessRow(**own))
    is_plain = len(found) == 1 and not found[0].model_fields_set and not known.witnesses[0].candidate.evidence
    return () if is_plain else tuple(found)


def evidence_rows(known: _Known, runs: Mapping[str, TaskRun], *, tenant: str | None) -> list[rows.EvidenceRow]:
    """The quotes behind a fact, sorted, each with what the run says about the place it was found in."""
    found = []
    for witness in known.witnesses:
        run = runs.get(witness.run_id)
        place: dict[str, Any] = {"tenant_id": tenant, "fact_id": known.fact.fact_id, "source": witness.candidate.source}
        if run is not None:
            place |= {"branch": run.branch, "base_commit": run.base_commit, "environment": _environment(run)}
        for e in witness.candidate.evidence:
            quoted = {f.name: getattr(e, f.name) for f in fields(Evidence)}
            found.append(rows.EvidenceRow(**{n: v for n, v in {**place, **quoted}.items() if v is not None and v != {}}))
    return sorted(found, key=lambda row: (row.run_id, row.event_index, row.span, rows.line(row)))


def run_row(entry: RunEntry, *, tenant: str | None, recorded: bool) -> rows.RunRow:
    """A run with its vocabulary and extractor."""
    run = entry.run
    told: dict[str, Any] = {f.name: getattr(run, f.name) for f in fields(TaskRun)}
    told |= {
        "environment": _environment(run),
        "signals": [rows.SignalRow(name=s.name, value=s.value, event_index=s.event_index) for s in run.signals],
    }
    told |= {
        "tenant_id": tenant,
        "vocabulary": entry.vocabulary,
        "extractor": entry.extractor,
        "recorded_at": entry.recorded_at if recorded else None,
    }
    return rows.RunRow(**{name: value for name, value in told.items() if value not in (None, (), [], "", {}, False)})


def _environment(run: TaskRun) -> dict[str, str]:
    return {f.name: value for f in fields(Environment) if (value := getattr(run.environment, f.name)) is not None}


def snapshot(
    connection: Connection, tenant: str, *, label: str | None, recorded: bool, retracted_after: datetime | None = None
) -> list[rows.Row]:
    """All rows of one tenant, sorted. `label` is the tenant to write into them, if any; facts retracted after that time are among them."""
    runs = _stored_runs(connection, tenant)
    plain = {run_id: entry.run for run_id, entry in runs.items()}
    known = _stored_facts(connection, tenant, retracted_after)
    found: list[rows.Row] = [run_row(entry, tenant=label, recorded=recorded) for _, entry in sorted(runs.items())]
    found += [fact_row(k, tenant=label, recorded=recorded) for k in known]
    for k in known:
        found += evidence_rows(k, plain, tenant=label)
    exported = {k.fact.fact_id for k in known} | set(runs)
    for from_id, to_id, relation, weight, reason, at, made_by in connection.execute(
        "SELECT from_id, to_id, relation, weight, reason, created_at, made_by FROM edges WHERE tenant_id = ? ORDER BY ALL", [tenant]
    ).fetchall():
        if from_id in exported and to_id in exported:  # not to a fact that was retracted
            edge = {"from_id": from_id, "to_id": to_id, "relation": relation, "weight": weight, "reason": reason, "created_at": at}
            edge |= {"made_by": made_by} if made_by != "hand" else {}
            found.append(rows.EdgeRow(**edge if label is None else {**edge, "tenant_id": label}))
    for (body,) in connection.execute(
        "SELECT body FROM imported_statistics WHERE tenant_id = ? ORDER BY kind DESC, row_key", [tenant]
    ).fetchall():
        row = rows.parse(body)
        found.append(row if label is None else row.model_copy(update={"tenant_id": label}))
    return found


def _stored_runs(connection: Connection, tenant: str) -> dict[str, RunEntry]:
    columns = ", ".join(codec.RUN_COLUMNS)
    found = connection.execute(f"SELECT vocabulary, extractor, recorded_at, {columns} FROM runs WHERE tenant_id = ?", [tenant]).fetchall()
    return {row[3]: RunEntry(codec.run(row[3:]), tuple(row[0]), row[1], codec.from_utc(row[2])) for row in found}


def _stored_facts(connection: Connection, tenant: str, retracted_after: datetime | None) -> list[_Known]:
    held = f"({HELD} OR (f.pruned_at IS NULL AND f.fact_id IN (SELECT fact_id FROM tombstones WHERE retracted_at > $after)))"
    from_table = f"FROM facts f WHERE f.tenant_id = $tenant AND {held} ORDER BY f.fact_id"
    after = codec.to_utc(retracted_after)  # None: later than no time
    selected = connection.execute(f"SELECT f.no, f.edited, {codec.TOLD_FACT} {from_table}", {"tenant": tenant, "after": after})
    found = {row[0]: row[1:] for row in selected.fetchall()}
    told = witnesses_of(connection, {no: row[1] for no, row in found.items()})
    times: dict[int, dict[str, datetime]] = {}
    for no, run_id, at in connection.execute(
        "SELECT w.fact_no, coalesce(r.run_id, ''), w.recorded_at FROM witnesses w LEFT JOIN runs r ON r.no = w.run_no "
        "WHERE w.fact_no IN (SELECT no FROM facts WHERE tenant_id = ?)",
        [tenant],
    ).fetchall():
        times.setdefault(no, {})[run_id] = at.replace(tzinfo=UTC)
    return [_Known(codec.fact(row[1:]), row[0], told.get(no, ()), times.get(no, {})) for no, row in found.items()]
