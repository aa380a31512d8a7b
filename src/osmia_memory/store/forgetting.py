"""Taking knowledge away for good: a run or a repository. Text is removed, not hidden."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from osmia_memory.models import Fact, Witness
from osmia_memory.store import codec, lexical, relating
from osmia_memory.store.applying import EXTRA, remove_facts, write_facts
from osmia_memory.store.operations import Connection, Operations, checked_tenant, journal, leave_to_erase, take_numbers
from osmia_memory.store.reading import witnesses_of

Fold = Callable[[Sequence[Witness]], Fact]


class Forgotten(NamedTuple):
    """What was removed, and how many facts live on because other runs say the same."""

    runs: int
    facts: int
    refolded: int


class _Scope(NamedTuple):
    """What is to be forgotten, by number."""

    runs: list[int]
    run_ids: list[str]
    facts: list[int]  # whoever supports them


class Forgetting(Operations):
    """Removal for good. Not within a session: the file is written anew afterwards."""

    def compact(self) -> None:
        """Write the file anew, without the bytes of deleted rows."""
        raise NotImplementedError

    def forget_run(self, tenant: str, run_id: str, fold: Fold, *, at: datetime | None = None, who: str = "") -> Forgotten:
        """Remove a run: its row, testimony, quotes and names, and the facts that nobody else supports; the others are folded anew.

        Then the file is written anew, so that not even its bytes are left. An unknown run: nothing happens.
        """
        whose = checked_tenant(tenant)
        with self._open_for_writing() as connection:
            scope = _runs_where(connection, "tenant_id = ? AND run_id = ?", [whose, codec.storable(run_id)])
            if not scope.runs:
                return Forgotten(0, 0, 0)
            with self._transaction(connection):
                done = _forget(connection, scope, fold)
                leave_to_erase(connection)
                journal(connection, whose, "forget_run", run_id, {}, at, who)
        self.compact()
        return done

    def forget_repo(self, tenant: str, repo: str, fold: Fold, *, at: datetime | None = None, who: str = "") -> Forgotten:
        """Remove a repository: all its runs as `forget_run` does, and every fact it owns, also those saved by hand."""
        whose, name = checked_tenant(tenant), codec.storable(repo)
        with self._open_for_writing() as connection:
            scope = _runs_where(connection, "tenant_id = ? AND repo = ?", [whose, name])
            owned = connection.execute(
                "SELECT no FROM facts WHERE tenant_id = ? AND scope = 'repo' AND owner = ?", [whose, name]
            ).fetchall()
            scope = scope._replace(facts=[row[0] for row in owned])
            if not scope.runs and not scope.facts:
                return Forgotten(0, 0, 0)
            with self._transaction(connection):
                done = _forget(connection, scope, fold)
                _forget_statistics(connection, whose, name)
                leave_to_erase(connection)
                journal(connection, whose, "forget_repo", repo, {}, at, who)
        self.compact()
        return done


def _runs_where(connection: Connection, condition: str, parameters: list[Any]) -> _Scope:
    rows = connection.execute(f"SELECT no, run_id FROM runs WHERE {condition}", parameters).fetchall()
    return _Scope([row[0] for row in rows], [row[1] for row in rows], [])


def _forget(connection: Connection, scope: _Scope, fold: Fold) -> Forgotten:
    runs = "run_no IN (SELECT unnest(?::BIGINT[]))"
    touched = {row[0] for row in connection.execute(f"SELECT DISTINCT fact_no FROM witnesses WHERE {runs}", [scope.runs]).fetchall()}
    for table in ("witnesses", "evidence"):
        connection.execute(f"DELETE FROM {table} WHERE {runs}", [scope.runs])
    connection.execute("DELETE FROM runs WHERE no IN (SELECT unnest(?::BIGINT[]))", [scope.runs])
    connection.execute(
        "DELETE FROM chunks WHERE run_id IN (SELECT unnest(?::VARCHAR[]))", [scope.run_ids]
    )  # `requests` stay: money was spent
    within = "IN (SELECT unnest($ids::VARCHAR[]))"
    connection.execute(f"DELETE FROM edges WHERE from_id {within} OR to_id {within}", {"ids": scope.run_ids})
    facts = _facts_by_number(connection, touched.union(scope.facts))
    told = witnesses_of(connection, {no: fact.fact_id for no, (fact, _, _) in facts.items()})
    doomed = {no for no in facts if no in scope.facts or no not in told}
    lexical.erase(connection, [extra.doc for _, extra, _ in facts.values() if extra.doc is not None])
    linked = remove_facts(connection, {facts[no][0].fact_id: no for no in doomed})
    kept = [_refolded(facts[no], fold(told[no])) for no in facts if no not in doomed]
    write_facts(connection, kept, [], iter(take_numbers(connection, len(kept))))
    for tenant in sorted({fact.tenant_id for fact, _, _ in facts.values()}):
        relating.settle(connection, tenant, [*linked, *(extra.no for _, extra, _ in kept)])
    return Forgotten(len(scope.runs), len(doomed), len(kept))


def _facts_by_number(connection: Connection, numbers: Collection[int]) -> dict[int, tuple[Fact, codec.Extra, Any]]:
    rows = connection.execute(
        f"SELECT f.recorded_at, {EXTRA}, {codec.TOLD_FACT} FROM facts f WHERE f.no IN (SELECT unnest(?::BIGINT[])) ORDER BY f.fact_id",
        [list(numbers)],
    ).fetchall()
    split = 1 + len(codec.EXTRA_COLUMNS)
    return {row[1]: (codec.fact(row[split:]), codec.Extra(*row[1:split]), row[0]) for row in rows}


def _refolded(known: tuple[Fact, codec.Extra, Any], folded: Fact) -> tuple[Fact, codec.Extra, Any]:
    """The new fold with what people and links have set on the old one; to be indexed anew."""
    old, extra, recorded_at = known
    marked = replace(folded, importance=old.importance, pinned=old.pinned, valid_to=old.valid_to, superseded_by=old.superseded_by)
    return marked, extra._replace(doc=None), recorded_at


def _forget_statistics(connection: Connection, tenant: str, repo: str) -> None:
    rows = connection.execute("SELECT row_key, body FROM imported_statistics WHERE tenant_id = ? AND kind = 'pattern'", [tenant]).fetchall()
    keys = [key for key, body in rows if orjson.loads(body).get("group", {}).get("repo") == repo]
    connection.execute("DELETE FROM imported_statistics WHERE tenant_id = ? AND row_key IN (SELECT unnest(?::VARCHAR[]))", [tenant, keys])
