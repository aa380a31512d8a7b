"""What a run wrote and took back again: reverted, overwritten, deleted. Pure."""

import functools
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from osmia_memory.extract import commands, naming, shell
from osmia_memory.extract.said import FOREIGN_KINDS, SPEECH, Said, added_lines, has_word, line_around, removed_lines
from osmia_memory.models import Event, Evidence

_SUBSTITUTION = re.compile(r"(?<!\w)s([/|#,@])(.+?)(?<!\\)\1(.*?)(?<!\\)\1")
_TELLING_LINE = re.compile(r"\w.*\w.*\w")


class Change(NamedTuple):
    """One edit of one file by the lines it brought in; `gone_at` says at which event the last of a line's text went, None while it stands."""

    at: int
    path: str
    lines: tuple[str, ...]
    gone_at: dict[str, int]


class Restore(NamedTuple):
    """A command that put files back: those named, or all (None)."""

    at: int
    paths: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Past:
    """What happened to each edit of a run in the end."""

    said: Said

    @functools.cached_property
    def changes(self) -> tuple[Change, ...]:
        """All edits in order, with what became of their lines."""
        made = [(e, path) for e in self._edit_events for path in self._paths(e)]
        found: list[Change] = []
        for n, (event, path) in enumerate(made):
            lines = tuple(line for line in _brought_in(event) if _TELLING_LINE.search(line))
            later = [e for e, p in made[n + 1 :] if p == path]
            found.append(Change(event.index, path, lines, self._fate(event.index, path, lines, later)))
        return tuple(found)

    @functools.cached_property
    def _edit_events(self) -> tuple[Event, ...]:
        events = self.said.transcript.events
        at = dict.fromkeys(e.at for e in self.said.view.edits)
        return tuple(events[i] for i in at)

    def _paths(self, event: Event) -> tuple[str, ...]:
        return tuple(dict.fromkeys(p for e in self.said.view.edits if e.at == event.index for p in e.paths))

    def _fate(self, at: int, path: str, lines: Sequence[str], later: Sequence[Event]) -> dict[str, int]:
        gone: dict[str, int] = {}
        steps: list[Event | Restore] = [*later, *(r for r in self.restores if r.at > at and _covers(r, path))]
        for step in sorted(steps, key=lambda s: s.at if isinstance(s, Restore) else s.index):
            if isinstance(step, Restore):
                gone |= {line: step.at for line in lines if line not in gone}
                continue
            out, back = set(removed_lines(step)), set(_brought_in(step))
            gone |= {line: step.index for line in lines if line in out and line not in gone}
            gone = {line: when for line, when in gone.items() if line not in back}
        return gone

    @functools.cached_property
    def restores(self) -> tuple[Restore, ...]:
        """Commands that put files back, in order; a stash that was taken out again is none."""
        found: list[Restore] = []
        calls = [(s, c) for s in self.said.view.steps for c in shell.parse(s.line)]
        for n, (step, c) in enumerate(calls):
            if c.program == "rm":
                found.append(Restore(step.index, tuple(self._relative(w) for w in c.argv[1:] if not w.startswith("-"))))
            elif c.program == "git" and (paths := put_back(c.argv)) is not None:
                if c.argv[1] == "stash" and any(_takes_out(later) for _, later in calls[n + 1 :]):
                    continue
                found.append(Restore(step.index, tuple(self._relative(p) for p in paths) or None))
        return tuple(found)

    @functools.cached_property
    def put_aside(self) -> tuple[tuple[int, int], ...]:
        """(from, to) event indices between which all edits were stashed or reset."""
        calls = [(s, c) for s in self.said.view.steps for c in shell.parse(s.line) if c.program == "git"]
        found: list[tuple[int, int]] = []
        last = len(self.said.transcript.events)
        for n, (step, c) in enumerate(calls):
            if put_back(c.argv) == ():
                edits = [e.at for e in self.said.view.edits if e.at > step.index]
                back = [s.index for s, later in calls[n + 1 :] if _takes_out(later)]
                found.append((step.index, min([*back, *edits, last])))
        return tuple(found)

    def _relative(self, path: str) -> str:
        return self.said.view.relative(path).removeprefix("./").rstrip("/") or "."

    def quoted_gone(self, evidence: Evidence) -> int | None:
        """The event at which the quoted lines of an edit were taken back; None if one of them stands, or it is no edit."""
        event = self.said.event(evidence)
        mine = [c for c in self.changes if c.at == event.index]
        if not mine:
            return None
        quoted = [line.lstrip("+- ").strip() for line in line_around(event.text, evidence.span).splitlines()]
        touched = [(c, line) for c in mine for line in c.lines if any(line in q or q in line for q in quoted if q)]
        touched = touched or [(c, line) for c in mine for line in c.lines]
        if not touched or any(line not in c.gone_at for c, line in touched):
            return None
        return max(c.gone_at[line] for c, line in touched)

    @functools.cached_property
    def left(self) -> tuple[Change, ...]:
        """Changes of which nothing, or next to nothing, is left."""
        return tuple(c for c in self.changes if c.lines and len(c.gone_at) * 10 >= len(c.lines) * 6)

    @functools.cached_property
    def removed_files(self) -> frozenset[str]:
        """Files that this run made and deleted again."""
        made = {c.path: c.at for c in self.changes if c.path in self.said.view.created}
        return frozenset(p for p, at in made.items() for r in self.restores if r.at > at and r.paths and _covers(r, p))

    def rests_on_what_left(self, content: str, shown: str) -> bool:
        """It names something that only edits brought in which were taken back, or a file that was deleted again.

        `shown` is the text of its quotes from results: what a tool itself names is no matter of the edit.
        """
        for name in naming.names(content):
            word = name.removesuffix("()")
            if any(word in (path, posixpath.basename(path)) for path in self.removed_files):
                return True
            if word not in shown and (windows := self._windows(word)) and not self._stands_outside(word, windows):
                return True
        return False

    def _windows(self, word: str) -> list[tuple[int, int]]:
        """From when to when lines with the word stood that were taken back."""
        return [(c.at, at) for c in self.changes for line, at in c.gone_at.items() if word in line]

    def _stands_outside(self, word: str, windows: list[tuple[int, int]]) -> bool:
        run = self.said.transcript.run
        if word in run.title or word in run.description:
            return True
        gone = {line for c in self.changes for line in c.gone_at}
        for event in self.said.transcript.events:
            if event.kind in SPEECH or event.kind in FOREIGN_KINDS:
                continue
            if event.kind == "file_edit":
                if any(word in line and line not in gone for line in added_lines(event)) or any(word in p for p in event.paths):
                    return True
            elif word in event.text and not any(a <= event.index <= b for a, b in windows):
                return True
        return False

    def quoted_replaced(self, evidence: Evidence, content: str) -> bool:
        """The quoted line of a file was changed later, and the content names what went with that."""
        line = line_around(self.said.event(evidence).text, evidence.span)
        names = naming.names(content)
        for out, brought in self._replaced_after(evidence.event_index):
            touched = "\n".join(o for o in out if len(o) > 3 and (o in line or evidence.quote.strip() in o))
            if touched and any(has_word(touched, name) and not has_word(brought, name) for name in names):
                return True
        return False

    def quoted_stale(self, evidence: Evidence) -> bool:
        """All lines quoted of a file were changed later, or are those that the quoted edit took out."""
        event = self.said.event(evidence)
        quote = " ".join(evidence.quote.split())
        if event.kind == "file_edit":
            return any(quote in line or line in quote for line in removed_lines(event) if _TELLING_LINE.search(line))
        for out, brought in self._replaced_after(evidence.event_index):
            touched = [o for o in out if _TELLING_LINE.search(o) and (quote in " ".join(o.split()) or " ".join(o.split()) in quote)]
            if touched and quote not in " ".join(brought.split()):
                return True
        return False

    def _replaced_after(self, at: int) -> Iterator[tuple[tuple[str, ...], str]]:
        """(what went, what came instead) of each later change that still stands."""
        for change in self.changes:
            event = self.said.transcript.events[change.at]
            if change.at > at and event.kind == "file_edit" and not (change.lines and len(change.gone_at) == len(change.lines)):
                yield removed_lines(event), "\n".join(change.lines)
        for step in self.said.view.steps:
            if step.index > at and re.search(r"\bsed\b.*\s-\w*i", step.line):
                for match in _SUBSTITUTION.finditer(step.line):
                    yield (_literal(match[2]),), _literal(match[3])


def _literal(pattern: str) -> str:
    return re.sub(r"\\(\W)", r"\1", re.sub(r"\\[bB<>]", "", pattern)).strip("^$ ")


def _brought_in(event: Event) -> tuple[str, ...]:
    if event.kind == "file_edit":
        return added_lines(event)
    found: list[str] = []
    for c in shell.parse(event.text):
        found += [line.strip() for line in c.heredoc.splitlines()] if c.writes else []
        if c.program == "sed" and commands.purpose(c) == "write":
            found += [m[3].strip() for w in c.argv[1:] for m in _SUBSTITUTION.finditer(w)]
    return tuple(line for line in found if line)


def put_back(argv: tuple[str, ...]) -> tuple[str, ...] | None:
    """The paths that a git command puts back, () for all; None if it does nothing of the kind."""
    verb, rest = (argv[1] if len(argv) > 1 else ""), argv[2:]
    words = tuple(w for w in rest if not w.startswith("-"))
    if verb == "checkout" and not {"-b", "-B", "--orphan"} & set(rest):
        return tuple(w for w in words if w != "HEAD") if words else None
    if verb == "restore" and ("--staged" not in rest or "--worktree" in rest):
        return words or None
    if verb == "reset" and "--hard" in rest:
        return ()
    if verb == "stash" and (not words or words[0] in ("push", "save")):
        return ()
    if verb == "apply" and {"-R", "--reverse"} & set(rest):
        return ()
    return None


def _takes_out(simple: shell.Simple) -> bool:
    return simple.program == "git" and simple.argv[1:2] == ("stash",) and simple.argv[2:3] in (("pop",), ("apply",))


def _covers(restore: Restore, path: str) -> bool:
    return restore.paths is None or any(p in (".", path) or path.startswith(p + "/") for p in restore.paths)
