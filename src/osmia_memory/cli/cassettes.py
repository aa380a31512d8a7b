"""`cassettes`: record what a model says about the demo runs, and show what is recorded."""

import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from osmia_memory.cli import asking_model, context
from osmia_memory.errors import InputError
from osmia_memory.models import Skip


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(cassettes)


def cassettes(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="`list` what is recorded, or `record` a model.")] = "list",
    model: Annotated[
        str | None,
        typer.Option("--model", help="To record: a litellm model string such as gpt-4o-mini; its key comes from the environment."),
    ] = None,
    arm: Annotated[str | None, typer.Option("--arm", help="Name of the cassette; made of the model's otherwise.")] = None,
    base_url: asking_model.BaseUrlOption = None,
    price: asking_model.PriceOption = None,
    price_of: Annotated[str, typer.Option("--price-of", help="Whose list price --price is.")] = "",
    max_cost: asking_model.MaxCostOption = None,
    max_tokens: asking_model.MaxTokensOption = None,
    window: asking_model.WindowOption = None,
    timeout: asking_model.TimeoutOption = 60.0,
    note: Annotated[str, typer.Option("--note", help="One sentence on what the model is, kept in the cassette.")] = "",
    folder: Annotated[Path | None, typer.Option("--folder", help="Where cassettes are kept; those of the package otherwise.")] = None,
    as_json: context.JsonOption = False,
) -> None:
    """List recorded replies of models about the demo runs, or record those of another model.

    Example: osmia-memory cassettes list

    `osmia-memory cassettes record --model gpt-4o-mini --max-cost 0.20` asks the model about the demo runs and keeps every request
    and reply, without keys. `make bench-extraction` then compares it with the others, offline.
    """
    context.one_of(action, ("list", "record"), "ACTION")
    if action == "list":
        _show(folder, as_json)
        return
    if model is None:
        raise typer.BadParameter("to record, name a model", param_hint="--model")
    from osmia_memory import demonstration, recording
    from osmia_memory.budget import Budget
    from osmia_memory.llm import LiteLlmCompleter
    from osmia_memory.model_pass import WINDOW_TOKENS, ModelPass

    name = arm or re.sub(r"[^a-z0-9]+", "_", model.lower()).strip("_")
    given = asking_model.price_of(price)
    asked = LiteLlmCompleter(model, base_url=base_url, price=given, timeout_s=timeout, at_once=1)
    budget = Budget(max_cost_usd=max_cost, max_tokens=max_tokens)
    budget.check_priced(asked.price is not None)
    origin = recording.Origin(
        arm=name,
        model=model,
        recorded_from=note or f"`{model}`",
        recorded_on=datetime.now(UTC).date().isoformat(),
        window_tokens=window or WINDOW_TOKENS,
        has_base_url=base_url is not None,
        usd_per_million_in=asked.price.usd_per_million_in if asked.price else None,
        usd_per_million_out=asked.price.usd_per_million_out if asked.price else None,
        price_of=price_of or (model if asked.price and not given else ""),
    )
    path = recording.path_of(name, folder=folder or recording.FOLDER)
    totals = asking_model.ModelTotals()
    with tempfile.TemporaryDirectory() as store, recording.recording(path, origin):
        memory = demonstration.memory(Path(store) / "recording.duckdb")
        asking = ModelPass(asked, budget, concurrency=1, window_tokens=origin.window_tokens)
        for item in memory.extract([str(demonstration.RUNS)], model_pass=asking):
            if not isinstance(item, Skip) and item.proposals is not None:
                totals.add(item.run.source, item.proposals)
        if silent := sum(totals.states.get(state, 0) for state in ("failed", "pending")):
            totals.say(model)
            raise InputError(
                f"{silent} parts got no reply, so the cassette could not be played and is not kept; see above, then record again"
            )
    totals.say(model)
    context.say(f"recorded in {path}")


def _show(folder: Path | None, as_json: bool) -> None:
    from osmia_memory import recording

    for path in sorted((folder or recording.FOLDER).glob("*/*/*.yaml")):
        origin = recording.origin_of(path)
        if as_json:
            context.show_json({"path": path, **vars(origin)})
        else:
            print(
                f"{path.parent.parent.name}/{path.parent.name}/{origin.arm}: {origin.recorded_from} ({origin.model}, {origin.recorded_on})"
            )
