"""`extract`: transcripts of finished runs -> facts in the store, or on stdout with --dry-run."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from osmia_memory.cli import asking_model, context
from osmia_memory.cli.asking_model import Asking, Estimate, ModelOptions, ModelTotals
from osmia_memory.cli.context import ConfigOption, JsonOption, NowOption, StoreOption, StrictOption, TenantOption
from osmia_memory.errors import InputError
from osmia_memory.models import Discard, Insert, Outcome, Reinforce, Skip
from osmia_memory.pipeline import RunReport, Totals


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(extract)


def extract(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Files, folders, globs or tar archives; `-` reads one transcript from stdin.")
    ],
    repo: Annotated[str | None, typer.Option("--repo", help="org/name of the repository; overrules what transcripts tell.")] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="The engine, for transcripts in our own format.")] = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", help="success, failure, partial or unknown; overrules what transcripts claim.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", help="When it happened, for formats without times (RFC 3339).")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=0, max=16, help="Processes that help with large batches; as many as are idle by default.")
    ] = None,
    git: Annotated[
        Path | None, typer.Option("--git", help="A checkout of the repository: facts are then ordered by commits rather than by the clock.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be stored; write nothing.")] = False,
    as_json: JsonOption = False,
    strict: StrictOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
    llm: asking_model.LlmOption = None,
    base_url: asking_model.BaseUrlOption = None,
    max_cost: asking_model.MaxCostOption = None,
    max_tokens: asking_model.MaxTokensOption = None,
    price: asking_model.PriceOption = None,
    concurrency: asking_model.ConcurrencyOption = 4,
    per_minute: asking_model.PerMinuteOption = None,
    window: asking_model.WindowOption = None,
    timeout: asking_model.TimeoutOption = 60.0,
    again: asking_model.AgainOption = False,
    batch_out: asking_model.BatchOutOption = None,
    batch_in: asking_model.BatchInOption = None,
) -> None:
    """Extract facts from finished task runs and store them. Runs that are stored already are skipped.

    Example: osmia-memory extract runs/*.jsonl --repo acme/shop

    Reads Claude Code, Codex, mini-swe-agent, SWE-agent, OpenHands, Aider, Gemini CLI, opencode, Cline and TaskRun JSON. What cannot be read is
    counted, named and passed over. Exit status 1 if no run could be read.
    """
    from osmia_memory.workers import spare_processors

    s = context.session(store, tenant, config, now)
    given = cast(Outcome | None, context.one_of(outcome, get_args(Outcome), "--outcome"))
    stdin = sys.stdin.buffer.read() if "-" in paths else None
    moment = context.parse_time(at, "--at") if at else None
    helpers = spare_processors() if workers is None else workers
    options = ModelOptions(llm, base_url, max_cost, max_tokens, price, concurrency, per_minute, window, timeout, again, batch_out, batch_in)
    asking = _asking(options, s)
    sends = asking.model_pass if asking and not batch_out else None
    reports = s.memory.extract(
        paths,
        stdin=stdin,
        repo=repo,
        engine=engine,
        outcome=given,
        at=moment,
        dry_run=dry_run,
        workers=helpers,
        keep_transcripts=asking is not None,
        model_pass=sends,
    )
    if asking and batch_out and not dry_run:
        reports = asking.written(reports, s, batch_out)
    totals, estimate, by_model = Totals(), Estimate(), ModelTotals()
    for item in _with_progress(reports):
        if isinstance(item, Skip):
            totals.skipped.append(item)
            continue
        totals.add(item)
        if asking and dry_run:
            estimate.add(item, asking, s)
        if item.proposals is not None:
            by_model.add(item.run.source, item.proposals)
        if as_json:
            context.show_json(_row(item))
        elif dry_run:
            _print_plan(item)
    _summary(totals, s.memory.store_path, dry_run)
    if asking and dry_run:
        estimate.say(options.model or "")
    elif sends is not None:
        by_model.say(options.model or "")
        _say_replies(asking)
    if git is not None and not dry_run:
        context.say(f"{s.memory.order_commits(git, repo)} pairs of commits put in order by `{git}`")
    if totals.runs == 0:
        raise InputError(f"no run could be read from {', '.join(paths)}; see the skips above")
    if strict and (totals.skipped or by_model.partial):
        raise SystemExit(1)


def _asking(options: ModelOptions, s: context.Session) -> Asking | None:
    """What the command asks a model; None for rules alone."""
    if options.model is not None:
        return Asking(options, s)
    for value, name in ((options.batch_out, "--batch-out"), (options.batch_in, "--batch-in"), (options.again or None, "--again")):
        if value is not None:
            raise typer.BadParameter("it needs --llm MODEL", param_hint=name)
    return None


def _say_replies(asking: Asking | None) -> None:
    """What stood in a file of replies and belongs to no part of these runs."""
    if asking is None or asking.replies is None:
        return
    for number, reason in asking.replies.rejected[:20]:
        context.say(f"line {number} of the replies: {reason}")
    if asking.unused:
        context.say(
            f"{len(asking.unused)} replies belong to no part of these runs that waits for one, such as {min(asking.unused)}; they were left alone"
        )


def _with_progress(reports: Iterator[RunReport | Skip]) -> Iterator[RunReport | Skip]:
    """The same items, with a counter on stderr while a person watches."""
    if not sys.stderr.isatty():
        yield from reports
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed} runs"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task("reading", total=None)
        for item in reports:
            if not isinstance(item, Skip):
                progress.update(task, advance=1, description=Path(item.run.source).name[:50])
            yield item


def _row(report: RunReport) -> dict[str, Any]:
    """One run as the documented JSON object."""
    run, done = report.run, report.proposals
    plan = done.plan if done and done.plan else report.plan
    decisions = plan.decisions if plan else ()
    row: dict[str, Any] = {
        "source": run.source,
        "run": {
            "run_id": run.run_id,
            "tenant": run.tenant_id,
            "repo": run.repo,
            "engine": run.engine,
            "model": run.model,
            "session": run.session_id,
            "segment": run.segment,
            "task_type": run.task_type,
            "title": run.title,
            "outcome": run.outcome,
            "started_at": run.started_at,
            "times_assumed": run.times_assumed,
            "duration_s": run.duration_s,
            "cost_usd": run.cost_usd,
            "tokens_in": run.tokens_in,
            "tokens_out": run.tokens_out,
            "events": report.digest.events,
        },
        "unchanged": report.plan is None,
        "facts": [_fact_row(d.witness.candidate) for d in decisions if isinstance(d, Insert | Reinforce)],
        "discarded": [{"content": d.candidate.content, "reason": d.reason} for d in decisions if isinstance(d, Discard)],
        "skipped": [{"where": skip.where, "reason": skip.reason} for skip in report.digest.skipped],
        "masked": dict(report.digest.masked),
    }
    return row if done is None else {**row, "model_pass": asking_model.row_of(done)}


def _fact_row(candidate: Any) -> dict[str, Any]:
    return {
        "content": candidate.content,
        "fact_kind": candidate.fact_kind,
        "scope": candidate.scope,
        "owner": candidate.owner,
        "confidence": candidate.confidence,
        "source": candidate.source,
        "tags": list(candidate.tags),
        "evidence": [{"record": e.record, "quote": e.quote, "event": e.event_index} for e in candidate.evidence],
    }


def _print_plan(report: RunReport) -> None:
    run = report.run
    row = _row(report)
    print(f"{run.source}  {run.engine}  {run.repo or 'no repository known'}  {run.outcome}")
    for fact in row["facts"]:
        print(f"  + [{fact['fact_kind']}, {fact['confidence']:.2f}] {fact['content']}")
        print(f"      {fact['source']}: " + " / ".join(repr(e["quote"][:80]) for e in fact["evidence"]))
    for drop in row["discarded"]:
        print(f"  - {drop['reason']}: {drop['content']}")


def _summary(totals: Totals, path: Path, dry_run: bool) -> None:
    done = f"{totals.runs} run{'s' * (totals.runs != 1)} read"
    if totals.unchanged:
        done += f", {totals.unchanged} unchanged"
    verb = "would be " if dry_run else ""
    done += f"; {verb}{totals.inserted} new, {totals.reinforced} reinforced, {totals.retired} retired" + ("" if dry_run else f" in {path}")
    context.say(done)
    if totals.discarded:
        context.say("not stored: " + ", ".join(f"{count} ({reason})" for reason, count in totals.discarded.most_common()))
    if totals.masked:
        context.say("masked: " + ", ".join(f"{count} {kind}" for kind, count in sorted(totals.masked.items())))
    _say_skips(totals.skipped)


def _say_skips(skipped: list[Skip], at_most: int = 20) -> None:
    if skipped:
        context.say(f"skipped {len(skipped)}:")
        for skip in skipped[:at_most]:
            context.say(f"  {skip.where}: {skip.reason}")
        if len(skipped) > at_most:
            context.say(f"  and {len(skipped) - at_most} more; --json lists those inside runs")
