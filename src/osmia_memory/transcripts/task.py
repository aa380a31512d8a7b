"""What a task is about, read from its text: kind, title, language. Pure and deliberately small: unsure is `unknown`."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from osmia_memory.models import TaskType

_MAX_TITLE = 120
_LOOK_AT = 1_500  # characters: what comes after is logs and code
_NOISE_LINE = re.compile(
    r"^(?:[-=*#`>~\s]*|description|consider the following pr description:?|hi|hello|hey|ok|okay|please|thanks|thank you|/\S+|\[image\]|https?://\S+)[\s.!,:]*$",
    re.I,
)
_QUESTION = re.compile(
    r"^(?:so |and |but |ok,? |hmm,? )*(?:what|why|how|when|where|which|who|is|are|am|does|do|did|should|would|was|were|has|have)\b", re.I
)
_POLITE = re.compile(r"^(?:so |ok(?:ay)?,? |hey,? |hi,? )*(?:please |(?:can|could|would|will) (?:you|we|u)(?: please| also)* |let'?s |let us |i(?:'d| would)? (?:want|like|need)(?: you)? to |we (?:need|want|should)(?: to)? |you (?:should|need to|are to) |now |then )+", re.I)  # fmt: skip

# Tried in this order on the first line: the verb that the task opens with says most.
_OPENING: Final[tuple[tuple[TaskType, re.Pattern[str]], ...]] = (
    ("review", re.compile(r"^(?:(?:more |code[- ]?|address the )?reviews?|audit|/(?:code-)?review|(?:have|take) a (?:close |closer )?look at .{0,40}\b(?:pr|pull|branch|diff|changes?|commits?|comments?)|look (?:at|over|through) .{0,40}\b(?:pr|pull|branch|diff|changes?|commits?|comments?))\b", re.I)),
    ("docs", re.compile(r"^(?:document|describe in the readme|(?:add|write|update|fix|improve|create|put|extend|correct)\b.{0,60}\b(?:docs?|documentation|readme|changelog|docstrings?|faq|comments?|guide|tutorial)\b)", re.I)),
    ("bug_fix", re.compile(r"^(?:fix|resolve|debug|repair|hotfix|solve|investigate|correct|address)\b", re.I)),
    ("test", re.compile(r"^(?:test\b|(?:add|write|extend|improve|backfill|increase|create)\b.{0,50}\b(?:tests?|coverage|e2e)\b)", re.I)),
    ("refactor", re.compile(r"^(?:refactor|simplify|clean\s?up|rename|extract|restructure|reorgani[sz]e|rewrite|deduplicate|de-?slop|split|move|inline|convert|migrate|port|replace|find .{0,60}\breplace|change (?:all|the) .{0,40}(?:name|occurrences)|modernise|modernize)\b", re.I)),
    ("chore", re.compile(r"^(?:bump|upgrade|update (?:the )?(?:dependenc|deps|version)|release|tag|commit|push|merge|rebase|cherry-pick|pin|lint|format|set ?up|install|configure|open a pr|create a (?:pr|branch|pull request)|regenerate)\b", re.I)),
    ("feature", re.compile(r"^(?:add|implement|support|create|introduce|build|allow|enable|make|write|extend|provide|expose|integrate|handle|adopt)\b", re.I)),
)  # fmt: skip
_ANYWHERE: Final[tuple[tuple[TaskType, re.Pattern[str]], ...]] = (
    ("bug_fix", re.compile(r"\b(?:bug|bugs|regression|traceback|exception|crash(?:es|ed)?|fails?|failing|failed|broken|incorrect(?:ly)?|wrong(?:ly)?|unexpected(?:ly)?|does ?n[o']t work|doesn't|not working|error|errors|raises?|expected behaviou?r|actual behaviou?r|steps to reproduce)\b", re.I)),
    ("review", re.compile(r"\b(?:review (?:the|this|my|our|these|branch|changes|pr|code)|code review)\b", re.I)),
    ("refactor", re.compile(r"\b(?:refactor|simplif(?:y|ication)|clean ?up|renamed?)\b", re.I)),
    ("test", re.compile(r"\b(?:add|write|more) (?:unit |integration |e2e )?tests?\b", re.I)),
    ("docs", re.compile(r"\b(?:readme|changelog|documentation|docstrings?)\b", re.I)),
    ("feature", re.compile(r"\b(?:add|implement|support|allow|introduce|feature request|new (?:option|flag|command|feature|setting)|would be (?:nice|useful|great))\b", re.I)),
    ("chore", re.compile(r"\b(?:bump|upgrade|dependenc(?:y|ies)|commit|rebase|merge)\b", re.I)),
)  # fmt: skip

_LANGUAGES: Final = {
    ".py": "python", ".pyi": "python", ".go": "go", ".rs": "rust", ".js": "javascript", ".jsx": "javascript", ".mjs": "javascript",
    ".cjs": "javascript", ".ts": "typescript", ".tsx": "typescript", ".java": "java", ".kt": "kotlin", ".scala": "scala", ".rb": "ruby",
    ".php": "php", ".c": "c", ".h": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".hpp": "c++", ".cs": "c#", ".swift": "swift",
    ".m": "objective-c", ".sh": "shell", ".bash": "shell", ".sql": "sql", ".ex": "elixir", ".exs": "elixir", ".erl": "erlang",
    ".hs": "haskell", ".ml": "ocaml", ".lua": "lua", ".dart": "dart", ".r": "r", ".jl": "julia", ".zig": "zig", ".clj": "clojure",
    ".vue": "vue", ".svelte": "svelte", ".tf": "terraform", ".css": "css", ".scss": "css", ".html": "html", ".pl": "perl",
}  # fmt: skip
_GLUE = {"shell", "html", "css", "sql"}  # named only when nothing else was touched


def title(text: str) -> str:
    """The first line of the task that says something, at most 120 characters; "" if none does."""
    for line in text.splitlines():
        line = " ".join(line.strip().lstrip("#>*- ").split())
        if line and not _NOISE_LINE.match(line):
            return line if len(line) <= _MAX_TITLE else line[: _MAX_TITLE - 1].rstrip() + "…"
    return ""


def task_type(text: str) -> TaskType:
    """Kind of the task: by the verb it opens with, else by what its first 1,500 characters talk about."""
    opening = _POLITE.sub("", title(text))
    if not opening:
        return "unknown"
    for kind, pattern in _OPENING:
        if pattern.match(opening):
            return kind
    if _QUESTION.match(opening) and "?" in text[:_LOOK_AT]:
        return "question"
    start = text[:_LOOK_AT]
    return next((kind for kind, pattern in _ANYWHERE if pattern.search(start)), "unknown")


def language(paths: Iterable[str]) -> str | None:
    """The language most of these files are written in; None if no suffix tells."""
    counts = Counter(name for path in paths if (name := _LANGUAGES.get(path[path.rfind(".") :].lower() if "." in path else "")))
    code = Counter({name: n for name, n in counts.items() if name not in _GLUE}) or counts
    return code.most_common(1)[0][0] if code else None
