"""Shell commands and patches in JavaScript source."""

import pytest

from osmia_memory.transcripts.codex_script import calls, literal, shell_line


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('await tools.exec_command({cmd:"make test"})', "make test"),
        ('await tools.exec_command({ "cmd": "make test", "workdir": "/w" })', "make test"),
        ("await tools.exec_command({workdir: '/w', cmd: 'make test'})", "make test"),
        ("await tools.exec_command({cmd: `make\ntest`})", "make\ntest"),
        ("await tools.exec_command({cmd: String.raw`grep \\d+ x`})", "grep \\d+ x"),
        (r"""await tools.exec_command({cmd: "sed -n '1,20p' a.txt | grep \"x\"\n"})""", "sed -n '1,20p' a.txt | grep \"x\"\n"),
        ("const cmd = 'make test';\nawait tools.exec_command({cmd, yield_time_ms: 1000})", "make test"),
        ('const line = "make test";\nawait tools.exec_command({cmd: line})', "make test"),
        ('const line = ["make a", "make b"].join("\\n");\nawait tools.exec_command({cmd: line})', "make a\nmake b"),
        ("await tools.shell_command({command: 'make test'})", "make test"),
        ('await tools.shell({command: ["bash", "-lc", "make test"]})', "make test"),
        ("await tools.exec_command({cmd: build(x)})", None),
    ],
)
def test_the_command_is_read_from_its_literal(source: str, line: str | None):
    """Quoted keys and bare ones, all kinds of strings, constants; what is computed is not guessed."""
    assert [c.text for c in calls(source)] == [line]


def test_all_calls_are_found_in_order_with_folder_and_process():
    """A script may do many things."""
    source = """
    const p = await tools.update_plan({plan: [{step: "x"}]});
    const a = await tools.exec_command({cmd: "make a", workdir: "/w"});
    await tools.write_stdin({session_id: 7, chars: ""});
    await tools.apply_patch("*** Begin Patch\\n*** Add File: a\\n+x\\n*** End Patch");
    """
    found = list(calls(source))
    assert [(c.tool, c.text, c.workdir, c.session) for c in found] == [
        ("exec_command", "make a", "/w", None),
        ("write_stdin", None, None, "7"),
        ("apply_patch", "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch", None, None),
    ]


@pytest.mark.parametrize(
    ("token", "value"), [(r"'a\'b'", "a'b"), (r'"\x41\u0042\u{43}\n"', "ABC\n"), ('"a\\\nb"', "ab"), (r"'\ud83d'", "�")]
)
def test_escapes_are_those_of_javascript(token: str, value: str):
    """Hex, Unicode, line continuation; half a surrogate pair is no text."""
    assert literal(token) == value


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["bash", "-lc", "make test"], "make test"),
        (["/bin/zsh", "-c", "make test"], "make test"),
        (["powershell.exe", "-NoProfile", "-Command", "dir"], "dir"),
        (["echo", "it's", "a b"], "echo 'it'\\''s' 'a b'"),
    ],
)
def test_an_argument_vector_becomes_a_line(argv: list[str], line: str):
    """Shell wrappers are taken off, words are quoted."""
    assert shell_line(argv) == line
