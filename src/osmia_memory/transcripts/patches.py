"""Patches -> the files they touch: Codex's `*** Begin Patch`, its `changes` maps, and unified diffs. Pure."""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

_SECTION = re.compile(r"^\*\*\* (?P<verb>Add|Update|Delete) File: (?P<path>.+?)[ \t\r]*$", re.M)
_MOVE = re.compile(r"^\*\*\* Move to: (?P<path>.+?)[ \t\r]*$", re.M)
_END = re.compile(r"^\*\*\* End Patch", re.M)
_DIFF_FILE = re.compile(r'^diff --git "?a/(?P<old>.+?)"? "?b/(?P<new>.+?)"?$', re.M)
_PLUS_FILE = re.compile(r"^\+\+\+ (?:b/)?(?P<path>[^\t\n]+)", re.M)


class FileChange(NamedTuple):
    """One file of a patch. `paths` holds the new name too if it is moved."""

    paths: tuple[str, ...]
    text: str
    created: bool = False
    deleted: bool = False


def from_apply_patch(text: str) -> Iterator[FileChange]:
    """The files of a patch in Codex's own format, which may stand inside a shell command."""
    start = text.find("*** Begin Patch")
    end = _END.search(text, max(start, 0))
    text = text[max(start, 0) : end.start() if end else len(text)]
    sections = list(_SECTION.finditer(text))
    for section, following in zip_longest(sections, sections[1:]):
        body = text[section.end() : following.start() if following else len(text)].strip("\n")
        move = _MOVE.match(body)
        paths = (section["path"], move["path"]) if move else (section["path"],)
        yield FileChange(paths, body, section["verb"] == "Add", section["verb"] == "Delete")


def from_changes(changes: Any) -> Iterator[FileChange]:
    """The files of an event's `{path: {type: add|update|delete, content|unified_diff, move_path}}`."""
    for path, change in changes.items() if isinstance(changes, dict) else ():
        if not isinstance(change, dict):
            continue
        kind = change.get("type")
        if kind is None and len(change) == 1:  # {"add": {"content": ...}} of older versions
            kind, change = next(iter(change.items()))
        text = (change.get("unified_diff") or change.get("content") or "") if isinstance(change, dict) else ""
        move = change.get("move_path") if isinstance(change, dict) else None
        yield FileChange((str(path), str(move)) if move else (str(path),), str(text), kind == "add", kind == "delete")


def paths_of_diff(diff: str) -> tuple[str, ...]:
    """The files a unified diff touches, under their new names."""
    found = [m["new"] for m in _DIFF_FILE.finditer(diff)] or [m["path"] for m in _PLUS_FILE.finditer(diff) if m["path"] != "/dev/null"]
    return tuple(dict.fromkeys(found))
