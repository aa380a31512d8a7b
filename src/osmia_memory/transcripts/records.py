"""Bytes of a file -> JSON values with their record numbers. Knows JSON, damage and sizes; knows no transcript format.

What cannot be read is named in a `Skips`, and the rest is read: glued objects, cut lines, NUL bytes, broken UTF-8, lone
surrogates, records over `MAX_RECORD_BYTES`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import orjson

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Skip

# What a record of a shape that nobody wrote down raises while it is read: it is named and skipped, the rest goes on.
MISREAD = (TypeError, KeyError, AttributeError, ValueError, IndexError)

MAX_RECORD_BYTES = 32 * 1024 * 1024
_NAMED_PER_REASON = 5  # further ones of the same reason are only counted
_SAMPLE = 6  # lines that tell JSONL from a document
_SCANNER = json.JSONDecoder(strict=False)
_WHITE = " \t\r\n"


class Record(NamedTuple):
    """One object of a JSONL file. `number` is its 0-based physical line; glued objects share one."""

    number: int
    raw: bytes
    value: dict[str, Any]


class Skips:
    """Collects what was not read, by name, and counts what would drown the names."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._named: list[Skip] = []
        self._counts: dict[str, int] = {}

    def add(self, number: int | None, reason: str) -> None:
        """Note a record (0-based; None: the file) and why it was not read, or not read as it stands."""
        count = self._counts.get(reason, 0) + 1
        self._counts[reason] = count
        if count <= _NAMED_PER_REASON:
            self._named.append(Skip(self._where if number is None else f"{self._where}:{number}", reason))

    def result(self) -> tuple[Skip, ...]:
        """The named ones in order, then one line for each reason with more than were named."""
        more = ((reason, n - _NAMED_PER_REASON) for reason, n in self._counts.items() if n > _NAMED_PER_REASON)
        return (*self._named, *(Skip(self._where, f"{n} more: {reason}") for reason, n in more))


@dataclass(frozen=True)
class Content:
    """A file taken apart: the lines of JSONL, or the documents of a JSON file (one line may be both)."""

    size: int  # bytes
    lines: list[bytes]
    documents: list[Any]
    cut: bool = False  # the document ends before its end

    def head(self, count: int) -> list[dict[str, Any]]:
        """The first objects, for detection: a session may begin with a page of housekeeping records."""
        if self.documents:
            found = (o for d in self.documents for o in (d if isinstance(d, list) else (d,)))
            return list(islice((o for o in found if isinstance(o, dict)), count))
        records = decode(self.lines[: count * 8], Skips(""))
        return [record.value for record in islice(records, count)]

    def values(self, skips: Skips) -> Iterator[tuple[int, Any]]:
        """(line number, object) of JSONL, or (0, document) of a JSON file."""
        if self.documents:
            for document in self.documents:
                yield 0, document
            return
        for record in decode(self.lines, skips):
            yield record.number, record.value


def take_apart(data: bytes, where: str) -> Content:
    """Find out whether `data` is JSONL, one JSON document or several, and parse documents.

    Raises:
        TranscriptError: the file is empty, or nothing in it is JSON.
    """
    data = _as_utf8(data)
    if not data.lstrip(b"\0 \t\r\n"):
        raise TranscriptError(f"{where}: the file is empty")
    filled = list(islice(_filled_lines(data), _SAMPLE))
    objects = sum(isinstance(_whole(line), dict) for line in filled)
    if len(filled) > 1 and objects * 2 >= len(filled):
        return Content(len(data), data.split(b"\n"), [])
    documents = _documents(data)
    if documents:
        return Content(len(data), data.split(b"\n") if len(filled) == 1 else [], documents)
    content = Content(len(data), data.split(b"\n"), [])
    if any(len(value) > 1 for value in content.head(1)):
        return content
    mended = _cut_document(data)
    if mended:
        return Content(len(data), content.lines if len(filled) == 1 else [], [mended], cut=True)
    kind = "text that is no JSON" if _is_text(data[:4096]) else "binary data"
    raise TranscriptError(f"{where}: {kind}")


def _filled_lines(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        line = data[at:end]
        if line and not line.isspace():
            yield line
        at = end + 1


def decode(lines: list[bytes], skips: Skips, ignore: tuple[bytes, ...] = ()) -> Iterator[Record]:
    """The objects of a JSONL file in order. Lines that begin with one of `ignore` are passed over unparsed."""
    loads = orjson.loads
    last = len(lines) - 1
    for number, line in enumerate(lines):
        if not line or (ignore and line.startswith(ignore) and b'}{"' not in line):
            continue
        if len(line) > MAX_RECORD_BYTES:
            skips.add(number, f"record of {len(line) / 1e6:.0f} MB (the limit is {MAX_RECORD_BYTES // 2**20} MiB)")
            continue
        try:
            value = loads(line)
        except ValueError:
            for found in _salvage(line, number, skips, last=number == last):
                yield Record(number, line, found)
            continue
        if type(value) is dict:
            yield Record(number, line, value)
        else:
            skips.add(number, "not a JSON object")


def parse(data: bytes | str) -> Any | None:
    """A small JSON value (a sidecar, an argument string), or None where it is none."""
    try:
        return orjson.loads(data)
    except ValueError:
        return None


def as_json(value: Any) -> str:
    """A parsed value as JSON text, in the order of its keys."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # integers over 64 bits, which only the slow parser lets in
        return json.dumps(value, separators=(",", ":"))


def _as_utf8(data: bytes) -> bytes:
    """Without byte order mark; UTF-16, which some shells write on redirection, becomes UTF-8."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data.removeprefix(b"\xef\xbb\xbf")


def _is_text(data: bytes) -> bool:
    return sum(byte < 9 or 13 < byte < 32 for byte in data) * 50 < len(data)


def _whole(line: bytes) -> Any | None:
    try:
        return orjson.loads(line)
    except ValueError:
        return None


def _documents(data: bytes) -> list[Any]:
    """All JSON documents of the text, one after another; empty if it is not made of whole documents."""
    try:
        return [v for v in (orjson.loads(data),) if isinstance(v, dict | list)]
    except ValueError:
        text = data.decode("utf-8", "replace").replace("\0", "")
    found: list[Any] = []
    at = _past_white(text, 0)
    while at < len(text):
        try:
            value, at = _SCANNER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        found.append(_mended(value))
        at = _past_white(text, at)
    return [v for v in found if isinstance(v, dict | list)]


def _past_white(text: str, at: int) -> int:
    while at < len(text) and text[at] in _WHITE:
        at += 1
    return at


def _salvage(line: bytes, number: int, skips: Skips, last: bool) -> Iterator[dict[str, Any]]:
    """Objects of a line that is not one JSON value: glued ones, or one that bad bytes make invalid."""
    if line.isspace():
        return
    text = line.decode("utf-8", "replace")
    if "\0" in text:
        text = text.replace("\0", "")
        skips.add(number, "NUL bytes removed")
    elif "�" in text and "�".encode() not in line:
        skips.add(number, "invalid UTF-8 replaced")
    at = _past_white(text, 0)
    while at < len(text):
        try:
            value, at = _SCANNER.raw_decode(text, at)
        except (ValueError, RecursionError):
            if last:
                skips.add(number, "record cut off at the end of the file")
            elif text.lstrip()[:1] == "{":
                skips.add(number, "invalid JSON")
            else:
                skips.add(number, "not a JSON record")
            return
        mended = _mended(value)
        if mended is not value and mended != value:
            skips.add(number, "lone surrogates replaced")
        if isinstance(mended, dict):
            yield mended
        else:
            skips.add(number, "not a JSON object")
        at = _past_white(text, at)


def _mended(value: Any) -> Any:
    """`value` without lone surrogates, which no UTF-8 text can hold."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if not value.isascii() else value
    if isinstance(value, list):
        return [_mended(item) for item in value]
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return value


def _cut_document(data: bytes) -> dict[str, Any] | None:
    """What can be read of one JSON object that ends too early: its whole members, and the whole items of the cut list."""
    text = data.decode("utf-8", "replace").replace("\0", "")
    at = _past_white(text, 0)
    if text[at : at + 1] != "{":
        return None
    found: dict[str, Any] = {}
    at += 1
    while True:
        try:
            key, at = _SCANNER.raw_decode(text, _past_white(text, at))
            at = _past_white(text, at)
            if not isinstance(key, str) or text[at : at + 1] != ":":
                return found or None
            at = _past_white(text, at + 1)
        except (ValueError, RecursionError):
            return found or None
        try:
            value, at = _SCANNER.raw_decode(text, at)
        except (ValueError, RecursionError):
            if text[at : at + 1] == "[":
                found[key] = _cut_list(text, at + 1)
            return found or None
        found[key] = _mended(value)
        at = _past_white(text, at)
        if text[at : at + 1] != ",":
            return found or None
        at += 1


def _cut_list(text: str, at: int) -> list[Any]:
    items: list[Any] = []
    while True:
        try:
            value, at = _SCANNER.raw_decode(text, _past_white(text, at))
        except (ValueError, RecursionError):
            return items
        items.append(_mended(value))
        at = _past_white(text, at)
        if text[at : at + 1] != ",":
            return items
        at += 1
