"""Words for what statistics found: a model may word a line better, and nothing else. Every number and name has to be the line's own."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from osmia_memory import prompting
from osmia_memory.budget import Budget
from osmia_memory.errors import CapReached
from osmia_memory.extract import wording
from osmia_memory.extract.wire import PhraseV1, ProfileV1
from osmia_memory.instructions import instruction_kind
from osmia_memory.llm import Completer, Completion, Request
from osmia_memory.models import EngineProfile, Pattern

MAX_REPLY_TOKENS = 600
MAX_SENTENCE = 240
MAX_ASKED = 20  # patterns of one command
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_CODE = re.compile(r"`[^`]+`|[\w.-]+/[\w./-]+|\w+(?:[._-]\w+)+|\b[a-z]+[A-Z]\w*|\b[A-Z]\w*(?:Error|Exception)\b")

Record = Callable[[str, Completion], None]  # (prompt id, completion): for the ledger


class Phrased(NamedTuple):
    """What a model made of some lines: how many it worded, and how many stay plain because a check refused the words or none came."""

    worded: int
    plain: int


def checked(sentence: str, given: str, redact: Callable[[str], str]) -> str | None:
    """The sentence on one line, if it says nothing that `given` does not hold; else None."""
    text = " ".join(sentence.split())
    if not 10 <= len(text) <= MAX_SENTENCE or redact(text) != text or wording.is_instruction(text) or instruction_kind(text) == "order":
        return None
    if set(_NUMBER.findall(text)) - set(_NUMBER.findall(given)):
        return None
    names = {m.strip("`").rstrip(".") for m in _CODE.findall(text)}
    return text if all(name in given for name in names) else None


def patterns(
    found: Sequence[Pattern], completer: Completer, budget: Budget, redact: Callable[[str], str], record: Record
) -> tuple[list[Pattern], Phrased]:
    """The patterns, each described by the model where its words hold. At most `MAX_ASKED` are asked about, those first in the list."""
    prompt = prompting.load("summarize_pattern", "v1")
    told: list[Pattern] = []
    worded = 0
    for number, pattern in enumerate(found):
        reply = None
        if number < MAX_ASKED:
            low, high = pattern.interval
            given = (
                f"{pattern.description}\nhits {pattern.hits}, runs {pattern.runs}, 95 % interval {low:.0%} to {high:.0%}, "
                f"first seen {pattern.first_seen:%Y-%m-%d}, last seen {pattern.last_seen:%Y-%m-%d}"
            )
            reply = _asked(prompt, given, completer, budget, record)
        sentence = checked(reply.sentence, given, redact) if isinstance(reply, PhraseV1) else None
        told.append(pattern if sentence is None else replace(pattern, description=sentence))
        worded += sentence is not None
    return told, Phrased(worded, len(found) - worded)


def profiles(
    found: Sequence[EngineProfile], completer: Completer, budget: Budget, redact: Callable[[str], str], record: Record
) -> tuple[list[EngineProfile], Phrased]:
    """The profiles, their strengths and weaknesses worded by the model where its words hold. Those without either are not asked about."""
    prompt = prompting.load("engine_profile", "v1")
    told: list[EngineProfile] = []
    worded = lines = 0
    for profile in found:
        lines += len(profile.strengths) + len(profile.weaknesses)
        if not profile.strengths and not profile.weaknesses:
            told.append(profile)
            continue
        rate = "" if profile.success_rate is None else f", {profile.success_rate:.0%} success"
        given = [f"{profile.engine}: {profile.sample_count} runs{rate}"]
        given += [f"strong: {line}" for line in profile.strengths] + [f"weak: {line}" for line in profile.weaknesses]
        reply = _asked(prompt, "\n".join(given), completer, budget, record)
        if not isinstance(reply, ProfileV1) or not _fits(reply, profile):
            told.append(profile)  # a sentence too many or too few: nobody knows which is which
            continue
        strong = _each(reply.strengths, profile.strengths, profile.engine, redact)
        weak = _each(reply.weaknesses, profile.weaknesses, profile.engine, redact)
        worded += sum(a != b for a, b in zip((*strong, *weak), (*profile.strengths, *profile.weaknesses), strict=True))
        told.append(replace(profile, strengths=strong, weaknesses=weak))
    return told, Phrased(worded, lines - worded)


def _fits(reply: ProfileV1, profile: EngineProfile) -> bool:
    return (len(reply.strengths), len(reply.weaknesses)) == (len(profile.strengths), len(profile.weaknesses))


def _each(sentences: Sequence[str], lines: Sequence[str], engine: str, redact: Callable[[str], str]) -> tuple[str, ...]:
    """Each line in the model's words where they hold."""
    return tuple(checked(s, f"{engine} {line}", redact) or line for s, line in zip(sentences, lines, strict=True))


def _asked(prompt: prompting.Prompt, record_text: str, completer: Completer, budget: Budget, record: Record) -> object:
    """The parsed reply; None if there is none. What was spent is recorded either way."""
    try:
        completion = completer.complete(Request(prompt.render(record=record_text), prompt.wire, MAX_REPLY_TOKENS), budget)
    except CapReached:
        return None
    record(prompt.id, completion)
    return completion.parsed if completion.state == "ok" else None
