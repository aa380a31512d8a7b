"""Failures that comparable systems had with their models, each at the level of the whole product beside the good input that works.

The 150 quotes of the eighth are in `extract/test_grounding.py`; here is what a wrong one does to a store.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from osmia_memory.budget import Budget
from osmia_memory.extract import heuristics
from osmia_memory.extract.wire import ReplyV1
from osmia_memory.llm import LiteLlmCompleter, Price, Request
from osmia_memory.model_pass import ModelPass
from osmia_memory.testing import ScriptedCompleter, ScriptedReply
from tests import loopback
from tests.loopback import Loopback, Seen, reply
from tests.product import Events, a_memory, a_task_run, as_jsonl, contents, edits, exported, says, sh
from tests.test_model_pass import FACT, NOTHING, a_run, asked, done, knowledge, learn_with, long_run, part_number, proposed, script

GOOD = proposed()

GARBAGE = {
    "empty": "",
    "prose": "The run taught me that export_columns matters a lot.",
    "truncated JSON": GOOD[: len(GOOD) // 2],
    "echo of the schema": json.dumps(ReplyV1.model_json_schema()),
    "wrong types": '{"facts": [{"content": 7, "kind": [], "about": "repo", "stands": "confirmed", "quotes": {}}]}',
    "a JSON array in a string": json.dumps({"facts": json.dumps(json.loads(GOOD)["facts"][0]["quotes"])}),
    "fenced and cut": f"```json\n{GOOD[:60]}\n```",
    "nothing but thoughts": '<think>Which facts are there? {"facts": []} would be one answer.',
    "refusal": "I'm sorry, but I can't help with that.",
    "braces in prose": "The shell expanded {a,b} and the config holds {} here.",
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_3_and_4_garbage_is_a_counted_failure_that_can_be_resumed(tmp_path: Path, kind: str) -> None:
    """What was known stays, the run is partial, one failure is counted, and a good answer later completes it."""
    memory = a_memory(tmp_path)
    learn_with(memory, asked([GOOD])[0], a_run("s1"))
    before = set(knowledge(memory))

    (report,) = learn_with(memory, asked([GARBAGE[kind]])[0], a_run("s2"))

    assert done(report).is_partial
    assert done(report).states.keys() <= {"invalid", "refused", "truncated"}
    assert len(memory.store.pending_chunks("ticketing")) == 1
    assert FACT in contents(memory)
    assert len(knowledge(memory)) >= len(before)

    (report,) = learn_with(memory, asked([GOOD])[0], a_run("s2"))
    assert not done(report).is_partial
    assert next(f.runs for f in memory.facts() if f.content == FACT) == 2


@pytest.mark.parametrize("text", [f"```json\n{GOOD}\n```", f"<think>There are {{braces}} here.</think>\n{GOOD}"])
def test_3_a_good_answer_in_wrapping_paper_counts(tmp_path: Path, text: str) -> None:
    """Fences and thoughts around it are no failure."""
    memory = a_memory(tmp_path)

    (report,) = learn_with(memory, asked([text])[0], a_run())

    assert not done(report).is_partial
    assert FACT in contents(memory)


def test_5_one_of_ten_parts_refused(tmp_path: Path) -> None:
    """The facts of nine are stored, the run is partial, and resuming asks for the fourth alone."""
    memory = a_memory(tmp_path)
    refuses = script(lambda n: ScriptedReply(state="refused") if n == 4 else GOOD if n == 1 else NOTHING)
    model, completer = asked(refuses, window_tokens=2000)
    (report,) = learn_with(memory, model, long_run(60))

    assert len(completer.calls) >= 10
    assert dict(done(report).states) == {"ok": 1, "empty": len(completer.calls) - 2, "refused": 1}
    assert FACT in contents(memory)

    model, completer = asked(script(lambda n: NOTHING), window_tokens=2000)
    learn_with(memory, model, long_run(60))
    assert [part_number(call) for call in completer.calls] == [4]


BLOCK = """## Prior Knowledge

The following observations from previous tasks may be relevant:

- **Repo quirk** (confidence: 0.91): `export_columns` in `shop/export.py` and `warehouse/load.sql` have to be kept in step (6 runs).
"""


@pytest.mark.parametrize("where", ["user", "result"])
def test_7_an_injected_block_proves_nothing(tmp_path: Path, where: str) -> None:
    """A quote that stands only in our own block never verifies, and never makes a fact better supported."""
    memory = a_memory(tmp_path)
    learn_with(memory, asked([GOOD])[0], a_run("s1"))
    (known,) = [f for f in memory.facts() if f.content == FACT]
    echo: Events = says(BLOCK, "user") if where == "user" else sh("cat PROMPT.md", BLOCK)
    at = 1 if where == "user" else 2
    wrong = proposed(quotes=[(at, "`export_columns` in `shop/export.py` and `warehouse/load.sql` have to be kept in step")])

    (report,) = learn_with(memory, asked([wrong])[0], a_task_run("s2", echo))

    (after,) = [f for f in memory.facts() if f.content == FACT]
    assert (after.runs, after.confidence) == (known.runs, known.confidence)
    assert done(report).kept == 0
    assert len(done(report).dropped) == 1


@pytest.mark.parametrize(
    ("quote", "kept"),
    [
        ("keep in step with export_columns in shop/export.py", True),
        ("“keep  in step with `export_columns` in shop/export.py”", True),
        ("keep in step with export_rows in shop/export.py", False),
        ("do not keep in step with export_columns in shop/export.py", False),
        ("grep -rn export_columns . keep in step with export_columns in shop/export.py", False),
    ],
)
def test_8_a_quote_is_faithful_or_worth_nothing(tmp_path: Path, quote: str, kept: bool) -> None:
    """Curly quotes and markup fold; another word, an added negation and two places joined do not. What is stored is the run's own text."""
    memory = a_memory(tmp_path)

    learn_with(memory, asked([proposed(quotes=[(2, quote)])])[0], a_run())

    assert (FACT in contents(memory)) is kept
    for fact in memory.facts():
        for witness in memory.testimony(fact.fact_id):
            assert all(e["quote"] in a_run()["events"][e["event"]]["text"] for e in witness["evidence"])


def test_9_provenance_written_by_the_model_is_ignored(tmp_path: Path) -> None:
    """Confidence, owner, source, run and time come from the run."""
    memory = a_memory(tmp_path)
    boasting = json.loads(GOOD)
    boasting["facts"][0] |= {
        "confidence": 1.0,
        "owner": "acme/other",
        "source": "human",
        "run_id": "r1:0",
        "observed_at": "2030-01-01",
        "runs": 40,
    }

    learn_with(memory, asked([json.dumps(boasting)])[0], a_run())
    plain = a_memory(tmp_path, name="plain.duckdb")
    learn_with(plain, asked([GOOD])[0], a_run())

    assert FACT in contents(memory)
    assert exported(memory) == exported(plain)


def test_9_another_version_keeps_the_ids_of_what_has_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new prompt and new rules that say the same leave every fact its id; what the old prompt said is replaced, not doubled."""
    memory = a_memory(tmp_path)
    learn_with(memory, asked([GOOD, GOOD])[0], a_run("s1"), a_run("s2"))
    before = {f.fact_id: f.runs for f in memory.facts()}
    monkeypatch.setattr(heuristics, "EXTRACTOR", "heuristics@ffffffff")
    model, completer = asked([GOOD, GOOD])
    model.__dict__["prompt"] = replace(model.prompt, sha256="f" * 64)

    learn_with(memory, model, a_run("s1"), a_run("s2"))

    assert len(completer.calls) == 2
    assert {f.fact_id: f.runs for f in memory.facts()} == before
    (told,) = {w["source"] for f in memory.facts() if f.content == FACT for w in memory.testimony(f.fact_id)}
    assert told == "llm:extract_facts@v1:ffffff"


def hypotheses() -> dict[str, Any]:
    """A run that suspects rounding, finds that wrong, and finds the order of the discounts."""
    return a_task_run(
        "s1",
        says("I think the total is wrong because of `round_half_up` in shop/money.py."),
        edits("shop/money.py", "def round_half_up(value): return int(value + 0.5)"),
        sh("bin/test tests/test_cart.py", "FAILED tests/test_cart.py::test_total - assert 41 == 40\n1 failed, 11 passed in 0.30s", 1),
        sh("git checkout shop/money.py", "Updated 1 path from the index"),
        sh("grep -n discount shop/cart.py", "12:    # discounts apply in the order of shop/discounts.toml, not by size"),
        edits("shop/cart.py", "for discount in load_discounts(): total = discount.apply(total)"),
        sh("bin/test tests/test_cart.py", "12 passed in 0.30s"),
    )


def test_10_a_hypothesis_that_was_disproved_is_at_most_a_dead_end(tmp_path: Path) -> None:
    """The second explanation is the fact."""
    memory = a_memory(tmp_path)
    events = hypotheses()["events"]
    failed = next(n for n, e in enumerate(events) if "1 failed" in e.get("text", ""))
    found = next(n for n, e in enumerate(events) if "discounts apply" in e.get("text", ""))
    wrong = json.loads(
        proposed(
            "`test_total` in `tests/test_cart.py` fails because of `round_half_up` in `shop/money.py`.",
            [(failed, "FAILED tests/test_cart.py::test_total")],
        )
    )["facts"]
    right = json.loads(
        proposed(
            "Discounts in `shop/cart.py` apply in the order of `shop/discounts.toml`, not by size.",
            [(found, "discounts apply in the order of shop/discounts.toml, not by size")],
        )
    )["facts"]

    (report,) = learn_with(memory, asked([json.dumps({"facts": [*wrong, *right]})])[0], hypotheses())

    assert "Discounts in `shop/cart.py` apply in the order of `shop/discounts.toml`, not by size." in contents(memory)
    assert not any("because of `round_half_up`" in content for content in contents(memory))
    assert [drop.content for drop in done(report).dropped] == [wrong[0]["content"]]


def completer(server: Loopback, **options: Any) -> LiteLlmCompleter:
    """The real one, which does not wait."""
    return LiteLlmCompleter("openai/any", base_url=server.base_url, api_key="k", sleep=lambda s: None, **options)


def test_12_a_cap_holds_over_forced_retries(tmp_path: Path) -> None:
    """With 0.05 USD and a server that fails twice for each answer, all requests together stay below it; the rest can be resumed."""
    memory = a_memory(tmp_path)
    price = Price(2.0, 8.0)
    runs = [a_run(f"s{n}") for n in range(6)]
    turns = iter(range(1000))
    with Loopback(lambda seen: reply(NOTHING, usage=(4000, 30)) if next(turns) % 3 == 2 else reply("prose", usage=(4000, 500))) as server:
        model = ModelPass(completer(server, price=price), Budget(max_cost_usd=0.05), concurrency=2)
        reports = learn_with(memory, model, *runs)
        billed = sum(price.cost(*tokens) for tokens in server.billed)

    assert 0 < billed <= 0.05
    assert memory.store.spent().cost_usd == pytest.approx(billed)
    assert any(done(r).is_partial for r in reports)
    with Loopback(lambda seen: reply(NOTHING)) as server:
        reports = learn_with(memory, ModelPass(completer(server), Budget()), *runs)
    assert not any(done(r).is_partial for r in reports)


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_13_every_failure_is_one_request_in_the_ledger(tmp_path: Path, failures: int) -> None:
    """N failures and then an answer are N + 1 requests over HTTP and in the ledger; the prompt never tells of the transport."""
    memory = a_memory(tmp_path)
    answers = [*[loopback.status(500, "the upstream broke")] * failures, reply(GOOD)]
    seen: list[Seen] = []
    with Loopback(answers) as server:
        (report,) = learn_with(memory, ModelPass(completer(server), Budget(), concurrency=1), a_run())
        seen = server.seen

    assert len(seen) == failures + 1 == done(report).requests == memory.store.spent().requests
    assert memory.store.spent().tokens == done(report).tokens_in + done(report).tokens_out == 120
    assert len({s.text for s in seen}) == 1
    assert FACT in contents(memory)


def test_a_request_says_nothing_of_the_store(tmp_path: Path) -> None:
    """The same run gives the same request whatever is known: a recorded answer stays valid, and nothing of other runs is sent."""
    empty, full = a_memory(tmp_path), a_memory(tmp_path, name="full.duckdb")
    list(full.extract(["-"], stdin=as_jsonl(a_run("s0"), hypotheses())))
    requests: list[Request] = []

    def note(request: Request) -> str:
        requests.append(request)
        return NOTHING

    for memory in (empty, full):
        learn_with(memory, asked(note)[0], a_run("s9"))

    assert requests[0] == requests[1]


@pytest.mark.slow
def test_11_two_million_tokens_fit_the_parts_and_the_last_state_wins(tmp_path: Path) -> None:
    """A huge run completes within its parts, each within the window; what an early part says and a late one takes back is not current."""
    page = "the order was shipped to its customer by the carrier of the week, says its number\n" * 49
    port = "The dev server of `bin/serve` listens on port {}."
    early = sh("bin/serve --check", "bin/serve: listening on port 8080\n1 check passed")
    late = sh("bin/serve --check", "bin/serve: listening on port 9090\n1 check passed")
    survey = [says(f"Step {n} of the survey. {page}") for n in range(2_000)]
    run = a_task_run("huge", early, *survey, late)
    assert len(json.dumps(run)) >= 8_000_000  # at four characters a token
    window = 8_000
    seen: list[int] = []

    def answer(request: Request) -> ScriptedReply:
        asked_about = str(request.messages[-1]["content"])
        seen.append(len(asked_about) // 4)
        for number in (8080, 9090):
            found = re.search(rf"^\[(\d+)\] .*listening on port {number}", asked_about, re.M)
            if found:
                claim = {"subject": "bin/serve", "attribute": "port", "value": str(number)}
                return ScriptedReply(proposed(port.format(number), [(int(found[1]), f"listening on port {number}")], **claim))
        return ScriptedReply('{"facts": []}')

    memory = a_memory(tmp_path)
    (report,) = learn_with(memory, ModelPass(ScriptedCompleter(answer), Budget(), 1, window), run)

    assert not done(report).is_partial
    assert 9 <= len(seen) <= 8_000_000 // 4 // window + 60
    assert max(seen) <= window * 1.2
    assert {c for c in contents(memory) if "port" in c} == {port.format(9090)}
