"""Rules about the engine itself: rejected replies, cut output, commands left running, limits. Scope is the engine."""

import re
from collections.abc import Iterator

from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.common import cite_command, cite_result
from osmia_memory.extract.view import View
from osmia_memory.models import Claim


def format_rejected(view: View) -> Iterator[Finding]:
    """The harness rejected a reply for its form; nothing was executed."""
    engine = view.transcript.run.engine
    for event in view.events("error"):
        if event.tool != "format":
            continue
        match = re.search(r"^.*\b(?:EXACTLY ONE|exactly one|format|single)\b.*$", event.text, re.M)
        line = (match[0] if match else event.text.strip().splitlines()[0]).strip()
        several = re.search(r"found (\d+) actions", event.text)
        if several and several[1] != "0":
            content = f"{engine} rejects a reply that holds more than one fenced command block, even one shown only as an example: nothing is executed; send exactly one action a reply."
            what = "more than one block"
        else:
            content = f"{engine} rejects a reply without exactly one fenced command block: nothing is executed and the step is lost."
            what = "no block"
        yield Finding(content, "failure_pattern", Claim(engine, "rejects reply", what, "yes"), (view.cite(event, line),), scope="engine")
        return


def output_cut(view: View) -> Iterator[Finding]:
    """The harness cut long output by a limit of its own, so the middle of a big file was never seen."""
    engine = view.transcript.run.engine
    for step in view.steps:
        for result in step.results:
            if not result.args.get("truncated") or step.main is None:
                continue
            match = re.search(
                r"^.*(?:\d+ characters elided|output of your last command was too long|Output too large).*$", result.text, re.M
            )
            if match is None:
                continue
            kept = re.search(r"Preview \(first (\d+ ?[KM]?B)\)", result.text)
            how = (
                f"writes big command outputs to a file and shows only their first {kept[1]}, so what comes after is not seen"
                if kept
                else f"cuts command output above about {_limit(view)} characters to its head and tail, so printing a whole big file hides its middle"
            )
            yield Finding(
                f"{engine} {how}; read ranges (`grep -n`, `sed -n 'A,Bp'`).",
                "failure_pattern",
                Claim(engine, "cuts output", "", "yes"),
                (view.cite(result, match[0].strip()), cite_command(view, step)),
                scope="engine",
            )
            return


def _limit(view: View) -> str:
    """What was left of the shortest cut answer, to the next ten thousand."""
    left = min(len(r.text) for s in view.steps for r in s.results if r.args.get("truncated"))
    return f"{max(1, round(left / 10_000)) * 10_000:,}"


def left_running(view: View) -> Iterator[Finding]:
    """A command outlived the tool's patience and its output had to be fetched by a second call."""
    engine = view.transcript.run.engine
    for step in view.steps:
        if len(step.results) < 2 or step.results[0].exit_code is not None or step.main is None:
            continue
        fetch = next((e for e in view.events("tool_call") if step.index < e.index < step.end and e.tool == "write_stdin"), None)
        if fetch is None:
            continue
        yield Finding(
            f"In {engine} a command that outlives `yield_time_ms` returns without its result (process still running); fetch the rest with an empty `write_stdin`, or give slow commands a larger `yield_time_ms`.",
            "failure_pattern",
            Claim(engine, "leaves running", "exec_command", "yes"),
            (cite_command(view, step), view.cite(fetch, fetch.text.strip()[:60]) if fetch.text.strip() else None),
            scope="engine",
        )
        return


def provider_trouble(view: View) -> Iterator[Finding]:
    """Context overflow and refusals of the provider: about the engine. Rate limits and overload pass by themselves and teach nothing."""
    engine = view.transcript.run.engine
    kinds = (
        ("context overflow", r"context (?:length|window)|prompt is too long|maximum context|ContextWindowExceeded"),
        ("refusal", r"\brefus(?:al|ed)\b|content policy"),
    )
    told: set[str] = set()
    for event in view.events("error"):
        if event.tool != "provider":
            continue
        for kind, pattern in kinds:
            match = re.search(rf"^.*(?:{pattern}).*$", event.text, re.M | re.I)
            if match and kind not in told:
                told.add(kind)
                lasting = kind == "context overflow"
                yield Finding(
                    f"{engine} hit a {kind} of its provider during a run" + ("; keep outputs and files read small." if lasting else "."),
                    "general",
                    Claim(engine, "provider", kind, "seen"),
                    (view.cite(event, match[0].strip()),),
                    scope="engine",
                    tags=() if lasting else ("environment",),
                    strength=-0.1,
                )


def limit_hit(view: View) -> Iterator[Finding]:
    """The run was ended by its step, cost or time limit."""
    run = view.transcript.run
    for signal in run.signals:
        if signal.name == "limit" and signal.event_index is not None:
            event = view.transcript.events[signal.event_index]
            yield Finding(
                f"{run.engine} was stopped by its {signal.value} limit on a {run.task_type.replace('_', ' ')} task.",
                "failure_pattern",
                Claim(run.engine, "limit", signal.value, run.task_type),
                (view.cite(event, event.text.strip()[:120]),),
                scope="engine",
                tags=("corroborate",),
            )
            return


def repeated_call(view: View) -> Iterator[Finding]:
    """The same failing command three times in a row with the same result and nothing changed in between."""
    steps = view.steps
    for n in range(2, len(steps)):
        a, b, c = steps[n - 2 : n + 1]
        if (
            a.line == b.line == c.line
            and a.output == b.output == c.output
            and c.failed
            and not view.edits_between(a.index, c.index)
            and c.main
        ):
            yield Finding(
                f"{view.transcript.run.engine} repeated a failing `{c.main.program}` command three times with the same result; change something before retrying.",
                "failure_pattern",
                Claim(view.transcript.run.engine, "repeats", c.main.program, "yes"),
                (cite_command(view, c), cite_result(view, c, c.output.strip()[:80])),
                scope="engine",
                tags=("corroborate",),
            )
            return


RULES = (
    Rule("format_rejected", 1, 0.85, 0.01, "the harness said so", format_rejected),
    Rule("output_cut", 2, 0.85, 0.01, "the harness said so", output_cut),
    Rule("left_running", 1, 0.8, 0.01, "seen in the pairing of calls", left_running),
    Rule("provider_trouble", 2, 0.6, 0.05, "passes by itself", provider_trouble),
    Rule("limit_hit", 1, 0.6, 0.02, "one run's limit says little about the next", limit_hit),
    Rule("repeated_call", 1, 0.6, 0.02, "one run's habit", repeated_call),
)
