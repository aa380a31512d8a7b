"""Records of injections on their way into the store: one small file each, so that asking neither waits for a writer nor writes.

A record is acknowledged once its file has its final name. The next command that writes takes the files into the store and then removes
them; a file that is taken in twice counts once, because its name is its key.
"""

import json
import os
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from osmia_memory.errors import StoreError


class Injection(NamedTuple):
    """What one coming run was shown. `session` is its id with its engine or controller; `withheld`: nothing was, for comparison."""

    key: str
    tenant_id: str
    session: str
    at: str  # RFC 3339
    repo: str | None
    engine: str | None
    fact_ids: tuple[str, ...]
    tokens: int
    withheld: bool


def folder_of(store: Path) -> Path:
    """Where the records of a store wait."""
    return store.with_name(f"{store.name}.spool")


def put(
    store: Path,
    tenant: str,
    session: str,
    at: datetime,
    repo: str | None,
    engine: str | None,
    fact_ids: Sequence[str],
    tokens: int,
    *,
    withheld: bool,
) -> str:
    """Write one record; returns its key.

    Raises:
        StoreError: the folder cannot be written.
    """
    key = f"{at:%Y%m%dT%H%M%S}-{os.getpid()}-{secrets.token_hex(6)}"
    record = Injection(key, tenant, session, at.isoformat(), repo, engine, tuple(fact_ids), tokens, withheld)
    folder = folder_of(store)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = folder / f".{key}"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(record._asdict()))
            file.flush()
            os.fsync(file.fileno())
        partial.rename(folder / f"{key}.json")
    except OSError as error:
        raise StoreError(f"cannot record the injection in `{folder}`: {error.strerror}; make the folder writable") from error
    return key


class Waiting(NamedTuple):
    """The records that wait, the files they are in, and (file, reason) of what is no record."""

    records: tuple[Injection, ...]
    files: tuple[Path, ...]
    bad: tuple[tuple[Path, str], ...]


def waiting(store: Path) -> Waiting:
    """Everything in the spool, oldest first."""
    records, files, bad = [], [], []
    folder = folder_of(store)
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            record = Injection(**{**value, "fact_ids": tuple(map(str, value["fact_ids"]))})
            datetime.fromisoformat(record.at)
            if record.key != path.stem or not record.tenant_id:
                raise ValueError("its key is not its name, or it has no tenant")
        except (ValueError, TypeError, KeyError, OSError) as error:
            bad.append((path, str(error) or type(error).__name__))
            continue
        records.append(record)
        files.append(path)
    return Waiting(tuple(records), tuple(files), tuple(bad))


def done(found: Waiting) -> None:
    """Remove what is in the store now, and set aside what is no record."""
    for path in found.files:
        path.unlink(missing_ok=True)
    for path, _ in found.bad:
        if path.exists():
            path.rename(path.with_suffix(".bad"))


def share(session: str, part: float) -> bool:
    """Whether this run is among the `part` from which knowledge is withheld: decided by its id alone, the same every time."""
    import hashlib

    return int.from_bytes(hashlib.blake2b(session.encode(), digest_size=4).digest(), "big") < part * 2**32


def sessions(records: Iterable[Injection]) -> frozenset[str]:
    """The ids of the runs that the records are about."""
    return frozenset(r.session for r in records)
