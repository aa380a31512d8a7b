"""Reads of facts, their testimony, runs and the journal. All keep to one tenant."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from osmia_memory.models import Edge, Evidence, Fact, TaskRun, Witness
from osmia_memory.store import codec
from osmia_memory.store.operations import CURRENT, HELD, RETRACTED, Connection, Operations, Owners, checked_tenant, of_owners, of_tenant

State = dict[str, tuple[Fact, tuple[Witness, ...]]]
MANUAL_RUN_NO = 0  # of witnesses without a run

_RUNS = ", ".join(f"r.{name}" for name in codec.RUN_COLUMNS)
_EVIDENCE = ", ".join(f"e.{name}" for name in codec.EVIDENCE_COLUMNS)


class RunVersion(NamedTuple):
    """Which version of a run is stored, and what read it. Equal to both: nothing to do."""

    version: str
    extractor: str


class RunFigures(NamedTuple):
    """What statistics need of one run."""

    repo: str | None
    engine: str
    model: str | None
    task_type: str
    language: str | None
    outcome: str
    duration_s: float | None
    cost_usd: float | None
    tokens_in: int | None
    tokens_out: int | None
    started_at: datetime | None
    finished_at: datetime | None
    parent_session_id: str | None


class Change(NamedTuple):
    """A decision that a person took. `before` are the flags and numbers to go back to; it holds no content."""

    change_id: int
    at: datetime
    who: str
    what: str  # "pin", "unpin", "retract", "restore", "edit", "forget_run", "forget_repo"
    subject: str  # the fact's id, the run's id or the repository
    before: dict[str, Any]


class Tombstone(NamedTuple):
    """A fact that somebody retracted."""

    fact_id: str
    reason: str
    retracted_at: datetime


class Reading(Operations):
    """Reads of facts, testimony, runs and the journal."""

    # --- facts ---

    def facts(
        self,
        tenant: str | None,
        owners: Owners | None = None,
        include_superseded: bool = False,
        limit: int | None = None,
        *,
        all_tenants: bool = False,
    ) -> list[Fact]:
        """Facts of these (scope, owner) pairs (None: of all), latest evidence first, then by id; without retracted and pruned ones."""
        whose, owned = of_tenant(tenant, all_tenants=all_tenants), of_owners(owners)
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT {codec.SHOWN_FACT} FROM facts f WHERE {whose.sql} AND {owned.sql} AND {HELD if include_superseded else CURRENT} "
                "ORDER BY f.last_seen DESC, f.fact_id LIMIT ?",
                [*whose.parameters, *owned.parameters, limit],
            ).fetchall()
        return [codec.fact(row) for row in rows]

    def fact(self, tenant: str, fact_id: str) -> Fact | None:
        """One fact, superseded or not; None if the tenant has none with this id, or it was retracted or pruned."""
        found = self.facts_by_id(tenant, [fact_id])
        return found[0] if found else None

    def facts_by_id(self, tenant: str, fact_ids: Iterable[str]) -> list[Fact]:
        """The facts with these ids in that order, superseded ones too; unknown, retracted and pruned ones are left out."""
        wanted = list(dict.fromkeys(fact_ids))
        whose = of_tenant(tenant)
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT {codec.SHOWN_FACT} FROM facts f WHERE {whose.sql} AND {HELD} AND f.fact_id IN (SELECT unnest(?::VARCHAR[]))",
                [*whose.parameters, codec.storable_deep(wanted)],
            ).fetchall()
        by_id = {row[0]: codec.fact(row) for row in rows}
        return [by_id[fact_id] for fact_id in wanted if fact_id in by_id]

    def find(self, tenant: str, prefix: str) -> list[str]:
        """Ids of facts and runs that begin with `prefix`, with or without their tag ("f1:3a" or "3a"), sorted; none for an empty prefix."""
        whose, bare = checked_tenant(tenant), codec.storable(prefix.strip())
        if not bare:
            return []
        with self._reading() as connection:
            rows = connection.execute(
                f"""SELECT id FROM (
                        SELECT f.fact_id AS id FROM facts f WHERE f.tenant_id = $tenant AND {HELD}
                        UNION ALL SELECT r.run_id FROM runs r WHERE r.tenant_id = $tenant
                    ) WHERE starts_with(id, $prefix) OR starts_with(split_part(id, ':', 2), $prefix) ORDER BY id""",
                {"tenant": whose, "prefix": bare},
            ).fetchall()
        return [row[0] for row in rows]

    def pruned(self, tenant: str, prefix: str) -> tuple[str, datetime] | None:
        """(id, when) of the pruned fact whose id begins so, with or without its tag; None for none or several."""
        bare = codec.storable(prefix.strip().removeprefix("f1:"))
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT fact_id, pruned_at FROM facts WHERE tenant_id = ? AND pruned_at IS NOT NULL AND starts_with(split_part(fact_id, ':', 2), ?)",
                [checked_tenant(tenant), bare],
            ).fetchall()
        return (rows[0][0], _known(codec.from_utc(rows[0][1]))) if bare and len(rows) == 1 else None

    def same_slot(self, tenant: str, slots: Iterable[tuple[str, str, str, str, str]]) -> list[Fact]:
        """Held facts, superseded ones too, whose (scope, owner, subject, attribute, qualifier) is among `slots`, by id."""
        wanted = codec.storable_deep([list(slot) for slot in slots])
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT {codec.SHOWN_FACT} FROM facts f WHERE f.tenant_id = ? AND {HELD} AND f.claim IS NOT NULL "
                "AND [f.scope, f.owner, f.claim[1], f.claim[2], f.claim[3]] IN (SELECT unnest(?::VARCHAR[][])) ORDER BY f.fact_id",
                [checked_tenant(tenant), wanted],
            ).fetchall()
        return [codec.fact(row) for row in rows]

    def edges(self, tenant: str, node_ids: Collection[str] | None = None) -> list[Edge]:
        """Links of the tenant, or those with one end among `node_ids`, sorted."""
        chosen = (
            "TRUE" if node_ids is None else "(from_id IN (SELECT unnest($ids::VARCHAR[])) OR to_id IN (SELECT unnest($ids::VARCHAR[])))"
        )
        parameters: dict[str, Any] = {"tenant": checked_tenant(tenant)}
        if node_ids is not None:
            parameters["ids"] = codec.storable_deep(list(node_ids))
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT from_id, to_id, relation, weight, reason, created_at FROM edges WHERE tenant_id = $tenant AND {chosen} ORDER BY ALL",
                parameters,
            ).fetchall()
        return [Edge(a, b, relation, weight, reason, _known(codec.from_utc(at))) for a, b, relation, weight, reason, at in rows]

    def shared(self, tenant: str, org: str, repo: str) -> list[Fact]:
        """Current facts of the owner's other repositories that at least two of those have with the same claim, or the same words."""
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT {codec.SHOWN_FACT} FROM facts f WHERE f.tenant_id = $tenant AND f.scope = 'repo' AND starts_with(f.owner, $prefix) "
                f"AND f.owner <> $repo AND {CURRENT} WINDOW same AS (PARTITION BY f.content, f.claim) "
                "QUALIFY min(f.owner) OVER same <> max(f.owner) OVER same ORDER BY f.fact_id",
                {"tenant": checked_tenant(tenant), "prefix": codec.storable(org) + "/", "repo": codec.storable(repo)},
            ).fetchall()
        return [codec.fact(row) for row in rows]

    def contradictions(self, tenant: str) -> list[tuple[str, str]]:
        """Pairs of facts of the tenant that contradict each other, sorted."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT from_id, to_id FROM edges WHERE tenant_id = ? AND relation = 'contradicts' ORDER BY ALL", [checked_tenant(tenant)]
            ).fetchall()
        return [(row[0], row[1]) for row in rows]

    # --- testimony ---

    def state_for(self, tenant: str, fact_ids: Iterable[str]) -> State:
        """Each known fact of these with all its witnesses, for reconciliation; the content is what the witnesses said.

        A pruned fact comes as a stub: without text, but with its witnesses' times, engines and origins, so that later evidence revives it
        with its history. Retracted facts are left out.
        """
        return self._states(tenant, "f.fact_id IN (SELECT unnest(?::VARCHAR[]))", [codec.storable_deep(list(fact_ids))])

    def states(self, tenant: str, owners: Owners | None = None) -> State:
        """Like `state_for`, for all held facts of these owners."""
        owned = of_owners(owners)
        return self._states(tenant, f"{owned.sql} AND f.pruned_at IS NULL", owned.parameters)

    def _states(self, tenant: str, condition: str, parameters: list[Any]) -> State:
        whose = of_tenant(tenant)
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT f.no, {codec.TOLD_FACT} FROM facts f WHERE {whose.sql} AND f.fact_id NOT IN {RETRACTED} AND {condition} ORDER BY f.fact_id",
                [*whose.parameters, *parameters],
            ).fetchall()
            known = {row[0]: codec.fact(row[1:]) for row in rows}
            told = witnesses_of(connection, {no: fact.fact_id for no, fact in known.items()})
        return {fact.fact_id: (fact, tuple(told.get(no, ()))) for no, fact in known.items()}

    def witnesses(self, tenant: str, fact_id: str) -> tuple[Witness, ...]:
        """Every run's testimony for one fact, by run id; empty for an unknown fact."""
        found = self.state_for(tenant, [fact_id])
        return found[fact_id][1] if fact_id in found else ()

    def evidence(self, tenant: str, fact_id: str) -> list[Evidence]:
        """All quotes behind a fact, earliest first."""
        found = [e for w in self.witnesses(tenant, fact_id) for e in w.candidate.evidence]
        return sorted(found, key=lambda e: (e.observed_at, e.run_id, e.event_index, e.span, e.quote))

    def facts_of_run(self, tenant: str, run_id: str) -> set[str]:
        """Ids of the facts that this run witnesses; without retracted ones, whose testimony stays as it is until they are restored."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT f.fact_id FROM facts f JOIN witnesses w ON w.fact_no = f.no JOIN runs r ON r.no = w.run_no "
                f"WHERE r.run_id = ? AND r.tenant_id = ? AND f.fact_id NOT IN {RETRACTED}",
                [codec.storable(run_id), checked_tenant(tenant)],
            ).fetchall()
        return {row[0] for row in rows}

    def tombstones(self, tenant: str, fact_ids: Iterable[str] | None = None) -> dict[str, Tombstone]:
        """Retractions, of all facts or of these; nothing brings such a fact back but `restore`."""
        chosen, parameters = "TRUE", [checked_tenant(tenant)]
        if fact_ids is not None:
            chosen = "fact_id IN (SELECT unnest(?::VARCHAR[]))"
            parameters.append(codec.storable_deep(list(fact_ids)))
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT fact_id, reason, retracted_at FROM tombstones WHERE tenant_id = ? AND {chosen} ORDER BY fact_id", parameters
            ).fetchall()
        return {row[0]: Tombstone(row[0], row[1], _known(codec.from_utc(row[2]))) for row in rows}

    # --- runs ---

    def run_versions(self, tenant: str) -> dict[str, RunVersion]:
        """run id -> the stored version and the extractor that read it."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT run_id, version, extractor FROM runs WHERE tenant_id = ?", [checked_tenant(tenant)]
            ).fetchall()
        return {row[0]: RunVersion(row[1], row[2]) for row in rows}

    def run_version(self, tenant: str, run_id: str) -> RunVersion | None:
        """The stored version of one run and its extractor; None if it is not stored."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT version, extractor FROM runs WHERE tenant_id = ? AND run_id = ?", [checked_tenant(tenant), codec.storable(run_id)]
            ).fetchall()
        return RunVersion(*rows[0]) if rows else None

    def known_runs(self, tenant: str) -> set[str]:
        """Ids of all stored runs."""
        return set(self.run_versions(tenant))

    def runs(self, tenant: str | None, repo: str | None = None, *, all_tenants: bool = False) -> list[TaskRun]:
        """Stored runs, of one repository or all, latest first; runs without times last."""
        whose = of_tenant(tenant, all_tenants=all_tenants, column="r.tenant_id")
        here, parameters = ("TRUE", []) if repo is None else ("r.repo = ?", [codec.storable(repo)])
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT {_RUNS} FROM runs r WHERE {whose.sql} AND {here} ORDER BY r.started_at DESC NULLS LAST, r.run_id",
                [*whose.parameters, *parameters],
            ).fetchall()
        return [codec.run(row) for row in rows]

    def run(self, tenant: str, run_id: str) -> TaskRun | None:
        """One run, or None."""
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT {_RUNS} FROM runs r WHERE r.tenant_id = ? AND r.run_id = ?", [checked_tenant(tenant), codec.storable(run_id)]
            ).fetchall()
        return codec.run(rows[0]) if rows else None

    def run_rows(self, tenant: str) -> list[RunFigures]:
        """The figures of every run, sub-agents' too (they have a parent), in a stable order."""
        columns = ", ".join(RunFigures._fields)
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT {columns} FROM runs WHERE tenant_id = ? ORDER BY started_at NULLS LAST, run_id", [checked_tenant(tenant)]
            ).fetchall()
        return [RunFigures(*row)._replace(started_at=codec.from_utc(row[10]), finished_at=codec.from_utc(row[11])) for row in rows]

    def known_repo(self, tenant: str, repo: str) -> bool:
        """Whether a run or a fact of this repository was ever stored: an empty answer then means "nothing to say"."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT 1 FROM runs WHERE tenant_id = $tenant AND repo = $repo "
                "UNION ALL SELECT 1 FROM facts WHERE tenant_id = $tenant AND scope = 'repo' AND owner = $repo LIMIT 1",
                {"tenant": checked_tenant(tenant), "repo": codec.storable(repo)},
            ).fetchall()
        return bool(rows)

    def known_tenants(self) -> list[str]:
        """Every tenant with a run or a fact, sorted. An administrator's question: it crosses tenants."""
        with self._reading() as connection:
            rows = connection.execute("SELECT tenant_id FROM runs UNION SELECT tenant_id FROM facts ORDER BY 1").fetchall()
        return [row[0] for row in rows]

    def terms_known(self, tenant: str, repo: str, terms: Iterable[str]) -> set[str]:
        """Which of these lower-case names (paths, symbols, tests, commands) occur in that repository's runs."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT DISTINCT term FROM (SELECT unnest(vocabulary) AS term FROM runs WHERE tenant_id = ? AND repo = ?) "
                "WHERE term IN (SELECT unnest(?::VARCHAR[]))",
                [checked_tenant(tenant), codec.storable(repo), codec.storable_deep(list(terms))],
            ).fetchall()
        return {row[0] for row in rows}

    # --- the store itself ---

    def generation(self) -> int:
        """A number that grows with every write; 0 for a store without one."""
        with self._reading() as connection:
            found: int = connection.execute("SELECT generation FROM state").fetchall()[0][0]
        return found

    def changes(self, tenant: str, limit: int | None = None) -> list[Change]:
        """What people decided, latest first."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT change_id, changed_at, who, what, subject, before FROM changes WHERE tenant_id = ? ORDER BY change_id DESC LIMIT ?",
                [checked_tenant(tenant), limit],
            ).fetchall()
        return [
            Change(n, _known(codec.from_utc(at)), who, what, subject, orjson.loads(before)) for n, at, who, what, subject, before in rows
        ]


def witnesses_of(connection: Connection, fact_ids: dict[int, str]) -> dict[int, list[Witness]]:
    """Witnesses by the fact's row number, each list by run id. `fact_ids` maps row numbers to ids."""
    numbers = list(fact_ids)
    quotes: dict[tuple[int, int], list[Evidence]] = {}
    for row in connection.execute(
        f"SELECT e.fact_no, e.run_no, coalesce(r.run_id, ''), {_EVIDENCE} FROM evidence e LEFT JOIN runs r ON r.no = e.run_no "
        "WHERE e.fact_no IN (SELECT unnest(?::BIGINT[])) ORDER BY e.fact_no, e.run_no, e.position",
        [numbers],
    ).fetchall():
        quotes.setdefault((row[0], row[1]), []).append(codec.evidence(row[2], row[3:]))
    told: dict[int, list[Witness]] = {}
    for fact_no, run_no, run_id, observed_at, candidate in connection.execute(
        "SELECT w.fact_no, w.run_no, coalesce(r.run_id, ''), w.observed_at, w.candidate FROM witnesses w LEFT JOIN runs r ON r.no = w.run_no "
        "WHERE w.fact_no IN (SELECT unnest(?::BIGINT[])) ORDER BY w.fact_no, 3",
        [numbers],
    ).fetchall():
        testimony = codec.candidate(candidate, quotes.get((fact_no, run_no), ()))
        told.setdefault(fact_no, []).append(Witness(fact_ids[fact_no], run_id, testimony, _known(codec.from_utc(observed_at))))
    return told


def _known(moment: datetime | None) -> datetime:
    assert moment is not None  # the column is NOT NULL
    return moment
