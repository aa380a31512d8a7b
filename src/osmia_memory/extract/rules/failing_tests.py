"""Rules about tests that fail: on unmodified code, for one common cause, now and then, or by a change elsewhere."""

import functools
import re
from collections.abc import Iterable, Iterator

from osmia_memory.extract import commands
from osmia_memory.extract.commands import is_test_file
from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.checkout import is_unmodified
from osmia_memory.extract.rules.common import (
    cite_command,
    cite_result,
    in_brackets,
    is_cut,
    made_here,
    one_line,
    short_test,
    written_here,
)
from osmia_memory.extract.runners import Failing
from osmia_memory.extract.view import Step, TestRun, View
from osmia_memory.models import Claim, Evidence

_MANY = 3  # more failing tests than this are told as the baseline of the command


# --- the baseline -------------------------------------------------------------------------------------------------------


def baseline(view: View) -> Iterator[Finding]:
    """Tests that fail on unmodified code: before any edit, or with the edits taken back."""
    cured = _cured(view)
    done: set[str] = set()
    for run in view.test_runs:
        v = run.verdict
        if v.passed or not is_unmodified(view, run.step) or run.step.call.args.get("by") == "user":
            continue  # a person's own tree may hold changes that no transcript shows
        again = [f for f in v.failing if f.test_id not in cured and not made_here(view, f.test_id)]
        if (v.failing and not again) or (not v.failing and _passes_later(view, run)):
            continue
        if again and len(again) <= _MANY and v.failed <= _MANY:
            if new := [f for f in again if f.test_id not in done]:
                yield _old_tests(view, run, new)
            done |= {f.test_id for f in again}
        elif v.failed and (command := view.relative(commands.typed(run.main, 1))) not in done:
            done.add(command)
            yield _not_green(view, run, command, again)


def _old_tests(view: View, run: TestRun, failing: list[Failing]) -> Finding:
    """One line for the tests of one run; the first of them stands for them all when runs are compared."""
    step, main, v = run
    command = view.relative(commands.typed(main, 1))
    told = f"; the baseline of `{command}` is {_counts(v.summary)}" if v.tool == "pytest" else "; compare with that baseline"
    first, *others = failing
    listed = [f"`{first.test_id}`", *(f"`{short_test(f.test_id)}`" for f in others)]
    names = " and ".join([", ".join(listed[:-1]), listed[-1]] if others else listed)
    return Finding(
        f"{names} fail{'' if others else 's'} on unmodified code {_where(view)}{in_brackets(first)}{told}.",
        "repo_quirk",
        Claim(first.test_id, "baseline", "", "fails"),
        (
            *(cite_result(view, step, short_test(f.test_id)) for f in failing),
            cite_result(view, step, first.reason),
            cite_result(view, step, v.summary),
            cite_command(view, step),
        ),
        anchors=tuple(f"test:{f.test_id}" for f in failing),
        tags=("baseline",),
    )


def _where(view: View) -> str:
    """A sandbox refuses ports and files that tests want: then it is part of the claim."""
    run = view.transcript.run
    return f"in {run.engine}'s sandbox" if re.search(r"read-only|workspace|no network", run.environment.sandbox or "") else "here"


def _not_green(view: View, run: TestRun, command: str, again: list[Failing]) -> Finding:
    step, _, v = run
    reason = _common(again)
    because = f", mostly for `{one_line(reason)}`" if reason else ""
    told = (
        _counts(v.summary)
        if v.tool in ("pytest", "bin/test")
        else f"{v.failed} of {v.ran} tests fail"
        if v.tool == "unittest"
        else f"{v.failed} tests fail"
    )
    return Finding(
        f"`{command}` is not green on unmodified code {_where(view)}: {told}{because}; compare with that baseline.",
        "repo_quirk",
        Claim(command, "baseline", "", "not green"),
        (cite_result(view, step, v.summary), cite_command(view, step), cite_result(view, step, reason)),
        tags=("baseline",),
    )


@functools.lru_cache(maxsize=1)  # three rules ask for the same view
def _cured(view: View) -> frozenset[str]:
    """Tests that fail in one step and are gone from the failures of a later run of the same command: the task itself."""
    cured: set[str] = set()
    runs = view.test_runs
    for n, run in enumerate(runs):
        for later in runs[n + 1 :]:
            if later.main.text == run.main.text and (later.verdict.passed or later.verdict.failing):
                cured |= {f.test_id for f in run.verdict.failing} - {f.test_id for f in later.verdict.failing}
    return frozenset(cured)


def _passes_later(view: View, run: TestRun) -> bool:
    """The same command went green afterwards: what failed was the task."""
    return any(r.at > run.at and r.main.text == run.main.text and r.verdict.passed for r in view.test_runs)


def _counts(summary: str) -> str:
    text = re.sub(r"^tests finished: ", "", summary.strip("= "))
    return re.sub(r",? in [\d.]+ ?(?:s|seconds)\b.*$", "", text)[:90]


def _common(failing: Iterable[Failing]) -> str:
    """The most frequent reason, "" if none is worth telling."""
    reasons = [f.reason for f in failing if not is_cut(f.reason)]
    return max(sorted(set(reasons)), key=reasons.count) if reasons else ""


def shared_cause(view: View) -> Iterator[Finding]:
    """Three or more tests failing for one and the same reason that no edit of the run cured."""
    cured = _cured(view)
    for run in view.test_runs:
        step, main, v = run
        reason = _common(v.failing)
        same = [f for f in v.failing if f.reason == reason and f.test_id not in cured and not made_here(view, f.test_id)]
        if (
            len(reason) < 20
            or len(same) < _MANY
            or re.match(r"Assertion|assert|[Ee]xpected|got |want ", reason)
            or _passes_as_is(view, run)
        ):
            continue
        names = ", ".join(f"`{short_test(f.test_id)}`" for f in same[:_MANY])
        more = f" and {len(same) - _MANY} more" if len(same) > _MANY else ""
        remedy = _passes_with(view, run)
        told = f"with `{' '.join(remedy[1])}` they pass" if remedy else "one cause in the environment or set-up, not one bug a test"
        yield Finding(
            f"Tests {names}{more} fail together here with “{one_line(reason)}”: {told}.",
            "failure_pattern",
            Claim(re.sub(r"0x[0-9a-f]+|\d+", "N", " ".join(reason.split()))[:120], "fails tests", commands.runner_key(main), "yes"),
            (
                cite_result(view, step, reason),
                cite_result(view, step, short_test(same[0].test_id)),
                cite_command(view, step),
                cite_command(view, remedy[0].step) if remedy else None,
            ),
            anchors=tuple(f"test:{f.test_id}" for f in same[:4]),
            tags=("baseline",),
        )
        return


def _passes_as_is(view: View, run: TestRun) -> bool:
    """The same tests, or all, passed later under the same settings: an edit or a moment was the cause."""
    where = commands.targets(run.main)
    return any(
        r.at > run.at
        and r.verdict.passed
        and r.verdict.tool == run.verdict.tool
        and r.main.env == run.main.env
        and (r.is_whole or where == commands.targets(r.main))
        for r in view.test_runs
    )


def _passes_with(view: View, run: TestRun) -> tuple[TestRun, list[str]] | None:
    """A later run of the same command that passed with nothing but a setting or an option added, and what that was."""
    for later in view.test_runs:
        if later.at > run.at and later.verdict.passed and not view.edits_between(run.at, later.at):
            before, after = (*run.main.env, *run.main.argv), (*later.main.env, *later.main.argv)
            added = [w for w in after if w not in before]
            if added and len(added) <= 2 and all(w in after for w in before) and not commands.is_selective(later.main):
                return later, added
    return None


# --- flaky ----------------------------------------------------------------------------------------------------------------


def flaky(view: View) -> Iterator[Finding]:
    """The same test fails and then passes under the same command with nothing changed in between."""
    told: set[str] = set()
    runs = view.test_runs
    for n, first in enumerate(runs):
        second = next((r for r in runs[n + 1 :] if r.main.text == first.main.text), None)
        if second is None or first.verdict.passed or not second.verdict.passed or _changed_between(view, first.step, second.step):
            continue
        for failing in first.verdict.failing[:_MANY]:
            if failing.test_id in told:
                continue
            told.add(failing.test_id)
            yield Finding(
                f"`{failing.test_id}` is flaky: it failed{in_brackets(failing)} and passed on a rerun with nothing changed; rerun before hunting for a cause.",
                "failure_pattern",
                Claim(failing.test_id, "flaky", "", "yes"),
                (cite_result(view, first.step, short_test(failing.test_id)), cite_result(view, second.step, second.verdict.summary)),
                anchors=(f"test:{failing.test_id}",),
            )


def _changed_between(view: View, first: Step, second: Step) -> bool:
    if view.edits_between(
        first.index, second.index + 1
    ):  # an edit in the second line itself counts, one in the first came before it failed
        return True
    if first.main and second.main and first.line.partition(first.main.text)[0] != second.line.partition(second.main.text)[0]:
        return True  # the rerun's own line did something first
    between = (s for s in view.steps if first.index < s.index < second.index)
    return any(s.purpose in ("write", "install", "service", "git", "build", "run", "other") for s in between)


# --- tests that a change elsewhere breaks ---------------------------------------------------------------------------------

_DOCUMENT = re.compile(r"\.(?:md|rst|txt|adoc)$", re.I)


def expectation_coupled(view: View) -> Iterator[Finding]:
    """Existing tests that broke by editing a file and passed once their own expectations were changed."""
    runs = view.test_runs
    for run in runs:
        sources = [p for p in view.edits_between(-1, run.at) if not is_test_file(p) and p in view.edited and not _DOCUMENT.search(p)]
        failing = [f for f in run.verdict.failing if not made_here(view, f.test_id) and not written_here(view, f.test_id, run.at)]
        if not sources or not 1 <= len(failing) <= _MANY or is_unmodified(view, run.step):
            continue
        key = commands.runner_key(run.main)
        later = next((r for r in runs if r.at > run.at and r.verdict.passed and commands.runner_key(r.main) == key), None)
        changed = [p for p in view.edits_between(run.at, later.at) if is_test_file(p) and p in view.edited] if later else []
        if later is None or not changed:
            continue
        names = [short_test(f.test_id) for f in failing]
        because = _because(view, run.at, later.at, names)
        if because is None:
            continue  # that tests follow the code is no news; the cause is
        whose = "its expectations" if len(failing) == 1 else "their expectations"
        yield Finding(
            f"Changing `{sources[-1]}` broke {', '.join(f'`{n}`' for n in names)}; {whose} in `{changed[0]}` had to change with it ({one_line(because[1], 150)}).",
            "repo_quirk",
            Claim(sources[-1], "coupled tests", "", " ".join(sorted(f.test_id for f in failing))),
            (cite_result(view, run.step, names[0]), because[0], cite_result(view, later.step, later.verdict.summary)),
            anchors=(f"file:{sources[-1]}", f"file:{changed[0]}", *(f"test:{f.test_id}" for f in failing)),
        )
        return


_BECAUSE = re.compile(r"[^.\n]*\b(?:because|since|due to)\b[^\n]*?(?:\.(?=\s|$)|$)", re.M)


def _because(view: View, start: int, end: int, names: list[str]) -> tuple[Evidence, str] | None:
    """The agent's own sentence that names one of the tests and gives a cause, one that names code rather than the difference seen."""
    found: list[tuple[int, Evidence, str]] = []
    for event in view.events("assistant", "reasoning"):
        for match in _BECAUSE.finditer(event.text) if start < event.index < end else ():
            sentence = match[0].strip(" *-0123456789.")
            if any(name in sentence for name in names) and 20 < len(sentence) < 240:
                at = event.text.find(sentence, match.start())
                worth = len(re.findall(r"`[^`]+`|\w+\.\w+", sentence)) - 3 * bool(re.search(r"\b(?:expect\w*|but got)\b", sentence))
                found.append((worth, view.quote(event, at, at + len(sentence)), sentence))
    best = max(found, key=lambda f: f[0], default=None)
    return best[1:] if best else None


RULES = (
    Rule("baseline", 3, 0.8, 0.03, "failed with the checkout unmodified", baseline),
    Rule("shared_cause", 3, 0.7, 0.03, "one reason for several tests, not cured by the run's edits", shared_cause),
    Rule("flaky", 2, 0.75, 0.02, "failed and passed with nothing changed", flaky),
    Rule("expectation_coupled", 1, 0.65, 0.01, "one run's edits; the reason is the agent's word", expectation_coupled),
)
