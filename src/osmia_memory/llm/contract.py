"""What the parts of the model pass say to each other: a request, its completion, and every HTTP request that it took."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from pydantic import BaseModel

from osmia_memory.budget import Budget
from osmia_memory.errors import ConfigError

Message = Mapping[str, str]  # "role", "content"
State = Literal["ok", "refused", "truncated", "invalid", "failed"]


@dataclass(frozen=True)
class Attempt:
    """One HTTP request.

    Attributes:
        state: What this request alone came to.
        model: The litellm model string.
        tokens_in, tokens_out: As the provider states them. Without such a statement (`estimated`): counted from the texts, and where
            no reply was read, the whole of `max_tokens`, because it may have been written and billed. 0 for an error status.
        cost_usd: Of these tokens; None where no price is known.
        latency_s: Seconds from sending to the end of the reply.
        error: One line without secrets; "" if the state is ok.
    """

    state: State
    model: str
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    latency_s: float
    error: str = ""
    estimated: bool = False


@dataclass(frozen=True)
class Request:
    """Messages, the model of the reply, and the most tokens the reply may have."""

    messages: tuple[Message, ...]
    wire: type[BaseModel]
    max_tokens: int


@dataclass(frozen=True)
class Completion:
    """What became of a request: `parsed` is there if and only if the state is ok; `detail` says in one line what went wrong."""

    state: State
    parsed: BaseModel | None
    attempts: tuple[Attempt, ...]
    detail: str = ""


class Completer(Protocol):
    """Asks one model."""

    model: str

    def count_tokens(self, text: str) -> int:
        """How many tokens `text` has for this model, or about how many; no network."""

    def complete(self, request: Request, budget: Budget) -> Completion:
        """One structured reply. Trouble with the provider is a state, not an exception.

        Raises:
            CapReached: the budget does not allow the first attempt.
            ConfigError: the budget has a cap in USD and no price is known.
        """


@dataclass(frozen=True)
class Price:
    """USD for a million tokens of prompt and of reply.

    Raises:
        ConfigError: one of them is negative or not a number.
    """

    usd_per_million_in: float
    usd_per_million_out: float

    def __post_init__(self) -> None:
        if not (self.usd_per_million_in >= 0 and self.usd_per_million_out >= 0):
            raise ConfigError(f"a price of {self.usd_per_million_in!r} and {self.usd_per_million_out!r} is none: both are USD from 0 up")

    def cost(self, tokens_in: int, tokens_out: int) -> float:
        """USD."""
        return (tokens_in * self.usd_per_million_in + tokens_out * self.usd_per_million_out) / 1_000_000


class Estimate(NamedTuple):
    """What one request would take: `tokens_out` is the most; `cost_usd` is None where no price is known."""

    tokens_in: int
    tokens_out: int
    cost_usd: float | None
