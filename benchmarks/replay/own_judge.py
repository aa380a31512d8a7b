"""A small judge of our own, for replays where no other is given: which failures a block foresaw, and which bullets mattered.

A failure is an error sign (`extract.signs`) or a failing test in a command that did not do what it was run for. It counts once two
earlier runs met it, and is foreseen if a bullet names it as a whole word. A bullet is useful if something it names in back-ticks stands in
a command, a failed output or a changed file of the run, and noise if nothing it names stands anywhere in the run. Coarser than a judge that
folds messages and knows which names are common: do not compare its figures with another's.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from osmia_memory.extract import commands
from osmia_memory.extract.rules.common import short_test
from osmia_memory.extract.signs import signs
from osmia_memory.extract.view import Step, view
from osmia_memory.models import Transcript

MIN_EARLIER = 2
_SPAN = re.compile(r"`([^`]+)`")


class Happened(NamedTuple):
    """What is looked at of one file of runs."""

    failures: tuple[str, ...]  # names: a module, a tool, a file, a test
    touched: str  # commands, failed outputs, changed files
    anywhere: str


def happened(transcripts: Sequence[Transcript]) -> Happened:
    """The failures and texts of the runs of one file."""
    failures: dict[str, None] = {}
    touched: list[str] = []
    anywhere: list[str] = []
    for transcript in transcripts:
        seen = view(transcript)
        for step in seen.steps:
            touched.append(step.line)
            anywhere.append(step.output)
            if step.failed:
                touched.append(step.output)
                failures |= dict.fromkeys(_names(step))
        touched += [path for edit in seen.edits for path in edit.paths]
    near = "\n".join(touched)
    return Happened(tuple(failures), near, "\n".join([near, *anywhere]))


def _names(step: Step) -> list[str]:
    tests = [short_test(f.test_id) for f in step.verdict.failing] if step.verdict else []
    keys = [s.key for s in signs(step.output) if s.kind in ("missing command", "missing module", "missing file", "setting") and s.key]
    return [name for name in (*tests, *keys) if len(name) > 2]


def score(runs: Sequence[tuple[str, Happened]], blocks: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Figures of one repository's runs in time order; `blocks` are the bullets shown to each."""
    met: Counter[str] = Counter()
    n: Counter[str] = Counter(runs=len(runs))
    for name, run in runs:
        texts = list(dict.fromkeys(blocks.get(name, ())))
        known = [f for f in run.failures if met[f] >= MIN_EARLIER]
        n.update(failures=len(run.failures), repeated=len(known), blocks=bool(texts), bullets=len(texts))
        n["foreseen"] += sum(any(commands.names(text, f) for text in texts) for f in known)
        for text in texts:
            named = [re.split(r"\s*[<…]", span)[0].strip() for span in _SPAN.findall(text)]
            n["useful"] += any(len(a) > 2 and a in run.touched for a in named)
            n["noise"] += not any(len(a) > 2 and a in run.anywhere for a in named)
        met.update(set(run.failures))
    return dict(n)


def summed(parts: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    """The figures of all repositories together, with their shares."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return {
        "judge": "own",
        "runs": total["runs"],
        "failures": total["failures"],
        "foreseen": {
            "count": total["repeated"],
            "foreseen": total["foreseen"],
            "share": _share(total["foreseen"], total["repeated"]),
        },
        "useful": _share(total["useful"], total["bullets"]),
        "noise": _share(total["noise"], total["bullets"]),
        "coverage": {"share": _share(total["blocks"], total["runs"]), "bullets_per_block": _share(total["bullets"], total["blocks"])},
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None
