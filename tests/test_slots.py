"""Slots: what two sentences share when one states another value, and what is left alone because it is not sure. Content is invented."""

import pytest

from osmia_memory import sentences, slots
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
        ("The log format is json.", "The log format is plain text.", ("json", "plain text")),
        ("The number of workers of `gunicorn` is 2.", "The number of workers of `gunicorn` is 4.", ("2", "4")),
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
        ("`bin/edge` is served at port 8080.", "`bin/edge` is served at port 8443 too."),
        ("`client.go` retries on 502.", "`client.go` retries on 503."),
        ("`ledger check` exits with 2.", "`ledger check` exits with 3."),
        ("`codex` was stopped at 20000 tokens.", "`codex` was stopped at 100 turns."),
        ("The rate limit of `/find` is 10 a second.", "The rate limit of `/find` is 200 a minute."),
        ("The failure in `x.py` is at line 12.", "The failure in `x.py` is at line 40."),
        ("The index of `users` is on `email`.", "The index of `users` is on `created_at`."),
        ("`Order.total` is stored in cents.", "`Order.total` is stored in `orders.total`."),
        ("The suite is green on Node 18.", "The suite is green on Node 20."),
        ("`parse` returns an error.", "`parse` returns an error code."),
        ("The stock service publishes to the topic `stock.v1`.", "The stock service publishes to the topic `stock.v2`."),
        ("The image is built from `Dockerfile`.", "The image is scanned by `trivy`."),
        ("The parser of `geo` is recursive.", "The parser of `geo` is generated."),
        ("The dev server is slow.", "The dev server is single-threaded."),
    ],
)
def test_what_may_stand_side_by_side_is_no_other_value(a: str, b: str) -> None:
    """Several values, another subject, another condition, another sentence form: both may hold."""
    found = slots.other_value(a, b)
    assert found is None or sentences.conditions(a) != sentences.conditions(b)


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
