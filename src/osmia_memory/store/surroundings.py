"""What bears on a tenant's facts without being a row of an export: said of pairs, the order of commits, stubs of pruned facts."""

from datetime import datetime
from typing import NamedTuple

from osmia_memory.models import Fact
from osmia_memory.store import codec
from osmia_memory.store.applying import FACT_TABLE
from osmia_memory.store.operations import Connection, insert, take_numbers
from osmia_memory.store.relating import PAIRS


class Pair(NamedTuple):
    """What a person ("apart") or a model ("nominated") said of two facts."""

    kind: str
    one: str
    other: str
    said_by: str
    recorded_at: datetime | None


class Stub(NamedTuple):
    """A pruned fact: times and counts, no text."""

    fact: Fact
    pruned_at: datetime | None


class Surroundings(NamedTuple):
    """All of it, of one tenant."""

    pairs: tuple[Pair, ...] = ()
    ancestry: tuple[tuple[str, str], ...] = ()  # (newer, older) commits
    stubs: tuple[Stub, ...] = ()


def read(connection: Connection, tenant: str) -> Surroundings:
    """What the store holds."""
    pairs = connection.execute("SELECT kind, one, other, said_by, recorded_at FROM pairs WHERE tenant_id = ? ORDER BY ALL", [tenant])
    named = tuple(Pair(row[0], row[1], row[2], row[3], codec.from_utc(row[4])) for row in pairs.fetchall())
    ancestry = connection.execute("SELECT newer, older FROM ancestry WHERE tenant_id = ? ORDER BY ALL", [tenant]).fetchall()
    stubs = connection.execute(
        f"SELECT f.pruned_at, {codec.TOLD_FACT} FROM facts f WHERE f.tenant_id = ? AND f.pruned_at IS NOT NULL ORDER BY f.fact_id", [tenant]
    ).fetchall()
    return Surroundings(
        named, tuple((row[0], row[1]) for row in ancestry), tuple(Stub(codec.fact(row[1:]), codec.from_utc(row[0])) for row in stubs)
    )


def write(connection: Connection, tenant: str, given: Surroundings) -> None:
    """Put it into an empty store, within the caller's transaction and before the facts that it bears on."""
    insert(connection, "pairs", PAIRS, [(tenant, p.kind, p.one, p.other, p.said_by, codec.to_utc(p.recorded_at)) for p in given.pairs])
    columns = {"tenant_id": "VARCHAR", "newer": "VARCHAR", "older": "VARCHAR"}
    insert(connection, "ancestry", columns, [(tenant, *pair) for pair in given.ancestry])
    numbers = take_numbers(connection, len(given.stubs))
    stubs = [
        (*codec.fact_row(stub.fact), *codec.Extra(no, pruned_at=codec.to_utc(stub.pruned_at)))
        for stub, no in zip(given.stubs, numbers, strict=True)
    ]
    insert(connection, "facts", FACT_TABLE, stubs)
