"""Commands by which people overrule what was extracted: `retract`, `restore`, `edit`, `pin`, `unpin`, `undo`, `changes`, `forget`."""

from typing import Annotated

import typer

from osmia_memory.cli import context
from osmia_memory.cli.asking import FactArgument
from osmia_memory.cli.context import ConfigOption, JsonOption, NowOption, StoreOption, TenantOption

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen; write nothing.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (retract, restore, edit, pin, unpin, undo, changes, forget):
        app.command()(command)


def retract(
    fact: FactArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the record.")] = "",
    dry_run: DryRun = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
) -> None:
    """Withdraw a fact for good: it leaves every block, and extraction does not bring it back.

    Example: osmia-memory retract f1:3a0c5e --reason "the runner was replaced"
    """
    s = context.session(store, tenant, config, now)
    found = s.memory.fact(fact)
    if not dry_run:
        s.memory.retract(found.fact_id, reason)
    _said("retracted", found.fact_id, found.content, dry_run, as_json)


def restore(
    fact: FactArgument,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
) -> None:
    """Bring back a retracted or superseded fact with its evidence; what superseded it will not do so again.

    Example: osmia-memory restore f1:3a0c5e
    """
    s = context.session(store, tenant, config, now)
    fact_id = s.memory.restorable(fact)
    if not dry_run:
        s.memory.restore(fact_id)
    _said("restored", fact_id, "", dry_run, as_json)


def edit(
    fact: FactArgument,
    content: Annotated[str, typer.Option("--content", help="The new wording, one line.")],
    dry_run: DryRun = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
) -> None:
    """Reword a fact; its evidence and id stay, and later runs do not change the wording back.

    Example: osmia-memory edit f1:3a0c5e --content "Tests need a running broker; start it with make broker."
    """
    s = context.session(store, tenant, config, now)
    found = s.memory.fact(fact)
    text = " ".join(content.split())
    if not text:
        raise typer.BadParameter("the wording must not be empty; use `retract` to withdraw the fact", param_hint="--content")
    if not dry_run:
        text = s.memory.edit(found.fact_id, text)
    _said("edited", found.fact_id, text, dry_run, as_json)


def pin(
    fact: FactArgument,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
) -> None:
    """Pin a fact: it does not decay, is never pruned and weighs double in the ranking.

    Example: osmia-memory pin f1:3a0c5e
    """
    _pin(fact, True, dry_run, as_json, context.session(store, tenant, config, now))


def unpin(
    fact: FactArgument,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
) -> None:
    """Take a pin off; the fact decays again from its latest evidence.

    Example: osmia-memory unpin f1:3a0c5e
    """
    _pin(fact, False, dry_run, as_json, context.session(store, tenant, config, now))


def _pin(fact: str, pinned: bool, dry_run: bool, as_json: bool, s: context.Session) -> None:
    found = s.memory.fact(fact)
    if not dry_run:
        s.memory.pin(found.fact_id, pinned)
    _said("pinned" if pinned else "unpinned", found.fact_id, found.content, dry_run, as_json)


def undo(
    change: Annotated[int | None, typer.Argument(help="Number of the change, as `changes` lists it; the latest if left out.")] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
) -> None:
    """Take back a change that a person or a model made: a retraction, restoration, wording, pin, or links that a model named.

    Example: osmia-memory undo
    """
    s = context.session(store, tenant, config, now)
    done = s.memory.undo(change)
    if as_json:
        context.show_json({"action": "undone", "change": done.change_id, "what": done.what, "subject": done.subject})
    else:
        print(f"taken back: change {done.change_id}, {done.what} of {done.subject}")


def changes(
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many, latest first.")] = 20,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
) -> None:
    """What people and models changed, latest first; `undo` takes a change back.

    Example: osmia-memory changes --limit 5
    """
    s = context.session(store, tenant, config, None)
    found = s.memory.changes(limit)
    if as_json:
        context.show_json([c._asdict() for c in found])
        return
    for c in found:
        print(f"{c.change_id:>6}  {c.at:%Y-%m-%d %H:%M}  {c.what:<14} {c.subject}")


def forget(
    run: Annotated[str | None, typer.Option("--run", help="Id or session id of a run to forget.")] = None,
    repo: Annotated[str | None, typer.Option("--repo", help="org/name of a repository to forget with all its runs.")] = None,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
) -> None:
    """Remove a run or a whole repository for good: texts, quotes and index. Facts that other runs support stay.

    Example: osmia-memory forget --run 0f3c2a1e-6a55-4f0e-9a43-0d6d6f6f2b11
    """
    s = context.session(store, tenant, config, now)
    if (run is None) == (repo is None):
        raise typer.BadParameter("give exactly one of --run and --repo")
    runs, facts = s.memory.forget(run=run, repo=repo, dry_run=dry_run)
    if as_json:
        context.show_json({"runs": runs, "facts": facts, "dry_run": dry_run})
    else:
        print(
            f"{'would forget' if dry_run else 'forgot'} {runs} run{'s' * (runs != 1)} and {facts} fact{'s' * (facts != 1)} that nothing else supports"
        )


def _said(what: str, fact_id: str, content: str, dry_run: bool, as_json: bool) -> None:
    if as_json:
        context.show_json({"action": what, "fact_id": fact_id, "dry_run": dry_run})
    else:
        print(f"{'would be ' if dry_run else ''}{what}: {fact_id}" + (f"  {content}" if content else ""))
