"""The lexical index: postings in a table sorted by (tenant, owner, term), new ones in a small tail, BM25 in plain SQL.

Sorted, a 12-term query over a million facts reads a few row groups. Keeping the order costs a rewrite, so new postings go to the tail and
`merge_postings` sorts them in; never a hook. Nothing is looked up to delete a posting: the fact gets a new document number or none.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from osmia_memory import ids, similarity
from osmia_memory.models import Fact
from osmia_memory.store import codec
from osmia_memory.store.operations import (
    CURRENT,
    Connection,
    Operations,
    Owners,
    checked_tenant,
    insert,
    owner_key,
    take_numbers,
)

_TAIL = {"tenant_id": "VARCHAR", "owner_key": "VARCHAR", "doc": "BIGINT", "terms": "VARCHAR[]", "tfs": "INTEGER[]"}

# As in ranking, so that the shortlist is the beginning of the ranked list: saturation, damping by length, terms of a usual fact.
_K1 = 0.6
_B = 0.3
_TYPICAL_TERMS = 30

_LIVE = """
    asked AS (SELECT unnest($terms::VARCHAR[]) AS term, unnest($weights::DOUBLE[]) AS weight),
    hits AS (
        SELECT p.doc, p.term, p.tf FROM postings p
        WHERE p.tenant_id = $tenant AND p.owner_key IN {keys} AND p.term IN {terms}
        UNION ALL
        SELECT doc, term, tf
        FROM (SELECT doc, unnest(terms) AS term, unnest(tfs) AS tf FROM postings_tail WHERE tenant_id = $tenant AND owner_key IN {keys})
        WHERE term IN {terms}
    ),
    live AS (SELECT f.doc, f.doc_length FROM facts f WHERE f.tenant_id = $tenant AND ({owners}) AND {current}),
    found AS MATERIALIZED (SELECT h.doc, h.term, h.tf, l.doc_length FROM hits h JOIN live l USING (doc)),
    frequencies AS (SELECT term, count(*) AS documents FROM found GROUP BY term)
"""
# Numbers only until the best are known: carrying the ids through takes twice as long among 100,000 facts.
_SEARCH = """,
    rarity AS (
        SELECT term, a.weight * ln(1 + (total - n.documents + 0.5) / (n.documents + 0.5)) AS weight
        FROM frequencies n JOIN asked a USING (term), (SELECT count(*)::DOUBLE AS total FROM live)
    ),
    scores AS (
        SELECT doc, round(fsum(r.weight * f.tf * ($k1 + 1) / (f.tf + $k1 * (1 - $b + $b * f.doc_length / $typical))), 6) AS score
        FROM found f JOIN rarity r USING (term) GROUP BY doc
    ),
    best AS (SELECT doc, score FROM scores WHERE score >= (SELECT min(score) FROM (SELECT score FROM scores ORDER BY score DESC LIMIT $limit)))
    SELECT f.fact_id, best.score FROM best JOIN facts f ON f.doc = best.doc ORDER BY best.score DESC, f.fact_id LIMIT $limit
"""


class TermStatistics(NamedTuple):
    """How many current facts these owners have, and how many of them hold each term."""

    documents: int
    frequencies: Mapping[str, int]


class Document(NamedTuple):
    """The words of a fact as the index holds them. Equal `key`, equal words."""

    key: str
    terms: Mapping[str, int]

    @property
    def length(self) -> int:
        """Terms with repetition."""
        return sum(self.terms.values())


class Searching(Operations):
    """Search by words."""

    def search(self, tenant: str, owners: Owners, terms: Sequence[str] | Mapping[str, float], limit: int) -> list[tuple[str, float]]:
        """(fact id, BM25 score) of the current facts of these owners that hold one of `terms`, best first, ties by id.

        `terms` are as `similarity.terms` makes them; a mapping weighs them. Rarity is counted among the facts of the same owners.
        """
        weights = dict(terms) if isinstance(terms, Mapping) else dict.fromkeys(terms, 1.0)
        whose = checked_tenant(tenant)
        if not weights or not owners:
            return []
        sql, parameters = _live(whose, owners, weights)
        figures = {"k1": _K1, "b": _B, "typical": _TYPICAL_TERMS, "limit": limit}
        with self._reading() as connection:
            rows = connection.execute(f"WITH {sql} {_SEARCH}", {**parameters, **figures}).fetchall()
        return [(row[0], row[1]) for row in rows]

    def term_statistics(self, tenant: str, owners: Owners, terms: Iterable[str]) -> TermStatistics:
        """How rare these terms are among the current facts of these owners."""
        weights, whose = dict.fromkeys(terms, 1.0), checked_tenant(tenant)
        if not owners:
            return TermStatistics(0, {})
        sql, parameters = _live(whose, owners, weights or {"": 1.0})
        # Every parameter has to be used, so `asked` is joined.
        query = "SELECT term, documents FROM frequencies JOIN asked USING (term) UNION ALL SELECT NULL, count(*) FROM live"
        with self._reading() as connection:
            rows = connection.execute(f"WITH {sql} {query}", parameters).fetchall()
        frequencies = dict(rows)
        documents = frequencies.pop(None)
        return TermStatistics(documents, frequencies)

    def merge_postings(self) -> int:
        """Sort the tail into the main table and drop what belongs to no fact any more. Returns how many postings there are then.

        Rewrites the table: a maintenance step for batches and the decay pass, never for a hook.
        """
        with self._writing() as connection:
            merge(connection)
            found: int = connection.execute("SELECT count(*) FROM postings").fetchall()[0][0]
        return found

    def reindex(self) -> int:
        """Index every fact anew, after a release that finds other words in the same text. Returns how many facts."""
        with self._writing() as connection:
            rows = connection.execute(
                f"SELECT f.no, {codec.SHOWN_FACT} FROM facts f WHERE f.pruned_at IS NULL ORDER BY f.tenant_id, f.scope, f.owner"
            ).fetchall()
            added = [(codec.fact(row[1:]), doc, row[0]) for row, doc in zip(rows, take_numbers(connection, len(rows)), strict=True)]
            words = [(fact, doc, document(fact)) for fact, doc, _ in added]
            connection.execute("DELETE FROM postings; DELETE FROM postings_tail")
            connection.execute(
                "UPDATE facts SET doc = new.doc, doc_length = new.length, doc_key = new.key FROM (SELECT unnest($no::BIGINT[]) AS no, "
                "unnest($doc::BIGINT[]) AS doc, unnest($length::INTEGER[]) AS length, unnest($key::VARCHAR[]) AS key) new WHERE facts.no = new.no",
                {
                    "no": [no for _, _, no in added],
                    "doc": [doc for _, doc, _ in added],
                    "length": [w.length for _, _, w in words],
                    "key": [w.key for _, _, w in words],
                },
            )
            index(connection, words)
            merge(connection)
        return len(rows)

    def tail_length(self) -> int:
        """How many facts wait to be merged; search reads all of their terms."""
        with self._reading() as connection:
            found: int = connection.execute("SELECT count(*) FROM postings_tail").fetchall()[0][0]
        return found


def _live(tenant: str, owners: Owners, weights: Mapping[str, float]) -> tuple[str, dict[str, Any]]:
    """The common part of the queries. Terms and owners appear as constants of an IN list, which is what lets DuckDB skip row groups."""
    parameters: dict[str, Any] = {
        "tenant": tenant,
        "terms": codec.storable_deep(list(weights)),
        "weights": [float(w) for w in weights.values()],
    }
    pairs = [(codec.storable(scope), codec.storable(owner)) for scope, owner in owners]
    for i, (scope, owner) in enumerate(pairs):
        parameters |= {f"key{i}": owner_key(scope, owner), f"scope{i}": scope, f"owner{i}": owner}
    parameters |= {f"term{i}": term for i, term in enumerate(parameters["terms"])}
    sql = _LIVE.format(
        keys="(" + ", ".join(f"$key{i}" for i in range(len(pairs))) + ")",
        owners=" OR ".join(f"(f.scope = $scope{i} AND f.owner = $owner{i})" for i in range(len(pairs))),
        terms="(" + ", ".join(f"$term{i}" for i in range(len(weights))) + ")",
        current=CURRENT,
    )
    return sql, parameters


def merge(connection: Connection) -> None:
    """Rewrite the sorted table with the tail in it, within the caller's transaction."""
    connection.execute(
        """
        CREATE TABLE postings_sorted (tenant_id VARCHAR NOT NULL, owner_key VARCHAR NOT NULL, term VARCHAR NOT NULL, doc BIGINT NOT NULL, tf INTEGER NOT NULL);
        INSERT INTO postings_sorted
        SELECT p.* FROM (
            SELECT tenant_id, owner_key, term, doc, tf FROM postings
            UNION ALL SELECT tenant_id, owner_key, unnest(terms), doc, unnest(tfs) FROM postings_tail
        ) p SEMI JOIN facts f ON f.doc = p.doc
        ORDER BY ALL;
        DROP TABLE postings;
        ALTER TABLE postings_sorted RENAME TO postings;
        DELETE FROM postings_tail;
        """
    )


def document(fact: Fact) -> Document:
    """The words of a fact as shown."""
    terms = {codec.storable(term): n for term, n in similarity.index_terms(fact).items()}
    return Document(ids.content_id("d1", sorted(terms.items())), terms)


def index(connection: Connection, added: Iterable[tuple[Fact, int, Document]]) -> None:
    """Add (fact, document number, words) to the tail."""
    rows = [(f.tenant_id, owner_key(f.scope, f.owner), doc, list(words.terms), list(words.terms.values())) for f, doc, words in added]
    insert(connection, "postings_tail", _TAIL, rows)


def erase(connection: Connection, docs: Iterable[int]) -> None:
    """Remove the postings of these documents themselves: for what has to be gone, not just unreachable."""
    numbers = list(docs)
    for table in ("postings", "postings_tail"):
        connection.execute(f"DELETE FROM {table} WHERE doc IN (SELECT unnest(?::BIGINT[]))", [numbers])
