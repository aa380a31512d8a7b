"""Budget: caps in USD and tokens for one command and one day. Counts what it is told; knows nothing of models, stores or clocks.

Every request is reserved at the most it may cost before it is sent and settled at what it did cost. Reservations in flight count as
spent, so that requests sent at the same time cannot pass a cap together.
"""

import math
import threading
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from osmia_memory.errors import CapReached, ConfigError

__all__ = ["Budget", "CapReached", "Cost", "Reservation", "Spent"]

_ROUNDING = 1e-9  # USD; ten requests of 0.005 are to fit into 0.05


class Cost(Protocol):
    """What one request did cost, as an `Attempt` states it."""

    @property
    def tokens_in(self) -> int:
        """Tokens of the prompt."""

    @property
    def tokens_out(self) -> int:
        """Tokens of the reply."""

    @property
    def cost_usd(self) -> float | None:
        """USD; None where no price is known."""


class Spent(NamedTuple):
    """What this command has settled so far; `cost_usd` sums the requests whose price is known."""

    requests: int
    tokens: int
    cost_usd: float


@dataclass(frozen=True, eq=False)
class Reservation:
    """The most that one request may cost; one object for each request, compared by identity.

    `tokens` and `cost_usd` are what was asked for; `stretch` is by how much the budget counts it larger.
    """

    tokens: int
    cost_usd: float | None
    stretch: float

    @property
    def held_tokens(self) -> int:
        """Tokens that are set aside."""
        return math.ceil(self.tokens * self.stretch)

    @property
    def held_usd(self) -> float:
        """USD that are set aside."""
        return (self.cost_usd or 0.0) * self.stretch


class _Cap(NamedTuple):
    name: str  # as in the message: "0.05 USD for this command"
    usd: float | None
    tokens: int | None
    before_usd: float = 0.0
    before_tokens: int = 0


class Budget:
    """Thread-safe caps; a cap of None does not limit. Caps of the day count what was spent today before this command, as given.

    Raises:
        ConfigError: a cap or an amount spent is negative or not a number.
    """

    def __init__(
        self,
        *,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
        day_max_cost_usd: float | None = None,
        day_max_tokens: int | None = None,
        day_spent_usd: float = 0.0,
        day_spent_tokens: int = 0,
    ) -> None:
        for value in (max_cost_usd, max_tokens, day_max_cost_usd, day_max_tokens, day_spent_usd, day_spent_tokens):
            if value is not None and not value >= 0:  # NaN is not
                raise ConfigError(f"a cap of {value!r} is no amount: caps and what was spent are numbers from 0 up")
        self._caps = (
            _Cap("for this command", max_cost_usd, max_tokens),
            _Cap("for today", day_max_cost_usd, day_max_tokens, day_spent_usd, day_spent_tokens),
        )
        self._settled = Spent(0, 0, 0.0)
        self._open: set[Reservation] = set()
        self._stretch = 1.0
        self._changed = threading.Condition()

    @property
    def caps_cost(self) -> bool:
        """Whether there is a cap in USD, so that a price must be known."""
        return any(cap.usd is not None for cap in self._caps)

    def check_priced(self, is_priced: bool) -> None:
        """Call before the first request: a cap in USD means nothing without a price.

        Raises:
            ConfigError: there is a cap in USD and the model's price is not known.
        """
        if self.caps_cost and not is_priced:
            raise ConfigError(
                "no price of this model is known, so a cap in USD cannot be kept: pass a price (USD per million tokens, in and out), "
                "or a cap in tokens instead of the one in USD"
            )

    def reserve(self, tokens_in: int, tokens_out: int, cost_usd: float | None = None) -> Reservation:
        """Set aside the most that the next request may cost. Whoever reserves must `settle`, and holds no other reservation.

        Waits while the request does not fit only because of others in flight: they mostly cost less than they reserved.

        Raises:
            CapReached: the request may pass a cap, and nothing in flight could change that.
            ConfigError: there is a cap in USD and `cost_usd` is None.
        """
        self.check_priced(cost_usd is not None)
        with self._changed:
            while True:
                wanted = Reservation(tokens_in + tokens_out, cost_usd, self._stretch)
                reason = self._excess(wanted)
                if reason is None:
                    self._open.add(wanted)
                    return wanted
                if not self._open:
                    raise CapReached(reason)
                self._changed.wait()

    def settle(self, reservation: Reservation, cost: Cost | None) -> None:
        """Replace a reservation by what the request did cost; None if nothing was sent. A second settlement changes nothing."""
        with self._changed:
            if reservation not in self._open:
                return
            self._open.remove(reservation)
            if cost is not None:
                tokens = cost.tokens_in + cost.tokens_out
                # Where a cost is not known, what was reserved is what it may have been.
                usd = cost.cost_usd if cost.cost_usd is not None else reservation.held_usd
                done = self._settled
                self._settled = Spent(done.requests + 1, done.tokens + tokens, done.cost_usd + usd)
                self._learn(reservation, tokens, usd)
            self._changed.notify_all()

    def spent(self) -> Spent:
        """What was settled so far; requests in flight are not in it."""
        with self._changed:
            return self._settled

    def _learn(self, reservation: Reservation, tokens: int, usd: float) -> None:
        """A request that cost more than was asked for was estimated wrongly; the next ones are counted larger by as much."""
        for asked, actual in ((reservation.tokens, tokens), (reservation.cost_usd or 0.0, usd)):
            if asked > 0:
                self._stretch = max(self._stretch, actual / asked)

    def _excess(self, wanted: Reservation) -> str | None:
        """Why a request does not fit; None if it does."""
        tokens = self._settled.tokens + sum(each.held_tokens for each in self._open)
        usd = self._settled.cost_usd + sum(each.held_usd for each in self._open)
        for cap in self._caps:
            if cap.tokens is not None and cap.before_tokens + tokens + wanted.held_tokens > cap.tokens:
                left = max(cap.tokens - cap.before_tokens - tokens, 0)
                return f"the cap of {cap.tokens:,} tokens {cap.name} leaves {left:,}, and the next request may take {wanted.held_tokens:,}"
            if cap.usd is not None and cap.before_usd + usd + wanted.held_usd > cap.usd + _ROUNDING:
                left_usd = max(cap.usd - cap.before_usd - usd, 0.0)
                return f"the cap of {cap.usd:g} USD {cap.name} leaves {left_usd:.4f}, and the next request may cost {wanted.held_usd:.4f}"
        return None
