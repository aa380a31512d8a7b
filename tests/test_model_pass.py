"""The model pass over real stores with a scripted model: what is stored, what stays pending, what is never asked twice."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from osmia_memory.budget import Budget
from osmia_memory.llm import Request
from osmia_memory.memory import Memory
from osmia_memory.model_pass import ModelPass
from osmia_memory.models import Skip
from osmia_memory.pipeline import Proposals, RunReport
from osmia_memory.testing import ScriptedCompleter, ScriptedReply
from tests.product import NO_JUST, REPO, TESTS_RUN, Events, a_memory, a_task_run, as_jsonl, contents, exported, says, sh

LOOKED = sh("grep -rn export_columns .", "./warehouse/load.sql:4:-- keep in step with export_columns in shop/export.py")
FACT = "`export_columns` in `shop/export.py` and `warehouse/load.sql` have to be kept in step."
NOTHING = '{"facts": []}'


def proposed(
    content: str = FACT, quotes: Sequence[tuple[int, str]] = ((2, "keep in step with export_columns in shop/export.py"),), **fields: Any
) -> str:
    """A reply with one fact."""
    fact = {
        "content": content,
        "kind": "repo_quirk",
        "about": "repo",
        "stands": "confirmed",
        "quotes": [{"event": event, "text": text} for event, text in quotes],
        **fields,
    }
    return json.dumps({"facts": [fact]})


def learn_with(memory: Memory, model: ModelPass, *runs: dict[str, Any]) -> list[RunReport]:
    """Read the runs with the model pass."""
    reports = list(memory.extract(["-"], stdin=as_jsonl(*runs), model_pass=model))
    assert not [r for r in reports if isinstance(r, Skip)]
    return [r for r in reports if isinstance(r, RunReport)]


def knowledge(memory: Memory) -> list[str]:
    """The export without the lines that say which extractor read a run."""
    return [line for line in exported(memory).splitlines() if '"type":"run"' not in line]


def asked(replies: Any, **options: Any) -> tuple[ModelPass, ScriptedCompleter]:
    """A pass over a scripted model, one request at a time."""
    completer = ScriptedCompleter(replies)
    return ModelPass(completer, options.pop("budget", Budget()), concurrency=1, **options), completer


def done(report: RunReport) -> Proposals:
    """What the model pass did."""
    assert report.proposals is not None
    return report.proposals


def a_run(session: str = "s1", *more: Events) -> dict[str, Any]:
    """A run from which the rules learn how the tests are run, and a model that two places belong together."""
    return a_task_run(session, LOOKED, TESTS_RUN, *more)


def long_run(parts: int) -> dict[str, Any]:
    """A run of about that many parts of 2,000 tokens."""
    page = "the order was shipped to its customer by the carrier of the week, says its number\n" * 60
    filler = [says(f"Step {n} of the survey. {page}") for n in range(parts * 8)]
    return a_task_run("long", LOOKED, *filler, TESTS_RUN)


# --- what is stored ---------------------------------------------------------------------------------------------------


def test_what_the_run_bears_out_is_stored_beside_the_rules_facts(tmp_path: Path) -> None:
    """With its source, its quote from the transcript, and a confidence that the model does not set."""
    memory = a_memory(tmp_path)
    model, completer = asked([proposed()])

    (report,) = learn_with(memory, model, a_run())

    told = {f.content: f for f in memory.facts()}
    assert FACT in told
    assert any("bin/test" in content for content in told)
    (witness,) = memory.testimony(told[FACT].fact_id)
    assert witness["source"] == model.source
    assert witness["evidence"][0]["quote"] == "keep in step with export_columns in shop/export.py"
    assert (done(report).kept, done(report).requests, done(report).is_partial) == (1, 1, False)
    assert len(completer.calls) == 1


def test_what_the_run_does_not_bear_out_is_dropped_with_its_reason(tmp_path: Path) -> None:
    """An invented quote leaves the rules' facts as they are."""
    plain, memory = a_memory(tmp_path, name="plain.duckdb"), a_memory(tmp_path)
    list(plain.extract(["-"], stdin=as_jsonl(a_run())))
    model, _ = asked([proposed(quotes=[(2, "keep in step with the schema of the warehouse")])])

    (report,) = learn_with(memory, model, a_run())

    assert knowledge(memory) == knowledge(plain)
    (drop,) = done(report).dropped
    assert drop.content == FACT
    assert drop.reason


def test_without_a_model_nothing_changes(tmp_path: Path) -> None:
    """A model that has nothing to say leaves the same knowledge, byte for byte."""
    plain, memory = a_memory(tmp_path, name="plain.duckdb"), a_memory(tmp_path)
    list(plain.extract(["-"], stdin=as_jsonl(a_run(), a_run("s2"))))
    model, _ = asked([NOTHING, NOTHING])

    learn_with(memory, model, a_run(), a_run("s2"))

    assert knowledge(memory) == knowledge(plain)


def test_two_runs_that_say_the_same_corroborate_each_other(tmp_path: Path) -> None:
    """Proposals are reconciled like everything else."""
    memory = a_memory(tmp_path)
    model, _ = asked([proposed(), proposed()])

    learn_with(memory, model, a_run(), a_run("s2"))

    (fact,) = [f for f in memory.facts() if f.content == FACT]
    assert fact.runs == 2


# --- what is asked ----------------------------------------------------------------------------------------------------


def test_an_unchanged_run_costs_nothing(tmp_path: Path) -> None:
    """No request and no write, whether the answer held facts or not."""
    memory = a_memory(tmp_path)
    model, completer = asked([proposed(), NOTHING])
    learn_with(memory, model, a_run(), a_run("s2"))
    before = (exported(memory), memory.store.generation(), len(completer.calls))

    reports = learn_with(memory, model, a_run(), a_run("s2"))

    assert (exported(memory), memory.store.generation(), len(completer.calls)) == before
    assert [done(r).requests for r in reports] == [0, 0]


def test_runs_that_the_rules_have_read_before_are_asked_about(tmp_path: Path) -> None:
    """First the rules alone, later with a model: the same as both at once."""
    memory, both = a_memory(tmp_path), a_memory(tmp_path, name="both.duckdb")
    list(memory.extract(["-"], stdin=as_jsonl(a_run())))

    learn_with(memory, asked([proposed()])[0], a_run())
    learn_with(both, asked([proposed()])[0], a_run())

    assert FACT in contents(memory)
    assert exported(memory) == exported(both)


def test_rules_alone_keep_what_a_model_has_said(tmp_path: Path) -> None:
    """A later extraction without a model does not forget what was paid for."""
    memory = a_memory(tmp_path)
    learn_with(memory, asked([proposed()])[0], a_run())
    before = exported(memory)

    list(memory.extract(["-"], stdin=as_jsonl(a_run())))

    assert exported(memory) == before


def test_a_new_version_of_a_run_is_asked_about_anew(tmp_path: Path) -> None:
    """What a model said of the earlier version does not outlive it."""
    memory = a_memory(tmp_path)
    model, completer = asked([proposed(), NOTHING])
    learn_with(memory, model, a_run())

    later = {**a_run("s1", NO_JUST), "finished_at": "2026-05-04T10:00:00Z"}
    learn_with(memory, model, later)

    assert len(completer.calls) == 2
    assert FACT not in contents(memory)


def test_again_asks_for_what_was_answered(tmp_path: Path) -> None:
    """The new answer replaces the old one."""
    memory = a_memory(tmp_path)
    model, completer = asked([proposed(), NOTHING])
    learn_with(memory, model, a_run())

    learn_with(memory, replace(model, again=True), a_run())

    assert len(completer.calls) == 2
    assert FACT not in contents(memory)


# --- trouble ----------------------------------------------------------------------------------------------------------


def part_number(request: Request) -> int:
    """Which part of a run a request asks about."""
    found = re.search(r"[Pp]art (\d+) of (\d+)", str(request.messages[-1]["content"]))
    assert found
    return int(found[1])


def script(reply: Callable[[int], ScriptedReply | str]) -> Callable[[Request], ScriptedReply | str]:
    """Replies by the number of the part."""
    return lambda request: reply(part_number(request))


def test_one_refused_part_leaves_the_others_and_is_the_only_one_asked_for_later(tmp_path: Path) -> None:
    """The rules' facts and the good parts are stored, the run is partial, and the next command asks for the rest alone."""
    memory = a_memory(tmp_path)
    refuses = script(lambda n: ScriptedReply(state="refused") if n == 2 else proposed() if n == 1 else NOTHING)
    model, completer = asked(refuses, window_tokens=2000)

    (report,) = learn_with(memory, model, long_run(9))
    parts = len(completer.calls)

    assert parts >= 3
    assert done(report).is_partial
    assert done(report).states["refused"] == 1
    assert FACT in contents(memory)
    assert [c.number for c in memory.store.pending_chunks("ticketing")] == [2]
    assert "[" in memory.store.run_versions("ticketing")[report.run.run_id][1]

    model, completer = asked(script(lambda n: NOTHING), window_tokens=2000)
    (report,) = learn_with(memory, model, long_run(9))

    assert [part_number(call) for call in completer.calls] == [2]
    assert not done(report).is_partial
    assert FACT in contents(memory)
    assert memory.store.pending_chunks("ticketing") == []


def test_every_request_is_in_the_ledger(tmp_path: Path) -> None:
    """Refused and invalid ones too, with their tokens and cost."""
    memory = a_memory(tmp_path)
    model, _ = asked([ScriptedReply(state="refused", tokens_in=300, cost_usd=0.03), ScriptedReply("no JSON", tokens_in=200, cost_usd=0.02)])

    learn_with(memory, model, a_run(), a_run("s2"))

    spent = memory.store.spent()
    assert (spent.requests, spent.tokens, round(spent.cost_usd, 6)) == (2, 540, 0.05)


def test_a_cap_leaves_the_rest_pending_and_says_so(tmp_path: Path) -> None:
    """Nothing is sent that could pass it; the rules' facts of all runs are stored; later the rest is asked for."""
    memory = a_memory(tmp_path)
    model, completer = asked([proposed(), NOTHING], budget=Budget(max_tokens=130))

    reports = learn_with(memory, model, a_run(), a_run("s2"))

    assert len(completer.calls) == 1
    assert [done(r).is_partial for r in reports] == [False, True]
    assert "cap" in done(reports[1]).details[0]
    assert len(memory.store.runs("ticketing")) == 2
    (waiting,) = memory.store.pending_chunks("ticketing")
    assert waiting.state == "pending"

    learn_with(memory, asked([NOTHING])[0], a_run(), a_run("s2"))
    assert memory.store.pending_chunks("ticketing") == []


def test_a_provider_that_is_down_is_not_asked_about_every_run(tmp_path: Path) -> None:
    """After five parts in a row that failed, the others stay pending; the rules have read them all."""
    memory = a_memory(tmp_path)
    model, completer = asked(lambda request: ScriptedReply(state="failed"))

    reports = learn_with(memory, model, *(a_run(f"s{n}") for n in range(8)))

    assert len(completer.calls) == 5
    assert all(done(r).is_partial for r in reports)
    assert len(memory.store.runs("ticketing")) == 8
    assert next(f for f in memory.facts() if "bin/test" in f.content).runs == 8


def test_a_mistake_of_ours_is_no_state(tmp_path: Path) -> None:
    """An error that no provider made ends the command; what was stored stays."""
    memory = a_memory(tmp_path)

    def broken(request: Request) -> str:
        raise ZeroDivisionError

    try:
        learn_with(memory, asked(broken)[0], a_run())
    except ZeroDivisionError:
        pass
    else:
        raise AssertionError("the error was swallowed")

    assert any("bin/test" in c for c in contents(memory))


def test_tenants_share_neither_answers_nor_states(tmp_path: Path) -> None:
    """The same run of another tenant is asked about for that tenant."""
    model, completer = asked([proposed(), NOTHING])
    learn_with(a_memory(tmp_path), model, a_run())

    learn_with(a_memory(tmp_path, "incident-triage"), model, a_run())

    assert len(completer.calls) == 2
    assert FACT in contents(a_memory(tmp_path))
    assert FACT not in contents(a_memory(tmp_path, "incident-triage"))


def test_secrets_never_reach_the_model(tmp_path: Path) -> None:
    """Requests hold masks, also in what the rules found."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"[:36]
    memory = a_memory(tmp_path)
    model, completer = asked([NOTHING])

    learn_with(memory, model, a_run("s1", sh(f"curl -H 'Authorization: token {token}' https://shop.example", f"401 {token}", 22)))

    sent = json.dumps([list(call.messages) for call in completer.calls])
    assert token not in sent
    assert "REDACTED" in sent
    assert REPO in sent
