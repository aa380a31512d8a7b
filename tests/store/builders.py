"""Small stores for tests: runs that say things, stored the way the pipeline does it."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from osmia_memory import ids, reconcile
from osmia_memory.models import Applied, Candidate, Claim, Plan, TaskRun
from osmia_memory.store.fact_store import FactStore, Session
from osmia_memory.testing import NOW, a_candidate, a_run, an_evidence

TENANT = "ticketing"
REPO = ("repo", "acme/shop")
EXTRACTOR = "rules@1"


def says(run: TaskRun, content: str, *, quotes: Iterable[str] = ("it says so",), at: datetime = NOW, **changes: Any) -> Candidate:
    """A candidate of `run` with one piece of evidence for each quote."""
    evidence = tuple(an_evidence(run.run_id, quote=quote, at=at, event_index=i, record=i) for i, quote in enumerate(quotes))
    return a_candidate(content, run_id=run.run_id, at=at, **{"evidence": evidence, **changes})


def a_claim(value: str, *, qualifier: str = "unit") -> Claim:
    """How the tests are run."""
    return Claim("tests", "command", qualifier, value)


def plan_for(store: FactStore | Session, run: TaskRun, candidates: Iterable[Candidate]) -> Plan:
    """The plan of the state as it is."""
    candidates = list(candidates)
    named = [ids.fact_id(run.tenant_id, c.scope, c.owner, c.claim, c.content) for c in candidates]
    previous = frozenset(store.facts_of_run(run.tenant_id, run.run_id))
    wanted = sorted({*named, *previous})
    return reconcile.plan(
        run,
        candidates,
        store.state_for(run.tenant_id, wanted),
        previous=previous,
        tombstones=frozenset(store.tombstones(run.tenant_id, wanted)),
    )


def remember(store: FactStore, run: TaskRun, *candidates: Candidate, vocabulary: Iterable[str] = (), at: datetime = NOW) -> Applied:
    """Store a run with what it says."""
    with store.session(write=True) as session:
        return session.apply(plan_for(session, run, candidates), recorded_at=at, extractor=EXTRACTOR, vocabulary=vocabulary)


def remember_text(store: FactStore, session_id: str, *contents: str, **run_fields: Any) -> list[str]:
    """Store a run that says these sentences; returns the ids of their facts."""
    run = a_run(session_id, **run_fields)
    scope = {"owner": run.repo} if run.repo else {}
    candidates = [says(run, content, at=run.started_at or NOW, **scope) for content in contents]
    remember(store, run, *candidates)
    return [ids.fact_id(run.tenant_id, c.scope, c.owner, c.claim, c.content) for c in candidates]


def without_recording(fact: Any) -> Any:
    """The fact as `fold` makes it."""
    return replace(fact, recorded_at=None)
