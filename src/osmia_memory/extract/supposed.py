"""Whether a proposal takes for granted what the run never speaks of: an artefact with a name, or one of the usual suspects. Pure.

A quote can stand where it is said to stand and be explained by something that was made up. Two forms of that can be checked by looking at
the run's words: "the index on `x`" where nothing ever puts an index beside `x`, and a cause from the short list of those that are blamed
without looking ("the time zone", "a race").
"""

import re
from collections.abc import Iterator

from osmia_memory.extract.said import SPEECH, Said

_NEAR = 160  # characters between an artefact and its name, as in one statement of SQL or one line of a file
_ARTEFACTS = (
    "index trigger constraint column table view cache lock mutex queue hook fixture alias flag option switch endpoint route migration job step "
    "target recipe variable decorator plugin wrapper subclass annotation override validator listener handler retry timeout"
).split()
_ARTEFACT = re.compile(
    rf"\b(?:the|its|an? existing|an? own) ({'|'.join(_ARTEFACTS)})(?:s|es)? (?:on|for|of|in|over|called|named) (?:the )?`([^`\s]+)`", re.I
)

# What is blamed: the words in a proposal -> a word of which at least one has to occur in the run.
_SUSPECTS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(rf"\b(?:{blamed})\b", re.I), re.compile(seen, re.I))
    for blamed, seen in (
        (r"time ?zones?|daylight saving|DST", r"time.?zone|tzinfo|zoneinfo|\btz\b|local.?time|utcoffset|daylight|\bDST\b"),
        (
            r"local time|(?:machine|system|server|host|computer)'?s? (?:own )?time ?zone",
            r"local.?time|tzlocal|astimezone\(\)|naive|utcoffset|daylight|\bTZ=|time\.tzname|timedatectl",
        ),
        (r"race conditions?|races?|racy|data races?", r"\brac(?:e|es|y|ing)\b|concurren|thread|parallel|simultaneous"),
        (r"deadlocks?|lock contention", r"deadlock|\block"),
        (r"memory leaks?|out of memory", r"memory|\bOOM\b|killed|\brss\b|heap"),
        (r"garbage collect(?:or|ion)", r"garbage|\bgc\b|weakref|finaliz"),
        (r"stale caches?|cached bytecode|the cache", r"cach|\.pyc\b|memoi"),
        (r"locale|collation", r"locale|\bLANG\b|\bLC_|collat|strcoll"),
        (r"line endings?|CRLF|carriage returns?", r"line.?ending|crlf|\\r|carriage|autocrlf|\r"),
        (r"file permissions?|umask", r"permission|umask|chmod|\bmode\b|denied|-[rwx-]{9}"),
        (r"case.(?:in)?sensitiv\w*", r"case.?(?:in)?sensitiv|ignorecase|lower|upper|casefold"),
        (r"symlinks?|symbolic links?", r"symlink|symbolic|readlink|realpath|\bln -s|->"),
        (r"clock skew|system clock", r"skew|clock|ntp"),
        (r"firewalls?|prox(?:y|ies)", r"firewall|proxy|proxies"),
        (r"floating.point|rounding errors?|float precision", r"float|decimal|round|precision|double|epsilon"),
        (r"integer overflow|overflows?", r"overflow|int(?:8|16|32|64)|max_?int|maxsize"),
        (r"hash randomi[sz]ation|hash seed", r"hash"),
        (r"circular imports?|import cycles?", r"circular|cycle|partially initialized"),
    )
)


def supposes(content: str, said: Said) -> bool:
    """It rests on an artefact or a cause of which neither the task nor any command, result, edit or person of the run has a word."""
    return any(not _stand_together(noun, name, said) for noun, name in _artefacts(content)) or any(
        blamed.search(content) and not seen.search(said.text) and not _told(seen, said) for blamed, seen in _SUSPECTS
    )


def _artefacts(content: str) -> Iterator[tuple[str, str]]:
    for match in _ARTEFACT.finditer(content):
        yield match[1].lower(), match[2]


def _stand_together(noun: str, name: str, said: Said) -> bool:
    """A word that begins like the artefact stands within one statement of the name."""
    begins = re.compile(rf"(?<![A-Za-z]){re.escape(noun[:4])}", re.I)
    places = re.finditer(re.escape(name), said.text)
    return any(begins.search(said.text, max(0, m.start() - _NEAR), m.end() + _NEAR) for m in places)


def _told(seen: re.Pattern[str], said: Said) -> bool:
    """The agent itself speaks of it in more than one place: a thing that the run was about."""
    events = (e for e in said.transcript.events if e.kind in SPEECH)
    return sum(bool(seen.search(e.text)) for e in events) > 1
