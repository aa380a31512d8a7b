"""Outcome rows -> runs without events, in the store."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import cast, get_args

from osmia_memory import ids
from osmia_memory.models import Plan, Signal, TaskRun, TaskType
from osmia_memory.store.fact_store import FactStore
from osmia_memory.transcripts.outcome_rows import OutcomeRow

EXTRACTOR = "outcomes@1"  # of runs that came without a transcript
_BATCH = 500  # runs of one transaction


def as_run(
    row: OutcomeRow,
    tenant: str,
    engine: str | None,
    repo: str | None,
    at: datetime,
    source: str,
    redact: Callable[[str], str],
    *,
    assumed: bool,
) -> TaskRun:
    """A run with the row's figures. `at` stands in where the row has no time; `assumed` says that nobody gave it."""
    name = redact(engine or row.engine or "")
    finished = row.at or at
    told = row._replace(at=None) if row.at is None and assumed else row._replace(at=finished)
    return TaskRun(
        run_id=ids.run_id(tenant, name, redact(row.instance)),
        tenant_id=tenant,
        engine=name,
        session_id=redact(row.instance),
        version=ids.content_id("v1", [str(part) for part in told]),
        repo=repo or (row.repo and redact(row.repo)),
        model=row.model and redact(row.model),
        task_type=cast(TaskType, row.task_type) if row.task_type in get_args(TaskType) else "unknown",
        language=row.language and redact(row.language),
        base_commit=row.base_commit and redact(row.base_commit),
        started_at=finished,
        finished_at=finished,
        times_assumed=row.at is None,
        duration_s=row.duration_s,
        cost_usd=row.cost_usd,
        tokens_in=row.tokens_in,
        tokens_out=row.tokens_out,
        outcome=row.outcome,
        signals=(Signal("given", row.outcome),),
        source=source,
    )


def store(runs: Sequence[TaskRun], to: FactStore, tenant: str, now: datetime) -> tuple[int, int]:
    """(stored, known already). A run that was read from a transcript stays as it is; the last of several rows for one task counts."""
    latest = list({run.run_id: run for run in runs}.values())
    stored = to.run_versions(tenant)
    new = [
        run
        for run in latest
        if run.run_id not in stored or (stored[run.run_id].extractor == EXTRACTOR and stored[run.run_id].version != run.version)
    ]
    for start in range(0, len(new), _BATCH):
        plans = [Plan(run, (), ()) for run in new[start : start + _BATCH]]
        to.apply_many(plans, recorded_at=now, extractors=[EXTRACTOR] * len(plans))
    return len(new), len(runs) - len(new)
