"""The final state wins, and quotes have to prove what is said. Content is invented."""

from collections.abc import Callable

from osmia_memory.extract import last_state, proof
from osmia_memory.extract.grounding import ground_in
from osmia_memory.extract.said import Said
from osmia_memory.extract.taken_back import Past
from osmia_memory.models import Evidence
from osmia_memory.testing import Tape

FAILED = "FAILED tests/test_kiln.py::test_hot - AssertionError: 901\n1 failed, 3 passed in 0.1s"
PASSED = "4 passed in 0.1s"


def ask(check: Callable[[str, list[Evidence], Past], bool], tape: Tape, content: str, *quotes: tuple[int, str]) -> bool:
    """What a check says of content with these quotes."""
    past = Past(Said(tape.transcript()))
    found = [ground_in(text, past.said.transcript, event) for event, text in quotes]
    return check(content, [e for e in found if e is not None], past)


def failing() -> Tape:
    """A run of the tests in which one fails."""
    return Tape().sh("pytest", FAILED, 1)


# --- what was run again -----------------------------------------------------------------------------------------------


def test_a_failure_that_was_cured_is_no_fact():
    """The same command passed later; a failure that lasts, and one of another command, are."""
    told, quote = "`tests/test_kiln.py::test_hot` fails.", (1, "1 failed, 3 passed")
    assert ask(last_state.contradicted, failing().edit("src/kiln.py").sh("pytest", PASSED), told, quote)
    assert not ask(last_state.contradicted, failing().edit("src/kiln.py").sh("pytest", FAILED, 1), told, quote)
    assert not ask(last_state.contradicted, failing().sh("pytest tests/test_clay.py", PASSED), told, quote)


def test_under_which_circumstances_it_fails_stays_true():
    """What is named as missing was brought in between, so the cure proves the sentence."""
    tape = failing().sh("KILN_MAX=900 pytest", PASSED).sh("pytest", PASSED)
    told = "`test_hot` fails unless `KILN_MAX` is set."
    assert not ask(last_state.contradicted, tape, told, (1, "1 failed, 3 passed"))


def test_a_program_that_ran_is_not_missing():
    """A look for it that found nothing is no run of it."""
    told = "`jq` is not installed."
    assert ask(last_state.contradicted, Tape().sh("jq . a.json", "{}"), told)
    assert not ask(last_state.contradicted, Tape().sh("command -v jq", "", 0), told)


def test_a_command_that_failed_each_time_does_nothing_else():
    """Named word by word without a word of failing; said to be refused, it may stand."""
    tape = Tape().sh("bin/fire tests/a.py", "unknown argument 'tests/a.py'", 2)
    assert ask(last_state.contradicted, tape, "A file is fired with `bin/fire tests/a.py`.", (1, "unknown argument 'tests/a.py'"))
    assert not ask(last_state.contradicted, tape, "`bin/fire tests/a.py` is refused as an argument.", (1, "unknown argument 'tests/a.py'"))


def test_what_the_agent_took_back_in_words_is_refuted():
    """It shares the subject; another subject does not."""
    tape = Tape().sh("cat kiln.log", "valve_timer expired").say("So the valve_timer is not the cause.")
    check = lambda content, evidence, past: last_state.refuted(content, evidence, past.said)  # noqa: E731
    assert ask(check, tape, "The `valve_timer` is the cause of the heat.", (1, "valve_timer expired"))
    assert not ask(check, tape, "The `clay_store` is the cause of the heat.", (1, "valve_timer expired"))


def test_giving_up_needs_an_attempt_and_an_end():
    """An attempt that failed and was taken back; words alone prove nothing; what stands and does no harm was not given up."""
    check = lambda content, evidence, past: last_state.abandonment(content, evidence, past)  # noqa: E731
    tried = Tape().edit("src/kiln.py", "limit = clamp(asked)", "limit = asked").sh("pytest", FAILED, 1)
    quotes = ((0, "limit = clamp(asked)"), (2, "1 failed, 3 passed"))
    told = "`clamp` in `src/kiln.py` was given up."
    assert ask(check, tried.sh("git checkout src/kiln.py").sh("pytest", PASSED), told, *quotes) is None  # type: ignore[comparison-overlap]
    kept = Tape().edit("src/kiln.py", "limit = clamp(asked)", "limit = asked").sh("pytest", FAILED, 1).sh("pytest", PASSED)
    assert ask(check, kept, told, *quotes) == "disproved later"  # type: ignore[comparison-overlap]
    assert ask(check, Tape().say("clamp is no use here"), told, (0, "clamp is no use here")) == "unproved"  # type: ignore[comparison-overlap]


# --- what quotes cannot prove -----------------------------------------------------------------------------------------


def proves_other(content: str, evidence: list[Evidence], past: Past) -> bool:
    """As for a proposal that claims no success."""
    return proof.proves_other(content, evidence, past, is_success=False)


def test_one_passage_does_not_speak_for_all():
    """ "No other", "always" and "never" need a quote that says so."""
    tape = Tape().sh("git diff --stat", "src/kiln.py | 2 +-").sh("cat RULES", "every kiln is cooled by bin/cool first")
    assert ask(proves_other, tape, "No other file than `src/kiln.py` holds the limit.", (1, "src/kiln.py | 2 +-"))
    assert ask(proves_other, tape, "`src/kiln.py` is always read first.", (1, "src/kiln.py | 2 +-"))
    assert not ask(proves_other, tape, "`bin/cool` always comes first.", (3, "every kiln is cooled by bin/cool first"))


def test_what_never_ran_proves_nothing_but_that():
    """A missing program says nothing of what it would have done."""
    tape = Tape().sh("docker compose up kiln", "bash: docker: command not found", 127)
    assert ask(proves_other, tape, "`docker compose up kiln` starts the oven.", (1, "docker: command not found"))
    assert not ask(proves_other, tape, "`docker` is not installed.", (1, "docker: command not found"))


def test_most_names_stand_near_the_quotes():
    """Two of two names elsewhere in the run are not proved by this quote."""
    tape = Tape().sh("ls bin", "cool\nfire").sh("cat CI.md", "The same scripts run in CI.")
    assert ask(proves_other, tape, "CI blocks on `bin/fire_all` and on `kiln.cfg`.", (3, "The same scripts run in CI."))
    assert not ask(proves_other, tape, "`CI.md` tells which scripts run in CI.", (3, "The same scripts run in CI."))


def test_a_tool_is_not_credited_with_the_runs_own_edit():
    """The file was edited by hand; a line that speaks of writing it is another matter."""
    tape = Tape().edit("kiln.sql", "limit 900").sh("bin/check", PASSED).sh("bin/dump", "bin/dump: wrote kiln.sql")
    assert ask(proves_other, tape, "`bin/check` updates `kiln.sql` on a failure.", (2, PASSED))
    assert not ask(proves_other, tape, "`bin/dump` writes `kiln.sql` anew.", (4, "bin/dump: wrote kiln.sql"))


def test_a_failure_without_any_change_is_not_blamed_on_one():
    """The same test fails while the edits are stashed."""
    tape = Tape().edit("src/kiln.py", "a = 2", "a = 1").sh("pytest", FAILED, 1).sh("git stash && pytest; git stash pop", FAILED, 1)
    told = "`test_hot` breaks as soon as `src/kiln.py` is changed."
    clean = Tape().sh("cat src/kiln.py", "a = 1").edit("src/kiln.py", "a = 2", "a = 1").sh("pytest", FAILED, 1)
    assert ask(proof.blamed_wrongly, tape, told, (2, "1 failed, 3 passed"))
    assert not ask(proof.blamed_wrongly, clean, told, (4, "1 failed, 3 passed"))


def test_passing_is_said_by_a_check_after_the_last_edit():
    """An edit of code after it makes it old, one of a document does not."""
    check = lambda content, _evidence, past: proof.passing_unproved(content, past)  # noqa: E731
    assert ask(check, Tape().sh("pytest", PASSED).edit("src/kiln.py"), "The tests pass.")
    assert not ask(check, Tape().sh("pytest", PASSED).edit("NOTES.md"), "The tests pass.")
