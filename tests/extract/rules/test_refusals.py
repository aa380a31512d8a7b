"""What the tools of an engine refuse."""

import pytest

from osmia_memory.extract.rules import refusals
from osmia_memory.testing import Tape
from tests.extract.rules.test_how_to_test import found

UNREAD = "<tool_use_error>File was not opened yet. Read it first before writing to it.</tool_use_error>"
NO_MATCH = "edit verification failed: could not find the expected lines in /home/dev/shop/cart.py:\n  total = 0"


def refused(tape: Tape, message: str) -> Tape:
    """An edit and the tool's refusal."""
    return tape.edit("shop/cart.py").add("tool_result", message, tool="Edit", answers=len(tape.events) - 1, is_error=True)


def test_a_refusal_that_says_what_it_wants_is_told() -> None:
    """Without tags and paths; once, however often it came."""
    tape = refused(refused(Tape(), UNREAD), UNREAD)
    assert found(refusals.tool_refused, tape) == [
        "codex's `Edit` refuses a call with “File was not opened yet. Read it first before writing to it”."
    ]


def test_a_refusal_that_comes_again_and_again_is_told() -> None:
    """Once or twice, it is a slip."""
    tape = refused(refused(Tape(), NO_MATCH), NO_MATCH)
    assert found(refusals.tool_refused, tape) == []
    assert found(refusals.tool_refused, refused(tape, NO_MATCH)) == [
        "codex's `Edit` refuses a call with “edit verification failed: could not find the expected lines”; it came several times in one run: look at the "
        "exact text before the next try."
    ]


def test_a_reply_in_the_wrong_form_and_a_command_the_harness_refused_count_too() -> None:
    """Engines say it in events of other kinds."""
    tape = Tape()
    for _ in range(3):
        tape.add(
            "error", "The reply did not conform.\nhttps://docs.invalid/edit-errors.html\n# 1 block failed to match!", tool="edit-format"
        )
    assert found(refusals.tool_refused, tape)[0].startswith("codex's `edit` refuses a call with “block failed to match!”")
    several = Tape().sh("a\nb", "Cannot run several commands at once.\nPlease chain them by && instead.", None, args={"harness": "refused"})
    assert found(refusals.tool_refused, several) == [
        "codex's `shell` refuses a call with “Cannot run several commands at once. Please chain them by && instead”."
    ]


@pytest.mark.parametrize(
    "message",
    [
        "The user doesn't want to proceed with this tool use. Please wait.",
        "Permission for this action was denied. Use another way.",
        "File does not exist. Use a path below the folder.",
        "Exit code 1: please install the tool first",
    ],
)
def test_what_a_person_the_file_system_or_the_command_refused_is_none_of_the_tool_s(message: str) -> None:
    """Those say nothing of how the tool is called."""
    assert found(refusals.tool_refused, refused(Tape(), message)) == []
