"""The options of `extract` that concern a model: whom to ask, what it may cost, and the files of batch interfaces."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from osmia_memory.cli import context
from osmia_memory.errors import ConfigError
from osmia_memory.models import Skip
from osmia_memory.pipeline import Proposals, RunReport

if TYPE_CHECKING:  # without --llm, nothing of it is imported
    from osmia_memory.batch_files import Replies
    from osmia_memory.llm import Completion, Price
    from osmia_memory.model_pass import Task

_PANEL = "With a model"
LlmOption = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="MODEL",
        rich_help_panel=_PANEL,
        help="Let this model (a litellm name such as gpt-4o-mini) propose facts too; the redacted text of the runs is sent to it.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option("--base-url", rich_help_panel=_PANEL, help="An OpenAI-compatible server, with its /v1; MODEL is then openai/NAME."),
]
MaxCostOption = Annotated[
    float | None, typer.Option("--max-cost", min=0, metavar="USD", rich_help_panel=_PANEL, help="Send nothing that could pass this cost.")
]
MaxTokensOption = Annotated[
    int | None,
    typer.Option("--max-tokens", min=0, rich_help_panel=_PANEL, help="Send nothing that could pass this many tokens, in and out."),
]
PriceOption = Annotated[
    str | None,
    typer.Option(
        "--price", metavar="IN,OUT", rich_help_panel=_PANEL, help="USD per million tokens, where litellm does not know the model's."
    ),
]
ConcurrencyOption = Annotated[int, typer.Option("--concurrency", min=1, max=64, rich_help_panel=_PANEL, help="Requests in flight.")]
PerMinuteOption = Annotated[
    float | None,
    typer.Option("--per-minute", min=0.001, rich_help_panel=_PANEL, help="Requests a minute at most, for a provider's rate limit."),
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", min=1, metavar="SECONDS", rich_help_panel=_PANEL, help="For one request, from beginning to end.")
]
WindowOption = Annotated[
    int | None,
    typer.Option(
        "--window",
        min=1000,
        rich_help_panel=_PANEL,
        help="Tokens of a run's text in one request (12000); less for models with a small context.",
    ),
]
AgainOption = Annotated[bool, typer.Option("--again", rich_help_panel=_PANEL, help="Ask also about what was answered already.")]
BatchOutOption = Annotated[
    Path | None,
    typer.Option(
        "--batch-out", metavar="FILE", rich_help_panel=_PANEL, help="Write the requests for a batch interface instead of sending them."
    ),
]
BatchInOption = Annotated[
    Path | None,
    typer.Option("--batch-in", metavar="FILE", rich_help_panel=_PANEL, help="Take the replies of a batch; give the same PATHs."),
]


@dataclass(frozen=True)
class ModelOptions:
    """The options as given; `model` is None for rules alone."""

    model: str | None
    base_url: str | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    price: str | None = None
    concurrency: int = 4
    per_minute: float | None = None
    window: int | None = None
    timeout: float = 60.0
    again: bool = False
    batch_out: Path | None = None
    batch_in: Path | None = None


class Asking:
    """What one command asks: the pass for `Memory.extract`, and the file of replies behind it if there is one."""

    def __init__(self, given: ModelOptions, session: context.Session) -> None:
        from osmia_memory.llm import LiteLlmCompleter
        from osmia_memory.model_pass import WINDOW_TOKENS, ModelPass

        if given.batch_out and given.batch_in:
            raise typer.BadParameter("a command either writes requests or takes replies", param_hint="--batch-in")
        assert given.model is not None
        self.given = given
        self.completer: LiteLlmCompleter = LiteLlmCompleter(
            given.model,
            base_url=given.base_url,
            price=price_of(given.price),
            at_once=given.concurrency,
            requests_per_minute=given.per_minute,
            timeout_s=given.timeout,
        )
        self.replies: Replies | None = None
        self.unused: set[str] = set()
        budget = self._budget(session)
        self.model_pass = ModelPass(self.completer, budget, given.concurrency, given.window or WINDOW_TOKENS, given.again)
        if given.batch_in is not None:
            self._take(given.batch_in)
        elif given.batch_out is None:
            budget.check_priced(self.completer.price is not None)

    def _budget(self, session: context.Session) -> Any:
        """The caps of this command, and those of the day, of which the store knows what is spent."""
        from osmia_memory.budget import Budget

        settings = session.settings
        day_cost, day_tokens = settings.llm_max_cost_per_day, settings.llm_max_tokens_per_day
        spent_usd, spent_tokens = 0.0, 0
        if (day_cost is not None or day_tokens is not None) and session.memory.store_path.exists():
            midnight = session.now().replace(hour=0, minute=0, second=0, microsecond=0)
            spent = session.memory.store.spent(since=midnight)
            spent_usd, spent_tokens = spent.cost_usd, spent.tokens
        return Budget(
            max_cost_usd=self.given.max_cost,
            max_tokens=self.given.max_tokens,
            day_max_cost_usd=day_cost,
            day_max_tokens=day_tokens,
            day_spent_usd=spent_usd,
            day_spent_tokens=spent_tokens,
        )

    def _take(self, path: Path) -> None:
        from osmia_memory.batch_files import read_replies

        self.replies = read_replies(path)
        self.unused = set(self.replies.by_id)
        self.model_pass = replace(self.model_pass, ask=self._from_replies)

    def _from_replies(self, task: "Task") -> "Completion":
        """The completion in the file of replies; what is not there stays pending."""
        from osmia_memory.llm import Attempt, Completion
        from osmia_memory.model_pass import NotAsked

        assert self.replies is not None
        reply = self.replies.by_id.get(task.custom_id)
        if reply is None:
            raise NotAsked("no reply to it is in the file")
        self.unused.discard(task.custom_id)
        if reply.body is None:
            return Completion("failed", None, (Attempt("failed", self.completer.model, 0, 0, 0.0, 0.0, reply.error),), reply.error)
        return self.completer.from_batch(task.request, reply.body)

    def written(self, reports: Iterable[RunReport | Skip], session: context.Session, path: Path) -> Iterator[RunReport | Skip]:
        """The same reports; once the last is out, the requests that their runs need stand in the file."""
        from osmia_memory.batch_files import requests_file

        count = 0
        with requests_file(path) as write:
            for report in reports:
                for task in self.model_pass.open_tasks(report, session.memory.store) if isinstance(report, RunReport) else ():
                    write(task.custom_id, self.completer.body(task.request))
                    count += 1
                yield report
        context.say(f"{count} request{'s' * (count != 1)} written to {path}; nothing was sent")


@dataclass
class Estimate:
    """What a dry run would send."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = 0.0

    def add(self, report: RunReport, asking: Asking, session: context.Session) -> None:
        """Count the parts of one run that have no answer yet."""
        store = session.memory.store if session.memory.store_path.exists() else None
        for task in asking.model_pass.open_tasks(report, store):
            each = asking.completer.estimate(task.request)
            self.requests += 1
            self.tokens_in += each.tokens_in
            self.tokens_out += each.tokens_out
            self.cost_usd = None if self.cost_usd is None or each.cost_usd is None else self.cost_usd + each.cost_usd

    def say(self, model: str) -> None:
        """On stderr, for people."""
        cost = "no price is known" if self.cost_usd is None else f"at most {self.cost_usd:.4f} USD"
        context.say(
            f"{model} would be asked {self.requests} times: about {self.tokens_in:,} tokens in, at most {self.tokens_out:,} out; {cost}, "
            "unless a request has to be repeated"
        )


@dataclass
class ModelTotals:
    """What the model pass did over all runs of a command."""

    states: dict[str, int] = field(default_factory=dict)
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = 0.0
    partial: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def add(self, source: str, done: Proposals) -> None:
        """Count one run."""
        for state, count in done.states.items():
            self.states[state] = self.states.get(state, 0) + count
        for drop in done.dropped:
            self.dropped[drop.reason] = self.dropped.get(drop.reason, 0) + 1
        self.kept += done.kept
        self.requests += done.requests
        self.tokens_in += done.tokens_in
        self.tokens_out += done.tokens_out
        self.cost_usd = None if self.cost_usd is None or done.cost_usd is None else self.cost_usd + done.cost_usd
        if done.is_partial:
            self.partial.append((source, done.details))

    def say(self, model: str, at_most: int = 10) -> None:
        """On stderr, for people."""
        parts = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items())) or "none"
        cost = "no price is known" if self.cost_usd is None else f"{self.cost_usd:.4f} USD"
        context.say(
            f"{model}: {self.requests} requests, {self.tokens_in:,} tokens in, {self.tokens_out:,} out, {cost}; "
            f"parts of runs: {parts}; proposals kept: {self.kept}"
        )
        if self.dropped:
            ordered = sorted(self.dropped.items(), key=lambda pair: (-pair[1], pair[0]))
            context.say("proposals dropped: " + ", ".join(f"{count} ({reason})" for reason, count in ordered))
        if self.partial:
            context.say(f"partial: {len(self.partial)} runs have parts without an answer; the same command asks for those alone")
            for source, details in self.partial[:at_most]:
                context.say(f"  {source}: {'; '.join(dict.fromkeys(details)) or 'not asked'}")
            if len(self.partial) > at_most:
                context.say(f"  and {len(self.partial) - at_most} more")


def row_of(done: Proposals) -> dict[str, Any]:
    """The model pass of one run as the documented JSON object."""
    return {
        "states": dict(done.states),
        "partial": done.is_partial,
        "kept": done.kept,
        "dropped": [{"content": drop.content, "reason": drop.reason} for drop in done.dropped],
        "requests": done.requests,
        "tokens_in": done.tokens_in,
        "tokens_out": done.tokens_out,
        "cost_usd": done.cost_usd,
        "details": list(done.details),
    }


def price_of(text: str | None) -> "Price | None":
    """The price that an option gives; None if it gives none.

    Raises:
        typer.BadParameter: it is no price.
    """
    from osmia_memory.llm import Price

    if text is None:
        return None
    try:
        usd_in, usd_out = (float(part) for part in text.split(","))
        return Price(usd_in, usd_out)
    except (ValueError, ConfigError) as error:
        raise typer.BadParameter(
            f"{text!r} is no price; write USD per million tokens, in and out, like 0.15,0.60", param_hint="--price"
        ) from error
