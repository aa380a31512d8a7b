"""Rules about how a repository is tested, linted and built, and which tests cover what."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace

from osmia_memory.extract import commands
from osmia_memory.extract.commands import is_test_file
from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.common import cite_command, cite_result, is_product
from osmia_memory.extract.rules.preparing import switches
from osmia_memory.extract.shell import Simple
from osmia_memory.extract.view import Step, TestRun, View
from osmia_memory.models import Claim


def test_command(view: View) -> Iterator[Finding]:
    """The command that ran this repository's tests: for the whole suite if the run did that, else for a part."""
    done: set[str] = set()
    for run in sorted(view.test_runs, key=lambda r: (not r.is_whole, -r.at)):
        run = run._replace(main=_without_scratch(run.main))
        step, main, v = run
        key = _placed(view, step, commands.runner_key(main))
        if key in done or v.failed >= (v.ran or 0) or switches(main) or (not run.is_whole and _is_everybodys(view, step, main)):
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


_SCRATCH = re.compile(r"(?:\w*CACHE\w*|TMPDIR|TEMP|TMP|HOME|XDG_\w+)=[\"']?(?:(?:/private)?/(?:tmp|var)/|\$)")


def _without_scratch(main: Simple) -> Simple:
    """Without caches and homes that a run put below a temporary folder: its sandbox wanted them, not the tests."""
    return replace(main, env=tuple(e for e in main.env if not _SCRATCH.match(e)))


def _is_everybodys(view: View, step: Step, main: Simple) -> bool:
    """`go test PACKAGE` and `cargo test NAME` with nothing else: how a part of the tests is run in every repository of the language."""
    plain = not main.env and view.located(step, "x") == "x" and commands.typed(main, 0) in ("go test", "cargo test")
    return plain and main.program in ("go", "cargo")


def _placed(view: View, step: Step, key: str) -> str:
    """The runner's key from the root of the checkout: `cd tests && ./run.py` and `tests/run.py` are one."""
    folder = view.located(step, "").partition(" && ")[0].removeprefix("cd ").strip()
    return posixpath.normpath(posixpath.join(folder, key)) if folder and re.search(r"\.\w+$", key) else key


def _how_to_test(view: View, run: TestRun) -> str:
    step, main, v = run
    command, where, behind = view.located(step, view.relative(commands.typed(main, 1))), commands.targets(main), _behind(step)
    if run.is_whole:
        return f"`{command}` runs the whole test suite{behind}{_pace(v.seconds or step.duration_s)}."
    if not where:
        return f"`{command}` runs the tests{behind}."
    general = view.located(step, view.relative(commands.typed(main, 0))) + (" --" if " -- " in command else "")
    return f"Tests are run with `{general} {commands.slot(where[0])}`, for example `{command}`{behind}."


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


# In front of a pipe the exit code is another command's.
_FAILED = re.compile(r"^(?:\S+ ){0,2}(?:ERROR|Error|error|fatal|FAILED|panic)\b[: ]|\b(?:task|target) failed\b|: command not found", re.M)


def check_command(view: View) -> Iterator[Finding]:
    """The lint or build command that the run used to good effect."""
    done: set[tuple[str, str]] = set()
    for step in view.steps:
        main, v = step.main, step.verdict
        if (
            step.purpose not in ("lint", "build")
            or not step.worked
            or main is None
            or view.runs_own_code(step)
            or _formats_only(step)
            or is_product(view, main)
        ):
            continue
        own = v if v is not None and v.kind == step.purpose else None
        key = commands.runner_key(main)
        if (step.purpose, key) in done or (own is None and (main.program not in _TASKS or _FAILED.search(step.output))):
            continue
        done.add((step.purpose, key))
        clean = f"; a clean tree prints `{own.summary[:60]}`" if own and own.passed and own.kind == "lint" else ""
        by_task = main.program in _TASKS and not (own and main.program == "mise" and "--" in main.argv)
        what = ("is the lint check" if by_task else "lints here") if step.purpose == "lint" else "is the build step"
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
_LINKED = 0.5  # share of a target's telling words that the file's path has too


def tests_of_file(view: View) -> Iterator[Finding]:
    """Which tests a change of a source file was checked with: of those that passed, the ones closest to the file by name."""
    if view.transcript.run.outcome == "failure":
        return  # what was checked passed, and the change was wrong all the same
    submitted = [p for e in view.events("file_edit") if e.tool == "submission" for p in map(view.relative, e.paths)]
    changed = (
        [p for p in view.edited if p in submitted] if submitted else view.edited
    )  # a debug print that was taken out again is no change
    sources = [p for p in changed if not is_test_file(p) and re.search(r"\.\w+$", p) and not _DOCUMENT.search(p)]
    told = 0
    for path in sources:
        passing = [r for r in view.test_runs if _checks(view, r, path)]
        if not passing or told == _MAX_TOLD:
            continue
        best = max(passing, key=lambda r: (kinship(path, commands.targets(r.main)), r.at))
        of_go = best.verdict.tool == "go test"  # there a package of another name says nothing, one of the file's name does
        linked = kinship(path, commands.targets(best.main)) >= _LINKED and (
            not of_go or share_a_name(path, posixpath.basename(where_of(best).rstrip("/.")))
        )
        after = {commands.targets(r.main) for r in view.test_runs if not r.is_whole and path in view.edits_between(-1, r.at)}
        alone = len(sources) == 1 and len(after) == 1 and not any("/" in w for w in commands.targets(best.main))
        if _follows_from_its_name(path, commands.targets(best.main)) or not (linked or alone):
            continue
        told += 1
        command = view.located(best.step, view.relative(commands.typed(best.main, 2)))
        edit = next(e for e in view.edits if path in e.paths)
        yield Finding(
            f"A change of `{path}` was checked with `{command}`.",
            "success_pattern",
            Claim(path, "tests", "", " ".join(commands.targets(best.main))),
            (
                cite_command(view, best.step),
                cite_result(view, best.step, best.verdict.summary),
                view.cite(view.transcript.events[edit.at], path),
            ),
            anchors=(f"file:{path}",),
            tags=() if linked else ("corroborate",),
        )


_DOCUMENT = re.compile(r"\.(?:md|rst|txt|adoc|toml|ya?ml|json|cfg|ini|lock|sum|mod)$", re.I)


def where_of(run: TestRun) -> str:
    """The first target of a run of tests, "" for the whole suite."""
    return next(iter(commands.targets(run.main)), "")


def _checks(view: View, run: TestRun, path: str) -> bool:
    """The run of tests came after an edit of the file, passed, and was pointed at something that says more than the file's own folder."""
    where = commands.targets(run.main)
    if (
        not run.verdict.passed
        or run.is_whole
        or not 1 <= len(where) <= 2
        or commands.is_selective(run.main)
        or any("::" in w for w in where)
    ):
        return False
    if run.verdict.tool == "go test" and any(
        w.removeprefix("./").removesuffix("/...").rstrip("/") == posixpath.dirname(path) for w in where
    ):
        return False  # that Go's tests stand in the folder of the file is no news
    if re.search(r"installed in '[^']*(?:site-packages|\.egg)", run.step.output):
        return False  # the tests ran an installed copy, not the changed file
    edits = [e for e in view.edits if e.at < run.at and any(p in view.edited and not is_test_file(p) for p in e.paths)]
    return bool(edits) and path in edits[-1].paths  # a later edit of another file is what was checked


def _follows_from_its_name(path: str, where: tuple[str, ...]) -> bool:
    """`shop/cart.py` is tested by `test_cart.py`, and a file below `migrations/` by the label `migrations`: anybody would look there."""
    folders = path.split("/")[:-1]
    stem = posixpath.basename(path).partition(".")[0].strip("_")
    plain = {stem, *folders, "_".join((*folders[-1:], stem))} - {""}
    names = {posixpath.basename(w.rstrip("/")).partition(".py")[0].strip("_") for w in where}
    if names & {form.format(p) for p in plain for form in ("{}", "test_{}", "{}_test", "{}_spec", "test{}", "{}.tests", "{}s")}:
        return True
    of_path = {p.lower() for p in _PARTS.findall("/".join((*folders, stem)))}
    return any(all(any(_akin(w, p) for p in of_path) for w in words) for name in names if (words := _label_words(name)))


def _label_words(name: str) -> list[str]:
    """`model_fields` and `migrations.test_loader` are named after what they test; what else a label says is not for guessing."""
    return [p.lower() for p in _PARTS.findall(re.sub(r"(?:^|(?<=[._/]))test_|\.tests?$|_test$", "", name))]


_PARTS = re.compile(r"[A-Za-z][a-z0-9]+|[A-Z]+(?![a-z])")
_DULL = frozenset("test tests testing src lib pkg internal cmd main init core base py go js ts utils util".split())


def _words(text: str) -> set[str]:
    return {p.lower() for p in _PARTS.findall(re.sub(r"\.(?:py|go|[jt]sx?|rb|rs|java)$", "", text))} - _DULL


def _akin(a: str, b: str) -> bool:
    """One word in two forms: query and queries, aggregates and aggregation."""
    common = len(posixpath.commonprefix([a, b]))
    return a == b or common >= max(4, 0.7 * min(len(a), len(b)))


def _named(words: set[str], path: str) -> int:
    of_path = _words(path)
    return sum(any(_akin(w, p) for p in of_path) for w in words)


def kinship(path: str, where: tuple[str, ...]) -> float:
    """How much of what the targets name the file's path names too, in [0, 1]; 0 if the innermost name of a target is foreign to it."""
    shares = []
    for target in where:
        words = _words(posixpath.basename(target.rstrip("/.")))  # a path's own name, or a whole dotted label
        innermost = _words(re.sub(r"\.py$", "", target).rstrip("/.").rpartition(".")[2]) if "/" not in target else words
        shares.append(_named(words, path) / len(words) if words and (not innermost or _named(innermost, path)) else 0.0)
    return max(shares, default=0.0)


def share_a_name(path: str, target: str) -> bool:
    """A file and a test or another file have a telling word of the file's own name in common."""
    return bool(_named(_words(target), posixpath.basename(path)))


RULES = (
    Rule("test_command", 3, 0.8, 0.01, "the runner's own summary was seen", test_command),
    Rule("check_command", 3, 0.75, 0.01, "the tool's own summary was seen", check_command),
    Rule("tests_of_file", 3, 0.7, 0.01, "a passing run after the edit; the link by name may be partial", tests_of_file),
)
