"""Rules about conventions that the repository's own tools enforce: what a strict linter makes one write again."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.common import cite_command, cite_result, is_product, one_line
from osmia_memory.extract.view import View
from osmia_memory.models import Claim, Evidence

_AT = r"^(?:\[[\w:.-]+\] )?(?P<path>[\w@+~./-]+\.\w+):\d+(?::\d+)?: "  # a task runner may name its task in front
# Most telling first: a line is read by one of them only.
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("golangci-lint", re.compile(_AT + r"(?P<message>\S.*) \((?P<rule>[a-z][a-z0-9]+)\)$", re.M)),
    ("pylint", re.compile(_AT + r"[CRW]\d{4}: (?P<message>\S.*) \((?P<rule>[a-z][a-z0-9-]+)\)$", re.M)),
    ("flake8", re.compile(_AT + r"(?P<rule>[A-Z]{1,4}\d{3,4}) (?:\[\*\] )?(?P<message>\S.*)$", re.M)),
    ("mypy", re.compile(_AT + r"error: (?P<message>\S.*)  \[(?P<rule>[a-z-]+)\]$", re.M)),
    ("rubocop", re.compile(_AT + r"[CWR]: (?:\[Corr\w+\] )?(?P<rule>[A-Z]\w+/\w+): (?P<message>\S.*)$", re.M)),
)
# Everybody knows them, or they are mistakes that would not run either.
_OBVIOUS = re.compile(
    r"(?:typecheck|unused|ineffassign|gofmt|gofumpt|goimports|gci|whitespace|deadcode|varcheck|structcheck"
    r"|unused-(?:import|variable)|undefined-variable|missing-\w+-docstring|syntax-error"
    r"|F\d+|E9\d+|[WE]29\d|W391|W6\d\d|W0611|E0\d+|I\d+|D1\d\d|UP\d+"
    r"|attr-defined|name-defined|arg-type|assignment|return-value|import|import-untyped|import-not-found|call-arg|index|operator|union-attr|misc|syntax)$"
)
_MAX_TOLD = 3  # of one run; a first clean-up of a whole repository finds dozens


class _Complaint(NamedTuple):
    tool: str
    rule: str
    path: str
    message: str
    line: str


def lint_rule(view: View) -> Iterator[Finding]:
    """A rule of a strict linter that rejected code of the run: who writes to it from the start saves a round."""
    touched = {p for e in view.edits for p in e.paths}
    told: dict[tuple[str, str], tuple[_Complaint, tuple[Evidence | None, ...]]] = {}
    often: Counter[tuple[str, str]] = Counter()
    for complaint, evidence in _complaints(view):
        if complaint.path not in touched or posixpath.basename(complaint.path) in view.created_names and "/" not in complaint.path:
            continue  # found in what was there before, or in a script to try something
        key = (complaint.tool, complaint.rule)
        often[key] += 1
        told.setdefault(key, (complaint, evidence))
    for key in sorted(told, key=lambda k: (-often[k], k))[:_MAX_TOLD]:
        complaint, evidence = told[key]
        yield Finding(
            f"`{complaint.tool}` rejects new code here for `{complaint.rule}`: “{_folded(complaint.message)}”.",
            "repo_quirk",
            Claim(complaint.tool, "rejects new code", complaint.rule, "yes"),
            evidence,
            # for tasks that name the linter, and once two runs met it: told with every task, three of four times nobody wrote such code
            tags=("convention", "corroborate"),
        )


def _complaints(view: View) -> Iterator[tuple[_Complaint, tuple[Evidence | None, ...]]]:
    """What linters said in results of commands, and in what a person pasted."""
    for step in view.steps:
        main = step.main
        if (
            step.harness
            or main is None
            or is_product(view, main)
            or not (step.purpose == "lint" or re.search(r"lint|pre-commit", step.line))
        ):
            continue
        if step.purpose in ("search", "read", "git") or view.runs_own_code(step):
            continue
        for complaint in _read(view, step.output):
            yield complaint, (cite_result(view, step, complaint.line), cite_command(view, step))
    for event in view.events("user"):
        if "lint" in event.text:
            for complaint in _read(view, event.text):
                yield complaint, (view.cite(event, complaint.line),)


def _read(view: View, text: str) -> Iterator[_Complaint]:
    lines: set[int] = set()
    for tool, form in _FORMS:
        for match in form.finditer(text):
            if match.start() in lines or _OBVIOUS.match(match["rule"]):
                continue
            lines.add(match.start())
            path = view.relative(match["path"]).removeprefix("./")
            yield _Complaint(_tool(tool, match["rule"], text), match["rule"], path, match["message"], match[0].strip())


def _tool(form: str, rule: str, text: str) -> str:
    """Ruff writes as flake8 does."""
    return "ruff" if form == "flake8" and (re.search(r"\bruff\b", text) or re.match(r"RUF|[A-Z]{3,}\d", rule)) else form


def _folded(message: str) -> str:
    """The message without what it names of this code."""
    text = re.sub(r":? sig: .*$|, to (?:add|fix).*$", "", message)
    text = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"", "…", text)
    return one_line(re.sub(r"\b\d+ (?=occurrences)", "several ", text), 100)


RULES = (Rule("lint_rule", 1, 0.7, 0.01, "the linter said so of code that the run wrote; the configuration may change", lint_rule),)
