"""What fails in an environment, and what works instead."""

import pytest

from osmia_memory.extract.rules import own_scripts, setup
from osmia_memory.extract.view import view
from osmia_memory.testing import Tape, a_run
from tests.extract.rules.test_how_to_test import found

OK = "==== 3 passed in 0.1s ===="


def test_another_runner_that_works_is_the_fix_up() -> None:
    """The failed command, its error and the working one in one line."""
    tape = (
        Tape()
        .sh("/usr/bin/python3 -m pytest tests", "/usr/bin/python3: No module named pytest", 1)
        .sh("bin/check tests/unit", "Ran 3 tests in 0.1s\n\nOK")
    )
    tape2 = Tape().sh("/usr/bin/python3 -m pytest tests", "/usr/bin/python3: No module named pytest", 1).sh("pytest tests", OK)
    assert found(setup.fix_up, tape2) == [
        "`/usr/bin/python3 -m pytest` fails here (/usr/bin/python3: No module named pytest); `pytest tests` works."
    ]
    assert found(setup.fix_up, tape) == [
        "`/usr/bin/python3 -m pytest` fails here (/usr/bin/python3: No module named pytest); `bin/check <path>` works."
    ]


def test_a_setting_that_was_needed_is_named() -> None:
    """Only what was added is told."""
    tape = (
        Tape()
        .sh("go test ./...", "open /root/.cache: Operation not permitted", 1)
        .sh("GOCACHE=/tmp/gc go test ./...", "ok  \texample.org/x\t0.1s")
    )
    assert found(setup.fix_up, tape) == ["`go test ./...` fails here (open /root/.cache: Operation not permitted); set `GOCACHE=/tmp/gc`."]


def test_a_wrapper_that_finds_the_tool_is_the_fix_up() -> None:
    """`tool: command not found`, then the same through a version manager."""
    tape = Tape().sh("go test ./...", "zsh:1: command not found: go", 127).sh("mise exec go -- go test ./...", "ok  \texample.org/x\t0.1s")
    (content,) = found(setup.fix_up, tape)
    assert content == "`go test ./...` fails here (zsh:1: command not found: go); `mise exec go -- go test ./...` works."


def test_a_missing_test_file_is_told_with_the_one_that_exists() -> None:
    """A guess at a path and the right path."""
    tape = (
        Tape()
        .sh("pytest tests/test_carts.py", "ERROR: file or directory not found: tests/test_carts.py\n\nno tests ran in 0.01s", 4)
        .sh("pytest tests/test_cart.py", OK)
    )
    assert found(setup.fix_up, tape) == ["There is no `tests/test_carts.py`; `pytest tests/test_cart.py` is what exists."]


@pytest.mark.parametrize(
    "tape",
    [
        Tape().create("try.py").sh("python try.py", "error: unrecognized arguments: --fast", 2).sh("python try.py --slow"),
        Tape().sh("go run ./cmd/shop --bogus", "Error: unknown flag: --bogus", 1).sh("go run ./cmd/shop version"),
        Tape()
        .sh("pytest tests/test_a.py", "ModuleNotFoundError: No module named 'my_app'\n1 failed, 2 passed in 0.1s", 1)
        .sh("pytest tests/test_b.py", OK),
        Tape().sh("git commit -m x", "nothing to commit", 1).sh("git add -A && git commit -m x"),
    ],
)
def test_the_product_at_work_needs_no_fix_up(tape: Tape) -> None:
    """A script of one's own, the program under development and failing tests say nothing about the environment."""
    assert found(setup.fix_up, tape) == []


def test_another_command_of_no_known_kind_is_no_remedy_for_a_missing_one() -> None:
    """`ffprobe` stays missing although something else worked soon after; a limit in front of a command may be what is missing."""
    tape = Tape().sh("ffprobe a.mov b.mov", "zsh: command not found: ffprobe", 127).sh("$FF -i a.mov b.mov out.gif", "frame=1")
    assert found(setup.fix_up, tape) == []
    assert found(setup.missing, tape) == ["`ffprobe` is not installed here (command not found)."]
    limited = Tape().sh("cat in | timeout 5 shop-helper 2>&1 | head", "zsh: command not found: timeout")
    assert found(setup.missing, limited) == ["`timeout` is not installed here (command not found)."]


def test_a_word_of_a_message_and_a_private_module_are_not_missing() -> None:
    """Back-ticks in double quotes run the word; a private module is a trace of something else."""
    assert found(setup.missing, Tape().sh('git commit -m "move `cart` to shop"', "zsh:1: command not found: cart", 1)) == []
    assert found(setup.missing, Tape().sh("python -m shop", "ModuleNotFoundError: No module named '_sitehack'", 1)) == []


def test_what_stays_missing_is_told() -> None:
    """A tool and a third-party module, with the file that needs it."""
    assert found(setup.missing, Tape().sh("ffprobe clip.mov", "bash: line 1: ffprobe: command not found", 127)) == [
        "`ffprobe` is not installed here (command not found)."
    ]
    trace = "Traceback (most recent call last):\n  File \"/home/dev/shop/shop/pdf.py\", line 3, in <module>\n    import weasy\nModuleNotFoundError: No module named 'weasy'"
    assert found(setup.missing, Tape().sh("python -m shop.report", trace, 1)) == [
        "Module `weasy` is not installed in this environment (No module named 'weasy'); `shop/pdf.py` needs it."
    ]
    (finding,) = setup.missing(view(Tape().sh("python -m shop.report", trace, 1).transcript()))
    assert finding.anchors == ("file:shop/pdf.py",)  # then it concerns tasks on that file


def test_modules_that_the_run_made_up_are_not_missing() -> None:
    """`repro_app` and the repository's own package are the run's affair."""
    trace = "ModuleNotFoundError: No module named 'repro_app'"
    assert found(setup.missing, Tape().sh("python -m tool", trace, 1)) == []
    assert found(setup.missing, Tape().sh("python -m tool", "ModuleNotFoundError: No module named 'shop.cart'", 1)) == []


def test_set_up_that_scripts_need_is_learned_from_what_was_added() -> None:
    """The exception comes out of the repository's code; the line that got past it is quoted."""
    trace = 'Traceback (most recent call last):\n  File "/home/dev/shop/shop/registry.py", line 9, in get\nshop.errors.RegistryNotReady: registry is not loaded'
    tape = (
        Tape()
        .create("try_it.py", "import shop\nshop.get()")
        .sh("python try_it.py", trace, 1)
        .create("try_it.py", "import shop\nshop.load_registry()\nshop.get()")
    )
    tape.sh("python try_it.py", "done")
    assert found(own_scripts.script_setup, tape) == [
        "A stand-alone script here may fail with `RegistryNotReady: registry is not loaded` until `shop.load_registry()` is added."
    ]


TRACE = 'Traceback (most recent call last):\n  File "/home/dev/shop/shop/loader.py", line 9, in load\n'


def test_a_package_named_as_a_string_has_to_exist() -> None:
    """The code under test imports what the script only names; making the package, or taking the name out, got past it."""
    failed = (
        Tape()
        .create("try_it.py", "import shop\nshop.load(plugins=['try_plugin'])")
        .sh("python try_it.py", TRACE + "ModuleNotFoundError: No module named 'try_plugin'", 1)
    )
    made = failed.sh("mkdir try_plugin && touch try_plugin/__init__.py").sh("python try_it.py", "loaded")
    assert found(own_scripts.script_setup, made) == [
        "A stand-alone script here may fail with `No module named 'try_plugin'` until that package exists on disk."
    ]


def test_a_command_run_beside_the_script_may_be_the_cure() -> None:
    """The script itself did not change; inline code before its second run did what was missing."""
    tape = (
        Tape()
        .create("try_it.py", "import shop\nshop.configure(x=1)\nshop.totals()")
        .sh("python try_it.py", TRACE + "shop.errors.StoreError: no such table: carts", 1)
        .sh("python3 -c \"\nimport shop\nshop.configure(x=1)\nshop.create_tables('carts', verbose=0)\n\"")
        .sh("python try_it.py", "3 carts")
    )
    assert found(own_scripts.script_setup, tape) == [
        "A stand-alone script here may fail with `StoreError: no such table: …` until `shop.create_tables('carts', …)` is added."
    ]


def test_a_rewritten_script_that_does_not_get_further_teaches_nothing() -> None:
    """The same error again, whatever was added."""
    error = TRACE + "shop.errors.StoreError: no such table: carts"
    tape = Tape().create("try_it.py", "import shop\nshop.totals()").sh("python try_it.py", error, 1)
    tape.create("try_it.py", "import shop\nshop.refresh()\nshop.totals()").sh("python try_it.py", error, 1)
    assert found(own_scripts.script_setup, tape) == []


def test_the_reproduction_that_the_task_describes_is_no_set_up_problem() -> None:
    """The script was meant to fail like that."""
    run = a_run(description="Calling get() raises RegistryNotReady: registry is not loaded, although it is.")
    trace = 'Traceback (most recent call last):\n  File "/home/dev/shop/shop/registry.py", line 9, in get\nshop.errors.RegistryNotReady: registry is not loaded'
    tape = Tape(run).create("try_it.py").sh("python try_it.py", trace, 1).create("try_it.py", "print(2)").sh("python try_it.py", "done")
    assert found(own_scripts.script_setup, tape) == []


def test_of_a_chain_the_command_that_got_the_option_was_the_refused_one() -> None:
    """Another command of the same interpreter came before it."""
    tape = (
        Tape()
        .sh("python3 fixtures/old.py a.db && PYTHONPATH=src python3 -m shop.cli migrate a.db", "shop: refusing without --backup FILE", 2)
        .sh("PYTHONPATH=src python3 -m shop.cli migrate a.db --backup b.db", "done")
    )
    (content,) = found(setup.told_what_to_add, tape)
    assert content.startswith("`PYTHONPATH=src python3 -m shop.cli migrate a.db` is refused here")


def test_an_option_that_a_later_try_added_is_the_fix_up_whatever_else_went_wrong() -> None:
    """The first error of a line is not always the one that was cured; an option's value is told with its option."""
    prompt = "fatal: could not read Username for 'https://shop.invalid': Device not configured"
    tape = (
        Tape()
        .sh(
            "printf x | git -c cache.helper=disk credential approve; git -c cache.helper=disk credential fill || true",
            f"fatal: no room\n{prompt}",
        )
        .sh("printf x | git -c cache.helper= -c cache.helper=disk credential approve; git credential fill || true", f"stored\n{prompt}")
    )
    assert found(setup.fix_up, tape) == [
        "`git -c cache.helper=disk credential approve` fails here (fatal: no room); with `-c cache.helper=` added it works."
    ]


def test_of_several_git_commands_in_a_line_nobody_knows_which_one_failed() -> None:
    """Then nothing is told."""
    tape = (
        Tape()
        .sh("git fetch origin; git log x1y2 || true", "fatal: ambiguous argument 'x1y2'")
        .sh("GIT_TERMINAL_PROMPT=0 git fetch origin", "done")
    )
    assert found(setup.fix_up, tape) == []
