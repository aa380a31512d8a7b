"""Aider's `.aider.chat.history.md`: all sessions of one checkout in one file, each a run.

The format has the time of a session's start (local, taken for UTC) and none after it, and tells exit codes only by exception.
A session in which nothing was asked and nothing answered is no run.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Environment, Signal, Transcript
from osmia_memory.transcripts import aider_words as words
from osmia_memory.transcripts.aider_blocks import Block, Session, blocks, looks_like, sessions
from osmia_memory.transcripts.context import Context, Findings
from osmia_memory.transcripts.events import when, within
from osmia_memory.transcripts.machine import os_of
from osmia_memory.transcripts.outcome import claim_of
from osmia_memory.transcripts.records import MISREAD, Content

ENGINE = "aider"
HISTORY = ".aider.chat.history.md"
_SHELLS = ("/run", "/test", "/git")  # may be cut short to what is not ambiguous
_QUESTIONS = ("/ask", "/code", "/architect", "/help")
_LOOK_AT = 2_000  # characters of a line that tell what it is


def sniff(data: bytes) -> bool:
    """The text has the start of a session, or typed lines beside lines that Aider prints."""
    return looks_like(data)


def read(content: Content, context: Context) -> list[Transcript]:
    """One transcript for each session in which something was asked or answered.

    Raises:
        TranscriptError: the file holds no such session.
    """
    lines = [line.decode("utf-8", "replace").rstrip("\r") for line in content.lines]
    if any("�" in text and "�".encode() not in raw for text, raw in zip(lines, content.lines, strict=True)):
        context.skips.add(None, "invalid UTF-8 replaced")
    found: list[Transcript] = []
    seen: Counter[str] = Counter()
    for session in sessions(lines):
        run = _Run(session, context)
        run.read()
        if not any(e.kind in ("user", "assistant", "command") for e in run.log.events):
            if any(line.strip() for line in session.lines[1:]):
                context.skips.add(session.first, "an Aider session in which nothing was asked")
            continue
        findings = run.findings()
        seen[findings.session_id] += 1
        if seen[findings.session_id] > 1:  # started in the same second with the same words, as benchmarks do
            findings.segment = str(seen[findings.session_id])
        last = session.first + len(session.lines)
        found.append(context.assemble(findings, run.log, content.lines[session.first : last]))
    if not found:
        raise TranscriptError(f"{context.source.name}: an Aider chat history in which nothing was asked")
    skipped = context.skips.result()  # of the file: told once
    return [replace(run, skipped=() if n else skipped) for n, run in enumerate(found)]


class _Run:
    """Reads the blocks of one session in order."""

    def __init__(self, session: Session, context: Context) -> None:
        self.session = session
        self.context = context
        self.log = context.log()
        self.ts = when(session.started)
        self.line = 0
        self.cwd = _folder(context.source.name)
        self.banner: str | None = None
        self.models: Counter[str] = Counter()
        self.tokens = [0, 0]
        self.cost: float | None = None
        self.costs_before = 0.0  # of session totals that began anew
        self.commits: list[str] = []
        self.undone: int | None = None  # index of the last commit of its own taken back
        self.written: dict[str, str] = {}  # the new text of files, by the last reply
        self.replying = False  # the last thing was a reply that has no end yet
        self.waiting: int | None = None  # command typed by a person, whose output comes next
        self.shell: int | None = None  # command proposed by the agent
        self.echo: list[str] = []  # what is printed a second time when the output is added to the chat
        self.asked = ""  # a question that follows its command as a message
        self.linted = ""
        self.created: set[str] = set()
        self.by_person = False  # the next commit is of what a person changed
        self.kept: list[str] = []  # printed lines of one kind
        self.keep: Callable[[str], None] = self._console
        self.kept_line = 0

    def read(self) -> None:
        """Read every block; one of an unknown shape is named and skipped."""
        for block in blocks(self.session):
            try:
                self._block(block)
            except MISREAD:
                self.context.skips.add(block.line, f"{block.kind} text of an unknown shape")
        self._flush()

    def _block(self, block: Block) -> None:
        if block.kind == "printed":
            self.line = block.line
            self._printed(block.text)
            return
        self._flush()
        self.line = block.line
        self.waiting, self.echo, self.by_person = None, [], False
        self.replying = block.kind == "reply"
        if block.kind == "reply":
            self.written = words.written(block.text)
            self.log.add(self.line, "assistant", block.text.strip(), ts=self.ts)
        else:
            self._typed(block.text.strip())

    # --- typed --------------------------------------------------------------------------------------------------------

    def _typed(self, text: str) -> None:
        """A line of a person: words, a command of Aider, a shell command; or what Aider put in their place."""
        asked, self.asked = self.asked, ""
        if words.LINT.match(text):
            self._lint(text)
        elif text.startswith("# Question:") and "# Relevant docs:" in text:
            self._system(text, "help")
        elif ran := words.ran(text):
            self.waiting = self._command(ran[0], "user-shell", "user")
            self._output(ran[1])
        elif re.match(r"!\s*\S|/[a-z-]+(?:\s|\Z)", text):
            self._slash(text)
        elif text and text != asked:
            self.log.add(self.line, "user", text, ts=self.ts)

    def _slash(self, text: str) -> None:
        """A command of Aider's own; a shell command if it is `/run`, `/test`, `/git` or `!`."""
        name, _, rest = text.partition(" ")
        rest = rest.strip()
        whole = next((c for c in (*_SHELLS, *_QUESTIONS) if len(name) > 2 and c.startswith(name)), name)
        if text.startswith("!") or (whole in _SHELLS and rest):
            line = text[1:].strip() if text.startswith("!") else f"git {rest}" if whole == "/git" else rest
            self.waiting = self._command(line, "user-shell", "user")
            return
        if whole in _QUESTIONS and rest:
            self._system(name, "slash-command")
            self.log.add(self.line, "user", rest, ts=self.ts)
            self.asked = rest
            return
        self._system(text, "slash-command")
        self.by_person = name == "/commit"

    # --- printed ------------------------------------------------------------------------------------------------------

    def _printed(self, text: str) -> None:
        if self.echo and (not text or words.plain(text) == self.echo[0]):
            self.echo = self.echo[1:] if text else self.echo
            return
        answer = words.said_to_output(text)
        if answer is not None:
            self._flush()
            self.waiting = None
            if answer:
                self.log.add(self.line, "user", answer, ts=self.ts)
            return
        if self.waiting is not None and text and not words.NO_OUTPUT.match(text):
            self._output(text)
            return
        self.echo = []
        if words.LINT_ENDS.match(text):
            self._flush()
        elif not (self._told_work(text) or self._told_end(text)):
            self._noted(text)
            self._gather(text)

    def _output(self, text: str) -> None:
        self.log.add(self.line, "command_result", text, ts=self.ts, tool="user-shell", answers=self.waiting)
        self.waiting = None
        self.echo = [plain for line in text.splitlines() if (plain := words.plain(line))]

    def _told_work(self, text: str) -> bool:
        """An edit, a commit or its end, a command: True if it was one."""
        if applied := words.APPLIED.match(text):
            self._flush()
            name = applied[1].strip()
            path = within(name, self.cwd)
            created = {"created": True} if path in self.created else None
            self.log.add(self.line, "file_edit", self.written.get(name, ""), ts=self.ts, tool="edit", args=created, paths=(path,))
        elif commit := words.COMMIT.match(text):
            self._flush()
            args = {"by": "user"} if self.by_person else None
            self.log.add(self.line, "system", text, ts=self.ts, tool="commit", args=args)
            self.commits += [] if self.by_person else [commit[1]]
            self.by_person = False
        elif undone := words.UNDONE.match(text):
            self._flush()
            at = self._system(text, "undo")
            left = [sha for sha in self.commits if not (sha.startswith(undone[1]) or undone[1].startswith(sha))]
            self.undone = at if len(left) < len(self.commits) else self.undone
            self.commits = left
        elif running := words.RUNNING.fullmatch(text):
            self._flush()
            self.shell = self._command(running[1].strip(), "shell")
        elif exited := words.EXITED.match(text):
            self._exited(exited[1], int(exited[2]))
        else:
            return False
        return True

    def _exited(self, line: str, code: int) -> None:
        """The only exit codes that are told: of proposed commands that failed, in some versions."""
        self._flush()
        call = self.shell if self.shell is not None and self.log.events[self.shell].text == self.log.redact(line) else None
        self.log.add(self.line, "command_result", "", ts=self.ts, tool="shell", answers=call, exit_code=code, is_error=code != 0)

    def _told_end(self, text: str) -> bool:
        """The end of a reply, whole or interrupted: True if it was one."""
        usage = words.usage(text)
        if usage:
            self._flush()
            self.replying = False
            self.tokens[0] += usage.tokens_in
            self.tokens[1] += usage.tokens_out
            if self.banner:
                self.models[self.banner] += 1
            if usage.session_cost is not None:
                self.costs_before += self.cost if self.cost is not None and usage.session_cost < self.cost else 0.0
                self.cost = usage.session_cost
        elif text.startswith("^C") and self.replying:
            self._flush()
            self.log.add(self.line, "error", text, ts=self.ts, tool="harness", args={"harness": "interrupted"})
            self.replying = False
        else:
            return False
        return True

    def _noted(self, text: str) -> None:
        """What a line of the banner or of a question says beside itself."""
        if model := words.MODEL.match(text):
            self.banner = model[1]
        elif folder := words.FOLDER.match(text):
            self.cwd = folder[1].strip()
        elif created := words.file_created(text):
            self.created.add(within(created, self.cwd))
        elif words.COMMIT_OF_A_PERSON.match(text):
            self.by_person = True

    def _gather(self, text: str) -> None:
        """Printed lines that belong together become one event."""
        kinds = [(words.LINT, self._lint), (words.REJECTED, self._rejected)]
        if self.keep == self._console:  # not where a linter's output or an edit quotes such words
            kinds += [(words.PROVIDER, self._provider), (words.CRASHED, self._crashed)]
        starts = next((to for sign, to in kinds if sign.match(text, 0, _LOOK_AT)), None)
        if starts:
            self._flush()
            self.keep = starts
        self.kept_line = self.kept_line if self.kept else self.line
        self.kept.append(text)

    def _flush(self) -> None:
        text = "\n".join(self.kept).strip()
        line, self.line = self.line, self.kept_line
        keep, self.kept, self.keep = self.keep, [], self._console
        if text:
            keep(text)
        self.line = line

    def _console(self, text: str) -> None:
        if words.LEFT.sub("", text):  # else a person only left
            self._system(text, "console")

    def _rejected(self, text: str) -> None:
        """The reply's edits could not be applied."""
        self.log.add(self.line, "error", text, ts=self.ts, tool="edit-format", is_error=True)

    def _provider(self, text: str) -> None:
        self.log.add(self.line, "error", text, ts=self.ts, tool="provider", args={"retried": "Retrying in" in text}, is_error=True)

    def _crashed(self, text: str) -> None:
        self.log.add(self.line, "error", text, ts=self.ts, tool="harness", is_error=True)

    def _lint(self, text: str) -> None:
        """The linters that Aider runs after an edit, shown when they fail, and again when the agent is to fix it."""
        same = "".join(text.split())
        if same == self.linted:
            return
        self.linted = same
        found = list(words.LINTED.finditer(text))
        for run in found:
            call = self._command(run["command"].strip(), "lint", "harness")
            output = run["output"].strip()
            self.log.add(self.line, "command_result", output, ts=self.ts, tool="lint", answers=call, is_error=True)
        if not found:
            self._system(text, "lint")

    def _system(self, text: str, tool: str) -> int:
        return self.log.add(self.line, "system", text, ts=self.ts, tool=tool)

    def _command(self, line: str, tool: str, by: str | None = None) -> int:
        return self.log.add(self.line, "command", line, ts=self.ts, tool=tool, args={"by": by} if by else None)

    # --- the whole ----------------------------------------------------------------------------------------------------

    def findings(self) -> Findings:
        """What the session says about the run."""
        first = next((e.text for e in self.log.events if e.kind in ("user", "command", "assistant")), "")
        digest = hashlib.sha256(first.encode()).hexdigest()[:8]
        last = next((e for e in reversed(self.log.events) if e.kind == "assistant"), None)
        claim = claim_of(last.text) if last else None
        signals = [Signal("claim", claim, last.index)] if last and claim else []
        if self.undone is not None and not self.commits:  # a person took back everything that was committed
            signals.append(Signal("review", "rejected with /undo", self.undone))
        return Findings(
            engine=ENGINE,
            session_id=f"{(self.session.started or 'before-first-start').replace(' ', 'T')}-{digest}",
            model=self.models.most_common(1)[0][0] if self.models else self.banner,
            cwd=self.cwd,
            environment=Environment(os=os_of(self.cwd)),
            started_at=self.ts,
            cost_usd=None if self.cost is None else round(self.costs_before + self.cost, 6),
            tokens_in=self.tokens[0] or None,
            tokens_out=self.tokens[1] or None,
            signals=signals,
        )


def _folder(name: str) -> str | None:
    """The checkout that a history lies in, where it has its own name and place."""
    path = Path(name)
    return str(path.absolute().parent) if path.name == HISTORY and path.is_file() else None
