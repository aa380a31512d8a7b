"""`extract`: transcripts of finished runs -> facts in the store, or on stdout with --dry-run."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from osmia_memory.cli import context
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
    repo: Annotated[str | None, typer.Option("--repo", help="org/name of the repository, where the transcript does not tell.")] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="The engine, for transcripts in our own format.")] = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", help="success, failure, partial or unknown; overrules what transcripts claim.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", help="When it happened, for formats without times (RFC 3339).")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=0, max=16, help="Processes that help with large batches; as many as are idle by default.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be stored; write nothing.")] = False,
    as_json: JsonOption = False,
    strict: StrictOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
) -> None:
    """Extract facts from finished task runs and store them. Runs that are stored already are skipped.

    Example: osmia-memory extract runs/*.jsonl --repo acme/shop

    Reads Claude Code sessions, Codex rollouts, mini-swe-agent trajectories and TaskRun JSON. What cannot be read is
    counted, named and passed over. Exit status 1 if no run could be read.
    """
    from osmia_memory.workers import spare_processors

    s = context.session(store, tenant, config, now)
    given = cast(Outcome | None, context.one_of(outcome, get_args(Outcome), "--outcome"))
    stdin = sys.stdin.buffer.read() if "-" in paths else None
    moment = context.parse_time(at, "--at") if at else None
    helpers = spare_processors() if workers is None else workers
    reports = s.memory.extract(paths, stdin=stdin, repo=repo, engine=engine, outcome=given, at=moment, dry_run=dry_run, workers=helpers)
    totals = Totals()
    for item in _with_progress(reports):
        if isinstance(item, Skip):
            totals.skipped.append(item)
            continue
        totals.add(item)
        if as_json:
            context.show_json(_row(item))
        elif dry_run:
            _print_plan(item)
    _summary(totals, s.memory.store_path, dry_run)
    if totals.runs == 0:
        raise InputError(f"no run could be read from {', '.join(paths)}; see the skips above")
    if strict and totals.skipped:
        raise SystemExit(1)


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
    run = report.run
    decisions = report.plan.decisions if report.plan else ()
    return {
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
