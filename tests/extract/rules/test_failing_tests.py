"""A failing test teaches something only if the change at hand is not to blame."""

from osmia_memory.extract.rules import failing_tests
from osmia_memory.models import Environment
from osmia_memory.testing import Tape, a_run
from tests.extract.rules.test_how_to_test import found

RED = "FAILED tests/test_tz.py::test_local - OSError: no tzdata here\n==== 1 failed, 9 passed in 1.0s ===="
GREEN = "==== 10 passed in 1.0s ===="


def test_a_test_that_fails_before_any_edit_is_the_baseline() -> None:
    """Told with the reason and the counts to compare with."""
    (content,) = found(failing_tests.baseline, Tape().sh("pytest tests/test_tz.py", RED, 1))
    assert content == (
        "`tests/test_tz.py::test_local` fails on unmodified code here (OSError: no tzdata here); the baseline of `pytest tests/test_tz.py` is 1 failed, 9 passed."
    )


def test_a_stash_or_a_reversed_edit_makes_the_code_unmodified_again() -> None:
    """After `git stash`, after `git checkout FILE`, and after the inverse `sed`."""
    for back in ("git stash", "git checkout shop/cart.py", "sed -i 's/new/old/' shop/cart.py"):
        tape = (
            Tape()
            .sh("sed -i 's/old/new/' shop/cart.py")
            .sh("pytest tests/test_tz.py", RED, 1)
            .sh(back)
            .sh("pytest tests/test_tz.py", RED, 1)
        )
        assert len(found(failing_tests.baseline, tape)) == 1, back


def test_a_failure_after_an_edit_is_no_baseline() -> None:
    """It may be the edit."""
    assert found(failing_tests.baseline, Tape().edit("shop/cart.py").sh("pytest tests/test_tz.py", RED, 1)) == []


def test_the_failure_that_the_run_was_to_cure_is_no_baseline() -> None:
    """A test that passes later under the same command is the task, not the environment."""
    tape = Tape().sh("pytest tests/test_tz.py", RED, 1).edit("shop/tz.py").sh("pytest tests/test_tz.py", GREEN)
    assert found(failing_tests.baseline, tape) == []


def test_a_nameless_failure_that_the_run_cured_is_no_baseline() -> None:
    """A summary without names that goes green under the same command was the task too."""
    tape = Tape().sh("bin/test tests/test_tz.py", "1 failed, 3 passed in 0.1s", 1).edit("shop/tz.py")
    assert found(failing_tests.baseline, tape) != []
    assert found(failing_tests.baseline, tape.sh("bin/test tests/test_tz.py", "4 passed in 0.1s")) == []


def test_a_test_the_run_wrote_is_no_baseline() -> None:
    """A reproduction is meant to fail."""
    tape = Tape().create("tests/test_tz.py").sh("pytest tests/test_tz.py", RED, 1)
    assert found(failing_tests.baseline, tape) == []


def test_a_script_that_may_have_written_makes_the_code_modified() -> None:
    """An agent that edits through a script of its own leaves no other trace; a script that only reads changes nothing."""
    writer = "text = open('shop/cart.py').read()\nopen('shop/cart.py', 'w').write(text)"
    tape = Tape().create("change_it.py", writer).sh("python change_it.py").sh("pytest tests/test_tz.py", RED, 1)
    assert found(failing_tests.baseline, tape) == []
    reader = Tape().create("look.py", "print(open('shop/cart.py').read())").sh("python look.py").sh("pytest tests/test_tz.py", RED, 1)
    assert len(found(failing_tests.baseline, reader)) == 1


def test_a_sandbox_is_part_of_the_claim() -> None:
    """A port that may not be bound fails nobody outside."""
    run = a_run(environment=Environment(sandbox="workspace-write"))
    (content,) = found(failing_tests.baseline, Tape(run).sh("pytest tests/test_tz.py", RED, 1))
    assert "fails on unmodified code in codex's sandbox (OSError: no tzdata here)" in content


def test_many_failures_are_told_as_the_baseline_of_the_command() -> None:
    """One line instead of forty."""
    lines = "".join(f"FAILED tests/test_net.py::test_{n} - ConnectionError: no route to host\n" for n in range(8))
    (content,) = found(failing_tests.baseline, Tape().sh("pytest tests/test_net.py", lines + "== 8 failed, 30 passed in 2.0s ==", 1))
    assert content.startswith(
        "`pytest tests/test_net.py` is not green on unmodified code here: 8 failed, 30 passed, mostly for `ConnectionError: no route to host`"
    )


def test_one_cause_of_many_failures_is_told_once() -> None:
    """Three tests with one reason that no edit cured."""
    lines = "".join(f"--- FAIL: TestSync{n} (0.00s)\n    sync_test.go:9: commit: signing key is not available\n" for n in range(5))
    (content,) = found(failing_tests.shared_cause, Tape().edit("sync.go").sh("go test ./...", lines + "FAIL\texample.org/sync\t0.1s", 1))
    assert "“commit: signing key is not available”" in content
    assert "`TestSync0`, `TestSync1`, `TestSync2` and 2 more" in content


def test_a_setting_under_which_they_all_pass_is_the_remedy() -> None:
    """The same command with one assignment more, and no edit in between."""
    lines = "".join(f"--- FAIL: TestSync{n} (0.00s)\n    sync_test.go:9: commit: signing key is not available\n" for n in range(3))
    tape = Tape().edit("sync.go").sh("go test ./...", lines + "FAIL\texample.org/sync\t0.1s", 1)
    tape.sh("SYNC_CONFIG=/dev/null go test ./...", "ok  \texample.org/sync\t0.3s")
    (content,) = found(failing_tests.shared_cause, tape)
    assert content.endswith("“commit: signing key is not available”: with `SYNC_CONFIG=/dev/null` they pass.")


def test_a_cause_that_an_edit_cured_is_none_of_the_environment() -> None:
    """The same command passed later as it was."""
    lines = "".join(f"--- FAIL: TestSync{n} (0.00s)\n    sync_test.go:9: commit: signing key is not available\n" for n in range(3))
    tape = Tape().edit("sync.go").sh("go test ./...", lines + "FAIL\texample.org/sync\t0.1s", 1)
    tape.edit("sync.go", "y = 2").sh("go test ./...", "ok  \texample.org/sync\t0.3s")
    assert found(failing_tests.shared_cause, tape) == []


def test_a_flaky_test_fails_and_passes_with_nothing_changed() -> None:
    """Another environment or an edit in between is no flake."""
    tape = Tape().edit("a.py").sh("pytest tests/test_tz.py", RED, 1).sh("pytest tests/test_tz.py | tail", GREEN)
    assert found(failing_tests.flaky, tape)[0].startswith("`tests/test_tz.py::test_local` is flaky: it failed (OSError: no tzdata here)")
    edited = Tape().sh("pytest tests/test_tz.py", RED, 1).edit("a.py").sh("pytest tests/test_tz.py", GREEN)
    assert found(failing_tests.flaky, edited) == []
    other_environment = Tape().sh("pytest tests/test_tz.py", RED, 1).sh("TZ=UTC pytest tests/test_tz.py", GREEN)
    assert found(failing_tests.flaky, other_environment) == []
    made_first = Tape().sh("pytest tests/test_tz.py", RED, 1).sh("mkdir -p ~/.shop && pytest tests/test_tz.py", GREEN)
    assert found(failing_tests.flaky, made_first) == []  # the rerun's own line changed something


def test_expectations_that_had_to_change_are_told_with_the_reason() -> None:
    """The agent's sentence gives the cause; a test the run wrote itself does not count."""
    red = "FAILED tests/test_money.py::test_format - AssertionError\n== 1 failed, 3 passed in 0.1s =="
    tape = (
        Tape()
        .edit("shop/money.py")
        .sh("pytest tests/test_money.py", red, 1)
        .say("`test_format` failed because `Money.__str__` now prints the currency.")
    )
    tape.edit("tests/test_money.py").sh("pytest tests/test_money.py", GREEN)
    (content,) = found(failing_tests.expectation_coupled, tape)
    assert content.startswith(
        "Changing `shop/money.py` broke `test_format`; its expectations in `tests/test_money.py` had to change with it ("
    )
    own = Tape().edit("tests/test_money.py", "def test_format(): ...").edit("shop/money.py").sh("pytest tests/test_money.py", red, 1)
    assert found(failing_tests.expectation_coupled, own.edit("tests/test_money.py").sh("pytest tests/test_money.py", GREEN)) == []


def test_what_a_person_ran_says_nothing_of_unmodified_code() -> None:
    """Their tree may hold changes that no transcript shows."""
    by_person = Tape()
    by_person.add("command", "pytest tests/test_tz.py", tool="user-shell", args={"by": "user"})
    by_person.add("command_result", RED, answers=0, exit_code=1)
    assert found(failing_tests.baseline, by_person) == []
    assert found(failing_tests.baseline, Tape().sh("pytest tests/test_tz.py", RED, 1)) != []


def test_errors_in_set_up_that_are_listed_without_a_reason_have_the_common_one() -> None:
    """pytest lists `ERROR path::test` alone; what most of the shown errors say is the reason."""
    shown = "E       fixture 'ledger' not found\n" * 4
    listed = "".join(f"ERROR tests/test_pay.py::test_{n}\n" for n in range(6))
    output = f"{shown}{listed}==== 2 passed, 6 errors in 0.3s ===="
    (content,) = found(failing_tests.shared_cause, Tape().sh("pytest tests/test_pay.py", output, 1))
    assert content.startswith("Tests `test_0`, `test_1`, `test_2` and 3 more fail together here with “fixture 'ledger' not found”")
    mixed = "E   KeyError: 'a'\nE   KeyError: 'b'\nE   ValueError: no such currency\n" + listed
    assert found(failing_tests.shared_cause, Tape().sh("pytest tests", f"{mixed}==== 2 passed, 6 errors in 0.3s ====", 1)) == []


def test_tests_that_fail_together_on_unmodified_code_share_a_line() -> None:
    """Up to three of one run; told once."""
    red = "FAILED tests/test_tz.py::test_a - OSError: no tzdata here\nFAILED tests/test_tz.py::test_b\n==== 2 failed, 9 passed in 1.0s ===="
    tape = Tape().sh("pytest tests/test_tz.py", red, 1).sh("pytest tests/test_tz.py -x", red, 1)
    assert found(failing_tests.baseline, tape) == [
        "`tests/test_tz.py::test_a` and `test_b` fail on unmodified code here (OSError: no tzdata here); the baseline of `pytest tests/test_tz.py` is "
        "2 failed, 9 passed."
    ]
