"""What each run is told: our memory's block, and what an embedding search over one-line summaries of earlier runs finds."""

import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.replay.recorded import TENANT, Step

from osmia_memory import embedding, pipeline, render
from osmia_memory.config import Settings
from osmia_memory.memory import Memory
from osmia_memory.models import Ranked, TaskRun

MAX_SUMMARIES = 10
_BULLET = re.compile(r"^- \*\*[^*]+\*\*(?: \(confidence: [\d.]+\))?: ", re.M)

Block = dict[str, Any]  # {"run": ..., "bullets": [{"text", "kind"?}], "tokens": ...}


@dataclass
class _Clock:
    """The time at which the run in question begins."""

    now: datetime = field(default_factory=lambda: datetime.fromisoformat("2000-01-01T00:00:00+00:00"))

    def __call__(self) -> datetime:
        return self.now


def memory_blocks(steps: Sequence[Step], times: list[float] | None = None, *, apart: bool = False) -> list[Block]:
    """The blocks of one repository's runs, each asked for before its own run is stored. `times` receives seconds a query.

    `apart` makes a bullet of its own of each failure that shares a line with others of its pattern.
    """
    clock = _Clock()
    blocks: list[Block] = []
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        memory = Memory(Path(folder) / "replay.duckdb", TENANT, Settings(), clock)
        for step in steps:
            clock.now = max(clock.now, step.started_at)
            begun = time.perf_counter()
            block = memory.prior_knowledge(step.task, repo=step.repo, engine=step.engine)
            if times is not None:
                times.append(time.perf_counter() - begun)
            entries = [each for r in block.facts for each in (_apart(r) if apart else [r])]
            text = render.prior_knowledge(entries) if apart else block.text
            texts = [_BULLET.sub("", line) for line in text.splitlines() if _BULLET.match(line)]
            kinds = [r.fact.fact_kind for r in entries]
            bullets = [{"text": text, "kind": kind} for text, kind in zip(texts, [*kinds, *["pattern"] * len(texts)], strict=False)]
            blocks.append({"run": step.run, "bullets": bullets, "tokens": len(text) // 4})
            for _ in pipeline.store_runs(step.learned, memory.store, clock, TENANT):
                pass
    return blocks


def memory_apart_blocks(steps: Sequence[Step]) -> list[Block]:
    """The same knowledge without joined bullets, which make one hit of several facts."""
    return memory_blocks(steps, apart=True)


def _apart(entry: Ranked) -> list[Ranked]:
    return [replace(entry, also=()), *(replace(entry, fact=fact, also=()) for fact in entry.also)]


def no_blocks(steps: Sequence[Step]) -> list[Block]:
    """Memory off."""
    return [{"run": step.run, "bullets": []} for step in steps]


def embedding_blocks(steps: Sequence[Step]) -> list[Block]:
    """What a vector memory does: the earlier runs whose one-line summaries are nearest to the task. Empty without the embedding."""
    embed = embedding.load()
    blocks: list[Block] = []
    summaries: list[str] = []
    for step in steps:
        texts: list[str] = []
        if embed is not None and summaries:
            vectors = embed([step.task, *summaries])
            scores = [round(float(c), 6) for c in vectors[1:] @ vectors[0]]
            order = sorted(range(len(summaries)), key=lambda n: (-scores[n], -n))
            texts = [summaries[n] for n in order[:MAX_SUMMARIES]]
        blocks.append({"run": step.run, "bullets": [{"text": text} for text in texts]})
        summaries += [summary(digest.run) for digest in step.learned]
    return blocks


def summary(run: TaskRun) -> str:
    """One line on a finished run, as such memories keep it: engine, task, outcome."""
    title = " ".join((run.title or run.description).split())[:160]
    ended = {"success": "succeeded", "failure": "failed", "partial": "succeeded in part"}.get(run.outcome, "ended")
    return f"{run.engine} {ended} on: {title}"
