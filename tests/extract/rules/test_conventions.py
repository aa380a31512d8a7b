"""What the repository's own tools enforce."""

import pytest

from osmia_memory.extract.rules import conventions
from osmia_memory.testing import Tape, a_run
from tests.extract.rules.test_how_to_test import found

CART = "shop/cart.go"


@pytest.mark.parametrize(
    ("line", "output", "told"),
    [
        (
            "golangci-lint run ./... 2>&1 | tail -5",
            "shop/cart.go:41:9: error returned from external package is unwrapped: sig: func os.Remove(name string) error (wrapcheck)\n\treturn err\n1 issues:",
            "`golangci-lint` rejects new code here for `wrapcheck`: “error returned from external package is unwrapped”.",
        ),
        (
            "mise run lint",
            "[lint:go] shop/cart.go:7:2: string `eur` has 4 occurrences, make it a constant (goconst)",
            "`golangci-lint` rejects new code here for `goconst`: “string … has several occurrences, make it a constant”.",
        ),
        (
            "flake8 shop",
            "shop/cart.go:12:36: E226 missing whitespace around arithmetic operator",
            "`flake8` rejects new code here for `E226`: “missing whitespace around arithmetic operator”.",
        ),
        (
            "ruff check .",
            "shop/cart.go:12:36: E501 Line too long (120 > 88)\nFound 1 error.\nruff 0.5",
            "`ruff` rejects new code here for `E501`: “Line too long (120 > 88)”.",
        ),
        (
            "pylint shop",
            "shop/cart.go:3:4: W0703: Catching too general exception (broad-except)",
            "`pylint` rejects new code here for `broad-except`: “Catching too general exception”.",
        ),
        (
            "mypy shop",
            "shop/cart.go:9: error: Function is missing a return type annotation  [no-untyped-def]",
            "`mypy` rejects new code here for `no-untyped-def`: “Function is missing a return type annotation”.",
        ),
    ],
)
def test_a_linter_s_rule_that_rejected_the_run_s_code_is_told(line: str, output: str, told: str) -> None:
    """With the rule's name, and without what it says of this code alone."""
    assert found(conventions.lint_rule, Tape().edit(CART).sh(line, output, 1)) == [told]


def test_what_a_person_pasted_of_the_linter_counts_too() -> None:
    """The check ran elsewhere."""
    tape = Tape().edit(CART).user("lint fails:\n[lint:go] shop/cart.go:45:9: Error return value is not checked (errcheck)")
    assert found(conventions.lint_rule, tape) == [
        "`golangci-lint` rejects new code here for `errcheck`: “Error return value is not checked”."
    ]


def test_one_rule_is_told_once_and_of_many_rules_the_most_frequent() -> None:
    """A first clean-up finds dozens."""
    lines = [f"shop/cart.go:{n}:1: some advice (rule{n % 6})" for n in range(1, 16)]
    contents = found(conventions.lint_rule, Tape().edit(CART).sh("golangci-lint run", "\n".join(lines), 1))
    assert [content.split("`")[3] for content in contents] == ["rule1", "rule2", "rule3"]


@pytest.mark.parametrize(
    "tape",
    [
        Tape().edit(CART).sh("golangci-lint run", "shop/tax.go:1:1: error returned from interface is unwrapped (wrapcheck)", 1),
        Tape().edit(CART).sh("golangci-lint run", "shop/cart.go:1:1: undefined: total (typecheck)", 1),
        Tape().edit(CART).sh("flake8", "shop/cart.go:1:1: F401 'os' imported but unused", 1),
        Tape().edit(CART).sh("grep wrapcheck lint.txt", "shop/cart.go:1:1: error is unwrapped (wrapcheck)"),
        Tape(a_run(repo="acme/flake8")).edit(CART).sh("flake8 x", "shop/cart.go:1:1: E226 missing whitespace", 1),
        Tape().create("try.py").sh("flake8 try.py", "try.py:1:1: E226 missing whitespace", 1),
    ],
)
def test_other_code_and_plain_mistakes_are_no_conventions(tape: Tape) -> None:
    """What was there before, what would not compile either, a linter's own repository, a script to try something."""
    assert found(conventions.lint_rule, tape) == []
