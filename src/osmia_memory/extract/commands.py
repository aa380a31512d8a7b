"""What a simple command is for. Pure: Simple -> purpose, runner, written files."""

import functools
import posixpath
import re
from typing import Literal

from osmia_memory.extract.shell import Simple, parse

Purpose = Literal["test", "lint", "build", "install", "run", "search", "read", "write", "git", "service", "none", "other"]

SEARCHES = frozenset(["grep", "egrep", "fgrep", "rg", "ag", "ack", "find", "fd", "locate"])
READERS = frozenset(
    [
        "cat",
        "head",
        "tail",
        "less",
        "more",
        "nl",
        "bat",
        "ls",
        "tree",
        "wc",
        "file",
        "stat",
        "du",
        "pwd",
        "mktemp",
        "date",
        "basename",
        "dirname",
        "realpath",
        "readlink",
        "which",
        "type",
        "command",
        "whereis",
        "sort",
        "uniq",
        "awk",
        "cut",
        "tr",
        "diff",
        "cmp",
        "jq",
        "column",
        "printf",
        "echo",
        "sed",
        "test",
        "[",
        "true",
    ]
)
WRITERS = frozenset(["mkdir", "touch", "rm", "rmdir", "mv", "cp", "tee", "chmod", "ln", "install", "patch"])
NO_PURPOSE = frozenset(
    [
        "cd",
        "export",
        "set",
        "source",
        ".",
        "read",
        "sleep",
        "wait",
        "exit",
        "return",
        "pushd",
        "popd",
        "unset",
        "umask",
        "ulimit",
        "kill",
        "pkill",
        "for",
        "if",
        "while",
    ]
)
INTERPRETER = re.compile(r"(?:python|python2|python3|pypy3?)(?:[\d.]+)?$")
_TEST_PROGRAMS = re.compile(
    r"(?:pytest|py\.test|nosetests|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|bats|runtests(?:\.py)?|trial|behave)$"
)
_LINT_PROGRAMS = re.compile(
    r"(?:ruff|flake8|pylint|mypy|black|isort|golangci-lint|gofmt|gofumpt|eslint|prettier|tsc|shellcheck|clippy|rubocop|staticcheck|pre-commit|pyright|bandit)$"
)
_TASK_RUNNERS = frozenset(
    [
        "make",
        "mise",
        "just",
        "task",
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "rake",
        "invoke",
        "poe",
        "hatch",
        "pdm",
        "poetry",
        "uv",
        "bazel",
        "gradle",
        "gradlew",
        "mvn",
        "mvnw",
        "nx",
        "turbo",
        "deno",
        "composer",
        "bundle",
    ]
)
_TASK_WORDS = {
    "test": re.compile(r"(?:^|[:_-])(?:test|tests|check|spec|e2e|integration|unit)(?:$|[:_-])"),
    "lint": re.compile(r"(?:^|[:_-])(?:lint|fmt|format|vet|typecheck|types|style)(?:$|[:_-])"),
    "build": re.compile(r"(?:^|[:_-])(?:build|compile|install|ci|generate|package|verify)(?:$|[:_-])"),
}
_GO = {
    "test": "test",
    "vet": "lint",
    "fmt": "lint",
    "build": "build",
    "install": "build",
    "generate": "build",
    "mod": "install",
    "get": "install",
    "run": "run",
}
_CARGO = {
    "test": "test",
    "nextest": "test",
    "clippy": "lint",
    "fmt": "lint",
    "build": "build",
    "check": "build",
    "run": "run",
    "add": "install",
}


@functools.lru_cache(maxsize=8192)
def purpose(simple: Simple) -> Purpose:
    """What the command is for, by its program and its first words."""
    name = simple.program
    words = [w for w in simple.argv[1:] if not w.startswith("-")]
    if not name:
        return "none"
    if simple.argv[0].endswith(("bin/test", "bin/doctest")):
        return "test"
    if "/" in simple.argv[0] and not simple.argv[0].startswith(("/bin/", "/usr/", "/opt/")):
        return _script(simple, name)  # `tools/wait` is not the shell's `wait`
    if name in NO_PURPOSE:
        return "none"
    if name == "sed":
        return "write" if any(re.match(r"-\w*i|--in-place", w) for w in simple.argv[1:]) else "read"
    if name in SEARCHES:
        return "search"
    if name == "git" and words[:1] == ["grep"]:
        return "search"
    if name in ("cat", "echo", "printf", "tee") and simple.writes:
        return "write"
    if name in READERS:
        return "read"
    if name in WRITERS:
        return "write"
    if name in ("git", "gh", "hg", "svn"):
        return "git"
    if INTERPRETER.match(name):
        return _python(simple)
    if _TEST_PROGRAMS.search(name):
        return "test"
    if _LINT_PROGRAMS.search(name):
        return "lint"
    if name in ("go", "cargo"):
        return _as_purpose((_GO if name == "go" else _CARGO).get(words[0] if words else "", "other"))
    if name in ("pip", "pip3", "apt", "apt-get", "brew", "gem", "conda", "mamba"):
        return "install" if "install" in words[:2] else "other"
    if name in _TASK_RUNNERS and "--" in simple.argv and words[:1] in (["exec"], ["x"]):
        return purpose(Simple(simple.argv[simple.argv.index("--") + 1 :]))
    if name in _TASK_RUNNERS:
        return _task(name, words)
    if name in ("docker", "docker-compose", "podman", "systemctl", "service", "redis-server", "curl", "wget", "ssh"):
        return "service"
    return "run" if "/" in simple.argv[0] or re.search(r"\.(?:sh|py|js|rb|pl)$", name) else "other"


def _script(simple: Simple, name: str) -> Purpose:
    """A program given by its path: a tool of the environment, or a script of the repository's own."""
    if INTERPRETER.match(name):
        return _python(simple)
    return "test" if _TEST_PROGRAMS.search(name) else "lint" if _LINT_PROGRAMS.search(name) else "run"


def _as_purpose(name: str) -> Purpose:
    return name  # type: ignore[return-value]  # the tables above hold only members of Purpose


def _python(simple: Simple) -> Purpose:
    rest = list(simple.argv[1:])
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
        rest.pop(0)
    if rest[:1] == ["-m"] and len(rest) > 1:
        module = rest[1]
        if module in ("pytest", "unittest", "nose", "tox", "doctest", "trial"):
            return "test"
        if _LINT_PROGRAMS.search(module):
            return "lint"
        return "install" if module == "pip" and "install" in rest else "run"
    if rest and _TEST_PROGRAMS.search(posixpath.basename(rest[0])):
        return "test"
    if len(rest) > 1 and posixpath.basename(rest[0]) in ("setup.py", "manage.py") and rest[1] in ("test", "build", "build_ext", "develop"):
        return "test" if rest[1] == "test" else "build"
    return "run"


def _task(name: str, words: list[str]) -> Purpose:
    """The purpose behind a task runner's words; `words` hold no options."""
    words = [w for w in words if w not in ("run", "exec", "x", "--")]
    if not words:
        return "build" if name in ("make", "gradle", "gradlew", "mvn", "mvnw", "bazel") else "other"
    if name in ("uv", "poetry", "pdm", "hatch", "bundle", "bun", "deno"):
        inner = Simple(tuple(words))
        if words[0] in ("sync", "install", "add", "pip"):
            return "install"
        return purpose(inner) if words[0] not in _TASK_RUNNERS else "other"
    for kind, pattern in _TASK_WORDS.items():
        if any(pattern.search(w) for w in words[:2]):
            return "install" if name in ("npm", "pnpm", "yarn") and words[0] in ("install", "ci", "add") else _as_purpose(kind)
    return "run"


def main_command(line: str) -> Simple | None:
    """The command a line was typed for: the first that is neither preparation nor a reader, else the first of all."""
    commands = parse(line)
    telling = [c for c in commands if purpose(c) not in ("none", "read", "write")]
    order = {"test": 0, "lint": 1, "build": 2, "run": 3}
    ranked = sorted(telling, key=lambda c: order.get(purpose(c), 4))  # stable: the first of the most telling kind
    return next(iter(ranked or [c for c in commands if purpose(c) != "none"]), None)


def written_files(line: str) -> tuple[str, ...]:
    """Files the line creates or changes, as written: redirections, `sed -i`, `tee`, `touch`, `mv`, `cp`, `patch`."""
    found: list[str] = []
    for c in parse(line):
        found += [w for w in c.writes if re.search(r"\w", w)]
        words = [w for w in c.argv[1:] if not w.startswith("-")]
        if c.program == "sed" and purpose(c) == "write":
            scripts_given = any(w in ("-e", "-f") or w.startswith("--expression") for w in c.argv)
            found += words if scripts_given else words[1:]
        elif c.program in ("tee", "touch"):
            found += words
        elif c.program in ("mv", "cp") and words:
            found.append(words[-1])
    return tuple(dict.fromkeys(p for p in found if not p.startswith("/dev/") and "$" not in p and len(p) < 200))


_TEST_PATH = re.compile(r"(?:^|/)(?:tests?|testing|specs?|__tests__)/|(?:^|/)test_[\w.-]+$|_test\.\w+$|\.(?:test|spec)\.\w+$|Test\.java$")


def is_test_file(path: str) -> bool:
    """The path is that of a test or of test data."""
    return bool(_TEST_PATH.search(path))


# --- what a runner is and what it is pointed at -------------------------------------------------------------------------

_VALUE_OPTIONS = frozenset(
    [
        "-k",
        "-m",
        "-n",
        "-run",
        "-p",
        "-o",
        "-c",
        "-W",
        "-t",
        "-timeout",
        "-j",
        "-bench",
        "--settings",
        "--parallel",
        "--tb",
        "--maxfail",
        "--timeout",
        "--filter",
        "--config",
        "--verbosity",
    ]
)
_TELLING_FLAGS = frozenset(
    "-race -short --full --release --all --integration --e2e --slow --run-slow --network --all-features --workspace".split()
)
_SELECTING = frozenset(["-k", "-run", "-t", "--filter", "-m", "--lf", "--last-failed", "-bench"])


def runner(simple: Simple) -> tuple[str, ...]:
    """The words that name the tool: `python tests/runtests.py migrations -v 2` -> ("python", "tests/runtests.py")."""
    argv, name = simple.argv, simple.program
    if INTERPRETER.match(name):
        rest = argv[1:]
        if rest[:1] == ("-m",):
            return (argv[0], *rest[:2])
        script = next((w for w in rest if not w.startswith("-")), "")
        more = rest[rest.index(script) + 1 :][:1] if posixpath.basename(script) in ("setup.py", "manage.py") else ()
        return (argv[0], script, *more) if script else (argv[0],)
    if name in ("go", "cargo"):
        return argv[:2]
    words = [w for w in argv if not w.startswith("-")]
    if name in _TASK_RUNNERS and "--" in argv and words[1:2] in (["exec"], ["x"]):
        at = argv.index("--") + 1
        return (*argv[:at], *runner(Simple(argv[at:])))
    if name in _TASK_RUNNERS:
        return tuple(words[:3] if len(words) > 2 and words[1] in ("run", "exec", "x") else words[:2])
    return argv[:1]


def runner_key(simple: Simple) -> str:
    """The tool by name, equal for `python3 tests/runtests.py` and `./tests/runtests.py`, and for `pytest` and `python -m pytest`."""
    words = list(runner(simple))
    if len(words) > 1 and INTERPRETER.match(posixpath.basename(words[0])):
        words = words[2:] if words[1] == "-m" else words[1:]
    return " ".join(w.removeprefix("./") for w in words)


def targets(simple: Simple) -> tuple[str, ...]:
    """What the tool was pointed at (paths, labels, packages), options and their values left out."""
    found, words = [], iter(simple.argv[len(runner(simple)) :])
    for word in words:
        if word in _VALUE_OPTIONS:
            next(words, None)
        elif not word.startswith("-") and not word.isdigit():
            found.append(word)
    return tuple(found)


def is_selective(simple: Simple) -> bool:
    """An option picks single tests, so the command says little about its target."""
    return any(w.partition("=")[0] in _SELECTING for w in simple.argv[len(runner(simple)) :])


def typed(simple: Simple, max_targets: int = 2) -> str:
    """What one would type again: assignments, tool, telling flags and targets, without verbosity and selection."""
    rest = simple.argv[len(runner(simple)) :]
    where = targets(simple)[:max_targets]
    dashes = ("--",) if where and "--" in rest and rest.index("--") < rest.index(where[0]) else ()
    flags = tuple(w for w in rest if w in _TELLING_FLAGS or w.startswith("-tags"))
    return " ".join((*simple.env, *runner(simple), *flags, *dashes, *where))


def slot(target: str) -> str:
    """What stands for targets like this one: `<path>`, `<package>` or `<label>`."""
    if target.startswith("./") and not re.search(r"\.\w+$", target):
        return "<package>"
    return "<path>" if "/" in target or target.endswith(".py") else "<label>"


def short(simple: Simple, limit: int = 90) -> str:
    """The command as typed, cut at a word before `limit` characters."""
    text = " ".join(simple.text.split())
    return text if len(text) <= limit else text[:limit].rsplit(" ", 1)[0] + " …"


def names(text: str, name: str) -> bool:
    """`name` stands in the text as a whole word."""
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))
