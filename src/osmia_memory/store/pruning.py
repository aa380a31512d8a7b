"""What the decay pass removes: facts become stubs. Decides nothing about confidence, only what has to stay because other facts lean on it."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from osmia_memory import relations
from osmia_memory.models import Fact
from osmia_memory.store import codec, lexical
from osmia_memory.store.operations import Connection, Operations, leave_to_erase

_AT_ONCE = 5000  # facts read and judged in one session: about 100 ms


class Replaced(NamedTuple):
    """A fact that gave way to another."""

    by: str
    fact_id: str
    is_rewording: bool  # `by` says the same and counts this fact's witnesses as its own


class Pruning(Operations):
    """The decay pass, across all tenants. Not within a session: it works in several short ones."""

    def prune(self, is_prunable: Callable[[Fact], bool], *, at: datetime, dry_run: bool = False) -> dict[str, int]:
        """Facts that `is_prunable` become stubs without text, quotes, anchors or index entries; ids, runs and event times stay.

        Later evidence revives a stub with its history. Returns how many by tenant; a dry run only counts. Two kinds of facts stay on
        though they have faded, or what is left would change with every pass: the re-wording of a fact that stays, and what replaced one
        that stays. A fact that gained evidence in between is judged again. `at` is recorded as the time of pruning.
        """
        faded = self._faded(is_prunable)
        if not faded:
            return {}
        with self._reading() as connection:
            doomed = without_support(faded, _replaced(connection, faded))
        ids = sorted(doomed)
        batches = [ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE)]
        gone = [faded[i] for i in ids] if dry_run else [tenant for batch in batches for tenant in self._removed(batch, is_prunable, at)]
        return dict(Counter(gone))

    def has_unerased(self) -> bool:
        """Whether text was removed whose bytes are still in the file; `compact` writes it without them."""
        with self._reading() as connection:
            found: bool = connection.execute("SELECT unerased FROM state").fetchall()[0][0]
        return found

    def _faded(self, is_prunable: Callable[[Fact], bool]) -> dict[str, str]:
        """Fact id -> tenant of what `is_prunable`."""
        found: dict[str, str] = {}
        after = ""
        while True:
            with self._reading() as connection:
                facts = _unpruned(connection, "f.fact_id > ?", [after])
            found |= {f.fact_id: f.tenant_id for f in facts if is_prunable(f)}
            if len(facts) < _AT_ONCE:
                return found
            after = facts[-1].fact_id

    def _removed(self, fact_ids: list[str], is_prunable: Callable[[Fact], bool], at: datetime) -> list[str]:
        """Make stubs of those that still are prunable; the tenant of each."""
        with self._writing() as connection:
            facts = [f for f in _unpruned(connection, "f.fact_id IN (SELECT unnest(?::VARCHAR[]))", [fact_ids]) if is_prunable(f)]
            if facts:
                _make_stubs(connection, [f.fact_id for f in facts], at)
                leave_to_erase(connection)
        return [f.tenant_id for f in facts]


def without_support(faded: Collection[str], replaced: Iterable[Replaced]) -> set[str]:
    """Ids of the faded facts that nothing which stays leans on: neither a fact that they re-word, nor one that they replaced."""
    links, doomed = list(replaced), set(faded)
    while True:
        staying = {link.by for link in links if link.fact_id not in doomed}
        staying |= {link.fact_id for link in links if link.is_rewording and link.by not in doomed}
        if not staying & doomed:
            return doomed
        doomed -= staying


def _replaced(connection: Connection, fact_ids: Iterable[str]) -> list[Replaced]:
    within = "IN (SELECT unnest($ids::VARCHAR[]))"
    rows = connection.execute(
        f"""SELECT f.superseded_by, f.fact_id, EXISTS (
                SELECT 1 FROM edges e WHERE e.from_id = f.superseded_by AND e.to_id = f.fact_id AND e.made_by = 'code' AND e.reason = $same
            ) FROM facts f WHERE f.superseded_by IS NOT NULL AND f.pruned_at IS NULL AND (f.fact_id {within} OR f.superseded_by {within})""",
        {"ids": list(fact_ids), "same": relations.SAME},
    ).fetchall()
    return [Replaced(*row) for row in rows]


def _unpruned(connection: Connection, condition: str, parameters: list[Any]) -> list[Fact]:
    rows = connection.execute(
        f"SELECT {codec.SHOWN_FACT} FROM facts f WHERE f.pruned_at IS NULL AND NOT f.pinned AND {condition} ORDER BY f.fact_id LIMIT {_AT_ONCE}",
        parameters,
    ).fetchall()
    return [codec.fact(row) for row in rows]


def _make_stubs(connection: Connection, fact_ids: list[str], at: datetime) -> None:
    rows = connection.execute("SELECT no, doc FROM facts WHERE fact_id IN (SELECT unnest(?::VARCHAR[]))", [fact_ids]).fetchall()
    numbers = [row[0] for row in rows]
    lexical.erase(connection, [row[1] for row in rows if row[1] is not None])
    connection.execute(
        "UPDATE facts SET content = '', edited = NULL, claim = NULL, anchors = [], tags = [], source = '', doc = NULL, doc_length = NULL, "
        "doc_key = NULL, pruned_at = $at WHERE no IN (SELECT unnest($numbers::BIGINT[]))",
        {"at": codec.to_utc(at), "numbers": numbers},
    )
    connection.execute(
        "UPDATE evidence SET quote = '', span_start = 0, span_end = 0 WHERE fact_no IN (SELECT unnest(?::BIGINT[]))", [numbers]
    )
    testimony = connection.execute(
        "SELECT fact_no, run_no, candidate FROM witnesses WHERE fact_no IN (SELECT unnest(?::BIGINT[]))", [numbers]
    ).fetchall()
    connection.execute(
        "UPDATE witnesses SET candidate = told.candidate "
        "FROM (SELECT unnest($facts::BIGINT[]) AS fact_no, unnest($runs::BIGINT[]) AS run_no, unnest($told::VARCHAR[]) AS candidate) told "
        "WHERE witnesses.fact_no = told.fact_no AND witnesses.run_no = told.run_no",
        {
            "facts": [row[0] for row in testimony],
            "runs": [row[1] for row in testimony],
            "told": [codec.candidate_json(_without_text(row[2])) for row in testimony],
        },
    )
    connection.execute("DELETE FROM slots WHERE fact_no IN (SELECT unnest(?::BIGINT[]))", [numbers])
    within = "IN (SELECT unnest($ids::VARCHAR[]))"
    connection.execute(f"DELETE FROM edges WHERE from_id {within} OR to_id {within}", {"ids": fact_ids})
    # Only of facts that gained evidence after they had been found faded: all others that were replaced by these go with them.
    connection.execute(
        f"UPDATE facts SET superseded_by = NULL, valid_to = NULL WHERE superseded_by {within} AND pruned_at IS NULL", {"ids": fact_ids}
    )


def _without_text(candidate: str) -> Any:
    return replace(codec.candidate(candidate, ()), content="", claim=None, anchors=(), tags=(), source="")
