"""Whether the checkout is as it was before the run, as far as the commands tell. Pure; knows nothing about tests."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from osmia_memory.extract.commands import main_command, written_files
from osmia_memory.extract.shell import Simple, parse
from osmia_memory.extract.view import Edit, Step, View


class _Change(NamedTuple):
    """One change of one file. `undoes` recognises the change it takes back, None if it takes back none."""

    path: str
    what: tuple[str, ...]
    undoes: tuple[str, ...] | None = None


def is_unmodified(view: View, step: Step) -> bool:
    """No file of the repository differs from the checkout when this step's own command runs.

    A change counts until it is taken back: by git, by a stash, by the backup it was copied from, or by a `sed` that swaps or deletes what an
    earlier one brought in. Files that the run made itself do not count.
    """
    dirty: dict[str, list[tuple[str, ...]]] = {}
    stashed: list[dict[str, list[tuple[str, ...]]]] = []
    by_call = _steps_of_interest(view, step)
    for edit in _edits(view, step):
        for other in [s for s in by_call if s.index <= edit.at]:
            by_call.remove(other)
            dirty = _after_git(view, other, _parts(other, step), dirty, stashed)
        for change in _changes(view, edit):
            _apply(view, change, dirty)
    for other in by_call:
        dirty = _after_git(view, other, _parts(other, step), dirty, stashed)
    return not any(dirty.values())


def _edits(view: View, step: Step) -> list[Edit]:
    """Edits before the step's own command, in order; those in its own line count, whichever side of the command they stand on."""
    return sorted((e for e in (*view.edits, *view.scripted) if e.at <= step.index), key=lambda e: e.at)


def _steps_of_interest(view: View, step: Step) -> list[Step]:
    return [s for s in view.steps if s.index <= step.index and re.search(r"\bgit\b.*\b(?:stash|checkout|restore|reset)\b", s.line)]


def _parts(other: Step, step: Step) -> list[Simple]:
    """The commands of a line; of the step itself, only those in front of its own command."""
    parts = list(parse(other.line))
    main = main_command(other.line)
    return parts[: parts.index(main)] if other is step and main in parts else parts


def _after_git(
    view: View,
    other: Step,
    parts: list[Simple],
    dirty: dict[str, list[tuple[str, ...]]],
    stashed: list[dict[str, list[tuple[str, ...]]]],
) -> dict[str, list[tuple[str, ...]]]:
    """What differs after the git commands of a line."""
    for c in parts:
        words = [w for w in c.argv[1:] if not w.startswith("-")]
        if c.program != "git" or not words or other.harness:
            continue
        paths = [view.relative(w) for w in words[1:] if re.search(r"[./]", w)]
        if words[0] == "stash" and words[1:2] in ([], ["push"], ["save"]):
            stashed.append(dirty)
            dirty = {}
        elif words[0] == "stash" and words[1:2] in (["pop"], ["apply"]):
            dirty = {**(stashed.pop() if stashed else {"(stashed)": [("?",)]}), **dirty}
        elif words[0] in ("checkout", "restore") and paths and not {"-b", "--staged"} & set(c.argv):
            everything = any(p in (".", ":/") for p in paths)
            dirty = {} if everything else {p: d for p, d in dirty.items() if not _is_in(p, paths)}
        elif words[0] == "reset" and "--hard" in c.argv:
            dirty = {}
    return dirty


def _is_in(path: str, places: list[str]) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def _apply(view: View, change: _Change, dirty: dict[str, list[tuple[str, ...]]]) -> None:
    if change.path in view.created or change.path.startswith(("/", "~")):
        return
    held = dirty.setdefault(change.path, [])
    if change.what[0] == "restored":
        dirty[change.path] = []
    elif change.undoes in held:
        held.remove(change.undoes)
    else:
        held.append(change.what)


def _changes(view: View, edit: Edit) -> Iterator[_Change]:
    """The changes that one edit made, those by `sed` and by backups in a form that can be recognised as taken back."""
    event = view.transcript.events[edit.at]
    told: set[str] = set()
    for c in parse(event.text) if event.kind == "command" else ():
        for change in (*_by_sed(view, c), *_by_backup(view, c)):
            told.add(change.path)
            yield change
    for path in edit.paths:
        if path not in told:
            yield _Change(path, ("?", str(edit.at)))


_INSERTION = re.compile(r"(?:/(?:[^/\\]|\\.)*/|\d+|\$)?[ai]\\?\s*(\S.*)$", re.S)
_DELETION = re.compile(r"/((?:[^/\\]|\\.)+)/d$")


def _by_sed(view: View, c: Simple) -> Iterator[_Change]:
    """`s/a/b/` is undone by `s/b/a/`, an inserted line by `/line/d`."""
    if c.program != "sed" or not any(re.match(r"-\w*i|--in-place", w) for w in c.argv[1:]):
        return
    words = [w for w in c.argv[1:] if not w.startswith("-")]
    script = words[0] if words else ""
    for path in {view.relative(p).removeprefix("./") for p in written_files(c.text)} & {
        view.relative(w).removeprefix("./") for w in words[1:]
    }:
        swap = re.split(rf"(?<!\\){re.escape(script[1])}", script) if re.match(r"s[/|#,]", script) else []
        inserted, deleted = _INSERTION.fullmatch(script), _DELETION.fullmatch(script)
        if len(swap) >= 3:
            yield _Change(path, ("swap", swap[1], swap[2]), ("swap", swap[2], swap[1]))
        elif deleted:
            yield _Change(path, ("deleted", deleted[1]), ("inserted", deleted[1]))
        elif inserted:
            yield _Change(path, ("inserted", inserted[1].strip()))
        else:
            yield _Change(path, ("?", script))


def _by_backup(view: View, c: Simple) -> Iterator[_Change]:
    """A copy back from `cart.py.bak`: a backup is taken before the first change, or from a changed file that was put back by git since."""
    words = [view.relative(w).removeprefix("./") for w in c.argv[1:] if not w.startswith("-")]
    if c.program in ("cp", "mv") and len(words) == 2 and re.fullmatch(rf"(?:.*/)?{re.escape(words[1])}(?:\.\w+|~)", words[0]):
        yield _Change(words[1], ("restored",) if _was_clean(view, words[0], words[1]) else ("?", words[0]))


def _was_clean(view: View, backup: str, path: str) -> bool:
    """The backup was made before the run changed the file."""
    made = next((e.at for e in view.edits if backup in e.paths), None)
    return made is not None and not any(path in e.paths for e in (*view.edits, *view.scripted) if e.at < made)
