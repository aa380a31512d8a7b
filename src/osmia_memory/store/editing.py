"""What people decide about facts. Each decision is one transaction with its line in the journal, which holds no content."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from osmia_memory.errors import InputError
from osmia_memory.models import Edge
from osmia_memory.store import codec, lexical, relating
from osmia_memory.store.operations import Connection, Operations, checked_tenant, insert, journal, take_numbers, the_fact

_EDGES = {
    "tenant_id": "VARCHAR",
    "from_id": "VARCHAR",
    "to_id": "VARCHAR",
    "relation": "VARCHAR",
    "weight": "DOUBLE",
    "reason": "VARCHAR",
    "created_at": "TIMESTAMP",
}


class Editing(Operations):
    """Decisions by hand. `at` is the time to journal (None: the clock), `who` the person, if known.

    All raise InputError for a fact that the tenant does not have.
    """

    def pin(self, tenant: str, fact_id: str, *, at: datetime | None = None, who: str = "") -> None:
        """Keep a fact for good: it neither decays nor gets pruned."""
        self._mark(tenant, fact_id, "pin", True, at, who)

    def unpin(self, tenant: str, fact_id: str, *, at: datetime | None = None, who: str = "") -> None:
        """Let a fact decay again."""
        self._mark(tenant, fact_id, "unpin", False, at, who)

    def _mark(self, tenant: str, fact_id: str, what: str, pinned: bool, at: datetime | None, who: str) -> None:
        whose = checked_tenant(tenant)
        with self._writing() as connection:
            before, no = the_fact(connection, whose, fact_id, "f.pinned, f.no")
            connection.execute("UPDATE facts SET pinned = ? WHERE fact_id = ?", [pinned, fact_id])
            relating.settle(connection, whose, [no])
            journal(connection, whose, what, fact_id, {"pinned": before}, at, who)

    def set_importance(self, tenant: str, fact_id: str, importance: float, *, at: datetime | None = None, who: str = "") -> None:
        """Weigh a fact; 1.0 is usual."""
        whose = checked_tenant(tenant)
        with self._writing() as connection:
            (before,) = the_fact(connection, whose, fact_id, "f.importance")
            connection.execute("UPDATE facts SET importance = ? WHERE fact_id = ?", [importance, fact_id])
            journal(connection, whose, "set_importance", fact_id, {"importance": before}, at, who)

    def retract(self, tenant: str, fact_id: str, reason: str, *, at: datetime | None = None, who: str = "") -> None:
        """Take a fact out of every read and keep it out, whatever later runs say. `restore` brings it back as it was."""
        whose = checked_tenant(tenant)
        with self._writing() as connection:
            the_fact(connection, whose, fact_id, "f.no")
            bury(connection, whose, fact_id, reason, at or datetime.now(UTC))
            journal(connection, whose, "retract", fact_id, {}, at, who)

    def restore(self, tenant: str, fact_id: str, *, at: datetime | None = None, who: str = "") -> None:
        """Bring back a fact that was retracted or superseded; what superseded it will not do so again."""
        whose = checked_tenant(tenant)
        with self._writing() as connection:
            no, superseded_by, valid_to = the_fact(connection, whose, fact_id, "f.no, f.superseded_by, f.valid_to")
            retracted = connection.execute("DELETE FROM tombstones WHERE fact_id = ? RETURNING reason", [fact_id]).fetchall()
            before: dict[str, Any] = {"retracted": bool(retracted), "superseded_by": superseded_by, "valid_to": valid_to}
            before |= {"reason": retracted[0][0]} if retracted else {}
            if not retracted and superseded_by is not None:
                before["apart"] = relating.keep_apart(connection, whose, fact_id, codec.to_utc(at or datetime.now(UTC)))
                connection.execute("UPDATE facts SET superseded_by = NULL, valid_to = NULL WHERE fact_id = ?", [fact_id])
            relating.settle(connection, whose, [no])
            journal(connection, whose, "restore", fact_id, before, at, who)

    def edit(self, tenant: str, fact_id: str, content: str | None, *, at: datetime | None = None, who: str = "") -> None:
        """Show a fact in these words from now on, whatever later runs say; None: in the words of its witnesses again.

        The fact keeps its id and its evidence.
        """
        whose = checked_tenant(tenant)
        if content is not None and not content.strip():
            raise InputError("the new content is empty; `retract` takes a fact away")
        with self._writing() as connection:
            no, before = the_fact(connection, whose, fact_id, "f.no, f.edited")
            reword(connection, no, content)
            journal(connection, whose, "edit", fact_id, {"was_edited": before is not None}, at, who)

    def link(self, tenant: str, edges: Iterable[Edge]) -> int:
        """Add links between facts or runs of this tenant; one that is there already gets the new weight and reason. Returns how many.

        Raises:
            InputError: an end is no fact or run of this tenant.
        """
        with self._writing() as connection:
            return write_edges(connection, checked_tenant(tenant), edges)

    def unlink(self, tenant: str, edges: Iterable[Edge]) -> None:
        """Remove links, compared by their ends and relation."""
        with self._writing() as connection:
            _cut(connection, checked_tenant(tenant), [(e.from_id, e.to_id, e.relation) for e in edges])


def bury(connection: Connection, tenant: str, fact_id: str, reason: str, at: datetime) -> None:
    """Put a tombstone on a fact, and let go of what it had superseded or disputed."""
    linked = relating.neighbours(connection, tenant, [fact_id])
    connection.execute("INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?, ?)", [fact_id, tenant, codec.storable(reason), codec.to_utc(at)])
    relating.release(connection, tenant, fact_id, linked)


def reword(connection: Connection, no: int, content: str | None) -> None:
    """Show the fact with this row number in other words; None: in those of its witnesses."""
    connection.execute("UPDATE facts SET edited = ? WHERE no = ?", [None if content is None else codec.storable(content), no])
    _index_again(connection, no)


def write_edges(connection: Connection, tenant: str, edges: Iterable[Edge]) -> int:
    """`link` within the caller's transaction."""
    wanted = {(e.from_id, e.to_id, e.relation): e for e in edges}
    for missing in _unknown(connection, tenant, sorted({end for key in wanted for end in key[:2]})):
        raise InputError(f"a link needs two facts or runs of tenant {tenant!r}; {missing!r} is none")
    _cut(connection, tenant, list(wanted))
    insert(connection, "edges", _EDGES, [(tenant, *key, e.weight, e.reason, codec.to_utc(e.created_at)) for key, e in wanted.items()])
    return len(wanted)


def _cut(connection: Connection, tenant: str, keys: list[tuple[str, str, Any]]) -> None:
    connection.execute(
        "DELETE FROM edges WHERE tenant_id = ? AND [from_id, to_id, relation] IN (SELECT unnest(?::VARCHAR[][]))",
        [tenant, [list(k) for k in keys]],
    )


def _unknown(connection: Connection, tenant: str, node_ids: list[str]) -> list[str]:
    rows = connection.execute(
        "SELECT id FROM (SELECT unnest($ids::VARCHAR[]) AS id) WHERE id NOT IN (SELECT fact_id FROM facts WHERE tenant_id = $tenant) "
        "AND id NOT IN (SELECT run_id FROM runs WHERE tenant_id = $tenant) ORDER BY id",
        {"ids": codec.storable_deep(node_ids), "tenant": tenant},
    ).fetchall()
    return [row[0] for row in rows]


def _index_again(connection: Connection, no: int) -> None:
    rows = connection.execute(f"SELECT {codec.SHOWN_FACT} FROM facts f WHERE f.no = ?", [no]).fetchall()
    shown = codec.fact(rows[0])
    words, doc = lexical.document(shown), take_numbers(connection, 1)[0]
    connection.execute("UPDATE facts SET doc = ?, doc_length = ?, doc_key = ? WHERE no = ?", [doc, words.length, words.key, no])
    lexical.index(connection, [(shown, doc, words)])
