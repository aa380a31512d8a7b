"""Aider's chat history as text -> sessions, and the blocks of a session: typed, printed, replied. Pure; gives them no meaning.

What was typed stands behind `#### `, what Aider printed behind `> `, both with two spaces at the end of the line; the rest is
the reply. Of what it printed in one go over several lines only the first has the mark, and only the last the two spaces.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal, NamedTuple

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_TYPED = re.compile(r"#### ?(.*?) {2}")
_PRINTED = re.compile(r">( .*)? {2}")
_FENCE = re.compile(r"(`{3,})[^`]*")
_NOT_IN_A_FENCE = re.compile(r"> (?:Tokens: |\^C)")  # the fence was left open by an interrupted reply
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SIGNS = (
    re.compile(rb"^# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$", re.M),
    re.compile(rb"^#### \S.* {2}\r?$", re.M),
    re.compile(rb"^> (?:Applied edit to \S|Tokens: [\d.,k]+ sent|Aider v\d|Commit [0-9a-f]{7} )", re.M),
)


class Block(NamedTuple):
    """One thing typed, printed or replied. `line` is its first line, 0-based."""

    line: int
    kind: Literal["typed", "printed", "reply"]
    text: str


class Session(NamedTuple):
    """The lines from one start of Aider to the next. `started` is local time; None for what stands before the first start."""

    first: int  # line number of `lines[0]`
    started: str | None
    lines: list[str]


def looks_like(data: bytes) -> bool:
    """A start of a session stands in the file, or both typed lines and Aider's own words do."""
    if data.startswith(b'{"'):  # most transcripts are JSON, and large
        return False
    if b"# aider chat started at " in data and _SIGNS[0].search(data):  # most files are none: the plain look is the fast one
        return True
    return b"\n#### " in data and b"\n> " in data and bool(_SIGNS[1].search(data)) and bool(_SIGNS[2].search(data))


def sessions(lines: list[str]) -> Iterator[Session]:
    """The sessions of a history in order."""
    starts = [(n, match[1]) for n, line in enumerate(lines) if line.startswith("# aider") and (match := _START.fullmatch(line))]
    first, began = 0, None
    for n, when in [*starts, (len(lines), None)]:
        if n > first:
            yield Session(first, began, lines[first:n])
        first, began = n, when


def blocks(session: Session) -> Iterator[Block]:
    """The blocks of a session, without terminal colours."""
    lines = _Lines([_ANSI.sub("", line) if "\x1b" in line else line for line in session.lines])
    at = 1 if session.started else 0
    while at < len(lines.all):
        end, kind = lines.block_end(at)
        text = "\n".join(lines.all[at:end])
        if kind == "typed":
            text = "\n".join(match[1] for line in lines.all[at:end] if (match := _TYPED.fullmatch(line)))
        elif kind == "printed":
            text = text[1:].strip()
        if text.strip() or kind == "printed":
            yield Block(session.first + at, kind, text.strip("\n"))
        at = end


class _Lines:
    """Lines with where things end, found out once: looking for each end anew would be quadratic in a long session."""

    def __init__(self, lines: list[str]) -> None:
        self.all = lines
        self.typed = [n for n, line in enumerate(lines) if line.startswith("####") and _TYPED.fullmatch(line)]
        self._is_typed = set(self.typed)
        printed = {n for n, line in enumerate(lines) if line.startswith(">") and _PRINTED.fullmatch(line)}
        self._is_printed = printed
        self._last_of_several = {n for n, line in enumerate(lines) if n not in printed and n not in self._is_typed and self._ends(n, line)}
        self._stops = sorted(printed | self._is_typed | self._last_of_several)
        self._no_fence = sorted([*self.typed, *(n for n in printed if _NOT_IN_A_FENCE.match(lines[n]))])
        self._fences: dict[str, list[int]] = {}
        for n, line in enumerate(lines):
            if line.startswith("```"):
                self._fences.setdefault(line.rstrip(), []).append(n)

    def _ends(self, n: int, line: str) -> bool:
        """The line may be the last of several that were printed at once."""
        if not line.endswith("  ") or not line.strip() or line.endswith("   "):
            return False
        following = self.all[n + 1] if n + 1 < len(self.all) else ""
        return not following or following.startswith((">", "#### "))

    def block_end(self, at: int) -> tuple[int, Literal["typed", "printed", "reply"]]:
        """(line after the block, kind) of the block that begins at a line."""
        if at in self._is_typed:
            end = at + 1
            while end in self._is_typed:
                end += 1
            return end, "typed"
        printed = self._printed_end(at)
        if printed:
            return printed, "printed"
        end = at
        while end < len(self.all):
            if end > at and (end in self._is_typed or self._printed_end(end)):
                break
            end = self._fence_end(end) or end + 1
        return end, "reply"

    def _printed_end(self, at: int) -> int | None:
        """The line after what was printed at a line; None if it is no mark of Aider's but a quotation in a reply."""
        if at in self._is_printed:
            return at + 1
        if not self.all[at].startswith("> "):
            return None
        stop = _first_after(self._stops, at)
        return stop + 1 if stop is not None and stop in self._last_of_several else None

    def _fence_end(self, at: int) -> int | None:
        """The line after a fenced part that begins at a line; None if none does or it has no end."""
        opened = _FENCE.fullmatch(self.all[at]) if self.all[at].startswith("```") else None
        end = _first_after(self._fences.get(opened[1], []), at) if opened else None
        stop = _first_after(self._no_fence, at)
        return None if end is None or (stop is not None and stop < end) else end + 1


def _first_after(numbers: list[int], at: int) -> int | None:
    """The first of sorted numbers that is larger."""
    place = bisect_right(numbers, at)
    return numbers[place] if place < len(numbers) else None
