"""What the model pass did: the state of each part of a run, and what every request cost. No text of a run, a prompt or a reply."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from osmia_memory.store import codec
from osmia_memory.store.operations import Operations, Parameters, checked_tenant, insert

DONE = ("ok", "empty")  # states of a part that is not asked for again


class ChunkState(NamedTuple):
    """How far one part of a run has come under one version of a prompt. `key` hashes the part's text."""

    run_id: str
    prompt: str  # "extract_facts@v1:1f3a9c"
    key: str
    number: int  # of the part, from 1
    parts: int
    state: str  # ok, empty, refused, truncated, invalid, failed
    model: str
    detail: str = ""  # one redacted line on what went wrong


class Request(NamedTuple):
    """One request to a model, whatever became of it. `cost_usd` is None where no price is known."""

    model: str
    state: str
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    latency_s: float
    error: str = ""


class Spent(NamedTuple):
    """Requests and what they cost together; those without a known price count 0 USD."""

    requests: int
    tokens: int
    cost_usd: float


_CHUNKS = {
    "tenant_id": "VARCHAR",
    "run_id": "VARCHAR",
    "prompt": "VARCHAR",
    "chunk_key": "VARCHAR",
    "number": "INTEGER",
    "parts": "INTEGER",
    "state": "VARCHAR",
    "model": "VARCHAR",
    "detail": "VARCHAR",
    "recorded_at": "TIMESTAMP",
}
_REQUESTS = {
    "tenant_id": "VARCHAR",
    "run_id": "VARCHAR",
    "prompt": "VARCHAR",
    "chunk_key": "VARCHAR",
    "position": "INTEGER",
    "model": "VARCHAR",
    "state": "VARCHAR",
    "tokens_in": "BIGINT",
    "tokens_out": "BIGINT",
    "cost_usd": "DOUBLE",
    "latency_s": "DOUBLE",
    "error": "VARCHAR",
    "recorded_at": "TIMESTAMP",
}


class Ledger(Operations):
    """Reads and writes of the model pass's own records."""

    def record_requests(self, tenant: str, run_id: str, prompt: str, key: str, requests: Sequence[Request], *, at: datetime) -> None:
        """Add the requests that one part of a run took."""
        whose, moment = checked_tenant(tenant), codec.to_utc(at)
        with self._writing() as connection:
            rows = [(whose, run_id, prompt, key, n, *request, moment) for n, request in enumerate(requests)]
            insert(connection, "requests", _REQUESTS, rows)

    def record_chunks(self, tenant: str, chunks: Sequence[ChunkState], *, at: datetime) -> None:
        """Replace the states of these parts, in one transaction."""
        whose, moment = checked_tenant(tenant), codec.to_utc(at)
        if not chunks:
            return
        with self._writing() as connection:
            connection.execute(
                "DELETE FROM chunks WHERE tenant_id = ? AND [run_id, prompt, chunk_key] IN (SELECT unnest(?::VARCHAR[][]))",
                [whose, codec.storable_deep([[c.run_id, c.prompt, c.key] for c in chunks])],
            )
            insert(connection, "chunks", _CHUNKS, [(whose, *chunk, moment) for chunk in chunks])

    def chunk_states(self, tenant: str, run_ids: Iterable[str], prompt: str) -> dict[tuple[str, str], str]:
        """(run id, chunk key) -> state."""
        whose = checked_tenant(tenant)
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT run_id, chunk_key, state FROM chunks WHERE tenant_id = ? AND prompt = ? AND run_id IN (SELECT unnest(?::VARCHAR[]))",
                [whose, codec.storable(prompt), codec.storable_deep(list(run_ids))],
            ).fetchall()
        return {(row[0], row[1]): row[2] for row in rows}

    def pending_chunks(self, tenant: str) -> list[ChunkState]:
        """Parts that were asked for and not answered well, by run and number."""
        whose = checked_tenant(tenant)
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT run_id, prompt, chunk_key, number, parts, state, model, detail FROM chunks "
                "WHERE tenant_id = ? AND state NOT IN (SELECT unnest(?::VARCHAR[])) ORDER BY run_id, number, chunk_key",
                [whose, list(DONE)],
            ).fetchall()
        return [ChunkState(*row) for row in rows]

    def spent(self, *, since: datetime | None = None, tenant: str | None = None) -> Spent:
        """All requests recorded from `since` on, of all tenants unless one is named: a day's budget is that of the store."""
        conditions = ["TRUE"]
        parameters: Parameters = []
        if tenant is not None:
            conditions.append("tenant_id = ?")
            parameters.append(checked_tenant(tenant))
        if since is not None:
            conditions.append("recorded_at >= ?")
            parameters.append(codec.to_utc(since))
        with self._reading() as connection:
            row = connection.execute(
                f"SELECT count(*), coalesce(sum(tokens_in + tokens_out), 0), coalesce(sum(cost_usd), 0) FROM requests WHERE {' AND '.join(conditions)}",
                parameters,
            ).fetchall()[0]
        return Spent(int(row[0]), int(row[1]), float(row[2]))
