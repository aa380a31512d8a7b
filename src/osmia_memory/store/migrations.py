"""The schema, as ordered steps. Each step and its record commit together, so a killed upgrade leaves a whole version behind.

Primary keys only: secondary indexes and foreign keys of DuckDB block later ALTERs and some updates, so `verify` checks references.
Rows refer to each other by small integers (`no`), because a scan for a 27-character id over a million evidence rows takes 100 ms and
one for an integer 2.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime

import duckdb

from osmia_memory.store import codec, relating

Step = Callable[[duckdb.DuckDBPyConnection], None]


def _knowledge(connection: duckdb.DuckDBPyConnection) -> None:
    """Runs, facts, who said so, and links."""
    connection.execute(
        """
        CREATE TABLE state (
            generation BIGINT NOT NULL,     -- grows with every write
            next_no BIGINT NOT NULL,        -- next free number of a run, fact or indexed document
            redaction_key BLOB NOT NULL,    -- equal secrets get equal masks within this store only
            created_at TIMESTAMP NOT NULL   -- all times are UTC
        );
        CREATE TABLE runs (
            run_id VARCHAR PRIMARY KEY, no BIGINT NOT NULL, tenant_id VARCHAR NOT NULL, version VARCHAR NOT NULL, extractor VARCHAR NOT NULL,
            repo VARCHAR, engine VARCHAR NOT NULL, model VARCHAR, task_type VARCHAR NOT NULL, language VARCHAR, outcome VARCHAR NOT NULL,
            duration_s DOUBLE, cost_usd DOUBLE, tokens_in BIGINT, tokens_out BIGINT, started_at TIMESTAMP, finished_at TIMESTAMP,
            parent_session_id VARCHAR,
            rest VARCHAR NOT NULL,          -- JSON: the fields that only make sense together with the others
            vocabulary VARCHAR[] NOT NULL,  -- lower-case names that occur in the run
            recorded_at TIMESTAMP NOT NULL
        );
        CREATE TABLE facts (
            fact_id VARCHAR PRIMARY KEY, no BIGINT NOT NULL, tenant_id VARCHAR NOT NULL, scope VARCHAR NOT NULL, owner VARCHAR NOT NULL,
            fact_kind VARCHAR NOT NULL, content VARCHAR NOT NULL, confidence DOUBLE NOT NULL, decay_rate DOUBLE NOT NULL,
            valid_from TIMESTAMP NOT NULL, last_seen TIMESTAMP NOT NULL, runs INTEGER NOT NULL, refuting_runs INTEGER NOT NULL,
            claim VARCHAR[],                -- subject, attribute, qualifier, value; the first three are the slot
            engine VARCHAR, engines VARCHAR[] NOT NULL, task_type VARCHAR, anchors VARCHAR[] NOT NULL, tags VARCHAR[] NOT NULL,
            importance DOUBLE NOT NULL, pinned BOOLEAN NOT NULL, valid_to TIMESTAMP, superseded_by VARCHAR,
            recorded_at TIMESTAMP NOT NULL, source VARCHAR NOT NULL,
            pruned_at TIMESTAMP             -- set: a stub without text
        );
        CREATE TABLE witnesses (
            fact_no BIGINT NOT NULL,
            run_no BIGINT NOT NULL,         -- 0: imported or saved by hand
            observed_at TIMESTAMP NOT NULL,
            recorded_at TIMESTAMP NOT NULL,
            candidate VARCHAR NOT NULL      -- JSON: the testimony without its evidence
        );
        CREATE TABLE evidence (
            fact_no BIGINT NOT NULL, run_no BIGINT NOT NULL, position INTEGER NOT NULL, event_index INTEGER NOT NULL, record INTEGER NOT NULL,
            quote VARCHAR NOT NULL, span_start INTEGER NOT NULL, span_end INTEGER NOT NULL, observed_at TIMESTAMP NOT NULL,
            status VARCHAR NOT NULL, polarity VARCHAR NOT NULL, origin VARCHAR
        );
        CREATE TABLE edges (
            tenant_id VARCHAR NOT NULL, from_id VARCHAR NOT NULL, to_id VARCHAR NOT NULL, relation VARCHAR NOT NULL, weight DOUBLE NOT NULL,
            reason VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL
        );
        """
    )
    connection.execute("INSERT INTO state VALUES (0, 1, ?, ?)", [os.urandom(32), datetime.now(UTC).replace(tzinfo=None)])


def _lexical_index(connection: duckdb.DuckDBPyConnection) -> None:
    """Postings by term. A fact whose words change gets a new document number; postings of the old one find nobody and count for nothing."""
    connection.execute(
        """
        ALTER TABLE facts ADD COLUMN doc BIGINT;           -- its number in the postings
        ALTER TABLE facts ADD COLUMN doc_length INTEGER;   -- terms, with repetition
        ALTER TABLE facts ADD COLUMN doc_key VARCHAR;      -- hash of its terms: equal, so nothing to index
        CREATE TABLE postings (tenant_id VARCHAR NOT NULL, owner_key VARCHAR NOT NULL, term VARCHAR NOT NULL, doc BIGINT NOT NULL, tf INTEGER NOT NULL);
        CREATE TABLE postings_tail (
            tenant_id VARCHAR NOT NULL, owner_key VARCHAR NOT NULL, doc BIGINT NOT NULL, terms VARCHAR[] NOT NULL, tfs INTEGER[] NOT NULL
        );
        """
    )


def _hand_edits(connection: duckdb.DuckDBPyConnection) -> None:
    """What people decide: wordings, retractions, and a journal of it all without any content."""
    connection.execute(
        """
        ALTER TABLE facts ADD COLUMN edited VARCHAR;  -- shown instead of `content`, which stays what the witnesses said
        CREATE TABLE tombstones (fact_id VARCHAR PRIMARY KEY, tenant_id VARCHAR NOT NULL, reason VARCHAR NOT NULL, retracted_at TIMESTAMP NOT NULL);
        CREATE TABLE changes (
            change_id BIGINT PRIMARY KEY, tenant_id VARCHAR NOT NULL, changed_at TIMESTAMP NOT NULL, who VARCHAR NOT NULL, what VARCHAR NOT NULL,
            subject VARCHAR NOT NULL, before VARCHAR NOT NULL  -- JSON: flags and numbers to go back to
        );
        """
    )


def _imported_statistics(connection: duckdb.DuckDBPyConnection) -> None:
    """Patterns and engine profiles that came without their runs; all others are computed from the runs."""
    connection.execute(
        "CREATE TABLE imported_statistics (tenant_id VARCHAR NOT NULL, kind VARCHAR NOT NULL, row_key VARCHAR NOT NULL, body VARCHAR NOT NULL)"
    )


def _model_pass(connection: duckdb.DuckDBPyConnection) -> None:
    """The state of each part of a run that a model was asked about, and every request with its cost."""
    connection.execute(
        """
        CREATE TABLE chunks (
            tenant_id VARCHAR NOT NULL, run_id VARCHAR NOT NULL, prompt VARCHAR NOT NULL, chunk_key VARCHAR NOT NULL, number INTEGER NOT NULL,
            parts INTEGER NOT NULL, state VARCHAR NOT NULL, model VARCHAR NOT NULL, detail VARCHAR NOT NULL, recorded_at TIMESTAMP NOT NULL
        );
        CREATE TABLE requests (
            tenant_id VARCHAR NOT NULL, run_id VARCHAR NOT NULL, prompt VARCHAR NOT NULL, chunk_key VARCHAR NOT NULL, position INTEGER NOT NULL,
            model VARCHAR NOT NULL, state VARCHAR NOT NULL, tokens_in BIGINT NOT NULL, tokens_out BIGINT NOT NULL,
            cost_usd DOUBLE,                -- NULL: no known price
            latency_s DOUBLE NOT NULL, error VARCHAR NOT NULL, recorded_at TIMESTAMP NOT NULL
        );
        """
    )


def _relations(connection: duckdb.DuckDBPyConnection) -> None:
    """Keys under which facts are compared, who made a link, what people and models said of pairs, and the order of commits."""
    connection.execute(
        """
        CREATE TABLE slots (key BIGINT NOT NULL, fact_no BIGINT NOT NULL);
        ALTER TABLE edges ADD COLUMN made_by VARCHAR DEFAULT 'hand';  -- 'code': worked out anew with every write
        CREATE TABLE pairs (
            tenant_id VARCHAR NOT NULL, kind VARCHAR NOT NULL,  -- 'apart': a person said so; 'nominated': a model did
            one VARCHAR NOT NULL, other VARCHAR NOT NULL, said_by VARCHAR NOT NULL, recorded_at TIMESTAMP NOT NULL
        );
        CREATE TABLE ancestry (tenant_id VARCHAR NOT NULL, newer VARCHAR NOT NULL, older VARCHAR NOT NULL);  -- of commits that runs began at
        """
    )
    rows = connection.execute(f"SELECT f.no, {codec.TOLD_FACT} FROM facts f WHERE f.pruned_at IS NULL").fetchall()
    relating.write_slots(connection, ((codec.fact(row[1:]), row[0]) for row in rows), [])


def _injections(connection: duckdb.DuckDBPyConnection) -> None:
    """What coming runs were shown, and what they used of it."""
    connection.execute(
        """
        CREATE TABLE injections (
            key VARCHAR PRIMARY KEY, tenant_id VARCHAR NOT NULL, session VARCHAR NOT NULL, shown_at TIMESTAMP NOT NULL, repo VARCHAR, engine VARCHAR,
            fact_ids VARCHAR NOT NULL,  -- separated by spaces, in the order of the block
            tokens BIGINT NOT NULL, withheld BOOLEAN NOT NULL,
            run_id VARCHAR, used_ids VARCHAR  -- NULL until the run was read
        );
        """
    )


def _erasure(connection: duckdb.DuckDBPyConnection) -> None:
    """Whether removed text still has bytes in the file."""
    connection.execute("ALTER TABLE state ADD COLUMN unerased BOOLEAN DEFAULT FALSE")


STEPS: tuple[Step, ...] = (_knowledge, _lexical_index, _hand_edits, _imported_statistics, _model_pass, _relations, _injections, _erasure)
NEWEST = len(STEPS)


def version_of(connection: duckdb.DuckDBPyConnection) -> int:
    """The version of the schema; 0 for a database without tables."""
    try:
        version: int = connection.execute("SELECT coalesce(max(version), 0) FROM migrations").fetchall()[0][0]
    except duckdb.CatalogException:  # asking the catalogue first costs every opening 4 ms
        return 0
    return version


def is_foreign(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether it has tables, but not ours."""
    names = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    return bool(names) and "migrations" not in names


def migrate(connection: duckdb.DuckDBPyConnection, *, stop_before: int | None = None) -> int:
    """Bring the schema up to date, or to the version before `stop_before`. Returns the version reached."""
    version = version_of(connection)
    for number in range(version + 1, NEWEST + 1 if stop_before is None else stop_before):
        step = STEPS[number - 1]
        connection.execute("BEGIN")
        try:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, name VARCHAR NOT NULL, applied_at TIMESTAMP NOT NULL)"
            )
            step(connection)
            connection.execute(
                "INSERT INTO migrations VALUES (?, ?, ?)", [number, step.__name__.strip("_"), datetime.now(UTC).replace(tzinfo=None)]
            )
            connection.execute("COMMIT")
        except BaseException:  # Ctrl-C included: no step is left half done
            connection.execute("ROLLBACK")
            raise
        version = number
    return version
