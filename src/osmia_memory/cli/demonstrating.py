"""`demo`: the shipped transcripts through the whole chain, by rules and then with a recorded model, and where each bullet comes from."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from osmia_memory.cli import asking_model, context
from osmia_memory.memory import Block, Memory
from osmia_memory.models import Skip
from osmia_memory.pipeline import Totals

if TYPE_CHECKING:
    from osmia_memory.recording import Origin

ARM = "authored"
_WIDE = "=" * 100

Task = Mapping[str, Any]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    store: Annotated[Path | None, typer.Option("--store", help="Keep the demo's store in this file; a temporary one otherwise.")] = None,
    as_json: context.JsonOption = False,
) -> None:
    """Extract the transcripts that ship with the package and print the block for new tasks, with the source of each bullet.

    Example: osmia-memory demo

    First by rules alone; then with a model whose replies were recorded, so that nothing is sent and nothing is paid.
    """
    from osmia_memory import demonstration

    tasks = json.loads(demonstration.TASKS.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        memory = demonstration.memory(store or Path(folder) / "demo.duckdb")
        totals, repo = _by_rules(memory)
        blocks = [_block(memory, repo, task) for task in tasks]
        if not as_json:
            _show_rules(memory, totals, repo, tasks, blocks)
        beside = demonstration.memory(Path(folder) / "with-model.duckdb")
        by_model, origin = _by_model(beside)
        with_model = [_block(beside, repo, task) for task in tasks]
        if as_json:
            context.show_json(_row(totals, blocks, with_model, by_model))
        else:
            _show_model(beside, by_model, origin, tasks, blocks, with_model)


def _by_rules(memory: Memory) -> tuple[Totals, str | None]:
    """What the rules found, and the repository of the runs."""
    totals, repo = Totals(), None
    from osmia_memory import demonstration

    for item in memory.extract([str(demonstration.RUNS)]):
        if isinstance(item, Skip):
            totals.skipped.append(item)
        else:
            totals.add(item)
            repo = repo or item.run.repo
    return totals, repo


def _by_model(memory: Memory) -> "tuple[asking_model.ModelTotals, Origin]":
    """What the recorded model proposed about the same runs, and where the recording is from."""
    from osmia_memory import demonstration

    totals = asking_model.ModelTotals()
    with demonstration.recorded_model(ARM) as (model_pass, origin):
        for item in memory.extract([str(demonstration.RUNS)], model_pass=model_pass):
            if not isinstance(item, Skip) and item.proposals is not None:
                totals.add(item.run.source, item.proposals)
    return totals, origin


def _block(memory: Memory, repo: str | None, task: Task) -> Block:
    text = f"{task['title']}\n\n{task['description']}"
    return memory.prior_knowledge(text, repo=repo, engine=task.get("engine"), task_type=task.get("task_type"))


def _row(totals: Totals, blocks: Sequence[Block], with_model: Sequence[Block], by_model: asking_model.ModelTotals) -> dict[str, Any]:
    return {
        "runs": totals.runs,
        "facts": totals.inserted,
        "masked": totals.masked,
        "blocks": [block.text for block in blocks],
        "model_pass": {**vars(by_model), "blocks": [block.text for block in with_model]},
    }


def _show_rules(memory: Memory, totals: Totals, repo: str | None, tasks: Sequence[Task], blocks: Sequence[Block]) -> None:
    print(
        f"{totals.runs} finished runs of three engines on {repo} were read: {totals.inserted} facts, {totals.reinforced} times one was seen again."
    )
    if totals.masked:
        print("Masked on the way: " + ", ".join(f"{count} {kind}" for kind, count in sorted(totals.masked.items())) + ".")
    for task, block in zip(tasks, blocks, strict=True):
        print(f"\n{_WIDE}\nNew task for {task.get('engine', 'any engine')}: {task['title']}\n{'-' * 100}\n")
        context.show(block.text or "(nothing known belongs to this task: the prompt stays as it was)")
        _sources(memory, block)


def _show_model(
    memory: Memory,
    done: asking_model.ModelTotals,
    origin: "Origin",
    tasks: Sequence[Task],
    blocks: Sequence[Block],
    with_model: Sequence[Block],
) -> None:
    print(f"\n{_WIDE}\nThe same runs with `--llm`, answered from a recording: {origin.recorded_from}\n{'-' * 100}\n")
    cost = "" if done.cost_usd is None else f"; at the list price of {origin.price_of}: {done.cost_usd:.4f} USD"
    print(f"{done.requests} requests, {done.tokens_in:,} tokens in, {done.tokens_out:,} out{cost}.")
    dropped = sorted(done.dropped.items(), key=lambda pair: (-pair[1], pair[0]))
    print(f"{done.kept} proposals kept, {sum(done.dropped.values())} dropped: " + ", ".join(f"{n} {reason}" for reason, n in dropped) + ".")
    for task, before, after in zip(tasks, blocks, with_model, strict=True):
        print(f"\n{'-' * 100}\nWhat it changes for: {task['title']}\n")
        old, new = before.text.splitlines(), after.text.splitlines()
        changes = [f"+ {line[2:]}" for line in new if line not in old and line.startswith("- ")]
        changes += [f"- {line[2:]}" for line in old if line not in new and line.startswith("- ")]
        print("\n".join(changes) or "(nothing)")


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
