"""A shell command line as the simple commands it runs. Pure; knows nothing about runs or results.

The grammar is tree-sitter's bash, which recovers from zsh and from cut lines; what it cannot place is left out.
"""

import functools
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import tree_sitter
import tree_sitter_bash

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
_MAX_CHARS = 40_000  # a longer line is a pasted file; its head tells what it does
_WRAPPERS = frozenset({"env", "time", "sudo", "nohup", "command", "exec", "nice", "stdbuf", "builtin"})


@dataclass(frozen=True)
class Simple:
    """One simple command of a line: `FOO=1 timeout 60 go test ./... | tail` gives `go test ./...` and `tail`."""

    argv: tuple[str, ...]  # words without quotes; wrappers such as `env`, `time`, `timeout 60` are gone
    env: tuple[str, ...] = ()  # assignments in front, "GOCACHE=/tmp/go-build"
    timeout_s: float | None = None  # of a `timeout` in front
    timed: bool = False  # `time` in front
    writes: tuple[str, ...] = ()  # files its output is redirected to
    appends: bool = False  # the redirection was `>>`
    heredoc: str = ""
    piped: bool = False  # another command reads its output, so the line's exit code is not its own
    guarded: bool = False  # followed by `|| ...` or `; ...`: the line's exit code is not its own

    @functools.cached_property
    def program(self) -> str:
        """Base name of the program, "" if there is none."""
        return posixpath.basename(self.argv[0]) if self.argv else ""

    @functools.cached_property
    def text(self) -> str:
        """The command as one would type it, with its assignments, without redirections."""
        return " ".join((*self.env, *map(_quoted, self.argv)))


def _quoted(word: str) -> str:
    if word and re.fullmatch(r"[\w@%+=:,./~<>\[\]{}*?!^-]+", word):
        return word
    return '"' + word + '"' if "'" in word else "'" + word + "'"


@functools.lru_cache(maxsize=4096)
def parse(line: str) -> tuple[Simple, ...]:
    """The simple commands of a line in order, those of `bash -c "..."` and of control structures included."""
    line = line[:_MAX_CHARS]
    data = line.encode("utf-8", "surrogatepass")
    exported: tuple[str, ...] = ()
    found: list[Simple] = []
    for simple in _walk(_PARSER.parse(data).root_node, piped=False, guarded=False):
        if simple.argv[:1] == ("export",):
            exported += simple.env
        else:
            found += [replace(inner, env=(*exported, *inner.env)) if exported else inner for inner in _unwrapped(simple)]
    return tuple(found)


def _walk(node: tree_sitter.Node, *, piped: bool, guarded: bool) -> Iterator[Simple]:
    kind = node.type
    if kind == "command":
        yield _command(node, (), piped, guarded)
    elif kind == "declaration_command":
        if node.children and node.children[0].type == "export":
            yield Simple(("export",), tuple(_text(c) for c in node.named_children if c.type == "variable_assignment"))
    elif kind == "redirected_statement":
        yield from _redirected(node, piped, guarded)
    elif kind == "pipeline":
        parts = node.named_children
        for n, child in enumerate(parts):
            yield from _walk(child, piped=piped or n < len(parts) - 1, guarded=guarded)
    elif kind == "list":
        left, right = node.named_children[0], node.named_children[1:]
        is_or = any(child.type == "||" for child in node.children)
        yield from _walk(left, piped=piped, guarded=guarded or is_or)
        for child in right:
            yield from _walk(child, piped=piped, guarded=guarded)
    else:
        children = [child for child in node.children if child.is_named and child.type not in ("comment", "heredoc_body")]
        last = len(children) - 1
        sequence = kind in ("program", "subshell", "compound_statement", "do_group")
        for n, child in enumerate(children):
            yield from _walk(child, piped=piped, guarded=guarded or (sequence and n < last))


def _redirected(node: tree_sitter.Node, piped: bool, guarded: bool) -> Iterator[Simple]:
    writes: list[str] = []
    heredoc, appends = "", False
    extra: list[tree_sitter.Node] = []
    todo = list(node.named_children[1:])
    while todo:
        child = todo.pop(0)
        if child.type == "file_redirect":
            operator = next((c.type for c in child.children if c.type in (">", ">>", "&>", "&>>", ">|")), None)
            target = child.child_by_field_name("destination") or (child.named_children[-1] if child.named_children else None)
            if operator and target is not None and (path := _word(target)) and not path.startswith(("/dev/", "&")):
                writes.append(path)
                appends = appends or operator in (">>", "&>>")
        elif child.type == "heredoc_redirect":
            for part in child.named_children:
                if part.type == "heredoc_body":
                    heredoc = _text(part)
                elif part.type in ("file_redirect", "heredoc_redirect"):
                    todo.append(part)
                elif part.type in ("pipeline", "list", "command"):
                    extra.append(part)
    if not node.named_children:
        return
    inner = list(_walk(node.named_children[0], piped=piped or bool(extra), guarded=guarded))
    for n, simple in enumerate(inner):
        if n == len(inner) - 1:
            simple = replace(simple, writes=(*simple.writes, *writes), heredoc=heredoc or simple.heredoc, appends=appends)
        yield simple
    for part in extra:
        yield from _walk(part, piped=piped, guarded=guarded)


def _command(node: tree_sitter.Node, writes: tuple[str, ...], piped: bool, guarded: bool) -> Simple:
    env, argv = [], []
    for child in node.named_children:
        if child.type == "variable_assignment":
            env.append(_text(child))
        elif child.type == "command_name" or child.type not in ("file_redirect", "heredoc_redirect", "herestring_redirect", "comment"):
            argv.append(_word(child))
    return Simple(tuple(argv), tuple(env), writes=writes, piped=piped, guarded=guarded)


def _text(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _word(node: tree_sitter.Node) -> str:
    text = _text(node)
    if node.type in ("string", "raw_string") or (len(text) > 1 and text[0] == text[-1] and text[0] in "'\""):
        return text[1:-1]
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text


def _unwrapped(simple: Simple) -> Iterator[Simple]:
    """Without `env`, `time`, `timeout 60`, ...; `bash -c "..."` gives the commands inside."""
    argv, env, timeout_s, timed = list(simple.argv), list(simple.env), None, False
    while argv:
        name = posixpath.basename(argv[0])
        if name in _WRAPPERS:
            timed = timed or name == "time"
            argv.pop(0)
            while argv and (argv[0].startswith("-") or re.fullmatch(r"[A-Za-z_]\w*=.*", argv[0], re.S)):
                if not argv[0].startswith("-"):
                    env.append(argv[0])
                argv.pop(0)
        elif name in ("timeout", "gtimeout"):
            argv.pop(0)
            while argv and argv[0].startswith("-"):
                argv.pop(0)
            if argv and (number := re.fullmatch(r"([\d.]+)([smh]?)", argv[0])):
                timeout_s = float(number[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[number[2]]
                argv.pop(0)
        elif name in ("bash", "sh", "zsh") and len(argv) >= 3 and re.fullmatch(r"-\w*c", argv[1]):
            for inner in parse(argv[2]):
                yield replace(
                    inner,
                    env=(*env, *inner.env),
                    timeout_s=inner.timeout_s or timeout_s,
                    timed=inner.timed or timed,
                    writes=(*inner.writes, *simple.writes),
                    piped=inner.piped or simple.piped,
                    guarded=inner.guarded or simple.guarded,
                )
            return
        else:
            break
    plain = len(argv) == len(simple.argv)
    yield simple if plain else replace(simple, argv=tuple(argv), env=tuple(env), timeout_s=timeout_s, timed=timed)
