"""Files of providers' batch interfaces, in the form that OpenAI defined: one request a line out, one reply a line in.

Knows nothing of prompts or runs. Both files hold text of transcripts (redacted), so what is written here only its owner can read.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from osmia_memory.errors import InputError

URL = "/v1/chat/completions"


class Reply(NamedTuple):
    """One line of a file of replies. `body` is the provider's answer; None where the request failed, then `error` says why."""

    body: Mapping[str, Any] | None
    error: str = ""


class Replies(NamedTuple):
    """A file of replies: by custom id, and the lines that are none as (line number, reason)."""

    by_id: Mapping[str, Reply]
    rejected: tuple[tuple[int, str], ...]


@contextmanager
def requests_file(path: Path) -> Iterator[Callable[[str, Mapping[str, Any]], None]]:
    """Gives a function that writes one request (custom id, body). The file appears whole, at the end, or not at all.

    Raises:
        InputError: it cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                yield lambda custom_id, body: print(
                    json.dumps({"custom_id": custom_id, "method": "POST", "url": URL, "body": body}, ensure_ascii=False), file=file
                )
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write the requests to `{path}`: {error.strerror}; pass another file with `--batch-out`") from error


def read_replies(path: Path) -> Replies:
    """The replies of a batch. A line that is none is rejected, the others count; of two with one id the later one counts.

    Raises:
        InputError: it cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise InputError(f"cannot read the replies in `{path}`: {error.strerror}; pass the file with `--batch-in`") from error
    found: dict[str, Reply] = {}
    rejected: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            rejected.append((number, "no JSON"))
            continue
        custom_id = row.get("custom_id") if isinstance(row, dict) else None
        if isinstance(custom_id, str):
            found[custom_id] = _reply(row)
        else:
            rejected.append((number, "no custom_id"))
    return Replies(found, tuple(rejected))


def _reply(row: Mapping[str, Any]) -> Reply:
    response = row.get("response")
    body = response.get("body") if isinstance(response, dict) else None
    status = response.get("status_code", 200) if isinstance(response, dict) else None
    if isinstance(body, dict) and status == 200 and not body.get("error"):
        return Reply(body)
    said = row.get("error") or (body.get("error") if isinstance(body, dict) else None)
    message = said.get("message") or said.get("code") if isinstance(said, dict) else said
    return Reply(None, f"the batch says: {message or f'status {status}'}"[:300])
