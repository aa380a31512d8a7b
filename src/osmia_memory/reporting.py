"""What a tenant's stored runs come to: counts, rates, patterns, profiles, and what models have cost. Reads the store, writes nothing."""

from collections.abc import Sequence
from typing import Any, cast

from osmia_memory import aggregate
from osmia_memory.models import Fact, Outcome
from osmia_memory.store.fact_store import FactStore

_GROUPS = (("repo",), ("repo", "engine"), ("repo", "task_type"), ("engine", "model"), ("language",))


def statistics(store: FactStore | None, tenant: str, facts: Sequence[Fact], repo: str | None = None) -> dict[str, Any]:
    """Counts and rates: `groups`, `patterns` and `profiles` with their sample counts and intervals, and `model_pass`.

    Patterns and profiles that were imported without their runs come after those of the runs; a profile only where no run speaks.
    `facts` are the current ones of `repo`, or of all repositories.
    """
    figures = store.run_rows(tenant) if store else []
    rows = [
        aggregate.RunRow(*f[:5], cast(Outcome, f.outcome), f.duration_s, f.cost_usd, f.started_at)
        for f in figures
        if f.parent_session_id is None and f.started_at and repo in (None, f.repo)
    ]
    profiles = aggregate.profiles(rows)
    other_patterns, other_profiles = store.imported_statistics(tenant) if store else ([], [])
    seen = {(p.engine, p.model) for p in profiles}
    return {
        "runs": len(rows),
        "facts": len(facts),
        "corroborated": sum(f.runs >= 2 for f in facts),
        "model_pass": _model_pass(store, tenant) if store else None,
        "groups": [stats for names in _GROUPS for stats in aggregate.group(rows, names)],
        "patterns": [*aggregate.patterns(rows, tenant), *(p for p in other_patterns if repo in (None, p.group.get("repo")))],
        "profiles": [*profiles, *(p for p in other_profiles if repo is None and (p.engine, p.model) not in seen)],
    }


def _model_pass(store: FactStore, tenant: str) -> dict[str, Any] | None:
    """What asking models has cost the tenant, and how many parts of how many runs wait for an answer; None if none was asked."""
    with store.session() as s:
        spent, waiting = s.spent(tenant=tenant), s.pending_chunks(tenant)
    if not spent.requests and not waiting:
        return None
    return {**spent._asdict(), "pending_parts": len(waiting), "partial_runs": len({part.run_id for part in waiting})}
