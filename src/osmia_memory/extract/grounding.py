"""Where a quote stands in the run. Pure: (quote, text) -> span in that text, or None.

A quote is found as it is, or after both sides are folded: quotation marks, dashes, white space, invisible characters, terminal colours,
look-alike letters and markdown are made equal. Case, digits, signs and words never are, and nothing may be skipped; so a passage that jumps
over text, or in which one word, number, flag or negation differs, is found nowhere. Knows nothing of claims: that a quote stands in the run
does not mean that it proves anything.
"""

import functools
import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from osmia_memory.models import Event, Evidence, QuoteStatus, Transcript

MIN_LETTERS = 8  # characters of a quote that are left after folding; fewer occur everywhere

# Never evidence: instructions, our own block, and what earlier sessions are said to have shown.
_NO_SOURCE: frozenset[str] = frozenset({"system", "compaction", "injected_memory"})


class Grounded(NamedTuple):
    """A place in a text: `text[start:end]` says what the quote says."""

    start: int
    end: int
    status: QuoteStatus


def ground(quote: str, text: str) -> Grounded | None:
    """The first place where `text` says `quote`, None where it does not.

    `status` is "exact" if the quote, without white space around it, stands there character by character. An ellipsis or quotation marks
    around the whole quote count as the writer's own where the text has none. A place that cuts a word, a number, a flag or a path at its end,
    or leaves out a "not" beside it, is passed over.
    """
    wanted = quote.strip()
    if not _says_something(wanted):
        return None
    for start in _occurrences(wanted, text):
        if _is_whole(text, start, start + len(wanted)):
            return Grounded(start, start + len(wanted), "exact")
    bare = _without_frame(wanted)
    found = _ground_folded(wanted, text)
    return found or (_ground_folded(bare, text) if bare != wanted and _says_something(bare) else None)


def ground_in(quote: str, transcript: Transcript, event_index: int) -> Evidence | None:
    """Evidence from exactly this event, None if it does not say `quote`, is no source of knowledge, or does not exist."""
    if not 0 <= event_index < len(transcript.events):
        return None
    event = transcript.events[event_index]
    found = ground(quote, event.text) if is_source(event) else None
    if found is None:
        return None
    run = transcript.run
    observed = event.ts or run.finished_at or run.started_at
    assert observed is not None, "readers give every run a time"
    span = (found.start, found.end)
    said = event.text[found.start : found.end]
    return Evidence(run.run_id, event.index, event.record, said, span, observed, found.status, origin=event.origin)


def locate(quote: str, transcript: Transcript) -> tuple[int, ...]:
    """Indices of all events that say `quote` and may be cited: an empty tuple means that the run says it nowhere."""
    return tuple(event.index for event in transcript.events if is_source(event) and ground(quote, event.text))


def is_source(event: Event) -> bool:
    """Whether what this event says may be evidence."""
    return event.kind not in _NO_SOURCE


def visible(text: str) -> str:
    """What a terminal shows of `text`: without colours, other commands and invisible characters. Quotes of it are found in `text`."""
    return _HIDDEN.sub("", text) if _UNSEEN.search(text) else text


# --- searching --------------------------------------------------------------------------------------------------------

_LAYOUTS = 3  # ways to fold it: white space alone, then emphasis as well, then marks of lists too
_WORD = re.compile(r"[^\W_]+")


def _ground_folded(wanted: str, text: str) -> Grounded | None:
    quote = _in_plain_letters(wanted).text
    if not _has_all(_WORD.findall(quote), _in_plain_letters(text).text):
        return None
    # A model that joins the lines of a list either keeps its marks or leaves them out, so one way of folding is not enough.
    for layout in range(_LAYOUTS):
        needle, page = _laid_out(quote, layout).text.strip(), _page(text, layout)
        for at in _occurrences(needle, page.text):
            span = page.original(at, at + len(needle))
            if span and _is_whole(text, *span):
                return Grounded(*span, "folded")
    return None


def _has_all(words: list[str], text: str) -> bool:
    """A quick no for most events: folding the layout takes nothing out of a word but markdown."""
    missing = [word for word in words if word not in text]
    plain = text.replace("`", "").replace("*", "") if missing else ""
    return all(word in plain for word in missing)


def _occurrences(needle: str, text: str) -> Iterator[int]:
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def _says_something(quote: str) -> bool:
    left = _laid_out(_in_plain_letters(quote).text, _LAYOUTS - 1).text.strip()
    return len(left) >= MIN_LETTERS and any(c.isalnum() for c in left)


_FRAMED = 2_000  # characters; the pattern below takes quadratic time over a run of spaces
_FRAME = re.compile(r"^(?:\[?(?:\.{3,}|…)\]?\s*)+|(?<![/\\.])(?:\s*(?:\[(?:\.{3,}|…)\]|\.{3,}|…))+$")
_PAIRS = {'"': '"', "'": "'", "“": "”", "„": "“”", "‘": "’", "«": "»", "`": "`"}


def _without_frame(quote: str) -> str:
    """Without an ellipsis at its ends, and without quotation marks around the whole; not where dots may stand for more of a path."""
    if len(quote) > _FRAMED:
        return quote
    if len(quote) > 2 and quote[-1] in _PAIRS.get(quote[0], ()):
        quote = quote[1:-1].strip()
    return _FRAME.sub("", quote).strip()


# --- quotes that begin too late or end too early ----------------------------------------------------------------------

_NEIGHBOURS = 200  # characters looked at on either side; the address of a terminal's link may stand between
_NOT_BEFORE = re.compile(r"(?:\b(?:not?|never|without|neither|nor|non|cannot)|n't)[*_`]*[\s_-]*[*_`]*$", re.I)
_NOT_AFTER = re.compile(r"(?:n?'t\b|[*_`]*\s+[*_`]*(?:not|never)\b)", re.I)
_NUMBER_BEFORE = re.compile(r"(?:\d[.,]|(?:^|[\s(=:,])-)$")
_NUMBER_AFTER = re.compile(r"[.,]\d")
_LONGER_AFTER = re.compile(r"[./-]?[^\W_]|[./-]?_+[^\W_]")  # `--fix` of `--fix-only`, `a.yaml` of `a.yaml.bak`, `src` of `src/a.c`
_ESCAPED_BREAK = re.compile(r"\\[nrt]")  # in JSON: `\nFAIL` begins with F


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether the passage cuts neither a word or number at its edge nor leaves out a negation that belongs to its first or last word."""
    before = _ESCAPED_BREAK.sub(" ", visible(text[max(0, start - _NEIGHBOURS) : start]).replace("’", "'"))
    after = _ESCAPED_BREAK.sub(" ", visible(text[end : end + _NEIGHBOURS]).replace("’", "'"))
    first, last = text[start], text[end - 1]
    if _in_word(first) and (_in_word(before[-1:]) or (before[-1:] == "-" and _in_word(before[-2:-1])) or _NOT_BEFORE.search(before)):
        return False
    if (first.isdigit() and _NUMBER_BEFORE.search(before)) or (first == "-" and before[-1:] == "-"):
        return False
    if last.isnumeric() and (_NUMBER_AFTER.match(after) or after[:1].isnumeric()):
        return False
    return not (_in_word(last) and (_NOT_AFTER.match(after) or (_LONGER_AFTER.match(after) and _in_word(after.lstrip("./-_")[:1]))))


def _in_word(c: str) -> bool:
    """Part of a word in a script that puts spaces between words, as those with capitals do."""
    return c.isnumeric() or c == "_" or c.lower() != c.upper()


# --- folding ----------------------------------------------------------------------------------------------------------


class _Edit(NamedTuple):
    """Replaces `[start, end)` of a text."""

    start: int
    end: int
    by: str


class _Folded(NamedTuple):
    """A text after edits, and for each of its characters where the passage of the original begins and ends that it stands for."""

    text: str
    starts: "array[int]"
    ends: "array[int]"

    @classmethod
    def of(cls, text: str) -> "_Folded":
        """The text as it is."""
        return cls(text, array("I", range(len(text))), array("I", range(1, len(text) + 1)))

    def edited(self, edits: Iterable[_Edit]) -> "_Folded":
        """After `edits`, which are in order and do not overlap."""
        parts: list[str] = []
        starts, ends = array("I"), array("I")
        at = 0
        for start, end, by in (*edits, _Edit(len(self.text), len(self.text), "")):
            parts += (self.text[at:start], by)
            starts += self.starts[at:start]
            ends += self.ends[at:start]
            if by:
                starts.extend([self.starts[start]] * len(by))
                ends.extend([self.ends[end - 1]] * len(by))
            at = end
        return _Folded("".join(parts), starts, ends)

    def original(self, start: int, end: int) -> tuple[int, int] | None:
        """The span in the original; None if it would begin or end within what replaced one character."""
        starts, ends = self.starts, self.ends
        if (start and starts[start] == starts[start - 1]) or (end < len(ends) and ends[end] == ends[end - 1]):
            return None
        return starts[start], ends[end - 1]


@functools.lru_cache(maxsize=8)  # several quotes are from one event
def _page(text: str, layout: int) -> _Folded:
    return _laid_out(_in_plain_letters(text), layout)


# --- look-alikes ------------------------------------------------------------------------------------------------------

_ALIKE: dict[str, str] = {
    **dict.fromkeys("‘’‚‛ʹʼʻˈ′‵´＇", "'"),
    **dict.fromkeys("“”„‟″‶〝〞＂«»", '"'),
    **dict.fromkeys("‐‑‒–—―−﹘﹣－⁃", "-"),
    "…": "...",
    # Letters of other scripts that look like an ASCII one in most typefaces; a word is folded whole, so both sides stay comparable.
    **dict(zip("АВЕЅІЈКМНОРСТУХасеһіјӏорԛѕԝхуԁѵ", "ABESIJKMHOPCTYXacehijlopqswxydv", strict=True)),
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοινρ", "ABEZHIKMNOPTYXoivp", strict=True)),
    **dict(zip("ıɡɑ", "iga", strict=True)),
}

# Colours and other commands to the terminal; a hyperlink's address is not shown by it.
_ANSI = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)|[@-Z\\^_])?"
_CONTROL = r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # but for what counts as white space
_INVISIBLE = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff"
_ACCENTS = "\u0300-\u036f"

_UNSEEN = re.compile(f"[{_CONTROL}{_INVISIBLE}]")
_HIDDEN = re.compile(f"{_ANSI}|{_UNSEEN.pattern}")
_ODD = re.compile(rf"(?P<hidden>{_HIDDEN.pattern})|[^\x00-\x7f][{_ACCENTS}]*|[\x00-\x7f][{_ACCENTS}]+")


@functools.lru_cache(maxsize=8)
def _in_plain_letters(text: str) -> _Folded:
    """Without terminal commands and invisible characters, and with look-alikes as the characters they look like."""
    page = _Folded.of(text)
    if text.isascii() and not _UNSEEN.search(text):
        return page
    pieces = ((match, "" if match["hidden"] else _canonical(match[0])) for match in _ODD.finditer(text))
    return page.edited(_Edit(*match.span(), by) for match, by in pieces if by != match[0])


@functools.lru_cache(maxsize=4096)
def _canonical(piece: str) -> str:
    """What `piece`, one character and its accents, looks like. Letters get their accents before they are looked up: "й" is no "и"."""
    folded = unicodedata.normalize("NFKC", piece)
    # Neither a digit of a power or a fraction (10² is not 102) nor a space of an accent.
    if folded[0].isspace() or (any(c.isnumeric() for c in folded) and not piece[0].isdecimal()):
        folded = unicodedata.normalize("NFC", piece)
    return _ALIKE.get(piece) or "".join(_ALIKE.get(c, c) for c in folded)


# --- layout -----------------------------------------------------------------------------------------------------------

_SPACE = re.compile(r" ?(?:[^\S ]|(?<= ) )\s*")
_EMPHASIS = re.compile(
    r"(?P<ticks>`+)"
    r"|(?<![\w*/\\])(?P<bold>\*\*)(?=[^\s*/][^*]{0,400}(?<=[^\s*])\*\*(?![\w*]))"
    # Letters only: in `*.py` or `a*b*c` a star is part of what is said.
    r"|(?<![\w*/\\.'\"=])(?P<italic>\*)(?=[A-Za-z](?:[A-Za-z' -]*[A-Za-z])?\*(?![\w*./]))"
)
# Numbers of lists stay, and so do `+` and headings: they say something in other texts.
_LINE_MARK = re.compile(r"^(?:[ \t]*(?:>|[-*•‣◦▪])(?= [^\s\d]|(?<=>)[ \t]*$| [>*•-] ) ?)+", re.M)


def _laid_out(text: str | _Folded, layout: int) -> _Folded:
    """The text in one line with single spaces, and without markdown as far as `layout` says."""
    page = _Folded.of(text) if isinstance(text, str) else text
    edits = [_Edit(*match.span(), "") for match in _LINE_MARK.finditer(page.text)] if layout == 2 else []
    edits += _emphasis(page.text) if layout else []
    if edits:
        page = page.edited(_disjoint(sorted(edits)))
    return page.edited(_Edit(*match.span(), " ") for match in _SPACE.finditer(page.text))


def _emphasis(text: str) -> Iterator[_Edit]:
    for match in _EMPHASIS.finditer(text):
        yield _Edit(*match.span(), "")
        if match.lastgroup != "ticks":
            close = text.index(match[0], match.end())
            yield _Edit(close, close + len(match[0]), "")


def _disjoint(edits: Iterable[_Edit]) -> Iterator[_Edit]:
    reached = 0
    for edit in edits:
        if edit.start >= reached:
            reached = edit.end
            yield edit
