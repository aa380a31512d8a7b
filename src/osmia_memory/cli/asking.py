"""Commands that only read: `query`, `list`, `show`, `explain`, `related`, `stats`, `feedback`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from osmia_memory import spool
from osmia_memory.cli import context
from osmia_memory.cli.context import AsOfOption, ConfigOption, JsonOption, KnownAtOption, NowOption, StoreOption, TenantOption
from osmia_memory.errors import InputError, StoreError
from osmia_memory.memory import Block, Memory, Related
from osmia_memory.models import Edge, Fact, FactKind, TaskType
from osmia_memory.render import CHARS_PER_TOKEN

FactArgument = Annotated[str, typer.Argument(metavar="FACT", help="Id of a fact, or the beginning of one that is unique.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(query)
    app.command("list")(list_facts)
    app.command()(show)
    app.command()(explain)
    app.command()(related)
    app.command()(stats)
    app.command()(feedback)


def query(
    repo: Annotated[str | None, typer.Option("--repo", help="org/name of the repository of the new task.")] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="The engine that will work on it, such as claude-code.")] = None,
    task: Annotated[str, typer.Option("--task", help="The task's text; @FILE reads a file, - reads stdin.")] = "",
    task_type: Annotated[
        str | None, typer.Option("--task-type", help="bug_fix, feature, refactor, test, docs, review, chore or question.")
    ] = None,
    max_facts: Annotated[int | None, typer.Option("--max-facts", min=1, help="Upper bound of bullets; a quota it is not.")] = None,
    budget: Annotated[int | None, typer.Option("--budget", min=20, help="Upper bound of the block in tokens.")] = None,
    provenance: Annotated[bool, typer.Option("--provenance", help="Add to each bullet when it was last seen.")] = False,
    record: Annotated[
        str | None, typer.Option("--record", metavar="RUN", help="Id of the coming run: note what it is shown, for `feedback`.")
    ] = None,
    withhold_share: Annotated[
        float, typer.Option("--withhold-share", min=0, max=1, help="With --record: share of runs that are shown nothing, for comparison.")
    ] = 0.0,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with the evidence behind each line; - for stdout.")
    ] = None,
    evidence: Annotated[bool, typer.Option("--evidence", help="Print the evidence behind each line on stderr.")] = False,
    why: Annotated[bool, typer.Option("--explain", help="Print the parts of each score on stderr.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    now: NowOption = None,
    as_of: AsOfOption = None,
    known_at: KnownAtOption = None,
) -> None:
    """Print the Prior Knowledge block for a new task. Nothing known prints nothing and exits with 0.

    Example: osmia-memory query --repo acme/shop --engine codex --task "fix rounding in the cart total"

    Only reads. An unknown repository is told apart from a known one without matches by "known" in --json.
    """
    s = context.session(store, tenant, config, now)
    with context.at(s, as_of, known_at) as memory:
        block = memory.prior_knowledge(
            _text(task),
            repo=repo,
            engine=engine,
            task_type=cast(TaskType | None, context.one_of(task_type, get_args(TaskType), "--task-type")),
            max_facts=max_facts,
            budget_tokens=budget,
            provenance=provenance,
        )
        if html is not None or evidence:
            _present(memory, block, _text(task) if task != "-" else "", repo, html, evidence)
    if record is not None:
        block = _recorded(s.memory, block, record, repo, engine, withhold_share)
    if why:
        for ranked in block.facts:
            parts = ", ".join(f"{name} {value:.3f}" for name, value in ranked.parts.items())
            context.say(
                f"{ranked.score:.3f} {'standing' if ranked.standing else 'relevant'} {ranked.fact.fact_id} ({parts}): {ranked.fact.content}"
            )
            for other in ranked.also:
                context.say(f"      and {other.fact_id}: {other.content}")
    if html == Path("-"):
        return
    if as_json:
        facts = [
            {
                **fact_row(r.fact),
                "score": round(r.score, 6),
                "standing": r.standing,
                "parts": {k: round(v, 6) for k, v in r.parts.items()},
                "also": [fact_row(other) for other in r.also],  # told in the same line
            }
            for r in block.facts
        ]
        context.show_json({"known": block.known, "block": block.text, "facts": facts})
    else:
        context.show(block.text)


def _present(memory: Memory, block: Block, task: str, repo: str | None, html: Path | None, evidence: bool) -> None:
    """Show what stands behind the lines, as a page or on stderr."""
    from osmia_memory import presenting

    shown = memory.evidence_of(block)
    if evidence:
        context.say(presenting.plain(shown) if shown else presenting.nothing(known=block.known, repo=repo))
    if html is None:
        return
    page = presenting.page(shown, block.text, task=task, repo=repo, now=memory.clock(), known=block.known)
    if html == Path("-"):
        context.show(page)
        return
    try:
        html.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write `{html}`: {error.strerror}; pass another file with `--html`") from error
    context.say(f"the evidence behind {len(shown)} lines is in `{html}`")


def _recorded(memory: Memory, block: Block, run: str, repo: str | None, engine: str | None, withhold_share: float) -> Block:
    """The block after it is on record, or an empty one for a run from which it is withheld. A record that fails is said, and no more."""
    withheld = spool.share(run, withhold_share)
    fact_ids = [f.fact_id for r in block.facts for f in (r.fact, *r.also)]
    try:
        memory.record_injection(
            run, repo=repo, engine=engine, fact_ids=fact_ids, tokens=len(block.text) // CHARS_PER_TOKEN, withheld=withheld
        )
    except StoreError as error:
        context.say(f"warning: {error}")
    return block._replace(text="", facts=()) if withheld else block


def _text(task: str) -> str:
    if task == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    if task.startswith("@"):
        path = Path(task[1:])
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise typer.BadParameter(f"cannot read `{path}`: {error.strerror}", param_hint="--task") from error
    return task


def fact_row(fact: Any) -> dict[str, Any]:
    """A fact as printed by --json."""
    return {
        "fact_id": fact.fact_id,
        "content": fact.content,
        "fact_kind": fact.fact_kind,
        "scope": fact.scope,
        "owner": fact.owner,
        "confidence": round(fact.confidence, 4),
        "runs": fact.runs,
        "engines": list(fact.engines),
        "valid_from": fact.valid_from,
        "last_seen": fact.last_seen,
        "decay_rate": fact.decay_rate,
        "pinned": fact.pinned,
        "importance": fact.importance,
        "tags": list(fact.tags),
        "anchors": list(fact.anchors),
        "source": fact.source,
        "superseded_by": fact.superseded_by,
    }


def list_facts(
    repo: Annotated[str | None, typer.Option("--repo", help="Only facts of this repository.")] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", help="Only facts about this engine; with --repo, those its runs support.")
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="success_pattern, failure_pattern, repo_quirk or general.")] = None,
    min_runs: Annotated[int, typer.Option("--min-runs", min=1, help="Only facts that at least so many independent runs support.")] = 1,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 50,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    as_of: AsOfOption = None,
    known_at: KnownAtOption = None,
) -> None:
    """List stored facts, most supported and most recent first.

    Example: osmia-memory list --repo acme/shop --min-runs 2
    """
    s = context.session(store, tenant, config, None)
    kind = context.one_of(kind, get_args(FactKind), "--kind")
    with context.at(s, as_of, known_at) as memory:
        facts = memory.facts(repo=repo, engine=engine, kind=kind, min_runs=min_runs)
    for fact in facts[:limit]:
        if as_json:
            context.show_json(fact_row(fact))
        else:
            print(
                f"{fact.fact_id[:13]}  {fact.last_seen:%Y-%m-%d}  {fact.runs:>3} run{'s' if fact.runs != 1 else ' '}  {fact.confidence:.2f}  {fact.owner}: {fact.content}"
            )
    if len(facts) > limit:
        context.say(f"{limit} of {len(facts)} shown; raise --limit to see more")


def show(
    fact: FactArgument,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    as_of: AsOfOption = None,
    known_at: KnownAtOption = None,
) -> None:
    """Show one fact with all its fields.

    Example: osmia-memory show f1:3a0c5e
    """
    s = context.session(store, tenant, config, None)
    with context.at(s, as_of, known_at) as memory:
        row = fact_row(memory.fact(fact))
    if as_json:
        context.show_json(row)
        return
    for name, value in row.items():
        if value not in (None, [], ""):
            print(f"{name:<14} {', '.join(map(str, value)) if isinstance(value, list) else value}")


def explain(
    fact: FactArgument,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    as_of: AsOfOption = None,
    known_at: KnownAtOption = None,
) -> None:
    """Why a fact is believed: every run that said it, with its quotes and where they stand, and what it replaced or was replaced by.

    Example: osmia-memory explain f1:3a0c5e
    """
    s = context.session(store, tenant, config, None)
    with context.at(s, as_of, known_at) as memory:
        found = memory.fact(fact)
        testimony = memory.testimony(found.fact_id)
        history = memory.history(found.fact_id)
    if as_json:
        links = [{"step": r.step, **_edge_row(r.edge), "fact": fact_row(r.fact)} for r in history]
        context.show_json({"fact": fact_row(found), "witnesses": testimony, "history": links})
        return
    print(
        f"{found.content}\n  {found.fact_kind} of {found.owner}, confidence {found.confidence:.2f} from {found.runs} independent run{'s' * (found.runs != 1)}, rule {found.source}"
    )
    for witness in testimony:
        run = witness["run"]
        where = f"{run['engine']} {run['session']} ({run['outcome']}), {run['source']}" if run else "entered by hand"
        print(f"\n  {witness['observed_at']:%Y-%m-%d %H:%M} {where}")
        for e in witness["evidence"]:
            print(f"    record {e['record']}: {e['quote']!r}" + (" (refutes)" if e["polarity"] == "refutes" else ""))
    if history:
        print("\n  history, oldest first:")
    for fact_there in sorted({found, *(r.fact for r in history)}, key=lambda f: (f.valid_from, f.fact_id)) if history else ():
        _print_step(fact_there, found, history)


def _print_step(fact: Fact, asked: Fact, history: Sequence[Related]) -> None:
    mark = "*" if fact.fact_id == asked.fact_id else " "
    state = f", superseded by {fact.superseded_by}" if fact.superseded_by else ""
    print(f"  {mark} {fact.valid_from:%Y-%m-%d} to {fact.last_seen:%Y-%m-%d}  {fact.fact_id}  {fact.content} ({fact.runs} runs{state})")
    for edge in sorted({r.edge for r in history if r.edge.from_id == fact.fact_id}, key=lambda e: e.to_id):
        print(f"      {edge.relation} {edge.to_id}: {edge.reason}")


def _edge_row(edge: Edge) -> dict[str, Any]:
    return {"from": edge.from_id, "to": edge.to_id, "relation": edge.relation, "weight": edge.weight, "reason": edge.reason}


def related(
    fact: FactArgument,
    depth: Annotated[int, typer.Option("--depth", min=1, max=4, help="Steps along links.")] = 2,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    as_of: AsOfOption = None,
    known_at: KnownAtOption = None,
) -> None:
    """Walk the typed links from a fact: what relates to it, contradicts it, supersedes it.

    Example: osmia-memory related f1:3a0c5e --depth 3
    """
    s = context.session(store, tenant, config, None)
    with context.at(s, as_of, known_at) as memory:
        found = memory.related(memory.fact(fact).fact_id, depth)
    if as_json:
        context.show_json([{"step": r.step, **_edge_row(r.edge), "fact": fact_row(r.fact)} for r in found])
        return
    for r in found:
        arrow = "->" if r.edge.to_id == r.fact.fact_id else "<-"
        print(f"{'  ' * r.step}{arrow} {r.edge.relation}  {r.fact.fact_id}  {r.fact.content}  ({r.edge.reason})")


def stats(
    repo: Annotated[str | None, typer.Option("--repo", help="Only this repository's runs.")] = None,
    engines: Annotated[bool, typer.Option("--engines", help="Show engine profiles.")] = False,
    patterns: Annotated[bool, typer.Option("--patterns", help="Show patterns over at least three runs.")] = False,
    llm: Annotated[
        str | None, typer.Option("--llm", metavar="MODEL", help="Let a model word the lines; numbers and names stay those of the runs.")
    ] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="With --llm: an OpenAI-compatible server, with its /v1.")] = None,
    max_cost: Annotated[float | None, typer.Option("--max-cost", min=0, metavar="USD", help="With --llm: the most it may cost.")] = None,
    price: Annotated[str | None, typer.Option("--price", metavar="IN,OUT", help="With --llm: USD per million tokens.")] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
    as_of: AsOfOption = None,
    known_at: KnownAtOption = None,
) -> None:
    """Counts, outcome rates, durations and costs over the stored runs, with sample counts and 95 % intervals.

    Example: osmia-memory stats --repo acme/shop --engines
    """
    s = context.session(store, tenant, config, None)
    with context.at(s, as_of, known_at) as memory:
        report = memory.statistics(repo=repo)
    if llm is not None:
        _worded(report, s, llm, base_url, max_cost, price, engines=engines, patterns=patterns)
    if as_json:
        told = {name: [{**group._asdict(), "key": dict(group.key)} for group in report[name]] for name in ("groups", "engines")}
        context.show_json({**report, **told})
        return
    print(
        f"{report['runs']} run{'s' * (report['runs'] != 1)}, {report['facts']} facts ({report['corroborated']} from two or more independent runs)"
    )
    if asked := report["model_pass"]:
        print(
            f"models: {asked['requests']} requests, {asked['tokens']:,} tokens, {asked['cost_usd']:.4f} USD; "
            f"{asked['pending_parts']} parts of {asked['partial_runs']} runs wait for an answer"
        )
    for group in report["groups"] if not engines else dict.fromkeys([*report["groups"], *report["engines"]]):
        print("  " + _group_line(group))
    if engines or not patterns:
        for profile in report["profiles"]:
            print(_profile_line(profile))
    if engines:
        _print_expected(report["expected"])
    if patterns:
        for pattern in report["patterns"]:
            print(f"  {pattern.description}")


def _worded(
    report: dict[str, Any],
    s: context.Session,
    llm: str,
    base_url: str | None,
    max_cost: float | None,
    price: str | None,
    *,
    engines: bool,
    patterns: bool,
) -> None:
    """Put the model's words in place of the plain lines, where they hold."""
    from osmia_memory import phrasing
    from osmia_memory.cli.asking_model import Asking, ModelOptions

    if not engines and not patterns:
        raise typer.BadParameter("it words --engines or --patterns; give one of them", param_hint="--llm")
    asking = Asking(ModelOptions(llm, base_url, max_cost, None, price), s)
    budget, record, redact = asking.model_pass.budget, s.memory.recorder(), s.memory.redact
    told = []
    if engines:
        report["profiles"], done = phrasing.profiles(report["profiles"], asking.completer, budget, redact, record)
        told.append(done)
    if patterns:
        report["patterns"], done = phrasing.patterns(report["patterns"], asking.completer, budget, redact, record)
        told.append(done)
    context.say(f"{sum(d.worded for d in told)} lines worded by {llm}, {sum(d.plain for d in told)} as they were")


def _print_expected(expected: dict[str, dict[str, float]]) -> None:
    """The chance of the next task, where engines and repositories differ at all."""
    if len(expected) > 1:
        print("expected success of the next task (engine + repository)")
        for engine, repos in expected.items():
            print(f"  {engine}: " + ", ".join(f"{repo} {value:.0%}" for repo, value in repos.items()))


def _group_line(group: Any) -> str:
    name = ", ".join(value for _, value in group.key)
    rate = (
        f"{group.successes} of {group.known} known outcomes were successes ({group.interval[0]:.0%} to {group.interval[1]:.0%})"
        if group.interval
        else "insufficient data on outcomes"
    )
    more = f", median {group.median_duration_s:.0f} s" if group.median_duration_s is not None else ""
    more += f", median {group.median_cost_usd:.2f} USD" if group.median_cost_usd is not None else ""
    return f"{name}: {group.runs} run{'s' * (group.runs != 1)}, {rate}{more}"


def _profile_line(profile: Any) -> str:
    name = profile.engine + (f" ({profile.model})" if profile.model else "")
    if profile.success_rate is None:
        return f"  {name}: {profile.sample_count} runs, insufficient data"
    text = f"  {name}: {profile.sample_count} runs, {profile.success_rate:.0%} success"
    if profile.interval is not None:
        text += f" ({profile.interval[0]:.0%} to {profile.interval[1]:.0%})"
    for label, lines in (("strong", profile.strengths), ("weak", profile.weaknesses)):
        text += "".join(f"\n    {label}: {line}" for line in lines)
    return text


def feedback(
    repo: Annotated[str | None, typer.Option("--repo", help="Only facts of this repository.")] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
    tenant: TenantOption = None,
    config: ConfigOption = None,
) -> None:
    """How runs fared with and without each fact that was shown (`query --record`), what seems to do harm first.

    Example: osmia-memory feedback --repo acme/shop

    Only runs that used a fact (its command, file or name is among what they did) count for or against it. No confidence is changed.
    """
    s = context.session(store, tenant, config, None)
    found = s.memory.feedback(repo=repo)
    if as_json:
        context.show_json([v._asdict() for v in found])
        return
    for v in found:
        gap = "insufficient data" if v.difference is None else f"{v.difference[0]:+.0%} to {v.difference[1]:+.0%} against runs without it"
        print(
            f"{v.fact_id[:13]}  shown {v.shown}, used {v.used}, {_share(v.with_it)} with it, {_share(v.without)} without: {gap}  {v.content}"
        )
    if not found:
        context.say("no fact is on record as shown; `query --record RUN` notes it")


def _share(rate: Any) -> str:
    return f"{rate.successes}/{rate.known}"
