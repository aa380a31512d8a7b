"""Rules about calls that an engine's own tools refused: what the call lacked, and refusals that came again and again. Scope is the engine."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.common import one_line
from osmia_memory.extract.view import View
from osmia_memory.models import Claim, Event

_LOOP = 3  # refusals of one kind in one run


class _Refusal(NamedTuple):
    tool: str
    message: str  # without paths, quotes and numbers, so that equal refusals of two runs are equal
    line: str  # as it stands in the event


def tool_refused(view: View) -> Iterator[Finding]:
    """A tool that refused a call and said what it wants, or that refused the same kind of call several times."""
    engine = view.transcript.run.engine
    first: dict[tuple[str, str], tuple[_Refusal, Event]] = {}
    often: Counter[tuple[str, str]] = Counter()
    for event in view.transcript.events:
        refusal = _refusal(view, event)
        if refusal is not None:
            key = (refusal.tool, _key(refusal.message))
            often[key] += 1
            first.setdefault(key, (refusal, event))
    for key, (refusal, event) in first.items():
        told = bool(_SAYS_WHAT_TO_DO.search(refusal.message))
        if not told and often[key] < _LOOP:
            continue
        advice = "" if told else "; it came several times in one run: look at the exact text before the next try"
        yield Finding(
            f"{engine}'s `{refusal.tool}` refuses a call with “{refusal.message}”{advice}.",
            "failure_pattern",
            Claim(engine, "refuses call", refusal.tool, _key(refusal.message)),
            (view.cite(event, refusal.line),),
            scope="engine",
            tags=("corroborate",),
        )


_SAYS_WHAT_TO_DO = re.compile(r"\b(?:[Rr]ead it|[Uu]se|[Pp]lease|rerun|first before|instead|separately|set \w+ to|chain|provide)\b")
_BY_A_PERSON = re.compile(
    r"user (?:doesn't want|rejected|denied|declined|aborted|interrupted)|interrupted by|requires? approval|[Pp]ermission|was denied|aborted|not allowed|was blocked",
    re.I,
)
_NOT_THE_TOOL_S = re.compile(r"does not exist|No such file|ENOENT|exit code|Traceback|timed? ?out|cancell?ed|Skill |validation", re.I)


_NAMES_THE_FAULT = re.compile(r"^(?!https?:).*\b(?:failed to (?:\w+ )?match|not found|exceeds|cannot|invalid|errors?\b)", re.I)


def _refusal(view: View, event: Event) -> _Refusal | None:
    """The refusal that an event holds; what a person, the file system or the command itself refused is none."""
    by_harness = event.kind == "command_result" and event.args.get("harness") == "refused"
    by_format = event.kind == "error" and event.tool == "edit-format"
    if not (by_harness or by_format or (event.kind == "tool_result" and event.is_error)):
        return None
    text = re.sub(r"^\s*(?:<\w+>|\[|# )\s*", "", event.text[:2000])
    if _BY_A_PERSON.search(text[:300]) or _NOT_THE_TOOL_S.search(text[:200]):
        return None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = next((x for x in lines if _NAMES_THE_FAULT.search(x)), next(iter(lines), ""))
    rest = lines[lines.index(line) + 1] if by_harness and line in lines and lines.index(line) + 1 < len(lines) else ""
    message = _folded(f"{line} {rest}".strip())
    call = view.transcript.events[event.answers] if event.answers is not None else None
    tool = (call.tool if call else None) or ("edit" if by_format else event.tool) or "tool"
    return _Refusal(tool, message, re.sub(r"</?\w+>|^#+ ", "", line)) if len(message) >= 20 else None


def _folded(text: str) -> str:
    """Without tags, paths, quoted text and numbers, at most two sentences."""
    text = re.sub(r"</?\w+>|^(?:#+ )?(?:\d+ )?|\]$", "", text)
    text = re.sub(r"(?:(?<=\s)|^)(?:~|\.{0,2}/)[\w./@-]+|'[^']*'|\"[^\"]*\"|`[^`]*`", "…", text)
    text = re.sub(r"\([\d,.]+ (\w+)\)", r"(\1)", re.sub(r"\b\d[\d,.]*\b", "N", text))
    text = re.sub(r"followed by: .*?\. (?=[A-Z])", "followed by another command. ", text)
    text = re.sub(r"(?: in| for| at)?:? ?…?:?$", "", text.strip())
    sentences = re.split(r"(?<=[.!;])\s+", text)
    return one_line(" ".join(sentences[:2]), 150).rstrip(".: ")


def _key(message: str) -> str:
    return re.sub(r"\W+", " ", message.lower()).strip()[:60]


RULES = (Rule("tool_refused", 1, 0.65, 0.02, "the tool said so; its next version may not", tool_refused),)
