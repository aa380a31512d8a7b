"""The tables of a queue file."""

import sqlite3

SCHEMA_VERSION = 7

JOBS = """
create table if not exists jobs (
    id text primary key,
    tenant text not null,
    body text not null,
    due text not null,
    attempt integer not null default 0,
    finished text
)
"""


def create(connection: sqlite3.Connection) -> None:
    """Create what is missing and note the version."""
    connection.execute(JOBS)
    connection.execute(f"pragma user_version = {SCHEMA_VERSION}")
    connection.commit()


def version(connection: sqlite3.Connection) -> int:
    """The version that the file says it has."""
    return int(connection.execute("pragma user_version").fetchone()[0])
