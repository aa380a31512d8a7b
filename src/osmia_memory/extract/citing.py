"""From the quotes of a proposal to evidence, or the reason why one of them is none. Pure."""

import re
from collections.abc import Sequence
from dataclasses import replace

from osmia_memory.extract.grounding import MIN_LETTERS, ground, ground_in, is_source, locate
from osmia_memory.extract.reasons import Reason
from osmia_memory.extract.view import MAX_QUOTE
from osmia_memory.extract.wire import QuoteV1
from osmia_memory.models import Evidence, Transcript


def cited(quotes: Sequence[QuoteV1], transcript: Transcript, most: int) -> tuple[Evidence, ...] | Reason:
    """Evidence for the first `most` telling quotes, each in the event that it cites. One that is not there is reason enough to trust none of them."""
    telling = [q for q in quotes if len("".join(q.text.split())) >= MIN_LETTERS][:most]
    if not telling:
        return "no quote"
    found: dict[tuple[int, int], Evidence] = {}
    for quote in telling:
        if not 0 <= quote.event < len(transcript.events):
            return "unknown event"
        evidence = ground_in(quote.text, transcript, quote.event)
        if evidence is None:
            return _why_not_there(quote.text, transcript)
        start, end = evidence.span[0], min(evidence.span[1], evidence.span[0] + MAX_QUOTE)
        found[quote.event, start] = replace(evidence, quote=evidence.quote[: end - start], span=(start, end))
    return tuple(found.values())


def _why_not_there(quote: str, transcript: Transcript) -> Reason:
    if locate(quote, transcript):
        return "wrong event"
    if any(not is_source(e) and ground(quote, e.text) for e in transcript.events):
        return "not the run's own text"
    return "stitched" if _is_stitched(quote, transcript) else "misquoted"


def _is_stitched(quote: str, transcript: Transcript) -> bool:
    """All of it stands in the run, in two to four passages."""
    words = re.sub(r"\.\.\.|…|\[\.\.\.\]", " ", quote).split()
    for _ in range(4):
        longest = next((n for n in range(len(words), 0, -1) if locate(" ".join(words[:n]), transcript)), 0)
        if not longest:
            return False
        words = words[longest:]
        if not words:
            return True
    return False
