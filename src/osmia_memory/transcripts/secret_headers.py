"""Credentials of HTTP: `Authorization` headers, bearer tokens, cookies, `curl --user`."""

import re
from collections.abc import Iterator

from osmia_memory.transcripts.secret_fields import value_at
from osmia_memory.transcripts.secret_signs import (
    Found,
    is_login,
    is_password,
    is_placeholder,
    is_random,
    is_reference,
    is_text,
    is_token,
    is_uuid,
)

_SCHEME = r"(?:bearer|basic|token|ssws|apikey|api-key|digest|negotiate|bot|key|oauth|sharedaccesssignature|aws4-hmac-sha256|genie[- ]?key)"
_AUTHORIZATION = re.compile(
    rf"authorization(?<![a-z]authorization)(?<!::authorization)(?:\\{{0,3}}[\"'`])?\]?\s{{0,4}}(?:=>|[:=,]|\\u003a|\\uff1a)\s{{0,4}}(?:\\{{0,3}}[\"'`])?(?:(?P<scheme>{_SCHEME})\s+)?(?=[a-z0-9+/_~.-])"
)
_BEARER = re.compile(r"bearer(?:\s|\\u00a0|%20|\+){1,4}(?=[a-z0-9])")
_CREDENTIAL = re.compile(r"[A-Za-z0-9+/_~.:-]{8,4096}={0,3}")
_COOKIE = re.compile(r"cookies?(?:\\{0,3}[\"'`])?\]?\s{0,4}[:=,]\s{0,4}(?:\\{0,3}[\"'`])?(?=[a-z0-9_])")
_PAIRS = re.compile(r"[\w.$-]{1,64}=[^;\s\"'\\,]{1,4096}(?:;[ \t]?[\w.-]{1,64}(?:=[^;\s\"'\\,]{0,4096})?){0,40}", re.ASCII)
_PAIR = re.compile(r"([\w.$-]+)=([^;]*)", re.ASCII)
_SESSION_NAME = re.compile(r"sess|sid|auth|token|csrf|xsrf|jwt|login|remember|refresh|access", re.I)
_SESSION = re.compile(r"sess(?:ion)?(?:id)?=(?=[a-z0-9])")
_FAR = 400  # characters between `curl` and its `--user`
_CURL_USER = re.compile(r"-u(?<=[\s\"'-]-u)(?:ser)?(?:[ =]|(?=[\"']))[\"']?([\w.@+-]{1,64}):(?=\S)")


def headers(text: str, low: str) -> Iterator[Found]:
    """Credentials of HTTP headers, cookies and `curl --user`. `low` is `text` in lower case, of equal length."""
    if "auth" in low:
        for m in _AUTHORIZATION.finditer(low):
            if (c := _CREDENTIAL.match(text, m.end())) and _is_credential(c[0], m["scheme"]):
                yield Found(c.start(), c.end(), "authorization")
    if "bearer" in low:
        for m in _BEARER.finditer(low):
            if (c := _CREDENTIAL.match(text, m.end())) and is_token(c[0], at_least=16):
                yield Found(c.start(), c.end(), "authorization")
    if "cookie" in low:
        for m in _COOKIE.finditer(low):
            if line := _PAIRS.match(text, m.end()):
                yield from _cookies(text, line.start(), line.end())
    if "sess" in low:
        for m in _SESSION.finditer(low):
            value = value_at(text, m.end())
            if value and is_token(value.text, at_least=16) and not is_uuid(value.text):
                yield Found(value.start, value.end, "cookie")
    if "curl" in low:
        for m in _CURL_USER.finditer(low):
            value = value_at(text, m.end()) if "curl" in low[max(0, m.start() - _FAR) : m.start()] else None
            if value and is_password(value.text, bare_words=True) and not value.text.isdigit():
                yield Found(value.start, value.end, "basic-auth")


def _is_credential(value: str, scheme: str | None) -> bool:
    if is_reference(value) or is_placeholder(value):
        return False
    if scheme == "basic":
        return is_login(value) or (is_random(value) and not is_text(value))
    return is_token(value, at_least=10)


def _cookies(text: str, start: int, end: int) -> Iterator[Found]:
    for m in _PAIR.finditer(text, start, end):
        value = m[2].rstrip(" .)")
        named = _SESSION_NAME.search(m[1]) is not None
        if is_token(value, at_least=10 if named else 20):
            yield Found(m.start(2), m.start(2) + len(value), "cookie")
