"""Masks secrets and personal names in text, before anything else sees it.

Every text that enters passes `Redactor.redact`. What a secret looks like is known by `secret_tokens` (by itself), `secret_fields` (by
its name) and `personal`; this module puts masks in their place. Measurements: `docs/decisions/0006-redaction.md`.
"""

import hmac
import json
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from osmia_memory.errors import RowError
from osmia_memory.transcripts import personal, secret_fields, secret_headers, secret_tokens
from osmia_memory.transcripts.secret_signs import Found

_GENERATION = 8_000_000  # characters
_DIGITS = 6
_PASSES = 4
_SHORTEST_TOKEN = 20  # an AWS access key id
_SHORTEST = 6  # of an e-mail address, a@b.io
_LINE_ENDS = re.compile(r"\\+[nrt]|\s")
_MASK = re.compile(r"\[REDACTED:[a-z0-9-]+:[0-9a-f]{6}\]")
# Hexadecimal ids, times, numbers, and encoded files: many strings of a transcript, and no secrets without a name beside them.
_PLAIN = re.compile(r"[0-9a-f:.TZ_ -]*\Z|[A-Za-z0-9+/=_-]{1200,}\Z")


_Masked = tuple[str, dict[str, int]]


class Redactor:
    """Replaces each secret by `[REDACTED:<kind>:<6 hex>]` and each home directory by `~`.

    The six digits are of HMAC-SHA256(key, secret): equal secrets get equal masks under one key, and nobody without it can test a
    guess. A home directory is named by no digits, so that what one person learned about `~/.cache` reads the same on another's
    machine. `counts` holds how many were masked, by kind (`github`, `password`, `email`, `home`, ...), over all calls.
    """

    def __init__(self, key: bytes) -> None:
        self.counts: Counter[str] = Counter()
        self._key = key
        # Two generations: a full young one becomes the old one, so that forgetting costs nothing. None: nothing to mask.
        self._young: dict[str, _Masked | None] = {}
        self._old: dict[str, _Masked | None] = {}
        self._room = _GENERATION

    def redact(self, text: str) -> str:
        """`text` without secrets; the same object where there is none. Applying it twice changes nothing."""
        if text in self._young:
            known = self._young[text]
        else:
            known = self._old[text] if text in self._old else self._redacted(text)
            self._remember(text, known)
        if known is None:
            return text
        for kind, count in known[1].items():
            self.counts[kind] += count
        return known[0]

    def _remember(self, text: str, result: _Masked | None) -> None:
        if len(text) > _GENERATION:
            return
        if len(text) > self._room:
            self._old, self._young, self._room = self._young, {}, _GENERATION
        self._room -= len(text)
        self._young[text] = result

    def _redacted(self, text: str) -> _Masked | None:
        """(text without secrets, how many by kind), or None where there is nothing to mask."""
        if len(text) < _SHORTEST or _PLAIN.match(text):
            return None
        counts: dict[str, int] = {}
        for _ in range(_PASSES):
            chosen, folded, origin = self._look(text)
            if not chosen:
                break
            text = self._masked(text, chosen, folded, origin)
            for one in chosen:
                counts[one.kind] = counts.get(one.kind, 0) + 1
            # A mask changes what stands beside its neighbours: look again. `~` does not.
            if counts.keys() == {"home"}:
                break
        return (text, counts) if counts else None

    def _look(self, text: str) -> tuple[list[Found], str, Sequence[int] | None]:
        folded, origin = (text, None) if text.isascii() else fold(text)
        return _choose(find(folded), folded), folded, origin

    def _masked(self, text: str, chosen: Iterable[Found], folded: str, origin: Sequence[int] | None) -> str:
        parts: list[str] = []
        at = 0
        for found in chosen:
            start, end = (found.start, found.end) if origin is None else (origin[found.start], origin[found.end - 1] + 1)
            parts += (text[at:start], self._mask(found.kind, folded[found.start : found.end]))
            at = end
        return "".join((*parts, text[at:]))

    def _mask(self, kind: str, secret: str) -> str:
        if kind == "home":
            return "~"
        if kind == "private-key":  # the same key with other line ends
            secret = _LINE_ENDS.sub("", secret)
        digest = hmac.digest(self._key, secret.encode("utf-8", "surrogatepass"), "sha256")
        return f"[REDACTED:{kind}:{digest.hex()[:_DIGITS]}]"


def find(text: str) -> list[Found]:
    """Everything that has to go, in order of trust: of two overlapping finds the earlier one names the kind."""
    # Names and tokens are ASCII, and one byte a character is searched twice as fast; lengths stay equal.
    plain = text if text.isascii() else text.encode("ascii", "replace").decode("ascii")
    low = plain.lower()
    found: list[Found] = []
    if "PRIVATE KEY" in plain:
        found += secret_tokens.private_keys(plain)
    if len(plain) >= _SHORTEST_TOKEN:
        found += secret_tokens.tokens(plain)
    if "://" in plain:
        found += secret_tokens.addresses(plain, low)
    found += secret_headers.headers(text, low)
    found += secret_fields.fields(text, low)
    if "@" in plain:
        found += personal.emails(text)
    if "home" in plain or "users" in low:
        found += personal.homes(text, low)
    return found


def _choose(found: Iterable[Found], text: str) -> list[Found]:
    """Finds that overlap neither each other nor a mask that stands already, in text order."""
    found = list(found)
    if not found:
        return []
    masks = [Found(m.start(), m.end(), "") for m in _MASK.finditer(text)] if "[REDACTED:" in text else []
    taken: list[Found] = []  # sorted, disjoint
    for one in (*masks, *found):
        at = bisect_left(taken, one)
        free = (at == 0 or taken[at - 1].end <= one.start) and (at == len(taken) or one.end <= taken[at].start)
        if free and one.start < one.end:
            taken.insert(at, one)
    return [one for one in taken if one.kind]


# --- folding ----------------------------------------------------------------------------------------------------------

_INVISIBLE = (
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_ALIKE = {
    **{chr(c): chr(c - 0xFEE0) for c in range(0xFF01, 0xFF5F)},
    **dict.fromkeys("\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    **dict.fromkeys("‘’‚‛‹›′", "'"),
    **dict.fromkeys("“”„‟«»″「」『』", '"'),
    **dict.fromkeys("‐‑‒−﹣", "-"),
    **dict.fromkeys("∶︰ː꞉", ":"),
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοАВЕКМНОРСТХаеорсухіѕ", "ABEZHIKMNOPTYXoABEKMHOPCTXaeopcyxis", strict=True)),
}
_LETTERS = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοАВЕКМНОРСТХаеорсухіѕ"
_FOLDED = re.compile(f"[{re.escape(''.join(_ALIKE))}]")
_HIDDEN = re.compile(f"[{_INVISIBLE}]")
_ASCII = bytes(range(128))
_ODD = re.compile(f"[{re.escape(''.join(_ALIKE))}{_INVISIBLE}]")


def fold(text: str) -> tuple[str, Sequence[int] | None]:
    """`text` with look-alikes replaced by ASCII and invisible characters left out.

    Also returns the index in `text` of each character that is left, or None where that is its own index.
    """
    if not _ODD.search(_beyond_ascii(text)):
        return text, None
    folded = _FOLDED.sub(_look, text)
    if not _HIDDEN.search(folded):
        return folded, None
    kept = array("I")
    at = 0
    for m in _HIDDEN.finditer(folded):
        kept.extend(range(at, m.start()))
        at = m.end()
    kept.extend(range(at, len(folded)))
    return _HIDDEN.sub("", folded), kept


def _beyond_ascii(text: str) -> str:
    """The characters that are none of ASCII: few, and bytes are thrown out a tenth of the time that `re` takes to pass over them."""
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


def _look(m: re.Match[str]) -> str:
    """A foreign letter is only folded beside an ASCII one: inside Greek or Russian prose it is what it seems to be."""
    c, text = m[0], m.string
    if c in _LETTERS and not any(n.isascii() and n.isalpha() for n in (text[m.start() - 1 : m.start()], text[m.end() : m.end() + 1])):
        return c
    return _ALIKE[c]


# --- as a filter ------------------------------------------------------------------------------------------------------


def redact_lines(lines: Iterable[str], write: Callable[[str], object], redactor: Redactor) -> None:
    """Read JSONL objects with a `text`, write as many objects {"text"} without secrets, in order.

    Raises:
        RowError: a line is no object with a string `text`; names the line (1-based).
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            text = json.loads(line)["text"]
        except (ValueError, KeyError, TypeError, RecursionError) as e:
            raise RowError(f'line {number}: expected a JSON object with "text", one a line') from e
        if not isinstance(text, str):
            raise RowError(f'line {number}: "text" is {type(text).__name__}; make it a string')
        write(json.dumps({"text": redactor.redact(text)}, ensure_ascii=False) + "\n")
