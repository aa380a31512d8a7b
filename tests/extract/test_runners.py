"""The words of a test or lint tool decide, not its exit code."""

import pytest

from osmia_memory.extract.runners import verdict

PYTEST = """\
____________ test_refund ____________
E       ValueError: no rate for 'XAU'
=========== short test summary info ===========
FAILED tests/test_refund.py::test_refund[gold] - ValueError: no rate for 'XAU'
ERROR tests/test_io.py::test_open
====== 1 failed, 7 passed, 2 warnings, 1 error in 0.42s ======
"""
UNITTEST = """\
======================================================================
FAIL: test_total (shop.tests.CartTests)
----------------------------------------------------------------------
Traceback (most recent call last):
AssertionError: 3 != 4
----------------------------------------------------------------------
Ran 12 tests in 1.250s

FAILED (failures=1, skipped=2)
"""
GO = "--- FAIL: TestCart (0.00s)\n    cart_test.go:12: total is 3, want 4\nFAIL\nFAIL\texample.org/shop/cart\t0.310s\nok  \texample.org/shop/rates\t1.200s\n"


@pytest.mark.parametrize(
    ("output", "tool", "passed", "ran", "failed", "failing"),
    [
        (
            PYTEST,
            "pytest",
            False,
            8,
            2,
            [("tests/test_refund.py::test_refund", "ValueError: no rate for 'XAU'"), ("tests/test_io.py::test_open", "")],
        ),
        ("\x1b[32m==== 5 passed\x1b[0m in 0.10s ====", "pytest", True, 5, 0, []),
        ("3 passed in 0.01s", "pytest", True, 3, 0, []),
        (UNITTEST, "unittest", False, 12, 1, [("shop.tests.CartTests.test_total", "AssertionError: 3 != 4")]),
        ("Ran 4 tests in 0.100s\n\nOK\n", "unittest", True, 4, 0, []),
        (GO, "go test", False, 2, 1, [("TestCart", "total is 3, want 4")]),
        ("ok  \texample.org/shop\t(cached)\n", "go test", True, 1, 0, []),
        ("Tests:  1 failed, 5 passed, 6 total\n", "jest", False, 6, 1, []),
        ("test result: FAILED. 2 passed; 1 failed; 0 ignored\n", "cargo test", False, 3, 1, []),
        ("0 issues.", "golangci-lint", True, None, 0, []),
        ("Found 3 errors.\n", "ruff", False, None, 3, []),
    ],
)
def test_a_runners_summary_is_read(
    output: str, tool: str, passed: bool, ran: int | None, failed: int, failing: list[tuple[str, str]]
) -> None:
    """Counts, failing tests and their first reason come out of the usual summaries."""
    found = verdict(output)
    assert found is not None
    assert (found.tool, found.passed, found.ran, found.failed) == (tool, passed, ran, failed)
    assert [(f.test_id, f.reason) for f in found.failing] == failing


@pytest.mark.parametrize(
    "output", ["", "hello", "passed the ball", "FAILED to connect", "1 file changed, 3 insertions(+)", "it failed in 3 places"]
)
def test_other_output_has_no_verdict(output: str) -> None:
    """Prose and other tools are not taken for a test run."""
    assert verdict(output) is None


def test_nothing_ran_is_no_success() -> None:
    """Warnings without a test, a broken build and an import error are not green."""
    for output in ("7 warnings in 0.00s", "no tests ran in 0.01s", "FAIL\texample.org/shop [build failed]\n"):
        found = verdict(output)
        assert found is not None, output
        assert not found.passed, output
        assert found.broken_build, output
