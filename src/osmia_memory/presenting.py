"""A block with the evidence behind each line, for a person who decides whether to trust it. Pure: values -> text.

Everything that comes from transcripts is data: escaped in HTML, and characters that a reader cannot see are spelled out.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from osmia_memory.models import Fact, Ranked
from osmia_memory.render import label_of

if TYPE_CHECKING:
    from jinja2 import Template

PAGE = Path(__file__).parent / "prompts" / "prior_knowledge" / "page-v1.jinja"
MAX_QUOTES = 3  # of one fact
_MAX_QUOTE = 600  # characters; a longer one is cut in the middle

Testimony = Sequence[Mapping[str, Any]]  # of one fact, as `Memory.testimony` gives it, oldest first


class Quote(NamedTuple):
    """What a run holds, and where."""

    text: str
    where: str
    refutes: bool


class Told(NamedTuple):
    """One fact with the best of its quotes. `role` says what it does in its line."""

    content: str
    role: str
    facts: str
    quotes: tuple[Quote, ...]
    more: str


class Line(NamedTuple):
    """One bullet: the fact it tells, why it was chosen, and the facts told in the same line."""

    label: str
    told: Told
    why: str
    also: tuple[Told, ...]
    against: Told | None

    @property
    def all(self) -> tuple[Told, ...]:
        """Every fact of the line, the first one first."""
        return (self.told, *self.also, *((self.against,) if self.against else ()))


def lines(ranked: Sequence[Ranked], testimony: Mapping[str, Testimony]) -> list[Line]:
    """The bullets with their evidence. `testimony` holds that of every fact told, by id."""
    return [
        Line(
            label_of(entry.fact),
            _told(entry.fact, "", testimony),
            _why(entry),
            tuple(_told(f, "Told in the same line", testimony) for f in entry.also),
            None if entry.disputed_by is None else _told(entry.disputed_by, "The contrary", testimony),
        )
        for entry in ranked
    ]


def _told(fact: Fact, role: str, testimony: Mapping[str, Testimony]) -> Told:
    runs = f"{fact.runs} independent run{'s' * (fact.runs != 1)}" + (f", {fact.refuting_runs} against" if fact.refuting_runs else "")
    seen = f"first seen {fact.valid_from:%Y-%m-%d}, last {fact.last_seen:%Y-%m-%d}"
    facts = f"{fact.fact_id}, {runs}, {seen}, {fact.source or 'entered by hand'}"
    said = testimony.get(fact.fact_id, ())
    quotes = tuple(_quotes(said))
    left = sum(bool(w["evidence"]) for w in said) - len(quotes)
    more = f"{left} more run{'s' * (left != 1)} say it; `osmia-memory explain {fact.fact_id}` shows all." if left > 0 else ""
    return Told(visible(fact.content), role, facts, quotes, more)


def _quotes(testimony: Testimony) -> Iterator[Quote]:
    """One quote a run: what speaks against it first, then the latest, the oldest, and those between from the latest on."""
    quoted = [w for w in testimony if w["evidence"]]
    against = [w for w in quoted if all(e["polarity"] == "refutes" for e in w["evidence"])]
    rest = [w for w in quoted if w not in against]
    order = [*against, *rest[-1:], *rest[:1], *reversed(rest[1:-1])] if len(rest) > 1 else [*against, *rest]
    for witness in order[:MAX_QUOTES]:
        evidence = witness["evidence"][0]
        run = witness["run"]
        where = f"{witness['observed_at']:%Y-%m-%d %H:%M}, record {evidence['record']}"
        if run is not None:
            where += f" of {run['source']} ({run['engine']}, {run['outcome']}: {run['title'] or run['session']})"
        text = "\n".join(dict.fromkeys(e["quote"] for e in witness["evidence"][:2]))
        yield Quote(_cut(visible(text)), visible(where), witness in against)


def _why(entry: Ranked) -> str:
    parts = entry.parts
    chosen = "Chosen because it helps most tasks here" if entry.standing else "Chosen because it matches the task"
    scale = f"relevance {parts.get('relevance', 0):.2f}, confidence now {parts.get('confidence', entry.fact.confidence):.2f}"
    return f"{chosen} ({scale}, recency {parts.get('recency', 1):.2f}; score {entry.score:.3f})."


def visible(text: str) -> str:
    """`text` with characters spelled out that cannot be seen or that change the direction of writing."""
    hidden = {c for c in text if unicodedata.category(c) in ("Cf", "Co", "Cn") or (unicodedata.category(c) == "Cc" and c not in "\n\t")}
    for character in hidden:
        text = text.replace(character, f"⟨U+{ord(character):04X}⟩")
    return text


def _cut(text: str) -> str:
    half = _MAX_QUOTE // 2
    return text if len(text) <= _MAX_QUOTE else f"{text[:half]}\n[… {len(text) - 2 * half} characters …]\n{text[-half:]}"


def nothing(*, known: bool, repo: str | None) -> str:
    """Why there is no line."""
    if not known:
        return f"Nothing is stored for {repo or 'this tenant'}: no run of it was read."
    return f"Runs of {repo or 'this tenant'} were read, and nothing that is known fits this task."


def page(shown: Sequence[Line], block: str, *, task: str, repo: str | None, now: datetime, known: bool) -> str:
    """One HTML page without scripts and outside resources."""
    return _template().render(
        lines=shown,
        block=visible(block),
        task=_cut(visible(task)),
        repo=None if repo is None else visible(repo),
        now=f"{now:%Y-%m-%d %H:%M} UTC",
        empty=nothing(known=known, repo=repo),
    )


def plain(shown: Sequence[Line]) -> str:
    """The same for a terminal."""
    found: list[str] = []
    for line in shown:
        found.append(f"{line.label}: {line.told.content}")
        for n, told in enumerate(line.all):
            found += [f"  {told.role}: {told.content}"] if n else []
            found.append(f"  {told.facts}" + (f"\n  {line.why}" if not n else ""))
            for quote in told.quotes:
                mark = "against it: " if quote.refutes else ""
                found += [f"    {mark}{quote.where}", *(f"    | {row}" for row in quote.text.splitlines())]
            found += [f"    {told.more}"] if told.more else []
        found.append("")
    return "\n".join(found)


@lru_cache(maxsize=1)
def _template() -> "Template":
    import jinja2  # here, as in `render`

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=True
    )
    return environment.from_string(PAGE.read_text(encoding="utf-8"))
