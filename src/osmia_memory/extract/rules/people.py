"""Rules about people: what a user corrected or asked for once and for all. Told as an observation, never as an order."""

import re
from collections.abc import Iterator

from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.view import View
from osmia_memory.models import Claim

# A rule in the imperative, at the start of the sentence but for a short address.
_RULE = re.compile(
    r"^(?:(?:no|ok(?:ay)?|please|also|btw|and|but|actually|yes|sorry|just|well|hmm|hey)[,!. ]+){0,3}"
    r"(?:(?:please )?(?:always|never|do not|don't|avoid|prefer|make sure (?:to|that|you)|stop \w+ing|use \S+(?: \S+){0,4},? (?:not|instead of|rather than)|we (?:always|never|don't|do not|use|prefer|only)|you (?:should|must) (?:always|never|not)|in this (?:repo|project)))\b",
    re.I,
)
_CONCRETE = re.compile(
    r"`[^`]+`|\b[\w-]+\.(?:go|py|ts|js|md|toml|ya?ml|json|sh|rs|java)\b|--[\w-]+|\b\w+_\w+\b"
    r"|\b(?:mise|make|npm|pnpm|yarn|go|cargo|pytest|git|gh|docker|lint\w*|tests?|commits?|branch\w*|changelog|comments?|docs?|README|rebase|merge|mocks?|sleep|panic)\b",
    re.I,
)
_PASTED = re.compile(r"^\s*(?:[-*]|\d+[.)]) |\((?:high|medium|low)\)|severity|\bP[0-3]\b|```|^\s*[>│❯$]|https?://", re.I | re.M)


# A rule beyond the task at hand, or a choice between two named things; the rest may hold for one edit only.
_LASTING = re.compile(
    r"\b(?:always|never|prefer|avoid|we (?:use|don't|do not|only)|instead of|rather than|make sure|in this (?:repo|project)|you (?:should|must))\b|, not \w"
    r"|\b(?:don't|do not|stop) us\w+ .*\buse\b|\buse \S.* not \S|[.!] \w",
    re.I,
)
_OF_THE_TASK = re.compile(
    r"\b(?:this|that|these|those) (?:\w+ )?(?:tests?|files?|ones?|code|blocks?|changes?|functions?|lines?|parts?)\b", re.I
)


def user_correction(view: View) -> Iterator[Finding]:
    """A later turn of a person that states a general rule in few words, about something named."""
    told = 0
    turns = [e for e in view.events("user") if e.text.strip()]
    for event in turns[1:]:
        for sentence in _sentences(event.text):
            if (
                told == 2
                or not 15 <= len(sentence) <= 200
                or not _RULE.search(sentence)
                or not _CONCRETE.search(sentence)
                or _OF_THE_TASK.search(sentence)
                or sentence.endswith("?")
            ):
                continue
            start = event.text.find(sentence)
            told += 1
            yield Finding(
                f"A user corrected an earlier run: “{' '.join(sentence.split())}”",
                "repo_quirk",
                Claim("user", "asked", "", re.sub(r"\W+", " ", sentence.lower()).strip()[:120]),
                (view.quote(event, start, start + len(sentence)),),
                tags=() if _LASTING.search(sentence) else ("corroborate",),
            )


def _sentences(text: str) -> Iterator[str]:
    if len(text) > 700 or _PASTED.search(text):  # a pasted document or review, not a correction
        return
    parts = [(m.start(), m.end(), m[0]) for m in _SENTENCE.finditer(text)]
    for n, (start, end, part) in enumerate(parts):
        after = parts[n + 1] if n + 1 < len(parts) else None
        if (
            after
            and _FORBIDS.match(part)
            and _COMMANDS.match(after[2])
            and text[end : after[0]].isspace()
            and "\n" not in text[end : after[0]]
        ):
            yield text[start : after[1]]  # "Don't mock it. Mock the client it uses." is one thing said
        else:
            yield part


_SENTENCE = re.compile(r"[^\s.!?][^\n]*?(?:[.!?](?=\s|$)|(?=\n|$))")
_FORBIDS = re.compile(r"(?:no,? +)?(?:please )?(?:don't|do not|never)\b", re.I)
_COMMANDS = re.compile(r"(?:please )?(?:use|mock|call|put|keep|write|add|make|run|pass|return|prefer|set|do)\b", re.I)


RULES = (Rule("user_correction", 2, 0.7, 0.01, "said by a person, but perhaps for that task only", user_correction),)
