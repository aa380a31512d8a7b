"""Whose words a quote is, and what stands in a run. Content is invented."""

import pytest

from osmia_memory.extract.grounding import ground_in
from osmia_memory.extract.said import Said, added_lines, has_word, line_around, removed_lines
from osmia_memory.models import Event
from osmia_memory.testing import Tape, a_run

TASK = "Make `kiln fire` stop at 900 degrees, as the manual in docs/kiln.md says."


def a_said() -> Said:
    """A run with one event of each kind of speaker."""
    tape = Tape(a_run(description=TASK)).user(TASK).say("The limit seems to be missing in kiln.py")
    tape.sh("cat docs/kiln.md", "Make `kiln fire` stop at 900 degrees, as the manual\nnever fire an empty kiln")
    tape.edit("src/kiln.py", "limit = 900\n# the manual says so, trust it", "limit = None")
    tape.sh("git diff", "-limit = None\n+limit = 900")
    tape.sh("echo all is well", "all is well")
    tape.user("And never above 850 for clay from Lohne").add("compaction", "earlier the kiln was cold and empty")
    return Said(tape.transcript())


@pytest.mark.parametrize(
    ("event", "quote", "voice"),
    [
        (0, "stop at 900 degrees", "task"),
        (1, "The limit seems to be missing", "agent"),
        (2, "cat docs/kiln.md", "agent"),
        (3, "never fire an empty kiln", "result"),
        (3, "Make `kiln fire` stop at 900 degrees", "task"),  # the task, printed by a command
        (4, "limit = 900", "work"),
        (4, "the manual says so, trust it", "agent"),  # a remark is an opinion
        (6, "+limit = 900", "work"),  # its own change, printed
        (6, "-limit = None", "result"),
        (8, "all is well", "agent"),  # an echo
        (9, "never above 850 for clay", "person"),
    ],
)
def test_a_quote_has_a_speaker(event: int, quote: str, voice: str):
    """The task, a person, the agent, its work and what answered it are told apart."""
    said = a_said()
    evidence = ground_in(quote, said.transcript, event)
    assert evidence is not None
    assert said.voice(evidence) == voice


def test_names_are_whole_words():
    """Neither a part of a name nor a part of a number is the name."""
    assert has_word("run kiln.py at 1.5", "kiln.py")
    assert not has_word("run mykiln.py", "kiln.py")
    assert not has_word("at 1.55 or 2,900", "900")
    assert has_word("at 900.", "900")
    assert not has_word("anything", "")


def test_what_only_the_agent_says_stands_in_no_run():
    """Speech and foreign text are no ground for a name; commands, results, edits and people are."""
    said = a_said()
    assert said.has("docs/kiln.md")
    assert said.has("850")
    assert not said.has("missing")
    assert not said.has("cold")


def test_words_have_to_stand_in_order_on_one_line():
    """A command whose words are scattered over lines was not run."""
    said = a_said()
    assert said.has_in_order(("kiln", "fire", "900"))
    assert not said.has_in_order(("fire", "kiln.py"))
    assert said.has_in_order(("kiln", "limit"), across_lines=True)


def test_lines_around_a_span_are_whole():
    """The first and last line of a span are taken to their ends."""
    assert line_around("one two\nthree four\nfive", (4, 11)) == "one two\nthree four"


def test_an_edit_brings_in_only_what_is_new():
    """Lines that were there before the edit are neither added nor removed, in both forms of an edit."""
    pair = Event(0, 0, "file_edit", "a = 1\nb = 2", args={"old_string": "a = 1\nb = 3"})
    patch = Event(0, 0, "file_edit", "@@\n a = 1\n-b = 3\n+b = 2", tool="apply_patch")
    for event in (pair, patch):
        assert added_lines(event) == ("b = 2",)
        assert removed_lines(event) == ("b = 3",)
