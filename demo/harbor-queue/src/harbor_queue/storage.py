"""Jobs in an SQLite file."""

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from harbor_queue import schema


@dataclass(frozen=True)
class Job:
    """One piece of work."""

    id: str
    tenant: str
    body: str
    due: datetime
    attempt: int = 0


class Store:
    """The queue file at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path)
        self.connection.execute("pragma journal_mode = wal")
        schema.create(self.connection)

    def put(self, job: Job) -> None:
        """Add a job."""
        row = (job.id, job.tenant, job.body, job.due.isoformat(), job.attempt)
        self.connection.execute("insert into jobs (id, tenant, body, due, attempt) values (?, ?, ?, ?, ?)", row)
        self.connection.commit()

    def due(self, now: datetime) -> list[Job]:
        """Unfinished jobs whose time has come, the longest waiting first."""
        query = "select id, tenant, body, due, attempt from jobs where finished is null and due <= ? order by due, id"
        rows = self.connection.execute(query, (now.isoformat(),))
        return [Job(i, tenant, body, datetime.fromisoformat(due), attempt) for i, tenant, body, due, attempt in rows]

    def finish(self, job: Job, now: datetime) -> None:
        """Note that the job is done."""
        self.connection.execute("update jobs set finished = ? where id = ?", (now.isoformat(), job.id))
        self.connection.commit()

    def requeue(self, job: Job, due: datetime) -> None:
        """Have a failed job tried again at `due`."""
        self.connection.execute("update jobs set due = ?, attempt = 0 where id = ?", (due.isoformat(), job.id))
        self.connection.commit()

    def depth(self) -> int:
        """How many jobs are waiting."""
        return int(self.connection.execute("select count(*) from jobs where finished is null").fetchone()[0])
