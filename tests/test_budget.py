"""The budget: what fits, what does not, and that requests sent at the same time cannot pass a cap together."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmia_memory.budget import Budget, Spent
from osmia_memory.errors import CapReached, ConfigError
from osmia_memory.llm import Attempt


def an_attempt(tokens_in: int = 100, tokens_out: int = 20, cost_usd: float | None = 0.01) -> Attempt:
    """What a request did cost."""
    return Attempt("ok", "m", tokens_in, tokens_out, cost_usd, 0.1)


def spend(budget: Budget, attempt: Attempt) -> None:
    """Reserve exactly what the request will cost, and settle it."""
    budget.settle(budget.reserve(attempt.tokens_in, attempt.tokens_out, attempt.cost_usd), attempt)


def test_without_caps_everything_fits_and_is_counted():
    """A budget without caps is a counter."""
    budget = Budget()

    for _ in range(3):
        spend(budget, an_attempt())

    assert budget.spent() == Spent(3, 360, pytest.approx(0.03))
    assert not budget.caps_cost


@pytest.mark.parametrize(
    ("caps", "fits"),
    [
        ({"max_tokens": 360}, 3),
        ({"max_tokens": 359}, 2),
        ({"max_cost_usd": 0.03}, 3),
        ({"max_cost_usd": 0.0299}, 2),
        ({"max_cost_usd": 0}, 0),
        ({"day_max_tokens": 1000, "day_spent_tokens": 760}, 2),
        ({"day_max_cost_usd": 1.0, "day_spent_usd": 0.99}, 1),
        ({"day_max_tokens": 100, "day_spent_tokens": 500}, 0),
        ({"max_tokens": 10_000, "day_max_cost_usd": 0.02}, 2),
    ],
)
def test_a_cap_lets_in_exactly_what_fits(caps: dict[str, Any], fits: int):
    """Requests of 120 tokens and 0.01 USD pass until the next would exceed a cap, of the command or of the day; reaching it is allowed."""
    budget = Budget(**caps)

    for _ in range(fits):
        spend(budget, an_attempt())

    with pytest.raises(CapReached):
        spend(budget, an_attempt())
    assert budget.spent().requests == fits


def test_ten_halves_of_a_cent_fit_into_five_cents():
    """Rounding of floats does not refuse the request that reaches the cap exactly."""
    budget = Budget(max_cost_usd=0.05)

    for _ in range(10):
        spend(budget, an_attempt(cost_usd=0.005))

    assert budget.spent().cost_usd == pytest.approx(0.05)


def test_the_message_names_the_cap_and_what_is_left():
    """Whoever meets a cap learns which one, and by how much."""
    with pytest.raises(CapReached, match=r"the cap of 1,000 tokens for today leaves 100, and the next request may take 120"):
        Budget(day_max_tokens=1000, day_spent_tokens=900).reserve(100, 20)
    with pytest.raises(CapReached, match=r"the cap of 0.05 USD for this command leaves 0.0500, and the next request may cost 0.0600"):
        Budget(max_cost_usd=0.05).reserve(1, 1, 0.06)


def test_a_reservation_counts_until_it_is_settled():
    """What is in flight is not spent yet, but it is not free either; nothing sent frees it, and settling twice counts once."""
    budget = Budget(max_tokens=250)
    first = budget.reserve(100, 20)
    second = budget.reserve(100, 20)
    assert budget.spent() == Spent(0, 0, 0.0)

    budget.settle(first, an_attempt())
    budget.settle(first, an_attempt())
    budget.settle(second, None)

    assert budget.spent().requests == 1
    budget.reserve(100, 20)


def test_a_request_waits_for_others_instead_of_failing():
    """A request that would fit once another has cost less than reserved waits for it."""
    budget = Budget(max_tokens=1100)
    large = budget.reserve(100, 800)
    got: list[object] = []
    waiting = threading.Thread(target=lambda: got.append(budget.reserve(100, 800)))
    waiting.start()
    waiting.join(0.05)
    assert got == []

    budget.settle(large, an_attempt())

    waiting.join(5)
    assert len(got) == 1


def test_a_waiting_request_is_told_when_the_cap_is_reached():
    """If the others did cost what they reserved, the one that waited is refused, not left waiting."""
    budget = Budget(max_tokens=1000)
    large = budget.reserve(100, 800)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(budget.reserve, 100, 800)
        budget.settle(large, an_attempt(100, 800))

        with pytest.raises(CapReached):
            waiting.result(5)


def test_a_wrong_estimate_is_learned_from():
    """After a request that took four times what was reserved, the next ones are counted four times larger; a cheaper one changes nothing."""
    budget = Budget(max_tokens=2000)
    budget.settle(budget.reserve(100, 100), an_attempt(700, 100))
    budget.settle(budget.reserve(100, 100), an_attempt(50, 50))

    with pytest.raises(CapReached, match=r"may take 1,200"):
        budget.reserve(200, 100)
    assert budget.reserve(200, 50).held_tokens == 1000


def test_a_cap_in_usd_needs_a_price():
    """Without a price a cap in USD is refused, saying what to pass; a cap in tokens does without."""
    for budget in (Budget(max_cost_usd=1.0), Budget(day_max_cost_usd=1.0)):
        with pytest.raises(ConfigError, match=r"pass a price .* or a cap in tokens"):
            budget.check_priced(False)
        with pytest.raises(ConfigError):
            budget.reserve(1, 1, None)

    Budget(max_tokens=10).check_priced(False)
    Budget(max_cost_usd=1.0).check_priced(True)


def test_an_unknown_cost_counts_as_reserved():
    """Where the cost of a settled request is not known, the cap counts the most that it may have been."""
    budget = Budget(max_cost_usd=0.05)

    budget.settle(budget.reserve(10, 10, 0.03), an_attempt(cost_usd=None))

    assert budget.spent().cost_usd == pytest.approx(0.03)


@pytest.mark.parametrize("wrong", [{"max_tokens": -1}, {"max_cost_usd": float("nan")}, {"day_spent_usd": -0.1}])
def test_a_cap_that_is_no_amount_is_refused(wrong: dict[str, Any]):
    """Negative amounts and NaN would switch a cap off silently."""
    with pytest.raises(ConfigError, match="no amount"):
        Budget(**wrong)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 500), st.floats(0, 1)), max_size=30), st.integers(0, 3000))
def test_honest_reservations_never_pass_a_cap(requests: list[tuple[int, int, float]], cap: int):
    """Whatever the requests, the sum of what was settled stays within the cap as long as none costs more than it reserved."""
    budget = Budget(max_tokens=cap)
    for tokens_in, most_out, share in requests:
        try:
            reservation = budget.reserve(tokens_in, most_out)
        except CapReached:
            continue
        budget.settle(reservation, an_attempt(tokens_in, int(most_out * share)))

    assert budget.spent().tokens <= cap


def test_threads_cannot_pass_a_cap_together():
    """Eight threads that spend as fast as they can stop at the cap, neither above nor a whole request below."""
    budget = Budget(max_cost_usd=1.0)

    def spend_all() -> None:
        while True:
            try:
                spend(budget, an_attempt(cost_usd=0.003))
            except CapReached:
                return

    threads = [threading.Thread(target=spend_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert 0.997 < budget.spent().cost_usd <= 1.0 + 1e-6
