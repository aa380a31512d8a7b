"""A transcript as the rules see it: commands joined with their results, edits, turns of people. Pure; decides nothing."""

import bisect
import functools
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from osmia_memory.extract import commands, runners, shell
from osmia_memory.models import Event, Evidence, Polarity, Transcript

MAX_QUOTE = 240
_FAILURE_TEXT = re.compile(
    r"^(?:FAILED\b|FAIL\b|--- FAIL|ERROR:? |E  +\w|Traceback \(most recent|fatal: |error: |npm ERR!|make: \*\*\*|panic: )"
    r"|command not found|No module named|^\d+ (?:failed|errors?)\b",
    re.M,
)
_TIMEOUT = re.compile(r"timed out after|Command timed out|timeout: sending signal|TimeoutExpired|exceeded the timeout", re.I)


class Edit(NamedTuple):
    """A change of files, by an edit tool or by the shell."""

    at: int  # event index
    paths: tuple[str, ...]  # relative to the checkout where possible
    by_shell: bool


@dataclass(frozen=True)
class Step:
    """One shell command with everything it returned."""

    call: Event
    results: tuple[Event, ...]
    line: str
    main: shell.Simple | None
    purpose: commands.Purpose
    output: str  # all results, colourless
    exit_code: int | None
    duration_s: float | None
    verdict: runners.Verdict | None
    timed_out: bool
    harness: str | None  # "refused", "interrupted", "cascade": no failure of the command

    @property
    def index(self) -> int:
        """Event index of the call."""
        return self.call.index

    @property
    def end(self) -> int:
        """Event index of the last result, or of the call."""
        return self.results[-1].index if self.results else self.call.index

    @functools.cached_property  # every rule asks
    def failed(self) -> bool:
        """It did not do what it was run for, by its runner's words before its exit code."""
        if self.harness or self.main is None:
            return False
        if self.timed_out:
            return True
        if self.verdict is not None and self.purpose in ("test", "lint"):
            return not self.verdict.passed or bool(self.exit_code and not (self.main.piped or self.main.guarded))
        if self.exit_code:
            return not (self.purpose in ("search", "read") and not self.output.strip())
        hidden = self.main.piped or self.main.guarded
        return hidden and self.purpose in ("test", "lint", "build", "run", "install") and bool(_FAILURE_TEXT.search(self.output))

    @property
    def worked(self) -> bool:
        """It visibly did what it was run for."""
        return (
            bool(self.results)
            and not self.failed
            and not self.harness
            and (self.exit_code == 0 or (self.verdict is not None and self.verdict.passed))
        )


_EVERYTHING = ("./...", ".", "tests", "tests/", "test", "test/")


class TestRun(NamedTuple):
    """A step in which tests of the repository really ran, passing or not."""

    step: Step
    main: shell.Simple
    verdict: runners.Verdict

    @property
    def at(self) -> int:
        """Event index of the command."""
        return self.step.index

    @property
    def is_whole(self) -> bool:
        """It was pointed at everything, not at a part."""
        where = commands.targets(self.main)
        a_test_itself = commands.is_test_file(commands.runner(self.main)[-1]) and "/" not in commands.runner(self.main)[-1]
        return (
            not commands.is_selective(self.main)
            and not a_test_itself
            and (not where or where[0] in _EVERYTHING and not (where[0] == "." and self.main.program == "go"))
        )


def as_test_run(step: Step) -> TestRun | None:
    """The step as a run of tests, None if no test ran in it."""
    v = step.verdict
    if step.main is None or step.purpose != "test" or v is None or v.kind != "test" or v.broken_build or not v.ran:
        return None
    return TestRun(step, step.main, v)


@dataclass(frozen=True, eq=False)  # compared by identity, so that results can be kept for a view
class View:
    """What rules read. `steps` are in order; `created` holds files that this run made."""

    transcript: Transcript
    steps: tuple[Step, ...]
    edits: tuple[Edit, ...]
    created: frozenset[str]

    @functools.cached_property
    def created_names(self) -> frozenset[str]:
        """Base names of the files and folders this run made, and their module names."""
        # a backup (`cart.py.bak`) does not make the file it was copied from one of the run's own
        names = {posixpath.basename(p) for p in self.created if not _BACKUP.search(p)}
        folders = {
            w.strip("/")
            for s in self.steps
            for c in shell.parse(s.line)
            if c.program == "mkdir"
            for w in c.argv[1:]
            if not w.startswith("-")
        }
        return frozenset(names | {n.rsplit(".", 1)[0] for n in names} | {f.split("/")[0] for f in folders if "/" not in f})

    @functools.cached_property
    def edited(self) -> tuple[str, ...]:
        """Existing files of the repository that this run changed, in order of first change."""
        return tuple(dict.fromkeys(p for e in self.edits for p in e.paths if p not in self.created and not p.startswith(("/", "~", ".."))))

    def edits_between(self, start: int, end: int) -> tuple[str, ...]:
        """Paths changed by events in (start, end)."""
        first, last = bisect.bisect_right(self._edited_at, start), bisect.bisect_left(self._edited_at, end)
        return tuple(dict.fromkeys(p for e in self.edits[first:last] for p in e.paths))

    @functools.cached_property
    def _edited_at(self) -> list[int]:
        return [e.at for e in self.edits]

    def runs_own_code(self, step: Step) -> bool:
        """The command runs something this run wrote: a script, a heredoc or inline code."""
        return step.index in self._own_code

    @functools.cached_property
    def _own_code(self) -> frozenset[int]:
        inline = re.compile(r"<<|\bpython[\d.]* (?:-\w+ )*-c\b|\bnode (?:-e|-p)\b|\bperl -")
        names = [re.escape(n) for n in self.created_names | self._tails_of_created if len(n) > 3]
        # `tests/cart/test_tax.py` and the label `cart.test_tax` are other files than a `test_tax.py` that the run put elsewhere
        made = re.compile(rf"(?<![\w./-])(?:\./|\$\{{?\w+\}}?/|~/)?(?:{'|'.join(names)})(?!\w)") if names else None
        return frozenset(s.index for s in self.steps if inline.search(s.line) or (made and made.search(s.line)))

    @functools.cached_property
    def _tails_of_created(self) -> frozenset[str]:
        """Every way to name a created file from a folder above it: `/tmp/a/try.py` gives `a/try.py`, `tmp/a/try.py` and the whole path."""
        parts = [(p, p.split("/")) for p in self.created if "/" in p and not _BACKUP.search(p)]
        tails = {"/".join(words[n:]) for _, words in parts for n in range(1, len(words) - 1)} | {p for p, _ in parts}
        return frozenset(tails | {t.removesuffix(".py").replace("/", ".") for t in tails if t.endswith(".py")})

    @functools.cached_property
    def scripted(self) -> tuple[Edit, ...]:
        """Changes that code of the run's own may have made: files of the repository that a script which writes names, or "?" if it names none."""
        texts = {p: e.text for e in self.events("file_edit") for p in map(self.relative, e.paths)}
        found: list[Edit] = []
        for step in self.steps:
            for c in shell.parse(step.line):
                texts |= {self.relative(w): c.heredoc for w in c.writes if c.heredoc}
            if step.index not in self._own_code or step.purpose == "test":
                continue
            inline = step.line if re.search(r"<<|-c\b|-e\b", step.line) else ""
            code = "\n".join([inline, *(t for p, t in texts.items() if p in self.created and posixpath.basename(p) in step.line)])
            if _WRITES.search(code):
                named = {p for p in _PATH.findall(code) if p not in self.created and posixpath.basename(p) not in self.created_names}
                found.append(Edit(step.index, tuple(sorted(map(self.relative, named))) or ("?",), by_shell=True))
        return tuple(found)

    def located(self, step: Step, command: str) -> str:
        """The command with the folder it was run from, where that is below the checkout."""
        moved = next((c.argv[1] for c in shell.parse(step.line) if c.program == "cd" and len(c.argv) > 1), "")
        folder = self.relative(moved + "/").strip("/") if moved else ""
        return f"cd {folder} && {command}" if folder and not folder.startswith(("/", "~", "$", "..")) and folder != "." else command

    @functools.cached_property
    def test_runs(self) -> tuple[TestRun, ...]:
        """All runs of tests that this run did not write itself, in order."""
        return tuple(t for s in self.steps if (t := as_test_run(s)) and not self.runs_own_code(s))

    @functools.cached_property
    def runners(self) -> frozenset[str]:
        """Keys of the commands that ran tests in this run."""
        return frozenset(commands.runner_key(t.main) for t in self.test_runs)

    def relative(self, text: str) -> str:
        """Text with the checkout's folder cut from its paths."""
        for root in self._roots:
            if root in text:
                text = re.sub(rf"(?<![\w.~/-]){re.escape(root)}/", "", text)
        return text

    @functools.cached_property
    def _roots(self) -> tuple[str, ...]:
        roots = {root.rstrip("/") for root in (self.transcript.run.cwd, *_TESTBEDS) if root and len(root) > 2}
        return tuple(sorted(roots, key=len, reverse=True))

    def events(self, *kinds: str) -> Iterator[Event]:
        """Events of these kinds, in order."""
        return (e for e in self.transcript.events if e.kind in kinds)

    def cite(self, event: Event, needle: str, polarity: Polarity = "supports") -> Evidence | None:
        """Evidence for `needle` (or its longest prefix of 12+ characters) in the event; None where it does not stand there."""
        text = event.text
        needle = needle.strip()[:MAX_QUOTE]
        at = text.find(needle) if needle else -1
        while at < 0 and len(needle) > 24:
            needle = needle[: len(needle) // 2].rstrip()
            at = text.find(needle)
        if at < 0 or not needle:
            return None
        return self.quote(event, at, at + len(needle), polarity)

    def quote(self, event: Event, start: int, end: int, polarity: Polarity = "supports") -> Evidence:
        """Evidence for the characters [start, end) of the event's text."""
        run = self.transcript.run
        observed = event.ts or run.finished_at or run.started_at
        assert observed is not None, "readers give every run a time"
        return Evidence(
            run.run_id, event.index, event.record, event.text[start:end], (start, end), observed, "exact", polarity, event.origin
        )


_WRITES = re.compile(
    r"open\([^)]*['\"](?:w|a|r\+|wb|x)['\"]|\.write(?:_text|_bytes|lines)?\(|fileinput|shutil\.|os\.(?:rename|replace)|writeFileSync|sed -i"
)
_PATH = re.compile(r"['\"]([\w./-]+/[\w.-]+\.\w+)['\"]")
_TESTBEDS = ("/testbed", "/workspace", "/repo", "/app")
_BACKUP = re.compile(r"(?:\.(?:bak|orig|old|backup|save)|~)$")


def view(transcript: Transcript) -> View:
    """The transcript prepared for the rules."""
    results: dict[int, list[Event]] = {}
    for event in transcript.events:
        if event.kind == "command_result" and event.answers is not None:
            results.setdefault(event.answers, []).append(event)
    draft = View(transcript, (), (), frozenset())
    steps = tuple(_step(e, tuple(results.get(e.index, ()))) for e in transcript.events if e.kind == "command" and e.text.strip())
    edits: list[Edit] = []
    created: set[str] = set()
    seen: set[str] = set()
    by_index = {s.index: s for s in steps}
    for event in transcript.events:
        if event.kind == "file_edit" and event.tool != "submission" and not event.is_error:
            paths = tuple(draft.relative(p).removeprefix("./") for p in event.paths)
            edits.append(Edit(event.index, paths, by_shell=False))
            if event.args.get("created"):
                created |= set(paths) - seen
            seen |= set(paths)
        elif event.index in by_index:
            step = by_index[event.index]
            paths = tuple(draft.relative(p).removeprefix("./") for p in commands.written_files(step.line))
            if paths:
                edits.append(Edit(event.index, paths, by_shell=True))
                created |= _created_by_shell(step, paths, seen, draft, [s for s in steps if s.index < step.index])
                seen |= set(paths)
    return View(transcript, steps, tuple(edits), frozenset(created))


def _created_by_shell(step: Step, paths: tuple[str, ...], seen: set[str], draft: View, earlier: list[Step]) -> set[str]:
    """Files that a redirection or `touch` made: not what `sed -i` or `>>` changed, nor what an earlier command had named."""
    made: set[str] = set()
    for simple in shell.parse(step.line):
        targets = {draft.relative(w).removeprefix("./") for w in simple.writes} if not simple.appends else set()
        if simple.program in ("touch", "tee", "cp", "mv"):
            targets |= {draft.relative(w).removeprefix("./") for w in simple.argv[1:]}
        made |= {t for t in targets & set(paths) if t not in seen}
    return {t for t in made if not any(t in s.line or ("/" in t and t in s.output) for s in earlier if s.exit_code == 0)}


def _step(call: Event, results: tuple[Event, ...]) -> Step:
    main = commands.main_command(call.text)
    output = runners.plain("\n".join(r.text for r in results) if len(results) != 1 else results[0].text)
    codes = [r.exit_code for r in results if r.exit_code is not None]
    durations = [r.duration_s for r in results if r.duration_s is not None]
    harness = next((str(h) for r in results if (h := r.args.get("harness"))), None)
    code = codes[-1] if codes else None
    timed_out = any(r.args.get("timeout") for r in results) or code == 124 or (code is None and bool(_TIMEOUT.search(output[:400])))
    purpose = commands.purpose(main) if main else "none"
    reads_only = purpose in ("search", "read", "none", "write", "git")
    verdict = None if reads_only or len(output) < 4 else runners.verdict(output)
    if verdict is not None and verdict.kind == "test" and purpose == "run":
        purpose = "test"  # a script of the repository's own that runs the tests
    return Step(call, results, call.text, main, purpose, output, code, sum(durations) if durations else None, verdict, timed_out, harness)
