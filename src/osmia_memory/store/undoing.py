"""Taking back what people decided and what models nominated, one journal entry at a time. The journal itself only grows."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from osmia_memory.errors import InputError
from osmia_memory.store import codec, editing, relating
from osmia_memory.store.operations import Connection, Operations, checked_tenant, journal
from osmia_memory.store.reading import Change

UNDO = "undo"


class Undoing(Operations):
    """The way back."""

    def undo(self, tenant: str, change_id: int | None = None, *, at: datetime | None = None, who: str = "") -> Change:
        """Take back one change (None: the latest that has not been taken back), so that the store is as before it. Returns the change.

        Raises:
            InputError: there is no such change, it was taken back already, or it cannot be (what was forgotten is gone for good).
        """
        whose = checked_tenant(tenant)
        with self._writing() as connection:
            change = _chosen(connection, whose, change_id)
            back = _BACK.get(change.what)
            if back is None:
                raise InputError(
                    f"change {change.change_id} ({change.what} of {change.subject}) cannot be taken back: the text is gone for good"
                )
            back(connection, whose, change, at or datetime.now(UTC))
            journal(connection, whose, UNDO, change.subject, {"change": change.change_id}, at, who)
        return change


def _chosen(connection: Connection, tenant: str, change_id: int | None) -> Change:
    rows = connection.execute(
        "SELECT change_id, changed_at, who, what, subject, before FROM changes WHERE tenant_id = ? ORDER BY change_id DESC", [tenant]
    ).fetchall()
    found = [
        Change(n, moment, who, what, subject, orjson.loads(before))
        for n, at, who, what, subject, before in rows
        if (moment := codec.from_utc(at)) is not None
    ]
    done = {c.before["change"] for c in found if c.what == UNDO}
    open_ones = [c for c in found if c.what != UNDO and c.change_id not in done]
    if change_id is None:
        if not open_ones:
            raise InputError(f"tenant {tenant!r} has no change to take back")
        return open_ones[0]
    for change in open_ones:
        if change.change_id == change_id:
            return change
    known = "was taken back already" if change_id in done else "is not in the journal; `osmia-memory changes` lists them"
    raise InputError(f"change {change_id} of tenant {tenant!r} {known}")


def _number(connection: Connection, tenant: str, fact_id: str) -> int:
    rows = connection.execute("SELECT no FROM facts WHERE fact_id = ? AND tenant_id = ?", [fact_id, tenant]).fetchall()
    if not rows:
        raise InputError(f"the fact {fact_id!r} is gone, so nothing is left to take back")
    number: int = rows[0][0]
    return number


def _pin(connection: Connection, tenant: str, change: Change, at: datetime) -> None:
    no = _number(connection, tenant, change.subject)
    connection.execute("UPDATE facts SET pinned = ? WHERE no = ?", [bool(change.before["pinned"]), no])
    relating.settle(connection, tenant, [no])


def _importance(connection: Connection, tenant: str, change: Change, at: datetime) -> None:
    connection.execute(
        "UPDATE facts SET importance = ? WHERE no = ?", [change.before["importance"], _number(connection, tenant, change.subject)]
    )


def _retract(connection: Connection, tenant: str, change: Change, at: datetime) -> None:
    no = _number(connection, tenant, change.subject)
    connection.execute("DELETE FROM tombstones WHERE fact_id = ? AND tenant_id = ?", [change.subject, tenant])
    relating.settle(connection, tenant, [no])


def _restore(connection: Connection, tenant: str, change: Change, at: datetime) -> None:
    no = _number(connection, tenant, change.subject)
    if change.before.get("retracted"):
        editing.bury(connection, tenant, change.subject, str(change.before.get("reason", "")), at)
        return
    relating.remove_pairs(connection, tenant, "apart", [(change.subject, other) for other in change.before.get("apart", ())])
    relating.settle(connection, tenant, [no])


def _edit(connection: Connection, tenant: str, change: Change, at: datetime) -> None:
    if change.before["was_edited"]:
        raise InputError("an earlier wording by hand is not kept; `edit` gives the fact the words you want")
    editing.reword(connection, _number(connection, tenant, change.subject), None)


def _nominate(connection: Connection, tenant: str, change: Change, at: datetime) -> None:
    pairs = [(one, other) for one, other in change.before["pairs"]]
    relating.remove_pairs(connection, tenant, "nominated", pairs)
    ids = sorted({fact_id for pair in pairs for fact_id in pair})
    rows = connection.execute(
        "SELECT no FROM facts WHERE tenant_id = ? AND fact_id IN (SELECT unnest(?::VARCHAR[]))", [tenant, ids]
    ).fetchall()
    relating.settle(connection, tenant, [row[0] for row in rows])


_BACK: Mapping[str, Callable[[Connection, str, Change, datetime], Any]] = {
    "pin": _pin,
    "unpin": _pin,
    "set_importance": _importance,
    "retract": _retract,
    "restore": _restore,
    "edit": _edit,
    "nominate": _nominate,
}
