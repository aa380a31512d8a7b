"""What a tenant's stored runs come to: counts, rates, patterns, profiles, and what models have cost. Reads the store, writes nothing."""

from collections.abc import Sequence
from typing import Any, cast

from osmia_memory import aggregate, predicting
from osmia_memory.models import Fact, Outcome
from osmia_memory.store.fact_store import FactStore

_GROUPS = (("repo",), ("repo", "engine"), ("repo", "task_type"), ("engine", "model"), ("language",))
_ENGINES = (("engine",), ("engine", "task_type"), ("engine", "language"), ("engine", "repo"))


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
        "engines": [stats for names in _ENGINES for stats in aggregate.group(rows, names)],
        "expected": _expected(rows),
        "patterns": [
            *aggregate.recurring(facts, rows, tenant),
            *aggregate.patterns(rows, tenant),
            *(p for p in other_patterns if repo in (None, p.group.get("repo"))),
        ],
        "profiles": [*profiles, *(p for p in other_profiles if repo is None and (p.engine, p.model) not in seen)],
    }


def _expected(rows: Sequence[aggregate.RunRow]) -> dict[str, dict[str, float]]:
    """Engine -> repository -> how likely the next task there succeeds (`predicting.expected`), for engines with enough known outcomes."""
    seen = predicting.nothing_seen()
    known = [r for r in rows if r.outcome in ("success", "failure") and r.repo]
    for row in known:
        seen.add(row.engine, row.repo or "", row.outcome == "success")
    engines = sorted({e for e in {r.engine for r in known} if seen.runs["engine", e] >= aggregate.MIN_RUNS})
    repos = sorted({r.repo for r in known if r.repo and seen.runs["repo", r.repo] >= aggregate.MIN_RUNS})
    return {engine: {repo: round(predicting.expected(seen, engine, repo), 4) for repo in repos} for engine in engines}


def _model_pass(store: FactStore, tenant: str) -> dict[str, Any] | None:
    """What asking models has cost the tenant, and how many parts of how many runs wait for an answer; None if none was asked."""
    with store.session() as s:
        spent, waiting = s.spent(tenant=tenant), s.pending_chunks(tenant)
    if not spent.requests and not waiting:
        return None
    return {**spent._asdict(), "pending_parts": len(waiting), "partial_runs": len({part.run_id for part in waiting})}
