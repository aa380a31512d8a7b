"""Shell commands and patches inside the JavaScript that Codex's `exec` tool runs. Pure; reads string literals only."""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

_STRING = r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|String\.raw`[^`]*`"
_CALL = re.compile(r"\btools\.(?P<tool>exec_command|shell_command|shell|local_shell|write_stdin|apply_patch)\s*\(")
_COMMAND_KEY = re.compile(rf"[{{,\s][\"']?(?:cmd|command)[\"']?\s*:\s*(?P<value>{_STRING}|\[[^\]]*\]|[A-Za-z_$][\w$]*)", re.S)
_SHORTHAND = re.compile(r"[{,]\s*(?P<name>cmd|command)\s*[,}]")
_WORKDIR = re.compile(rf"[\"']?workdir[\"']?\s*:\s*(?P<value>{_STRING})")
_SESSION = re.compile(r"[\"']?session_id[\"']?\s*:\s*[\"']?(?P<value>\w+)")
_LITERAL = re.compile(_STRING, re.S)
_ESCAPE = re.compile(r"\\(u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|\r\n|.)", re.S)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}


class Call(NamedTuple):
    """A tool the script calls: its command line (or patch), folder and process, as far as they stand there literally."""

    tool: str
    text: str | None
    workdir: str | None = None
    session: str | None = None


def calls(source: str) -> Iterator[Call]:
    """The shell, stdin and patch calls of a script in order; `text` is None where it is computed."""
    found = list(_CALL.finditer(source))
    for match, following in zip_longest(found, found[1:]):
        arguments = source[match.end() : following.start() if following else len(source)]
        tool = match["tool"]
        if tool == "apply_patch":
            yield Call(tool, _patch(arguments, source))
            continue
        workdir = _WORKDIR.search(arguments)
        session = _SESSION.search(arguments)
        yield Call(tool, _command(arguments, source), workdir and literal(workdir["value"]), session and session["value"])


def literal(token: str) -> str:
    """The value of a JavaScript string literal; `${...}` of a template stays as it is written."""
    if token.startswith("String.raw"):
        return token[len("String.raw`") : -1]
    return _ESCAPE.sub(_unescaped, token[1:-1])


def _unescaped(match: re.Match[str]) -> str:
    code = match[2] or match[3] or match[4]
    if code:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else "�"
    return _SIMPLE.get(match[1], match[1])


def _command(arguments: str, source: str) -> str | None:
    match = _COMMAND_KEY.search(arguments)
    if match is None:
        short = _SHORTHAND.search(arguments)
        return _assigned(short["name"], source) if short else None
    value = match["value"]
    if value[0] == "[":
        return shell_line([literal(m[0]) for m in _LITERAL.finditer(value)])
    return literal(value) if value[0] in "\"'`" or value.startswith("String.raw`") else _assigned(value, source)


def _patch(arguments: str, source: str) -> str | None:
    for match in _LITERAL.finditer(arguments):
        if "*** Begin Patch" in match[0]:
            return literal(match[0])
    name = re.match(r"\s*([A-Za-z_$][\w$]*)", arguments)
    return _assigned(name[1], source) if name else None


def _assigned(name: str, source: str) -> str | None:
    """The literal that a `const` of the script is set to; lines joined as `[...].join("\\n")` too."""
    match = re.search(rf"\b(?:const|let|var)\s+{re.escape(name)}\s*=\s*({_STRING}|\[)", source, re.S)
    if match is None:
        return None
    if match[1] != "[":
        return literal(match[1])
    end = re.compile(r"\]\s*\.join\(\s*([\"'`])(.*?)\1\s*\)").search(source, match.end())
    if end is None:
        return None
    return literal(f'"{end[2]}"').join(literal(m[0]) for m in _LITERAL.finditer(source, match.end(), end.start()))


def shell_line(argv: list[str]) -> str:
    """The command line of an argument vector: the script of `bash -lc <script>`, else the words joined."""
    if len(argv) >= 3 and argv[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh", "dash") and re.fullmatch(r"-\w*c", argv[1]):
        return argv[2]
    if len(argv) >= 3 and argv[0].lower().rsplit("\\", 1)[-1].startswith(("powershell", "pwsh")) and "-command" in argv[-2].lower():
        return argv[-1]
    return " ".join(word if re.fullmatch(r"[\w@%+=:,./-]+", word) else "'" + word.replace("'", "'\\''") + "'" for word in argv)
