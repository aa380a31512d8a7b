"""What became of a run's edits. Content is invented."""

from osmia_memory.extract.grounding import ground_in
from osmia_memory.extract.said import Said
from osmia_memory.extract.taken_back import Past, put_back
from osmia_memory.testing import Tape

NEW, OLD = "limit = min(900, asked)", "limit = asked"


def past_of(tape: Tape) -> Past:
    """What happened to the edits of the tape."""
    return Past(Said(tape.transcript()))


def is_gone(tape: Tape, quote: str = NEW, event: int = 0) -> bool:
    """Whether the quoted line of that edit was taken back."""
    past = past_of(tape)
    evidence = ground_in(quote, past.said.transcript, event)
    assert evidence is not None
    return past.quoted_gone(evidence) is not None


def test_an_edit_stands_until_something_takes_it_out():
    """Later edits of other lines and files leave it alone; one that removes it, a checkout, a hard reset do not."""
    edit = lambda: Tape().edit("src/kiln.py", NEW, OLD)  # noqa: E731
    assert not is_gone(edit())
    assert not is_gone(edit().edit("src/kiln.py", "heat = 2", "heat = 1").edit("src/clay.py", "x = 2", NEW))
    assert is_gone(edit().edit("src/kiln.py", OLD, NEW))
    assert is_gone(edit().sh("git checkout src/kiln.py"))
    assert is_gone(edit().sh("git reset --hard"))
    assert not is_gone(edit().sh("git checkout src/clay.py"))


def test_a_stash_that_is_taken_out_again_takes_nothing_back():
    """It only puts the edits aside for a while."""
    tape = Tape().edit("src/kiln.py", NEW, OLD).sh("git stash").sh("bin/check").sh("git stash pop")
    assert not is_gone(tape)
    assert past_of(tape).put_aside == ((1, 5),)
    assert is_gone(Tape().edit("src/kiln.py", NEW, OLD).sh("git stash"))


def test_a_line_that_comes_back_stands():
    """Taken out and written again: the last state counts."""
    assert not is_gone(Tape().edit("src/kiln.py", NEW, OLD).edit("src/kiln.py", OLD, NEW).edit("src/kiln.py", NEW, OLD))


def test_a_name_of_a_taken_back_edit_alone_is_gone_with_it():
    """Not where something else of the run holds it, or where the content rests on what a tool said."""
    gone = past_of(Tape().edit("src/kiln.py", "warm_up(asked)", OLD).edit("src/kiln.py", OLD, "warm_up(asked)"))
    assert gone.rests_on_what_left("`warm_up` is called first.", "")
    assert not gone.rests_on_what_left("`warm_up` is called first.", "warm_up is unknown")
    known = past_of(
        Tape().sh("grep -rn warm_up", "src/a.py: warm_up(x)").edit("src/k.py", "warm_up(y)", "").edit("src/k.py", "", "warm_up(y)")
    )
    assert not known.rests_on_what_left("`warm_up` is called first.", "")


def test_a_read_line_that_was_changed_later_is_stale():
    """By an edit or by `sed -i`; a quote that the new line still holds is not."""
    for change in (
        lambda t: t.edit("src/kiln.py", NEW, OLD),
        lambda t: t.sh(r"sed -i 's/\blimit = asked/limit = min(900, asked)/' src/kiln.py"),
    ):
        past = past_of(change(Tape().sh("cat src/kiln.py", f"import heat\n{OLD}\n")))
        stale, fresh = (ground_in(q, past.said.transcript, 1) for q in (OLD, "import heat"))
        assert stale is not None
        assert fresh is not None
        assert past.quoted_stale(stale)
        assert not past.quoted_stale(fresh)


def test_files_that_were_made_and_deleted_are_gone():
    """A scratch file is no file of the repository in the end."""
    past = past_of(Tape().create("try_kiln.py", "fire(900)").sh("rm try_kiln.py"))
    assert past.removed_files == {"try_kiln.py"}


def test_which_commands_put_files_back():
    """A new branch and a listing are none of them."""
    assert put_back(("git", "checkout", "--", "a.py")) == ("a.py",)
    assert put_back(("git", "restore", "a.py")) == ("a.py",)
    assert put_back(("git", "reset", "--hard")) == ()
    assert put_back(("git", "apply", "-R", "x.patch")) == ()
    for harmless in (("git", "checkout", "-b", "new"), ("git", "stash", "list"), ("git", "restore", "--staged", "a.py"), ("git", "status")):
        assert put_back(harmless) is None
