"""What a test, lint or build tool says in its output. Pure: text -> Verdict or None; knows nothing about commands.

Exit codes miss most failing tests (agents pipe into `tail`), so the words of the runner decide.
"""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["test", "lint", "build"]

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


def plain(text: str) -> str:
    """Without terminal colours and carriage-return progress; offsets differ from the original."""
    return _ANSI.sub("", text) if "\x1b" in text else text


@dataclass(frozen=True, slots=True)
class Failing:
    """One failing test as its runner names it, with the first line of its reason ("" if the output has none)."""

    test_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the tool concluded. `summary` is a verbatim line of the (colourless) output."""

    kind: Kind
    tool: str  # "pytest", "go test", "unittest", ...
    passed: bool
    ran: int | None = None  # tests that ran, where the runner counts them
    failed: int = 0
    failing: tuple[Failing, ...] = ()
    summary: str = ""
    seconds: float | None = None
    broken_build: bool = False  # nothing ran: it does not compile, import or collect


def verdict(output: str) -> Verdict | None:
    """The verdict of the last tool in the output, None if no known tool speaks."""
    text = plain(output)
    for reader in _READERS:
        found = reader(text)
        if found is not None:
            return found
    return None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(text):  # noqa: B007  # the last one is what is wanted
        pass
    return match


# --- pytest -----------------------------------------------------------------------------------------------------------

_PYTEST = re.compile(
    r"^(?:=+ )?((?:\d+ (?:failed|passed|skipped|xfailed|xpassed|deselected|errors?|warnings?|rerun|subtests passed)(?:, )?)+) in ([\d.]+) ?s(?:econds)?\b.*$",
    re.M,
)
_PYTEST_NONE = re.compile(r"^(?:=+ )?no tests ran in [\d.]+ ?s.*$", re.M)
_PYTEST_FAILED = re.compile(r"^(FAILED|ERROR) (\S+?)(?:\[.*?\])?(?: - (.*))?$", re.M)
_PYTEST_REASON = re.compile(r"^E  +(?!\+|-|\?|assert\b)(\S.*)$", re.M)


def _pytest(text: str) -> Verdict | None:
    summary = _last(_PYTEST, text)
    if summary is None:
        none = _PYTEST_NONE.search(text)
        return Verdict("test", "pytest", False, 0, summary=none[0].strip("= \n"), broken_build=True) if none else None
    counts = {word.rstrip("s"): int(n) for n, word in re.findall(r"(\d+) (\w+)", summary[1])}
    bad = counts.get("failed", 0) + counts.get("error", 0)
    failing: dict[str, Failing] = {}
    for match in _PYTEST_FAILED.finditer(text):
        if re.search(r"\.\w+(?:::|$)", match[2]):  # an old runner cuts the file from the name of a test below a linked folder
            failing.setdefault(match[2], Failing(match[2], (match[3] or "").strip()))
    if len(failing) == 1 and (reason := _PYTEST_REASON.search(text)):
        failing = {k: Failing(k, reason[1].strip() if v.reason.endswith("...") or not v.reason else v.reason) for k, v in failing.items()}
    elif len(failing) >= _SEVERAL and not any(f.reason for f in failing.values()) and (common := _common_error(text)):
        failing = {k: Failing(k, common) for k in failing}
    ran = sum(counts.get(word, 0) for word in ("failed", "passed", "xfailed", "xpassed"))
    return Verdict(
        "test",
        "pytest",
        bad == 0 and ran > 0,
        ran,
        bad,
        tuple(failing.values()),
        summary[0].strip("= "),
        float(summary[2]),
        broken_build=ran == 0,
    )


_SEVERAL = 3
_ERROR = re.compile(r"^E  +((?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning|Failed)\b: .+|.*\bfixture '\w+' (?:not found|detected).*)$", re.M)


def _common_error(text: str) -> str:
    """What most of the errors shown say, "" if they differ: errors in set-up are listed without a reason."""
    errors = [m[1].strip() for m in _ERROR.finditer(text)]
    most = max(sorted(set(errors)), key=errors.count, default="")
    return most if errors.count(most) >= _SEVERAL and 5 * errors.count(most) >= 4 * len(errors) else ""


# --- unittest (Django and others) -------------------------------------------------------------------------------------

_RAN = re.compile(r"^Ran (\d+) tests? in ([\d.]+)s$", re.M)
_UNITTEST_END = re.compile(r"^(OK|FAILED)(?: \((.*)\))?$", re.M)
_UNITTEST_FAILED = re.compile(r"^(?:FAIL|ERROR): (\w+) \(([\w.]+)\)", re.M)


def _unittest(text: str) -> Verdict | None:
    ran = _last(_RAN, text)
    if ran is None:
        return None
    end = _UNITTEST_END.search(text, ran.end())
    counts = dict(re.findall(r"(failures|errors)=(\d+)", end[2] or "")) if end else {}
    failing: dict[str, Failing] = {}
    sections = re.split(r"^=+$", text, flags=re.M)
    for section in sections:
        if match := _UNITTEST_FAILED.search(section):
            name = match[2] if match[2].endswith("." + match[1]) else f"{match[2]}.{match[1]}"
            name = name.removeprefix("__main__.")
            failing.setdefault(name, Failing(name, _last_exception(section)))
    passed = bool(end) and end is not None and end[1] == "OK"
    loader = any("unittest.loader._FailedTest" in f.test_id for f in failing.values())
    return Verdict(
        "test",
        "unittest",
        passed,
        int(ran[1]),
        sum(map(int, counts.values())),
        tuple(failing.values()),
        ran[0],
        float(ran[2]),
        broken_build=loader,
    )


_EXCEPTION = re.compile(
    r"^((?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Warning|NotReady|Configured|DoesNotExist|Failed|Exit|Interrupt)\b.*)$", re.M
)


def _last_exception(section: str) -> str:
    last = _last(_EXCEPTION, section)
    return last[1].strip() if last else ""


# --- go test ----------------------------------------------------------------------------------------------------------

_GO_PACKAGE = re.compile(
    r"^(ok|FAIL|---|\?) ?\s+(\S+)\s+(\(cached\)|[\d.]+s|\[build failed\]|\[setup failed\]|\[no test files\])(.*)$", re.M
)
_GO_FAILED = re.compile(r"^( *)--- FAIL: (\S+) \(([\d.]+)s\)\n((?:(?! *---|FAIL|ok\s|PASS).*\n?)*)", re.M)
_GO_LOG = re.compile(r"^\s+\w+\.go:\d+: (.*)$", re.M)


def _go(text: str) -> Verdict | None:
    packages = list(_GO_PACKAGE.finditer(text))
    tested = [m for m in packages if m[1] in ("ok", "FAIL")]
    failing: dict[str, Failing] = {}
    for match in _GO_FAILED.finditer(text):
        name = match[2].split("/")[0]
        logged = _GO_LOG.search(match[4] or "")
        panic = re.search(r"^panic: (.*?)(?: \[recovered\].*)?$", text[match.end(1) :], re.M)
        reason = logged[1].strip() if logged else f"panic: {panic[1]}" if panic else failing.get(name, Failing(name)).reason
        failing[name] = Failing(name, reason)
    if not tested and not failing:
        return None
    broken = any("build failed" in m[3] or "setup failed" in m[3] for m in tested)
    failed = bool(failing) or any(m[1] == "FAIL" for m in tested)
    # packages are tested in parallel: the longest one is the nearest to what one waits
    seconds = max((float(m[3][:-1]) for m in tested if re.fullmatch(r"[\d.]+s", m[3])), default=0.0)
    line = next((m[0] for m in tested if (m[1] == "FAIL") == failed), "") or f"--- FAIL: {next(iter(failing), '')}"
    return Verdict(
        "test", "go test", not failed, len(tested), len(failing), tuple(failing.values()), line, seconds or None, broken and not failing
    )


# --- other test runners -----------------------------------------------------------------------------------------------

_BIN_TEST = re.compile(r"^=* *tests finished: (.*?),\s+in ([\d.]+) seconds", re.M | re.S)
_JEST = re.compile(r"^\s*Tests:?\s+(.*\b(?:passed|failed|skipped|todo)\b.*)$", re.M)
_JEST_FAILED = re.compile(r"^\s*(?:●|×|FAIL) +(\S.*)$", re.M)
_CARGO = re.compile(r"^test result: (ok|FAILED)\. (\d+) passed; (\d+) failed;.*$", re.M)
_CARGO_FAILED = re.compile(r"^test (\S+) \.\.\. FAILED$", re.M)
_MOCHA = re.compile(r"^\s*(\d+) passing(?: \(([\d.]+)(ms|s|m)\))?$", re.M)
_MAVEN = re.compile(r"^(?:\[\w+\] )?Tests run: (\d+), Failures: (\d+), Errors: (\d+).*$", re.M)
_RSPEC = re.compile(r"^(\d+) examples?, (\d+) failures?.*$", re.M)


def _bin_test(text: str) -> Verdict | None:
    match = _BIN_TEST.search(text)
    if match is None:
        return None
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|exceptions?)", match[1])}
    bad = sum(n for word, n in counts.items() if word != "passed")
    names = re.findall(r"^_+ (\S+\.py:\w+) _+$", text, re.M)
    return Verdict(
        "test",
        "bin/test",
        bad == 0,
        counts.get("passed", 0) + bad,
        bad,
        tuple(Failing(n) for n in dict.fromkeys(names)),
        match[0].splitlines()[0].strip("= ,"),
        float(match[2]),
    )


def _jest(text: str) -> Verdict | None:
    last = _last(_JEST, text)
    if last is None:
        return None
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed)", last[1])}
    failing = tuple(Failing(name) for name in dict.fromkeys(m[1].strip() for m in _JEST_FAILED.finditer(text)))
    return Verdict("test", "jest", not counts.get("failed"), sum(counts.values()), counts.get("failed", 0), failing, last[0].strip())


def _cargo(text: str) -> Verdict | None:
    found = list(_CARGO.finditer(text))
    if not found:
        return None
    failed = sum(int(m[3]) for m in found)
    failing = tuple(Failing(m[1]) for m in _CARGO_FAILED.finditer(text))
    line = next((m[0] for m in found if (m[1] == "FAILED") == bool(failed)), found[-1][0])
    return Verdict("test", "cargo test", failed == 0, sum(int(m[2]) + int(m[3]) for m in found), failed, failing, line)


def _counted(text: str) -> Verdict | None:
    if match := _MOCHA.search(text):
        bad = re.search(r"^\s*(\d+) failing$", text, re.M)
        return Verdict(
            "test", "mocha", bad is None, int(match[1]) + int(bad[1] if bad else 0), int(bad[1]) if bad else 0, (), match[0].strip()
        )
    last = _last(_MAVEN, text)
    if last is not None:
        bad_count = int(last[2]) + int(last[3])
        return Verdict("test", "maven", bad_count == 0, int(last[1]), bad_count, (), last[0].strip())
    if match := _RSPEC.search(text):
        return Verdict("test", "rspec", match[2] == "0", int(match[1]), int(match[2]), (), match[0])
    return None


# --- lint and build ---------------------------------------------------------------------------------------------------

_LINT = [
    ("golangci-lint", re.compile(r"^(\d+) issues[.:]", re.M)),
    ("ruff", re.compile(r"^(?:(All checks passed!)|Found (\d+) errors?)", re.M)),
    ("mypy", re.compile(r"^(?:(Success: no issues found).*|Found (\d+) errors? in \d+ files?.*)$", re.M)),
    ("eslint", re.compile(r"^\s*✖ (\d+) problems?.*$", re.M)),
    ("black", re.compile(r"^(?:(All done!.*)|(\d+) files? would be reformatted.*)$", re.M)),
    ("pylint", re.compile(r"^Your code has been rated at ([\d.]+)/10.*$", re.M)),
]


def _lint(text: str) -> Verdict | None:
    for tool, pattern in _LINT:
        if match := pattern.search(text):
            number = next((g for g in match.groups() if g and re.fullmatch(r"[\d.]+", g)), "0")
            passed = number == "10.00" if tool == "pylint" else number == "0"
            return Verdict("lint", tool, passed, failed=0 if passed else int(float(number)), summary=match[0].strip())
    return None


# The more telling runner first: a Django run prints unittest's lines, a sympy run its own.
_READERS = (_bin_test, _pytest, _unittest, _go, _jest, _cargo, _counted, _lint)
