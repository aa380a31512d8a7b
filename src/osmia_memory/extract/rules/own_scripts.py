"""Rules about scripts that agents write to try things: what such a script needs here before it runs at all."""

import posixpath
import re
from collections.abc import Iterator

from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.common import cite_result, one_line
from osmia_memory.extract.shell import parse
from osmia_memory.extract.view import Step, View
from osmia_memory.models import Claim

_EXCEPTION = re.compile(r"^((?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|NotReady|Configured|DoesNotExist)): (.+)$", re.M)
_MISTAKES = frozenset(
    "TypeError AttributeError ValueError KeyError IndexError StopIteration ZeroDivisionError ImportError FileNotFoundError BrokenPipeError RecursionError SyntaxError IndentationError TabError NameError AssertionError UnboundLocalError KeyboardInterrupt ModuleNotFoundError".split()
)
_FRAME = re.compile(r'^  File "([^"]+)", line \d+', re.M)
_WORD = re.compile(r"[A-Za-z_][\w.]{3,}")
_PLAIN = frozenset(
    "error value object type attribute module name with from that this have does must been before after cannot using settings".split()
)


def script_setup(view: View) -> Iterator[Finding]:
    """A script of the run's own failed inside the repository's code for want of set-up, and ran once lines were added."""
    versions = _versions(view)
    told: set[str] = set()
    for step in view.steps:
        path = next((p for p in versions if re.search(rf"(?<![\w.-]){re.escape(posixpath.basename(p))}(?!\w)", step.line)), None)
        error = _setup_error(view, step) if path else None
        if path is None or error is None:
            continue
        name, message = error
        key = f"{name}: {fold_message(message)}"
        before = next((text for at, text in reversed(versions[path]) if at <= step.index), "")
        later = next(((at, text) for at, text in versions[path] if at > step.index), None)
        ran = next(
            (
                s
                for s in view.steps
                if later and s.index >= later[0] and posixpath.basename(path) in s.line and _setup_error(view, s) != error
            ),
            None,
        )
        if key in told or later is None or ran is None:
            continue
        made_up = frozenset(re.findall(r"\bclass (\w+)", before + later[1]))
        added = _telling_lines(before, later[1], message)
        if not added:
            continue
        told.add(key)
        cure = f"; adding {' and '.join(f'`{_without(line, made_up)}`' for line in added)} got past it"
        yield Finding(
            f"A stand-alone script against this code may fail with `{name}: {one_line(fold_message(message), 120)}`{cure}.",
            "failure_pattern",
            Claim("own script", "fails with", key, "set-up"),
            (cite_result(view, step, f"{name}: {message}"), *(view.cite(view.transcript.events[later[0]], line) for line in added)),
            tags=("corroborate",),
        )


def _versions(view: View) -> dict[str, list[tuple[int, str]]]:
    """Texts of the scripts this run wrote, by path: (event index, text) in order."""
    found: dict[str, list[tuple[int, str]]] = {}
    for event in view.transcript.events:
        if event.kind == "command" and "<<" in event.text:
            for c in parse(event.text):
                if c.heredoc and c.writes:
                    found.setdefault(view.relative(c.writes[0]), []).append((event.index, c.heredoc))
        elif event.kind == "file_edit" and event.args.get("created"):
            for path in event.paths:
                found.setdefault(view.relative(path), []).append((event.index, event.text))
    return {p: v for p, v in found.items() if p in view.created and re.search(r"\.(?:py|js|ts|rb|mjs)$", p)}


def _setup_error(view: View, step: Step) -> tuple[str, str] | None:
    """(exception, message) raised below the repository's or a library's code, and not what the task tells of."""
    if not step.failed:
        return None
    match = None
    for match in _EXCEPTION.finditer(step.output):  # noqa: B007  # the last one is what ended the script
        pass
    if match is None or match[1].rpartition(".")[2] in _MISTAKES:
        return None
    frames = _FRAME.findall(step.output[: match.start()])
    deepest = posixpath.basename(frames[-1]) if frames else ""
    described = match[1].rpartition(".")[2] in view.transcript.run.description and any(
        w in view.transcript.run.description for w in _WORD.findall(match[2]) if w.lower() not in _PLAIN
    )
    if not frames or deepest in view.created_names or described:
        return None
    return match[1], match[2].strip()


def fold_message(message: str) -> str:
    """The message without names and values that the script made up."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "'…'", message)
    text = re.sub(r"__main__\.?\w*|0x[0-9a-f]+|\b\d+\b", "…", text)
    text = re.sub(r"\b(?:Model class|no such table:|table|class) [\w.…]+", lambda m: m[0].rsplit(" ", 1)[0] + " …", text)
    text = re.sub(r"\b(settings?) [A-Z][A-Z_0-9]+", r"\1 …", text)
    return " ".join(text.split())[:120]


def _telling_lines(before: str, after: str, message: str) -> list[str]:
    """At most two added lines: those that share a word with the message, else the only call among few added lines."""
    old = {line.strip() for line in before.splitlines()}
    added = [line.strip() for line in after.splitlines() if line.strip() and line.strip() not in old]
    words = {w for part in _WORD.findall(message) for w in (part, *part.split(".")) if len(w) > 3 and w.lower() not in _PLAIN}
    shared = [line for line in added if len(line) <= 90 and any(w in line for w in words) and _SETS_UP.match(line)]
    if shared:
        return shared[:2]
    calls = [line for line in added if re.fullmatch(r"[\w.]+\([^()]*\)", line) and not line.startswith("print")]
    return [calls[0]] if len(calls) == 1 or (calls and len(added) <= 4) else []


# a call, or a setting given by name
_SETS_UP = re.compile(
    r"(?!print|import |from |class |def |except|assert|#|self\.)(?:[\w.]+\(.*\)|[A-Za-z_]+ ?= ?(?:\[?['\"]\S.*|True|False|\d+),?)$"
)


def _without(line: str, made_up: frozenset[str]) -> str:
    """The line with the names of the script's own classes left open."""
    return re.sub(r"\b\w+\b", lambda m: "…" if m[0] in made_up else m[0], line).replace("`", "'")


RULES = (Rule("script_setup", 1, 0.6, 0.01, "one script's way; more runs must meet the same error", script_setup),)
