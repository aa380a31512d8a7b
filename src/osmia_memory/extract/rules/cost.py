"""Rules about what costs the next run time or context: floods, slow and hanging commands."""

import collections
import posixpath
import re
from collections.abc import Iterator

from osmia_memory.extract import commands
from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.common import cite_command, cite_result
from osmia_memory.extract.shell import Simple, parse
from osmia_memory.extract.view import Step, View
from osmia_memory.models import Claim

_FLOOD_TOKENS = 15_000  # a fifth of what common engines keep of a 200k window for one answer
_CHARS_PER_TOKEN = 4
_SLOW_S = 45.0  # past the default patience of the common engines' shell tools
_PATH_LINE = re.compile(r"^(?:\./)?((?:[\w.@+-]+/)+[\w.@+-]+)(?::|$)", re.M)


def flood(view: View) -> Iterator[Finding]:
    """A search or listing whose output flooded the context, and the folder most of it came from."""
    told: set[str] = set()
    for step in view.steps:
        tokens = _tokens(step)
        if tokens < _FLOOD_TOKENS or step.main is None or step.purpose not in ("search", "read", "run", "test", "build", "git"):
            continue
        program = step.main.program
        folder = _main_folder(step)
        key = folder or program
        if key in told or (step.purpose in ("read", "git") and not folder):
            continue
        told.add(key)
        if folder:
            content = (
                f"Searching from the root with `{program}` also reads `{folder}` and floods the context with tens of thousands of tokens; "
                f"limit it to source folders or exclude `{folder.split('/')[0]}`."
            )
        elif step.purpose == "search":
            continue
        else:
            content = f"`{commands.short(step.main, 80)}` prints tens of thousands of tokens; send its output to a file or filter it."
        quotes = (
            [cite_result(view, step, f"{path}") for path in _paths_of(step, folder)[:1]]
            if folder
            else [cite_result(view, step, step.output.strip()[:80])]
        )
        yield Finding(
            content,
            "failure_pattern",
            Claim("search from the root" if folder else program, "floods", folder or commands.runner_key(step.main), "yes"),
            (cite_command(view, step), *quotes),
        )


def _tokens(step: Step) -> int:
    reported = max((int(r.args.get("output_tokens") or 0) for r in step.results), default=0)
    if saved := re.search(r"Output too large \(([\d.]+) ?([KM])B\)", step.output[:400]):
        reported = max(reported, int(float(saved[1]) * (1000 if saved[2] == "K" else 1_000_000)) // _CHARS_PER_TOKEN)
    return max(reported, sum(len(r.text) for r in step.results) // _CHARS_PER_TOKEN)


def _paths_of(step: Step, folder: str) -> list[str]:
    return [p for p in _PATH_LINE.findall(step.output) if p.startswith(folder.split("*")[0].rstrip("/"))]


def _main_folder(step: Step) -> str:
    """The non-source folder that most of the output's bytes name, "" if the output is no list of paths."""
    first: collections.Counter[str] = collections.Counter()
    second: collections.Counter[str] = collections.Counter()
    for line in step.output.splitlines():
        if (match := _PATH_LINE.match(line)) and ((parts := match[1].split("/"))[0].startswith(".") or parts[0] in _NOT_SOURCE):
            first[parts[0]] += len(line)
            second["/".join(parts[:2])] += len(line) if len(parts) > 2 else 0
    top, chars = next(iter(first.most_common(1)), ("", 0))
    shown = len(step.output)
    if chars * 3 < shown and chars < 8000:
        return ""
    below, chars_below = next(iter(second.most_common(1)), ("", 0))
    return (below if chars_below * 10 > chars * 6 else top) + "/"


_NOT_SOURCE = frozenset("node_modules vendor dist build target venv data logs coverage fixtures recordings".split())


def slow(view: View) -> Iterator[Finding]:
    """A command that took long or was cut off by a time limit."""
    told: set[str] = set()
    for step in view.steps:
        product = (
            step.main is not None and step.purpose != "test" and step.main.program == (view.transcript.run.repo or "").rpartition("/")[2]
        )
        if step.main is None or product or step.purpose in ("search", "read", "none", "write", "git") or view.runs_own_code(step):
            continue
        command = view.located(
            step, view.relative(commands.typed(step.main, 4) if step.purpose == "test" else commands.short(step.main, 90))
        )
        if command in told or (step.purpose == "test" and (len(commands.targets(step.main)) > 1 or _tests_twice(step))):
            continue  # of several targets or runs nobody knows which one took the time
        if step.timed_out:
            told.add(command)
            limit = step.main.timeout_s or next((r.duration_s for r in step.results if r.duration_s), None)
            within = f" within {limit:.0f} s" if limit and limit >= 1 else ""
            instead = _finished_variant(view, step)
            rest = f"; `{instead}` finishes" if instead else "; run a part of it, in the background, or with a larger limit"
            last = step.output.strip().splitlines()[-1].strip() if step.output.strip() else ""
            yield Finding(
                f"`{command}` did not finish{within} and was cut off{rest}.",
                "failure_pattern",
                Claim(command, "time", "limit", "exceeded"),
                (cite_command(view, step), cite_result(view, step, last)),
                anchors=_file_of(view, step),
            )
        elif (seconds := _seconds(step)) >= _SLOW_S and step.purpose in ("test", "build", "run", "lint") and step.worked:
            told.add(command)
            yield Finding(
                f"`{command}` takes {_span(seconds)}; give it a time limit above that.",
                "repo_quirk",
                Claim(command, "time", "duration", "long"),
                (cite_command(view, step), cite_result(view, step, step.output.strip()[-80:])),
                anchors=_file_of(view, step),
                tags=("standing",) if step.purpose == "test" and not _file_of(view, step) else (),
            )


def _tests_twice(step: Step) -> bool:
    """`go test ./... && go test -race ./...`."""
    return sum(commands.purpose(c) == "test" for c in parse(step.line)) > 1


def _seconds(step: Step) -> float:
    """What the runner itself reports, else the wall time of the call, which may include waiting."""
    reported = step.verdict.seconds if step.verdict else None
    return reported if reported is not None else 0.0 if step.purpose == "test" and len(step.results) > 1 else step.duration_s or 0.0


def _file_of(view: View, step: Step) -> tuple[str, ...]:
    """The one file the command was pointed at, as an anchor: then it concerns tasks on that file."""
    where = commands.targets(step.main) if step.main else ()
    is_file = len(where) == 1 and re.search(r"\.\w+$", where[0].split("::")[0])
    return (f"file:{view.relative(where[0].split('::')[0])}",) if is_file else ()


def _finished_variant(view: View, step: Step) -> str | None:
    """The same command in another form that finished; not if the run changed the command itself."""
    assert step.main is not None
    key = commands.runner_key(step.main)
    if any(p.endswith(step.main.argv[0].removeprefix("./")) for e in view.edits for p in e.paths):
        return None
    narrower = (
        s
        for s in view.steps
        if s.index > step.index and s.worked and s.main and commands.runner_key(s.main) == key and _is_part(s.main, step.main)
    )
    later = next(narrower, None)
    return view.relative(commands.short(later.main, 80)) if later and later.main else None


def _is_part(small: Simple, whole: Simple) -> bool:
    """The command picks a part of what the other one runs."""
    of, where = commands.targets(whole), commands.targets(small)
    inside = bool(where) and all(any(w.startswith(o.rstrip("/.")) for o in of) for w in where) if of else True
    return inside and (commands.is_selective(small) or (bool(where) and where != of))


def _span(seconds: float) -> str:
    return "about a minute" if seconds < 90 else f"about {round(seconds / 60)} minutes" if seconds >= 105 else "about a minute and a half"


_REAL = re.compile(r"^real\s+(?:(\d+)m)?([\d.]+)s?\s*$|\b([\d.:]+) total\b", re.M)


def measured(view: View) -> Iterator[Finding]:
    """A command the agent timed on purpose: how long it takes here."""
    told: set[str] = set()
    for step in view.steps:
        timed = next((c for c in parse(step.line) if c.timed), None) if "time " in step.line else None
        match = _REAL.search(step.output) if timed else None
        if timed is None or match is None or step.failed or not timed.argv:
            continue
        seconds = int(match[1] or 0) * 60 + float(match[2]) if match[2] else 0.0
        command = view.relative(commands.short(timed, 120))
        key = posixpath.basename(commands.runner_key(timed))
        if seconds < 5 or key in told:
            continue
        told.add(key)
        yield Finding(
            f"`{command}` took {seconds:.0f} s when measured.",
            "success_pattern",
            Claim(command, "time", "measured", f"{seconds:.0f} s"),
            (cite_command(view, step), cite_result(view, step, match[0].strip())),
        )


RULES = (
    Rule("flood", 1, 0.8, 0.01, "the size of the output was seen", flood),
    Rule("slow", 3, 0.7, 0.02, "timings depend on the machine", slow),
    Rule("measured", 1, 0.65, 0.02, "one measurement", measured),
)
