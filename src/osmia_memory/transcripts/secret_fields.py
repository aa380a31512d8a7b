"""Secrets that only their name gives away: `password=`, `"api_key":`, `Authorization:`, cookies, `--token`.

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
    is_placeholder,
    is_random,
    is_reference,
    is_token,
    is_uuid,
    matches,
)

_SUFFIX = r"(?:[_-]?(?:value|string|base64|b64|raw|prod|production|staging|dev|live|old|new|current|default|primary|secondary|text|plain|v?\d{1,2})){0,2}"
_BLANK = r"(?:[ \t]|\\u00a0)"
# What may stand between a name and its value, `low` case: quotes and brackets that close the name, a type, an assignment.
_BETWEEN = (
    r"(?:\\{0,3}[\"'`])?[\])]?(?:"
    rf"{_BLANK}{{0,8}}:{_BLANK}?&?(?:'static )?(?:str|string|text|bytes|any|secretstr|optional\[str\])(?: ?\| ?(?:none|null|undefined))?{_BLANK}?={_BLANK}?"
    rf"|{_BLANK}{{0,8}}(?:=>|:=|===?|!==?|[:=]|\\u003[ad]|\\uff1[ad]){_BLANK}{{0,8}}"
    r"|(?<=[\"'`]),\s{0,4}(?=[\"'`])"  # getenv("TOKEN", "value")
    r"|,?\\?[\sn]{1,24}-?\\{0,3}[\"']?value\\{0,3}[\"']?\s?[:=]\s?"  # name: TOKEN / value: x
    r"|,\\{0,3}[\"']value\\{0,3}[\"']\s?:\s?"
    r"|>(?=[^<>\s]+</)"  # <token>x</token>
    rf"|{_BLANK}is:?{_BLANK}{{1,4}}|{_BLANK}{{1,4}}-p ?)"
)


def _names(pattern: str, spaced: str) -> re.Pattern[str]:
    """`spaced`: what the value must look like where only blanks stand before it, as in `--token x` and in much prose."""
    return re.compile(
        rf"{pattern}{_SUFFIX}(?P<between>{_BETWEEN}|(?:\\{{0,3}}[\"'`])?{_BLANK}{{1,8}}(?={spaced}))(?P<value>)(?=\S)", re.ASCII
    )


_WORD = r"[\"'\\]{0,3}[a-z0-9]"
_WITH_DIGIT = r"[^\s0-9]{0,40}[0-9]"
_PASSWORD_NAMES = (("pass", _names(r"pass(?:w(?:or[dt])?s?|wd|phrase|code)?", _WORD)), ("pwd", _names(r"pwd", _WITH_DIGIT)))
_TOKEN_NAMES = tuple(
    (word, _names(word + more, _WITH_DIGIT))
    for word, more in (("key", "s?"), ("token", "s?"), ("secret", ""), ("cred", "(?:ential)?s?"), ("auth", ""))
)
_NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$-"
# A key is secret by what it opens; `public_key`, `cache_key`, `sort_key` and `monkey` are not.
_SECRET_KEY = re.compile(
    r"(?:api|secret|priv(?:ate)?|access|encrypt(?:ion)?|signing|sign|account|master|service|auth|admin|deploy|license|shared|subscription|app|application|client|consumer|"
    r"storage|webhook|hmac|aes|jwt|session|integration|ingest(?:ion)?|write|server|database|db|bot|root|user|org|project|team|host|security|cipher|crypt|licen[cs]e|registration|"
    r"openai|anthropic|google|stripe|algolia|mailgun|sendgrid|twilio|datadog|dd|azure|aws|gcp)[_. -]?\Z"
)
_NO_TOKEN = re.compile(
    r"(?:next|page|paging|continuation|sync|cursor|resume|watch|change|delta|cancel(?:lation)?|pad|eos|bos|unk|cls|mask|special|stop|start|end|public|min|max|num|total)[_. -]?\Z"
)
_NO_PASS = re.compile(r"(?:by|com|tres|sur|under|over|im|em|multi|single|one|two|first|second|last|both|all|low|high|band|no)\Z")
_ENV_NAME = re.compile(r"[A-Z][A-Z0-9_]*\Z")

_QUOTED = re.compile(r"[rbfu@]{0,2}(?P<q>\\{0,3}[\"'`])(?P<v>(?:(?!(?P=q))[^\n\r]){1,2000})(?P=q)")
_CUT = re.compile(r"[rbfu@]{0,2}\\{0,3}[\"'`]+")
_BARE = re.compile(r"(?:[!#-&(-+\--:=?-\[\]^_a-z{}~À-ɏͰ-ԯ])[^\s\"'`<>\\;&|,\u0530-\U0010ffff]{0,4096}")
_CALL = re.compile(r"[A-Za-z_$][\w.$:>?!-]*[(\[]")
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
    if not m or _CALL.match(m[0]):
        return None
    bare = m[0]
    while bare and bare[-1] in _TRAIL and not (bare[-1] == "!" and len(bare) < 24):
        if bare[-1] in ")]}" and bare.count({")": "(", "]": "[", "}": "{"}[bare[-1]]) >= bare.count(bare[-1]):
            break
        bare = bare[:-1]
    return Value(m.start(), m.start() + len(bare), bare, bool(cut)) if bare else None


def fields(text: str, low: str) -> Iterator[Found]:
    """Values of secret names. `low` is `text` in lower case, of equal length."""
    for literal, pattern in _PASSWORD_NAMES:
        for m in matches(literal, pattern, low):
            if found := _password(text, low, m):
                yield found
    for literal, pattern in _TOKEN_NAMES:
        for m in matches(literal, pattern, low):
            if found := _token(text, low, m):
                yield found


def _name_before(text: str, at: int) -> str:
    before = text[max(0, at - 48) : at]
    return before[len(before.rstrip(_NAME_CHARACTERS)) :]


def _by_space(between: str) -> bool:
    return not between.strip("\"'`\\ \t])") or between.strip().startswith(("is", "-p")) and not between.strip().startswith("is=")


def _password(text: str, low: str, m: re.Match[str]) -> Found | None:
    left = _name_before(text, m.start())
    word = low[m.start() : m.start("between")]
    if word in ("pass", "pwd"):
        capital = text[m.start()].isupper() and not left.isupper()
        if left and left[-1].isalpha() and (_NO_PASS.search(left.lower()) or not (capital or word == "pwd")):
            return None
    value = value_at(text, m.start("value"))
    if value is None:
        return None
    between = m["between"]
    option = left.startswith("-") and not left.strip("-").startswith("-")
    if _by_space(between) and not _by_space_is_assignment(text, m.start() - len(left), left, value, between):
        return None
    if word in ("pass", "pwd") and (value.text.isdigit() or value.text.startswith("/") or (not left and ":" in between)):
        return None
    name = left + text[m.start() : m.start("between")]
    spaced = between != between.strip() and not value.quoted
    shell = bool(_ENV_NAME.match(name.lstrip("-"))) or option or not value.quoted and "=" in between and not spaced
    if " " in value.text and not word.startswith("passphrase"):
        return None
    if is_password(value.text, bare_words=shell and not _is_code(text, value)):
        return Found(value.start, value.end, "password")
    return None


def _by_space_is_assignment(text: str, name_at: int, left: str, value: Value, between: str) -> bool:
    """`--password x`, `login u password x`, `sshpass -p x`, `PASSWORD 'x'`, `the password is x9!`; not prose."""
    if left.startswith("-"):
        return not value.text.startswith("-")
    if between.strip().startswith("-p"):
        return left.endswith("ssh")
    if re.search(r"\b(?:login|user|account|machine)\s+\S+\s+\Z", text[max(0, name_at - 160) : name_at]):
        return True
    if value.quoted:
        return " " not in value.text and bool(re.search(r"\d", value.text)) and is_password(value.text, bare_words=False)
    return is_random(value.text, 10) and not is_hex_or_uuid(value.text)


def is_hex_or_uuid(value: str) -> bool:
    """True for digests, commit names and UUIDs."""
    return is_uuid(value) or bool(re.fullmatch(r"(?:sha\d+[-:])?[0-9a-fA-F]+", value))


def _is_code(text: str, value: Value) -> bool:
    """A keyword argument: `connect(password=pw)`."""
    return text[value.end : value.end + 1] in ("(", ")", "[") or text[value.end : value.end + 2] == ", "


def _token(text: str, low: str, m: re.Match[str]) -> Found | None:
    left = _name_before(text, m.start())
    word = low[m.start() : m.start("between")]
    plain = left.lower()
    strong = True
    if word.startswith("tok"):
        if _NO_TOKEN.search(plain):
            return None
    elif word.startswith("key"):
        spaced = low[max(0, m.start() - 12) : m.start()]
        strong = bool(_SECRET_KEY.search(plain) or _SECRET_KEY.search(spaced))
        if not strong and not (
            _ENV_NAME.match(left + "KEY") and left.endswith("_") and not plain.endswith(("public_", "cache_", "primary_"))
        ):
            return None
    elif left and left[-1].isalpha() and word.startswith("auth") and not text[m.start()].isupper():
        return None
    value = value_at(text, m.start("value"))
    if value is None or " " in value.text:
        return None
    if _by_space(m["between"]):
        strict = not left.startswith("-") and not re.match(r"aws_|[a-z]+_[a-z_]+\Z", plain)
        if value.text.startswith("-") or not is_token(value.text, at_least=16 if strict else 10, digests=False):
            return None
        return Found(value.start, value.end, _kind(word))
    if word.startswith("auth") and is_login(value.text):
        return Found(value.start, value.end, "basic-auth")
    if is_token(value.text, at_least=10 if value.quoted or strong else 16, digests=strong and not word.startswith(("auth", "cred"))):
        return Found(value.start, value.end, _kind(word))
    return None


def _kind(word: str) -> str:
    return {"k": "key", "t": "token", "s": "secret", "c": "credential", "a": "auth"}[word[0]]


# --- headers and cookies ----------------------------------------------------------------------------------------------

_SCHEME = r"(?:bearer|basic|token|ssws|apikey|api-key|digest|negotiate|bot|key|oauth|sharedaccesssignature|genie[- ]?key)"
_AUTHORIZATION = re.compile(
    rf"authorization(?:\\{{0,3}}[\"'`])?\]?\s{{0,4}}(?:=>|[:=,]|\\u003a|\\uff1a)\s{{0,4}}(?:\\{{0,3}}[\"'`])?(?:(?P<scheme>{_SCHEME})\s+)?(?P<v>(?=[a-z0-9+/_~.-]))"
)
_BEARER = re.compile(r"bearer(?:\s|\\u00a0|%20|\+){1,4}(?P<v>(?=[a-z0-9]))")
_CREDENTIAL = re.compile(r"[A-Za-z0-9+/_~.:-]{8,4096}={0,3}")
_AWS_SIGNATURE = re.compile(r"ignature=(?P<v>[0-9a-f]{64})")
_COOKIE = re.compile(r"cookies?(?:\\{0,3}[\"'`])?\]?\s{0,4}[:=,]\s{0,4}(?:\\{0,3}[\"'`])?(?P<v>(?=[a-z0-9_]))")
_PAIRS = re.compile(r"[\w.$-]{1,64}=[^;\s\"'\\,]{1,4096}(?:;[ \t]?[\w.-]{1,64}(?:=[^;\s\"'\\,]{0,4096})?){0,40}", re.ASCII)
_PAIR = re.compile(r"([\w.$-]+)=([^;]*)", re.ASCII)
_SESSION_NAME = re.compile(r"sess|sid|auth|token|csrf|xsrf|jwt|login|remember|refresh|access", re.I)
_SESSION = re.compile(r"sess(?:ion)?(?:id)?=(?P<v>(?=[a-z0-9]))")
_CURL_USER = re.compile(r"-u(?:ser)?(?:[ =]|(?=[\"']))[\"']?(?P<user>[\w.@+-]{1,64}):(?P<v>(?=[^\s]))")


def headers(text: str, low: str) -> Iterator[Found]:
    """Credentials of HTTP headers, cookies and `curl --user`. `low` is `text` in lower case, of equal length."""
    for m in matches("authorization", _AUTHORIZATION, low):
        if (c := _CREDENTIAL.match(text, m.end())) and _is_credential(c[0], m["scheme"]):
            yield Found(c.start(), c.end(), "authorization")
    for m in matches("bearer", _BEARER, low):
        if (c := _CREDENTIAL.match(text, m.end())) and is_token(c[0], at_least=16):
            yield Found(c.start(), c.end(), "authorization")
    for m in matches("cookie", _COOKIE, low):
        if line := _PAIRS.match(text, m.end()):
            yield from _cookies(text, line.start(), line.end())
    for m in matches("sess", _SESSION, low):
        value = value_at(text, m.end())
        if value and is_token(value.text, at_least=16) and not is_uuid(value.text):
            yield Found(value.start, value.end, "cookie")
    if "curl" in low:
        for m in matches("-u", _CURL_USER, low):
            value = value_at(text, m.end())
            if value and is_password(value.text, bare_words=True) and not value.text.isdigit():
                yield Found(value.start, value.end, "basic-auth")


def _is_credential(value: str, scheme: str | None) -> bool:
    if is_reference(value) or is_placeholder(value):
        return False
    if scheme == "basic":
        return is_login(value) or is_random(value, 10)
    return is_token(value, at_least=10)


def _cookies(text: str, start: int, end: int) -> Iterator[Found]:
    for m in _PAIR.finditer(text, start, end):
        value = m[2].rstrip(" .)")
        named = _SESSION_NAME.search(m[1]) is not None
        if is_token(value, at_least=10 if named else 20):
            yield Found(m.start(2), m.start(2) + len(value), "cookie")
