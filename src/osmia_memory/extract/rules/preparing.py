"""Rules about what has to be in place before a command works here: a package, a setting, a step of preparation, a switch, an encoding."""

import re
from collections.abc import Iterator

from osmia_memory.extract import commands
from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.common import cite_command, cite_result, one_line
from osmia_memory.extract.rules.trouble import troubles
from osmia_memory.extract.shell import Simple, parse
from osmia_memory.extract.view import Step, View, as_test_run
from osmia_memory.models import Claim

_NEAR = 8  # commands from the failure to the preparation, and from there to the run that works


# --- a step of preparation ----------------------------------------------------------------------------------------------


def prepared(view: View) -> Iterator[Finding]:
    """A command that failed until something was installed, set or built, and then worked as it stands, with no edit in between."""
    told: set[str] = set()
    for n, failed, reason in _for_want_of_something(view):
        for at, step in enumerate(view.steps[n + 1 : n + 1 + _NEAR], n + 1):
            means = next((c for c in parse(step.line) if _prepares(c)), None) if step.exit_code == 0 else None
            if means is None or failed.main is None:
                continue
            later = next((s for s in view.steps[at + 1 : at + 1 + _NEAR] if _is_cured(view, failed, s, reason)), None)
            key = f"{commands.runner_key(failed.main)} {_what(means)}"
            if later is None or key in told:
                continue
            told.add(key)
            command = view.relative(commands.typed(failed.main, 1) if failed.purpose == "test" else commands.short(failed.main, 80))
            because = "many tests fail" if failed.verdict and reason == failed.verdict.summary else one_line(view.relative(reason))
            yield Finding(
                f"`{command}` fails here ({because}) until `{view.relative(commands.short(means, 80))}` is run.",
                "failure_pattern",
                Claim(commands.runner_key(failed.main), "needs first", _what(means), "yes"),
                (cite_result(view, failed, reason), cite_command(view, step), cite_command(view, later)),
            )
            break


_MANY = 5  # failing tests: what is wanting may be cut from a long output
_FIXTURE = re.compile(r"^E +((?:recursive dependency involving )?fixture '\w+' (?:not found|detected))$", re.M)
_CURABLE = ("missing command", "missing module", "setting", "permission", "service", "version", "login", "tool error", "missing file")


def _for_want_of_something(view: View) -> Iterator[tuple[int, Step, str]]:
    """Failed steps, with their position and the line that says what is wanting."""
    signed = {n: sign for n, _, sign in troubles(view)}
    for n, step in enumerate(view.steps):
        if view.runs_own_code(step) or step.main is None or step.harness:
            continue
        wanted = _FIXTURE.search(step.output) if step.verdict is not None and not step.verdict.passed else None
        if wanted:
            yield n, step, wanted[1]
        elif (run := as_test_run(step)) and run.verdict.failed >= _MANY:
            yield n, step, run.verdict.summary
        elif n in signed and signed[n].kind in _CURABLE and step.purpose not in ("search", "read", "git", "install"):
            yield n, step, signed[n].line


_SETS_UP = re.compile(
    r"(?:git config (?!.*(?:--get|--list|-l\b))\S+|mise (?:trust|install|use)|asdf install|(?:npm|pnpm|yarn) (?:ci|install)\b|(?:make|just|task) (?:deps|setup|install|bootstrap|init|generate|proto|build)\b"
    r"|docker(?:-compose| compose) (?:up|start)|docker start|(?:service|systemctl|brew services) (?:\S+ )?start\b|corepack enable|go (?:generate|mod download)"
    r"|pre-commit install|python[\d.]* setup\.py (?:build_ext|develop)|poetry install|uv sync|bundle install|cargo fetch|direnv allow|locale-gen)"
)


def _prepares(c: Simple) -> bool:
    """It changes the environment, not the code; that `go get` follows an import is no news."""
    if c.program in ("pip", "pip3", "apt", "apt-get", "brew", "conda", "gem") or c.argv[1:3] == ("-m", "pip"):
        return "install" in c.argv and not {"-e", "."} & set(c.argv)
    return bool(_SETS_UP.match(" ".join(c.argv)))


def _what(means: Simple) -> str:
    """What was installed or set, without versions and verbosity."""
    words = [re.sub(r"[=<>~!].*$", "", w) for w in means.argv if not w.startswith("-")]
    return " ".join(words)[:80]


def _is_cured(view: View, failed: Step, later: Step, reason: str) -> bool:
    """The same command, or the same tests, without that complaint and with nothing edited since."""
    if later.main is None or failed.main is None or reason in later.output or later.harness:
        return False
    if view.edits_between(failed.index, later.index) and any(p in view.edited for p in view.edits_between(failed.index, later.index)):
        return False
    same_tests = commands.runner(later.main) == commands.runner(failed.main) and commands.targets(later.main) == commands.targets(
        failed.main
    )
    if later.main.text != failed.main.text and not same_tests:
        return False
    run, before = as_test_run(later), failed.verdict
    return later.worked or (run is not None and (before is None or before.broken_build or 5 * run.verdict.failed <= before.failed))


# --- a switch -----------------------------------------------------------------------------------------------------------

_SWITCH = re.compile(
    r"(?:RUN|ENABLE)_\w+=(?:1|true|yes|on)$|(?:\w+_)?(?:E2E|INTEGRATION|LIVE|SLOW|DOCKER|SMOKE|NETWORK|STRESS|EXPENSIVE)(?:_\w+)?=(?:1|true|yes|on)$"
)


def switches(main: Simple) -> tuple[str, ...]:
    """Assignments in front of a command that let tests run which are left out otherwise: `SHOP_E2E=1`."""
    return tuple(e for e in main.env if _SWITCH.match(e))


def switched_tests(view: View) -> Iterator[Finding]:
    """Tests that run only with a variable set; a plain green run says nothing of them."""
    told: set[str] = set()
    for run in view.test_runs:
        for switch in switches(run.main):
            name = switch.partition("=")[0]
            if name in told or not run.verdict.passed:
                continue
            told.add(name)
            where = commands.targets(run.main)
            place = f" in `{view.relative(where[0])}`" if where and where[0] != "./..." else ""
            command = " ".join((switch, commands.typed(Simple(run.main.argv), 1)))
            yield Finding(
                f"Some tests{place} are left out unless `{name}` is set: `{view.relative(command)}` ran them.",
                "repo_quirk",
                Claim("tests", "switch", name, "set"),
                (cite_command(view, run.step), cite_result(view, run.step, run.verdict.summary)),
                anchors=(f"file:{view.relative(where[0]).strip('./')}",) if place else (),
                tags=("switch",),
            )


# --- an encoding --------------------------------------------------------------------------------------------------------

_ASCII = re.compile(r"^.*\bUnicode(?:En|De)codeError: 'ascii' codec can't (?:en|de)code.*$", re.M)
_AS_UTF8 = re.compile(r"\b(PYTHONIOENCODING=utf-?8|PYTHONUTF8=1|LC_ALL=\S*UTF-?8|LANG=\S*UTF-?8)", re.I)


def ascii_only(view: View) -> Iterator[Finding]:
    """Python takes text for ASCII in this environment: scripts and some tests fail on any other character."""
    if re.search(r"Unicode\w*Error|\bascii\b", view.transcript.run.description):
        return  # the task itself
    for n, step in enumerate(view.steps):
        match = _ASCII.search(step.output) if step.failed and "'ascii' codec" in step.output else None
        if match is None:
            continue
        later = next((s for s in view.steps[n + 1 : n + 1 + _NEAR] if s.worked and _AS_UTF8.search(s.line)), None)
        setting = _AS_UTF8.search(later.line) if later else None
        with_it = f"`{setting[1]}`" if setting else "`PYTHONIOENCODING=utf-8`"
        name = "UnicodeEncodeError" if "UnicodeEncodeError" in match[0] else "UnicodeDecodeError"
        yield Finding(
            f"Python takes text for ASCII in this environment ({name}: 'ascii' codec){_tests_too(view, step)}; "
            f"run it with {with_it}, and open files with `encoding='utf-8'`.",
            "failure_pattern",
            Claim("python", "text encoding", "", "ascii"),
            (cite_result(view, step, match[0].strip()), cite_command(view, later) if later else None),
            tags=() if later else ("corroborate",),
        )
        return


def _tests_too(view: View, step: Step) -> str:
    return ", and some tests fail for that alone" if as_test_run(step) and not view.runs_own_code(step) else ""


RULES = (
    Rule(
        "prepared",
        1,
        0.75,
        0.02,
        "the same command failed before and worked after; somebody may prepare the environment for good",
        prepared,
    ),
    Rule(
        "switched_tests",
        1,
        0.65,
        0.01,
        "the tests ran with the variable set; that they do not without follows from its name",
        switched_tests,
    ),
    Rule("ascii_only", 1, 0.7, 0.02, "Python said so; the environment may change", ascii_only),
)
