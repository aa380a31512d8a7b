"""Is this value a secret, or does it only stand where one could? Knows single values; knows no text around them.

A value after `password=` may be a literal, a variable, a call, a placeholder or a word of prose. Two independent signs decide:
its form (references and placeholders are never secrets) and its randomness (words are rarely tokens).
"""

import base64
import binascii
import re
from itertools import pairwise
from typing import NamedTuple


class Found(NamedTuple):
    """A half-open range of characters that has to go, and what it is."""

    start: int
    end: int
    kind: str


_REFERENCE = re.compile(
    r"""\$\w+[}\])]?\Z | \$[({] | \$env: | \{\{ | \#\{ | <[^<>]{1,60}> | \{[\w.!:,\- ]*\} | %\(\w+\) | %[-+\d.]*[sdvqwrx@](?![0-9A-Za-z])
    | %[A-Za-z_]\w*%\Z | \[REDACTED""",
    re.X,
)
_REFERS = re.compile(
    r"(?:\$[{(]|\$[A-Za-z_]\w*(?=[/:.-]|\Z)|%[A-Za-z_]\w*%|!(?:secret|vault|env|Ref|Sub|GetAtt|ENV)\b|[&*]\w+\Z|@\w+\Z|\.\.\.|…|\*\*\*|vault:|op://|file:|env[.:]|secrets\.|process\.env|\w+\$\Z)"
)
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+[!?]?\Z")
_URL = re.compile(r"[A-Za-z][\w+.-]{1,20}://")
_PATH = re.compile(
    r"(?:~|\.{1,2})?/[\w.@%+-]+(?:/|\Z)|[A-Za-z]:\\|[\w-]+(?:/[\w.-]+)*\.(?:pem|key|txt|json|ya?ml|env|py|go|js|ts|toml|ini|crt|cer)\Z"
)
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_OWN_WORDS = re.compile(r"(?i:password|passwd|passphrase|secret|token|credentials?|apikey|pass(?![a-z]))")  # also inside `mypassword`
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T_]\d\d[:.-]?\d\d[\d:.,+-]{0,20}Z?)?\Z")  # when it was made or ends, not what it is
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]+\Z")
_OPAQUE = re.compile(r"(?=(?:\D*\d){3})(?=(?:[^A-Za-z]*[A-Za-z]){3})[A-Za-z0-9_-]{20,}\Z")
_SPECIAL = re.compile(r"[!@#$%^&*~?+=]")
_ALNUM = re.compile(r"[A-Za-z0-9]+")

# Words that placeholders and examples are made of. A value of these words and small numbers alone is none.
_PLACEHOLDER = frozenset(
    "a abc abcd abcdef access account admin an any api app auth aws azure bar basic baz bearer bla bogus bool boolean bytes change changeme client "
    "com config correct credential credentials cred creds current data db default demo dev disabled dummy e2e empty enabled enter env example expected expired fake false field file "
    "foo for from github gitlab given got guest has hash hello here hidden id in incorrect insecure insert integration invalid is it item jwt key local localhost mask masked me "
    "missing mock must my mysql name new nil no nobody none not null number object of old omitted oauth one op optional or org other param pass passphrase passwd "
    "password passwort pg placeholder please postgres private prod production prompt public put pw pwd qux rabbit real redacted redis refresh removed replace required "
    "role root s3cret sample sandbox scrubbed secret secrets secure sensitive server service session sha shared should some something staging stored str string stub super "
    "supersecret temp test tested tester testing tests testuser the this three tmp to todo token tokens true try two type unknown unset update use user username "
    "value var variable via want word wrong x xx xxx xxxx y yes you your yyy z zzz".split()
)
# The commonest letter pairs of English and of identifiers: about 3 of 4 pairs in words, 1 of 6 in random letters.
_PAIRS = frozenset(
    "th he in er an re nd on en at ou ed ha to or it is hi es ng st nt ti as te se ve le ea me al ar ne ll ra ic ri ro li io co ma el ce de om ur ca ta la si "
    "ac di un ch ec et us ag sh il lo ee ss em id ge ol tr no ns ut ad pe pr so am po ke ey ho wi be ct rs mo ot po fo ex sc im ag ck ap pl sp ob ub if ur ul "
    "ow op tu su gr cl ab ef ir da ay ly wo ie fi do mp pa up ig qu ty od ev rt ts oo ef br cr fr ue ni na ci bl bu ds ga gi go ht ia iv ki ld lu mi ni nc nu ok os "
    "ov pi pu ru ry sa sk tt ug um vi wa wh ye ye ht ex".split()
)


def class_changes(text: str) -> float:
    """Share of neighbours that change between digit, upper and lower case; a capital before its word is no change."""
    changes = 0
    before = ""
    for c in text:
        now = "d" if c.isdigit() else "u" if c.isupper() else "l"
        if before and now != before and not (before == "u" and now == "l"):
            changes += 1
        before = now
    return changes / max(1, len(text) - 1)


def word_likeness(text: str) -> float:
    """Share of letter pairs that are common in words, in [0, 1]."""
    pairs = hits = 0
    for piece in _PIECES.findall(text):
        low = piece.lower()
        for a, b in pairwise(low):
            if a.isalpha():
                pairs += 1
                hits += a + b in _PAIRS
    # Digits between the letters leave few pairs, and chance then decides: at least half of the characters have to take part.
    return hits / max(pairs, sum(map(len, _ALNUM.findall(text))) // 2, 1)


def is_random(value: str, at_least: int = 10) -> bool:
    """True if `value` has at least so many letters and digits, and they look drawn rather than written."""
    core = "".join(_ALNUM.findall(value))
    if len(core) < at_least or len(set(core)) < 5:
        return False
    likeness = word_likeness(value)
    # Calibrated on 20,000 identifiers of public code (0.7 % pass) and on random strings of 16 (93 to 100 % pass, by alphabet).
    if class_changes(core) - 0.25 * likeness > 0.1:
        return True
    return likeness < (0.3 if len(core) < 24 else 0.42) and len(core) >= 16


def is_uuid(value: str) -> bool:
    """True for the 8-4-4-4-12 form."""
    return _UUID.match(value) is not None


def is_hex(value: str) -> bool:
    """True for hexadecimal digits alone: more often a digest than a secret."""
    return _HEX.match(value) is not None


def is_placeholder(value: str) -> bool:
    """True for `changeme`, `your-api-key-here`, `xxxxxxxx`, `AKIA...EXAMPLE`, `<password>`, `test-token-123`."""
    if len(set(value.lower())) <= 3 or "EXAMPLE" in value or "..." in value or "****" in value:
        return True
    pieces = _PIECES.findall(_OWN_WORDS.sub(" ", value))
    return all(p.lower() in _PLACEHOLDER or (p.isdigit() and (len(p) <= 4 or p in "1234567890")) for p in pieces)


def is_reference(value: str) -> bool:
    """True for what only names a secret: `$TOKEN`, `${{ secrets.X }}`, `cfg.token`, `<token>`, a URL, a path."""
    if _REFERENCE.search(value) or _REFERS.match(value) or _URL.match(value):
        return True
    if _DOTTED.match(value) or _PATH.match(value):
        return not is_random(value, 24)
    return False


def is_token(value: str, *, at_least: int = 10, digests: bool = True) -> bool:
    """True for an opaque credential. `digests` says whether hexadecimal and UUIDs count, as they do after `api_key=`."""
    if len(value) < at_least or is_reference(value) or is_placeholder(value) or _TIME.match(value):
        return False
    if is_uuid(value) or is_hex(value):
        return digests and len(value) >= 16 and not value.isdigit()
    if digests and _OPAQUE.match(value) and word_likeness(value) < 0.6:
        return True
    return is_random(value, at_least)


def is_password(value: str, *, bare_words: bool) -> bool:
    """True for a password that a person may have chosen. `bare_words`: letters alone count too, as in a shell assignment."""
    if len(value) < 6 or is_reference(value) or is_placeholder(value) or _TIME.match(value):
        return False
    if value.isdigit():
        return bare_words
    letters = value.isalpha()
    if letters or re.fullmatch(r"[A-Za-z]+(?:[_.-][A-Za-z]+)*", value):
        return is_random(value, 12) or (bare_words and letters and not value.isupper())
    if is_random(value, 12):
        return True
    if re.fullmatch(r"[A-Za-z_]+\d{0,3}", value):  # `password2`, `pw_old1`: variables; `Hunter42`: a password
        return not any(p.lower() in _PLACEHOLDER for p in _PIECES.findall(value)) and len(value) >= 7 and "_" not in value
    if re.fullmatch(r"[\d.,:]+\w{0,3}", value):  # a number, a version, a time
        return False
    return bool(_SPECIAL.search(value)) or is_random(value, 8) or bool(re.search(r"\d", value) and re.search(r"[A-Za-z]", value))


def _decoded(value: str) -> str | None:
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return plain.decode("ascii") if plain.isascii() and plain.decode("ascii").isprintable() else None


def is_text(value: str) -> bool:
    """True for base64 of readable text."""
    return _decoded(value) is not None


def is_login(value: str) -> bool:
    """True for base64 of `user:password`, unless both are placeholders."""
    plain = _decoded(value)
    return plain is not None and ":" in plain[1:-1] and not is_placeholder(plain)
