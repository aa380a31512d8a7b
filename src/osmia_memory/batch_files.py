"""Files of providers' batch interfaces, in the form that OpenAI defined: one request a line out, one reply a line in.

Knows nothing of prompts or runs. Both files hold text of transcripts (redacted), so what is written here only its owner can read.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from osmia_memory.errors import InputError

URL = "/v1/chat/completions"
PRICE_FACTOR = 0.5  # of the price of direct requests, at the providers that have such an interface


class Reply(NamedTuple):
    """One line of a file of replies. `body` is the provider's answer; None where the request failed, then `error` says why."""

    body: Mapping[str, Any] | None
    error: str = ""


class Replies(NamedTuple):
    """A file of replies: by custom id, and the lines that are none as (line number, reason)."""

    by_id: Mapping[str, Reply]
    rejected: tuple[tuple[int, str], ...]


def write_requests(path: Path, requests: Iterable[tuple[str, Mapping[str, Any]]]) -> int:
    """Write (custom id, body) pairs, one a line; returns how many. The file appears whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    count = 0
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                for custom_id, body in requests:
                    file.write(json.dumps({"custom_id": custom_id, "method": "POST", "url": URL, "body": body}, ensure_ascii=False) + "\n")
                    count += 1
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot write the requests to `{path}`: {error.strerror}; pass another file with `--batch-out`") from error
    return count


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
