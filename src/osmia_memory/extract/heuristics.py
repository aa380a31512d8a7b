"""The first pass: rules that need no model and no key. Pure: Transcript -> Extraction.

`RULES` lists every rule; `extract` runs them, drops what must never be stored and keeps at most `MAX_FACTS` a run.
"""

import re
from typing import NamedTuple

from osmia_memory import ids
from osmia_memory.extract import rule
from osmia_memory.extract.rules import (
    changes,
    conventions,
    cost,
    engines,
    failing_tests,
    how_to_test,
    own_scripts,
    people,
    preparing,
    refusals,
    sandbox,
    setup,
)
from osmia_memory.extract.view import view
from osmia_memory.models import Candidate, Discard, Transcript

RULES = (
    *how_to_test.RULES,
    *failing_tests.RULES,
    *setup.RULES,
    *preparing.RULES,
    *sandbox.RULES,
    *own_scripts.RULES,
    *cost.RULES,
    *changes.RULES,
    *conventions.RULES,
    *people.RULES,
    *engines.RULES,
    *refusals.RULES,
)
MAX_FACTS = 12  # of one run; more than that were never worth keeping in the runs that were read
_VERSIONS = ",".join(sorted(r.source for r in RULES))
EXTRACTOR = "heuristics@" + ids.content_id("", _VERSIONS)[1:9]  # a changed rule makes known runs due again


class Extraction(NamedTuple):
    """What one pass found in one run, and what it dropped with the reason."""

    candidates: tuple[Candidate, ...]
    discarded: tuple[Discard, ...]


def extract(transcript: Transcript) -> Extraction:
    """All rules over one run, strongest first, one candidate a fact."""
    seen_by = view(transcript)
    kept: dict[str, Candidate] = {}
    discarded: list[Discard] = []
    found = [c for r in RULES for c in rule.candidates(r, seen_by)]
    for candidate in sorted(found, key=lambda c: (-c.confidence, c.source, c.content)):
        key = ids.fact_id("", candidate.scope, candidate.owner, candidate.claim, candidate.content)
        reason = unfit(candidate, transcript)
        if reason is None and key in kept:
            reason = "said twice in this run"
        if reason is None and len(kept) >= MAX_FACTS:
            reason = f"beyond the {MAX_FACTS} strongest of this run"
        if reason is None:
            kept[key] = candidate
        else:
            discarded.append(Discard(candidate, reason))
    return Extraction(tuple(kept.values()), tuple(discarded))


_SECRET = re.compile(r"\[REDACTED:")
_ORDER = re.compile(
    r"\b(?:ignore (?:all |the )?(?:previous|above)|disregard|you are now|system prompt|curl [^|]*\| *(?:ba)?sh|disable (?:tls|ssl)|--no-verify)\b",
    re.I,
)


def unfit(candidate: Candidate, transcript: Transcript) -> str | None:
    """Why this must not be stored, None if it may."""
    text = candidate.content
    if _SECRET.search(text):
        return "names a masked secret"
    if _ORDER.search(text):
        return "reads like an instruction"
    if any(
        transcript.events[e.event_index].kind in ("injected_memory", "compaction", "system")
        for e in candidate.evidence
        if candidate.scope != "engine"
    ):
        return "rests on text that is not the run's own"
    if len(text) < 20:
        return "says nothing"
    return None


_NAMES = re.compile(r"[A-Za-z_][\w.-]*(?:/[\w.-]+)+|[A-Za-z_]\w*(?:[._-]\w+)+|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+")
_MAX_VOCABULARY = 400


def vocabulary(transcript: Transcript) -> list[str]:
    """Lower-case paths, symbols and command names that occur in this run's commands and edits, sorted.

    A later task text that names one of them is about this repository.
    """
    found: set[str] = set()
    for event in transcript.events:
        if event.kind == "command":
            found.update(m.lower() for m in _NAMES.findall(event.text[:2000]))
        for path in event.paths:
            found.add(path.lower())
            found.add(path.rsplit("/", 1)[-1].lower())
        if len(found) > _MAX_VOCABULARY * 4:
            break
    return sorted(n for n in found if 3 < len(n) < 80)[:_MAX_VOCABULARY]
