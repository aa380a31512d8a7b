"""Signals of how a run ended -> its outcome. Pure.

A tested resolution decides, then an outcome given from beside the run, then what the run's own record says. Signs that
disagree never make a success; what an engine claims of itself is not enough for one.
"""

import re
from collections.abc import Iterable
from typing import Final

from osmia_memory.models import Outcome, Signal
from osmia_memory.transcripts.sidecar import Beside

_FINISHED = frozenset(
    {"0", "submitted", "task_complete", "completed", "complete", "success", "succeeded", "done", "finished", "end_turn", "ok"}
)
_NEUTRAL = frozenset({"interrupted", "turn_aborted", "aborted", "cancelled", "canceled", "none", "null", "unknown", "", "session_end"})
_LIMIT = re.compile(
    r"limit|time[ds]?[ _-]?out|timeexceeded|exceeded|budget|max[_ ]?(?:turns|steps|iterations)|watchdog|exit_(?:cost|context|format)|out of (?:tokens|context)|repeatedformaterror",
    re.I,
)
# The last words of an agent that gives up. A mention of failures it fixed must not match: these are about itself, or now.
_GAVE_UP = re.compile(
    r"\b(?:i(?:'m| am| was| have been)? (?:still )?(?:un(?:able|successful)|not able)\b(?: (?:to|in)\b)?"
    r"|i (?:could(?: not|n['’]t)|can(?:not|['’]t)) (?:complete|finish|fix|solve|resolve|implement|reproduce|get|make|find a (?:way|fix|solution)|proceed|continue)"
    r"|i (?:have )?(?:failed|failed to|give up|gave up|ran out)\b"
    r"|(?:the )?(?:task|fix|implementation|change|work|build|migration) (?:is|was|has) (?:not (?:complete|finished|done|working|fixed|possible)|incomplete|failed|blocked)"
    r"|(?:tests?|build|lint|ci|checks?) (?:is|are|still|keeps?) (?:still )?(?:fail(?:s|ing)?|broken|red)\b"
    r"|(?:does|do|did)(?: not|n['’]t) (?:work|pass) yet|cannot be (?:completed|fixed|done)|remains? (?:unresolved|broken|unfixed))",
    re.I,
)  # fmt: skip
_DONE = re.compile(
    r"\b(?:done|fixed|implemented|completed?|added|updated|pushed|merged|committed|created|resolved|all (?:\d+ )?tests? (?:now )?pass(?:ed|ing)?|(?:tests?|everything|suite|ci) (?:is |are |now )*(?:pass(?:es|ed|ing)?|green)|ready)\b",
    re.I,
)
_TESTED: Final = ("tests", "lint", "build", "review")


def claim_of(text: str) -> str | None:
    """What an agent's last words claim: "failed", "done", or None if they claim neither."""
    words = text[:600] + "\n" + text[-600:] if len(text) > 1200 else text
    if _GAVE_UP.search(words):
        return "failed"
    return "done" if _DONE.search(words) else None


def limit_reason(status: str) -> str | None:
    """`status` if it names a limit (time, cost, steps, context), else None."""
    return status if _LIMIT.search(status) else None


def reason_signal(reason: str) -> Signal:
    """A job's own failure reason: a limit if it names one, else its exit status."""
    return Signal("limit" if limit_reason(reason) else "exit_status", reason)


def beside_signals(beside: Beside, option: Outcome | None) -> list[Signal]:
    """The signals that come from outside the run, the deciding ones last."""
    found: list[Signal] = []
    if beside.landed:
        found.append(Signal("landed", beside.landed))
    if beside.reason:
        found.append(reason_signal(beside.reason))
    given = option or beside.outcome
    if given:
        found.append(Signal("given", given))
    if beside.resolved is not None:
        found.append(Signal("resolved", "true" if beside.resolved else "false"))
    return found


def decide(inside: Iterable[Signal], beside: Beside, option: Outcome | None = None) -> Outcome:
    """Outcome of a run from its own signals, its neighbours' and the caller's `--outcome`.

    A tested resolution overrules a given outcome, and both overrule what the run's record says.
    """
    own = tuple(inside)
    if beside.resolved is not None:
        return "success" if beside.resolved else "failure"
    if option or beside.outcome:
        return option or beside.outcome or "unknown"
    resolved = [s.value for s in own if s.name == "resolved"]
    if resolved:
        return "success" if resolved[-1].lower() in ("true", "1", "yes", "success") else "failure"
    signals = (*own, *beside_signals(beside, None))
    signs = [sign for s in _last_of_each(signals) if (sign := _sign(s)) is not None]
    given = next((s.value for s in reversed(own) if s.name == "given"), "unknown")
    if given in ("failure", "partial"):
        return "failure" if given == "failure" else "partial"
    good, bad = any(signs), not all(signs)
    if given == "success":
        return "unknown" if bad else "success"
    if bad:
        strong = any(s.name in (*_TESTED, "landed") and _sign(s) for s in signals)
        return "unknown" if strong else "failure"
    return "success" if good and _is_backed(signals) else "unknown"


def _is_backed(signals: Iterable[Signal]) -> bool:
    """Something besides the engine's word for itself says success: it landed, or tests or reviewers say so."""
    return any(s.name in (*_TESTED, "landed") and _sign(s) for s in signals)


def _last_of_each(signals: Iterable[Signal]) -> list[Signal]:
    """The last signal of each name: a limit hit and survived, or a test fixed later, is not how the run ended."""
    return list({s.name: s for s in signals}.values())


def _sign(signal: Signal) -> bool | None:
    """True for a sign of success, False for one of failure, None for neither."""
    value = signal.value.strip().lower()
    match signal.name:
        case "limit":
            return False
        case "exit_status":
            return None if value in _NEUTRAL else value in _FINISHED
        case "claim":
            return (
                False
                if value in ("failed", "failure", "empty patch", "goal not met")
                else True
                if value in ("done", "success", "submitted")
                else None
            )
        case "landed":
            return True if value in ("landed", "merged", "true") else None
        case "tests" | "lint" | "build":
            return (
                True
                if value.startswith(("pass", "ok", "success", "green"))
                else False
                if value.startswith(("fail", "error", "red"))
                else None
            )
        case "review":
            bad = re.search(r"incorrect|reject|request(?:ed)?[ _-]changes|changes?[ _-]request|not (?:approv|accept)|fail", value)
            return False if bad else True if re.search(r"correct|approv|lgtm|pass|accept", value) else None
        case _:
            return None
