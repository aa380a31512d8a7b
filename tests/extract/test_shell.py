"""A shell line is the simple commands it runs, whatever wraps, pipes or guards them."""

import pytest

from osmia_memory.extract.shell import parse


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pytest tests/a.py", [("pytest", "tests/a.py")]),
        ("cd /x && FOO=1 make test", [("cd", "/x"), ("make", "test")]),
        ("env A=1 timeout 60 go test ./...", [("go", "test", "./...")]),
        ('bash -lc "npm run lint && npm test"', [("npm", "run", "lint"), ("npm", "test")]),
        ("cat <<'EOF' > a.py\nx = 1 && y\nEOF\npython a.py", [("cat",), ("python", "a.py")]),
        ("for f in *.go; do gofmt -l $f; done", [("gofmt", "-l", "$f")]),
        ("", []),
        ("((((", []),
    ],
)
def test_a_line_is_split_into_its_simple_commands(line: str, expected: list[tuple[str, ...]]) -> None:
    """Wrappers, assignments and control structures are gone; quoted text is not split."""
    assert [c.argv for c in parse(line)] == expected


def test_assignments_exports_and_limits_stay_with_the_command() -> None:
    """What was set in front of a command is part of how it ran."""
    (command,) = parse("export LANG=C.UTF-8 && A=1 timeout 2m tool run")
    assert command.env == ("LANG=C.UTF-8", "A=1")
    assert command.timeout_s == 120
    assert command.text == "LANG=C.UTF-8 A=1 tool run"


def test_a_pipe_hides_the_exit_code() -> None:
    """`x | tail` and `x || true` end with another command's status."""
    piped, tail = parse("pytest -q | tail -5")
    guarded, _ = parse("make lint || true")
    assert piped.piped
    assert not tail.piped
    assert guarded.guarded


def test_files_written_by_redirection_are_known() -> None:
    """`> file` counts, `2>/dev/null` does not."""
    (command,) = parse("tool > out.txt 2>/dev/null")
    assert command.writes == ("out.txt",)
