"""What stands in a run, and whose words it is: the ground on which a model's proposals are checked. Pure; decides nothing about content."""

import functools
import re
from dataclasses import dataclass
from typing import Literal

from osmia_memory.extract import shell
from osmia_memory.extract.view import Step, View, view
from osmia_memory.models import Event, Evidence, Transcript

Voice = Literal[
    "foreign",  # not the run's own text: system prompt, memory block, summary of another session, recorded session
    "task",  # the task as given
    "person",  # a later turn of a person
    "agent",  # said, typed or only echoed by the agent
    "work",  # written by the run into a file, or read back from there
    "result",  # what a command, a file, a tool or the harness said
]

FOREIGN_KINDS = frozenset({"system", "compaction", "injected_memory"})
SPEECH = frozenset({"assistant", "reasoning"})
_TYPED = frozenset({"command", "tool_call"})
_PRINTERS = frozenset({"read", "git", "service"})  # purposes of commands that print what others wrote
_MIN_TASK_TURN = 20  # characters; a shorter turn ("yes, please") is in many task texts by accident
_BULLET = re.compile(r"\*\*(?:Failure pattern|Success pattern|Repo quirk|Engine note|Pattern|Note)\*\* ?(?:\(confidence|:)")
_RECORD = re.compile(
    r"\\?\"(?:role|type)\\?\"\s*:\s*\\?\"(?:user|assistant|system|tool|message|event_msg|response_item|reasoning|function_call|tool_use|tool_result)"
    r"|\\?\"(?:sessionId|session_id|parentUuid)\\?\"\s*:"
)
_REMARK = re.compile(r"^\s*\+?\s*(?:#(?!include|define|if|!\[)|//|/\*|\*(?:\s|/)|--\s|<!--|\"\"\"|''')")
_PROSE_FILE = re.compile(r"\.(?:md|rst|txt|adoc)$|(?:^|/)(?:README|CHANGELOG|NOTES?)[\w.]*$", re.I)
_MAX_HITS = 2000  # places of a name's first word that are looked at
_LINE = 2000  # characters in which the words of one command have to stand


def folded(text: str) -> str:
    """`text` with any white space as one space."""
    return " ".join(text.split())


@dataclass(frozen=True, eq=False)  # compared by identity, so that what was worked out is kept
class Said:
    """One run, prepared for checking. `text` is all that is not the agent's own speech, and not foreign."""

    transcript: Transcript

    @functools.cached_property
    def view(self) -> View:
        """The run as the rules see it."""
        return view(self.transcript)

    @functools.cached_property
    def text(self) -> str:
        """Task, commands, results, edits, turns of people and paths, a line break between two events."""
        run = self.transcript.run
        parts = [run.title, run.description, run.repo or "", run.branch or ""]
        for event in self.transcript.events:
            if event.kind not in FOREIGN_KINDS and event.kind not in SPEECH:
                parts += [event.text, *event.paths, *(str(v) for k, v in event.args.items() if k == "old_string")]
        return self.view.relative("\n".join(parts))

    @functools.cached_property
    def typed(self) -> str:
        """Command lines and paths of the run."""
        return "\n".join(t for e in self.transcript.events for t in (e.text if e.kind == "command" else "", *e.paths))

    @functools.cached_property
    def by_call(self) -> dict[int, Step]:
        """Steps by the event index of their call."""
        return {s.index: s for s in self.view.steps}

    def step_of(self, event: Event) -> Step | None:
        """The step that the event is the call or a result of."""
        return self.by_call.get(event.index if event.answers is None else event.answers)

    def event(self, evidence: Evidence) -> Event:
        """The event that is cited."""
        return self.transcript.events[evidence.event_index]

    # --- whose words ---------------------------------------------------------------------------------------------------

    def voice(self, evidence: Evidence) -> Voice:
        """Whose words the quote is."""
        event = self.event(evidence)
        if event.kind in FOREIGN_KINDS or _is_foreign(event.text, evidence.span):
            return "foreign"
        if event.kind == "user":
            return "task" if event.index in self._task_turns else "person"
        if event.kind in SPEECH or event.kind in _TYPED:
            return "agent"
        if event.kind == "file_edit":
            return self._voice_of_edit(event, evidence)
        return self._voice_of_result(event, evidence)

    @functools.cached_property
    def _task_turns(self) -> frozenset[int]:
        task = folded(self.transcript.run.description)
        turns = [e for e in self.transcript.events if e.kind == "user" and e.text.strip()]
        same = [
            e
            for e in turns
            if len(said := folded(e.text)) >= _MIN_TASK_TURN and (said in task or (len(task) >= _MIN_TASK_TURN and task in said))
        ]
        return frozenset(e.index for e in (*turns[:1], *same))

    def _voice_of_edit(self, event: Event, evidence: Evidence) -> Voice:
        """What an edit left as it was is the repository's; a remark in it is the agent's opinion."""
        line = line_around(event.text, evidence.span)
        is_patch = event.text.startswith(("@@", "diff --git", "---")) or event.tool in ("apply_patch", "submission")
        if is_patch and not line.startswith("+"):
            return "result"
        if folded(evidence.quote) in folded(str(event.args.get("old_string") or "")):
            return "result"
        if _REMARK.match(line) or any(_PROSE_FILE.search(p) for p in event.paths):
            return "agent"
        return "work"

    def _voice_of_result(self, event: Event, evidence: Evidence) -> Voice:
        call = self.transcript.events[event.answers] if event.answers is not None else None
        quote = folded(evidence.quote)
        if call is not None and call.kind == "file_edit":
            return "work"  # a tool's receipt
        if call is not None and quote in folded(call.text):
            return "agent"  # an echo
        step = self.step_of(event)
        is_print = event.kind in ("file_read", "tool_result") or (step is not None and step.purpose in _PRINTERS)
        if is_print and quote in folded(self.transcript.run.description):
            return "task"
        if line_around(event.text, evidence.span).startswith("+") and step is not None and _shows_own_changes(step):
            return "work"
        return "work" if any(quote in text for at, text in self._written if at < event.index) else "result"

    @functools.cached_property
    def _written(self) -> tuple[tuple[int, str], ...]:
        """(event index, folded text) of all that the run wrote: edits, here-documents, commit messages."""
        found: list[tuple[int, str]] = []
        for event in self.transcript.events:
            if event.kind == "file_edit" and event.tool != "submission":
                found.append((event.index, folded("\n".join(added_lines(event)))))
            elif event.kind == "command":
                for simple in shell.parse(event.text):
                    told = simple.heredoc or (" ".join(simple.argv[1:]) if simple.writes or _says_something(simple) else "")
                    if told:
                        found.append((event.index, folded(told)))
        return tuple(found)

    # --- names ---------------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """The name stands in the run as a whole word, in something else than the agent's own speech."""
        return has_word(self.text, name)

    def has_in_order(self, words: tuple[str, ...], *, across_lines: bool = False) -> bool:
        """One line of the run (or a passage, `across_lines`) holds all the words in this order."""
        first, *rest = words
        at = self.text.find(first)
        for _ in range(_MAX_HITS):
            if at < 0:
                return False
            end = at + _LINE if across_lines else self.text.find("\n", at)
            line = self.text[at : min(end if end >= 0 else len(self.text), at + _LINE)]
            if _in_order(line, rest):
                return True
            at = self.text.find(first, at + 1)
        return False

    def is_path(self, path: str) -> bool:
        """A file of the repository that the run saw: relative to the checkout, in a command, a result, an edit or a read."""
        looks = bool(re.fullmatch(r"[\w.@+-]+(?:/[\w.@+-]+)*", path)) and ("/" in path or "." in path) and ".." not in path.split("/")
        return looks and self.has(path)


def _shows_own_changes(step: Step) -> bool:
    return any(c.argv[:2] == ("git", "diff") for c in shell.parse(step.line))


def _is_foreign(text: str, span: tuple[int, int]) -> bool:
    """The quoted line is a bullet of a memory block, or a record of another session that a search printed."""
    start = text.rfind("\n", 0, span[0]) + 1
    line = line_around(text, span)
    if _BULLET.search(line):
        return True
    brace = line.find("{")
    return brace >= 0 and span[0] - start >= brace and bool(_RECORD.search(line))


def _says_something(simple: shell.Simple) -> bool:
    return simple.program in ("echo", "printf") or (simple.program == "git" and simple.argv[1:2] == ("commit",))


def _in_order(line: str, words: list[str]) -> bool:
    at = 0
    for word in words:
        found = line.find(word, at)
        if found < 0:
            return False
        at = found + len(word)
    return True


def line_around(text: str, span: tuple[int, int]) -> str:
    """The whole lines that the span lies in."""
    end = text.find("\n", max(span[0], span[1] - 1))
    return text[text.rfind("\n", 0, span[0]) + 1 : end if end >= 0 else len(text)]


def has_word(text: str, name: str) -> bool:
    """`name` stands in `text`, not as part of a longer word or number."""
    if not name:
        return False
    before = r"(?<!\w)" if name[0].isalnum() or name[0] == "_" else ""
    after = r"(?!\w)" if name[-1].isalnum() or name[-1] == "_" else ""
    if re.fullmatch(r"\d[\d,]*", name):
        before, after = r"(?<![\w.,])", r"(?![\d]|[.,]\d)"
    elif name[0].isdigit():
        before = r"(?<!\d)(?<!\d[.,])"
    return name in text and re.search(f"{before}{re.escape(name)}{after}", text) is not None


# --- edits ------------------------------------------------------------------------------------------------------------


def added_lines(event: Event) -> tuple[str, ...]:
    """What an edit brought in, stripped: the new lines that were not there before."""
    if _is_patch(event):
        gone = {line[1:].strip() for line in event.text.splitlines() if line.startswith("-")}
        return tuple(s for line in event.text.splitlines() if line.startswith("+") and (s := line[1:].strip()) and s not in gone)
    old = {line.strip() for line in str(event.args.get("old_string") or "").splitlines()}
    return tuple(s for line in event.text.splitlines() if (s := line.strip()) and s not in old)


def removed_lines(event: Event) -> tuple[str, ...]:
    """What an edit took out, stripped."""
    if _is_patch(event):
        new = {line[1:].strip() for line in event.text.splitlines() if line.startswith("+")}
        return tuple(s for line in event.text.splitlines() if line.startswith("-") and (s := line[1:].strip()) and s not in new)
    new = {line.strip() for line in event.text.splitlines()}
    return tuple(s for line in str(event.args.get("old_string") or "").splitlines() if (s := line.strip()) and s not in new)


def _is_patch(event: Event) -> bool:
    return event.tool in ("apply_patch", "submission") or event.text.startswith(("@@", "diff --git", "--- "))
