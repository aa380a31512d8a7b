"""What a model proposes -> candidates that the transcript bears out. Pure; every proposal that is dropped has a reason.

A model may only propose. Nothing it writes about provenance, confidence or owner is read: evidence is looked up in the transcript, and the
rest follows from the run. What the checks cannot see: whether a quote that stands in the run really proves a sentence whose names all stand
there too.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from osmia_memory.extract import last_state, naming, proof, repeats, supposed, wording
from osmia_memory.extract.citing import cited
from osmia_memory.extract.reasons import Reason
from osmia_memory.extract.said import Said, Voice, line_around
from osmia_memory.extract.taken_back import Past
from osmia_memory.extract.view import MAX_QUOTE
from osmia_memory.extract.wire import FactV1, ReplyV1
from osmia_memory.instructions import visible
from osmia_memory.models import Candidate, Claim, Evidence, FactKind, Transcript
from osmia_memory.similarity import terms

MAX_FACTS = 8  # of one part of a run; the reply model asks for none to four
MAX_EVIDENCE = 4
CONFIDENCE = 0.70  # of what a model proposed and the transcript bears out
DECAY_RATE = 0.02
LESS_EACH = 0.05  # for folded quotes, for a single quote, for a run whose signals disagree


class Drop(NamedTuple):
    """A proposal that is not stored, and why. `content` is redacted."""

    reason: Reason
    content: str


class Verified(NamedTuple):
    """What became of one reply. `candidates` are in the reply's order."""

    candidates: tuple[Candidate, ...]
    dropped: tuple[Drop, ...]
    chunk: int = 1

    @property
    def numbered(self) -> tuple[tuple[int, Candidate], ...]:
        """The candidates with the number of their part, as `settle` wants them."""
        return tuple((self.chunk, c) for c in self.candidates)


class Settled(NamedTuple):
    """What is left of all parts of one run."""

    kept: tuple[Candidate, ...]
    dropped: tuple[Drop, ...]


@dataclass(frozen=True)
class Proposal:
    """One proposed fact whose quotes were found."""

    fact: FactV1
    content: str  # in normal form
    evidence: tuple[Evidence, ...]
    voices: tuple[Voice, ...]  # of the quotes
    past: Past

    @property
    def said(self) -> Said:
        """The run."""
        return self.past.said


def verify(
    transcript: Transcript, chunk_number: int, reply: ReplyV1, known: Sequence[Candidate], redact: Callable[[str], str], source: str
) -> Verified:
    """The candidates of one reply to one part of a run, and what was dropped.

    `known` is what the rules found in the run; `redact` is the store's; `source` says which prompt asked ("llm:extract_facts@v1:1f3a9c").
    """
    past = Past(Said(transcript))
    kept: list[Candidate] = []
    dropped: list[Drop] = []
    for fact in reply.facts:
        found = _examine(fact, past, redact) if len(kept) < MAX_FACTS else "beyond the limit"
        candidate = found if isinstance(found, str) else _candidate(found, source)
        reason = candidate if isinstance(candidate, str) else _said_before(candidate, known, kept)
        if reason is None and isinstance(candidate, Candidate):
            kept.append(candidate)
        else:
            assert reason is not None
            dropped.append(Drop(reason, redact(fact.content)[: wording.MAX_CONTENT]))
    return Verified(tuple(kept), tuple(dropped), chunk_number)


def _said_before(candidate: Candidate, known: Sequence[Candidate], kept: Sequence[Candidate]) -> Reason | None:
    if repeats.is_known(candidate, known):
        return "known by rules"
    return "said twice" if any(repeats.says_the_same(candidate, other) for other in kept) else None


# --- the checks, in their order -----------------------------------------------------------------------------------------


def _examine(fact: FactV1, past: Past, redact: Callable[[str], str]) -> Proposal | Reason:
    evidence = cited(fact.quotes, past.said.transcript, MAX_EVIDENCE)
    if isinstance(evidence, str):
        return evidence
    if _holds_secret(fact, redact):
        return "secret"
    proposal = Proposal(fact, wording.normal(fact.content, past.said), evidence, tuple(map(past.said.voice, evidence)), past)
    return next((reason for check in CHECKS if (reason := check(proposal)) is not None), proposal)


def _holds_secret(fact: FactV1, redact: Callable[[str], str]) -> bool:
    texts = [fact.content, fact.subject, fact.attribute, fact.value, *fact.files, *(q.text for q in fact.quotes)]
    return any(wording.holds_mask(text) or redact(text) != text for text in texts)


def _speaker(p: Proposal) -> Reason | None:
    if "foreign" in p.voices:
        return "not the run's own text"
    if not {"result", "person", "work"} & set(p.voices):
        return "restates the task" if "task" in p.voices else "other speaker"
    whose = wording.attributed_to(p.content)
    if whose == "reviewer":
        return None if {"result", "person"} & set(p.voices) else "other speaker"
    asked = [p.said.event(e).text[e.span[0] :] for e, v in zip(p.evidence, p.voices, strict=True) if v == "person"]
    if whose == "person" and all(re.match(r"[^.!\n]*\?", text) for text in asked):
        return "other speaker"  # nobody, or nobody who did more than ask
    if whose == "person" and proof.silent_person(p.content, p.evidence, p.said):
        return "other speaker"
    return None


def _instruction(p: Proposal) -> Reason | None:
    claim = " ".join((p.fact.subject, p.fact.attribute, p.fact.value))
    lines = (line_around(p.said.event(e).text, e.span)[: 2 * MAX_QUOTE] for e in p.evidence)
    if wording.is_instruction(p.content) or wording.is_order(claim) or any(map(wording.is_order, lines)):
        return "instruction"
    return None


def _transient(p: Proposal) -> Reason | None:
    if wording.is_transient(p.content):
        return "transient"
    by_code = "work" in p.voices  # an edit that locks a database is no accident
    results = (line_around(p.said.event(e).text, e.span) for e, v in zip(p.evidence, p.voices, strict=True) if _is_output(p, e, v))
    return "transient" if not by_code and any(map(wording.is_accident, results)) else None


def _is_output(p: Proposal, evidence: Evidence, voice: Voice) -> bool:
    """It is what a command answered, not what a file holds."""
    event = p.said.event(evidence)
    step = p.said.step_of(event)
    return voice == "result" and event.kind in ("command_result", "error") and (step is None or step.purpose not in ("read", "search"))


def _restated(p: Proposal) -> Reason | None:
    if wording.restates_task(p.content, p.said):
        return "restates the task"
    given_up = p.fact.stands == "given_up"
    only_work = not {"result", "person"} & set(p.voices)
    return "restates the work" if not given_up and (only_work or wording.restates_work(p.content)) else None


def _named(p: Proposal) -> Reason | None:
    if wording.says_nothing(p.content):
        return "says nothing"
    if not naming.names_something(p.content, p.said):
        return "names nothing"
    cited = [p.said.event(e) for e in p.evidence]
    texts = [e.text for e in cited] + [p.said.transcript.events[e.answers].text for e in cited if e.answers is not None]
    return "unknown name" if naming.unknown_name(p.content, p.said, "\n".join(texts)) is not None else None


def _final(p: Proposal) -> Reason | None:
    if p.fact.stands == "given_up":
        why = last_state.abandonment(p.content, p.evidence, p.past)
        return "unproved" if why == "unproved" else "disproved later" if why else None
    if proof.hedged(p.content, p.evidence, p.said) or proof.passing_unproved(p.content, p.past):
        return "unproved"
    if (
        supposed.supposes(p.content, p.said)
        or proof.unrelated(p.content, p.evidence, p.said)
        or proof.unshown(p.content, p.evidence, p.past)
    ):
        return "unproved"
    if proof.proves_other(p.content, p.evidence, p.past, is_success=p.fact.kind == "success_pattern"):
        return "unproved"
    shown = "\n".join(e.quote for e, v in zip(p.evidence, p.voices, strict=True) if v == "result")
    wrong = (
        (not wording.tells_of_rejection(p.content) and (p.past.rests_on_what_left(p.content, shown) or _is_over(p)))
        or last_state.contradicted(p.content, p.evidence, p.past)
        or last_state.refuted(p.content, p.evidence, p.said)
        or proof.blamed_wrongly(p.content, p.evidence, p.past)
    )
    return "disproved later" if wrong else None


def _is_over(p: Proposal) -> bool:
    """What is quoted of an edit or a file is no longer there."""
    if any(p.past.quoted_gone(e) is not None for e in p.evidence):
        return True
    files = [e for e, v in zip(p.evidence, p.voices, strict=True) if v == "result" and not _is_output(p, e, v)]
    if any(p.past.quoted_replaced(e, p.content) for e in files):
        return True
    proving = [
        e for e, v in zip(p.evidence, p.voices, strict=True) if v in ("result", "person", "work") or p.said.event(e).kind == "file_edit"
    ]
    together = sum(naming.names_path(p.content, path) for path in p.said.view.edited) > 1  # that both were changed is what it tells
    return not together and all(e in files and p.past.quoted_stale(e) for e in proving)


_SHELL = re.compile(r"(?:/bin/|/usr/bin/(?:env )?)?(?:ba|z|da|k|fi|c)?sh")
_CONDUCT = re.compile(r"\b(?:claim|report|clos|end|stop|declar|announc|sa(?:id|ys?)|g(?:ave|ives?) up|repeat|promis)\w*\b", re.I)


def _scope(p: Proposal) -> Reason | None:
    run = p.said.transcript.run
    is_engine = p.fact.about == "engine"
    if not (run.engine if is_engine else run.repo):
        return "no owner"
    told = [n for n in naming.names(p.content) if n not in (run.repo, run.engine) and not _SHELL.fullmatch(n)]
    by_harness = [_is_harness(p, e) for e, v in zip(p.evidence, p.voices, strict=True) if v == "result"]
    of_the_shell = not told and any(map(_SHELL.fullmatch, naming.names(p.content)))
    if not is_engine:
        only_harness = [p.said.event(e).kind == "error" for e, v in zip(p.evidence, p.voices, strict=True) if v == "result"]
        return "wrong scope" if (only_harness and all(only_harness)) or of_the_shell else None
    own = any(map(p.said.is_path, p.fact.files)) or naming.names_repository(p.content, p.said)
    conduct = any(p.said.event(e).kind == "assistant" for e in p.evidence) and _CONDUCT.search(p.content)
    if conduct or (not own and (any(by_harness) or of_the_shell)):
        return None
    return "wrong scope"


def _is_harness(p: Proposal, evidence: Evidence) -> bool:
    """The agent's harness said it, not a command or a file."""
    event = p.said.event(evidence)
    if event.kind == "error" or event.args.keys() & {"harness", "timeout", "truncated"}:
        return True
    call = p.said.transcript.events[event.answers] if event.answers is not None else None
    return event.kind == "tool_result" and call is not None and (call.kind == "tool_call" or (call.kind == "file_edit" and event.is_error))


def _length(p: Proposal) -> Reason | None:
    return "too long" if len(p.content) > wording.MAX_CONTENT else None


CHECKS: tuple[Callable[[Proposal], Reason | None], ...] = (
    _speaker,
    _instruction,
    _transient,
    _restated,
    _named,
    _final,
    _scope,
    _length,
)


# --- what is stored -----------------------------------------------------------------------------------------------------


def _candidate(p: Proposal, source: str) -> Candidate:
    run = p.said.transcript.run
    is_engine = p.fact.about == "engine"
    return Candidate(
        content=p.content,
        fact_kind=_kind(p),
        scope="engine" if is_engine else "repo",
        owner=run.engine if is_engine else run.repo or "",
        confidence=_confidence(p),
        decay_rate=DECAY_RATE,
        source=source,
        evidence=p.evidence,
        claim=_claim(p),
        engine=run.engine,
        task_type=run.task_type,
        anchors=() if is_engine else _anchors(p),
    )


def _kind(p: Proposal) -> FactKind:
    """What was given up is a failure; a run that did not succeed shows no success."""
    if p.fact.stands == "given_up":
        return "failure_pattern"
    if p.fact.kind == "success_pattern" and p.said.transcript.run.outcome != "success":
        return "general" if p.fact.about == "engine" else "repo_quirk"
    return p.fact.kind


def _confidence(p: Proposal) -> float:
    run = p.said.transcript.run
    claims = [s.value for s in run.signals if s.name == "claim"]
    disagree = bool(claims) and claims[-1] in ("done", "success", "submitted") and run.outcome not in ("success", "partial")
    less = (any(e.status == "folded" for e in p.evidence), len(p.evidence) == 1, disagree)
    return round(CONFIDENCE - LESS_EACH * sum(less), 2)


def _claim(p: Proposal) -> Claim | None:
    """The claim in fixed form; None where a part is missing, too long, or says something else than the content.

    A claim decides which fact a sentence becomes, so it must not be able to name another one.
    """
    subject = p.said.view.relative(_part(p.fact.subject)).removeprefix("./").removesuffix("()")
    attribute, value = _part(p.fact.attribute).lower(), _part(p.fact.value).lower()
    if not (subject and attribute and value) or max(len(subject), len(value)) > 80 or len(attribute.split()) > 4:
        return None
    stands = subject in p.content and (p.said.has(subject) or p.said.has_in_order(tuple(subject.split())))
    said, told = terms(p.content).keys(), terms(value).keys()
    if (
        not stands
        or not naming.names(f"`{subject}`")
        or (told and len(told & said) * 2 < len(told))
        or value in ("yes", "no", "true", "false")
    ):
        return None
    return Claim(subject, attribute, "", value)


def _part(text: str) -> str:
    return " ".join(visible(text).replace("`", "").split()).strip(" .,;:'\"“”")


def _anchors(p: Proposal) -> tuple[str, ...]:
    paths = (p.said.view.relative(" ".join(f.split())).removeprefix("./").rstrip("/") for f in p.fact.files)
    return tuple(f"file:{path}" for path in dict.fromkeys(paths) if p.said.is_path(path) and path not in p.past.removed_files)[
        :MAX_EVIDENCE
    ]


# --- all parts of a run ---------------------------------------------------------------------------------------------------


def settle(per_chunk: Sequence[tuple[int, Candidate]]) -> Settled:
    """What all parts of one run teach together: equal candidates are merged, and of two that contradict each other the later part's stays.

    `per_chunk` holds (number of the part, candidate) in any order; what is kept is ordered by part.
    """
    kept: list[tuple[int, Candidate]] = []
    dropped: list[Drop] = []
    for chunk, candidate in sorted(per_chunk, key=lambda pair: (pair[0], max(e.event_index for e in pair[1].evidence))):
        merged, rest = candidate, []
        first = chunk
        for number, other in kept:
            if repeats.contradict(other, candidate, same_chunk=number == chunk):
                dropped.append(Drop("overruled", other.content))
            elif repeats.says_the_same(other, candidate) or repeats.says_the_same(candidate, other):
                merged, first = repeats.merged(other, merged, MAX_EVIDENCE), min(first, number)
            else:
                rest.append((number, other))
        kept = [*rest, (first, merged)]
    return Settled(tuple(c for _, c in sorted(kept, key=lambda pair: pair[0])), tuple(dropped))
