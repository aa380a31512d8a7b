"""What each event of a run has to tell a model, and how much of it is worth showing. Pure; knows nothing of budgets or parts.

A passage is shown under a label that begins with the event's number, such as `[18] result (exit 1): ...`. Only labels and marks begin a line;
all further lines of a text are indented, so that nothing in it can pass for another event or for a mark. What is shown is the event's text
character by character but for white space and invisible characters, so that quotes of it are found again (`grounding`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from osmia_memory.extract import commands
from osmia_memory.extract.grounding import is_source, visible
from osmia_memory.models import Event, Transcript

INDENT = "    "


class Role(NamedTuple):
    """How much of a kind of text is worth showing, in characters: at best, and at least."""

    loose: int
    tight: int
    haste: float = 1.0  # how soon it is cut: the power to which the shown share of a digest is raised
    end: float = 0.5  # share of the room that is given to the text's end
    signs: bool = False  # lines that tell of trouble are kept from the middle
    rank: int = 3  # which events stay when whole events have to go: the lowest

    def length(self, share: float) -> int:
        """Characters to show in a digest that shows `share` of what would be best, more than 1 where there is room to spare."""
        return max(self.tight, int(self.loose * share**self.haste))


USER = Role(12_000, 2_000, 0.5, 0.3, rank=0)
_ANSWER = Role(6_000, 1_000, 0.5, 0.3, rank=1)  # the agent's last message before a person's turn, or of the run
_ERROR = Role(1_500, 400, 0.5, rank=0)
_AGENT = Role(2_000, 300, rank=2)
_THINKING = Role(1_200, 160, rank=4)
_COMMAND = Role(1_200, 240, end=0.3)
_FAILED = Role(5_000, 900, 0.5, 0.6, signs=True, rank=1)
_CHECK = Role(1_500, 240, end=0.7, signs=True, rank=1)  # a test, a build or the like that worked
_RESULT = Role(1_500, 160, signs=True)
_GUIDE = Role(3_000, 400, end=0.3, rank=4)  # documents and settings of the repository
_CODE = Role(1_000, 0, 2.0, 0.3, rank=4)  # code and history that was read; what changed in it is among the edits
_EDIT = Role(1_500, 240, 2.0, 0.3, rank=2)
_CALL = Role(500, 150, 2.0, 0.3, rank=4)
_REVIEW = Role(6_000, 900, end=0.2, signs=True, rank=2)  # what people and robots wrote on a pull request or an issue
_REPORT = Role(4_000, 700, end=0.4)  # what a sub-agent, a person who was asked, or another tool answered

_EDGE_RANK = -1
_HEAD_EVENTS, _TAIL_EVENTS = 8, 16  # how a run began and ended is not left out


class Passage(NamedTuple):
    """One event as it may be shown."""

    at: int  # the event's index
    unit: int  # index of the event that it should not be parted from: its call, or itself
    label: str
    text: str
    role: Role
    rank: int


def passages(transcript: Transcript) -> list[Passage]:
    """All events that have something to show, in order: no system prompt, no injected block, no summary of another session."""
    answers = _answers(transcript.events)
    found: list[Passage] = []
    for event in transcript.events:
        call = transcript.events[event.answers] if event.answers is not None and event.answers < event.index else None
        role = _ANSWER if event.index in answers else _role(event, call)
        text = visible(event.text).strip()
        if role is None or (not text and event.kind != "file_read" and event.exit_code is None):
            continue
        found.append(Passage(event.index, event.index if call is None else call.index, _label(event, call), text, role, role.rank))
    return _ranked(found)


def _ranked(found: list[Passage]) -> list[Passage]:
    """Both ends of the run stay longest, and a command as long as its result."""
    best: dict[int, int] = {}
    for p in found:
        best[p.unit] = min(best.get(p.unit, p.rank), p.rank)
    edges = {p.at for p in (*found[:_HEAD_EVENTS], *found[-_TAIL_EVENTS:])}
    return [p._replace(rank=_EDGE_RANK if p.at in edges else best.get(p.at, p.rank)) for p in found]


def _answers(events: Sequence[Event]) -> frozenset[int]:
    """The last message of the agent in each turn."""
    found: list[int] = []
    turn_is_over = True
    for event in reversed(events):
        if event.kind == "assistant" and event.text.strip() and turn_is_over:
            found.append(event.index)
            turn_is_over = False
        turn_is_over = turn_is_over or event.kind == "user"
    return frozenset(found)


# --- the role of an event ---------------------------------------------------------------------------------------------

_CHECKS = frozenset({"test", "lint", "build", "install", "run", "service"})
_GUIDES = re.compile(
    r"(?:\.(?:md|rst|adoc|toml|ya?ml|cfg|ini|mk)|[Mm]akefile|justfile|Dockerfile|Jenkinsfile|package\.json|go\.mod|\.env\S*|AGENTS|CLAUDE|README)\b"
)
_LOOKS_BACK = re.compile(r"\bgit (?:-\S+ )*(?:diff|log|show|blame|grep|ls-files|ls-tree|cat-file)\b")
_REVIEWS = re.compile(r"\b(?:gh (?:pr|issue|api|run)|glab (?:mr|issue|api|ci))\b")
_FAILURE = re.compile(r"^(?:\S+ )?(?:ERROR|FAILED|FAIL|panic|fatal|Traceback)\b", re.M)  # of tools that exit with 0, or are piped
_PLAIN_ROLES: Mapping[str, Role] = {
    "user": USER,
    "assistant": _AGENT,
    "reasoning": _THINKING,
    "command": _COMMAND,
    "file_read": _CALL,
    "file_edit": _EDIT,
    "tool_call": _CALL,
    "error": _ERROR,
}
_HOUSEKEEPING = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "ToolSearch", "ScheduleWakeup", "update_plan"})
_SEARCHES = frozenset({"Grep", "Glob", "LS", "grep", "glob", "search", "list_dir"})


def _role(event: Event, call: Event | None) -> Role | None:
    """What an event has to tell; None for one that is not shown."""
    if not is_source(event) or _only_waits(event):
        return None
    if event.kind not in ("command_result", "tool_result"):
        return _EDIT if event.kind == "command" and "<<" in event.text else _PLAIN_ROLES[event.kind]
    if event.is_error or event.exit_code or event.args.get("timeout"):
        return _FAILED
    if call is None:
        return _RESULT
    return _role_of_output(event.text, call.text) if call.kind == "command" else _role_of_answer(call)


def _only_waits(event: Event) -> bool:
    """A call that keeps the agent's own lists, or waits for a command."""
    return event.kind == "tool_call" and (event.tool in _HOUSEKEEPING or (event.tool == "write_stdin" and '"chars":""' in event.text))


def _role_of_output(output: str, line: str) -> Role:
    """Of what a command said that worked."""
    main = commands.main_command(line)
    purpose = commands.purpose(main) if main else "none"
    if _REVIEWS.search(line):
        return _REVIEW
    if purpose in ("read", "search") or _LOOKS_BACK.search(line):
        return _GUIDE if purpose == "read" and _GUIDES.search(line) else _CODE
    if _FAILURE.search(output):
        return _FAILED
    return _CHECK if purpose in _CHECKS else _RESULT


def _role_of_answer(call: Event) -> Role | None:
    """Of what another tool than the shell answered."""
    if call.kind == "file_edit" or call.tool in _HOUSEKEEPING:
        return None  # "The file has been updated", and its text again
    if call.kind == "file_read":
        return _GUIDE if any(_GUIDES.search(path) for path in call.paths) else _CODE
    return _CODE if call.tool in _SEARCHES else _REPORT


# --- its label --------------------------------------------------------------------------------------------------------

_NAMES: Mapping[str, str] = {
    "assistant": "agent",
    "reasoning": "thinking",
    "command_result": "result",
    "tool_result": "result",
    "file_read": "read",
    "file_edit": "edit",
    "tool_call": "call",
}
_SLOW_SECONDS = 5


def _label(event: Event, call: Event | None) -> str:
    """The event's number, its kind in one word, and what is known of it besides its text."""
    notes: list[str] = []
    if call is not None and call.index != event.index - 1:
        notes.append(f"of {call.index}")
    if event.exit_code is not None:
        notes.append(f"exit {event.exit_code}")
    elif event.is_error and event.kind != "error":
        notes.append("failed")
    if event.args.get("timeout"):
        notes.append("timed out")
    if event.duration_s is not None and event.duration_s >= _SLOW_SECONDS:
        notes.append(f"{event.duration_s:.0f} s")
    if event.kind == "tool_call" and event.tool:
        notes.append(one_line(event.tool, 40))
    if event.kind in ("file_edit", "file_read"):
        notes += [one_line(path, 120) for path in event.paths[:4]] + [f"{len(event.paths) - 4} more"] * (len(event.paths) > 4)
    return f"[{event.index}] {_NAMES.get(event.kind, event.kind)}" + (f" ({', '.join(notes)})" if notes else "")


def one_line(text: str, longest: int) -> str:
    """The visible characters of `text` in one line of at most `longest` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


# --- its text, whole or cut -------------------------------------------------------------------------------------------

_LEAST = 80  # characters; less of a text tells nothing
_GAP = 100  # fewer characters than these are not left out: the mark takes a third of them
_HARDLY_LONGER = 1.15  # a text is not cut for the sake of so little
_SIGN_SHARE = 0.4  # of the room, for what is kept from the middle
_SIGNS = re.compile(
    r"\b(?:errors?|fail(?:ed|s|ures?)?|panic|exception|traceback|fatal|denied|refused|rejected|not found|cannot|can't|could not|unable|timed out"
    r"|timeout|missing|undefined|no such|unknown|invalid|killed|expected|warning|deprecated|exit status|\d+ passed)\b|^E  |✗|✖|✘"
    r'|"(?:body|message|description)": ?"',  # of reviewers and issues, as JSON in one line
    re.I | re.M,
)
_BEFORE, _LONGEST = 120, 400  # characters kept before a sign, and in all, of a line too long to be kept
_MOST_SIGNS = 5_000  # looked at in one text
_NEAR = 120  # characters that a text may be shown less, so that the cut is at the end of a line


def shown(passage: Passage, room: int) -> str:
    """The passage in about `room` characters, on lines of its own, with a mark where something is left out."""
    text = passage.text
    if not text:
        return f"{passage.label}\n"
    spans = [(0, len(text))] if len(text) <= max(room * _HARDLY_LONGER, 2 * _LEAST) else _kept(text, room, passage.role)
    if not spans:
        return f"{passage.label} … {len(text):,} characters left out …\n"
    lines: list[str] = []
    at = 0
    for start, end in [*spans, (len(text), len(text))]:
        if text[at:start].strip():
            lines.append(f"… {start - at:,} characters left out …")
        lines += [INDENT + line.rstrip() for line in text[start:end].splitlines() if line.strip()]
        at = end
    text = "\n".join(lines).strip()
    return f"{passage.label}: {text}\n"


def _kept(text: str, room: int, role: Role) -> list[tuple[int, int]]:
    """The parts of a long text that are shown: its beginning and end, and lines with signs from between them."""
    if room < _LEAST:
        return []
    middle = int(room * _SIGN_SHARE) if role.signs else 0
    head = _cut(text, int((room - middle) * (1 - role.end)))
    tail = max(head, _cut(text, len(text) - int((room - middle) * role.end)))
    joined = [(0, head)]
    for start, end in (*_with_signs(text, head, tail, middle), (tail, len(text))):
        if start - joined[-1][1] < _GAP:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _with_signs(text: str, reached: int, stop: int, room: int) -> list[tuple[int, int]]:
    """The first lines of `text[reached:stop]` with signs, one of those that differ only in numbers, up to `room` characters."""
    found: list[tuple[int, int]] = []
    told: set[str] = set()
    for _ in range(_MOST_SIGNS):
        match = _SIGNS.search(text, reached, stop) if room else None
        if match is None:
            break
        earliest = max(reached, match.start() - _BEFORE)
        newline = text.rfind("\n", earliest, match.start()) + 1
        start = newline or max(reached, _cut(text, earliest))
        end = text.find("\n", match.end(), min(stop, start + _LONGEST))
        end = end if end >= 0 else max(match.end(), min(stop, _cut(text, start + _LONGEST)))
        kind = re.sub(r"\d+|0x\w+", "0", text[start:end])
        if end - start > room:
            break
        if kind not in told:
            told.add(kind)
            found.append((start, end))
            room -= end - start
        reached = end
    return found


def _cut(text: str, at: int) -> int:
    """A place not far before `at` where a line ends, else where a word does, else `at`."""
    if not 0 < at < len(text):
        return max(0, min(at, len(text)))
    return text.rfind("\n", max(0, at - _NEAR), at) + 1 or text.rfind(" ", max(0, at - _NEAR), at) + 1 or at
