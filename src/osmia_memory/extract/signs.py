"""Error signs in command output: what kind of thing went wrong, and what it names. Pure: text -> Sign or None."""

import functools
import re
from typing import Literal, NamedTuple

SignKind = Literal[
    "missing command",
    "missing module",
    "missing file",
    "bad option",
    "shell",
    "permission",
    "network",
    "disk",
    "login",
    "lock",
    "version",
    "setting",
    "service",
    "tool error",
]

ACCIDENTS: frozenset[str] = frozenset({"network", "disk", "login", "lock"})  # of the environment at that moment, never of the repository


class Sign(NamedTuple):
    """One recognised error. `key` is what it names, without what differs from run to run; `line` stands verbatim in the output."""

    kind: SignKind
    key: str
    line: str


_PATTERNS: tuple[tuple[SignKind, re.Pattern[str]], ...] = (
    (
        "missing command",
        re.compile(
            r"(?:command not found: (\S+)|\b(?!(?:zsh|bash|sh|dash|fish|eval): )([A-Za-z_][\w.+-]*): (?:command )?not found|exec: \"?([\w.+-]+)\"?: executable file not found|No version is set for command (\S+))",
            re.M,
        ),
    ),
    (
        "missing module",
        re.compile(
            r"(?:No module named ['\"]?([\w.]+)|Cannot find (?:module|package) ['\"]([^'\"]+)|no required module provides package (\S+?);?\s)",
            re.M,
        ),
    ),
    (
        "shell",
        re.compile(
            r"^(?:zsh|bash|sh):(?:\d+:| line \d+:)? *(no matches found|read-only variable|event not found|bad substitution|parse error near|unmatched|bad pattern|permission denied|argument list too long)(?:: (\S+))?.*$",
            re.M,
        ),
    ),
    (
        "network",
        re.compile(
            r"(?:[Cc]ould not resolve host(?:name)?:? ?(\S*)|[Nn]o such host|[Ee]rror connecting to (\S+)|[Nn]etwork is unreachable|[Tt]emporary failure in name resolution|getaddrinfo \w+|[Nn]etwork access (?:is )?(?:denied|disabled))",
            re.M,
        ),
    ),
    ("disk", re.compile(r"(?:No space left on device|Disk quota exceeded)", re.M)),
    (
        "login",
        re.compile(
            r"(?:[Aa]uthentication (?:failed|required)|could not read Username|gh auth login|token (?:has )?expired|401 Unauthorized|not logged in|Invalid API key|Permission denied \(publickey\))",
            re.M,
        ),
    ),
    (
        "lock",
        re.compile(
            r"(?:[Uu]nable to create '[^']*\.lock': File exists|[Aa]nother git process seems to be running|[Dd]atabase is locked|[Cc]ould not get lock)",
            re.M,
        ),
    ),
    ("permission", re.compile(r"(?:Operation not permitted|Permission denied|Read-only file system|EACCES|EPERM)", re.M)),
    (
        "bad option",
        re.compile(
            r"(?:unrecognized arguments?: (\S+)|unknown (?:flag|option|shorthand flag|command|switch):? ['\"`]?([\w-]+)|invalid option -- ?'?(\w)|no such option: (\S+)|[Uu]nknown argument:? (\S+)|flag provided but not defined: (\S+)|illegal option -- (\w))",
            re.M,
        ),
    ),
    (
        "version",
        re.compile(
            r"(?:requires (?:a )?(?:different )?(?:Python|Node|Go|go)\b[^\n]*|requires go ?>= ?[\d.]+|Unsupported engine|incompatible with (?:this|your) version)",
            re.M,
        ),
    ),
    (
        "setting",
        re.compile(
            r"\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b (?:is not|is (?:required|missing|undefined|unset)|must be|not set|has to be|needs to be|environment variable|env(?:ironment)? var)"
            r"|(?:[Ss]et|[Mm]issing|requires?|[Nn]eeds?|[Ee]xport|define)(?: the)?(?: environment variable| env var| variable)? [`'\"$]?([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b",
            re.M,
        ),
    ),
    (
        "service",
        re.compile(
            r"(?:Connection refused|ECONNREFUSED|could not connect to server|Cannot connect to the Docker daemon|connection to server at)",
            re.M,
        ),
    ),
    (
        "missing file",
        re.compile(
            r"(?:file or directory not found: (\S+)|can't open file ['\"]?([^'\":]+)|cannot (?:access|stat|open) ['\"‘]?([^'\"’:]+)|pathspec ['\"]([^'\"]+)['\"] did not match|^\S+: ([^\s:]+): No such file or directory|no such file or directory: (\S+)|(?:open|stat) (\S+): no such file)",
            re.M,
        ),
    ),
    ("tool error", re.compile(r"^(?:fatal|error|ERROR|Error|E|make: \*\*\*|npm ERR!|usage error)[:!] ?(\S.*)$", re.M)),
)


def sign(output: str) -> Sign | None:
    """The most telling sign in the output, None if nothing known is named. Only its last 20,000 characters are read."""
    return next(iter(signs(output)), None)


def signs(output: str) -> tuple[Sign, ...]:
    """All signs, one of each kind, the most telling kind first."""
    return _signs(output[-20_000:])


@functools.lru_cache(maxsize=1024)  # several rules ask for the same outputs of a run
def _signs(text: str) -> tuple[Sign, ...]:
    found: list[Sign] = []
    for kind, pattern in _PATTERNS:
        if kind == "missing command" and "not found" not in text and "No version is set" not in text:
            continue  # its pattern looks at every word
        if match := pattern.search(text):
            key = next((g for g in match.groups() if g), "")
            named = kind in ("missing command", "missing module", "missing file", "bad option")
            found.append(Sign(kind, _bare(key) if named else fold(key), _line_of(text, match)[:200]))
    return tuple(found)


def _line_of(text: str, match: re.Match[str]) -> str:
    """The line that the match begins in; patterns without `.*` around them are several times faster."""
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", max(match.end() - 1, match.start()))
    return text[start : end if end >= 0 else len(text)].strip()


def _bare(text: str) -> str:
    return re.sub(r"(?:/private)?/(?:tmp|var/folders)/\S+", "<tmp>", text).strip(" '\"`.,:;")[:120]


def fold(text: str) -> str:
    """Without numbers, addresses and temporary folders, so that equal errors of two runs are equal."""
    text = re.sub(r"(?:/private)?/(?:tmp|var/folders)/\S+", "<tmp>", text)
    text = re.sub(r"\b[0-9a-f]{8,40}\b|0x[0-9a-fA-F]+|\d+", "N", text)
    return " ".join(text.strip(" '\"`.,:;").split())[:120]
