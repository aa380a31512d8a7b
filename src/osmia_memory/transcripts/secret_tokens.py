"""Credentials that can be told by themselves: issuer prefixes, JWTs, private keys, webhooks, URLs, password hashes.

Speed decides the form: an alternation of all prefixes reads a text some fifty times slower than a search for one character, for which
CPython's `re` uses `memchr`. So prefixes are grouped by a literal that all of them end with; each group is one pattern that finds the
literal and looks back from it. Prefixes and lengths are the issuers' own, as documented or as public rule sets of scanners have them.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from osmia_memory.transcripts.secret_signs import Found, is_password, is_placeholder, is_random, is_token

_W = "[A-Za-z0-9]"
_URL = "[A-Za-z0-9_-]"  # the alphabet of URL-safe base64


class Issuer(NamedTuple):
    """`prefix` has a fixed width and ends with the group's literal; `body` follows. `inside`: unmistakable even inside a word."""

    kind: str
    prefix: str
    body: str
    inside: bool = False


class Group:
    """Issuers whose prefixes end with one literal, as one pattern."""

    def __init__(self, literal: str, ahead: str, *issuers: Issuer) -> None:
        # `ahead` is what every body begins with: it turns most candidates away before any prefix is looked at.
        bodies = "|".join(f"(?<={x.prefix})(?P<b{i}>{x.body})" for i, x in enumerate(issuers))
        self.literal = literal
        self.pattern = re.compile(f"{re.escape(literal)}(?={ahead})(?:{bodies})")
        self._prefixes = [re.compile(x.prefix + r"\Z") for x in issuers]
        self._issuers = issuers

    def found(self, text: str, m: re.Match[str]) -> Found | None:
        """The token of a match of `pattern`, with its prefix; None where a word runs into it."""
        i = int((m.lastgroup or "b0")[1:])
        prefix = self._prefixes[i].search(text, max(0, m.start() - 40), m.start(m.lastindex or 0))
        assert prefix
        if self._issuers[i].inside or starts_word(text, prefix.start()):
            return Found(prefix.start(), m.end(), self._issuers[i].kind)
        return None


_ESCAPE_END = re.compile(r"(?:\\[nrtbf]|\\u[0-9A-Fa-f]{4}|\x1b\[[0-9;]{0,12}m|%[2-7][0-9A-F])\Z")


def starts_word(text: str, at: int) -> bool:
    """True if no word runs into `at`; the letter that ends an escape (`\\n`, `\\u3042`, ESC[0m, %3D) belongs to none."""
    before = text[at - 1 : at]
    return not (before.isascii() and (before.isalnum() or before == "_")) or _ESCAPE_END.search(text, max(0, at - 16), at) is not None


_GROUPS = (
    Group(
        "_",
        "[A-Za-z0-9_-]{16}",
        Issuer("github", "gh[pousr]_", f"{_W}{{30,255}}", inside=True),
        Issuer("github", "github_pat_", "[A-Za-z0-9_]{50,255}", inside=True),
        Issuer("stripe", "[rs]k_(?:live|test|prod)_", f"{_W}{{16,255}}", inside=True),
        Issuer("stripe", "whsec_", "[A-Za-z0-9+/]{24,}={0,2}"),
        Issuer("npm", "npm_", f"{_W}{{36,}}"),
        Issuer("huggingface", "hf_", "[A-Za-z]{30,}"),
        Issuer("huggingface", "api_org_", "[A-Za-z]{30,}"),
        Issuer("digitalocean", "do[opr]_v1_", "[0-9a-f]{64}", inside=True),
        Issuer("shopify", "shp(?:at|ca|pa|ss)_", "[0-9a-fA-F]{32}", inside=True),
        Issuer("linear", "lin_api_", f"{_W}{{32,}}"),
        Issuer("linear", "lin_oauth_", f"{_W}{{32,}}"),
        Issuer("notion", "ntn_", f"{_W}{{40,}}"),
        Issuer("groq", "gsk_", f"{_W}{{40,}}"),
        Issuer("replicate", "r8_", f"{_W}{{37,}}"),
        Issuer("figma", "fig[dour]_", f"{_URL}{{36,}}"),
        Issuer("grafana", "glsa_", f"{_W}{{32}}_[0-9a-fA-F]{{8}}"),
        Issuer("grafana", "glc_", "[A-Za-z0-9+/]{32,}={0,2}"),
        Issuer("sentry", "sntry[su]_", "[A-Za-z0-9+/_=-]{40,}"),
        Issuer("docker", "dckr_[po]at_", f"{_URL}{{24,}}"),
        Issuer("planetscale", "pscale_(?:tkn|api)_", "[A-Za-z0-9._=-]{32,}"),
        Issuer("planetscale", "pscale_pw_", "[A-Za-z0-9._=-]{32,}"),
        Issuer("planetscale", "pscale_oauth_", "[A-Za-z0-9._=-]{32,}"),
        Issuer("supabase", "sbp_", "[0-9a-f]{40}"),
        Issuer("supabase", "sb_secret_", f"{_URL}{{20,}}"),
        Issuer("langchain", "lsv2_[ps][tk]_", "[0-9a-f]{32}_[0-9a-f]{8,}"),
        Issuer("rubygems", "rubygems_", "[0-9a-f]{48}"),
        Issuer("netlify", "nf[pcoub]_", f"{_W}{{36,}}"),
        Issuer("circleci", "CCIP(?:AT|RJ)_", f"{_W}{{22}}_[0-9a-f]{{40}}"),
        Issuer("sonar", "sq[uap]_", "[0-9a-f]{40}"),
        Issuer("nvidia", "nvapi_", f"{_URL}{{60,}}"),
        Issuer("api-token", "(?:aio|sgp|pnu|tfp|e2b|vcp)_", f"{_URL}{{32,}}"),
        Issuer("api-token", "(?:bkua|napi|rdme)_", f"{_URL}{{32,}}"),
        Issuer("api-token", "shippo_live_", f"{_W}{{32,}}"),
        Issuer("api-token", "duffel_live_", f"{_URL}{{40,}}"),
        Issuer("1password", "ops_", "eyJ[A-Za-z0-9+/=_-]{200,}"),
    ),
    Group(
        "-",
        "(?!---)[A-Za-z0-9_-]{16}",  # not in rulers: ----------
        Issuer("anthropic", "sk-ant-", f"{_URL}{{20,}}"),
        Issuer("openai", "sk-proj-", f"{_URL}{{20,}}"),
        Issuer("openai", "sk-(?:svcacct|service)-", f"{_URL}{{20,}}"),
        Issuer("openai", "sk-(?:admin|None1)-", f"{_URL}{{20,}}"),
        Issuer("openrouter", "sk-or-v1-", "[0-9a-f]{40,}"),
        Issuer("langfuse", "sk-lf-", f"{_URL}{{30,}}"),
        Issuer("openai", "sk-", f"{_W}{{32,}}"),
        Issuer("xai", "xai-", f"{_URL}{{60,}}"),
        Issuer("perplexity", "pplx-", f"{_URL}{{40,}}"),
        Issuer("tavily", "tvly-", f"{_URL}{{28,}}"),
        Issuer("nvidia", "nvapi-", f"{_URL}{{60,}}"),
        Issuer("gitlab", "gl(?:pat|cbt|ptt|imt|oas|rtr)-", "[A-Za-z0-9_-]{20,}(?:\\.[A-Za-z0-9_-]{2,12})*", inside=True),
        Issuer("gitlab", "gl(?:dt|rt|ft|wt)-", "[A-Za-z0-9_-]{20,}(?:\\.[A-Za-z0-9_-]{2,12})*"),
        Issuer("gitlab", "glagent-", f"{_URL}{{50,}}"),
        Issuer("slack", "xox[abceoprs]-", "[A-Za-z0-9-]{10,}", inside=True),
        Issuer("slack", "x(?:app|wfp)-", "\\d-[A-Za-z0-9-]{20,}"),
        Issuer("pypi", "pypi-", "AgE[A-Za-z0-9_-]{40,}", inside=True),
        Issuer("mailgun", "key-", "[0-9a-f]{32}(?![0-9a-f])"),
        Issuer("google", "GOCSPX-", f"{_URL}{{24,}}", inside=True),
        Issuer("square", "sq0(?:atp|csp|idp)-", f"{_URL}{{22,}}"),
        Issuer("newrelic", "NR(?:AK|JS|II|AA|RA)-", f"{_URL}{{19,}}"),
        Issuer("postman", "PMAK-", "[0-9a-f]{24}-[0-9a-f]{34}"),
        Issuer("tailscale", "tskey-", "[A-Za-z0-9-]{16,}"),
        Issuer("brevo", "xkeysib-", "[0-9a-f]{64}-[A-Za-z0-9]{16}"),
        Issuer("heroku", "HRKU-", f"{_URL}{{36,}}"),
        Issuer("pulumi", "pul-", "[0-9a-f]{40}"),
        Issuer("contentful", "CFPAT-", f"{_URL}{{40,}}"),
    ),
    Group(
        "A",
        "[A-Za-z0-9_-]{16}",
        Issuer("aws-access-key", "A", "(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Z0-9])"),
        Issuer("google", "A", f"Iza{_URL}{{35,}}"),
        Issuer("age", "A", "GE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{50,}", inside=True),
        Issuer("atlassian", "A", "T[AC]TT3[A-Za-z0-9_=-]{50,}"),
        Issuer("atlassian", "A", "TBB[A-Za-z0-9]{28,}"),
        Issuer("artifactory", "A", "KCp[A-Za-z0-9]{60,}"),
        Issuer("yandex", "A", "QVN[A-Za-z0-9_-]{35,}"),
        Issuer("telegram", "[0-9]{8}:A", f"A{_URL}{{32,}}", inside=True),
        Issuer("square", "EA", f"AA{_URL}{{50,}}"),
        Issuer("facebook", "EA", "A[A-Z][A-Za-z0-9]{90,}"),
    ),
    Group(
        ".",
        f"{_URL}{{16}}",
        Issuer("sendgrid", "SG\\.", f"{_URL}{{16,}}\\.{_URL}{{16,}}"),
        Issuer("vault", "hv[sbr]\\.", f"{_URL}{{24,}}"),
        Issuer("google", "ya29\\.", "[A-Za-z0-9_.-]{30,}"),
        Issuer("doppler", "dp\\.(?:pt|st|sa|ct)\\.", "[A-Za-z0-9._-]{40,}"),
        Issuer("dynatrace", "dt0[a-z]\\d\\d\\.", "[A-Z0-9]{24}\\.[A-Z0-9]{64}"),
        Issuer("mapbox", "[st]k\\.", f"eyJ{_URL}{{20,}}\\.{_URL}{{20,}}"),
        Issuer("discord", f"[MNO]{_URL}{{23}}\\.{_URL}{{6}}\\.", f"{_URL}{{27,}}"),
        Issuer("discord", f"[MNO]{_URL}{{25}}\\.{_URL}{{6}}\\.", f"{_URL}{{27,}}"),
    ),
    Group(
        "eyJ",
        f"{_URL}{{10}}",
        Issuer("jwt", "eyJ", rf"{_URL}{{10,}}\.{_URL}{{10,}}(?:(?:\.{_URL}{{10,}}){{3}}(?!{_URL})|\.{_URL}*)?", inside=True),
    ),
    Group("dapi", "[0-9a-f]{32}", Issuer("databricks", "dapi", "[0-9a-f]{32}(?:-[0-9])?", inside=True)),
    Group("~", "[A-Za-z0-9_.~-]{30}", Issuer("azure", "[A-Za-z0-9_~.-]{3}[0-9]Q~", "[A-Za-z0-9_.~-]{31,34}")),
    Group(
        "$",
        "[0-9a-z]",
        Issuer("password-hash", "\\$", "2[abxy]?\\$\\d\\d\\$[./A-Za-z0-9]{53}", inside=True),
        Issuer("password-hash", "\\$", "(?:apr1\\$[./A-Za-z0-9]{1,8}\\$[./A-Za-z0-9]{22}|[1567y]\\$[./A-Za-z0-9$=,]{20,})", inside=True),
        Issuer("password-hash", "\\$", "argon2(?:id?|d)\\$[A-Za-z0-9_$=,./+-]{40,}", inside=True),
    ),
)


def tokens(text: str) -> list[Found]:
    """Credentials with an issuer's prefix or an unmistakable form. A test double such as `ghp_xxxxxxxx` is none."""
    found: list[Found] = []
    for group in _GROUPS:
        if group.literal in text:
            for m in group.pattern.finditer(text):
                if (one := group.found(text, m)) and _is_varied(text[one.start : one.end]):
                    found.append(one)
    return found


def _is_varied(token: str) -> bool:
    return len(set(token)) > 8 and "EXAMPLE" not in token


# --- private keys -----------------------------------------------------------------------------------------------------

_MARKER = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_RUN = re.compile(r"[A-Za-z0-9+/=]{32,}")
# Lines of base64, also with escaped line ends and with what a viewer puts before them: line numbers, `+`, `>`, quotes
# (and `→` or `│`, which the caller has made `?`).
_BETWEEN = r"(?:\s|\\{1,4}[nrt]|[\"',>|+\-#:?]|\b\d{1,6}(?=[\t?:|]))"
_KEY_LINES = re.compile(
    rf"(?:{_BETWEEN}{{1,24}}(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]{{0,100}}){{0,4}}"
    rf"{_BETWEEN}{{0,24}}[A-Za-z0-9+/=]{{40,}}(?:{_BETWEEN}{{1,24}}[A-Za-z0-9+/=]{{40,}}){{0,400}}"
    rf"(?:{_BETWEEN}{{1,24}}(?:[A-Za-z0-9+/]{{16,39}}|[A-Za-z0-9+/]{{1,39}}=={{0,1}}))?"
)
_LONGEST_KEY = 20_000  # characters; an RSA key of 16,384 bits is 12,700


def private_keys(text: str) -> Iterator[Found]:
    """Whole PEM, OpenSSH and PGP blocks; of a block that was cut, the lines that are there."""
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
            yield from _tail_of_key(text, marks[i - 1].end() if i else 0, mark)


def _tail_of_key(text: str, after: int, end: re.Match[str]) -> Iterator[Found]:
    """The lines before an END whose BEGIN is not in the text, as `tail` prints them."""
    begin = max(after, end.start() - _LONGEST_KEY)
    for lines in _KEY_LINES.finditer(text, begin, end.start()):
        if not text[lines.end() : end.start()].strip("\\nr \t\r\n\"',>|+-#:?0123456789"):
            yield Found(lines.start() + len(lines[0]) - len(lines[0].lstrip()), end.end(), "private-key")


# --- addresses --------------------------------------------------------------------------------------------------------

_LOGIN = re.compile(r"://([^\s/@:\"'`<>\\()\[\]{}|]{0,128})(?::([^\s/\"'`<>\\]{1,512}))?@(?=[\w\[$%{<-])")
_HOOK = re.compile(
    r"hook(?:"
    r"s?\.slack\.com/(?:services|workflows|triggers)/(t[a-z0-9_/]{20,})"
    r"|s/(?<=/api/webhooks/)\d+/([a-z0-9_-]{40,})"
    r"|\.office\.com/webhookb?\d?/([\w@./-]{60,})"
    r"|s?/(?:[\w.-]{1,64}/){0,4}([a-z0-9_-]{20,})"
    r")",
    re.ASCII,
)
_SIGNED = re.compile(r"sig(?:nature)?=([a-z0-9%+/=_-]{16,})")
_BEFORE_SIGNED = re.compile(r"(?:[?&;]|,\s?|\\u0026|amp;)(?:x-(?:amz|goog)-)?\Z", re.I)


def addresses(text: str, low: str) -> Iterator[Found]:
    """Passwords in URLs, tokens of webhook URLs, signatures of pre-signed URLs. `low` is `text` in lower case, of equal length."""
    if "@" in text:
        for m in _LOGIN.finditer(text):
            user, password = m[1], m[2]
            if password and is_password(password, bare_words=True) and password != user:
                yield Found(m.start(2), m.end(2), "url-password")
            elif not password and is_token(user, at_least=20):
                yield Found(m.start(1), m.end(1), "url-password")
    if "hook" in low:
        for m in _HOOK.finditer(low):
            group = m.lastindex or 0
            token = text[m.start(group) : m.end(group)]
            if _is_varied(token) and (group < 4 or is_random(token, 20)):
                yield Found(m.start(group), m.end(group), "webhook")
    if "sig" in low:
        for m in _SIGNED.finditer(low):
            if _BEFORE_SIGNED.search(text, max(0, m.start() - 16), m.start()) and not is_placeholder(text[m.start(1) : m.end(1)]):
                yield Found(m.start(1), m.end(1), "signature")
