"""The digest of a run that a model reads: a transcript and a token budget -> parts that fit it. Pure; knows nothing of prompts or models.

A part begins with what the run was about and how it ended; below stand its events (`passages`). Long texts are cut before anything else, the
sooner the less they tell. Of a run too long even for that, whole events are left out, never those at its beginning and end.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from osmia_memory.extract.grounding import visible
from osmia_memory.extract.passages import INDENT, USER, Passage, one_line, passages, shown
from osmia_memory.models import TaskRun, Transcript

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One part of a run's digest."""

    number: int  # from 1
    of: int
    text: str
    events: frozenset[int]  # indices of the events shown, whole or cut
    tokens: int  # of `text`


def window(transcript: Transcript, count: Count, *, budget_tokens: int = 12_000, max_chunks: int = 12) -> tuple[Chunk, ...]:
    """The digest of `transcript` in at most `max_chunks` parts, each of at most `budget_tokens` by `count`; none if nothing may be shown.

    There are as few parts as the shortest digest needs that still leaves something of every event, and then as much text as fits into these.
    `count` gives the tokens of a text; it is asked for a sample, for each event shown and for each part, sometimes twice.

    Raises:
        ValueError: the budget is too small for the head of a part and an event, or `max_chunks` is not positive.
    """
    if max_chunks < 1:
        raise ValueError(f"`max_chunks` is {max_chunks!r}; a digest has at least one part")
    events = passages(transcript)
    if not events:
        return ()
    density = _density(events, count)
    head = _Head.of(transcript, events, int(budget_tokens * _TASK_SHARE / density))
    room = budget_tokens - count(head.text(max_chunks, max_chunks, events[-1:]))
    while room >= budget_tokens // 4:
        parts = _fill(events, _Room(room, max_chunks, density), functools.cache(count))
        chunks = tuple(_chunk(head, n, len(parts), part, count) for n, part in enumerate(parts, 1))
        over = max((chunk.tokens for chunk in chunks), default=0) - budget_tokens
        if chunks and over <= 0:
            return chunks
        room -= max(over, room // 50, 1)  # tokens of the pieces do not add up to those of the whole for every tokenizer
    raise ValueError(f"`budget_tokens` is {budget_tokens!r}; that leaves no room for events below the head of a part")


# --- the head of a part -----------------------------------------------------------------------------------------------

_TASK_SHARE = 0.1  # of the budget, for the task's description in each part


class _Head(NamedTuple):
    """What every part says of the run."""

    run: TaskRun
    task: str
    told_at: int  # the event that gives the task in full; -1 if none does
    files: tuple[str, ...]
    last: int  # index of the last event

    @classmethod
    def of(cls, transcript: Transcript, events: Sequence[Passage], room: int) -> "_Head":
        """The head of the transcript's parts, with about `room` characters of the task's description."""
        task = transcript.run.description
        for event in transcript.events:
            if event.kind == "injected_memory":
                task = task.replace(event.text, "")
        task = visible(task).strip()
        told_at = next((p.at for p in events if p.role is USER and task[:400] in p.text), -1) if task else -1
        cut = shown(Passage(0, 0, "Task", task, USER, 0), room).removeprefix("Task:").strip() if task else ""
        files = dict.fromkeys(one_line(path, 80) for e in transcript.events if e.kind == "file_edit" for path in e.paths)
        return cls(transcript.run, cut, told_at, tuple(files)[:12], len(transcript.events) - 1)

    def text(self, number: int, of: int, events: Sequence[Passage]) -> str:
        """The head of part `number`, which shows these events."""
        run, outcome = self.run, self.run.outcome
        lines = [one_line(f"Run of {run.engine}{f' ({run.model})' if run.model else ''} on {run.repo or 'an unknown repository'}", 200)]
        known = [(name, getattr(run.environment, name)) for name in ("os", "shell", "sandbox", "interpreter")]
        if any(value for _, value in known):
            lines.append("Environment: " + ", ".join(f"{name} {one_line(value, 80)}" for name, value in known if value))
        lines.append(f"Task: {self._task({p.at for p in events})}")
        signals = [f"{s.name}: {one_line(s.value, 120)}{'' if s.event_index is None else f' at [{s.event_index}]'}" for s in run.signals]
        lines.append(f"Outcome: {outcome} ({'; '.join(signals)})" if signals else f"Outcome: {outcome}")
        if self.files:
            lines.append(f"Files edited: {', '.join(self.files)}")
        below = "the whole run" if of == 1 else f"part {number} of {of}{', the end of the run' if number == of else ''}"
        lines.append(f"Below: {below}, events {events[0].at} to {events[-1].at}" + ("" if of == 1 else f" of {self.last}"))
        return "\n".join(lines) + "\n\n"

    def _task(self, seen: set[int]) -> str:
        """The task's title, and its description where no event below gives it."""
        title, told = one_line(self.run.title, 200), "" if self.told_at in seen else self.task
        if not told or not title or told.startswith(title.rstrip(" …")):
            return told or title or "not known"
        return f"{title}\n{INDENT}{told}"


# --- fitting the budget -----------------------------------------------------------------------------------------------


class _Room(NamedTuple):
    """What there is to fill: parts of `tokens` each; `density` is tokens a character."""

    tokens: int
    parts: int
    density: float

    def characters(self, passage: Passage, share: float) -> int:
        """Characters of the passage's text to show; no more than a third of a part."""
        return min(passage.role.length(share), int(self.tokens / self.density / 3))

    def estimate(self, passages: Sequence[Passage], share: float) -> float:
        """Tokens that the passages will about take."""
        return self.density * sum(min(len(p.text), 1.1 * self.characters(p, share)) + len(p.label) + _MARK for p in passages)


class _Block(NamedTuple):
    """A passage as it will stand in its part."""

    passage: Passage
    text: str
    tokens: int


_SAMPLES, _SAMPLE = 60, 400
_MARK = 10  # characters around a passage
_SHARES = (2.0, 1.0, 0.7, 0.5, 0.35, 0.25, 0.17, 0.12, 0.08, 0.0)
_GOLDEN = (math.sqrt(5) - 1) / 2  # multiples of it, modulo 1, are spread evenly however many are taken


def _chunk(head: _Head, number: int, of: int, part: Sequence[_Block], count: Count) -> Chunk:
    text = head.text(number, of, [b.passage for b in part]) + "".join(b.text for b in part)
    return Chunk(number, of, text, frozenset(b.passage.at for b in part), count(text))


def _density(events: Sequence[Passage], count: Count) -> float:
    """Tokens a character, from one sample of all events."""
    step = max(1, len(events) // _SAMPLES)
    sample = "".join(f"{p.label}: {p.text[:_SAMPLE]}\n" for p in events[::step])
    return max(count(sample), 1) / len(sample)


def _fill(events: Sequence[Passage], room: _Room, count: Count) -> list[list[_Block]]:
    """The blocks of each part: as few parts as will do, and the most text that fits into these; none if not one event fits."""
    for kept, parts in _choices(events, room):
        for share in _SHARES:
            if share and room.estimate(kept, share) > parts * room.tokens:
                continue
            packed = _packed(_blocks(kept, events, share, room, count), parts, room.tokens)
            if len(packed) <= parts:
                return packed
    raise AssertionError("the last choice is to keep nothing")


def _choices(events: Sequence[Passage], room: _Room) -> Iterator[tuple[Sequence[Passage], int]]:
    """Events to keep and parts to spread them over, the best first: all in ever more parts, then ever fewer in as many as there may be."""
    for parts in range(math.ceil(room.estimate(events, 0) / room.tokens), room.parts + 1):
        yield events, parts
    kept = events
    share = 0.95
    while kept:
        kept = _thinned(events, room, share)
        yield kept, room.parts
        share *= 0.9


def _thinned(events: Sequence[Passage], room: _Room, share: float) -> list[Passage]:
    """The events that are kept of a run too long for all: by rank, and within one rank evenly over the run."""
    left = room.parts * room.tokens * share
    kept: list[Passage] = []
    for _, passage in sorted(enumerate(events), key=lambda item: (item[1].rank, item[0] * _GOLDEN % 1)):
        tokens = room.estimate([passage], 0) + _MARK * room.density
        if tokens <= left:
            left -= tokens
            kept.append(passage)
    return sorted(kept)


def _blocks(kept: Sequence[Passage], events: Sequence[Passage], share: float, room: _Room, count: Count) -> list[_Block]:
    """The passages as text; each tells of events before it that were left out for want of room."""
    places = {p.at: n for n, p in enumerate(events)}
    blocks: list[_Block] = []
    before = -1
    for passage in kept:
        gone = places[passage.at] - before - 1
        mark = f"… {gone:,} events left out …\n" if gone else ""
        length = room.characters(passage, share)
        text = mark + shown(passage, length)
        while count(text) > room.tokens and length > 1:  # denser than the sample was
            length //= 2
            text = mark + shown(passage, length)
        if count(text) <= room.tokens:
            blocks.append(_Block(passage, text, count(text)))
            before = places[passage.at]
    return blocks


def _packed(blocks: Sequence[_Block], parts: int, limit: int) -> list[list[_Block]]:
    """The blocks in order, in parts of about equal size if that takes no more than `parts`, else in full ones."""
    units: list[list[_Block]] = []
    for block in blocks:
        if units and units[-1][-1].passage.at >= block.passage.unit:
            units[-1].append(block)  # a result goes with its call
        else:
            units.append([block])
    equal = sum(b.tokens for b in blocks) / max(parts, 1) * 1.05
    packed = _in_parts(units, min(equal, limit), limit)
    return packed if len(packed) <= parts else _in_parts(units, limit, limit)


def _in_parts(units: Sequence[Sequence[_Block]], target: float, limit: int) -> list[list[_Block]]:
    """Parts that begin with a new unit where the last one is filled to `target`, and with any block where it would pass `limit`."""
    found: list[list[_Block]] = []
    filled = 0
    for unit in units:
        fits = filled + sum(b.tokens for b in unit) <= target
        for n, block in enumerate(unit):
            if not found or (n == 0 and not fits) or filled + block.tokens > limit:
                found.append([])
                filled = 0
            found[-1].append(block)
            filled += block.tokens
    return found
