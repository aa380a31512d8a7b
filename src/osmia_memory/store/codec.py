"""Values of `models` <-> rows of the tables. Knows the columns, runs no statement."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from osmia_memory.models import Candidate, Claim, Environment, Evidence, Fact, Signal, TaskRun

Row = tuple[Any, ...]

# The columns of `facts` that hold a `Fact`, in the order of `fact_row`.
FACT_COLUMNS: Mapping[str, str] = {
    "fact_id": "VARCHAR",
    "tenant_id": "VARCHAR",
    "content": "VARCHAR",
    "fact_kind": "VARCHAR",
    "scope": "VARCHAR",
    "owner": "VARCHAR",
    "confidence": "DOUBLE",
    "decay_rate": "DOUBLE",
    "valid_from": "TIMESTAMP",
    "last_seen": "TIMESTAMP",
    "runs": "INTEGER",
    "refuting_runs": "INTEGER",
    "claim": "VARCHAR[]",
    "engine": "VARCHAR",
    "engines": "VARCHAR[]",
    "task_type": "VARCHAR",
    "anchors": "VARCHAR[]",
    "tags": "VARCHAR[]",
    "importance": "DOUBLE",
    "pinned": "BOOLEAN",
    "valid_to": "TIMESTAMP",
    "superseded_by": "VARCHAR",
    "recorded_at": "TIMESTAMP",
    "source": "VARCHAR",
}
assert list(FACT_COLUMNS) == [f.name for f in fields(Fact)]

# Columns of `facts` beside those: row number, search document, what a person or the decay pass has set.
EXTRA_COLUMNS: Mapping[str, str] = {
    "no": "BIGINT",
    "doc": "BIGINT",
    "doc_length": "INTEGER",
    "doc_key": "VARCHAR",
    "edited": "VARCHAR",
    "pruned_at": "TIMESTAMP",
}


class Extra(NamedTuple):
    """The `EXTRA_COLUMNS` of one fact."""

    no: int
    doc: int | None = None
    doc_length: int | None = None
    doc_key: str | None = None
    edited: str | None = None
    pruned_at: datetime | None = None  # naive UTC, as in the table


# What a reader selects: the wording that a person gave stands in for the witnesses' own.
SHOWN_FACT = ", ".join(f"coalesce(f.edited, f.{n}) AS {n}" if n == "content" else f"f.{n}" for n in FACT_COLUMNS)
TOLD_FACT = ", ".join(f"f.{n}" for n in FACT_COLUMNS)

RUN_COLUMNS: Mapping[str, str] = {
    "run_id": "VARCHAR",
    "tenant_id": "VARCHAR",
    "version": "VARCHAR",
    "repo": "VARCHAR",
    "engine": "VARCHAR",
    "model": "VARCHAR",
    "task_type": "VARCHAR",
    "language": "VARCHAR",
    "outcome": "VARCHAR",
    "duration_s": "DOUBLE",
    "cost_usd": "DOUBLE",
    "tokens_in": "BIGINT",
    "tokens_out": "BIGINT",
    "started_at": "TIMESTAMP",
    "finished_at": "TIMESTAMP",
    "parent_session_id": "VARCHAR",
    "rest": "VARCHAR",
}
_RUN_REST = tuple(f.name for f in fields(TaskRun) if f.name not in RUN_COLUMNS)

EVIDENCE_COLUMNS: Mapping[str, str] = {
    "position": "INTEGER",
    "event_index": "INTEGER",
    "record": "INTEGER",
    "quote": "VARCHAR",
    "span_start": "INTEGER",
    "span_end": "INTEGER",
    "observed_at": "TIMESTAMP",
    "status": "VARCHAR",
    "polarity": "VARCHAR",
    "origin": "VARCHAR",
}


def to_utc(moment: datetime | None) -> datetime | None:
    """A time as the tables hold it: UTC without a zone.

    Raises:
        ValueError: it has no zone, so nobody knows which moment it means.
    """
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"the time {moment!r} has no zone; give timezone-aware times")
    return moment.astimezone(UTC).replace(tzinfo=None)


def from_utc(moment: datetime | None) -> datetime | None:
    """A time of a table as timezone-aware UTC."""
    return None if moment is None else moment.replace(tzinfo=UTC)


def storable(text: str) -> str:
    """`text`, with "?" for halves of a surrogate pair, which UTF-8 cannot hold; every other character keeps its position."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def storable_deep(value: Any) -> Any:
    """`storable` for each text in a value of a column."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list | tuple):
        return [storable_deep(v) for v in value]
    return value


def fact_row(fact: Fact) -> Row:
    """In the order of `FACT_COLUMNS`."""
    return tuple(_column(fact, name, kind) for name, kind in FACT_COLUMNS.items())


def fact(row: Sequence[Any]) -> Fact:
    """From `SHOWN_FACT` or `TOLD_FACT`."""
    values = dict(zip(FACT_COLUMNS, row, strict=True))
    for name in ("valid_from", "last_seen", "valid_to", "recorded_at"):
        values[name] = from_utc(values[name])
    for name in ("engines", "anchors", "tags"):
        values[name] = tuple(values[name])
    if values["claim"] is not None:
        values["claim"] = Claim(*values["claim"])
    return Fact(**values)


def run_row(run: TaskRun) -> Row:
    """In the order of `RUN_COLUMNS`."""
    rest = {name: getattr(run, name) for name in _RUN_REST}
    rest["environment"] = {k: v for k, v in asdict(run.environment).items() if v is not None}
    rest["signals"] = [[s.name, s.value, s.event_index] for s in run.signals]
    plain = {k: storable_deep(v) for k, v in rest.items() if k not in ("environment", "signals")}
    nested = {"environment": {k: storable(v) for k, v in rest["environment"].items()}, "signals": storable_deep(rest["signals"])}
    return (*(_column(run, n, k) for n, k in RUN_COLUMNS.items() if n != "rest"), orjson.dumps({**plain, **nested}).decode())


def run(row: Sequence[Any]) -> TaskRun:
    """From the `RUN_COLUMNS`."""
    values = dict(zip(RUN_COLUMNS, row, strict=True))
    values |= orjson.loads(values.pop("rest"))
    for name in ("started_at", "finished_at"):
        values[name] = from_utc(values[name])
    values["labels"] = tuple(values["labels"])
    values["environment"] = Environment(**values["environment"])
    values["signals"] = tuple(Signal(*s) for s in values["signals"])
    return TaskRun(**values)


def candidate_json(candidate: Candidate) -> str:
    """The testimony without its evidence, as JSON."""
    values = {f.name: storable_deep(getattr(candidate, f.name)) for f in fields(Candidate) if f.name != "evidence"}
    return orjson.dumps(values).decode()


def candidate(text: str, evidence: Sequence[Evidence]) -> Candidate:
    """From `candidate_json` and the evidence rows."""
    values = orjson.loads(text)
    for name in ("anchors", "tags"):
        values[name] = tuple(values[name])
    if values["claim"] is not None:
        values["claim"] = Claim(*values["claim"])
    return Candidate(**values, evidence=tuple(evidence))


def evidence_row(position: int, evidence: Evidence) -> Row:
    """In the order of `EVIDENCE_COLUMNS`."""
    start, end = evidence.span
    found = evidence
    where = (position, found.event_index, found.record, found.quote, start, end)
    return (*where, to_utc(found.observed_at), found.status, found.polarity, found.origin)


def evidence(run_id: str, row: Sequence[Any]) -> Evidence:
    """From the `EVIDENCE_COLUMNS`."""
    _, event_index, record, quote, start, end, observed_at, status, polarity, origin = row
    return Evidence(run_id, event_index, record, quote, (start, end), observed_at.replace(tzinfo=UTC), status, polarity, origin)


def _column(value: Any, name: str, kind: str) -> Any:
    found = getattr(value, name)
    if kind == "TIMESTAMP":
        return to_utc(found)
    return list(found) if kind == "VARCHAR[]" and found is not None else found
