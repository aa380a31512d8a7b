"""Sentences: which say the contrary of each other, and which only sound like it. Content is invented."""

import pytest

from osmia_memory import sentences


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("`make lint` needs network.", "`make lint` does not need network."),
        ("The cache is enabled in CI.", "The cache is disabled in CI."),
        ("`tox -e py311` passes on a clean checkout.", "`tox -e py311` fails on a clean checkout."),
        ("Commits can be pushed to `main`.", "Commits cannot be pushed to `main`."),
        ("The flag `NEW_CART` is off by default.", "The flag `NEW_CART` is on by default."),
        ("Commits without a ticket are allowed.", "Commits without a ticket are not allowed."),
    ],
)
def test_the_contrary(a: str, b: str) -> None:
    """The same sentence with a negation or the opposite word."""
    assert sentences.are_opposite(a, b)
    assert sentences.are_opposite(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("`go test ./...` fails with gpgSign on.", "`go test ./...` fails with gpgSign off."),
        ("`make lint` needs network.", "`make docs` does not need network."),
        ("Run the migrations before the tests.", "Run the seeds after the tests."),
        ("`make lint` needs network.", "`make lint` needs network."),
        ("The public key is in `keys/a.pem`.", "The private key is in `keys/a.pem`."),
        ("Valid tokens are cached.", "Invalid tokens are cached."),
        ("The first test is slow.", "The last test is slow."),
        ("Requests that are signed are logged.", "Requests that are not signed are logged."),
        ("Tests that pass are cached.", "Tests that fail are cached."),
        ("`deploy` fails when `TOKEN` is set.", "`deploy` fails when `TOKEN` is not set."),
    ],
)
def test_no_contrary(a: str, b: str) -> None:
    """A circumstance or a part of a name that is turned round, another subject, the same sentence."""
    assert not sentences.are_opposite(a, b)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("The suite is green on Node 18.", {"on node 18"}),
        ("`make lint` fails without `node`.", {"without node"}),
        ("The port is 8080.", set()),
    ],
)
def test_circumstances(content: str, found: set[str]) -> None:
    """What a sentence holds under, with the version where one is named."""
    assert sentences.conditions(content) == found
