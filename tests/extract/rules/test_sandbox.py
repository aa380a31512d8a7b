"""The shell and the sandbox of an engine, and accidents of the moment."""

from osmia_memory.extract.rules import sandbox
from osmia_memory.models import Environment
from osmia_memory.testing import Tape, a_run
from tests.extract.rules.test_how_to_test import found

OK = "==== 3 passed in 0.1s ===="


def test_the_shell_s_own_pitfalls_are_engine_facts() -> None:
    """A read-only variable and an unmatched glob abort the whole line."""
    tape = Tape().sh("make x; status=$?", "zsh:1: read-only variable: status", 1).sh("make x; rc=$?; echo $rc", "0")
    assert found(sandbox.shell_pitfall, tape) == [
        "codex's shell is zsh, where `status` is a read-only variable: assigning it aborts the whole line; store exit codes in another name such as `rc`."
    ]


def test_an_unmatched_glob_teaches_the_shell_of_the_engine_and_the_file_of_the_repository() -> None:
    """The engine's line holds no path; the repository's names what is there, and waits for a second run."""
    tape = (
        Tape()
        .sh("sed -n 1,9p shop/http*.go", "zsh:1: no matches found: shop/http*.go", 1)
        .sh("ls shop/*", "shop/cart.go\nshop/smarthttp.go")
    )
    assert found(sandbox.shell_pitfall, tape) == [
        "The glob `shop/http*.go` matches nothing here, and zsh then aborts the whole line (no matches found); `shop/smarthttp.go` is what exists.",
        "codex's shell is zsh: a glob that matches nothing aborts the whole line (no matches found); quote globs or use `rg --files`.",
    ]


def test_a_sandbox_refusal_is_told_with_the_way_out() -> None:
    """The same program, allowed out of the sandbox, worked."""
    run = a_run(environment=Environment(sandbox="workspace-write"))
    tape = (
        Tape(run)
        .sh("gh pr list", "error connecting to api.github.com", 1)
        .sh("gh pr list", "1 open", call_args={"sandbox_permissions": "require_escalated"})
    )
    assert found(sandbox.sandboxed, tape) == [
        "In codex's sandbox a command such as `gh pr` cannot reach the network (error connecting); asking for it to run outside the sandbox worked."
    ]


def test_accidents_of_the_moment_are_tagged_as_such() -> None:
    """No network is true of that run's environment, never of the repository."""
    from osmia_memory.extract.view import view

    (finding,) = sandbox.accident(
        view(Tape().sh("git fetch", "fatal: unable to access: Could not resolve host: git.acme.dev", 128).transcript())
    )
    assert finding.tags == ("environment", "corroborate")
    assert finding.scope == "engine"
    asked = Tape().sh("git fetch", "fatal: unable to access: Could not resolve host: mirror.example", 128)
    assert found(sandbox.accident, asked) == []  # a reserved name: nobody expected an answer
    own = Tape().sh("go test ./...", "push failed: http 401 Unauthorized: http://127.0.0.1:64916/shop.git", 1)
    assert found(sandbox.accident, own) == []  # a server of the test's own


def test_a_shell_that_runs_lines_through_eval_is_recognised() -> None:
    """It names itself `(eval)`."""
    assert found(sandbox.shell_pitfall, Tape().sh("grep -rn total --include=*.go .", "(eval):1: no matches found: --include=*.go", 1)) == [
        "codex's shell is zsh: a glob that matches nothing aborts the whole line (no matches found); quote globs or use `rg --files`."
    ]


def test_text_that_the_shell_takes_for_a_command_is_an_engine_fact() -> None:
    """`===` in zsh, and back-ticks within double quotes anywhere; within single quotes they are harmless."""
    (equals,) = found(sandbox.expanded_by_the_shell, Tape().sh("echo ===; ls", "(eval):1: == not found", 1))
    assert equals.startswith("codex's shell is zsh, where a bare `===`")
    (ticks,) = found(
        sandbox.expanded_by_the_shell, Tape().sh('rg "the `Cart` type" docs', "docs/a.md: cart\nzsh:1: command not found: Cart")
    )
    assert ticks.startswith("codex's shell runs what stands between back-ticks within double quotes")
    assert found(sandbox.expanded_by_the_shell, Tape().sh("rg 'the `Cart` type' docs", "bash: line 1: Cart: command not found", 127)) == []


def test_tests_that_may_not_listen_teach_of_the_sandbox() -> None:
    """Without a sandbox the same line says nothing of the engine."""
    panic = "panic: httptest: failed to listen on a port: listen tcp6 [::1]:0: bind: operation not permitted\n--- FAIL: TestPay (0.00s)\nFAIL\texample.org/pay\t0.1s"
    tape = Tape(a_run(environment=Environment(sandbox="workspace-write"))).sh("go test ./pay", panic, 1)
    assert found(sandbox.no_ports, tape) == [
        "In codex's sandbox nothing may listen on a port (operation not permitted): tests that start a server fail there whatever the change."
    ]
    assert found(sandbox.no_ports, Tape().sh("go test ./pay", panic, 1)) == []
