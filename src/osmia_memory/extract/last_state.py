"""The final state wins: what a run ran again with another result, guessed, or found to be wrong, is no fact. Pure."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from osmia_memory.extract import commands, naming, shell, wording
from osmia_memory.extract.said import Said
from osmia_memory.extract.taken_back import Past, put_back
from osmia_memory.extract.view import Step
from osmia_memory.models import Event, Evidence
from osmia_memory.similarity import GENERIC_TERMS, is_compound, terms

# --- what was run again -------------------------------------------------------------------------------------------------

_OWN_SLIP = re.compile(
    r"\b(?:IndentationError|SyntaxError|TabError|NameError|UnboundLocalError|unexpected indent|invalid syntax|syntax error)\b"
)
_SERVES = re.compile(
    r"\b(?:works?|runs?|executes?) (?:the |all |all the |every |unit |its )*\b(?:tests?|suite|lint|build|checks?)\b|\bworks\b", re.I
)
_CLAUSE = re.compile(r"[;,:.]\s+|\s+(?:but|while|whereas|although|and)\s+", re.I)


def contradicted(content: str, evidence: Sequence[Evidence], past: Past) -> bool:
    """A later run of the same command or test shows the contrary of what the content says of it."""
    said = past.said
    if wording.FLAKY.search(content):
        return False
    made = [e.at for e in said.view.edits]
    for step, test, failed in _quoted_states(content, evidence, said):
        if _OWN_SLIP.search(content) and step.failed and any(at < step.index for at in made):
            return True
        if _flipped(content, step, test, past, failed=failed):
            return True
    return any(_clause_contradicted(clause, content, past) for clause in _CLAUSE.split(content))


def _quoted_states(content: str, evidence: Sequence[Evidence], said: Said) -> Iterator[tuple[Step, str | None, bool]]:
    """The steps whose results are quoted, the failing test that is meant, if one is, and whether the quote or the step is of a failure."""
    for e in evidence:
        event = said.event(e)
        step = said.step_of(event)
        if step is None or step.main is None or event.kind == "command":
            continue
        if step.purpose not in ("test", "lint", "build") and " ".join(commands.runner(step.main)) not in content:
            continue  # the content is about something else that this command showed
        failing = [f.test_id for f in step.verdict.failing] if step.verdict else []
        named = [t for t in failing if bare(t) in content or bare(t) in e.quote]
        failed = step.failed or bool(FAILURE_LINE.search(e.quote))
        yield from ((step, t, failed) for t in (*named, *(() if named else (None,))))


def bare(test_id: str) -> str:
    """The name of the test's function."""
    return re.split(r"::|\.(?=test)", test_id)[-1].split("[")[0]


def _flipped(content: str, step: Step, test: str | None, past: Past, *, failed: bool) -> bool:
    last = _last_state(step, test, past.said)
    if last is None:
        return False
    later, fails = last
    if wording.FAILS.search(content) and failed and not fails:
        return not (wording.is_conditional(content) and _names_what_changed(content, step, later, past))
    return wording.claims_passing(content) and not step.failed and fails


def _last_state(step: Step, test: str | None, said: Said) -> tuple[Step, bool] | None:
    """(the last later step that tells, whether it failed there); None if nothing later tells."""
    if step.main is None:
        return None
    found: tuple[Step, bool] | None = None
    for other in said.view.steps:
        if other.index <= step.index or other.main is None or other.harness:
            continue
        if (
            test is not None
            and other.verdict is not None
            and other.verdict.kind == "test"
            and other.verdict.ran
            and not other.verdict.broken_build
        ):
            if commands.runner_key(other.main) == commands.runner_key(step.main) and would_run(other.main, test, said):
                found = (other, any(bare(f.test_id) == bare(test) for f in other.verdict.failing))
        elif test is None and _key(other.main) == _key(step.main) and (other.failed or other.worked):
            found = (other, other.failed)
    return found


def would_run(main: shell.Simple, test: str, said: Said) -> bool:
    """The test is among those that the command runs: it was when the command ran before, or its targets say so."""
    seen = (s for s in said.view.steps if s.main is not None and _key(s.main) == _key(main) and s.verdict is not None)
    if any(bare(f.test_id) == bare(test) for s in seen if s.verdict for f in s.verdict.failing):
        return True
    where = commands.targets(main)
    if commands.is_selective(main):
        return bare(test) in main.text
    if not where:
        return commands.purpose(main) == "test"  # a script of the repository's own may run only some
    return any(test.startswith(w.rstrip("/")) or w in (".", "./...") for w in where)


def _key(main: shell.Simple) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return main.env, tuple(w for w in main.argv if w not in ("-v", "-q", "-vv", "-x", "-s", "--verbose", "--quiet"))


def _names_what_changed(content: str, step: Step, later: Step, past: Past) -> bool:
    """The content names a file that was edited, or a command that was run, between failing and passing."""
    view = past.said.view
    touched = view.edits_between(step.index, later.end + 1)
    names = [n for n in naming.names(content) if not n.startswith("test") and not (commands.is_test_file(n) and n in touched)]
    paths = [p for p in touched if not commands.is_test_file(p)]
    if any(naming.is_like(name, path) or naming.is_like(name, posixpath.basename(path)) for name in names for path in paths):
        return True
    lines = [s.line for s in view.steps if step.index < s.index <= later.index]
    return any(n in line and n not in step.line for n in names for line in lines)


def _clause_contradicted(clause: str, content: str, past: Past) -> bool:
    said = past.said
    if wording.MISSING.search(clause) and any(_ran_after_all(name, content, said) for name in naming.names(clause)):
        return True
    conditional = wording.is_conditional(content)
    for span in naming.code_spans(clause):
        ran = [s for s in said.view.steps if s.main is not None and (s.main.text == span or s.main.text.startswith(span + " "))]
        if _SERVES.search(clause) and ran and not any(s.worked or (s.verdict is not None and s.verdict.ran) for s in ran):
            return True
        states = [s.failed for s in ran if s.main is not None and s.main.text == span and (s.failed or s.worked)]
        exact = [s for s in ran if s.main is not None and s.main.text == span]
        if len(span.split()) > 1 and exact and all(s.failed for s in exact) and not wording.is_adverse(content):
            return True
        says = re.search(r"\b(fails?)\b|\b(?:pass(?:es)?|succeeds?)\b", clause)
        if says and states and not conditional and states[-1] != bool(says[1]):
            return True
    return False


def _ran_after_all(name: str, content: str, said: Said) -> bool:
    """The program that is said to be missing did run, unless the content says where it is missing."""
    words = name.split()
    if len(words) != 1 or "/" in name:
        return False
    others = [n for n in naming.names(content) if n != name and "/" in n and not re.search(r"\.\w+$", n)]
    for step in said.view.steps:
        if re.search(r"\b(?:command -v|which|type|whereis)\b", step.line):
            continue  # it was only looked for
        for c in shell.parse(step.line):
            is_it = c.program == name or c.argv[1:3] == ("-m", name)
            if is_it and step.worked and all(o in step.line for o in others):
                return True
    return False


# --- what the agent took back in words ---

_REFUTES = re.compile(
    r"\b(?:is|was|are|were)(?: not|n['’]t) (?:the (?:cause|reason|problem|issue|culprit|case)|it\b|related|relevant|caused|true|right)|\bnot the (?:cause|reason|problem|issue|culprit)\b"
    r"|\b(?:was|were|is|are) (?:wrong|mistaken|incorrect|unrelated|fine after all)\b|\bruled out\b|\bred herring\b|\bchang(?:es|ed) nothing\b|\b(?:no|has no|had no) (?:effect|difference)\b"
    r"|\b(?:did|does)(?: not|n['’]t) (?:help|fix|work|matter|change)|\btak(?:e|ing) (?:that|it|this) back\b|\bthat['’]?s not it\b|\bwrong (?:way|approach|idea|guess|track|assumption)\b|\bdisprove[sd]?\b",
    re.I,
)
_CAUSAL = re.compile(
    r"\b(?:because|causes?|caused|due to|root cause|reason|culprit|comes? from|stems? from|leads? to|results? (?:in|from)|responsible|since|so that|as)\b",
    re.I,
)
_NEGATED = re.compile(r"\b(?:not|never|no|n't|without|cannot|neither|nor)\b|n['’]t\b", re.I)


def refuted(content: str, evidence: Sequence[Evidence], said: Said) -> bool:
    """The agent itself said later that it was wrong about this."""
    if _NEGATED.search(content):
        return False
    where = [e.event_index for e in evidence]
    start = min(where) if _CAUSAL.search(content) else max(where)
    about = {t for t in terms(content) if t not in GENERIC_TERMS}
    for event in said.transcript.events[start + 1 :]:
        if event.kind not in ("assistant", "reasoning"):
            continue
        for sentence in re.split(r"(?<=[.!?])\s+|\n", event.text):
            if _REFUTES.search(sentence):
                shared = about & terms(sentence).keys()
                if len(shared) >= 2 or any(is_compound(t) for t in shared):
                    return True
    return False


# --- given up -----------------------------------------------------------------------------------------------------------

FAILURE_LINE = re.compile(
    r"\b(?:fail(?:ed|s|ure)?|error|exception|traceback|refus|reject|cannot|denied|killed|timed? ?out|not found|invalid|locked)\b", re.I
)
_REJECTS = re.compile(r"\b(?:no|not|don['’]t|never|instead|wrong|revert|undo|rather|stop)\b", re.I)


def abandonment(content: str, evidence: Sequence[Evidence], past: Past) -> str | None:
    """Why a proposal about something given up is not borne out: "unproved" or "disproved later"; None if it is.

    There has to be an attempt (an edit, a command, a call) and its failure or its end (a failing result, a person who rejects it, an edit
    that was taken back).
    """
    said = past.said
    events = [said.event(e) for e in evidence]
    if all(e.kind in ("assistant", "reasoning", "user", "file_read") for e in events):
        return "unproved"
    if any(past.quoted_gone(e) is not None for e in evidence) or _left_by_name(content, past):
        return None
    ended = any(e.kind == "user" and _REJECTS.search(e.text) for e in events) or any(_is_put_back(e) for e in events if e.kind == "command")
    failed = [(said.step_of(v), e) for e, v in zip(evidence, events, strict=True) if shows_failure(v, e, said)]
    if not ended and not failed:
        return "unproved"
    ends = [_last_state(step, None, said) for step, _ in failed if step is not None]
    if not ended and any(said.voice(e) == "work" for e in evidence) and not any(last and last[1] for last in ends):
        return "disproved later"  # what it calls given up stands in the end, and does no harm
    if not ended and len(ends) == len(failed) and all(last and not last[1] for last in ends):
        return "disproved later"
    return None


def _left_by_name(content: str, past: Past) -> bool:
    names = [n.removesuffix("()") for n in naming.names(content)]
    about = {t for t in terms(content) if t not in GENERIC_TERMS}
    for change in past.left:
        text = "\n".join(change.gone_at)
        own = [n for n in names if n in text and n not in change.path]
        if own or len(about & terms(text).keys()) >= 3:
            return True
    return False


def _is_put_back(event: Event) -> bool:
    return any(c.program == "git" and put_back(c.argv) is not None for c in shell.parse(event.text))


def shows_failure(event: Event, evidence: Evidence, said: Said) -> bool:
    """The quoted event is the result of something that failed, or the quote speaks of a failure."""
    if event.kind not in ("command_result", "tool_result", "error"):
        return False
    step = said.step_of(event)
    return (
        event.kind == "error"
        or event.is_error
        or bool(event.exit_code)
        or bool(step and step.failed)
        or bool(FAILURE_LINE.search(evidence.quote))
    )
