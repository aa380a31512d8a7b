"""Secrets that only their name gives away: `password=`, `"api_key":`, `--token`.

The name is found in a lower-case copy of the text, by patterns that begin with a literal (see `secret_tokens`); the value behind it
is read from the text itself, and `secret_signs` judges it.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from osmia_memory.transcripts.secret_signs import (
    Found,
    is_login,
    is_password,
    is_token,
)

_SUFFIX = r"(?:[_-]?(?:value|string|base64|b64|raw|prod|production|staging|dev|live|old|new|current|default|primary|secondary|text|plain|v?\d{1,2})){0,2}"
_BLANK = r"(?:[ \t]|\\u00a0)"
# What may stand between a name and its value, `low` case: quotes and brackets that close the name, a type, an assignment.
_BETWEEN = (
    r"(?:\\{0,3}[\"'`])?[\])]?(?:"
    rf"{_BLANK}{{0,8}}:{_BLANK}?&?(?:'static )?(?:str|string|text|bytes|any|secretstr|optional\[str\])(?: ?\| ?(?:none|null|undefined))?{_BLANK}?={_BLANK}?"
    rf"|{_BLANK}{{0,8}}(?:=>|:=|===?|!==?|[:=]|\\u003[ad]|\\uff1[ad]){_BLANK}{{0,8}}"
    r"|,?\\?[\sn]{1,24}-?\\{0,3}[\"']?value\\{0,3}[\"']?\s?[:=]\s?"  # name: TOKEN / value: x
    r"|,\\{0,3}[\"']value\\{0,3}[\"']\s?:\s?"
    r"|(?<=[\"'`]),\s{0,4}(?=[\"'`])"  # getenv("TOKEN", "value")
    r"|>(?=[^<>\s]+</)"  # <token>x</token>
    r"| (?:generated|created|issued|received|returned|rotated|used): ?"  # Token generated: x
    rf"|{_BLANK}is:?{_BLANK}{{1,4}}|{_BLANK}{{1,4}}-p ?)"
)


def _names(pattern: str, spaced: str) -> re.Pattern[str]:
    """`spaced`: what the value must look like where only blanks stand before it, as in `--token x` and in much prose."""
    return re.compile(rf"{pattern}{_SUFFIX}(?P<between>{_BETWEEN}|(?:\\{{0,3}}[\"'`])?{_BLANK}{{1,8}}(?={spaced}))(?=\S)", re.ASCII)


_WITH_DIGIT = r"[^\s0-9]{0,40}[0-9]"
_PASSWORDS = (("pass", _names(r"pass(?:w(?:or[dt])?s?|wd|phrase|code)?", r"[\"'\\]{0,3}[a-z0-9]")), ("pwd", _names(r"pwd", _WITH_DIGIT)))
_OTHERS = tuple(
    (literal, _names(name, _WITH_DIGIT))
    for literal, name in (("key", "keys?"), ("token", "tokens?"), ("secret", "secret"), ("cred", "cred(?:ential)?s?"), ("auth", "auth"))
)
_NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$-"
# A key is secret by what it opens; `public_key`, `cache_key`, `sort_key` and `monkey` are not.
_SECRET_KEY = re.compile(
    r"(?:api|secret|priv(?:ate)?|access|encrypt(?:ion)?|signing|sign|account|master|service|auth|admin|deploy|license|shared|subscription|app|application|client|consumer|"
    r"storage|webhook|hmac|aes|jwt|session|integration|ingest(?:ion)?|write|server|database|db|bot|root|user|org|project|team|host|security|cipher|crypt|licen[cs]e|registration|"
    r"openai|anthropic|google|stripe|algolia|mailgun|sendgrid|twilio|datadog|dd|azure|aws|gcp)[_. -]?\Z"
)
# Other tokens tell a request, a lock or a page; only what is random and no digest counts there.
_SECRET_TOKEN = re.compile(
    r"(?:api|auth|access|secret|bearer|personal|bot|deploy|refresh|session|service|admin|user|private|vault|github|gitlab|slack|telegram|twilio|npm|webhook|security|"
    r"registry|hub|account|csrf|xsrf|jwt|id|root|app|job|ci|oauth|login|reset|okta|circle|sentry|cloudflare)[_. -]?\Z"
)
_NO_TOKEN = re.compile(
    r"(?:next|page|paging|continuation|sync|cursor|resume|watch|change|delta|cancel(?:lation)?|pad|eos|bos|unk|cls|mask|special|stop|start|end|starting|public|public[_-]?key|min|max|num|total)[_. -]?\Z"
)
_NO_PASS = re.compile(r"(?:by|com|tres|sur|under|over|im|em|multi|single|one|two|first|second|last|both|all|low|high|band|no)\Z")
_OPEN_KEYS = ("PUBLIC_", "CACHE_", "PRIMARY_", "FOREIGN_", "SORT_", "PARTITION_")
_SNAKE = re.compile(r"[a-z]+_[a-z_]*\Z")  # `aws configure set aws_secret_access_key x`
_NETRC = re.compile(r"\b(?:login|user|account|machine)\s{1,40}\S{1,80}\s{1,40}\Z")
_KINDS = {"k": "key", "t": "token", "s": "secret", "c": "credential", "a": "auth"}
_ENV_NAME = re.compile(r"[A-Z][A-Z0-9_]*\Z")

_QUOTED = re.compile(r"[rbfu@]{0,2}(?P<q>\\{0,3}[\"'`])(?P<v>(?:(?!(?P=q))[^\n\r]){1,600})(?P=q)")
_CUT = re.compile(r"[rbfu@]{0,2}\\{0,3}[\"'`]+")
_BARE = re.compile(r"(?:[!#-&(-+\--:=?-\[\]^_a-z{}~À-ɏͰ-ԯ])[^\s\"'`<>\\;&|,\u0530-\U0010ffff]{0,4096}")
_CALL = re.compile(r"[({!*&]*[A-Za-z_$][\w.$:>?!-]*[(\[]")
_CODE = re.compile(r"\?\.|=>|===|==(?=[\w\"'])|&&|\|\|")
_CLOSED = re.compile(r"([A-Za-z_][\w.]*)[)}\]]")
_PROSE = re.compile(r" [a-z]+[ ,.]+[a-z]+\b")
_TRAIL = ".,;:!?)]}>"


class Value(NamedTuple):
    """What stands behind a name: characters [start, end) of the text."""

    start: int
    end: int
    text: str
    quoted: bool


def value_at(text: str, at: int) -> Value | None:
    """The quoted or bare value that begins at `at`; None where there is a call, a bracket or nothing."""
    if m := _QUOTED.match(text, at):
        return Value(m.start("v"), m.end("v"), m["v"], True)
    if cut := _CUT.match(text, at):  # the closing quote is not in the text
        at = cut.end()
    m = _BARE.match(text, at)
    if not m or _CALL.match(m[0]) or _CODE.search(m[0]) or (cut and m[0][0] in "+.,%)"):  # that quote closed: "password=" + value
        return None
    bare = m[0]
    if closed := _CLOSED.match(bare):  # Login{user: u, password: pw}
        bare = closed[1]
    while bare and bare[-1] in _TRAIL and not (bare[-1] == "!" and len(bare) < 24):
        if bare[-1] in ")]}" and bare.count({")": "(", "]": "[", "}": "{"}[bare[-1]]) >= bare.count(bare[-1]):
            break
        bare = bare[:-1]
    return Value(m.start(), m.start() + len(bare), bare, bool(cut)) if bare else None


class _Named(NamedTuple):
    """A name that may be a secret's, cut out of the text."""

    left: str  # what the identifier begins with: `DB_`, `--`, `user.`
    at: int  # where the word begins, after `left`
    word: str  # password, key, token, ..., with its suffix, lower case
    between: str
    value: Value


def fields(text: str, low: str) -> Iterator[Found]:
    """Values of secret names. `low` is `text` in lower case, of equal length."""
    for literal, pattern in _PASSWORDS:
        if literal in low:
            for m in pattern.finditer(low):
                if (named := _cut_out(text, low, m)) and _is_secret_password(text, named):
                    yield Found(named.value.start, named.value.end, "password")
    for literal, pattern in _OTHERS:
        if literal in low:
            for m in pattern.finditer(low):
                if (named := _cut_out(text, low, m)) and (kind := _kind_of_token(text, low, named)):
                    yield Found(named.value.start, named.value.end, kind)


def _cut_out(text: str, low: str, m: re.Match[str]) -> _Named | None:
    at = m.start()
    value = value_at(text, m.end())
    if value is None:
        return None
    before = text[max(0, at - 48) : at]
    outside = before.rstrip(_NAME_CHARACTERS)
    between = m["between"]
    if outside.endswith("::") or (outside.endswith(":") and "arn:" in text[max(0, at - 99) : at]):
        return None  # a type (`AWS::IAM::AccessKey`), a part of a longer name (`arn:aws:...:secret:x`)
    if "," in between and "value" not in between and not outside.rstrip("\\'\"`").endswith("("):
        return None  # a list of words; `getenv("TOKEN", "x")` has the name first
    return _Named(before[len(outside) :], at, low[at : m.start("between")], between, value)


def _by_space(between: str) -> bool:
    """True if nothing assigns: a blank, `is`, or `-p` stands before the value."""
    core = between.strip("\"'`\\ \t])")
    return core in ("", "is", "is:", "-p")


def _is_secret_password(text: str, named: _Named) -> bool:
    left, at, word, between, value = named
    if word in ("pass", "pwd"):
        capital = text[at].isupper() and not left.isupper()
        if left and left[-1].isalpha() and not left.endswith("ssh") and (_NO_PASS.search(left.lower()) or not (capital or word == "pwd")):
            return False
        if value.text.isdigit() or value.text.startswith("/") or (not left and ":" in between):
            return False
        if _by_space(between) and not left.startswith("-") and not left.endswith("ssh"):
            return False
    if _by_space(between) and not _by_space_is_assignment(text, named):
        return False
    if " " in value.text and not word.startswith("passphrase"):
        return False
    tight = between == between.strip() or value.quoted
    written = left + text[at : at + len(word)]
    shell = left.startswith("-") or _ENV_NAME.match(written) is not None or (not value.quoted and "=" in between and tight)
    if _by_space(between) or _PROSE.match(text, value.end):
        shell = False
    return is_password(value.text, bare_words=shell and not _is_argument(text, value))


def _by_space_is_assignment(text: str, named: _Named) -> bool:
    """`--password x`, `login u password x`, `sshpass -p x`, `PASSWORD 'x'`, `the password is x9!`; not prose."""
    left, value = named.left, named.value
    if left.startswith("-"):
        return not value.text.startswith("-")
    if "-p" in named.between:
        return left.endswith("ssh")
    name_at = named.at - len(left)
    if _NETRC.search(text, max(0, name_at - 160), name_at):
        return True
    if value.quoted:
        return " " not in value.text and any(map(str.isdigit, value.text)) and is_password(value.text, bare_words=False)
    return is_token(value.text, digests=False)


def _is_argument(text: str, value: Value) -> bool:
    """A keyword argument: `connect(password=pw)`."""
    return text[value.end : value.end + 1] in ("(", ")", "[") or text[value.end : value.end + 2] == ", "


def _kind_of_token(text: str, low: str, named: _Named) -> str | None:
    left, at, word, between, value = named
    if " " in value.text:
        return None
    plain = left.lower()
    strong = True
    if word.startswith("tok"):
        if _NO_TOKEN.search(plain):
            return None
        strong = not plain.strip("-_.") or _ENV_NAME.match(left) is not None or _SECRET_TOKEN.search(plain) is not None
    elif word.startswith("key"):
        strong = _SECRET_KEY.search(low, max(0, at - 14), at) is not None
        if not strong and not (left.endswith("_") and _ENV_NAME.match(left) and not left.endswith(_OPEN_KEYS)):
            return None
    elif word.startswith("auth") and left and left[-1].isalpha() and not text[at].isupper():
        return None
    kind = _KINDS[word[0]]
    if _by_space(between):
        at_least = 10 if left.startswith("-") or _SNAKE.match(plain) else 16
        return kind if is_token(value.text, at_least=at_least, digests=False) and not value.text.startswith("-") else None
    if word.startswith("auth") and is_login(value.text):
        return "basic-auth"
    at_least = 10 if value.quoted or strong else 16
    return kind if is_token(value.text, at_least=at_least, digests=strong and kind not in ("auth", "credential")) else None
