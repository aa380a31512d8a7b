"""`demo`: the shipped transcripts through the whole chain, with a sentence on where each bullet comes from."""

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from osmia_memory.cli import context
from osmia_memory.config import Settings
from osmia_memory.memory import Block, Memory
from osmia_memory.models import Skip
from osmia_memory.pipeline import Totals

RUNS = Path(__file__).parents[1] / "demo" / "runs"
TASKS = Path(__file__).parents[1] / "demo" / "tasks.json"
NOW = datetime(2026, 3, 30, 9, 0, tzinfo=UTC)  # three days after the last shipped run, so that the block is the same on any day


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    store: Annotated[Path | None, typer.Option("--store", help="Keep the demo's store in this file; a temporary one otherwise.")] = None,
    as_json: context.JsonOption = False,
) -> None:
    """Extract the transcripts that ship with the package and print the block for new tasks, with the source of each bullet.

    Example: osmia-memory demo
    """
    if store is not None:
        _run(store, as_json)
        return
    with tempfile.TemporaryDirectory() as folder:
        _run(Path(folder) / "demo.duckdb", as_json)


def _run(store: Path, as_json: bool) -> None:
    memory = Memory(store, "demo", Settings(), lambda: NOW)
    totals, repo = Totals(), None
    for item in memory.extract([str(RUNS)]):
        if isinstance(item, Skip):
            totals.skipped.append(item)
        else:
            totals.add(item)
            repo = repo or item.run.repo
    tasks = json.loads(TASKS.read_text(encoding="utf-8"))
    tasks = tasks["tasks"] if isinstance(tasks, dict) else tasks
    if as_json:
        blocks = [
            memory.prior_knowledge(
                f"{t['title']}\n\n{t['description']}", repo=repo, engine=t.get("engine"), task_type=t.get("task_type")
            ).text
            for t in tasks
        ]
        context.show_json({"runs": totals.runs, "facts": totals.inserted, "masked": totals.masked, "blocks": blocks})
        return
    print(
        f"{totals.runs} finished runs of three engines on {repo} were read: {totals.inserted} facts, {totals.reinforced} times one was seen again."
    )
    if totals.masked:
        print("Masked on the way: " + ", ".join(f"{count} {kind}" for kind, count in sorted(totals.masked.items())) + ".")
    for task in tasks:
        text = f"{task['title']}\n\n{task['description']}"
        block = memory.prior_knowledge(text, repo=repo, engine=task.get("engine"), task_type=task.get("task_type"))
        print(f"\n{'=' * 100}\nNew task for {task.get('engine', 'any engine')}: {task['title']}\n{'-' * 100}\n")
        context.show(block.text or "(nothing known belongs to this task: the prompt stays as it was)")
        _sources(memory, block)


def _sources(memory: Memory, block: Block) -> None:
    if block.facts:
        print("\nWhere each line comes from:")
    for number, ranked in enumerate(block.facts, 1):
        testimony = [w for w in memory.testimony(ranked.fact.fact_id) if w["run"] and w["evidence"]]
        if not testimony:
            print(f"  {number}. entered by hand")
            continue
        first = testimony[0]
        quote = first["evidence"][0]["quote"]
        engines = sorted({w["run"]["engine"] for w in testimony})
        name = Path(first["run"]["source"]).name
        print(
            f"  {number}. {len(testimony)} run{'s' * (len(testimony) != 1)} of {', '.join(engines)}; first in {name}, record {first['evidence'][0]['record']}: {' '.join(quote.split())[:90]!r}"
        )
