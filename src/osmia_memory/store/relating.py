"""What facts are to each other, brought up to date in the transaction that changes them. Decides nothing: `relations.resolve` does.

Every fact stands under keys (`slots.keys`); facts that share one are looked at together. Links made here are marked as made by code, and only
those are ever taken back here.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from osmia_memory import relations, slots
from osmia_memory.folding import fold
from osmia_memory.models import Fact, TaskRun, Witness
from osmia_memory.store import codec
from osmia_memory.store.operations import HELD, Connection, Operations, checked_tenant, insert, journal, owner_key
from osmia_memory.store.reading import witnesses_of

BY_CODE, BY_MODEL, BY_HAND = "code", "model", "hand"
_SLOTS = {"key": "BIGINT", "fact_no": "BIGINT"}
_EDGES = {
    "tenant_id": "VARCHAR",
    "from_id": "VARCHAR",
    "to_id": "VARCHAR",
    "relation": "VARCHAR",
    "weight": "DOUBLE",
    "reason": "VARCHAR",
    "created_at": "TIMESTAMP",
    "made_by": "VARCHAR",
}
PAIRS = {
    "tenant_id": "VARCHAR",
    "kind": "VARCHAR",
    "one": "VARCHAR",
    "other": "VARCHAR",
    "said_by": "VARCHAR",
    "recorded_at": "TIMESTAMP",
}
_MARKS = (*relations.SUMMED, "superseded_by", "valid_to")
_ROUNDS = 4  # of following keys from fact to fact: "a" shares one with "b", "b" with "c"


def slot_rows(fact: Fact, no: int) -> list[tuple[int, int]]:
    """(hashed key, row number) of a fact."""
    whose = "\x1f".join((fact.tenant_id, owner_key(fact.scope, fact.owner)))
    return [(_hashed(f"{whose}\x1f{key}"), no) for key in sorted(slots.keys(fact))]


def _hashed(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)


def write_slots(connection: Connection, facts: Iterable[tuple[Fact, int]], replaced: Sequence[int]) -> None:
    """File facts (with row numbers) under their keys; those of `replaced` numbers first come out."""
    if replaced:
        connection.execute("DELETE FROM slots WHERE fact_no IN (SELECT unnest(?::BIGINT[]))", [list(replaced)])
    insert(connection, "slots", _SLOTS, [row for fact, no in facts for row in slot_rows(fact, no)])


def settle(connection: Connection, tenant: str, numbers: Iterable[int]) -> None:
    """Work out anew what the facts with these row numbers, and all that stand under the same keys, are to each other."""
    group = _group(connection, tenant, set(numbers))
    if len(group) < 2:
        return
    found = _told(connection, group)
    runs = _runs(connection, {w.run_id for _, told in found.values() for w in told})
    known = {}
    for fact, told in found.values():
        own = fold(tenant, told)
        marks = {name: getattr(fact, name) for name in ("importance", "pinned", "recorded_at")}
        known[fact.fact_id] = (replace(own, **marks), told)
    places = {fact_id: relations.Place.of(runs[w.run_id] for w in told if w.run_id in runs) for fact_id, (_, told) in known.items()}
    settled = relations.resolve(known, places, rules(connection, tenant, runs))
    kept = _replaced_by_hand(connection, tenant, list(known))
    _write_marks(connection, {fact.fact_id: (no, fact) for no, (fact, _) in found.items()}, settled.facts, kept)
    connection.execute(
        "DELETE FROM edges WHERE tenant_id = $tenant AND made_by = 'code' "
        "AND (from_id IN (SELECT unnest($ids::VARCHAR[])) OR to_id IN (SELECT unnest($ids::VARCHAR[])))",
        {"tenant": tenant, "ids": list(known)},
    )
    there = {
        tuple(row) for row in connection.execute("SELECT from_id, to_id, relation FROM edges WHERE tenant_id = ?", [tenant]).fetchall()
    }
    rows = [
        (tenant, e.from_id, e.to_id, e.relation, e.weight, e.reason, codec.to_utc(e.created_at), BY_CODE)
        for e in settled.edges
        if (e.from_id, e.to_id, e.relation) not in there
    ]
    insert(connection, "edges", _EDGES, rows)


def neighbours(connection: Connection, tenant: str | None, fact_ids: Iterable[str]) -> list[int]:
    """Row numbers of the facts that code has linked with these; links never cross tenants, so None is no wildcard for what is found."""
    within = "made_by = 'code' AND ($tenant IS NULL OR tenant_id = $tenant) AND"
    rows = connection.execute(
        f"SELECT no FROM facts WHERE fact_id IN (SELECT to_id FROM edges WHERE {within} from_id IN (SELECT unnest($ids::VARCHAR[])) "
        f"UNION SELECT from_id FROM edges WHERE {within} to_id IN (SELECT unnest($ids::VARCHAR[])))",
        {"tenant": tenant, "ids": codec.storable_deep(list(fact_ids))},
    ).fetchall()
    return [row[0] for row in rows]


def release(connection: Connection, tenant: str, fact_id: str, linked: Iterable[int]) -> None:
    """Let go of what a retracted fact had superseded or disputed; `linked` were its neighbours."""
    connection.execute(
        "UPDATE facts SET superseded_by = NULL, valid_to = NULL WHERE superseded_by = ? AND tenant_id = ?", [fact_id, tenant]
    )
    connection.execute(
        "DELETE FROM edges WHERE tenant_id = $tenant AND made_by = 'code' AND (from_id = $id OR to_id = $id)",
        {"tenant": tenant, "id": fact_id},
    )
    settle(connection, tenant, linked)


def keep_apart(connection: Connection, tenant: str, fact_id: str, at: Any) -> list[str]:
    """Record that nothing which supersedes this fact does so; links made by hand are cut. Returns the ids of those facts."""
    rows = connection.execute(
        "DELETE FROM edges WHERE tenant_id = ? AND relation = 'supersedes' AND to_id = ? RETURNING from_id", [tenant, fact_id]
    ).fetchall()
    found = sorted({row[0] for row in rows})
    add_pairs(connection, tenant, "apart", [(fact_id, other) for other in found], "", at)
    return found


def add_pairs(
    connection: Connection, tenant: str, kind: str, pairs: Iterable[tuple[str, str]], said_by: str, at: Any
) -> list[tuple[str, str]]:
    """Record what a person ("apart") or a model ("nominated") said of pairs of facts. Returns those that are new."""
    there = {
        frozenset(row)
        for row in connection.execute("SELECT one, other FROM pairs WHERE tenant_id = ? AND kind = ?", [tenant, kind]).fetchall()
    }
    new = sorted({(min(p), max(p)) for p in pairs} - {(min(p), max(p)) for p in there if len(p) == 2})
    insert(connection, "pairs", PAIRS, [(tenant, kind, one, other, said_by, at) for one, other in new])
    return new


def remove_pairs(connection: Connection, tenant: str, kind: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Take back what was said of pairs."""
    wanted = [[min(p), max(p)] for p in pairs]
    connection.execute(
        "DELETE FROM pairs WHERE tenant_id = ? AND kind = ? AND [one, other] IN (SELECT unnest(?::VARCHAR[][]))", [tenant, kind, wanted]
    )


class Relating(Operations):
    """What is known of the order of commits."""

    def commits(self, tenant: str, repo: str) -> list[str]:
        """The commits that runs of this repository began at, sorted."""
        return sorted({run.base_commit for run in self._runs_of(tenant, repo) if run.base_commit})

    def _runs_of(self, tenant: str, repo: str) -> list[TaskRun]:
        columns = ", ".join(codec.RUN_COLUMNS)
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT {columns} FROM runs WHERE tenant_id = ? AND repo = ?", [checked_tenant(tenant), codec.storable(repo)]
            ).fetchall()
        return [codec.run(row) for row in rows]

    def nominate(self, tenant: str, pairs: Sequence[tuple[str, str]], model: str, *, at: datetime) -> int:
        """Keep pairs that a model named, and settle the facts by them; one entry of the journal, so that one `undo` takes all back.

        Returns how many are new.
        """
        whose = checked_tenant(tenant)
        with self._writing() as connection:
            new = add_pairs(connection, whose, "nominated", pairs, codec.storable(model), codec.to_utc(at))
            if new:
                ids = sorted({fact_id for pair in new for fact_id in pair})
                rows = connection.execute(
                    "SELECT no FROM facts WHERE tenant_id = ? AND fact_id IN (SELECT unnest(?::VARCHAR[]))", [whose, ids]
                ).fetchall()
                settle(connection, whose, [row[0] for row in rows])
                journal(connection, whose, "nominate", f"{len(new)} pairs", {"pairs": [list(p) for p in new]}, at, model)
        return len(new)

    def order_commits(self, tenant: str, repo: str, ancestors: Mapping[str, Collection[str]]) -> int:
        """Record which commits come before which (commit -> its ancestors), and settle the repository's facts by it. Returns new pairs."""
        whose = checked_tenant(tenant)
        with self._writing() as connection:
            known = {tuple(row) for row in connection.execute("SELECT newer, older FROM ancestry WHERE tenant_id = ?", [whose]).fetchall()}
            new = sorted({(newer, older) for newer, before in ancestors.items() for older in before} - known)
            if new:
                insert(connection, "ancestry", {"tenant_id": "VARCHAR", "newer": "VARCHAR", "older": "VARCHAR"}, [(whose, *p) for p in new])
                rows = connection.execute(
                    "SELECT no FROM facts WHERE tenant_id = ? AND scope = 'repo' AND owner = ?", [whose, codec.storable(repo)]
                ).fetchall()
                settle(connection, whose, [row[0] for row in rows])
        return len(new)


def rules(connection: Connection, tenant: str, runs: Mapping[str, TaskRun]) -> relations.Rules:
    """What people, models and repositories add."""
    pairs: dict[str, set[frozenset[str]]] = {"apart": set(), "nominated": set()}
    for kind, one, other in connection.execute("SELECT kind, one, other FROM pairs WHERE tenant_id = ?", [tenant]).fetchall():
        pairs[kind].add(frozenset((one, other)))
    ancestry: dict[str, frozenset[str]] = {}
    commits = sorted({run.base_commit for run in runs.values() if run.base_commit})
    for newer, older in connection.execute(
        "SELECT newer, list(older) FROM ancestry WHERE tenant_id = ? AND newer IN (SELECT unnest(?::VARCHAR[])) GROUP BY newer",
        [tenant, commits],
    ).fetchall():
        ancestry[newer] = frozenset(older)
    return relations.Rules(frozenset(pairs["apart"]), frozenset(pairs["nominated"]), ancestry)


def _group(connection: Connection, tenant: str, numbers: set[int]) -> list[int]:
    """The held facts among these and all that share a key or a link with them."""
    found, new = set(numbers), set(numbers)
    for _ in range(_ROUNDS):
        if not new:
            break
        rows = connection.execute(
            "SELECT DISTINCT fact_no FROM slots WHERE key IN (SELECT key FROM slots WHERE fact_no IN (SELECT unnest($new::BIGINT[])) "
            "INTERSECT SELECT key FROM slots GROUP BY key HAVING count(*) > 1)",
            {"new": list(new)},
        ).fetchall()
        new = {row[0] for row in rows} - found
        found |= new
    rows = connection.execute(
        f"SELECT f.no, f.fact_id FROM facts f WHERE f.no IN (SELECT unnest(?::BIGINT[])) AND f.tenant_id = ? AND {HELD}",
        [list(found), tenant],
    ).fetchall()
    linked = [*neighbours(connection, tenant, [row[1] for row in rows]), *_nominated(connection, tenant, [row[1] for row in rows])]
    shared = _sharing(connection, [row[0] for row in rows]) | set(linked)
    held = {row[0] for row in rows}
    return sorted((held & shared) | (set(linked) & _held(connection, linked)))


def _nominated(connection: Connection, tenant: str, fact_ids: list[str]) -> list[int]:
    """Row numbers of both sides of each nominated pair with one of these facts."""
    rows = connection.execute(
        "SELECT DISTINCT f.no FROM facts f JOIN pairs p ON f.fact_id IN (p.one, p.other) WHERE p.tenant_id = $tenant AND p.kind = 'nominated' "
        "AND (p.one IN (SELECT unnest($ids::VARCHAR[])) OR p.other IN (SELECT unnest($ids::VARCHAR[])))",
        {"tenant": tenant, "ids": fact_ids},
    ).fetchall()
    return [row[0] for row in rows]


def _sharing(connection: Connection, numbers: list[int]) -> set[int]:
    """Those of the facts that share a key with another of them."""
    rows = connection.execute(
        "SELECT DISTINCT fact_no FROM (SELECT fact_no, count(*) OVER (PARTITION BY key) AS n FROM "
        "(SELECT DISTINCT key, fact_no FROM slots WHERE fact_no IN (SELECT unnest(?::BIGINT[])))) WHERE n > 1",
        [numbers],
    ).fetchall()
    return {row[0] for row in rows}


def _held(connection: Connection, numbers: list[int]) -> set[int]:
    rows = connection.execute(f"SELECT f.no FROM facts f WHERE f.no IN (SELECT unnest(?::BIGINT[])) AND {HELD}", [numbers]).fetchall()
    return {row[0] for row in rows}


def _told(connection: Connection, numbers: list[int]) -> dict[int, tuple[Fact, list[Witness]]]:
    rows = connection.execute(
        f"SELECT f.no, {codec.TOLD_FACT} FROM facts f WHERE f.no IN (SELECT unnest(?::BIGINT[])) ORDER BY f.fact_id", [numbers]
    ).fetchall()
    facts = {row[0]: codec.fact(row[1:]) for row in rows}
    told = witnesses_of(connection, {no: fact.fact_id for no, fact in facts.items()})
    return {no: (fact, told[no]) for no, fact in facts.items() if told.get(no)}


def _runs(connection: Connection, run_ids: Iterable[str]) -> dict[str, TaskRun]:
    columns = ", ".join(codec.RUN_COLUMNS)
    rows = connection.execute(
        f"SELECT {columns} FROM runs WHERE run_id IN (SELECT unnest(?::VARCHAR[]))", [sorted(i for i in run_ids if i)]
    ).fetchall()
    return {row[0]: codec.run(row) for row in rows}


def _replaced_by_hand(connection: Connection, tenant: str, fact_ids: list[str]) -> set[str]:
    rows = connection.execute(
        "SELECT to_id FROM edges WHERE tenant_id = ? AND relation = 'supersedes' AND made_by <> 'code' AND to_id IN (SELECT unnest(?::VARCHAR[]))",
        [tenant, fact_ids],
    ).fetchall()
    return {row[0] for row in rows}


def _write_marks(connection: Connection, stored: Mapping[str, tuple[int, Fact]], facts: Iterable[Fact], by_hand: set[str]) -> None:
    columns = {name: codec.FACT_COLUMNS[name] for name in _MARKS}
    rows: list[tuple[Any, ...]] = []
    for fact in facts:
        no, old = stored[fact.fact_id]
        if fact.fact_id in by_hand:
            fact = replace(fact, superseded_by=old.superseded_by, valid_to=old.valid_to)
        if any(getattr(fact, name) != getattr(old, name) for name in _MARKS):
            by_name = dict(zip(codec.FACT_COLUMNS, codec.fact_row(fact), strict=True))
            rows.append((no, *(by_name[name] for name in _MARKS)))
    if rows:
        listed = [codec.storable_deep(list(column)) for column in zip(*rows, strict=True)]
        given = ", ".join(f"unnest(?::{kind}[]) AS {name}" for name, kind in {"no": "BIGINT", **columns}.items())
        connection.execute(
            f"UPDATE facts SET {', '.join(f'{name} = told.{name}' for name in _MARKS)} FROM (SELECT {given}) told WHERE facts.no = told.no",
            listed,
        )
