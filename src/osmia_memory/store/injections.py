"""The ledger of what runs were shown, and what they made of it."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from osmia_memory.spool import Injection
from osmia_memory.store import codec
from osmia_memory.store.operations import Operations, checked_tenant, insert

_INJECTIONS = {
    "key": "VARCHAR", "tenant_id": "VARCHAR", "session": "VARCHAR", "shown_at": "TIMESTAMP", "repo": "VARCHAR", "engine": "VARCHAR",
    "fact_ids": "VARCHAR", "tokens": "BIGINT", "withheld": "BOOLEAN", "run_id": "VARCHAR", "used_ids": "VARCHAR",
}  # fmt: skip


class Recorded(NamedTuple):
    """One injection in the ledger. `used` is None until its run was read."""

    session: str
    at: datetime
    repo: str | None
    fact_ids: tuple[str, ...]
    withheld: bool
    run_id: str | None
    used: frozenset[str] | None


class Ledgered(Operations):
    """Reads and writes of the ledger of injections."""

    def record_injections(self, records: Iterable[Injection]) -> int:
        """Take records in, each once. Returns how many were new."""
        wanted = {r.key: r for r in records}
        if not wanted:
            return 0
        with self._writing() as connection:
            known = {row[0] for row in connection.execute("SELECT key FROM injections").fetchall()}
            new = [r for key, r in sorted(wanted.items()) if key not in known]
            insert(
                connection,
                "injections",
                _INJECTIONS,
                [
                    (
                        r.key, checked_tenant(r.tenant_id), r.session, codec.to_utc(datetime.fromisoformat(r.at)), r.repo, r.engine,
                        " ".join(r.fact_ids), r.tokens, r.withheld, None, None,
                    )
                    for r in new
                ],
            )  # fmt: skip
        return len(new)

    def injections(self, tenant: str) -> list[Recorded]:
        """All of the tenant's, oldest first."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT session, shown_at, repo, fact_ids, withheld, run_id, used_ids FROM injections WHERE tenant_id = ? ORDER BY shown_at, key",
                [checked_tenant(tenant)],
            ).fetchall()
        found = []
        for session, at, repo, fact_ids, withheld, run_id, used in rows:
            moment = codec.from_utc(at)
            assert moment is not None
            was = None if used is None else frozenset(used.split())
            found.append(Recorded(session, moment, repo, tuple(fact_ids.split()), withheld, run_id, was))
        return found

    def note_uses(self, tenant: str, used: Mapping[str, tuple[str, frozenset[str]]]) -> None:
        """Session -> (run id, ids of the facts that the run used)."""
        if not used:
            return
        with self._writing() as connection:
            for session, (run_id, fact_ids) in sorted(used.items()):
                connection.execute(
                    "UPDATE injections SET run_id = ?, used_ids = ? WHERE tenant_id = ? AND session = ?",
                    [run_id, " ".join(sorted(fact_ids)), checked_tenant(tenant), codec.storable(session)],
                )
