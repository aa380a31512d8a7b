"""What Aider prints and what its replies hold -> values. Pure; knows the wording of many versions, and no events."""

import re
from typing import NamedTuple

MODEL = re.compile(r"(?:Main model|Models?): (\S+) with ")
FOLDER = re.compile(r"Git working dir: (/.+|[A-Z]:\\.+)")
APPLIED = re.compile(r"Applied edit to (.+)")
COMMIT = re.compile(r"Commit ([0-9a-f]{7,40}) (.*)")
COMMIT_OF_A_PERSON = re.compile(r"Committing .* before applying edits|Commit before the chat proceeds")
UNDONE = re.compile(r"Removed: ([0-9a-f]{7,40}) ")
RUNNING = re.compile(r"Running (\S.*)", re.S)
EXITED = re.compile(r"Command '(.+)' exited with status (\d+)", re.S)
LINT = re.compile(r"# Fix any errors below")
LINT_ENDS = re.compile(r"(?:Attempt to fix|Fix) (?:lint|test) errors")
LINTED = re.compile(r"## Running: (?P<command>.+)\n(?P<output>[\s\S]*?)(?=\n## (?:See|Running)|\Z)")
REJECTED = re.compile(r"The LLM did not conform to the (?:edit|\w+) format")
PROVIDER = re.compile(
    r"(?:Unexpected error: )?(?=.*(?:litellm\.\w*(?:Error|Exceeded|Timeout)|APIConnectionError|\w*Error: .*Exception - |overloaded_error))|.*has hit a token limit"
)
CRASHED = re.compile(r"Unexpected error: |Traceback \(most recent call last\)")
NO_OUTPUT = re.compile(r"Added \d+ lines? of output|\^C|Aider v\d|Add ")
LEFT = re.compile(r"\^C(?: again to exit| KeyboardInterrupt)?|\s")

_TOKENS = re.compile(
    r"Tokens: ([\d.,]+[kM]?) sent(?:, [\d.,]+[kM]? cache write)?(?:, ([\d.,]+[kM]?) cache(?:d| hit))?, ([\d.,]+[kM]?) received"
)
_COST = re.compile(r"\$(\d[\d.]*\d|\d) session")
_CREATES = re.compile(r"(?:Creating empty file|Allow creation of new file) (.+?)(?:\? .*)?")
_ASKED = re.compile(
    r"Add (?:the|[\d.,k]+ tokens of command) output to the chat\?\s*(?:\([^()]*\)(?:/\([^()]*\)\w+)*)?\s*(?:\[\w+\])?:?\s*(.*)", re.S
)
_ANSWERS = frozenset({"", "y", "n", "yes", "no", "d", "a", "all", "s", "skip"})
_SEARCH = re.compile(r"<<<<<<< (?:SEARCH|ORIGINAL|HEAD)\s*")
_REPLACE = re.compile(r">>>>>>> (?:REPLACE|UPDATED)\s*")
_NAME = re.compile(r"[^\s<>]*[./]\S*|Makefile|Dockerfile")


class Usage(NamedTuple):
    """One reply's tokens, and what the session has cost so far in dollars (None: not told)."""

    tokens_in: int
    tokens_out: int
    session_cost: float | None


def usage(text: str) -> Usage | None:
    """The numbers of a `Tokens:` line.

    Most versions count what was cached among what was sent; where more was cached than sent, it is no part of it.
    """
    told = _TOKENS.match(text)
    if told is None:
        return None
    sent, cached, received = (_number(told[n]) for n in (1, 2, 3))
    cost = _COST.search(text)
    return Usage(sent + (cached if cached > sent else 0), received, float(cost[1]) if cost else None)


def _number(text: str | None) -> int:
    """`5,244`, `5.2k` or `1.1M` as a whole number."""
    if not text:
        return 0
    factor = {"k": 1_000, "M": 1_000_000}.get(text[-1], 1)
    return round(float(text.rstrip("kM").replace(",", "")) * factor)


def file_created(text: str) -> str | None:
    """The file that Aider makes, with the person's leave where it asks for it."""
    creates = _CREATES.fullmatch(text)
    return creates[1].strip() if creates and not re.search(r"\? .*\bno?$", text, re.I) else None


def said_to_output(text: str) -> str | None:
    """What a person answered to the offer to add output to the chat: "" for yes and no; None if the text is no such offer."""
    asked = _ASKED.match(text)
    if asked is None:
        return None
    answer = asked[1].strip()
    return "" if answer.lower() in _ANSWERS else answer


def plain(line: str) -> str:
    """The line without the white space in which its repetition differs."""
    return " ".join(line.split())


def ran(text: str) -> tuple[str, str] | None:
    """(command, output) of the words in which older versions tell a command to the agent."""
    if not text.startswith("I ran this command:"):
        return None
    command, told, output = text.removeprefix("I ran this command:").partition("And got this output:")
    return (command.strip(), output.strip()) if told and command.strip() else None


def written(reply: str) -> dict[str, str]:
    """The new text that a reply gives each file, by its name: of search-and-replace blocks, else of the fence under its name."""
    edits: dict[str, list[str]] = {}
    whole: dict[str, str] = {}
    kept: list[str] = []
    part, name, before, owner = "", "", "", ""
    for line in reply.split("\n"):
        bare = line.strip(" `*#:")
        if _SEARCH.fullmatch(line):
            part = "old"
        elif part == "old":
            part, kept = ("new", []) if line.rstrip() == "=======" else (part, kept)
        elif part == "new" and _REPLACE.fullmatch(line):
            edits.setdefault(name, []).append("\n".join(kept))
            part = "after"  # within the fence still
        elif part == "new":
            kept.append(line)
        elif line.startswith("```"):
            if part == "fence" and owner:
                whole.setdefault(owner, "\n".join(kept))
            part, kept, owner = ("", [], "") if part in ("fence", "after") else ("fence", [], name if before == name else "")
        elif _NAME.fullmatch(bare) and (part != "fence" or not kept):
            name = bare
            kept += [line] if part == "fence" else []
        elif part == "fence":
            kept.append(line)
        before = bare if bare else before
    return {**whole, **{key: "\n".join(texts) for key, texts in edits.items()}}
