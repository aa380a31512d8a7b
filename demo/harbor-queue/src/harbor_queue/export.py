"""Finished jobs into a file of their own."""

import sqlite3
from datetime import datetime
from pathlib import Path

from harbor_queue.storage import Store


def archive(store: Store, target: Path, since: datetime) -> int:
    """Copy the jobs finished at `since` or later to `target`; how many there were."""
    source = sqlite3.connect(store.path)
    query = "select id, tenant, body, finished from jobs where finished >= ? order by finished, id"
    rows = source.execute(query, (since.strftime("%Y-%m-%dT%H:%M:%SZ"),)).fetchall()
    source.close()
    with sqlite3.connect(target) as out:
        out.execute("create table done (id text primary key, tenant text, body text, finished text)")
        out.executemany("insert into done values (?, ?, ?, ?)", rows)
    out.close()
    return len(rows)
