"""E-mail addresses and the names in home directories. Neither is a credential; both tell who somebody is."""

import re
import string
from collections.abc import Iterator

from osmia_memory.transcripts.secret_signs import Found

# Names of services and of images, not of people: their paths and addresses are facts about an environment.
_SERVICES = frozenset(
    "admin all agent airflow app appuser azureuser build builder cassandra centos circleci claude cloudsdk coder codespace codex debian default deploy dev docker "
    "ec2-user elasticsearch fedora git gitlab-runner gitpod guest hg hostedtoolcache jenkins jovyan kafka linuxbrew mail me mysql nginx no-reply node nobody nonroot noreply "
    "oh openhands opencode packer postgres public pwuser redis root rstudio runner sandbox service shared site somebody someone defaultuser spark svn swe test travis ubuntu "
    "user username vagrant vcap vscode web worker www www-data you your-name your-user yourname youruser xxx xxxx".split()
)
# After an `@`: a domain whose last label is letters. Lengths are those of RFC 1035.
_DOMAIN = re.compile(
    r"@((?:[A-Za-z0-9À-ɏ](?:[A-Za-z0-9À-ɏ-]{0,61}[A-Za-z0-9À-ɏ])?\.){1,8}[A-Za-zÀ-ɏ]{2,24})(?![A-Za-z0-9À-ɏ_-]|[A-Za-z0-9_.]*[(@])"
)
_LOCAL = re.compile(r"[A-Za-z0-9À-ɏ!#$%&'*+=^_.~-]{0,63}[A-Za-z0-9À-ɏ_+-]\Z")
_FILES = frozenset(
    "png jpg jpeg gif svg webp go js ts tsx jsx mjs cjs py rs rb java json yaml yml toml lock txt html css pdf csv xml wav mp tgz gz zip whl git patch conf service timer".split()
)
_RESERVED = re.compile(
    r"(?:.*\.)?(?:example(?:\.(?:com|org|net|edu|io|dev|co\.uk))?|invalid|test|localhost|localdomain|(?:your-?|my-?|some)?(?:domain|company|host|email|corp)\.(?:com|org|net|tld))\Z",
    re.I,
)
_ESCAPES = re.compile(r"(?:\\\\)*\\(?:u[0-9A-Fa-f]{4}|[nrtbf])")


def emails(text: str) -> Iterator[Found]:
    """Addresses of people. Not `git@host:path`, `name@version`, reserved example domains, or senders that nobody reads."""
    for m in _DOMAIN.finditer(text):
        domain = m[1]
        if re.match(r"v?\d+\.", domain) or domain.rpartition(".")[2].lower() in _FILES or _RESERVED.match(domain):
            continue
        before = text[max(0, m.start() - 64) : m.start()]
        local = _LOCAL.search(before)
        if not local:
            continue
        start = m.start() - len(local[0])
        name = local[0]
        if start and text[start - 1] == "\\" and (escape := _ESCAPES.match(text, start - 1)):  # the `n` of a `\\n`
            name, start = text[escape.end() : m.start()], escape.end()
        stripped = name.lstrip("!#$%&'*=^.~-+")
        start += len(name) - len(stripped)
        service = stripped.lower().partition("+")[0]
        if stripped and service not in _SERVICES and text[max(0, start - 2) : start] != "//":
            yield Found(start, m.end(1), "email")


# --- home directories -------------------------------------------------------------------------------------------------

_NAME = r"(?:[A-Za-z0-9_À-ɏ][\w.@À-ɏ-]{0,63}|[^\x00-\x7f][^\s/\\:\"'<>|,;()]{0,62}(?=[/\\]))"
_WITH_SPACES = re.compile(r"[^\s\\/:*?\"'<>|`;,()\[\]{}]{1,32}(?: [^\s\\/:*?\"'<>|`;,()\[\]{}]{1,32}){0,3}(?=\\)")
_UNDER_HOME = re.compile(rf"home([/\\]{{1,4}}|-)({_NAME})", re.ASCII)
_UNDER_USERS = re.compile(r"users(?=[/\\-])")
_AFTER_USERS = re.compile(rf"([/\\]{{1,4}}|-)({_NAME})", re.ASCII)
_DRIVE = re.compile(
    r"(?:(?<![A-Za-z0-9])[A-Za-z]:[/\\]{1,4}|/(?:mnt/)?[a-z]/|\\{2,4}wsl[.$\w]{0,12}\\{1,2}[\w.-]{1,32}\\{1,2})\Z", re.ASCII
)
_ENDS_DRIVE = frozenset(":/\\_.-" + string.ascii_letters + string.digits)  # what stands before the last separator of a drive
_MOUNTS = ("/var", "/export", "/usr", "/mnt", "/data", "/System/Volumes/Data")
# A route such as `example.org/home/about`, `./home/x` or `$(pwd)/home/x` is none; `-I/home/x`, `\n/home/x` and `file:///home/x` are.
_INSIDE = frozenset("_.~})]%$*?/-" + string.ascii_letters + string.digits)
_STARTS = re.compile(r"(?:file://|\\[nrtbf]|\\u[0-9A-Fa-f]{4}|\x1b\[[0-9;]{1,8}m|(?:^|[\s\"'])-[ILDFB]|-\d{1,6}-|-isystem)\Z", re.ASCII)
_SLUG_NAME = re.compile(r"[A-Za-z0-9_]+(?=[-/\\\"'\s]|\Z)")


def homes(text: str, low: str) -> Iterator[Found]:
    """Home directories up to and including the user's name: what `~` stands for. `low` is `text` in lower case, of equal length."""
    if "home" in text:
        for m in _UNDER_HOME.finditer(text):
            yield from _slug(text, m.start(), m.start(2)) if m[1] == "-" else _home(text, m.start(), m.start(2), m[2])
    if "users" in low:
        for at in _UNDER_USERS.finditer(low):
            if after := _AFTER_USERS.match(text, at.end()):
                name_at = after.start(2)
                yield from (
                    _slug(text, at.start(), name_at) if after[1] == "-" else _home(text, at.start(), name_at, _long_name(text, after))
                )


def _long_name(text: str, after: re.Match[str]) -> str:
    """On Windows a name may hold blanks, if a backslash ends it."""
    long_name = _WITH_SPACES.match(text, after.start(2)) if "\\" in after[1] else None
    return long_name[0] if long_name else after[2]


def _slug(text: str, start: int, name_at: int) -> Iterator[Found]:
    """`-home-dana` of `projects/-home-dana-src-app`, the folder a harness names after a project's path."""
    name = _SLUG_NAME.match(text, name_at)
    if name and text[start - 2 : start] in ("/-", "\\-") and name[0].lower() not in _SERVICES:
        yield Found(start - 1, name.end(), "home")


def _home(text: str, start: int, name_at: int, name: str) -> Iterator[Found]:
    """The directory whose last part but the name is at `start` ("home", "Users"), if it lies where home directories lie."""
    name = name.rstrip(".-@")
    if not name or name.lower() in _SERVICES:
        return
    root = start
    if text[start - 1 : start] == "/" and text[start] != "u":
        root -= 1
        if text.endswith(_MOUNTS, 0, root):
            root -= next(len(mount) for mount in _MOUNTS if text.endswith(mount, 0, root))
        if root and text[root - 1] in _INSIDE and not _STARTS.search(text, max(0, root - 16), root):
            root = start
    if root == start or text[start] != "h":  # a drive may come before `Users`: C:/Users, /mnt/c/Users
        drive = _DRIVE.search(text, max(0, start - 48), start) if text[start - 2 : start - 1] in _ENDS_DRIVE else None
        if drive is None and root == start:
            return
        root = drive.start() if drive else root
    yield Found(root, name_at + len(name), "home")
