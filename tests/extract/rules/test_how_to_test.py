"""How a repository is tested, linted and built is learned from commands that a runner answered."""

from collections.abc import Iterator

import pytest

from osmia_memory.extract.rule import Finding
from osmia_memory.extract.rules import how_to_test
from osmia_memory.extract.view import view
from osmia_memory.testing import Tape, a_run

OK = "===== 12 passed in 1.10s ====="


def found(rule: object, tape: Tape) -> list[str]:
    """Contents that a rule gives for a tape."""
    results: Iterator[Finding] = rule(view(tape.transcript()))  # type: ignore[operator]
    return [f.content for f in results if any(f.evidence)]


def test_the_command_that_ran_a_part_of_the_tests_is_told_with_an_example() -> None:
    """Options and readers are left out; the path stays as an example."""
    tape = Tape().sh("cd /home/dev/shop && python -m pytest tests/test_cart.py -x -q 2>&1 | tail -5", OK)
    assert found(how_to_test.test_command, tape) == [
        "Tests are run with `python -m pytest <path>`, for example `python -m pytest tests/test_cart.py`."
    ]


def test_the_whole_suite_beats_a_part() -> None:
    """One fact a runner: the widest run is the one worth knowing."""
    tape = (
        Tape()
        .sh("go test ./cart", "ok  \texample.org/shop/cart\t0.2s")
        .sh("go test ./...", "ok  \texample.org/shop/cart\t0.2s\nok  \texample.org/shop/x\t31.0s")
    )
    assert found(how_to_test.test_command, tape) == ["`go test ./...` runs the whole test suite and takes about 30 s."]


def test_a_task_runner_is_told_with_the_command_behind_it() -> None:
    """mise prints what it runs."""
    tape = Tape().sh("mise run test", "[test] $ go test ./...\nok  \texample.org/shop\t0.2s")
    assert found(how_to_test.test_command, tape) == ["`mise run test` runs the whole test suite (it runs `go test ./...`)."]


def test_a_command_without_a_runners_answer_teaches_nothing() -> None:
    """A missing pytest, a script of one's own and a run in which everything failed are not how tests are run."""
    assert found(how_to_test.test_command, Tape().sh("python -m pytest", "No module named pytest", 1)) == []
    assert found(how_to_test.test_command, Tape().create("test_try.py").sh("pytest test_try.py", "1 passed in 0.1s")) == []
    assert found(how_to_test.test_command, Tape().sh("pytest tests", "3 failed in 0.1s", 1)) == []


def test_the_lint_check_is_told_with_what_a_clean_tree_prints() -> None:
    """Lint that passed; a plain formatter and `go build` are everybody's."""
    tape = Tape().sh("mise run lint", "[lint] $ golangci-lint run ./...\n0 issues.").sh("gofmt -l .", "").sh("go build ./...", "")
    assert found(how_to_test.check_command, tape) == [
        "`mise run lint` is the lint check (it runs `golangci-lint run ./...`); a clean tree prints `0 issues.`."
    ]


def test_lint_that_found_something_is_not_told_as_clean() -> None:
    """A failing check teaches no clean output."""
    assert found(how_to_test.check_command, Tape().sh("ruff check .", "Found 2 errors.", 1)) == []


def test_a_changed_file_is_linked_to_the_closest_tests_that_passed() -> None:
    """The link needs an edit before, and kinship by name or no other candidate."""
    tape = Tape().edit("/home/dev/shop/shop/cart.py").sh("tools/check cart_rules", OK).sh("tools/check rates", OK)
    assert found(how_to_test.tests_of_file, tape) == ["A change of `shop/cart.py` was checked with `tools/check cart_rules`."]
    assert found(how_to_test.tests_of_file, Tape().sh("tools/check cart_rules", OK).edit("shop/cart.py")) == []


def test_a_file_that_is_not_in_the_final_patch_was_not_changed() -> None:
    """A debugging aid that was taken out again is no change that tests could check."""
    tape = Tape().edit("shop/cart.py").sh("tools/check cart_rules", OK).edit("shop/rates.py").sh("tools/check rates_tests", OK)
    assert len(found(how_to_test.tests_of_file, tape)) == 2
    tape.add("file_edit", "diff --git a/shop/rates.py b/shop/rates.py", tool="submission", paths=("shop/rates.py",))
    assert found(how_to_test.tests_of_file, tape) == ["A change of `shop/rates.py` was checked with `tools/check rates_tests`."]


def test_the_only_tests_of_the_only_file_need_no_kinship() -> None:
    """Nothing else could be meant; with a second file or a second target it could."""
    alone = Tape().edit("shop/base.py").sh("tools/check user_commands", OK)
    assert found(how_to_test.tests_of_file, alone) == ["A change of `shop/base.py` was checked with `tools/check user_commands`."]
    assert found(how_to_test.tests_of_file, Tape().edit("shop/base.py").edit("shop/x.py").sh("tools/check user_commands", OK)) == []
    assert found(how_to_test.tests_of_file, Tape().edit("shop/base.py").sh("tools/check a_b", OK).sh("tools/check c_d", OK)) == []
    assert found(how_to_test.tests_of_file, Tape().edit("README.md").sh("tools/check user_commands", OK)) == []


def test_the_folder_a_command_was_run_from_is_told() -> None:
    """`./run.py` works nowhere else."""
    tape = Tape().sh("cd tests && ./runtests.py cart", OK)
    assert found(how_to_test.test_command, tape) == [
        "Tests are run with `cd tests && ./runtests.py <label>`, for example `cd tests && ./runtests.py cart`."
    ]


def test_tests_where_anybody_would_look_are_not_told() -> None:
    """`test_cart.py` for `cart.py`, and Go's tests in the folder of the file, follow from the name."""
    assert found(how_to_test.tests_of_file, Tape().edit("shop/cart.py").sh("pytest tests/test_cart.py", OK)) == []
    assert found(how_to_test.tests_of_file, Tape().edit("cart/cart.go").sh("go test ./cart", "ok  \texample.org/shop/cart\t0.2s")) == []


def test_a_test_of_the_repository_is_not_taken_for_a_script_of_the_same_name() -> None:
    """A run that tries things in `test_tax.py` still ran the repository's own `cart.test_tax`."""
    tape = Tape().create("test_tax.py").sh("python runtests.py cart.tests.test_tax", "Ran 4 tests in 0.1s\n\nOK")
    assert found(how_to_test.test_command, tape) == [
        "Tests are run with `python runtests.py <label>`, for example `python runtests.py cart.tests.test_tax`."
    ]
    for line in ("pytest test_tax.py", "pytest ./test_tax.py", "cd /tmp && pytest $DIR/test_tax.py"):
        assert found(how_to_test.test_command, Tape().create("test_tax.py").sh(line, OK)) == []
    assert found(how_to_test.test_command, Tape().create("/tmp/try/test_tax.py").sh("cd /tmp && pytest try/test_tax.py", OK)) == []


def test_a_backup_does_not_make_its_file_a_script_of_the_run() -> None:
    """`cp runtests.py runtests.py.bak` leaves `runtests.py` the repository's."""
    tape = Tape().sh("cp runtests.py runtests.py.bak").sh("python runtests.py cart", "Ran 4 tests in 0.1s\n\nOK")
    assert found(how_to_test.test_command, tape) != []


@pytest.mark.parametrize(
    ("path", "label", "told"),
    [
        ("shop/orders/fields/files.py", "order_fields", False),
        ("shop/orders/deletion.py", "delete", False),
        ("shop/migrations/loader.py", "migrations.test_loader", False),
        ("shop/orders/fields/files.py", "file_storage", True),
    ],
)
def test_a_label_that_says_what_the_path_says_is_not_told(path: str, label: str, told: bool) -> None:
    """Anybody would try the label of the same words first; what a failed run checked with is no recommendation."""
    tape = Tape(a_run(outcome="success")).edit(path).sh(f"tools/check {label}", "Ran 12 tests in 0.2s\n\nOK")
    assert bool(found(how_to_test.tests_of_file, tape)) is told
    failed = Tape(a_run(outcome="failure")).edit(path).sh(f"tools/check {label}", "Ran 12 tests in 0.2s\n\nOK")
    assert found(how_to_test.tests_of_file, failed) == []


def test_how_a_part_is_run_everywhere_is_not_told() -> None:
    """`go test PACKAGE` is everybody's; with an environment or through the repository's own tool it is not."""
    go = "ok  \texample.com/shop/cart\t0.412s"
    assert found(how_to_test.test_command, Tape().sh("go test ./cart", go)) == []
    assert found(how_to_test.test_command, Tape().sh("SHOP_ENV=test go test ./cart", go)) != []


def test_a_check_that_failed_in_front_of_a_pipe_is_not_told() -> None:
    """The exit code is that of `tail`; what was printed says that nothing was checked."""
    refused = "mise ERROR error parsing config file: ~/shop/mise.toml\nmise ERROR Config files are not trusted."
    assert found(how_to_test.check_command, Tape().sh("mise run lint 2>&1 | tail -5", refused)) == []
    assert found(how_to_test.check_command, Tape().sh("mise run lint 2>&1 | tail -5", "[lint] Finished in 3 s")) != []


def test_a_cache_in_a_temporary_folder_is_no_part_of_the_command() -> None:
    """The sandbox of that run wanted it; a setting of the tests' own stays."""
    tape = Tape().sh("GOCACHE=/tmp/go-cache SHOP_DB=:memory: go test ./...", "ok  \texample.org/shop\t0.1s")
    assert found(how_to_test.test_command, tape) == ["`SHOP_DB=:memory: go test ./...` runs the whole test suite."]
