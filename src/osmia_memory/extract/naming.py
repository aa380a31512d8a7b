"""What a sentence names, and whether the run holds it. Pure: text, run -> names."""

import re
from collections.abc import Iterator

from osmia_memory.extract import commands
from osmia_memory.extract.said import Said, has_word
from osmia_memory.similarity import GENERIC_WORDS, STOP_WORDS

_SPAN = re.compile(r"`([^`]+)`")
_TOOL = (
    r"pytest|unittest|tox|nox|mypy|ruff|flake8|pylint|black|isort|pip|uv|poetry|conda|make|cmake|ninja|bazel|just|mise|npm|npx|pnpm|yarn|node|deno|bun"
    r"|tsc|eslint|prettier|jest|vitest|mocha|cargo|rustc|clippy|gofmt|golangci-lint|docker|podman|kubectl|git|gh|curl|wget|grep|rg|sed|awk|xargs|jq"
    r"|sqlite3?|psql|postgres|mysql|redis|bash|zsh|pre-commit|django|flask|sphinx|numpy|pandas|sympy|docutils"
)
_NAME = re.compile(
    rf"""(?x)
      (?<![\w/.`-])--?[A-Za-z][\w-]*(?:=[\w./:-]+)?             # flag
    | (?<![\w/.])[~.]{{0,2}}/?[\w.@+-]*\w(?:/[\w.@<>*+-]+)+/?   # path
    | \b\w+(?:(?:\.|::)\w+)+(?:\(\))?                           # dotted name, file name, version
    | \b[A-Za-z]\w*_\w*\w\*? | \b_\w+                              # snake case, setting
    | \b[a-z]+[A-Z]\w* | \b[A-Z][a-z0-9]+[A-Z]\w*               # camel case
    | \b\w+\(\)                                                 # call
    | \b(?:{_TOOL})\b
    | (?<![\w.])\d[\d.,]*(?:(?=[^\w]|$)|(?=(?:ms|s|m|h|k|K|KB|MB|GB)\b))
    """
)


def is_like(name: str, path: str) -> bool:
    """The name is the path, a folder of it, or the path with placeholders."""
    if name.endswith("/") and len(name) > 2:
        return path.startswith(name)
    pattern = "[^/]+".join(re.escape(piece) for piece in _PLACEHOLDER.split(name))
    return re.fullmatch(pattern, path) is not None


def names_path(content: str, path: str) -> bool:
    """The file is named, by its path or with placeholders."""
    return any(is_like(name, path) for name in names(content))


_PHRASE = re.compile(r"[“\"]([^“”\"]{4,})[”\"]")
_PLACEHOLDER = re.compile(r"<[\w .|/-]+>|\.\.\.|…|\*+|\{[\w ]+\}|\bN\b")
_STANDS_FOR_A_WORD = re.compile(r"[A-Z]{3,}")  # as in `tool FILE`
_RECIPE_RUNNERS = frozenset({"just", "make", "npm", "pnpm", "yarn", "task", "rake", "nox", "tox", "invoke", "mise"})
_PLAIN_SLASH = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)+")
_ABBREVIATIONS = frozenset({"e.g", "i.e", "etc", "vs", "a.k.a"})


def plain_names(content: str) -> Iterator[str]:
    """Paths, identifiers, flags, tools, versions and numbers that stand outside of code spans."""
    for match in _NAME.finditer(_SPAN.sub(" ` ` ", content)):
        name = match[0].rstrip(".,:;/").removesuffix("()")
        if name.lower() not in _ABBREVIATIONS and re.search(r"\w", name):
            yield name


def code_spans(content: str) -> list[str]:
    """What stands between back-ticks."""
    return [span for s in _SPAN.findall(content) if (span := " ".join(s.split()))]


def outside_spans(content: str) -> str:
    """The content with what stands between back-ticks left out."""
    return _SPAN.sub(" ` ", content)


def prose(content: str) -> str:
    """The content without its names."""
    return _NAME.sub(" ", _SPAN.sub(" ", content))


def is_number(name: str) -> bool:
    """A bare number; versions such as `3.11` are names."""
    return bool(re.fullmatch(r"\d[\d,]*", name))


def names(content: str) -> tuple[str, ...]:
    """All names that the content is about, bare numbers and everyday words in back-ticks left out."""
    spans = [s for s in code_spans(content) if not re.fullmatch(r"[a-z]+", s) or s not in GENERIC_WORDS | STOP_WORDS]
    return tuple(dict.fromkeys([s for s in spans if re.search(r"\w", s)] + [n for n in plain_names(content) if not is_number(n)]))


_HYPHENATED = re.compile(r"\b[a-z0-9]+(?:-[a-z0-9]+)+\b")


def names_something(content: str, said: Said) -> bool:
    """It is about a command, path, identifier, test, setting, version or the engine by name."""
    run = said.transcript.run
    if any(not re.fullmatch(r"[a-z]+", n) or has_word(said.typed, n) for n in names(content)) or (
        run.engine and re.search(re.escape(run.engine).replace(r"\-", "[- ]"), content, re.I)
    ):
        return True
    return any(has_word(said.typed, word) for word in _HYPHENATED.findall(content))


def unknown_name(content: str, said: Said, cited: str) -> str | None:
    """The first name, phrase or number that neither the run nor what is cited holds; None if all are known.

    A number has to stand in a cited event, or beside a name of the content: most small numbers are somewhere in a run.
    """
    for span in code_spans(content):
        if not _has_span(span, said):
            return span
    for name in plain_names(content):
        if is_number(name):
            if not _has_number(name, content, said, cited):
                return name
        elif not _has_name(name, said):
            return name
    for phrase in _PHRASE.findall(_SPAN.sub(" ", content)):
        words = [w for w in _PLACEHOLDER.sub(" ", phrase).rstrip(".,").split() if re.search(r"\w", w)]
        if (
            len(words) > 1
            and phrase.rstrip(".,") not in cited
            and not said.has_in_order(tuple(words), across_lines="…" in phrase or "..." in phrase)
        ):
            return str(phrase)
    return None


def _has_span(span: str, said: Said) -> bool:
    """The command or name stands in the run, placeholders aside; its words in order on one line."""
    if len(span) < 3:
        return span in said.text
    if span in said.text:
        return said.has(span)
    across = "..." in span or "…" in span
    words = [w for piece in _PLACEHOLDER.split(span) for w in piece.split()]
    words = [w.strip("'\"") for w in words if re.search(r"\w", w)]
    if not words:
        return bool(re.search(r"\w", span)) or span in said.text
    if len(words) == 1:
        return _has_name(words[0], said)
    if words[0] in _RECIPE_RUNNERS and _is_recipe(words[-1], said):
        return True
    fixed = words[:1] + [w for w in words[1:] if not _STANDS_FOR_A_WORD.fullmatch(w)]
    return any(all(_has_name(w, said) for w in ws) and said.has_in_order(tuple(ws), across_lines=across) for ws in (words, fixed))


def _is_recipe(name: str, said: Said) -> bool:
    """A file that the run saw defines it: `name:` at the beginning of a line, or as a key."""
    return re.search(rf"^\W*{re.escape(name)}\b[^\n:=]*:(?!=)", said.text, re.M) is not None


def _has_name(name: str, said: Said) -> bool:
    name = name.removesuffix("()").removeprefix("./").rstrip("/") or name
    if said.has(name):
        return True
    if "::" in name or ("." in name and "/" not in name and not re.search(r"\d\.\d|\.\w{1,5}$", name)):
        return all(said.has(part) for part in re.split(r"::|\.", name) if part)
    if _PLAIN_SLASH.fullmatch(name) and name.count("/") == 1 or re.fullmatch(r"[A-Z][a-z]+[A-Z]\w*", name):
        low = said.text.lower()  # "stdout/stderr", "GitHub"
        return all(re.search(rf"\b{re.escape(part.lower())}", low) for part in name.split("/"))
    if "=" in name:
        return said.has_in_order(tuple(part for part in name.split("=") if part))
    pieces = [p.strip("/.:-") for p in _PLACEHOLDER.split(name)]
    pieces = [p for p in pieces if re.search(r"\w", p)]
    return pieces != [name] and len(pieces) > 0 and all(p in said.text for p in pieces)


def _has_number(number: str, content: str, said: Said, cited: str) -> bool:
    forms = {number.rstrip(","), number.replace(",", "").rstrip(",")}
    if any(re.search(rf"(?<![\w.,]){re.escape(n)}(?!\d|[.,]\d)", cited) for n in forms):
        return True
    return any(said.has_in_order((name, n)) or said.has_in_order((n, name)) for n in forms for name in names(content) if said.has(name))


_REPO_WORK = frozenset({"test", "lint", "build"})


def names_repository(content: str, said: Said) -> bool:
    """It names a file of the repository, the repository itself, or a command that tests, lints or builds it."""
    repo = said.transcript.run.repo
    if repo and (repo in content or re.search(rf"\b{re.escape(repo.rpartition('/')[2])}\b", content)):
        return True
    for name in names(content):
        path = name.split()[0].removeprefix("./") if name else ""
        if (
            re.search(r"/|\.(?:py|go|rs|[jt]sx?|java|rb|c|cc|cpp|h|toml|ya?ml|md|sql|sh)$", path)
            and not path.startswith(("/", "~"))
            and said.is_path(path)
        ):
            return True
        main = commands.main_command(name) if re.match(r"[\w./-]+(?: |$)", name) else None
        if main is not None and commands.purpose(main) in _REPO_WORK:
            return True
    return False
