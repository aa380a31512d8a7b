"""`reconcile`: a model names facts that cannot both hold; code decides what follows."""

from typing import Annotated

import typer

from osmia_memory.cli import asking_model, context
from osmia_memory.cli.asking_model import Asking, ModelOptions
from osmia_memory.cli.context import ConfigOption, JsonOption, NowOption, StoreOption, TenantOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reconcile)


def reconcile(
    llm: asking_model.LlmOption = None,
    repo: Annotated[str | None, typer.Option("--repo", help="Only facts of this repository.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how many requests it would take; send and write nothing.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
    base_url: asking_model.BaseUrlOption = None,
    max_cost: asking_model.MaxCostOption = None,
    max_tokens: asking_model.MaxTokensOption = None,
    price: asking_model.PriceOption = None,
    timeout: asking_model.TimeoutOption = 60.0,
) -> None:
    """Let a model name pairs of facts that cannot both hold, where rules alone are not sure. Without --llm only a dry run is possible.

    Example: osmia-memory reconcile --dry-run

    Facts whose slots or sentences differ in one value are settled without a model, whenever they are stored. This asks about pairs that are
    worded otherwise; the model only names them, and event time, evidence, branch and environment decide. `undo` takes it back.
    """
    s = context.session(store, tenant, config, now)
    if llm is None and not dry_run:
        raise typer.BadParameter("it needs a model, or --dry-run", param_hint="--llm")
    asking = Asking(ModelOptions(llm or "", base_url, max_cost, max_tokens, price, timeout=timeout), s) if llm else None
    if asking is None:
        from osmia_memory.nominating import groups

        count = len(list(groups(s.memory.facts(repo=repo))))
        _say({"requests": count, "dry_run": True}, f"{count} request{'s' * (count != 1)} would be sent", as_json)
        return
    done = s.memory.nominate(asking.completer, asking.model_pass.budget, repo=repo, dry_run=dry_run)
    told = f"{done.requests} requests, {len(done.pairs)} pairs named, {done.dropped} dropped, {done.unanswered} without a good reply"
    _say({**done._asdict(), "dry_run": dry_run}, f"{done.requests} requests would be sent" if dry_run else told, as_json)


def _say(row: dict[str, object], text: str, as_json: bool) -> None:
    if as_json:
        context.show_json(row)
    else:
        print(text)
