"""Rules about scripts that agents write to try things: what such a script needs here before it runs at all."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.common import cite_result, one_line
from osmia_memory.extract.shell import parse
from osmia_memory.extract.view import Step, View
from osmia_memory.models import Claim, Evidence

_EXCEPTION = re.compile(r"^((?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|NotReady|Configured|DoesNotExist)): (.+)$", re.M)
_MISTAKES = frozenset(
    "TypeError AttributeError ValueError KeyError IndexError StopIteration ZeroDivisionError ImportError FileNotFoundError BrokenPipeError RecursionError SyntaxError IndentationError TabError NameError AssertionError UnboundLocalError KeyboardInterrupt ModuleNotFoundError".split()
)
_FRAME = re.compile(r'^  File "([^"]+)", line \d+', re.M)
_WORD = re.compile(r"[A-Za-z_][\w.]{3,}")
_PLAIN = frozenset(
    "error value object type attribute module name with from that this have does must been before after cannot using settings".split()
)


_Versions = Mapping[str, Sequence[tuple[int, str]]]  # texts of the scripts a run wrote, by path, with the events that wrote them


def script_setup(view: View) -> Iterator[Finding]:
    """Code of the run's own failed inside the repository's or a library's code for want of set-up, and got further once something was added."""
    versions = _versions(view)
    told: set[str] = set()
    own = [s for s in view.steps if view.runs_own_code(s) and s.purpose in _RUNS]
    for n, step in enumerate(own):
        before = _text_of(view, step, versions)
        error = _setup_error(view, step, before)
        if error is None or error.key in told:
            continue
        ran = next((s for s in own[n + 1 :] if _got_further(view, s, error, versions) and _akin(view, step, s, versions)), None)
        if ran is None:
            continue
        cure = _cure(view, error, step, ran, versions)
        if cure is None:
            continue
        told.add(error.key)
        yield Finding(
            f"A stand-alone script here may fail with {error.told} until {cure.told}.",
            "failure_pattern",
            Claim("own script", "fails with", error.key, "set-up"),
            (cite_result(view, step, error.line), *cure.evidence),
            tags=("corroborate",),
        )


class _Error(NamedTuple):
    key: str  # without names and values that the script made up
    told: str
    line: str
    message: str
    module: str = ""  # the missing one, where the script gave its name as a string


class _Cure(NamedTuple):
    told: str
    evidence: tuple[Evidence | None, ...]


_RUNS = ("run", "test")
_NEAR = 14  # steps; what comes later is another story


def _got_further(view: View, step: Step, error: _Error, versions: _Versions) -> bool:
    """The step ran past the error; what it does not print because it is another script or was cut off says nothing."""
    if not step.results or step.harness or step.timed_out:
        return False
    other = _setup_error(view, step, _text_of(view, step, versions))
    return (other is None or other.key != error.key) and not re.search(r"\b(?:SyntaxError|IndentationError|ImportError): ", step.output)


def _akin(view: View, first: Step, later: Step, versions: _Versions) -> bool:
    """A later try of the same script, or of one that has most of its lines."""
    if later.index - first.index > 2 * _NEAR:
        return False
    names = _scripts_in(first, versions)
    if names and names & _scripts_in(later, versions):
        return True
    old, new = ({x.strip() for x in _text_of(view, s, versions).splitlines() if len(x.strip()) > 3} for s in (first, later))
    return bool(old) and 2 * len(old & new) >= len(old)


def _cure(view: View, error: _Error, step: Step, ran: Step, versions: _Versions) -> _Cure | None:
    """What was different when it ran: the package that was made, or lines that were added to the script or run beside it."""
    made = next((e for e in view.edits if step.index < e.at < ran.index + 1 and any(_makes(p, error.module) for p in e.paths)), None)
    if error.module and made is not None:
        path = next(p for p in made.paths if _makes(p, error.module))
        return _Cure("that package exists on disk", (view.cite(view.transcript.events[made.at], path.rpartition("/")[2]),))
    before, after = _text_of(view, step, versions), _text_of(view, ran, versions)
    if error.module and not re.search(rf"['\"]{re.escape(error.module)}['\"].{{0,3}}$", after, re.M):
        return _Cure("that name, given as a string, is taken out", (view.cite(ran.call, ran.line.splitlines()[0]),))
    beside = [s for s in view.steps if step.index < s.index < ran.index and s.purpose in _RUNS and not _scripts_in(s, versions)]
    after = "\n".join([after, *(s.line for s in beside)])
    added = _telling_lines(before, after, error.message)
    if not added:
        return None
    texts = [e for e in view.events("command", "file_edit") if step.index < e.index <= ran.index]
    quotes = [next((q for e in texts if (q := view.cite(e, line))), None) for line in added]
    made_up = frozenset(re.findall(r"\b(?:class|def) (\w+)", before + after)) | view.created_names
    told = list(dict.fromkeys(f"`{_folded_call(line, made_up)}`" for line in added))
    return _Cure(f"{' and '.join(told)} {'is' if len(told) == 1 else 'are'} added", tuple(quotes))


def _makes(path: str, module: str) -> bool:
    top = module.split(".")[0]
    return bool(top) and path.startswith((f"{top}/", f"{top}.py"))


_INLINE = re.compile(r"<<|\bpython[\d.]* (?:-\w+ )*-c\b|\bnode (?:-e|-p)\b")


def _scripts_in(step: Step, versions: _Versions) -> set[str]:
    """Paths of the run's own scripts that the command names."""
    return {p for p in versions if re.search(rf"(?<![\w.-]){re.escape(posixpath.basename(p))}(?!\w)", step.line)}


def _text_of(view: View, step: Step, versions: _Versions) -> str:
    """The code that the command ran, as far as this run wrote it."""
    named = sorted(_scripts_in(step, versions))
    texts = [next((text for at, text in reversed(versions[p]) if at <= step.index), "") for p in named]
    return "\n".join([*texts, *([step.line] if _INLINE.search(step.line) else [])])


def _versions(view: View) -> dict[str, list[tuple[int, str]]]:
    """Texts of the scripts this run wrote, by path: (event index, text) in order."""
    found: dict[str, list[tuple[int, str]]] = {}
    for event in view.transcript.events:
        if event.kind == "command" and "<<" in event.text:
            for c in parse(event.text):
                if c.heredoc and c.writes:
                    found.setdefault(view.relative(c.writes[0]), []).append((event.index, c.heredoc))
        elif event.kind == "file_edit" and event.args.get("created"):
            for path in event.paths:
                found.setdefault(view.relative(path), []).append((event.index, event.text))
    return {p: v for p, v in found.items() if p in view.created and re.search(r"\.(?:py|js|ts|rb|mjs)$", p)}


def _setup_error(view: View, step: Step, script: str) -> _Error | None:
    """What was raised below the repository's or a library's code, and is not what the task tells of."""
    if not step.failed:
        return None
    match = None
    for match in _EXCEPTION.finditer(step.output):  # noqa: B007  # the last one is what ended the script
        pass
    if match is None:
        return None
    name, message = match[1].rpartition(".")[2], match[2].strip()
    frames = _FRAME.findall(step.output[: match.start()])
    if not frames or view.relative(frames[-1]).removeprefix("./") in view.created or frames[-1] in ("<string>", "<stdin>"):
        return None
    task = view.transcript.run.description
    if name in task and any(w in task for w in _WORD.findall(message) if w.lower() not in _PLAIN):
        return None
    missing = re.match(r"No module named '([\w.]+)'", message) if name == "ModuleNotFoundError" else None
    if missing and re.search(rf"['\"]{re.escape(missing[1])}[.'\"]", script) and not _is_the_repo(view, missing[1]):
        return _Error(f"{name}: a package named as a string", f"`{message}`", match[0], message, missing[1])
    if name in _MISTAKES:
        return None
    folded = fold_message(message)
    return _Error(f"{name}: {folded}", f"`{name}: {_first_part(folded)}`", match[0], message)


def _is_the_repo(view: View, module: str) -> bool:
    """The repository's own package: then something else is wrong than a script's set-up."""
    return module.split(".")[0] == (view.transcript.run.repo or "").rpartition("/")[2].replace("-", "_")


def fold_message(message: str) -> str:
    """The message without names and values that the script made up."""
    text = re.sub(r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|`[^`]*`", "'…'", message)
    text = re.sub(r"__main__\.?\w*|0x[0-9a-f]+|\b\d+\b", "…", text)
    text = re.sub(r"\b(?:Model class|no such table:|table|class) [\w.…]+", lambda m: m[0].rsplit(" ", 1)[0] + " …", text)
    text = re.sub(r"\b(settings?) [A-Z][A-Z_0-9]+", r"\1 …", text)
    return " ".join(text.split())[:160]


def _first_part(message: str) -> str:
    """The first sentence, cut at a word."""
    sentence = re.split(r"(?<=\w)\. (?=[A-Z])", message)[0]
    return one_line(sentence, 110)


_CALL = re.compile(r"(?:\w+ = )?((?:\w+\.)*[a-z_]\w*)\((?:.*\)|)$")
_EVERYDAY = re.compile(
    r"(?:print|exit|open|range|len|repr|str|format|input|(?:sys|os|shutil|json|time|re|logging|traceback|unittest|datetime)\.[\w.]+)$"
)


def _telling_lines(before: str, after: str, message: str) -> list[str]:
    """At most two added lines: those that share a word with the message, else calls of the one function that was not called before."""
    old = {line.strip() for line in before.splitlines()}
    added = [line.strip() for line in after.splitlines() if line.strip() and line.strip() not in old]
    words = {w for part in _WORD.findall(message) for w in (part, *part.split(".")) if len(w) > 3 and w.lower() not in _PLAIN}
    shared = [line for line in added if len(line) <= 90 and any(w in line for w in words) and _SETS_UP.match(line)]
    if shared:
        return list({_called(line): line for line in reversed(shared)}.values())[::-1][:2]
    defined = set(re.findall(r"\bdef (\w+)", before + after))
    known = {_called(line) for line in old}
    calls = {
        called: line
        for line in reversed(added)
        if (called := _called(line))
        and called not in known
        and called.partition("(")[0] not in defined
        and not _EVERYDAY.match(called.partition("(")[0])
        and not line.startswith(_NO_SETUP)
    }
    few = list(calls.values())[::-1]
    of_one = len({_called(line).partition("(")[0] for line in few}) == 1
    if len(few) <= 2 and of_one:
        return few
    return few[:1] if few and len(added) <= 4 else _most_called(few, added)


def _most_called(lines: list[str], added: list[str]) -> list[str]:
    """Of several new calls, one that is made twice or more while no other is."""
    often = [line for line in lines if sum(_called(a) == _called(line) for a in added) > 1]
    return often if len(often) == 1 else []


def _called(line: str) -> str:
    """What a line calls, with the first word it passes: `run('migrate', x)` is another call than `run('check')`."""
    match = _CALL.match(line)
    first = re.match(r"[^(]*\((['\"]\w+['\"])", line) if match else None
    return f"{match[1]}({first[1]}" if match and first else match[1] if match else ""


# a call, its beginning, or a setting given by name
_SETS_UP = re.compile(
    r"(?!print|import |from |class |def |except|assert|#|self\.)(?:[\w.]+\((?:.*\)|)|[A-Za-z_]+ ?= ?(?:\[?['\"]\S.*|True|False|\d+),?)$"
)
_NO_SETUP = ("print", "assert", "self.", "raise ", "return ", "#")


def _folded_call(line: str, made_up: frozenset[str]) -> str:
    """The line with the names of the script's own classes left open, a call with all but its first plain word left open."""
    line = re.sub(r"\b\w+\b", lambda m: "…" if m[0] in made_up else m[0], line).replace("`", "'")
    call = re.match(r"(?:\w+ = )?([\w.]+)\((.*?)\)?$", line)
    if call is None or not (call[2] or line.endswith("(")):
        return line
    first = re.match(r"(['\"]\w+['\"])(, ?)?", call[2])
    return f"{call[1]}({first[1]}{', …' if first[2] else ''})" if first else f"{call[1]}(…)"


RULES = (Rule("script_setup", 2, 0.6, 0.01, "one script's way; more runs must meet the same error", script_setup),)
