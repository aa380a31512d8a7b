"""What a proposal takes for granted: artefacts with a name and usual suspects need a word of the run. Content is invented."""

import pytest

from osmia_memory.extract.said import Said
from osmia_memory.extract.supposed import supposes
from osmia_memory.testing import Tape

MIGRATION = "create table orders (id integer primary key, placed text);\ncreate index orders_by_placed on orders (placed);"


def the_run() -> Said:
    """A run that looks at a migration, runs a test and speaks once of a race."""
    tape = Tape().user("`report daily` shows too few orders. Find out why.")
    tape.sh("cat db/migrations/004.sql", MIGRATION)
    tape.sh("pytest tests/test_report.py", "E  assert '2026-03-01T00:00:00+02:00' == '2026-03-01T00:00:00Z'\n1 failed", 1)
    tape.say("It could be a race, but the order of the rows decides.")
    return Said(tape.transcript())


@pytest.mark.parametrize(
    "content",
    [
        "SQLite does not use the index on `amount` for `report daily`.",
        "The trigger on `orders` keeps `placed` up to date.",
        "`report daily` is read before the cache of `orders` is filled.",
        "`tests/test_report.py` fails because the server's time zone is not UTC.",
        "`tests/test_report.py` fails through a race between two writers of `orders`.",
        "`report daily` loses rows to a stale cache.",
        "The rows of `orders` come back in another order under a different locale.",
    ],
)
def test_what_the_run_never_speaks_of_is_supposed(content: str) -> None:
    """An artefact beside no such name, and a suspect that one remark of the agent at most mentions, were made up."""
    assert supposes(content, the_run())


@pytest.mark.parametrize(
    "content",
    [
        "The index on `placed` is made in `db/migrations/004.sql`.",
        "`db/migrations/004.sql` gives the table called `orders` its index.",
        "`tests/test_report.py` compares times as text, so `+02:00` and `Z` differ.",
        "The filter on `amount` is left to the caller of `report daily`.",
    ],
)
def test_what_stands_together_in_the_run_is_not(content: str) -> None:
    """An artefact that stands beside its name is known, and other words are left to other checks."""
    assert not supposes(content, the_run())


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("The time zone of the machine decides what `report daily` counts.", "export TZ=Europe/Vienna"),
        ("`report daily` loses rows to a race between two writers.", "two threads wrote orders at once"),
        ("`tests/test_report.py` fails through floating point in `total`.", "assert 10.004999999 == 10.005  # round() of a float"),
    ],
)
def test_a_suspect_that_the_run_shows_is_not(content: str, shown: str) -> None:
    """What a result speaks of may be blamed; whether rightly is for other checks."""
    tape = Tape().user("`report daily` shows too few orders.")
    tape.sh("bin/probe", shown)
    assert not supposes(content, Said(tape.transcript()))
