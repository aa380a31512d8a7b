"""Does the store hold together? What primary keys cannot promise is checked here: references, folds, ids, the index."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from osmia_memory import ids, relations
from osmia_memory.models import Fact, Witness
from osmia_memory.store import codec, lexical
from osmia_memory.store.forgetting import Fold
from osmia_memory.store.operations import Connection, Operations
from osmia_memory.store.reading import MANUAL_RUN_NO, witnesses_of

_FACTS_AT_ONCE = 2000  # checked in one session


class Problem(NamedTuple):
    """Something that does not hold together."""

    what: str  # the rule, in words
    subject: str  # an id
    detail: str = ""


# Each query returns (id, detail) of what breaks the rule.
_RULES: Mapping[str, str] = {
    "a link has both ends": """
        SELECT from_id, to_id FROM edges e WHERE e.from_id NOT IN (SELECT fact_id FROM facts UNION ALL SELECT run_id FROM runs)
        OR e.to_id NOT IN (SELECT fact_id FROM facts UNION ALL SELECT run_id FROM runs)""",
    "a link stays within its tenant": """
        SELECT e.from_id, e.to_id FROM edges e JOIN (SELECT fact_id AS id, tenant_id FROM facts UNION ALL SELECT run_id, tenant_id FROM runs) n
        ON n.id IN (e.from_id, e.to_id) WHERE n.tenant_id <> e.tenant_id""",
    "a link is there once": "SELECT from_id, to_id FROM edges GROUP BY tenant_id, from_id, to_id, relation HAVING count(*) > 1",
    "what supersedes a fact is known": """
        SELECT fact_id, superseded_by FROM facts WHERE superseded_by IS NOT NULL AND superseded_by NOT IN (SELECT fact_id FROM facts)""",
    "testimony belongs to a fact": "SELECT fact_no::VARCHAR, '' FROM witnesses WHERE fact_no NOT IN (SELECT no FROM facts)",
    "testimony belongs to a run": f"""
        SELECT fact_no::VARCHAR, run_no::VARCHAR FROM witnesses WHERE run_no <> {MANUAL_RUN_NO} AND run_no NOT IN (SELECT no FROM runs)""",
    "a run testifies to a fact once": "SELECT fact_no::VARCHAR, run_no::VARCHAR FROM witnesses GROUP BY ALL HAVING count(*) > 1",
    "testimony stays within its tenant": """
        SELECT f.fact_id, r.run_id FROM witnesses w JOIN facts f ON f.no = w.fact_no JOIN runs r ON r.no = w.run_no WHERE f.tenant_id <> r.tenant_id""",
    "a quote belongs to testimony": """
        SELECT e.fact_no::VARCHAR, e.run_no::VARCHAR FROM evidence e ANTI JOIN witnesses w ON w.fact_no = e.fact_no AND w.run_no = e.run_no""",
    "a span fits its quote": """
        SELECT f.fact_id, e.quote FROM evidence e JOIN facts f ON f.no = e.fact_no
        WHERE e.span_start < 0 OR e.span_end < e.span_start OR (e.status = 'exact' AND e.span_end - e.span_start <> length(e.quote))""",
    "a number is given once": """
        SELECT no::VARCHAR, '' FROM (SELECT no FROM facts UNION ALL SELECT no FROM runs UNION ALL SELECT doc FROM facts WHERE doc IS NOT NULL)
        GROUP BY no HAVING count(*) > 1""",
    "a retraction stays within its tenant": "SELECT fact_id, t.tenant_id FROM tombstones t JOIN facts f USING (fact_id) WHERE f.tenant_id <> t.tenant_id",
    "the index holds every word of a fact": """
        SELECT f.fact_id, coalesce(p.length, 0)::VARCHAR FROM facts f LEFT JOIN (
            SELECT doc, sum(tf) AS length FROM (SELECT doc, tf FROM postings UNION ALL SELECT doc, unnest(tfs) FROM postings_tail) GROUP BY doc
        ) p ON p.doc = f.doc WHERE f.pruned_at IS NULL AND coalesce(p.length, 0) <> coalesce(f.doc_length, -1)""",
    "a pruned fact has no text": """
        SELECT DISTINCT f.fact_id, '' FROM facts f LEFT JOIN evidence e ON e.fact_no = f.no
        WHERE f.pruned_at IS NOT NULL AND (f.content <> '' OR f.edited IS NOT NULL OR f.claim IS NOT NULL OR e.quote <> '')""",
}


class Checking(Operations):
    """Checks of the whole store, all tenants."""

    def verify(self, fold_for: Callable[[str], Fold]) -> list[Problem]:
        """Everything that does not hold together, sorted; an empty list for a sound store.

        `fold_for(tenant)` is how witnesses make a fact there (`folding.refold`). Works in short sessions, so it may run beside writers.
        """
        found: list[Problem] = []
        with self._reading() as connection:
            for rule, query in _RULES.items():
                found += [Problem(rule, *row) for row in connection.execute(query).fetchall()]
            found += _wrong_run_ids(connection)
        after = 0
        while True:
            with self._reading() as connection:
                facts = _next_facts(connection, after)
                told = witnesses_of(connection, {no: fact.fact_id for no, (fact, _) in facts.items()})
                worded = _worded_otherwise(connection, {fact.fact_id for fact, _ in facts.values()})
            if not facts:
                return sorted(set(found))
            after = max(facts)
            for no, (fact, extra) in facts.items():
                found += _problems_of(fact, extra, told.get(no, ()), worded.get(fact.fact_id, ()), fold_for(fact.tenant_id))


def _wrong_run_ids(connection: Connection) -> Iterator[Problem]:
    for row in connection.execute(f"SELECT {', '.join(codec.RUN_COLUMNS)} FROM runs").fetchall():
        run = codec.run(row)
        expected = ids.run_id(run.tenant_id, run.engine, run.session_id, run.segment)
        if run.run_id != expected:
            yield Problem("a run's id is that of its content", run.run_id, expected)


def _next_facts(connection: Connection, after: int) -> dict[int, tuple[Fact, codec.Extra]]:
    extra = ", ".join(f"f.{name}" for name in codec.EXTRA_COLUMNS)
    rows = connection.execute(
        f"SELECT {extra}, {codec.TOLD_FACT} FROM facts f WHERE f.no > ? ORDER BY f.no LIMIT {_FACTS_AT_ONCE}", [after]
    ).fetchall()
    split = len(codec.EXTRA_COLUMNS)
    return {row[0]: (codec.fact(row[split:]), codec.Extra(*row[:split])) for row in rows}


def _worded_otherwise(connection: Connection, fact_ids: set[str]) -> dict[str, list[Witness]]:
    """What the re-wordings of facts testify, as testimony of the facts; by fact id."""
    rows = connection.execute(
        "SELECT e.from_id, f.no FROM edges e JOIN facts f ON f.fact_id = e.to_id WHERE e.made_by = 'code' AND e.reason = ? "
        "AND e.from_id IN (SELECT unnest(?::VARCHAR[])) AND f.pruned_at IS NULL",
        [relations.SAME, sorted(fact_ids)],
    ).fetchall()
    heads = {no: head for head, no in rows}
    found: dict[str, list[Witness]] = {}
    for no, told in witnesses_of(connection, heads).items():
        found.setdefault(heads[no], []).extend(told)
    return found


def _problems_of(fact: Fact, extra: codec.Extra, witnesses: Sequence[Witness], worded: Sequence[Witness], fold: Fold) -> Iterator[Problem]:
    if not witnesses:
        yield Problem("a fact has testimony", fact.fact_id)
        return
    if extra.pruned_at is not None:
        return
    expected = ids.fact_id(fact.tenant_id, fact.scope, fact.owner, fact.claim, fact.content)
    if fact.fact_id != expected:
        yield Problem("a fact's id is that of its content", fact.fact_id, expected)
    whole = fold([*witnesses, *worded])
    folded = replace(
        fold(witnesses),
        **{name: getattr(whole, name) for name in relations.SUMMED},
        importance=fact.importance,
        pinned=fact.pinned,
        valid_to=fact.valid_to,
        superseded_by=fact.superseded_by,
        recorded_at=fact.recorded_at,
    )
    for name in codec.FACT_COLUMNS:
        if getattr(folded, name) != getattr(fact, name):
            detail = f"{name}: stored {getattr(fact, name)!r}, its witnesses say {getattr(folded, name)!r}"
            yield Problem("a fact is the fold of its witnesses", fact.fact_id, detail)
    shown = fact if extra.edited is None else replace(fact, content=extra.edited)
    if lexical.document(shown).key != extra.doc_key:
        yield Problem("the index holds the words of a fact", fact.fact_id, "indexed by other rules; `reindex` brings it up to date")
