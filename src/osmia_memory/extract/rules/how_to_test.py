"""Rules about how a repository is tested, linted and built, and which tests cover what."""

import posixpath
import re
from collections.abc import Iterator

from osmia_memory.extract import commands
from osmia_memory.extract.commands import is_test_file
from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.common import cite_command, cite_result
from osmia_memory.extract.view import Step, TestRun, View
from osmia_memory.models import Claim


def test_command(view: View) -> Iterator[Finding]:
    """The command that ran this repository's tests: for the whole suite if the run did that, else for a part."""
    done: set[str] = set()
    for run in sorted(view.test_runs, key=lambda r: (not r.is_whole, -r.at)):
        step, main, v = run
        key = commands.runner_key(main)
        if key in done or v.failed >= (v.ran or 0):
            continue
        done.add(key)
        yield Finding(
            _how_to_test(view, run),
            "repo_quirk",
            Claim("tests", "command", key, "whole suite" if run.is_whole else "a part"),
            (cite_command(view, step), cite_result(view, step, v.summary)),
            tags=("standing",),
            strength=0.05 if v.passed else 0.0,
        )


def _how_to_test(view: View, run: TestRun) -> str:
    step, main, v = run
    command, where, behind = view.relative(commands.typed(main, 1)), commands.targets(main), _behind(step)
    if run.is_whole:
        return f"`{command}` runs the whole test suite{behind}{_pace(v.seconds or step.duration_s)}."
    if not where:
        return f"`{command}` runs the tests{behind}."
    general = command.removesuffix(view.relative(where[0])).rstrip()
    return f"Tests are run with `{general} {_slot(where[0])}`, for example `{command}`{behind}."


def _slot(target: str) -> str:
    if target.startswith("./") and not re.search(r"\.\w+$", target):
        return "<package>"
    return "<path>" if "/" in target or target.endswith(".py") else "<label>"


def _pace(seconds: float | None) -> str:
    if not seconds or seconds < 20:
        return ""
    return f" and takes about {round(seconds / 10) * 10:.0f} s" if seconds < 90 else f" and takes about {round(seconds / 60):.0f} minutes"


_MISE = re.compile(r"^\[([\w:.-]+)\] \$ (.+)$", re.M)
_NPM = re.compile(r"^> (?!\S+@\S+ )(\S.*)$", re.M)


def _behind(step: Step) -> str:
    """` (it runs ...)` where a task runner printed the command behind the task."""
    match = _MISE.search(step.output)
    command = match[2] if match else None
    if command is None and step.main is not None and step.main.program in ("npm", "pnpm", "yarn") and (npm := _NPM.search(step.output)):
        command = npm[1]
    return f" (it runs `{command.strip()[:80]}`)" if command and not command.startswith(("/", "~")) else ""


_TASKS = frozenset(
    ["make", "mise", "npm", "pnpm", "yarn", "just", "task", "python", "python3"]
)  # their build step is the repository's own, `go build` is everybody's


def check_command(view: View) -> Iterator[Finding]:
    """The lint or build command that the run used to good effect."""
    done: set[tuple[str, str]] = set()
    for step in view.steps:
        main, v = step.main, step.verdict
        if step.purpose not in ("lint", "build") or not step.worked or main is None or view.runs_own_code(step) or _formats_only(step):
            continue
        own = v if v is not None and v.kind == step.purpose else None
        key = commands.runner_key(main)
        if (step.purpose, key) in done or (own is None and main.program not in _TASKS):
            continue
        done.add((step.purpose, key))
        clean = f"; a clean tree prints `{own.summary[:60]}`" if own and own.passed and own.kind == "lint" else ""
        what = "is the lint check" if step.purpose == "lint" else "is the build step"
        yield Finding(
            f"`{view.relative(commands.typed(main, 1))}` {what}{_behind(step)}{clean}.",
            "repo_quirk",
            Claim(step.purpose, "command", key, "works"),
            (cite_command(view, step), cite_result(view, step, own.summary if own else step.output.strip()[:80])),
            tags=("standing",),
        )


def _formats_only(step: Step) -> bool:
    words = step.main.argv if step.main else ()
    return (
        words[:1] in (("gofmt",), ("black",), ("isort",), ("prettier",), ("gofumpt",)) or words[:2] == ("go", "vet") or "fmt" in words[1:3]
    )


# --- which tests cover a file -------------------------------------------------------------------------------------------

_MAX_TOLD = 2  # of one run; the others were by-ways


def tests_of_file(view: View) -> Iterator[Finding]:
    """Which tests were run for a source file that was changed, when they passed in the end."""
    done: set[str] = set()
    for run in reversed(view.test_runs):
        step, main, v = run
        where = commands.targets(main)
        path = _covered(view, run, where)
        if len(done) == _MAX_TOLD or path is None or path in done or _follows_from_its_name(path, where):
            continue
        done.add(path)
        command = view.relative(commands.typed(main, 2))
        edit = next(e for e in view.edits if path in e.paths)
        count = f" ({v.ran} tests)" if v.tool != "go test" else ""
        linked = share_a_name(path, where[0])
        yield Finding(
            f"`{path}` {'is covered by' if linked else 'was checked with'} `{command}`{count}.",
            "success_pattern",
            Claim(path, "tests", "", " ".join(commands.targets(main))),
            (cite_command(view, step), cite_result(view, step, v.summary), view.cite(view.transcript.events[edit.at], path)),
            anchors=(f"file:{path}",),
            tags=() if linked else ("corroborate",),
        )


def _follows_from_its_name(path: str, where: tuple[str, ...]) -> bool:
    """`shop/cart.py` is tested by `.../test_cart.py`: anybody would look there."""
    stem = posixpath.basename(path).partition(".")[0].strip("_")
    names = {posixpath.basename(w.partition("::")[0]).partition(".")[0].strip("_") for w in where}
    return len(stem) > 0 and names <= {f"test_{stem}", f"{stem}_test", f"{stem}_spec", f"test{stem}"}


def _covered(view: View, run: TestRun, where: tuple[str, ...]) -> str | None:
    """The changed source file that these targets are about, None if that is unclear or they did not pass."""
    if not run.verdict.passed or run.is_whole or not 1 <= len(where) <= 2 or commands.is_selective(run.main):
        return None
    before = set(view.edits_between(-1, run.at))
    # that Go's tests stand in the folder of the file is no news
    own_folder = where[0].removeprefix("./").removesuffix("/...").rstrip("/") if run.verdict.tool == "go test" else None
    sources = [
        p for p in view.edited if p in before and not is_test_file(p) and re.search(r"\.\w+$", p) and posixpath.dirname(p) != own_folder
    ]
    linked = [p for p in sources if share_a_name(p, where[0])]
    return next(iter(linked or (sources if len(sources) == 1 else [])), None)


_PARTS = re.compile(r"[A-Za-z][a-z0-9]+|[A-Z]+(?![a-z])")
_DULL = frozenset(
    [
        "test",
        "tests",
        "testing",
        "src",
        "lib",
        "pkg",
        "internal",
        "cmd",
        "main",
        "init",
        "core",
        "base",
        "py",
        "go",
        "js",
        "ts",
        "utils",
        "util",
    ]
)


def share_a_name(path: str, target: str) -> bool:
    """A file and a test target have a telling word in common, or the target is the file's folder."""

    def parts(text: str) -> set[str]:
        return {p.lower().rstrip("s") for p in _PARTS.findall(re.sub(r"\.\w+$", "", text))} - _DULL

    stem = parts(posixpath.basename(path)) or parts(path)
    return bool(stem & parts(target)) or posixpath.dirname(path) == target.removeprefix("./").rstrip("/")


RULES = (
    Rule("test_command", 1, 0.8, 0.01, "the runner's own summary was seen", test_command),
    Rule("check_command", 1, 0.75, 0.01, "the tool's own summary was seen", check_command),
    Rule("tests_of_file", 1, 0.7, 0.01, "a passing run after the edit; the link by name may be partial", tests_of_file),
)
