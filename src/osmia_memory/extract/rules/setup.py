"""Rules about what fails in this environment and what works instead: tools, modules, options."""

import difflib
import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from osmia_memory.extract import commands
from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.common import cite_command, cite_result, one_line
from osmia_memory.extract.rules.trouble import every_trouble, is_of_the_repo, troubles
from osmia_memory.extract.shell import Simple, parse
from osmia_memory.extract.signs import Sign, signs
from osmia_memory.extract.view import Step, View, as_test_run
from osmia_memory.models import Claim

_NEAR = 12  # commands: a remedy that comes later than this is another story
_FIXABLE = ("missing command", "missing module", "setting", "permission", "bad option", "version", "service", "missing file", "tool error")


# --- the fix-up ---------------------------------------------------------------------------------------------------------


def fix_up(view: View) -> Iterator[Finding]:
    """A command that failed for a reason of the environment, and the changed command that then worked."""
    told: set[tuple[str, str]] = set()
    for n, step, sign in every_trouble(view):
        if sign.kind not in _FIXABLE or (view.runs_own_code(step) and sign.kind != "missing command"):
            continue
        failed = _culprit(step, sign)
        if failed is None:
            continue
        found = _remedy(view, n, failed, sign)
        key = (commands.runner_key(failed), sign.kind + sign.key)
        if found is None or key in told:
            continue
        told.add(key)
        later, works = found
        content = _told(view, failed, works, sign, step, later)
        if content is None:
            continue
        quote = cite_result(view, step, sign.line)
        yield Finding(
            content,
            "failure_pattern",
            Claim(key[0], "fix-up", f"{sign.kind} {sign.key}"[:80], _fix_value(failed, works)),
            (quote, cite_command(view, later), cite_command(view, step)),
            tags=("corroborate",) if sign.kind == "missing file" else (),
            strength=0.05 if as_test_run(later) else 0.0,
        )


def _culprit(step: Step, sign: Sign) -> Simple | None:
    """The simple command the sign speaks of."""
    parts = [c for c in parse(step.line) if commands.purpose(c) not in ("none",)]
    if sign.kind == "missing command":
        return next((c for c in parts if c.program == sign.key or c.argv[:1] == (sign.key,)), None)
    if sign.line.startswith("fatal: "):
        of_git = [c for c in parts if c.program == "git"]
        return of_git[0] if len({_subcommand(c) for c in of_git}) == 1 else None if of_git else step.main
    return step.main


def _subcommand(c: Simple) -> str:
    """`credential` of `git -c user.name=x credential fill`."""
    words = iter(c.argv[1:])
    for word in words:
        if word in ("-c", "-C"):
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def _remedy(view: View, n: int, failed: Simple, sign: Sign) -> tuple[Step, Simple] | None:
    """The first later step, near enough, that did the same with another command and without the sign."""
    start = view.steps[n]
    for later in view.steps[n + 1 : n + 1 + _NEAR]:
        if not (later.worked or as_test_run(later)):
            continue
        alike = [c for c in parse(later.line) if c.text != failed.text and _same_intent(failed, c, sign, later)]
        if not alike or any(s.kind == sign.kind and s.key == sign.key for s in signs(later.output)):
            continue  # the signs last: reading them takes longest
        edited = [p for p in view.edits_between(start.index, later.index) if p in view.edited]
        if not edited or sign.kind in ("missing command", "missing module", "shell"):
            return later, alike[0]
    return None


def _same_intent(failed: Simple, c: Simple, sign: Sign, later: Step) -> bool:
    kind = commands.purpose(failed)
    if commands.purpose(c) in ("none", "write") or c.program in ("which", "ls", "command", "type", "whereis"):
        return False
    if sign.kind == "missing command":
        if posixpath.basename(c.argv[0]) == failed.program:
            return bool(c.env) or "/" in c.argv[0] or later.exit_code == 0
        shared = set(failed.argv[1:]) & set(c.argv[1:])
        alike = kind == commands.purpose(c) and kind not in ("run", "other")  # any two commands are "other" than those known
        related = failed.program in c.argv or failed.program in c.program or alike
        return related and sum(len(w) for w in shared) >= 4
    if sign.kind == "missing module":
        if kind == "test":
            return c is later.main and as_test_run(later) is not None
        return failed.program != c.program and set(failed.argv[1:]) <= set(c.argv[1:])
    if sign.kind == "missing file":
        return kind == "test" and c is later.main and as_test_run(later) is not None and bool(_renamed(failed, c, sign))
    if c.program != failed.program:
        return False
    return difflib.SequenceMatcher(None, (*failed.env, *failed.argv), (*c.env, *c.argv), autojunk=False).ratio() >= 0.6


def _renamed(failed: Simple, works: Simple, sign: Sign) -> str | None:
    """The target of the working command that resembles the missing one."""
    return next(
        (
            t
            for t in commands.targets(works)
            if t not in failed.argv and difflib.SequenceMatcher(None, posixpath.basename(t), posixpath.basename(sign.key)).ratio() > 0.6
        ),
        None,
    )


_PYTEST_MARK = re.compile(r"^E\s+(?=\S)")  # in front of the lines of an error; says nothing by itself


def _told(view: View, failed: Simple, works: Simple, sign: Sign, step: Step, later: Step) -> str | None:
    error = _PYTEST_MARK.sub("", " ".join(view.relative(sign.line).split())).replace("`", "'")
    error = error if len(error) <= 110 else error[:110].rsplit(" ", 1)[0] + " …"
    if sign.kind == "missing file":
        return f"There is no `{view.relative(sign.key)}`; `{view.relative(commands.typed(works, 1))}` is what exists."
    if (
        sign.kind == "missing module"
        and any(sign.key.split(".")[0] in w for w in failed.argv[1:])
        and commands.purpose(failed) == "test"
        and "pytest" not in sign.key
    ):
        if not commands.targets(works) or not commands.targets(works)[0].startswith(sign.key.split(".")[0]):
            return None
        return f"There is no test label `{sign.key}`; `{view.relative(commands.typed(works, 1))}` is what exists."
    added_env = [e for e in works.env if e not in failed.env]
    added = [w for w in works.argv if w not in failed.argv]
    removed = [w for w in failed.argv if w not in works.argv]
    if sign.kind == "missing command" and "$" in works.argv[0]:
        return None
    if sign.kind == "missing command" and failed.program not in works.argv:
        return (
            f"`{failed.program}` is not found here ({error}); `{works.program}` did the same." if works.program != failed.program else None
        )
    name = commands.short(failed, 70) if sign.kind != "missing module" or commands.purpose(failed) != "test" else commands.typed(failed, 0)
    if added_env and not removed and len(added) <= 1:
        return f"`{view.relative(name)}` fails here ({error}); set `{' '.join(added_env)}`."
    if added and not removed and sign.kind != "missing command" and len(" ".join(added)) < 80:
        return f"`{view.relative(name)}` fails here ({error}); with `{' '.join(_with_its_option(works, added))}` added it works."
    if sign.kind in ("tool error", "bad option", "service"):
        return None  # another command altogether is no remedy for these
    working = commands.short(works, 90)
    if later.purpose == "test":
        where = commands.targets(works)
        working = (
            commands.typed(works, 0) + f" {commands.slot(where[0])}"
            if where and where[0] not in ("./...", ".", "tests", "tests/")
            else commands.typed(works, 1)
        )
    if view.relative(working) == view.relative(name):
        return None
    return f"`{view.relative(name)}` fails here ({error}); `{view.relative(working)}` works."


def _with_its_option(works: Simple, added: list[str]) -> list[str]:
    """`-c x=` where the option in front of what was added stands elsewhere in the command as well."""
    before = works.argv[works.argv.index(added[0]) - 1] if added[0] in works.argv else ""
    return [before, *added] if re.fullmatch(r"--?\w+", before) and not added[0].startswith("-") else added


def _fix_value(failed: Simple, works: Simple) -> str:
    added = [w for w in (*works.env, *works.argv) if w not in (*failed.env, *failed.argv)]
    return commands.runner_key(works) if commands.runner_key(works) != commands.runner_key(failed) else " ".join(added)[:80]


def told_what_to_add(view: View) -> Iterator[Finding]:
    """A command of the repository's own that refused, named what it wants, and worked once that was added."""
    told: set[str] = set()
    for n, step in enumerate(view.steps):
        if not step.exit_code or step.harness or view.runs_own_code(step) or (step.verdict and step.verdict.failing):
            continue
        found = next((f for later in view.steps[n + 1 : n + 1 + _NEAR] if later.worked and (f := _added(view, step, later))), None)
        if found is None or found.key in told:
            continue
        told.add(found.key)
        yield Finding(
            f"`{view.relative(commands.short(found.refused, 80))}` is refused here ({one_line(view.relative(found.line))}); with `{' '.join(found.wanted)}` it works.",
            "repo_quirk",
            Claim(found.key, "wants", found.wanted[0].partition("=")[0], "yes"),
            (cite_result(view, step, found.line), cite_command(view, found.later)),
        )


class _Addition(NamedTuple):
    refused: Simple
    later: Step
    key: str
    wanted: list[str]
    line: str  # of the refusal, naming what is wanted


def _added(view: View, step: Step, later: Step) -> _Addition | None:
    """What `later` added to a command of `step` that the refusal had named, if little else differs."""
    if view.edits_between(step.index, later.index):
        return None
    found: list[tuple[int, int, _Addition]] = []
    for n, refused in enumerate(parse(step.line)):
        for works in parse(later.line):
            if (
                works.program != refused.program
                or works.text == refused.text
                or commands.purpose(refused) not in ("run", "other", "build", "test")
            ):
                continue
            more = [w for w in (*works.env, *works.argv) if w not in (*refused.env, *refused.argv)]
            wanted = [w for w in more if re.match(r"--?\w|[A-Z_]+=", w) and w.partition("=")[0] in step.output]
            line = next((x.strip() for x in step.output.splitlines() if wanted and wanted[0].partition("=")[0] in x), "")
            left_out = len([w for w in refused.argv if w not in works.argv])
            if line and left_out <= (commands.runner_key(refused) == commands.runner_key(works)):
                found.append((left_out, -n, _Addition(refused, later, commands.runner_key(works), wanted, line)))
    return min(found, key=lambda f: f[:2])[2] if found else None  # of a chain, the command that was kept as it was, and the last such


# --- what is missing ----------------------------------------------------------------------------------------------------


def missing(view: View) -> Iterator[Finding]:
    """A tool or a third-party module that is not there, where the run found no way around it."""
    told: set[str] = set()
    present = {w for s in view.steps if s.worked for c in parse(s.line) for w in (c.program, *c.argv[1:4])}
    for n, step, sign in troubles(view):
        if not sign.key or sign.key in told:
            continue
        if sign.kind == "missing command" and sign.key not in present and re.fullmatch(r"[a-z][\w.+-]{1,30}", sign.key):
            culprit = _culprit(step, sign)
            in_front = culprit is None and re.search(
                rf"(?<![\w./-]){re.escape(sign.key)} ", step.line
            )  # `timeout 5 ...` is no command of its own
            if f"`{sign.key}" in step.line:  # a word of a message that the shell took for a command
                continue
            if not (culprit or in_front) or (culprit and _remedy(view, n, culprit, sign)) or "No version is set" in sign.line:
                continue
            told.add(sign.key)
            yield Finding(
                f"`{sign.key}` is not installed here (command not found).",
                "repo_quirk",
                Claim(sign.key, "installed", "command", "no"),
                (cite_result(view, step, sign.line), cite_command(view, step)),
                tags=("corroborate",),
            )
        elif sign.kind == "missing module" and step.failed and sign.key[:1] != "_" and not is_of_the_repo(view, sign.key):
            top = sign.key.split(".")[0] if not sign.key.startswith("@") else sign.key
            if top in told or any(
                other is not step and other.worked and re.search(rf"\bimport {re.escape(top)}\b|-m {re.escape(top)}\b", other.line)
                for other in view.steps
            ):
                continue
            culprit = _culprit(step, sign)
            if culprit is not None and _remedy(view, n, culprit, sign):
                continue
            told.add(top)
            via = _importing_file(view, step)
            where = f"; `{via}` needs it" if via else ""
            yield Finding(
                f"Module `{top}` is not installed in this environment (No module named '{sign.key}'){where}.",
                "repo_quirk",
                Claim(top, "installed", "module", "no"),
                (cite_result(view, step, sign.line), cite_command(view, step)),
                anchors=(f"file:{via}",) if via else (),
                tags=() if via else ("corroborate",),
            )


_FRAME = re.compile(r'^  File "([^"]+)", line \d+', re.M)


def _importing_file(view: View, step: Step) -> str | None:
    """The last file of the repository in the traceback, where it is not the run's own."""
    for path in reversed(_FRAME.findall(step.output)):
        relative = view.relative(path)
        if (
            not relative.startswith(("/", "<", "~"))
            and "site-packages" not in relative
            and posixpath.basename(relative) not in view.created_names
        ):
            return relative
    return None


RULES = (
    Rule("fix_up", 4, 0.75, 0.01, "both the failure and the working command were seen", fix_up),
    Rule("told_what_to_add", 2, 0.8, 0.01, "the command said so, and the addition worked", told_what_to_add),
    Rule("missing", 3, 0.7, 0.01, "seen once; somebody may install it", missing),
)
