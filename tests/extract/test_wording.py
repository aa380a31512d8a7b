"""What wording gives away: each finding with sentences that have it and the like of them that have not. Content is invented."""

from collections.abc import Callable

import pytest

from osmia_memory.extract import wording
from osmia_memory.extract.said import Said
from osmia_memory.testing import Tape, a_run

CASES: list[tuple[Callable[[str], object], list[str], list[str]]] = [
    (
        wording.is_instruction,
        [
            "Use `bin/fire` for the kiln.",
            "Agents must run `bin/fire` first.",
            "When the kiln is hot, run `bin/cool` at once.",
            "`kiln.py` should be rewritten.",
            "<system>`bin/fire`</system>",
        ],
        [
            "`bin/fire` must run before `bin/cool`.",
            "When the kiln is hot, `bin/cool` refuses to run.",
            "`bin/fire` should be found on the path.",
        ],
    ),
    (
        wording.is_transient,
        [
            "The kiln is cold since 2026-03-02.",
            "`bin/fire` currently fails.",
            "PR #41 broke `bin/fire`.",
            "`bin/fire` writes to /tmp/kiln.",
            "`bin/fire` has 17 tests.",
            "`bin/fire` takes 0.31s.",
            "`kiln.py` is modified and `x` is untracked.",
            "codex was interrupted while it fired.",
            "The registry was unreachable.",
        ],
        [
            "`bin/fire` stops at 900 degrees.",
            "`bin/fire` needs Python 3.11.",
            "`git status` lists what is untracked.",
            "A May fly lands on `kiln.py`.",
        ],
    ),
    (
        wording.restates_work,
        [
            "Fixed `kiln.py`.",
            "`kiln.py` was changed to stop.",
            "The fix works.",
            "All tests pass.",
            "`kiln.py` now stops.",
            "The agent found `kiln.py`.",
        ],
        ["The tests pass only with `KILN=cold`.", "`kiln.py` is changed together with `clay.py`.", "`bin/fire` fixes indents by default."],
    ),
    (
        wording.claims_passing,
        ["`bin/fire` passes.", "The suite is green."],
        ["`test_x` cannot pass here.", "The value passed to `fire` is a float."],
    ),
    (wording.is_hedged, ["`kiln.py` probably leaks.", "It might be `clay.py`."], ["`kiln.py` leaks."]),
    (wording.says_nothing, ["`kiln.py`.", "`bin/fire` ok."], ["`bin/fire` heats the kiln."]),
    (wording.holds_mask, ["key [REDACTED:token:1a2b3c]", "pass ******"], ["`a ** b` is a power", "xxx marks it"]),
    (
        wording.is_adverse,
        ["`bin/fire` fails.", "It needs `KILN`.", "`clay` is missing."],
        ["`bin/fire` runs without hanging.", "`bin/fire` heats the kiln."],
    ),
    (wording.tells_of_rejection, ["`clay` was turned down."], ["`clay` is used."]),
]


@pytest.mark.parametrize(
    ("finds", "text"), [(f, t) for f, yes, _ in CASES for t in yes], ids=lambda v: v if isinstance(v, str) else v.__name__
)
def test_is_found(finds: Callable[[str], object], text: str):
    """The sentence has what the finding is named for."""
    assert finds(text)


@pytest.mark.parametrize(
    ("finds", "text"), [(f, t) for f, _, no in CASES for t in no], ids=lambda v: v if isinstance(v, str) else v.__name__
)
def test_is_not_found(finds: Callable[[str], object], text: str):
    """The sentence only looks like it."""
    assert not finds(text)


def test_who_is_said_to_have_said_it():
    """A wish of a person, one of a reviewer, and a sentence in which people only occur."""
    assert wording.attributed_to("The user wants `clay`.") == "person"
    assert wording.attributed_to("Maintainers reject `clay` in `src`.") == "reviewer"
    assert wording.attributed_to("`bin/fire` prints the name of the user.") is None


def test_opposite_sentences_differ_in_their_sign_alone():
    """Negation, missing and failing turn the sign; twice is back."""
    (a, plus), (b, minus) = wording.polarity("`x` works with `y`."), wording.polarity("`x` fails with `y`.")
    assert (a, plus, minus) == (b, 1, -1)
    assert wording.polarity("`x` never fails.")[1] == 1


def test_the_task_in_other_order_is_still_the_task():
    """Most words of one passage of the task; a sentence with news of its own is none."""
    said = Said(Tape(a_run(description="The kiln has to stop at nine hundred degrees.")).user("x").transcript())
    assert wording.restates_task("At nine hundred degrees the kiln stops.", said)
    assert not wording.restates_task("The kiln stops because `clay.py` closes its valve at night.", said)


def test_normal_form_is_one_line_with_an_end():
    """List marks, line breaks and the checkout's folder go."""
    said = Said(Tape().user("x").transcript())
    assert wording.normal("- `/home/dev/shop/src/kiln.py`\n heats", said) == "`src/kiln.py` heats."
