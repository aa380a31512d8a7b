"""What has to be in place before a command works here."""

import pytest

from osmia_memory.extract.rules import how_to_test, preparing
from osmia_memory.testing import Tape, a_run
from tests.extract.rules.test_how_to_test import found

RED = "E       fixture 'stripe' not found\n==== 4 passed, 2 errors in 0.3s ===="
GREEN = "==== 6 passed in 0.3s ===="
NOTHING_LEFT = "==== 1 failed, 9 passed in 0.3s ===="


def test_a_package_that_the_tests_lacked_is_told() -> None:
    """The same tests failed before it was installed and passed after."""
    tape = Tape().sh("pytest tests/test_pay.py", RED, 1).sh("pip install pytest-stripe==2.1").sh("pytest tests/test_pay.py -q", GREEN)
    assert found(preparing.prepared, tape) == [
        "`pytest tests/test_pay.py` fails here (fixture 'stripe' not found) until `pip install pytest-stripe==2.1` is run."
    ]


def test_many_failures_that_a_preparation_cured_need_no_reason() -> None:
    """A long output is cut before it says why; that nearly all pass afterwards is enough."""
    tape = (
        Tape()
        .sh("pytest tests", "==== 2 passed, 8 errors in 0.3s ====", 1)
        .sh("docker compose up -d db")
        .sh("pytest tests", NOTHING_LEFT, 1)
    )
    assert found(preparing.prepared, tape) == ["`pytest tests` fails here (many tests fail) until `docker compose up -d db` is run."]


def test_a_setting_that_a_tool_wanted_is_told() -> None:
    """Configuration is a preparation as well."""
    tape = Tape().sh("make lint", "error: config file in ~/shop/tools.toml is not trusted", 2).sh("mise trust").sh("make lint", "ok")
    assert found(preparing.prepared, tape) == [
        "`make lint` fails here (error: config file in ~/shop/tools.toml is not trusted) until `mise trust` is run."
    ]


@pytest.mark.parametrize(
    "tape",
    [
        Tape()
        .sh("pytest tests/test_pay.py", RED, 1)
        .sh("pip install pytest-stripe")
        .edit("shop/pay.py")
        .sh("pytest tests/test_pay.py", GREEN),
        Tape().sh("pytest tests/test_pay.py", RED, 1).sh("pip install pytest-stripe").sh("pytest tests/test_tax.py", GREEN),
        Tape().sh("pytest tests/test_pay.py", RED, 1).sh("pip install pytest-stripe").sh("pytest tests/test_pay.py", RED, 1),
        Tape().sh("/usr/bin/python3 -m pytest a", "No module named pytest", 1).sh("pip install pytest-stripe").sh("pytest a", GREEN),
        Tape().sh("pytest tests/test_pay.py", RED, 1).sh("pip install nothing", "ERROR: No matching distribution", 1).sh("pytest b", GREEN),
    ],
)
def test_what_something_else_may_have_cured_is_not_told(tape: Tape) -> None:
    """An edit, other tests, another interpreter, a preparation that failed, or no cure at all."""
    assert found(preparing.prepared, tape) == []


def test_tests_behind_a_switch_are_told_apart_from_how_tests_are_run() -> None:
    """A run with the switch is no example of how tests are run in general."""
    tape = Tape().sh("SHOP_E2E=1 GOCACHE=/tmp/c go test ./pay", "ok  \texample.org/shop/pay\t2.1s")
    assert found(preparing.switched_tests, tape) == [
        "Some tests in `./pay` are left out unless `SHOP_E2E` is set: `SHOP_E2E=1 go test ./pay` ran them."
    ]
    assert found(how_to_test.test_command, tape) == []
    assert found(preparing.switched_tests, Tape().sh("DEBUG=1 go test ./pay", "ok  \texample.org/shop/pay\t2.1s")) == []


def test_an_environment_that_knows_only_ascii_is_told_with_the_way_out() -> None:
    """Named is the setting that the run itself used."""
    error = "UnicodeEncodeError: 'ascii' codec can't encode character '\\xe9' in position 4: ordinal not in range(128)"
    tape = Tape().create("try.py").sh("python try.py", f"Traceback (most recent call last):\n{error}", 1)
    assert found(preparing.ascii_only, tape.sh("LC_ALL=C.UTF-8 python try.py")) == [
        "Python takes text for ASCII in this environment (UnicodeEncodeError: 'ascii' codec); run it with `LC_ALL=C.UTF-8`, and open files with "
        "`encoding='utf-8'`."
    ]
    tests = Tape().sh("pytest tests/test_a.py", f"E   {error}\n1 failed, 3 passed in 0.1s", 1)
    assert "some tests fail for that alone" in found(preparing.ascii_only, tests)[0]


def test_a_task_about_encodings_says_nothing_of_the_environment() -> None:
    """Then the error is what the task is on."""
    run = a_run(description="UnicodeEncodeError when a name holds an umlaut")
    assert (
        found(preparing.ascii_only, Tape(run).sh("pytest", "E  UnicodeEncodeError: 'ascii' codec can't encode x\n1 failed in 0.1s", 1))
        == []
    )
