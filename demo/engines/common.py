"""What the writers share: stable ids, times as text, token estimates, diffs."""

import difflib
import hashlib
import math
import uuid
from datetime import UTC, datetime

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def digest(*parts: object) -> str:
    """Hex that depends on `parts` alone, so that a second making gives the same ids."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()


def uuid4(*parts: object) -> str:
    """A random-looking UUID of `parts`."""
    return str(uuid.UUID(digest(*parts)[:32], version=4))


def uuid7(at: datetime, *parts: object) -> str:
    """A UUID that begins with the time, as Codex makes them."""
    head, tail = f"{int(at.timestamp() * 1000):012x}", digest(*parts)
    return f"{head[:8]}-{head[8:]}-7{tail[:3]}-b{tail[3:6]}-{tail[6:18]}"


def token(prefix: str, length: int, *parts: object) -> str:
    """An id such as `toolu_01…`."""
    number, text = int(digest(*parts), 16), ""
    while len(text) < length:
        number, rest = divmod(number, 62)
        text += _BASE62[rest]
    return prefix + text


def iso(at: datetime) -> str:
    """`2026-03-02T09:00:00.000Z`."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def tokens(text: str) -> int:
    """A rough count: four characters each."""
    return math.ceil(len(text) / 4)


def hunks(before: str, after: str, context: int = 2) -> list[str]:
    """The hunk lines of a unified diff, headers of the files left out."""
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=context, lineterm=""))[2:]


def joined(stdout: str, stderr: str) -> str:
    """Both streams, one after the other, without the last line end."""
    return "\n".join(part.rstrip("\n") for part in (stdout, stderr) if part.strip("\n"))
