"""`extract --llm` against a real HTTP server on loopback: good and bad replies, caps, estimates, batch files; and the cassettes' commands."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from osmia_memory.budget import Budget
from osmia_memory.llm import LiteLlmCompleter, Price
from osmia_memory.memory import Memory
from osmia_memory.model_pass import ModelPass
from osmia_memory.models import Skip
from tests import loopback
from tests.loopback import Answer, Loopback, Seen, chat_completion, reply
from tests.product import Ran, a_memory, a_task_run, as_jsonl, contents, exported, osmia, says
from tests.test_model_pass import FACT, NOTHING, a_run, knowledge, proposed

RUNS = [a_run("s1"), a_run("s2"), a_run("s3")]
PRICE = ("--price", "1,2")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three runs in a file."""
    path = tmp_path / "runs.jsonl"
    path.write_bytes(as_jsonl(*RUNS))
    return path


def extract(runs: Path, server: Loopback | None, *options: str | Path, store: str = "memory.duckdb") -> Ran:
    """`extract --llm` with a model at the server, one request at a time."""
    where = ("--base-url", server.base_url) if server else ()
    given = ("--llm", "openai/any", *where, "--concurrency", "1", "--store", runs.parent / store, "--tenant", "ticketing")
    return osmia("extract", runs, *given, *options)


def memory_of(runs: Path, store: str = "memory.duckdb") -> Memory:
    """The memory that it fills."""
    return a_memory(runs.parent, name=store)


# --- what is asked and said -------------------------------------------------------------------------------------------


def test_a_model_adds_what_the_run_bears_out(runs: Path) -> None:
    """Its facts, its tokens, its cost, and a second time nothing at all."""
    with Loopback([reply(proposed()), reply(NOTHING), reply(proposed())]) as server:
        first = extract(runs, server, *PRICE)
        again = extract(runs, server, *PRICE)

    assert (first.status, again.status) == (0, 0)
    assert FACT in contents(memory_of(runs))
    assert "3 requests, 300 tokens in, 60 out, 0.0004 USD" in first.err
    assert "proposals kept: 2" in first.err
    assert "0 requests" in again.err
    assert len(server.seen) == 3


def test_one_row_a_run_says_what_the_model_did(runs: Path) -> None:
    """`--json` shows kept and dropped proposals, tokens and states; without `--llm` there is no such field."""
    with Loopback(
        [reply(proposed()), reply(proposed(quotes=[(2, "nowhere to be found in this run")])), reply("prose")] + [reply("prose")] * 2
    ) as server:
        rows = extract(runs, server, "--json").rows
    plain = osmia("extract", runs, "--store", runs.parent / "plain.duckdb", "--tenant", "ticketing", "--json").rows

    done = [row["model_pass"] for row in rows]
    assert [d["kept"] for d in done] == [1, 0, 0]
    assert [d["partial"] for d in done] == [False, False, True]
    assert done[1]["dropped"][0]["content"] == FACT
    assert FACT in [f["content"] for f in rows[0]["facts"]]
    assert all("model_pass" not in row for row in plain)
    assert [row["facts"] for row in plain[1:]] == [row["facts"] for row in rows[1:]]


def test_a_partial_result_is_said_and_strict_makes_it_a_failure(runs: Path) -> None:
    """Which runs, why, and what to do."""
    with Loopback([reply(NOTHING), loopback.status(401, "no such key"), reply(NOTHING)]) as server:
        ran = extract(runs, server, "--strict")

    assert ran.status == 1
    told = osmia("stats", "--store", runs.parent / "memory.duckdb", "--tenant", "ticketing")
    assert "models: 3 requests, 240 tokens, 0.0000 USD; 1 parts of 1 runs wait for an answer" in told.out
    assert "partial: 1 runs" in ran.err
    assert "the same command asks for those alone" in ran.err
    assert len(memory_of(runs).store.runs("ticketing")) == 3


def test_options_of_a_model_need_one(runs: Path) -> None:
    """A forgotten --llm is said, not ignored."""
    ran = osmia("extract", runs, "--batch-out", runs.parent / "x.jsonl", "--store", runs.parent / "m.duckdb", "--tenant", "t")

    assert ran.status == 2
    assert "needs --llm" in ran.err


def test_a_cap_in_usd_without_a_price_is_refused_before_anything_is_read(runs: Path) -> None:
    """It could not be kept."""
    with Loopback([]) as server:
        ran = extract(runs, server, "--max-cost", "1")

    assert ran.status == 2
    assert "price" in ran.err
    assert not server.seen
    assert not (runs.parent / "memory.duckdb").exists()


def test_a_day_has_a_cap_for_all_commands_together(runs: Path) -> None:
    """What the store says was spent today counts; tomorrow there is room again."""
    config = runs.parent / "config.yaml"
    config.write_text(f"memory:\n  store_path: {runs.parent / 'memory.duckdb'}\n  llm_max_cost_per_day: 0.03\n")
    options = (*PRICE, "--config", config)
    with Loopback(lambda seen: reply(NOTHING, usage=(14_000, 10))) as server:
        first = extract(runs, server, *options, "--now", "2026-06-01T10:00:00Z")
        same_day = extract(runs, server, *options, "--now", "2026-06-01T23:00:00Z")
        asked = len(server.seen)
        next_day = extract(runs, server, *options, "--now", "2026-06-02T01:00:00Z")

    assert 1 <= asked < 3
    assert "cap of 0.03 USD for today" in first.err
    assert "cap of 0.03 USD for today" in same_day.err
    assert len(server.seen) > asked
    assert next_day.status == 0


def test_an_estimate_sends_nothing_and_counts_what_is_left(runs: Path) -> None:
    """Requests, tokens and the most it can cost; after the run, nothing is left to ask."""
    with Loopback([reply(NOTHING)] * 3) as server:
        before = extract(runs, server, *PRICE, "--dry-run")
        sent = len(server.seen)
        extract(runs, server, *PRICE)
        after = extract(runs, server, *PRICE, "--dry-run")

    assert sent == 0
    found = re.search(r"asked 3 times: about ([\d,]+) tokens in, at most 6,000 out; at most ([\d.]+) USD", before.err)
    assert found
    assert float(found[2]) == pytest.approx((int(found[1].replace(",", "")) + 2 * 6_000) / 1e6, abs=1e-4)
    assert "asked 0 times" in after.err


# --- trouble ----------------------------------------------------------------------------------------------------------

TROUBLE: dict[str, Answer] = {
    "429 with Retry-After": loopback.status(429, headers={"Retry-After": "1"}),
    "500": loopback.status(500),
    "slow": loopback.silent(30),
    "cut": loopback.cut(),
    "HTML": loopback.html(),
    "wrong schema": reply('{"facts": "none"}'),
    "endless": loopback.drip(0.2),
    "flood": loopback.flood(),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TROUBLE)
def test_a_server_that_misbehaves_loses_no_run(runs: Path, kind: str) -> None:
    """Whatever it does about the second run: the rules' facts of all three are stored, the others' answers count, no cap is passed, it ends,
    and when the server is well again, only that run is asked about.
    """
    troubled = json.dumps("survey of the second run")[1:-1]
    second = a_task_run("s2", says("A survey of the second run."), *[[e] for e in RUNS[1]["events"][1:]])
    data = as_jsonl(RUNS[0], second, RUNS[2])

    def choose(seen: Seen) -> Answer:
        return TROUBLE[kind] if troubled in seen.text else reply(proposed() if "second" not in seen.text else NOTHING)

    def read(server: Loopback, budget: Budget) -> list[Any]:
        asked = LiteLlmCompleter(
            "openai/any", base_url=server.base_url, api_key="k", price=Price(1, 1), timeout_s=1.0, sleep=lambda s: None
        )
        found = memory_of(runs).extract(["-"], stdin=data, model_pass=ModelPass(asked, budget, concurrency=1))
        return [r.proposals for r in found if not isinstance(r, Skip)]

    budget = Budget(max_tokens=120_000, max_cost_usd=0.12)
    with Loopback(choose) as server:
        done = read(server, budget)

    assert [d.is_partial for d in done] == [False, True, False]
    assert done[1].requests <= 3
    assert budget.spent().tokens <= 120_000
    assert budget.spent().cost_usd <= 0.12
    assert len(memory_of(runs).store.runs("ticketing")) == 3
    assert FACT in contents(memory_of(runs))
    assert memory_of(runs).store.spent().requests == sum(d.requests for d in done)

    with Loopback(lambda seen: reply(NOTHING)) as server:
        done = read(server, Budget())
    assert [d.requests for d in done] == [0, 1, 0]
    assert not any(d.is_partial for d in done)


# --- batch files ------------------------------------------------------------------------------------------------------


def answer_batch(requests: Path, replies: Path, texts: list[str]) -> None:
    """What a provider makes of a batch file: one reply a request, in reverse order."""
    rows = [json.loads(line) for line in requests.read_text().splitlines()]
    assert {(row["method"], row["url"]) for row in rows} == {("POST", "/v1/chat/completions")}
    done = [
        {"id": f"b{n}", "custom_id": row["custom_id"], "response": {"status_code": 200, "body": chat_completion(text)}, "error": None}
        for n, (row, text) in enumerate(zip(rows, texts, strict=True))
    ]
    replies.write_text("".join(json.dumps(row) + "\n" for row in reversed(done)))


def test_a_round_trip_through_batch_files_equals_the_direct_run(runs: Path) -> None:
    """The same requests, the same knowledge, half the price."""
    texts = [proposed(), NOTHING, proposed()]
    requests, replies = runs.parent / "requests.jsonl", runs.parent / "replies.jsonl"
    with Loopback([reply(text) for text in texts]) as server:
        direct = extract(runs, server, *PRICE, store="direct.duckdb")
        bodies = [seen.body for seen in server.seen]
        out = extract(runs, None, *PRICE, "--batch-out", requests, store="batch.duckdb")
        answer_batch(requests, replies, texts)
        back = extract(runs, None, *PRICE, "--batch-in", replies, store="batch.duckdb")

    assert (direct.status, out.status, back.status) == (0, 0, 0)
    assert "3 requests written" in out.err
    assert [json.loads(line)["body"] for line in requests.read_text().splitlines()] == bodies
    assert requests.stat().st_mode & 0o077 == 0
    assert exported(memory_of(runs, "direct.duckdb")) == exported(memory_of(runs, "batch.duckdb"))
    direct_cost, batch_cost = (memory_of(runs, f"{name}.duckdb").store.spent().cost_usd for name in ("direct", "batch"))
    assert batch_cost == pytest.approx(direct_cost / 2)


def test_missing_failed_unknown_and_broken_replies_leave_their_parts_pending(runs: Path) -> None:
    """Each is said; the next batch holds what is still open."""
    requests, replies, rest = (runs.parent / name for name in ("requests.jsonl", "replies.jsonl", "rest.jsonl"))
    extract(runs, None, "--batch-out", requests)
    rows = [json.loads(line) for line in requests.read_text().splitlines()]
    lines = [
        json.dumps({"custom_id": rows[0]["custom_id"], "response": {"status_code": 200, "body": chat_completion(proposed())}}),
        json.dumps({"custom_id": rows[1]["custom_id"], "response": {"status_code": 400, "body": {"error": {"message": "too long"}}}}),
        json.dumps({"custom_id": "somebody-else", "response": {"status_code": 200, "body": chat_completion(NOTHING)}}),
        "{cut",
    ]
    replies.write_text("\n".join(lines))

    ran = extract(runs, None, "--batch-in", replies)
    extract(runs, None, "--batch-out", rest)

    assert ran.status == 0
    assert "too long" in ran.err
    assert "no reply to it is in the file" in ran.err
    assert "somebody-else" in ran.err
    assert "line 4 of the replies: no JSON" in ran.err
    assert [json.loads(line)["custom_id"] for line in rest.read_text().splitlines()] == [row["custom_id"] for row in rows[1:]]
    assert FACT in contents(memory_of(runs))


def test_a_batch_file_that_cannot_be_read_or_written_is_said(runs: Path) -> None:
    """With the option that names another."""
    missing = extract(runs, None, "--batch-in", runs.parent / "none.jsonl")
    nowhere = extract(runs, None, "--batch-out", runs.parent / "no" / "such" / "folder.jsonl")

    assert missing.status == nowhere.status == 1
    assert "--batch-in" in missing.err
    assert "--batch-out" in nowhere.err


def test_a_batch_of_replies_that_are_no_answers_changes_nothing(runs: Path) -> None:
    """The rules' facts stay as they are."""
    requests, replies = runs.parent / "requests.jsonl", runs.parent / "replies.jsonl"
    extract(runs, None, "--batch-out", requests)
    before = knowledge(memory_of(runs))
    answer_batch(requests, replies, ["prose", "", '{"facts": 3}'])

    ran = extract(runs, None, "--batch-in", replies)

    assert "3 invalid" in ran.err
    assert knowledge(memory_of(runs)) == before
