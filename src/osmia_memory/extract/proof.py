"""Whether what is quoted bears a proposal out: a failure that was seen, a check that passed, quotes that have to do with it. Pure."""

import re
from collections.abc import Iterable, Sequence

from osmia_memory.extract import commands, naming, wording
from osmia_memory.extract.last_state import FAILURE_LINE, bare, shows_failure, would_run
from osmia_memory.extract.said import Said, line_around
from osmia_memory.extract.taken_back import Past
from osmia_memory.models import Evidence
from osmia_memory.similarity import GENERIC_TERMS, terms

_DOCUMENT = re.compile(r"\.(?:md|rst|txt|adoc)$")


def passing_unproved(content: str, past: Past) -> bool:
    """It says that something passes, and no check after the last edit of code says so."""
    if not wording.claims_passing(content) or wording.is_conditional(content):
        return False
    view = past.said.view
    last = max((e.at for e in view.edits if any(not _DOCUMENT.search(p) for p in e.paths)), default=-1)
    return not any(s.index >= last and s.worked and s.purpose in ("test", "lint", "build", "run") and s.verdict for s in view.steps)


_UNMODIFIED = re.compile(
    r"\b(?:unmodified|unchanged|untouched|clean|pristine|original) (?:code|checkout|tree|state|branch|sources?|base|copy)\b|\bpre-?existing\b|\bbaseline\b"
    r"|\b(?:without|before) (?:any |the |own )*(?:changes?|edits?|modifications?)\b|\bon (?:main|master|head)\b|\balready (?:fail|broken|red)",
    re.I,
)
_REJECTED = re.compile(r"\b(?:rejects?|refuses?|forbids?|denies|does not allow|disallows?|bans?|not allowed|prohibits?)\b", re.I)
_SAYS_NO = re.compile(
    r"\b(?:not|no|must|only|refus|reject|forbid|deni|den(?:y|ies)|disallow|prohibit|missing|requir|without|unless|error|fail|invalid|illegal|unknown|unrecognized)",
    re.I,
)


def unshown(content: str, evidence: Sequence[Evidence], past: Past) -> bool:
    """It says that something fails, is flaky or is rejected, and nothing that is quoted shows it."""
    said = past.said
    if wording.FLAKY.search(content):
        return not _came_and_went(content, evidence, past)
    if wording.FAILS.search(content) and _UNMODIFIED.search(content):
        return not _fails_untouched(content, evidence, past)
    if wording.FAILS.search(content) and not wording.is_conditional(content):
        return not any(
            shows_failure(said.event(e), e, said) or said.voice(e) == "person" or wording.FAILS.search(e.quote) for e in evidence
        )
    return bool(_REJECTED.search(content)) and not any(
        _SAYS_NO.search(line_around(said.event(e).text, e.span))
        or FAILURE_LINE.search(said.event(e).text)
        or shows_failure(said.event(e), e, said)
        for e in evidence
        if said.voice(e) in ("result", "person")
    )


def _fails_untouched(content: str, evidence: Sequence[Evidence], past: Past) -> bool:
    """It failed before the first edit of the repository's code, or while all edits were put aside: the named test, or what is quoted."""
    view = past.said.view
    quoted = {s.index for e in evidence if past.said.event(e).kind != "command" and (s := past.said.step_of(past.said.event(e)))}
    made = [e.at for e in view.edits if any(p not in view.created and not p.startswith(("/", "~")) for p in e.paths)]
    for step in view.steps:
        named = step.verdict is not None and any(bare(f.test_id) in content for f in step.verdict.failing)
        bad = step.failed or (step.verdict is not None and not step.verdict.passed)
        untouched = not any(at < step.index for at in made) or any(a <= step.index <= b for a, b in past.put_aside)
        if bad and untouched and (named or step.index in quoted):
            return True
    return False


def _came_and_went(content: str, evidence: Sequence[Evidence], past: Past) -> bool:
    """A test that is named failed and passed under the same command, with no edit of code in between."""
    view = past.said.view
    runs = [s for s in view.steps if s.main is not None and s.verdict is not None and s.verdict.kind == "test" and s.verdict.ran]
    for failing in runs:
        named = [t for t in (failing.verdict.failing if failing.verdict else ()) if bare(t.test_id) in content]
        for other in runs:
            first, second = sorted((failing.index, other.index))
            if (
                other is failing
                or not named
                or other.verdict is None
                or any(bare(f.test_id) == bare(named[0].test_id) for f in other.verdict.failing)
            ):
                continue
            edited = [p for p in view.edits_between(first, second) if p not in view.created and not p.startswith(("/", "~"))]
            if not edited and other.main and would_run(other.main, named[0].test_id, past.said):
                return True
    said = past.said
    return any(wording.FLAKY.search(e.quote) for e in evidence if said.voice(e) in ("result", "person"))


def unrelated(content: str, evidence: Sequence[Evidence], said: Said) -> bool:
    """The quotes have nothing to do with the content: no name and hardly a word of it is in them or in what was asked for them."""
    near, far = ("\n".join(_around(e, said, whole=whole) for e in evidence) for whole in (False, True))
    proving = "\n".join(_around(e, said, whole=True) for e in evidence if said.voice(e) not in ("agent", "task"))
    names = [n for name in naming.names(content) for n in name.split()]
    about = {t for t in terms(naming.prose(content)) if t not in GENERIC_TERMS}
    if not any(n in proving for n in names) and not about & terms(proving).keys():
        return True
    shared = about & terms(near).keys()
    if any(n in near for n in names) or len(shared) >= 3:
        return False
    return not (shared and (not names or any(n in far for n in names)))


def _around(evidence: Evidence, said: Said, *, whole: bool) -> str:
    event = said.event(evidence)
    call = said.transcript.events[event.answers] if event.answers is not None else event
    text = event.text if whole else line_around(event.text, evidence.span)[:600]
    return "\n".join((text, call.text if call is not event else "", *event.paths, *call.paths))


def hedged(content: str, evidence: Iterable[Evidence], said: Said) -> bool:
    """It is a guess by its own words, or by those of the agent that it quotes; the whole sentence counts, not only what was cut from it."""
    if wording.is_hedged(content):
        return True
    spoken = (e for e in evidence if said.event(e).kind in ("assistant", "reasoning"))
    return any(wording.is_guess(_sentence(said.event(e).text, e.span)) for e in spoken)


def _sentence(text: str, span: tuple[int, int]) -> str:
    start = max((m.end() for m in re.finditer(r"[.!?]\s+|\n", text[: span[0]])), default=0)
    end = re.search(r"[.!?](?:\s|$)|\n", text[span[1] :])
    return text[start : span[1] + end.start() if end else len(text)]


# --- quotes that prove something else -----------------------------------------------------------------------------------

_SWEEPING = re.compile(
    r"\b(?:no other \w+|nothing else|nowhere|everywhere|in (?:any|every|whatever) (?:repository|project)|no (?:\w+ )?(?:is|are) (?:needed|required|necessary)"
    r"|(?:is|are) not used (?:in|anywhere))\b",
    re.I,
)
_NEVER_RAN = re.compile(r"\b(?:command )?not found\b|No such file or directory|No module named|is not recognized", re.I)
_TOOL_WRITES = re.compile(
    r"`([^`]+)` (?:also |then |itself )?(?:updates|rewrites|regenerates|generates|writes|creates|formats|fixes) `([^`]+)`"
)
_ALWAYS = re.compile(r"\b(?:every|each|always|all|any|whenever)\b", re.I)
_WRITES = re.compile(r"\b(?:writ|wrote|generat|updat|creat|format|sav|fix)", re.I)


def proves_other(content: str, evidence: Sequence[Evidence], past: Past, *, is_success: bool) -> bool:
    """The quotes stand where they are said to stand, and cannot prove a sentence of this form."""
    return (
        _is_sweeping(content, evidence)
        or _names_what_is_elsewhere(content, evidence, past.said)
        or _is_proved_by_failure(content, evidence, past.said, is_success=is_success)
        or _is_own_untested_test(evidence, past)
        or _is_credited_to_a_tool(content, evidence, past)
    )


def _is_sweeping(content: str, evidence: Sequence[Evidence]) -> bool:
    """It says something of all the rest, of which no passage can speak unless it says so itself."""
    if _SWEEPING.search(content) and not any(_SWEEPING.search(e.quote) for e in evidence):
        return True
    absolute = re.search(r"\b(?:every|always|each time)\b", content, re.I) or (
        re.search(r"\bnever\b", content, re.I) and not wording.is_conditional(content)
    )
    return bool(absolute) and not any(_ALWAYS.search(e.quote) or _SAYS_NO.search(e.quote) for e in evidence)


def _names_what_is_elsewhere(content: str, evidence: Sequence[Evidence], said: Said) -> bool:
    """Half of what it names, and more than one thing, stands neither in the quoted events nor in the task."""
    run = said.transcript.run
    near = "\n".join((run.title, run.description, run.repo or "", run.engine, *(_around(e, said, whole=True) for e in evidence)))
    names = naming.names(content)
    missing = [n for n in names if not all(word in near or not word.islower() for word in n.split())]
    return len(missing) > 1 and len(missing) * 2 >= len(names)


def _is_proved_by_failure(content: str, evidence: Sequence[Evidence], said: Said, *, is_success: bool) -> bool:
    """All results that are quoted are of something that never ran, was cut off or failed its tests, and the content says nothing of that."""
    results = [e for e in evidence if said.voice(e) == "result"]
    return (
        bool(results)
        and (is_success or not wording.is_adverse(content))
        and all(_never_got_there(e, said, is_success=is_success) for e in results)
    )


def _never_got_there(evidence: Evidence, said: Said, *, is_success: bool) -> bool:
    step = said.step_of(said.event(evidence))
    if step is None or said.event(evidence).kind not in ("command_result", "error"):
        return False
    failed_tests = is_success and step.verdict is not None and not step.verdict.passed
    return step.timed_out or step.exit_code in (124, 127) or failed_tests or bool(_NEVER_RAN.search(evidence.quote))


def _is_own_untested_test(evidence: Sequence[Evidence], past: Past) -> bool:
    """It rests on a test that the run wrote, and no tests passed after that."""
    said = past.said
    for e in evidence:
        event = said.event(e)
        paths = [p for edit in said.view.edits if edit.at == event.index for p in edit.paths]
        if paths and all(commands.is_test_file(p) for p in paths) and not event.args.get("old_string") and "\n-" not in event.text:
            later = [s for s in said.view.steps if s.index >= event.index and s.verdict is not None and s.verdict.kind == "test"]
            if not any(s.verdict is not None and s.verdict.ran for s in later):
                return True
    return False


def _is_credited_to_a_tool(content: str, evidence: Sequence[Evidence], past: Past) -> bool:
    """It says that a command writes a file which the run edited itself, and what is quoted speaks of no writing."""
    for tool, path in _TOOL_WRITES.findall(content):
        own = any(path in e.paths for e in past.said.view.edits)
        if own and not any(_WRITES.search(line_around(past.said.event(e).text, e.span)) for e in evidence) and tool != path:
            return True
    return False


_BLAMES = re.compile(r"\b(?:as soon as|when(?:ever)?|after|once|if|because|since|due to)\b", re.I)


def blamed_wrongly(content: str, evidence: Sequence[Evidence], past: Past) -> bool:
    """It blames a failing test on a file that the run changed, and the test fails without any change as well."""
    blamed = _BLAMES.search(content) and wording.FAILS.search(content) and not _UNMODIFIED.search(content)
    if not blamed or not any(name in past.said.view.edited for name in naming.names(content)):
        return False
    failing = {bare(f.test_id) for s in past.said.view.steps if s.verdict for f in s.verdict.failing}
    return any(test in content for test in failing) and _fails_untouched(content, evidence, past)


def silent_person(content: str, evidence: Sequence[Evidence], said: Said) -> bool:
    """It says what a person wants, and the words quoted of people have nothing to do with it."""
    about = {t for t in terms(content) if t not in GENERIC_TERMS}
    told = [terms(e.quote).keys() for e in evidence if said.voice(e) == "person"]
    return not any(about & words for words in told)
