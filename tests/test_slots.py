"""Slots: what two sentences share when one states another value, and what is left alone because it is not sure. Content is invented."""

import pytest

from osmia_memory import slots
from osmia_memory.models import Claim


@pytest.mark.parametrize(
    ("a", "b", "values"),
    [
        (
            "The default branch of `northwind/orders` is `main`.",
            "The default branch of `northwind/orders` is now `trunk`.",
            ("main", "trunk"),
        ),
        ("The dev server listens on port 8080.", "The dev server listens on port 9090.", ("8080", "9090")),
        ("`make e2e` takes 40 s.", "`make e2e` takes 90 s.", ("40", "90")),
        ("`ledger.yaml` is loaded from `/etc/ledger`.", "`ledger.yaml` is loaded from `config/`.", ("/etc/ledger", "config/")),
        ("The API returns 401 for expired tokens.", "The API returns 403 for expired tokens.", ("401", "403")),
        ("The head of the platform team is Ada Byron.", "The head of the platform team is Grace Hopper.", ("Ada Byron", "Grace Hopper")),
        ("Ada's editor is Vim.", "Ada's editor is Emacs.", ("Vim", "Emacs")),
    ],
)
def test_another_value_of_the_same_thing(a: str, b: str, values: tuple[str, str]) -> None:
    """The same words up to one value, which only one thing can have."""
    assert slots.other_value(a, b) == values


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("`orders` imports `ledger`.", "`orders` imports `billing`."),
        ("`api.go` is imported by `main.go`.", "`api.go` is imported by `cli.go`."),
        ("The tests need Redis.", "The tests need Postgres."),
        ("`src/a.py` is slow.", "`src/a.py` is generated."),
        ("The dev server listens on port 8080.", "The metrics server listens on port 9090."),
        ("The API returns 401 for expired tokens.", "The API returns 403 for missing scopes."),
        ("The timeout is 30 s on macOS.", "The timeout is 60 s on Linux."),
        ("The cause of the delay is the retry loop.", "The cause of the delay is the cold cache."),
        ("The lint step is part of `make check`.", "The lint step is part of `make ci`."),
        ("Tests run with `tox`. The port is 8080.", "Tests run with `tox`. The port is 9090."),
    ],
)
def test_what_may_stand_side_by_side_is_no_other_value(a: str, b: str) -> None:
    """Several values, another subject, another condition, another sentence form: both may hold."""
    found = slots.other_value(a, b)
    assert found is None or slots.conditions(a) != slots.conditions(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("`make lint` needs network.", "`make lint` does not need network."),
        ("The cache is enabled in CI.", "The cache is disabled in CI."),
        ("`tox -e py311` passes on a clean checkout.", "`tox -e py311` fails on a clean checkout."),
        ("Commits can be pushed to `main`.", "Commits cannot be pushed to `main`."),
    ],
)
def test_the_contrary(a: str, b: str) -> None:
    """The same sentence with a negation or the opposite word."""
    assert slots.are_opposite(a, b)
    assert slots.are_opposite(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("`go test ./...` fails with gpgSign on.", "`go test ./...` fails with gpgSign off."),
        ("`make lint` needs network.", "`make docs` does not need network."),
        ("Run the migrations before the tests.", "Run the seeds after the tests."),
        ("`make lint` needs network.", "`make lint` needs network."),
    ],
)
def test_no_contrary(a: str, b: str) -> None:
    """A circumstance that is turned round, another subject, the same sentence."""
    assert not slots.are_opposite(a, b)


@pytest.mark.parametrize(
    ("attribute", "value", "single"),
    [
        ("duration", "40 s", True),
        ("baseline", "fails", True),
        ("installed", "yes", False),
        ("needs", "redis", False),
        ("changes with", "b.py", False),
    ],
)
def test_claims_that_take_one_value(attribute: str, value: str, single: bool) -> None:
    """Lists and yes-or-no claims never speak against another value."""
    assert slots.takes_one_value(Claim("x", attribute, "", value)) is single
