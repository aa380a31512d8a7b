"""Rules about the engine's shell and sandbox, and about accidents of the moment."""

import re
from collections.abc import Iterator

from osmia_memory.extract import commands
from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.common import cite_command, cite_result
from osmia_memory.extract.rules.trouble import troubles
from osmia_memory.extract.shell import Simple
from osmia_memory.extract.signs import ACCIDENTS, Sign, signs
from osmia_memory.extract.view import Step, View
from osmia_memory.models import Claim, Evidence

_REFUSALS = ("no matches found", "read-only variable", "event not found", "bad substitution", "parse error near", "argument list too long")
# Claude Code's zsh runs a line through `eval` and says so instead of its name.
_REFUSED_LINE = re.compile(
    r"^(?:(zsh|bash|sh):\S* *|\(eval\):(?:\d+:)? *)"
    rf"({'|'.join(_REFUSALS)}):? ?(.*)$",
    re.M,
)


def shell_pitfall(view: View) -> Iterator[Finding]:
    """A line that the engine's shell refused as a whole, for a reason of the shell and not of the programs in it."""
    engine = view.transcript.run.engine
    told: set[str] = set()
    for n, step in enumerate(view.steps):
        refused = not step.harness and any(words in step.output for words in _REFUSALS)  # far cheaper than the pattern
        match = _REFUSED_LINE.search(step.output) if refused else None
        if match is None or match[2] in told:
            continue
        shell, what, name = match[1] or "zsh", match[2], match[3].strip().replace("`", "'")[:60]
        told.add(what)
        evidence = [cite_result(view, step, match[0])]
        if what == "read-only variable":
            other = next(
                (m for s in view.steps[n + 1 : n + 6] if s.worked and (m := re.search(r"\b([a-z_]\w*)=\$\?", s.line)) and m[1] != name),
                None,
            )
            use = f"; store exit codes in another name such as `{other[1]}`" if other else "; use another name"
            content = f"{engine}'s shell is {shell}, where `{name}` is a read-only variable: assigning it aborts the whole line{use}."
        elif what == "no matches found":
            content = f"{engine}'s shell is {shell}: a glob that matches nothing aborts the whole line (no matches found); quote globs or use `rg --files`."
            yield from _glob_without_match(view, n, name, shell, tuple(evidence))
        else:
            content = f"{engine}'s shell is {shell} and refuses a line with “{what}: {name}”; quote or simplify it."
        yield Finding(content, "failure_pattern", Claim(engine, "shell", shell, what), tuple(evidence), scope="engine", strength=-0.05)


_EXPANDED = re.compile(r"^(?:zsh:\d+|\(eval\):\d+): (=+) not found$", re.M)


def expanded_by_the_shell(view: View) -> Iterator[Finding]:
    """A word that was meant as text and that the shell took for a command: `===` in zsh, back-ticks in double quotes in every shell."""
    engine = view.transcript.run.engine
    told: set[str] = set()
    for step in view.steps:
        if "not found" not in step.output or step.harness:
            continue
        if (match := _EXPANDED.search(step.output)) and "zsh" not in told:
            told.add("zsh")
            yield Finding(
                f"{engine}'s shell is zsh, where a bare `{match[1]}=` as in `echo ===` is looked up as a command ({match[1]} not found) and fails the line; quote it.",
                "failure_pattern",
                Claim(engine, "shell", "zsh", "= expansion"),
                (cite_result(view, step, match[0]), cite_command(view, step)),
                scope="engine",
            )
        if "back-ticks" in told or "`" not in step.line:
            continue
        name = next((s.key for s in signs(step.output) if s.kind == "missing command"), "")
        if name and re.search(rf'"[^"\']*(?<!\\)`{re.escape(name)}\b[^"]*"', step.line):
            told.add("back-ticks")
            line = next(x for x in step.output.splitlines() if name in x and "not found" in x)
            yield Finding(
                f"{engine}'s shell runs what stands between back-ticks within double quotes as a command (command not found); "
                "put patterns and messages with back-ticks into single quotes or a file.",
                "failure_pattern",
                Claim(engine, "shell", "back-ticks in double quotes", "run"),
                (cite_result(view, step, line.strip()), view.cite(step.call, f"`{name}")),
                scope="engine",
            )


def _glob_without_match(view: View, n: int, pattern: str, shell: str, evidence: tuple[Evidence | None, ...]) -> Iterator[Finding]:
    """Of the repository: what is there instead of what was looked for."""
    found = _what_exists(view, n, pattern)
    if found:
        yield Finding(
            f"The glob `{pattern}` matches nothing here, and {shell} then aborts the whole line (no matches found); `{found}` is what exists.",
            "failure_pattern",
            Claim(pattern, "matches", "", found),
            evidence,
            anchors=(f"file:{found}",),
            tags=("corroborate",),
            strength=-0.1,
        )


def _what_exists(view: View, n: int, pattern: str) -> str | None:
    """A path of the same folder, with a name like the pattern's, in the same or the next output."""
    folder, _, name = pattern.rpartition("/")
    stem = re.sub(r"\W.*$", "", name)
    if not folder or len(stem) < 3:
        return None
    for step in view.steps[n : n + 3]:
        found = re.findall(rf"(?<![\w/]){re.escape(folder)}/[\w-]*{re.escape(stem)}[\w.-]*\.\w+", step.output)
        if found:
            return str(min(found, key=lambda p: (commands.is_test_file(p), len(p))))
    return None


def sandboxed(view: View) -> Iterator[Finding]:
    """What the engine's sandbox refuses: the network, or writing; and that it works once allowed."""
    engine = view.transcript.run.engine
    told: set[str] = set()
    for n, step, sign in troubles(view):
        if sign.kind not in ("permission", "network") or step.main is None or step.purpose in ("search", "read", "write"):
            continue
        if step.verdict is not None or sign.line.startswith("E "):
            continue  # what a test meets is the test's affair
        allowed = _escalated(view, n)
        if sign.kind in told or not step.exit_code or not (view.transcript.run.environment.sandbox or allowed):
            continue
        told.add(sign.kind)
        what = "cannot reach the network" if sign.kind == "network" else "may not write there"
        rest = "; asking for it to run outside the sandbox worked" if allowed else ""
        evidence = (cite_result(view, step, sign.line), cite_command(view, allowed or step))
        yield Finding(
            f"In {engine}'s sandbox a command such as `{_tool(step.main)}` {what} ({_message(sign)}){rest}.",
            "failure_pattern",
            Claim(engine, "sandbox", sign.kind, "refused"),
            evidence,
            scope="engine",
            tags=() if allowed else ("environment",),
        )


_NO_PORT = re.compile(r"^.*\blisten\w*\b.*(?:[Oo]peration not permitted|[Pp]ermission denied|EPERM|EACCES).*$", re.M)


def no_ports(view: View) -> Iterator[Finding]:
    """A sandbox in which nothing may listen on a port: tests that start a server fail there, whatever the change."""
    engine = view.transcript.run.engine
    if not view.transcript.run.environment.sandbox:
        return
    for step in view.steps:
        match = _NO_PORT.search(step.output) if step.verdict is not None and not step.verdict.passed and "listen" in step.output else None
        if match:
            yield Finding(
                f"In {engine}'s sandbox nothing may listen on a port (operation not permitted): tests that start a server fail there whatever the change.",
                "failure_pattern",
                Claim(engine, "sandbox", "listen", "refused"),
                (cite_result(view, step, match[0].strip()), cite_command(view, step)),
                scope="engine",
            )
            return


def _message(sign: Sign) -> str:
    match = re.search(
        r"Operation not permitted|Permission denied|Read-only file system|[Cc]ould not resolve host\w*|no such host|error connecting|Network is unreachable",
        sign.line,
    )
    return match[0] if match else sign.kind


def _escalated(view: View, n: int) -> Step | None:
    """The same program, run soon after with leave to escape the sandbox."""
    main = view.steps[n].main
    for later in view.steps[n + 1 : n + 4]:
        wants = str(later.call.args.get("sandbox_permissions") or later.call.args.get("with_escalated_permissions") or "")
        if main and later.main and later.main.program == main.program and wants in ("require_escalated", "True", "true") and later.worked:
            return later
    return None


_INVENTED_HOST = re.compile(
    r"\.(?:example|invalid|test|localhost)\b|\bexample\.(?:com|org|net)\b|\b127\.0\.0\.1\b|\blocalhost\b|\[::1\]"
)  # reserved names were meant to fail; what this machine serves itself is no environment


def accident(view: View) -> Iterator[Finding]:
    """No network, a full disk, an expired login, a held lock: true of that moment, told as such and short-lived."""
    told: set[str] = set()
    for _, step, sign in troubles(view):
        if (
            _INVENTED_HOST.search(sign.line)
            or sign.kind not in ACCIDENTS
            or sign.kind in told
            or step.main is None
            or view.transcript.run.environment.sandbox
        ):
            continue
        told.add(sign.kind)
        words = {
            "network": "had no network",
            "disk": "ran out of disk space",
            "login": "lacked a valid login",
            "lock": "met a lock held by another process",
        }[sign.kind]
        yield Finding(
            f"`{_tool(step.main)}` {words} in an earlier run's environment; check before relying on it.",
            "general",
            Claim(step.main.program, "accident", sign.kind, "seen"),
            (cite_result(view, step, sign.line),),
            scope="engine",
            tags=("environment", "corroborate"),  # one bad moment is nobody's business; several may be the machine's habit
            strength=-0.1,
        )


def _tool(simple: Simple) -> str:
    return " ".join(simple.argv[:2]) if simple.program in ("git", "gh", "go", "npm", "pip", "docker") else simple.program


RULES = (
    Rule("shell_pitfall", 3, 0.75, 0.01, "the shell said so", shell_pitfall),
    Rule("expanded_by_the_shell", 1, 0.75, 0.01, "the shell said so", expanded_by_the_shell),
    Rule("no_ports", 1, 0.7, 0.01, "the system said so; depends on the engine's settings of that run", no_ports),
    Rule("sandboxed", 1, 0.65, 0.01, "depends on the engine's settings of that run", sandboxed),
    Rule("accident", 2, 0.6, 0.05, "true of that moment", accident),
)
