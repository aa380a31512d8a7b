"""What every group of operations shares: a connection for reading or writing, the tenant that limits it, bulk inserts."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import duckdb
import orjson

from osmia_memory.errors import InputError, TenantError
from osmia_memory.store import codec

Connection = duckdb.DuckDBPyConnection
Owners = Sequence[tuple[str, str]]  # (scope, owner)
Parameters = list[Any]

RETRACTED = "(SELECT fact_id FROM tombstones)"
HELD = f"f.pruned_at IS NULL AND f.fact_id NOT IN {RETRACTED}"  # neither pruned nor retracted
CURRENT = f"{HELD} AND f.superseded_by IS NULL"


class Operations(ABC):
    """Operations on a store, whether they open it for themselves (`FactStore`) or share an open one (`Session`)."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Connection]:
        """A connection to read from."""

    @abstractmethod
    def _open_for_writing(self) -> AbstractContextManager[Connection]:
        """A connection to write with, outside a transaction."""

    @abstractmethod
    def _transaction(self, connection: Connection) -> AbstractContextManager[Connection]:
        """All of it or nothing; the store's generation grows."""

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A connection in a transaction, committed at the end."""
        with self._open_for_writing() as connection, self._transaction(connection):
            yield connection


class Where(NamedTuple):
    """A condition and its parameters."""

    sql: str
    parameters: Parameters


def of_tenant(tenant: str | None, *, all_tenants: bool = False, column: str = "f.tenant_id") -> Where:
    """The condition that keeps to one tenant.

    Raises:
        TenantError: no tenant, or one together with `all_tenants`.
    """
    if all_tenants:
        if tenant is not None:
            raise TenantError(f"give a tenant or `all_tenants=True`, not both (tenant {tenant!r})")
        return Where("TRUE", [])
    return Where(f"{column} = ?", [checked_tenant(tenant)])


def checked_tenant(tenant: str | None) -> str:
    """The tenant as stored.

    Raises:
        TenantError: it is missing or blank.
    """
    if not isinstance(tenant, str) or not tenant.strip():
        raise TenantError(f"a tenant is required, got {tenant!r}; there is no wildcard")
    return codec.storable(tenant)


def of_owners(owners: Owners | None) -> Where:
    """The condition that keeps to these (scope, owner) pairs; None means all."""
    if owners is None:
        return Where("TRUE", [])
    if not owners:
        return Where("FALSE", [])
    pairs = " OR ".join(["(f.scope = ? AND f.owner = ?)"] * len(owners))
    return Where(f"({pairs})", [codec.storable(part) for pair in owners for part in pair])


def owner_key(scope: str, owner: str) -> str:
    """Scope and owner as one word of the index."""
    return f"{scope}:{owner}"


def insert(connection: Connection, table: str, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows given in the order of `columns` (name -> type).

    By `unnest` over one list a column: 12 rows of 30 columns take 5 ms that way, 100 ms by `executemany`.
    """
    lists = [codec.storable_deep(column) for column in zip(*rows, strict=True)]
    if lists:
        values = ", ".join(f"unnest(?::{kind}[])" for kind in columns.values())
        connection.execute(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values}", lists)


def take_numbers(connection: Connection, count: int) -> range:
    """`count` numbers that nothing in this store has had."""
    if not count:
        return range(0)
    after: int = connection.execute("UPDATE state SET next_no = next_no + ? RETURNING next_no", [count]).fetchall()[0][0]
    return range(after - count, after)


def leave_to_erase(connection: Connection) -> None:
    """Note that text was removed whose bytes are still in the file, until it is written anew: the process may be killed before that."""
    connection.execute("UPDATE state SET unerased = TRUE")


def journal(connection: Connection, tenant: str, what: str, subject: str, before: Mapping[str, Any], at: datetime | None, who: str) -> None:
    """Record a decision of a person, without any content."""
    number = take_numbers(connection, 1)[0]
    moment = codec.to_utc(at or datetime.now(UTC))
    connection.execute(
        "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)",
        [number, tenant, moment, codec.storable(who), what, codec.storable(subject), orjson.dumps(before).decode()],
    )


def the_fact(connection: Connection, tenant: str, fact_id: str, columns: str) -> tuple[Any, ...]:
    """The given columns of one fact that is not pruned.

    Raises:
        InputError: this tenant has no such fact.
    """
    found = connection.execute(
        f"SELECT {columns} FROM facts f WHERE f.fact_id = ? AND f.tenant_id = ? AND f.pruned_at IS NULL", [codec.storable(fact_id), tenant]
    ).fetchall()
    if not found:
        raise InputError(f"no fact {fact_id!r} of tenant {tenant!r}; `list` shows the ids that there are")
    row: tuple[Any, ...] = found[0]
    return row
