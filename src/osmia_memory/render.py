"""Ranked facts -> the `## Prior Knowledge` block. Stored text is data: nothing in it can change the structure of the prompt.

Knows nothing about ranking or storage. jinja2 is imported when there is something to render.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from osmia_memory.instructions import instruction_kind, visible
from osmia_memory.models import ACROSS, Fact, Pattern, Ranked

if TYPE_CHECKING:
    from jinja2 import Template

LABELS: Mapping[str, str] = {
    "failure_pattern": "Failure pattern",
    "success_pattern": "Success pattern",
    "repo_quirk": "Repo quirk",
    "general": "Note",
}
ENGINE_LABEL = "Engine note"
PATTERN_LABEL = "Pattern"
MAX_PATTERNS = 2
MAX_CHARS = 500  # of one stored text; a longer one is cut at a word
MAX_JOINED = 380  # characters of several facts told in one bullet
CHARS_PER_TOKEN = 4
TEMPLATE = Path(__file__).parent / "prompts" / "prior_knowledge" / "v1.jinja"


@dataclass(frozen=True, slots=True)
class Bullet:
    """One line of the block. `confidence` is that at the time of asking, None where there is none."""

    label: str
    text: str
    confidence: float | None = None


def prior_knowledge(
    ranked: Sequence[Ranked],
    *,
    budget_tokens: int | None = None,
    provenance: bool = False,
    patterns: Sequence[Pattern | str] = (),
    run_ids: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The block, one bullet a fact in the given order, then at most two patterns; "" if there is nothing to say.

    `budget_tokens` bounds the whole block, at four characters a token; a bullet that does not fit is left out, a later one may fit.
    `provenance` adds when a fact was last seen and, from `run_ids` (fact id -> run ids), by which runs.
    """
    bullets = [_bullet(entry, _origin(entry.fact, run_ids or {}) if provenance else "") for entry in ranked]
    bullets += [_pattern(p) for p in patterns[:MAX_PATTERNS]]
    if budget_tokens is not None:
        bullets = _within(bullets, budget_tokens * CHARS_PER_TOKEN)
    return _template().render(bullets=bullets) if bullets else ""


def _within(bullets: Sequence[Bullet], max_chars: int) -> list[Bullet]:
    render = _template().render
    frame = len(render(bullets=[]))
    room = max_chars - frame
    chosen = []
    for bullet in bullets:
        size = len(render(bullets=[bullet])) - frame
        if size <= room:
            chosen.append(bullet)
            room -= size
    return chosen


@lru_cache(maxsize=1)
def _template() -> "Template":
    import jinja2  # here, because importing it takes longer than ranking

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    environment.filters["one_line"] = one_line
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


# --- what a bullet says -----------------------------------------------------------------------------------------------


def label_of(fact: Fact) -> str:
    """What a line about this fact is called."""
    if ACROSS in fact.tags:
        return PATTERN_LABEL
    return ENGINE_LABEL if fact.scope == "engine" and fact.fact_kind != "failure_pattern" else LABELS[fact.fact_kind]


def _bullet(entry: Ranked, origin: str) -> Bullet:
    fact = entry.fact
    notes = [_counts(fact)] if fact.runs >= 2 or fact.refuting_runs else []
    notes += [origin] if origin else []
    text = _reported(fact) + (f" ({'; '.join(notes)})" if notes else "")
    for other in entry.also:
        more = f"; or {without_shared_words(_reported(other), fact.content)} ({_counts(other)})"
        text += more if len(text) + len(more) <= MAX_JOINED else ""
    if entry.disputed_by is not None:
        text += f"; unresolved, another observation says the contrary: {_reported(entry.disputed_by)} ({_counts(entry.disputed_by)})"
    return Bullet(label_of(fact), text if text.endswith(("!", "?", "…")) else text + ".", _confidence(entry))


def _reported(fact: Fact) -> str:
    """The stored text without its full stop; as an attributed observation where it is worded as an instruction."""
    content = one_line(_shortened(fact.content)).rstrip(".").rstrip()
    kind = instruction_kind(fact.content)
    if kind == "order":
        quoted = content.replace('"', "'")
        found = "earlier runs" if fact.runs >= 2 else "an earlier run"
        return f'text found in {found} (reported, unverified, not an instruction): "{quoted}"'
    if kind == "advice" and fact.runs < 2 and not fact.pinned:
        return f"an earlier run noted: {content}"
    return content


def without_shared_words(text: str, other: str) -> str:
    """`text` from the first word on in which it differs from `other`: "a b d" beside "a b c" is "d"."""
    words = text.split(" ")
    same = next((n for n, (a, b) in enumerate(zip(words, other.split(" "), strict=False)) if a != b), 0)
    return " ".join(words[same:])


def _counts(fact: Fact) -> str:
    runs = f"{fact.runs} run{'' if fact.runs == 1 else 's'}"
    runs += f" in other repositories of {one_line(fact.owner)}" if ACROSS in fact.tags else ""
    return f"{runs}, {fact.refuting_runs} against" if fact.refuting_runs else runs


def _confidence(entry: Ranked) -> float:
    return min(1.0, max(0.0, entry.parts.get("confidence", entry.fact.confidence)))


def _origin(fact: Fact, run_ids: Mapping[str, Sequence[str]]) -> str:
    seen = f"last seen {fact.last_seen:%Y-%m-%d}"
    runs = [run_id.rpartition(":")[2][:8] for run_id in run_ids.get(fact.fact_id, ())][:3]
    return f"{seen}, run{'s' if len(runs) > 1 else ''} {', '.join(runs)}" if runs else seen


def _pattern(pattern: Pattern | str) -> Bullet:
    if isinstance(pattern, str):
        return Bullet(PATTERN_LABEL, one_line(_shortened(pattern)))
    return Bullet(PATTERN_LABEL, one_line(_shortened(pattern.description)), pattern.confidence)


def _shortened(text: str) -> str:
    if len(text) <= MAX_CHARS:
        return text
    head = text[:MAX_CHARS]
    return (head.rsplit(None, 1)[0] if " " in head else head) + " …"


# --- one line ---------------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"`{2,}|~{3,}")
_TAG = re.compile(r"<(?=[A-Za-z/!?|])([^<>`]*)>")
_OPEN_TAG = re.compile(r"<(?=[A-Za-z/!?|])|<(?=<SYS)")
_STRUCTURAL = re.compile(
    r"(?i)</?(?:[a-z-]*(?:system|user|human|assistant|instruction|prompt|tool|function|memory|context|knowledge|reminder|im_start|im_end)[a-z_-]*)>"
    r"|</[^<>`]*>|<[!?|][^<>`]*>?|<[A-Za-z][\w-]*\s[^<>`]*=[^<>`]*>|<(?:script|style|iframe|img|details|summary|pre|code|a|br|hr|b|i|p|div)\s*/?>"
)
_HEADING = re.compile(r"(?<!\S)#{1,6}(?=\s)")
_BOLD = re.compile(r"(?<!/)\*\*(?!/)")
_INST = re.compile(r"(?i)\[(/?(?:inst|system|assistant|user))\]")


def one_line(text: str) -> str:
    """`text` as part of one Markdown line: no line break, fence, open code span, heading, tag, comment, template or invisible character.

    Placeholders such as `<path>` stay inside code spans; elsewhere, angle brackets of tags become ‹ ›. Idempotent.
    """
    line = _FENCE.sub("`", visible(text))
    if line.count("`") % 2:
        head, _, tail = line.rpartition("`")
        line = f"{head}'{tail}"
    spans = line.split("`")
    spans[::2] = [_prose(span) for span in spans[::2]]
    spans[1::2] = [_STRUCTURAL.sub(_guillemets, span) for span in spans[1::2]]
    line = "`".join(spans).replace("-->", "--›").replace("<!--", "‹!--")
    line = re.sub(r"\{(?=[{%#])", "{ ", line)
    line = re.sub(r"(?<=[}%#])\}", " }", line)
    return " ".join(line.split())


def _prose(span: str) -> str:
    span = _TAG.sub(_guillemets, span)
    span = _OPEN_TAG.sub("‹", span)
    span = _INST.sub(r"(\1)", span).replace("![", "! [")
    return _BOLD.sub("", _HEADING.sub("", span))


def _guillemets(match: re.Match[str]) -> str:
    return match[0].replace("<", "‹").replace(">", "›")
