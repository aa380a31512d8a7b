"""Credentials that can be told by themselves: issuer prefixes, JWTs, private keys, webhooks, URLs, password hashes.

A family is a cheap hint and the pattern behind it. Hints begin with one literal character or word, which CPython's `re` finds with
`memchr`; an alternation of all prefixes would read every text about ten times slower. Prefixes and lengths are the issuers' own,
as documented or as the public rule sets of gitleaks and betterleaks have them.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from osmia_memory.transcripts.secret_signs import Found, is_password, is_placeholder, is_random, is_token

# Not inside a word; but the letter of an escape (`\n`, `\u3042`, ESC[0m) is not part of one.
START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})|(?<=\x1b\[[0-9]m)|(?<=[0-9;][0-9]m)|(?<=%[2-7][0-9A-F]))"


class Family(NamedTuple):
    """Tokens that share a hint. Groups of `pattern` are named after the kind, with `_` for `-`."""

    hint: Callable[[str], object]
    pattern: re.Pattern[str]


def _family(hint: str, *kinds: str) -> Family:
    return Family(re.compile(hint).search, re.compile("|".join(kinds)))


_UNDERSCORE = _family(
    r"_[A-Za-z0-9_]{16}",
    r"(?P<github>gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{50,255})",
    r"(?P<stripe>[rs]k_(?:live|test|prod)_[A-Za-z0-9]{16,255}|whsec_[A-Za-z0-9+/=]{24,})",
    rf"(?P<npm>{START}npm_[A-Za-z0-9]{{36,}})",
    rf"(?P<huggingface>{START}(?:hf|api_org)_[A-Za-z]{{30,}}(?![a-z]*_))",
    r"(?P<digitalocean>do[opr]_v1_[0-9a-f]{64})",
    r"(?P<shopify>shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32})",
    r"(?P<linear>lin_(?:api|oauth)_[A-Za-z0-9]{32,})",
    rf"(?P<notion>{START}ntn_[A-Za-z0-9]{{40,}})",
    rf"(?P<groq>{START}gsk_[A-Za-z0-9]{{40,}})",
    rf"(?P<replicate>{START}r8_[A-Za-z0-9]{{37,}})",
    rf"(?P<figma>{START}fig[dour]_[A-Za-z0-9_-]{{36,}})",
    r"(?P<grafana>gl(?:sa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|c_[A-Za-z0-9+/]{32,}={0,2}))",
    r"(?P<sentry>sntry[su]_[A-Za-z0-9+/_=-]{40,})",
    r"(?P<docker>dckr_[po]at_[A-Za-z0-9_-]{24,})",
    r"(?P<planetscale>pscale_(?:pw|tkn|oauth)_[A-Za-z0-9._=-]{32,})",
    r"(?P<supabase>sb(?:p_[0-9a-f]{40}|_secret_[A-Za-z0-9_-]{20,}))",
    r"(?P<langchain>lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{8,})",
    r"(?P<rubygems>rubygems_[0-9a-f]{48})",
    rf"(?P<netlify>{START}nf[pcoub]_[A-Za-z0-9]{{36,}})",
    r"(?P<circleci>CCI(?:PAT|PRJ)_[A-Za-z0-9]{22}_[0-9a-f]{40})",
    rf"(?P<sonar>{START}sq[uap]_[0-9a-f]{{40}})",
    rf"(?P<api_token>{START}(?:aio|bkua|napi|nvapi|sgp|pnu|rdme|shippo|tfp|e2b|fw|glffct|vcp|cfut|duffel_(?:live|test)|ops_eyJ|atlasv1)_?[A-Za-z0-9_=-]{{32,}})",
)
_DASH = _family(
    r"-[A-Za-z0-9_-]{20}",
    rf"(?P<anthropic>{START}sk-ant-[A-Za-z0-9_-]{{20,}})",
    rf"(?P<openai>{START}sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{{20,}}|[A-Za-z0-9]{{20}}T3BlbkFJ[A-Za-z0-9]{{20}}|[A-Za-z0-9]{{48,}}))",
    rf"(?P<llm_key>{START}(?:sk-or-v1-|sk-lf-|xai-|pplx-|tvly-|fc-|nvapi-|csk-)[A-Za-z0-9_-]{{28,}}|{START}sk-[A-Za-z0-9]{{32,}})",
    r"(?P<gitlab>gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|rtr|wt)-[A-Za-z0-9_.-]{20,})",
    r"(?P<slack>xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{20,}|xwfp-[A-Za-z0-9-]{20,})",
    r"(?P<pypi>pypi-AgE[A-Za-z0-9_-]{40,})",
    rf"(?P<mailgun>{START}key-[0-9a-f]{{32}}(?![0-9a-f]))",
    r"(?P<google>GOCSPX-[A-Za-z0-9_-]{24,})",
    r"(?P<square>sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,})",
    r"(?P<newrelic>NR(?:AK|JS|II|AA|RA)-[A-Za-z0-9_-]{19,})",
    r"(?P<postman>PMAK-[0-9a-f]{24}-[0-9a-f]{34})",
    r"(?P<tailscale>tskey-(?:[a-z]+-)?[A-Za-z0-9]{10,}(?:-[A-Za-z0-9]+)*)",
    rf"(?P<api_token>{START}(?:xkeysib-[0-9a-f]{{64}}-[A-Za-z0-9]{{16}}|HRKU-[A-Za-z0-9_-]{{36,}}|pul-[0-9a-f]{{40}}|CFPAT-[A-Za-z0-9_-]{{40,}}|fio-u-[A-Za-z0-9_-]{{60,}}|"
    r"PRIVATE-AI-[A-Za-z0-9-]{20,}))",
)
_CAPITAL = _family(
    r"A(?:[KS]IA|BIA|CCA|Iza|GE-SEC|T[AC]TT|TBB|KCp|QVN)[A-Za-z0-9_-]{8}",
    r"(?P<aws_access_key>(?<![A-Z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9]))",
    r"(?P<google>AIza[A-Za-z0-9_-]{35,})",
    r"(?P<age>AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{50,})",
    r"(?P<atlassian>AT[AC]TT3[A-Za-z0-9_=-]{50,}|ATBB[A-Za-z0-9]{28,})",
    rf"(?P<api_token>{START}(?:AKCp[A-Za-z0-9]{{60,}}|AQVN[A-Za-z0-9_-]{{35,}}))",
)
_DOT = _family(
    r"\.[A-Za-z0-9_-]{16}",
    r"(?P<jwt>eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:(?:\.[A-Za-z0-9_-]{10,}){3}(?![A-Za-z0-9_-])|\.[A-Za-z0-9_-]*)?)",
    r"(?P<sendgrid>SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})",
    rf"(?P<vault>{START}hv[sbr]\.[A-Za-z0-9_-]{{24,}})",
    rf"(?P<google>{START}ya29\.[A-Za-z0-9_.-]{{30,}})",
    rf"(?P<api_token>{START}(?:dp\.(?:pt|st|sa|ct|scim|audit)\.[A-Za-z0-9._-]{{40,}}|dt0[a-z]\d\d\.[A-Z0-9]{{24}}\.[A-Z0-9]{{64}}|tk\.[a-z]{{2}}\.[A-Za-z0-9_-]{{30,}}))",
    rf"(?P<mapbox>{START}[st]k\.eyJ[A-Za-z0-9_-]{{20,}}\.[A-Za-z0-9_-]{{20,}})",
    rf"(?P<discord>{START}[MNO][A-Za-z0-9_-]{{23,27}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,}})",
)
FAMILIES = (
    _UNDERSCORE,
    _DASH,
    _CAPITAL,
    _DOT,
    _family(r":AA[A-Za-z0-9_-]{30}", r"(?P<telegram>(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,})"),
    _family(r"EAA[A-Za-z0-9_-]{40}", rf"(?P<square>{START}EAAA[A-Za-z0-9_-]{{50,}})", rf"(?P<facebook>{START}EAA[A-Z][A-Za-z0-9]{{90,}})"),
    _family(r"dapi[0-9a-f]{32}", r"(?P<databricks>dapi[0-9a-f]{32}(?:-\d)?)"),
    _family(r"Q~[A-Za-z0-9_.~-]{30}", r"(?P<azure>[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_.~-]{31,34})"),
    _family(
        r"\$[0-9a-z]{1,8}\$",
        r"(?P<password_hash>\$(?:2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}|apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|[1567y]\$[./A-Za-z0-9$=,]{20,}|argon2(?:id?|d)\$[\w$=,./+-]{40,}))",
    ),
)


def tokens(text: str) -> Iterator[Found]:
    """Credentials with an issuer's prefix or an unmistakable form."""
    for hint, pattern in FAMILIES:
        if hint(text):
            for m in pattern.finditer(text):
                # A test double such as `ghp_xxxxxxxx` is no secret, and worth reading.
                if m.lastgroup and len(set(m[0])) > 7 and "EXAMPLE" not in m[0]:
                    yield Found(m.start(), m.end(), m.lastgroup.replace("_", "-"))


# --- private keys -----------------------------------------------------------------------------------------------------

_MARKER = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_RUN = re.compile(r"[A-Za-z0-9+/=]{32,}")
# Lines of base64, also with escaped line ends and with what a viewer puts before them: line numbers, `+`, `>`, quotes.
_BETWEEN = r"(?:\s|\\{1,4}[nrt]|[\"',>|+\-#:→│]|\b\d{1,6}(?=[\t→:|]))"
_KEY_LINES = re.compile(
    rf"(?:{_BETWEEN}{{1,24}}(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]{{0,100}}){{0,4}}"
    rf"{_BETWEEN}{{0,24}}[A-Za-z0-9+/=]{{40,}}(?:{_BETWEEN}{{1,24}}[A-Za-z0-9+/=]{{40,}}){{0,400}}"
    rf"(?:{_BETWEEN}{{1,24}}(?:[A-Za-z0-9+/]{{16,39}}|[A-Za-z0-9+/]{{1,39}}=={{0,1}}))?"
)
_LONGEST_KEY = 20_000  # characters; an RSA key of 16,384 bits is 12,700


def private_keys(text: str) -> Iterator[Found]:
    """Whole PEM, OpenSSH and PGP blocks; of a block that was cut, the lines that are there."""
    if "PRIVATE KEY" not in text:
        return
    marks = list(_MARKER.finditer(text))
    for i, mark in enumerate(marks):
        if mark[1] == "BEGIN":
            end = marks[i + 1] if i + 1 < len(marks) and marks[i + 1][1] == "END" else None
            if end and end.start() - mark.end() <= _LONGEST_KEY:
                if _KEY_RUN.search(text, mark.end(), end.start()):
                    yield Found(mark.start(), end.end(), "private-key")
            elif lines := _KEY_LINES.match(text, mark.end(), mark.end() + _LONGEST_KEY):
                yield Found(mark.start(), lines.end(), "private-key")
        elif i == 0 or marks[i - 1][1] == "END":
            yield from _tail_of_key(text, mark)


def _tail_of_key(text: str, end: re.Match[str]) -> Iterator[Found]:
    """The lines before an END whose BEGIN is not in the text, as `tail` prints them."""
    begin = max(0, end.start() - _LONGEST_KEY)
    for lines in _KEY_LINES.finditer(text, begin, end.start()):
        if not text[lines.end() : end.start()].strip("\\nr \t\r\n\"',>|+-#:→│0123456789"):
            yield Found(lines.start() + len(lines[0]) - len(lines[0].lstrip()), end.end(), "private-key")


# --- addresses --------------------------------------------------------------------------------------------------------

_LOGIN = re.compile(r"://([^\s/@:\"'`<>\\()\[\]{}|]{0,128})(?::([^\s/\"'`<>\\]{1,512}))?@(?=[\w\[$%{<-])")
_HOOK = re.compile(
    r"hooks?\.slack\.com/(?:services|workflows|triggers)/(T[A-Za-z0-9_/]{20,})"
    r"|discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/([A-Za-z0-9_-]{40,})"
    r"|webhook\.office\.com/webhookb?\d?/([\w@./-]{60,})"
    r"|/[\w-]*hooks?/(?:[\w.-]+/){0,4}([A-Za-z0-9_-]{20,})",
    re.I,
)
_SIGNED = re.compile(r"(?:[?&;]|\\u0026)(?:sig|x-(?:amz|goog)-signature|signature|x-amz-security-token)=([A-Za-z0-9%+/=_-]{16,})", re.I)


def addresses(text: str) -> Iterator[Found]:
    """Passwords in URLs, tokens of webhook URLs, signatures of pre-signed URLs."""
    if "://" not in text and "hook" not in text:
        return
    if "@" in text:
        for m in _LOGIN.finditer(text):
            user, password = m[1], m[2]
            if password and is_password(password, bare_words=True) and password != user:
                yield Found(m.start(2), m.end(2), "url-password")
            elif not password and is_token(user, at_least=20):
                yield Found(m.start(1), m.end(1), "url-password")
    if "hook" in text:
        for m in _HOOK.finditer(text):
            group = m.lastindex or 0
            if group < 4 or is_random(m[4], 20):
                yield Found(m.start(group), m.end(group), "webhook")
    if "ignature=" in text or "sig=" in text:
        for m in _SIGNED.finditer(text):
            if is_random(m[1], 16) or not is_placeholder(m[1]):
                yield Found(m.start(1), m.end(1), "signature")
