"""Events: redacted once, numbered, and without our own block."""

import json
from datetime import UTC, datetime

import pytest

from osmia_memory.transcripts.events import EventLog, span, when, within
from osmia_memory.transcripts.redact import Redactor

BLOCK = (
    "## Prior Knowledge\n\nThe following observations from previous tasks may be relevant:\n\n"
    "- **Repo quirk** (confidence: 0.82): `make check` needs `make deps` first.\n"
    "- **Failure pattern** (confidence: 0.71): `tests/slow` hangs without a broker.\n"
)


def log() -> EventLog:
    """An empty log."""
    return EventLog(Redactor(b"k" * 32))


@pytest.mark.parametrize("kind", ["user", "system", "command_result", "tool_result", "assistant"])
def test_our_block_is_cut_out_of_a_text(kind):
    """What stood before and after it stays; the block is an event of its own."""
    events = log()
    events.add(4, kind, f"Fix the login.\n\n{BLOCK}\nThe page is blank.")
    main, memory = events.events
    assert (main.kind, memory.kind) == (kind, "injected_memory")
    assert "Prior Knowledge" not in main.text
    assert main.text.startswith("Fix the login.")
    assert main.text.endswith("The page is blank.")
    assert memory.text.count("confidence") == 2
    assert (memory.index, memory.record) == (1, 4)


def numbered(text: str) -> str:
    """As a file viewer prints it."""
    return "\n".join(f"{n:6}\t{line}" for n, line in enumerate(text.splitlines(), 1))


@pytest.mark.parametrize(
    "shown",
    [
        numbered(BLOCK),
        "\n".join(f"> {line}" for line in BLOCK.splitlines()),
        json.dumps({"hook": {"context": BLOCK}}),
        BLOCK.replace("\n", "\r\n"),
    ],
    ids=["line numbers", "quoted", "inside JSON", "CRLF"],
)
def test_our_block_is_recognised_as_tools_show_it(shown: str):
    """A block that an agent printed, quoted or got from a hook is still ours."""
    events = log()
    events.add(0, "command_result", f"before\n{shown}\nafter")
    assert [e.kind for e in events.events] == ["command_result", "injected_memory"]
    assert "make deps" not in events.events[0].text
    assert "broker" not in events.events[0].text
    assert "after" in events.events[0].text


def test_a_heading_of_that_name_alone_is_not_our_block():
    """Only the heading together with its sentence is."""
    events = log()
    events.add(0, "user", "## Prior Knowledge\n\n- I know Go.")
    assert [e.kind for e in events.events] == ["user"]


def test_a_message_that_is_only_our_block_leaves_no_empty_message():
    """Nothing is left to be said by the user."""
    events = log()
    events.add(0, "user", BLOCK)
    assert [e.kind for e in events.events] == ["injected_memory"]


def test_texts_arguments_and_paths_are_redacted():
    """Nothing that becomes an event escapes."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    events = log()
    events.add(0, "command", f"curl -H 'Authorization: token {secret}'", args={"note": secret, "n": 3}, paths=(f"/tmp/{secret}",))
    assert secret not in repr(events.events)
    assert events.events[0].args["n"] == 3


def test_nul_characters_are_removed():
    """`\\u0000` is valid JSON and no valid text for a database."""
    events = log()
    events.add(0, "user", "a\0b")
    assert events.events[0].text == "ab"


def test_late_events_are_sorted_in_and_answers_follow():
    """An event added for an earlier record takes its place there."""
    events = log()
    events.add(5, "command", "ls")
    events.add(9, "command_result", "x", answers=0)
    events.add(2, "user", "hi")
    assert events.sort() == {2: 0, 0: 1, 1: 2}
    assert [(e.index, e.kind, e.answers) for e in events.events] == [(0, "user", None), (1, "command", None), (2, "command_result", 1)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-01T10:00:00Z", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("2026-03-01T12:00:00+02:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("2026-03-01T10:00:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        (1772359200, datetime(2026, 3, 1, 10, tzinfo=UTC)),
        (1772359200000, datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("yesterday", None),
        (None, None),
        (True, None),
        (10**30, None),
    ],
)
def test_times_become_aware_utc(value, expected):
    """ISO text with any offset, seconds or milliseconds."""
    assert when(value) == expected


def test_paths_are_told_relative_to_the_checkout():
    """Only what lies in it; a sibling folder with the same beginning does not."""
    assert within("/srv/shop/src/a.py", "/srv/shop") == "src/a.py"
    assert within("/srv/shop2/a.py", "/srv/shop") == "/srv/shop2/a.py"
    assert within("C:\\shop\\src\\a.py", "C:\\shop") == "src/a.py"
    assert within("a.py", None) == "a.py"


def test_span_is_over_known_times():
    """Unknown ones do not count."""
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    assert span([None, late, early]) == (early, late)
    assert span([None]) == (None, None)
