"""What can be said about a store file, whatever state it is in. Changes nothing and never fails for the file's sake."""

import os
import re
import stat
from pathlib import Path
from typing import Any

import duckdb

from osmia_memory.errors import StoreCorruptError, StoreError, StoreLockedError, StoreVersionError
from osmia_memory.store import connection as connections
from osmia_memory.store import migrations

_COUNTS = {
    "runs": "SELECT tenant_id, count(*) FROM runs GROUP BY ALL",
    "facts": "SELECT tenant_id, count(*) FROM facts WHERE pruned_at IS NULL AND fact_id NOT IN (SELECT fact_id FROM tombstones) GROUP BY ALL",
    "superseded": "SELECT tenant_id, count(*) FROM facts WHERE superseded_by IS NOT NULL AND pruned_at IS NULL GROUP BY ALL",
    "pinned": "SELECT tenant_id, count(*) FROM facts WHERE pinned AND pruned_at IS NULL GROUP BY ALL",
    "pruned": "SELECT tenant_id, count(*) FROM facts WHERE pruned_at IS NOT NULL GROUP BY ALL",
    "retracted": "SELECT tenant_id, count(*) FROM tombstones GROUP BY ALL",
    "evidence": "SELECT f.tenant_id, count(*) FROM evidence e JOIN facts f ON f.no = e.fact_no GROUP BY ALL",
    "edges": "SELECT tenant_id, count(*) FROM edges GROUP BY ALL",
    "changes": "SELECT tenant_id, count(*) FROM changes GROUP BY ALL",
}


def doctor(path: Path, *, wait_seconds: float) -> dict[str, Any]:
    """A description of the store file, for people and as JSON.

    `state` is "ok", "missing", "empty", "locked", "corrupt", "newer", "older" or "unusable", with the reason in `problem`. Always there: path, state,
    problem, size_bytes, wal_bytes, mode, writable, duckdb_version, newest_schema, holder (pid and name of the process that has the file
    open). Only for a readable one: schema_version, generation, created_at, tenants (counts by tenant), postings, unmerged_facts.
    """
    found: dict[str, Any] = {
        "path": str(path),
        "state": "ok",
        "problem": None,
        "size_bytes": _size(path),
        "wal_bytes": _size(Path(f"{path}.wal")),
        "mode": _mode(path),
        "writable": _is_writable(path),
        "duckdb_version": duckdb.__version__,
        "newest_schema": migrations.NEWEST,
        "holder": None,
    }
    if not found["size_bytes"]:
        return found | {"state": "missing" if found["size_bytes"] is None else "empty"}
    try:
        with connections.opened(path, write=False, may_upgrade=False, wait_seconds=wait_seconds) as connection:
            return found | _contents(connection)
    except StoreLockedError as error:
        pid = re.search(r"\(pid (\d+)\)", str(error))
        holder = None if pid is None else {"pid": int(pid[1]), "name": connections.process_name(int(pid[1]))}
        return found | {"state": "locked", "problem": str(error), "holder": holder}
    except StoreCorruptError as error:
        return found | {"state": "corrupt", "problem": str(error)}
    except StoreVersionError as error:
        return found | {"state": "newer" if "newer release" in str(error) else "older", "problem": str(error)}
    except StoreError as error:
        return found | {"state": "unusable", "problem": str(error)}


def _contents(connection: connections.Connection) -> dict[str, Any]:
    tenants: dict[str, dict[str, int]] = {}
    for name, query in _COUNTS.items():
        for tenant, count in connection.execute(query).fetchall():
            tenants.setdefault(tenant, dict.fromkeys(_COUNTS, 0))[name] = count
    generation, created_at = connection.execute("SELECT generation, created_at FROM state").fetchall()[0]
    return {
        "schema_version": migrations.version_of(connection),
        "generation": generation,
        "created_at": created_at.isoformat() + "Z",
        "tenants": dict(sorted(tenants.items())),
        "postings": connection.execute("SELECT count(*) FROM postings").fetchall()[0][0],
        "unmerged_facts": connection.execute("SELECT count(*) FROM postings_tail").fetchall()[0][0],
    }


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _mode(path: Path) -> str | None:
    try:
        return f"{stat.S_IMODE(path.stat().st_mode):04o}"
    except OSError:
        return None


def _is_writable(path: Path) -> bool:
    """Whether this user may write the file, or create it."""
    if path.exists():
        return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)  # the log is created beside it
    parent = next(p for p in path.absolute().parents if p.exists())
    return os.access(parent, os.W_OK)
