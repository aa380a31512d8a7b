"""`harbor`: the queue from the command line."""

import argparse
import shutil
import sqlite3
import uuid
from datetime import datetime
from pathlib import Path

from harbor_queue import export, schema
from harbor_queue.clock import Clock, SystemClock
from harbor_queue.log import say
from harbor_queue.scheduler import next_batch
from harbor_queue.storage import Job, Store


def main(argv: list[str] | None = None, clock: Clock | None = None) -> int:
    """Run one command; the exit status."""
    args = _parser().parse_args(argv)
    return int(args.run(args, clock or SystemClock()))


def put(args: argparse.Namespace, clock: Clock) -> int:
    """Add a job."""
    Store(args.db).put(Job(args.id or uuid.uuid4().hex, args.tenant, args.body, clock.now()))
    return 0


def stats(args: argparse.Namespace, clock: Clock) -> int:
    """How much is waiting."""
    say(f"waiting: {Store(args.db).depth()}")
    return 0


def drain(args: argparse.Namespace, clock: Clock) -> int:
    """Take jobs until none is due."""
    store = Store(args.db)
    while batch := next_batch(store, clock.now(), args.batch):
        for job in batch:
            say(f"{job.tenant} {job.body}")
            store.finish(job, clock.now())
    return 0


def migrate(args: argparse.Namespace, clock: Clock) -> int:
    """Bring an older file to the current version."""
    connection = sqlite3.connect(args.db)
    found = schema.version(connection)
    if found < schema.SCHEMA_VERSION and args.backup is None:
        say(f"harbor: refusing to migrate {args.db} from {found} to {schema.SCHEMA_VERSION} without --backup FILE")
        return 2
    if found < schema.SCHEMA_VERSION:
        shutil.copy(args.db, args.backup)
        connection.execute("alter table jobs add column finished text")
        schema.create(connection)
    say(f"{args.db} is at version {schema.version(connection)}")
    return 0


def archive(args: argparse.Namespace, clock: Clock) -> int:
    """Copy finished jobs to a file of their own."""
    say(f"archived: {export.archive(Store(args.db), args.target, datetime.fromisoformat(args.since))}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="harbor")
    commands = parser.add_subparsers(required=True)
    for run in (put, stats, drain, migrate, archive):
        command = commands.add_parser(run.__name__, help=run.__doc__)
        command.add_argument("db", type=Path)
        command.set_defaults(run=run)
        if run is put:
            command.add_argument("tenant")
            command.add_argument("body")
            command.add_argument("--id")
        if run is drain:
            command.add_argument("--batch", type=int, default=10)
        if run is migrate:
            command.add_argument("--backup", type=Path)
        if run is archive:
            command.add_argument("target", type=Path)
            command.add_argument("--since", default="1970-01-01T00:00:00+00:00")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
