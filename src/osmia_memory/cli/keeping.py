"""Commands that look after the store: `import`, `import-outcomes`, `export`, `decay`, `verify`, `doctor`, `redact`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from osmia_memory.cli import context
from osmia_memory.cli.context import AsOfOption, ConfigOption, JsonOption, KnownAtOption, NowOption, StoreOption, StrictOption, TenantOption
from osmia_memory.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("import")(import_rows)
    app.command("import-outcomes")(import_outcomes)
    app.command()(export)
    app.command()(decay)
    app.command()(verify)
    app.command()(doctor)
    app.command()(redact)


def import_rows(
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSONL rows, one object a line; `-` reads stdin.")],
    ignore_unknown: Annotated[bool, typer.Option("--ignore-unknown", help="Pass over unknown fields instead of refusing the row.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check all rows; write nothing.")] = False,
    as_json: JsonOption = False,
    strict: StrictOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
) -> None:
    """Import fact, evidence, edge, pattern, engine_profile and run rows.

    Example: osmia-memory import facts.jsonl --tenant ticketing

    A row equal to a known fact changes nothing and is reported as known. A bad row is named with its line and field.
    """
    s = context.session(store, tenant, config, now)
    report = s.memory.import_rows(_bytes_of(file), name=file, ignore_unknown=ignore_unknown, dry_run=dry_run)
    for where, reason in report.rejected:
        context.say(f"  {where}: {reason}")
    if as_json:
        context.show_json({**report._asdict(), "rejected": [{"where": where, "reason": reason} for where, reason in report.rejected]})
    else:
        print(
            f"{'would import' if dry_run else 'imported'} {report.added} rows new, {report.known} known already, {len(report.rejected)} rejected"
        )
    if report.rejected and (strict or not report.added + report.known):
        raise SystemExit(1)


def import_outcomes(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Outcome rows as JSON or JSONL; `-` reads stdin.")],
    engine: Annotated[str | None, typer.Option("--engine", help="The engine they are of; overrules what rows say.")] = None,
    repo: Annotated[str | None, typer.Option("--repo", help="org/name; overrules what rows and instance ids say.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="When it happened, for rows without a time (RFC 3339).")] = None,
    of: Annotated[
        Path | None, typer.Option("--of", help="A file that names all instances, for files that list only what was resolved.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check all rows; write nothing.")] = False,
    as_json: JsonOption = False,
    strict: StrictOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
) -> None:
    """Import outcomes without transcripts (which task, resolved or not), for success rates and engine profiles.

    Example: osmia-memory import-outcomes resolved.json --engine codex

    Read by content: {"org__repo-12": true}, rows with `instance_id` and `resolved`, lists of resolved and unresolved ids. The repository follows
    from ids such as org__repo-12.
    """
    s = context.session(store, tenant, config, now)
    given = [(name, _bytes_of(name)) for name in files]
    moment = context.parse_time(at, "--at") if at else None
    everything = _bytes_of(str(of)) if of is not None else None
    report = s.memory.import_outcomes(given, engine=engine, repo=repo, at=moment, of=everything, dry_run=dry_run)
    for where, reason in report.rejected[:20]:
        context.say(f"  {where}: {reason}")
    if len(report.rejected) > 20:
        context.say(f"  and {len(report.rejected) - 20} more")
    if as_json:
        context.show_json({**report._asdict(), "rejected": [{"where": where, "reason": reason} for where, reason in report.rejected]})
    else:
        done = "would import" if dry_run else "imported"
        print(f"{done} {report.added} outcomes new, {report.known} known already, {len(report.rejected)} rejected")
    if report.rejected and (strict or not report.added + report.known):
        raise SystemExit(1)


def _bytes_of(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read `{name}`: {error.strerror}") from error


def export(
    out: Annotated[Path | None, typer.Option("--out", dir_okay=False, help="File to write; stdout if absent.")] = None,
    repo: Annotated[str | None, typer.Option("--repo", help="Only facts and runs of this repository.")] = None,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Add recording times; without them equal knowledge exports byte-equal.")
    ] = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    as_of: AsOfOption = None,
    known_at: KnownAtOption = None,
) -> None:
    """Export a tenant's knowledge as sorted, canonical JSONL that `import` takes.

    Example: osmia-memory export --out memory.jsonl
    """
    del as_json  # the format is JSON anyway
    s = context.session(store, tenant, config, None)
    with context.at(s, as_of, known_at) as memory:
        lines = memory.export_rows(repo=repo, recorded=recorded)
        if out is None:
            for line in lines:
                sys.stdout.write(line + "\n")
            return
        context.say(f"{_write_whole(out, lines)} rows written to {out}")


def _write_whole(out: Path, lines: Iterator[str]) -> int:
    """Write the lines to `out` at once, so that no reader sees half an export; returns how many."""
    partial = out.with_name(out.name + ".part")
    count = 0
    try:
        with partial.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(line + "\n")
                count += 1
        partial.replace(out)
    except OSError as error:
        raise InputError(f"cannot write `{out}`: {error.strerror}; pass another file with `--out`") from error
    finally:
        partial.unlink(missing_ok=True)
    return count


def decay(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be pruned; write nothing.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
) -> None:
    """Prune what has faded, of all tenants: texts, quotes and index of facts below `prune_threshold` go for good. Pinned facts stay.

    Example: osmia-memory decay --dry-run

    Queries never prune; run this from cron. Confidence depends on evidence and time alone, not on how often this runs.
    """
    from osmia_memory.decaying import decay as run_pass

    s = context.session(store, "decay", config, now)
    if not s.memory.has_store():
        raise InputError(f"there is no store at `{s.memory.store_path}`; `osmia-memory extract` makes one")
    done = run_pass(s.memory.store, s.settings, s.now(), dry_run=dry_run)
    if as_json:
        context.show_json({**done._asdict(), "dry_run": dry_run})
        return
    told = ", ".join(f"{count} of {tenant}" for tenant, count in done.pruned.items()) or "none"
    print(f"{'would prune' if dry_run else 'pruned'}: {told}")


def verify(as_json: JsonOption = False, store: StoreOption = None, config: ConfigOption = None) -> None:
    """Check the store's own promises: ids, folds, quotes, edges, index and tenants. Exit status 1 if one is broken.

    Example: osmia-memory verify --store memory.duckdb
    """
    s = context.session(store, "verify", config, None)
    problems = s.memory.verify()
    if as_json:
        context.show_json({"problems": problems})
    else:
        for problem in problems:
            print(problem)
        print(f"{len(problems)} problem{'s' * (len(problems) != 1)} found" if problems else "the store is sound")
    if problems:
        raise SystemExit(1)


def doctor(as_json: JsonOption = False, store: StoreOption = None, config: ConfigOption = None) -> None:
    """Say how the store is: size, version, counts, who holds it. Works on a locked, corrupt or missing one.

    Example: osmia-memory doctor --store memory.duckdb
    """
    s = context.session(store, "doctor", config, None)
    report = s.memory.doctor()
    if as_json:
        context.show_json(report)
        return
    for name, value in report.items():
        print(f"{name.replace('_', ' '):<18} {value}")


def redact() -> None:
    """Mask secrets in JSONL {"text"} lines from stdin, to stdout, with a key that lives as long as the command.

    Example: echo '{"text": "password=hunter2secret"}' | osmia-memory redact
    """
    import secrets

    from osmia_memory.transcripts.redact import Redactor, redact_lines

    lines = (line.decode("utf-8", "replace") for line in sys.stdin.buffer)
    redact_lines(lines, sys.stdout.write, Redactor(secrets.token_bytes(32)))
