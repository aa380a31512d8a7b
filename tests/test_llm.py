"""The completer against real HTTP on loopback: what is sent, what becomes of each reply and trouble, and that every request is counted."""

import asyncio
import inspect
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import vcr
import vcr.errors
from pydantic import BaseModel

from osmia_memory.budget import Budget
from osmia_memory.errors import (
    CapReached,
    ConfigError,
    ProviderAuthError,
    ProviderError,
    ProviderRefusedError,
    ProviderRequestError,
    ProviderUnavailableError,
)
from osmia_memory.llm import Completer, Completion, LiteLlmCompleter, Price, Request, read_reply, sending
from osmia_memory.llm.trouble import translated
from osmia_memory.testing import ScriptedCompleter, ScriptedReply
from tests.loopback import (
    Answer,
    Loopback,
    Script,
    Seen,
    chat_completion,
    cut,
    drip,
    dropped,
    flood,
    html,
    not_json,
    reply,
    sent,
    silent,
    status,
)

KEY = "sk-unit-5d1c0ffee5d1c0ffee"


class Note(BaseModel):
    """One line of a log."""

    line: int
    text: str


class Notes(BaseModel):
    """All lines worth keeping."""

    notes: list[Note]


GOOD = '{"notes": [{"line": 3, "text": "it works"}]}'
PARSED = Notes(notes=[Note(line=3, text="it works")])
REQUEST = Request(({"role": "system", "content": "You keep notes."}, {"role": "user", "content": "3: it works"}), Notes, 500)


def a_completer(server: Loopback, **options: Any) -> LiteLlmCompleter:
    """A completer of a model that no table knows, which sleeps in no time."""
    defaults: dict[str, Any] = {"base_url": server.base_url, "api_key": KEY, "timeout_s": 20.0, "sleep": lambda seconds: None}
    return LiteLlmCompleter("openai/tiny", **defaults | options)


def complete(script: Script, budget: Budget | None = None, **options: Any) -> tuple[Completion, Loopback]:
    """The completion of `REQUEST` against a server with this script."""
    with Loopback(script) as server:
        return a_completer(server, **options).complete(REQUEST, budget or Budget()), server


def run(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter in an empty folder that is also its home."""
    inherited = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "VIRTUAL_ENV")}
    env = inherited | {"HOME": str(folder), "PYTHONPATH": str(Path(__file__).parent.parent)} | environment
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


# --- the process -------------------------------------------------------------------------------------------------------------


def test_import_loads_no_provider_library(tmp_path: Path):
    """Importing the package and its modules costs nothing of litellm's seconds; the library comes with the first call."""
    code = """
import sys, osmia_memory, osmia_memory.llm, osmia_memory.testing
osmia_memory.llm.LiteLlmCompleter("gpt-4o", api_key="k")
print([name for name in ("litellm", "instructor", "openai", "httpx", "httpx2", "aiohttp", "tiktoken", "vcr") if name in sys.modules])
"""

    assert run(code, tmp_path).stdout == "[]\n"


QUIET = """
import socket, sys
connect, resolve, asked = socket.socket.connect, socket.getaddrinfo, []
def noted(self, address):
    asked.append(address[0]) if isinstance(address, tuple) else None
    return connect(self, address)
socket.socket.connect = noted
socket.getaddrinfo = lambda host, *rest, **more: asked.append(host) or resolve(host, *rest, **more)

from osmia_memory.budget import Budget
from osmia_memory.llm import LiteLlmCompleter
from tests.loopback import Loopback, reply, status
from tests.test_llm import GOOD, KEY, PARSED, REQUEST, a_completer

with Loopback([status(401, f"wrong key {KEY}"), status(500), reply(GOOD), reply("no json")]) as server:
    done = [a_completer(server, max_attempts=2).complete(REQUEST, Budget()) for _ in range(2)]
    claude = LiteLlmCompleter("anthropic/claude-sonnet-4-5", base_url=server.base_url, api_key=KEY, max_attempts=1)
    claude.complete(REQUEST, Budget())
assert done[1].parsed == PARSED, done
for model in ("groq/llama-3.3-70b-versatile", "meta/llama-2-7b", "command-r", "anthropic/claude-sonnet-4-5", "deepseek/deepseek-chat",
              "gpt-4o", "openai/tiny", "github_copilot/gpt-4o"):
    completer = LiteLlmCompleter(model)
    assert completer.count_tokens("one two three four") in range(4, 9), model
    completer.price
print(sorted({host if isinstance(host, str) else host.decode() for host in asked if host}))
import os
print(os.environ.get("OPENAI_API_KEY"))
"""


@pytest.mark.slow
def test_calls_print_write_and_fetch_nothing_else(tmp_path: Path):
    """One process that calls, counts and looks up prices speaks to the server alone, says nothing (even if litellm is told to), leaves
    no file, takes no key from a `.env` that lies around, and ends cleanly.
    """
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-from-the-repository\n")

    done = run(QUIET, tmp_path, LITELLM_LOG="DEBUG", PYTHONDONTWRITEBYTECODE="1")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "['127.0.0.1']\nNone\n"
    assert [path.name for path in tmp_path.iterdir()] == [".env"]


# --- the request and a good reply --------------------------------------------------------------------------------------------


def test_one_request_one_reply():
    """The messages go out as they are with the wire model's schema; usage, price and time come back as one attempt."""
    completion, server = complete([reply(GOOD, usage=(1000, 200))], price=Price(2.0, 10.0))

    assert (completion.state, completion.parsed, completion.detail) == ("ok", PARSED, "")
    (attempt,) = completion.attempts
    assert (attempt.state, attempt.model, attempt.tokens_in, attempt.tokens_out) == ("ok", "openai/tiny", 1000, 200)
    assert attempt.cost_usd == pytest.approx(0.004)
    assert 0 < attempt.latency_s < 20
    assert not attempt.estimated
    (seen,) = server.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.body["messages"] == list(REQUEST.messages)
    assert seen.body["response_format"] == {"type": "json_schema", "json_schema": {"name": "Notes", "schema": Notes.model_json_schema()}}
    assert {name: seen.body[name] for name in ("model", "max_tokens", "temperature")} == {
        "model": "tiny",
        "max_tokens": 500,
        "temperature": 0,
    }
    assert "stream" not in seen.body


def test_the_body_can_be_had_without_sending_it():
    """`body` is what `complete` sends, for a batch file; `read_reply` reads what comes back the same way."""
    with Loopback([reply(GOOD)]) as server:
        completer = a_completer(server)
        body = completer.body(REQUEST)
        assert not server.seen
        completion = completer.complete(REQUEST, Budget())

    assert server.seen[0].body == body
    assert read_reply(chat_completion(GOOD), Notes).parsed == completion.parsed


@pytest.mark.parametrize(
    ("body", "state", "detail", "tokens"),
    [
        (chat_completion(GOOD, usage=(1000, 200)), "ok", "", (1000, 200)),
        (chat_completion("prose", usage=(1000, 9)), "invalid", "Invalid JSON", (1000, 9)),
        (chat_completion('{"no', usage=(1000, 500), finish_reason="length"), "truncated", "limit of tokens", (1000, 500)),
        (chat_completion(None, usage=(1000, 3), refusal="No."), "refused", "refused", (1000, 3)),
        ({"error": {"message": f"wrong key {KEY}", "code": "invalid_api_key"}}, "failed", "the batch says: wrong key ***", (0, 0)),
        ({"error": {"message": "filtered", "code": "content_filter"}}, "refused", "filter", (0, 0)),
    ],
)
def test_a_reply_out_of_a_batch_file(body: dict[str, Any], state: str, detail: str, tokens: tuple[int, int]):
    """What a batch file holds for a request is one attempt, at half the price; nothing is sent."""
    completion = LiteLlmCompleter("openai/tiny", api_key=KEY, price=Price(2.0, 10.0)).from_batch(REQUEST, body)

    assert (completion.state, completion.parsed) == (state, PARSED if state == "ok" else None)
    assert detail in completion.detail
    (attempt,) = completion.attempts
    assert (attempt.state, attempt.error, attempt.tokens_in, attempt.tokens_out) == (state, completion.detail, *tokens)
    assert attempt.cost_usd == pytest.approx((tokens[0] * 2 + tokens[1] * 10) / 1_000_000 / 2)
    assert not attempt.estimated


def test_a_batch_reply_without_usage_or_price():
    """Tokens are then counted from the texts, and the cost is unknown; another factor than a half can be given."""
    body = chat_completion(GOOD, usage=None)

    (unpriced,) = LiteLlmCompleter("openai/tiny").from_batch(REQUEST, body).attempts
    (priced,) = LiteLlmCompleter("openai/tiny", price=Price(1.0, 1.0)).from_batch(REQUEST, body, price_factor=1.0).attempts

    assert (unpriced.cost_usd, unpriced.estimated, unpriced.tokens_out) == (None, True, 11)
    assert priced.cost_usd == pytest.approx((priced.tokens_in + 11) / 1_000_000)


@pytest.mark.parametrize(
    ("body", "state"),
    [
        (chat_completion(GOOD), "ok"),
        (chat_completion(f"```json\n{GOOD}\n```"), "ok"),
        (chat_completion(f"```\n{GOOD}\n```\n"), "ok"),
        (chat_completion(f"<think>Is {{it}} line 3?</think>\n{GOOD}"), "ok"),
        (chat_completion(f"<think>Hm.</think>```json\n{GOOD}\n```"), "ok"),
        (chat_completion(f"Here are the notes:\n```json\n{GOOD}\n```\nAnything else?"), "ok"),
        (chat_completion('{"notes": [{"line": 1, "text": "a fence:\\n```\\nx\\n```\\n"}]}'), "ok"),
        (chat_completion([{"type": "text", "text": GOOD}]), "ok"),  # type: ignore[arg-type]
        (chat_completion(""), "invalid"),
        (chat_completion(None), "invalid"),
        (chat_completion("There is nothing to note {yet}; the {run} went well."), "invalid"),
        (chat_completion(f"As JSON: {GOOD}"), "invalid"),
        (chat_completion(GOOD[:-5]), "invalid"),
        (chat_completion(GOOD + GOOD), "invalid"),
        (chat_completion(f"```json\n{GOOD}\n```\nor\n```json\n{GOOD}\n```"), "invalid"),
        (chat_completion(f"<think>Not finished: {GOOD}"), "invalid"),
        (chat_completion(json.dumps(Notes.model_json_schema())), "invalid"),
        (chat_completion('{"notes": [{"line": "3", "text": "a"}]}'), "invalid"),
        (chat_completion('{"notes": {"line": 3, "text": "a"}}'), "invalid"),
        (chat_completion('{"notes": "[{\\"line\\": 3, \\"text\\": \\"a\\"}]"}'), "invalid"),
        (chat_completion(json.dumps(json.dumps([{"line": 3, "text": "a"}]))), "invalid"),
        (chat_completion('[{"line": 3, "text": "a"}]'), "invalid"),
        (chat_completion("null"), "invalid"),
        (chat_completion('{"notes": [{"line": 3, "text": "\ud800"}]}\ud800'), "invalid"),
        (chat_completion("[" * 100_000), "invalid"),
        (chat_completion("I cannot find anything worth a note in this run."), "invalid"),
        (chat_completion(None, refusal="I can't do that."), "refused"),
        (chat_completion("", finish_reason="content_filter"), "refused"),
        (chat_completion(GOOD, finish_reason="content_filter"), "refused"),
        (chat_completion("I'm sorry, but I can't assist with that request."), "refused"),
        (chat_completion("I’m sorry, I can’t help with this."), "refused"),
        (chat_completion("I cannot process this content."), "refused"),
        (chat_completion("As an AI language model, I am not able to help with that."), "refused"),
        (chat_completion("Unfortunately, I am unable to comply."), "refused"),
        (chat_completion("I must decline to answer."), "refused"),
        (chat_completion("Sorry, but I must decline."), "refused"),
        (chat_completion("I could provide notes, but this run can be summed up in a line."), "invalid"),
        (chat_completion("I won't be able to help with that."), "refused"),
        (chat_completion('{"notes": [{"li', finish_reason="length"), "truncated"),
        (chat_completion("", finish_reason="length"), "truncated"),
        ({}, "invalid"),
        ({"choices": []}, "invalid"),
        ({"choices": None}, "invalid"),
        ({"choices": [None]}, "invalid"),
        ({"choices": [{"message": "text"}]}, "invalid"),
        ({"choices": [{"message": {"content": 7}}]}, "invalid"),
    ],
)
def test_reading_a_reply(body: dict[str, Any], state: str):
    """Each kind of reply has its state; parsed is there if and only if it is ok, and nothing but ok is without an explanation."""
    reading = read_reply(body, Notes)

    assert reading.state == state, reading
    assert (reading.parsed is not None) == (state == "ok")
    assert (reading.detail == "") == (state == "ok")


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (reply(None, refusal="No."), "refused"),
        (reply("I'm sorry, but I cannot help with that."), "refused"),
        (reply('{"notes": [', finish_reason="length"), "truncated"),
        (
            status(400, "The response was filtered due to the prompt triggering content management policy.", code="content_filter"),
            "refused",
        ),
    ],
)
def test_a_refusal_and_a_cut_reply_are_not_asked_again(answer: Answer, state: str):
    """Asking the same again would cost the same and end the same."""
    completion, server = complete([answer, reply(GOOD)])

    assert (completion.state, completion.parsed, len(server.seen)) == (state, None, 1)
    assert [attempt.state for attempt in completion.attempts] == [state]


# --- trouble -----------------------------------------------------------------------------------------------------------------

TROUBLE: dict[str, Answer] = {
    "429": status(429, "slow down, please"),
    "500": status(500, "an engine fell off"),
    "502": html(502),
    "503": status(503, "overloaded"),
    "529": status(529, "overloaded"),
    "408": status(408, "too slow"),
    "web page": html(),
    "no JSON": not_json(),
    "cut": cut(),
    "dropped": dropped(),
    "a list": sent([1, 2]),
    "an error in a reply": sent({"error": {"message": "overloaded", "code": 503}}),
}


@pytest.mark.parametrize("kind", TROUBLE)
def test_transport_trouble_repeats_the_same_request(kind: str):
    """Two failures and a success are exactly three requests with equal bodies; nothing of the trouble reaches the model."""
    completion, server = complete([TROUBLE[kind], TROUBLE[kind], reply(GOOD)])

    assert (completion.state, completion.parsed) == ("ok", PARSED)
    assert [attempt.state for attempt in completion.attempts] == ["failed", "failed", "ok"]
    assert all(attempt.error for attempt in completion.attempts[:2])
    assert len(server.seen) == 3
    assert server.seen[0].body == server.seen[1].body == server.seen[2].body


ENDS: dict[str, tuple[Answer, str, int]] = {  # what comes again and again, the state it ends in, and after how many of three attempts
    "429": (status(429, headers={"Retry-After": "1"}), "failed", 3),
    "500": (status(500), "failed", 3),
    "slow": (silent(30), "failed", 3),
    "slow in bytes": (drip(0.05), "failed", 3),
    "cut": (cut(), "failed", 3),
    "web page": (html(), "failed", 3),
    "endless": (flood(), "failed", 3),
    "wrong schema": (reply('{"notes": 1}'), "invalid", 3),
    "empty": (reply(""), "invalid", 3),
    "refusal": (reply(None, refusal="No."), "refused", 1),
    "truncated": (reply('{"no', finish_reason="length"), "truncated", 1),
    "no schemas": (status(400, "response_format and temperature are not supported"), "failed", 3),
    "wrong key": (status(401), "failed", 1),
}


@pytest.mark.parametrize("kind", ENDS)
def test_every_trouble_ends_in_its_state_in_time_and_within_the_attempts(kind: str):
    """Whatever a server does for ever: no more than `max_attempts` requests, one attempt in the ledger for each, in bounded time, and
    none once the cap does not allow it.
    """
    answer, state, requests = ENDS[kind]
    seconds = 0.4 if kind.startswith("slow") else 10.0
    complete([reply(GOOD)])  # the import of the libraries is not measured
    started = time.monotonic()
    budget = Budget()

    completion, server = complete([answer] * 9, budget, timeout_s=seconds, price=Price(1.0, 1.0))

    assert time.monotonic() - started < 3 * seconds + 5
    assert (completion.state, completion.parsed, completion.detail != "") == (state, None, True)
    assert len(server.seen) == len(completion.attempts) == requests == budget.spent().requests
    assert budget.spent().cost_usd == pytest.approx(sum(attempt.cost_usd or 0 for attempt in completion.attempts))

    capped = Budget(max_tokens=700)  # enough for one request of some 150 tokens and a reply of 500
    completion, server = complete([answer] * 9, capped, timeout_s=seconds)
    assert len(server.seen) <= requests
    assert capped.spent().tokens <= 700


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_failures_end_after_max_attempts(attempts: int):
    """A provider that never recovers is asked `max_attempts` times, by nobody else once more, with growing pauses between."""
    pauses: list[float] = []
    completion, server = complete([status(500)] * 9, max_attempts=attempts, sleep=pauses.append)

    assert (completion.state, len(server.seen), len(completion.attempts)) == ("failed", attempts, attempts)
    assert pauses == [1.0, 2.0, 4.0][: attempts - 1]
    assert completion.detail == "the provider is in trouble (500): scripted trouble"


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "86400"}, 60.0),
        ({"Retry-After": "-5"}, 0.0),
        ({"Retry-After": "soon"}, 1.0),
        ({"Retry-After": "nan"}, 0.0),
        ({"Retry-After": "inf"}, 60.0),
        ({"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"}, 60.0),
        ({"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, 0.0),
        ({}, 1.0),
    ],
)
@pytest.mark.parametrize("code", [429, 503])
def test_retry_after_is_honoured_and_bounded(code: int, headers: dict[str, str], pause: float):
    """The provider says when to come back, in seconds or as a date, up to a minute."""
    pauses: list[float] = []
    completion, _ = complete([status(code, headers=headers), reply(GOOD)], sleep=pauses.append)

    assert completion.state == "ok"
    assert pauses == [pause]


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (status(401, f"Incorrect API key provided: {KEY}"), "the provider rejected the key"),
        (status(403, "not for you"), "the provider rejected the key"),
        (status(404, "The model `tiny` does not exist", code="model_not_found"), "(404): The model `tiny` does not exist"),
        (status(400, "max_tokens is too large"), "(400): max_tokens is too large"),
        (
            status(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded"),
            "longer than the model's context",
        ),
        (status(402, "pay first"), "(402): pay first"),
        (status(429, "You exceeded your current quota", code="insufficient_quota"), "quota is used up"),
        (lambda exchange: exchange.whole(302, b"", headers={"Location": "/elsewhere"}), "(302)"),
    ],
)
def test_what_cannot_get_better_is_not_tried_again(answer: Answer, detail: str):
    """A wrong key, an unknown model, a request that is not taken and a redirect are one request."""
    completion, server = complete([answer, reply(GOOD)])

    assert (completion.state, len(server.seen), len(completion.attempts)) == ("failed", 1, 1)
    assert detail in completion.detail


def test_nobody_at_the_other_end():
    """A refused connection is trouble that costs nothing."""
    with Loopback([]) as server:
        address = server.base_url
    completion = LiteLlmCompleter("openai/tiny", base_url=address, sleep=lambda s: None, max_attempts=2).complete(REQUEST, Budget())

    assert (completion.state, len(completion.attempts)) == ("failed", 2)
    assert {(attempt.tokens_in, attempt.tokens_out) for attempt in completion.attempts} == {(0, 0)}
    assert completion.detail.startswith("the connection failed (ConnectError")


@pytest.mark.parametrize("model", ["nonsense", "gpt-4o", "anthropic/claude-sonnet-4-5"])
def test_a_request_that_never_leaves_is_no_attempt(model: str, monkeypatch: pytest.MonkeyPatch):
    """An unknown provider and a missing key are found before anything is sent: a failure with nothing in the ledger."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    budget = Budget()

    completion = LiteLlmCompleter(model, sleep=lambda s: None).complete(REQUEST, budget)

    assert (completion.state, completion.attempts, budget.spent().requests) == ("failed", (), 0)
    assert "provider" in completion.detail


# --- asking again ------------------------------------------------------------------------------------------------------------


def test_a_schema_violation_is_asked_again_with_its_fault():
    """The second request holds the first, the rejected reply and what is wrong with it."""
    completion, server = complete([reply('{"notes": [{"line": "three", "text": "a"}]}'), reply(GOOD)])

    assert (completion.state, completion.parsed) == ("ok", PARSED)
    assert [attempt.state for attempt in completion.attempts] == ["invalid", "ok"]
    first, second = (seen.body["messages"] for seen in server.seen)
    assert second[:2] == first
    assert second[2] == {"role": "assistant", "content": '{"notes": [{"line": "three", "text": "a"}]}'}
    assert "notes.0.line: Input should be a valid integer" in second[3]["content"]


def test_a_re_ask_never_carries_a_transport_error():
    """Trouble between re-asks repeats the re-ask as it was; the next one tells of the latest fault alone, so prompts do not pile up."""
    script = [reply("first prose"), status(500, "an engine fell off"), cut(), reply("second prose"), reply(GOOD)]
    completion, server = complete(script, max_attempts=5)

    assert (completion.state, len(server.seen)) == ("ok", 5)
    bodies = [seen.body for seen in server.seen]
    assert bodies[1] == bodies[2] == bodies[3]
    assert len(bodies[4]["messages"]) == 4
    assert "first prose" not in server.seen[4].text
    for seen in server.seen:
        assert not any(word in seen.text for word in ("engine", "500", "Error", "connection", "RemoteProtocol"))


@pytest.mark.parametrize("text", ["", "prose", '{"notes": [', "[]", '{"notes": 1}'])
def test_no_valid_reply_after_all_attempts_is_invalid(text: str):
    """A model that never keeps to the schema costs `max_attempts` requests, each counted, and is not taken for one without notes."""
    completion, server = complete([reply(text)] * 5)

    assert (completion.state, completion.parsed, len(server.seen)) == ("invalid", None, 3)
    assert [attempt.state for attempt in completion.attempts] == ["invalid"] * 3
    assert completion.detail


def test_a_long_rejected_reply_is_shown_in_part():
    """A reply of a megabyte does not come back as a prompt of a megabyte."""
    _, server = complete([reply("x" * 1_000_000), reply(GOOD)])

    assert len(server.seen[1].text) < 6_000


# --- what a provider takes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "response_format"),
    [
        ("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.", None),
        ("'response_format.type' must be 'json_object' or 'text'", {"type": "json_object"}),
    ],
)
def test_a_provider_without_schemas_is_asked_in_another_way(message: str, response_format: dict[str, str] | None):
    """A rejected `response_format` is replaced in the next attempt, and the completer remembers it."""
    with Loopback([status(400, message), reply(f"```json\n{GOOD}\n```"), reply(GOOD)]) as server:
        completer = a_completer(server, max_attempts=2)
        first = completer.complete(REQUEST, Budget())
        second = completer.complete(REQUEST, Budget())

    assert (first.parsed, second.parsed) == (PARSED, PARSED)
    assert [attempt.state for attempt in first.attempts] == ["failed", "ok"]
    assert len(second.attempts) == 1
    for seen in server.seen[1:]:
        assert seen.body.get("response_format") == response_format
        assert '"$defs"' in seen.text


def test_another_way_is_tried_once_only():
    """A provider that rejects the simpler form too is not asked a third time."""
    completion, server = complete([status(400, "response_format is not supported")] * 5)

    assert (completion.state, len(server.seen), len(completion.attempts)) == ("failed", 2, 2)


def test_a_rejected_temperature_is_left_out():
    """Models that allow no temperature are asked without."""
    completion, server = complete([status(400, "Unsupported value: 'temperature' does not support 0 with this model."), reply(GOOD)])

    assert completion.state == "ok"
    assert "temperature" not in server.seen[1].body


@pytest.mark.parametrize(("model", "missing"), [("openai/gpt-4", "response_format"), ("openai/o3-mini", "temperature")])
def test_what_litellm_knows_to_be_unsupported_costs_no_request(model: str, missing: str):
    """Where litellm itself says that a parameter is not supported, the simpler form is the first request."""
    with Loopback([reply(GOOD)]) as server:
        completion = LiteLlmCompleter(model, base_url=server.base_url, api_key=KEY).complete(REQUEST, Budget())

    assert (completion.state, len(server.seen), len(completion.attempts)) == ("ok", 1, 1)
    assert missing not in server.seen[0].body


def test_another_providers_protocol():
    """A model string of another provider speaks that provider's protocol, with one owner of retries all the same."""
    message = {"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn"}
    good = sent(message | {"content": [{"type": "text", "text": GOOD}], "usage": {"input_tokens": 40, "output_tokens": 7}})
    pauses: list[float] = []
    with Loopback([status(500), status(429, headers={"retry-after": "3"}), good, status(401, KEY)]) as server:
        claude = LiteLlmCompleter("anthropic/claude-sonnet-4-5", base_url=server.origin, api_key=KEY, sleep=pauses.append)
        completion = claude.complete(REQUEST, Budget())
        rejected = claude.complete(REQUEST, Budget())

    assert (completion.state, completion.parsed) == ("ok", PARSED)
    assert [(a.tokens_in, a.tokens_out) for a in completion.attempts] == [(0, 0), (0, 0), (40, 7)]
    assert pauses == [1.0, 3.0]
    assert {seen.path for seen in server.seen} == {"/v1/messages"}
    assert (rejected.state, len(rejected.attempts), len(server.seen)) == ("failed", 1, 4)


# --- time, size and numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [silent(30), drip(0.1)])
def test_the_timeout_covers_the_whole_request(answer: Answer):
    """Silence and a byte every tenth of a second both end in time, and are charged as if the reply had been written."""
    completion, server = complete([reply(GOOD)])  # the import of the libraries is not measured
    started = time.monotonic()

    completion, server = complete([answer] * 3, timeout_s=0.6, max_attempts=2)

    assert 1.2 <= time.monotonic() - started < 6
    assert (completion.state, len(server.seen)) == ("failed", 2)
    assert completion.detail == "no complete reply within 0.6 s"
    assert all(attempt.estimated and attempt.tokens_in > 20 and attempt.tokens_out == 500 for attempt in completion.attempts)


def test_a_library_that_blocks_the_loop_does_not_block_the_caller(monkeypatch: pytest.MonkeyPatch):
    """Code that sleeps where it should wait ends in time for the caller; once it is over, the next request is served."""

    async def block() -> Any:
        time.sleep(1.5)

    monkeypatch.setattr(sending, "_GRACE", 0.2)
    started = time.monotonic()

    ended = sending.run(block(), 0.2)

    assert time.monotonic() - started < 1.4
    assert isinstance(ended.error, TimeoutError)
    assert complete([reply(GOOD)])[0].state == "ok"


def test_an_endless_reply_ends():
    """A body without end is left after a few megabytes, long before it fills the memory or the time."""
    completion, server = complete([flood()] * 2, max_attempts=2)

    assert (completion.state, len(server.seen)) == ("failed", 2)
    assert "larger than 8,000,000 bytes" in completion.detail


def in_parallel(completer: Completer, budget: Budget, count: int) -> list[Completion | CapReached]:
    """`count` completions from as many threads."""

    def one(_: int) -> Completion | CapReached:
        try:
            return completer.complete(REQUEST, budget)
        except CapReached as cap:
            return cap

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_requests_at_once_are_bounded():
    """Ten threads share three places; the first request goes alone, because it teaches how to ask."""
    lock, order = threading.Lock(), [0]

    def slowly(seen: Seen) -> Answer:
        with lock:
            order[0] += 1
            answer = reply(GOOD) if order[0] > 1 else status(400, "response_format: json_schema is not supported")

        def later(exchange: Any) -> None:
            time.sleep(0.05)
            answer(exchange)

        return later

    with Loopback(slowly) as server:
        done = in_parallel(a_completer(server, at_once=3), Budget(), 10)

    assert all(isinstance(one, Completion) and one.state == "ok" for one in done)
    assert 1 < server.most_at_once <= 3
    assert len(server.seen) == 11


class FakeTime:
    """A clock that moves by being slept on; as a whole, not for each thread."""

    def __init__(self) -> None:
        self.now = 100.0
        self._lock = threading.Lock()

    def clock(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            self.now += seconds


def test_requests_per_minute_are_spaced_evenly():
    """Thirty a minute are one every two seconds, retries included."""
    passing = FakeTime()
    starts: list[float] = []

    def noting(seen: Seen) -> Answer:
        starts.append(passing.now)
        return status(500, headers={"Retry-After": "0"}) if len(starts) == 2 else reply(GOOD)

    with Loopback(noting) as server:
        completer = a_completer(server, requests_per_minute=30, sleep=passing.sleep, clock=passing.clock)
        for _ in range(3):
            completer.complete(REQUEST, Budget())

    assert starts == [100.0, 102.0, 104.0, 106.0]


def test_a_caller_with_a_running_event_loop_can_call():
    """A synchronous call from within asyncio works; the requests run in a loop of their own."""

    async def caller() -> Completion:
        return complete([reply(GOOD)])[0]

    assert asyncio.run(caller()).state == "ok"


# --- money -------------------------------------------------------------------------------------------------------------------


def test_the_ledger_is_what_the_server_billed():
    """Over good, wrong and failing replies, attempts are as many as requests, and their tokens sum up to the stated usages."""
    script = [
        reply("prose", usage=(310, 11)),
        status(500),
        reply(GOOD, usage=(420, 13)),
        reply(None, refusal="no", usage=(55, 5)),
        reply('{"no', finish_reason="length", usage=(77, 500)),
        status(429),
        status(503),
        status(429),
        status(401),
        reply("x", usage=(1, 1)),
        reply("y", usage=(2, 2)),
        reply("z", usage=(3, 3)),
    ]
    budget = Budget()
    with Loopback(script) as server:
        completer = a_completer(server, price=Price(3.0, 15.0))
        done = [completer.complete(REQUEST, budget) for _ in range(6)]
        attempts = [attempt for completion in done for attempt in completion.attempts]

    assert [completion.state for completion in done] == ["ok", "refused", "truncated", "failed", "failed", "invalid"]
    assert len(attempts) == len(server.seen) == len(script) == budget.spent().requests
    billed_in, billed_out = (sum(side) for side in zip(*server.billed, strict=True))
    assert sum(attempt.tokens_in for attempt in attempts) == billed_in
    assert sum(attempt.tokens_out for attempt in attempts) == billed_out
    cost = (billed_in * 3 + billed_out * 15) / 1_000_000
    assert sum(attempt.cost_usd or 0 for attempt in attempts) == pytest.approx(cost)
    assert budget.spent().cost_usd == pytest.approx(cost)


@pytest.mark.parametrize("usage", [None, (0, 0)])
def test_without_a_usage_tokens_are_counted(usage: tuple[int, int] | None):
    """A server that states no usage is charged by the texts, and the attempt says so."""
    completion, _ = complete([reply(GOOD, usage=usage)], price=Price(1.0, 1.0))

    (attempt,) = completion.attempts
    schema = json.dumps(LiteLlmCompleter("openai/tiny").body(REQUEST)["response_format"])
    assert attempt.estimated
    assert attempt.tokens_in == pytest.approx((len(schema) + len("You keep notes.3: it works")) / 4, abs=12)
    assert attempt.tokens_out == 11
    assert attempt.cost_usd == pytest.approx((attempt.tokens_in + 11) / 1_000_000)


def test_no_cap_is_passed_by_forced_retries():
    """Under a cap of 0.05 USD a model that is never right is asked until the next request may pass it, and what was done is returned."""
    budget = Budget(max_cost_usd=0.05)
    completion, server = complete([reply("prose", usage=(1000, 500))] * 50, budget, price=Price(10.0, 20.0), max_attempts=50)

    assert budget.spent().cost_usd <= 0.05
    assert completion.state == "invalid"
    assert len(completion.attempts) == len(server.seen) == 2
    assert "not tried again: the cap of 0.05 USD for this command leaves" in completion.detail


def test_a_cap_reached_before_the_first_request_is_raised():
    """Nothing is sent, and the caller knows that it is the cap."""
    with Loopback([reply(GOOD)]) as server, pytest.raises(CapReached, match="for today"):
        a_completer(server).complete(REQUEST, Budget(day_max_tokens=10_000, day_spent_tokens=9_900))

    assert server.seen == []


@pytest.mark.parametrize("usage", [(900, 100), (9_000, 100)])
def test_a_cap_holds_for_threads_and_wrong_estimates(usage: tuple[int, int]):
    """Eight threads stay within the cap; if a provider counts ten times as much as expected, the first request alone may be past it."""
    budget = Budget(max_cost_usd=0.01)
    with Loopback(lambda seen: reply("prose", usage=usage)) as server:
        done = in_parallel(a_completer(server, price=Price(1.0, 1.0), at_once=8, max_attempts=20), budget, 8)

    one_call = sum(usage) / 1_000_000
    assert len(server.seen) >= 1
    assert len(server.seen) == budget.spent().requests
    assert budget.spent().cost_usd <= 0.01 + one_call
    assert {one.state for one in done if isinstance(one, Completion)} == {"invalid"}


def test_a_cap_in_usd_needs_a_price():
    """Where neither the caller nor litellm's table knows a price, a cap in USD refuses to start; a cap in tokens does not."""
    with Loopback([reply(GOOD)]) as server:
        with pytest.raises(ConfigError, match="pass a price"):
            a_completer(server).complete(REQUEST, Budget(max_cost_usd=1.0))
        assert server.seen == []
        assert a_completer(server).complete(REQUEST, Budget(max_tokens=10_000)).state == "ok"


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("gpt-4o", True),
        ("openai/gpt-4o", True),
        ("anthropic/claude-sonnet-4-5", True),
        ("ollama/llama3", True),
        ("openai/tiny", False),
        ("groq/gpt-4o", False),
        ("openrouter/anthropic/claude-sonnet-4.5", False),
        ("nonsense", False),
    ],
)
def test_prices_come_from_the_table_or_are_unknown(model: str, known: bool):
    """A model of another provider, and one that the table lists without a price, are not free of charge."""
    assert (LiteLlmCompleter(model).price is not None) == known


def test_an_estimate_sends_nothing():
    """What a request would take is known before: the prompt with its schema, and the most of a reply."""
    estimate = LiteLlmCompleter("gpt-4o", price=Price(1.0, 2.0)).estimate(REQUEST)

    assert 100 < estimate.tokens_in < 400
    assert estimate.tokens_out == 500
    assert estimate.cost_usd == pytest.approx((estimate.tokens_in + 1000) / 1_000_000)


def test_counting_tokens():
    """By the model's tokenizer where it is known, in whatever length; else a quarter of the characters, rounded up."""
    known, unknown = LiteLlmCompleter("gpt-4o"), LiteLlmCompleter("openai/tiny")

    assert known.count_tokens("hello world") == 2
    assert known.count_tokens("<|endoftext|> is only text here") > 5
    assert known.count_tokens("x" * 400_000) > 40_000
    assert [unknown.count_tokens("x" * length) for length in (0, 1, 4, 5)] == [0, 1, 1, 2]


@pytest.mark.parametrize(
    "wrong", [{"max_attempts": 0}, {"timeout_s": 0}, {"at_once": 0}, {"requests_per_minute": -1}, {"base_url": "localhost:80"}]
)
def test_values_out_of_range_are_refused(wrong: dict[str, Any]):
    """A completer that could never send anything is a mistake of the caller."""
    with pytest.raises(ConfigError, match=next(iter(wrong)).replace("_url", " URL")):
        LiteLlmCompleter("openai/tiny", **wrong)


@pytest.mark.parametrize("prices", [(-1.0, 1.0), (1.0, float("nan"))])
def test_a_price_below_zero_is_refused(prices: tuple[float, float]):
    """It would let a cap grow."""
    with pytest.raises(ConfigError, match="price"):
        Price(*prices)


# --- secrets and errors ------------------------------------------------------------------------------------------------------


def test_a_key_never_shows(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch):
    """Neither the key, nor one of the environment, nor credentials in the URL, nor the prompt is in a detail, an attempt, a repr or a
    log, even at the level of debugging and with a provider that repeats what it was sent.
    """
    monkeypatch.setenv("ELSEWHERE_API_KEY", "hidden-in-the-environment")
    echo = f"no: Authorization: Bearer {KEY} hidden-in-the-environment sk-proj-********abcd at http://bob:hunter22@gate.example/v1?key=q1w2e3r4"
    script = [status(code, echo) for code in (400, 401, 403, 404, 500)] + [reply(GOOD)]
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore", "openai", "LiteLLM", "instructor"):
        caplog.set_level(logging.DEBUG, logger=name)
    with Loopback(script) as server:
        completer = a_completer(server, base_url=server.base_url.replace("127", "bob:hunter22@127"), max_attempts=1)
        done = [completer.complete(REQUEST, Budget()) for _ in script]

    shown = "\n".join([repr(completer), str(completer), repr(done), caplog.text])
    assert [one.state for one in done] == ["failed"] * 5 + ["ok"]
    assert "gate.example" in shown
    for secret in (KEY, KEY[3:], "hunter22", "hidden-in", "q1w2e3r4", "abcd", REQUEST.messages[1]["content"]):
        assert secret not in shown.replace(repr(PARSED), "")


def _errors_of_libraries() -> list[type[BaseException]]:
    sending.litellm()
    import httpx
    import litellm.exceptions
    import openai

    modules = (litellm.exceptions, openai, httpx)
    found = {kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, Exception)}
    return sorted(found | {TimeoutError, ConnectionError, OSError, ValueError, KeyError, TypeError, ImportError}, key=str)


def test_every_error_of_the_libraries_has_a_translation():
    """Whatever class litellm, openai or httpx has, comes out as one of ours with a line that says something."""
    for kind in _errors_of_libraries():
        error = kind.__new__(kind)
        error.args = ("something",)
        for name in ("message", "request", "response"):
            if not hasattr(error, name):
                try:
                    setattr(error, name, "something" if name == "message" else None)
                except AttributeError:
                    continue  # a property that needs a request

        trouble = translated(_Wrapper.of(error), 60.0, None)

        assert isinstance(trouble.error, ProviderError), kind
        assert "\n" not in str(trouble.error)
        assert len(str(trouble.error)) > 10


class _Wrapper(Exception):
    """An error with another as its cause, as litellm raises them."""

    @classmethod
    def of(cls, cause: BaseException) -> "_Wrapper":
        wrapper = cls("something")
        wrapper.__cause__ = cause
        return wrapper


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        (400, ProviderRequestError, False),
        (401, ProviderAuthError, False),
        (403, ProviderAuthError, False),
        (404, ProviderRequestError, False),
        (408, ProviderUnavailableError, True),
        (409, ProviderUnavailableError, True),
        (413, ProviderRequestError, False),
        (422, ProviderRequestError, False),
        (429, ProviderUnavailableError, True),
        (500, ProviderUnavailableError, True),
        (503, ProviderUnavailableError, True),
        (504, ProviderUnavailableError, True),
    ],
)
def test_a_status_has_its_class(code: int, kind: type[ProviderError], retryable: bool):
    """The class of our error, and so whether another try can help, follows from the status."""
    error = RuntimeError("scripted")
    error.status_code = code  # type: ignore[attr-defined]

    trouble = translated(error, 60.0, None)

    assert type(trouble.error) is kind
    assert trouble.error.retryable is retryable
    assert not ProviderRefusedError.retryable


def test_a_cassette_records_and_replays(tmp_path: Path):
    """Requests recorded from a server are replayed without it, failures and re-asks included; one that is not on the cassette comes
    through as the cassette's error, however deep litellm has wrapped it, and its reservation is free again.
    """
    missing = vcr.errors.CannotOverwriteExistingCassetteException
    cassettes = vcr.VCR(match_on=("method", "path", "body"), filter_headers=["authorization"])
    cassette = tmp_path / "notes.yaml"
    with Loopback([status(429), reply("prose"), reply(GOOD)]) as server, cassettes.use_cassette(str(cassette)):
        recorded = a_completer(server).complete(REQUEST, Budget())
    offline = a_completer(server, passed_on=(missing,))
    budget = Budget(max_tokens=2_000)

    with cassettes.use_cassette(str(cassette), record_mode="none") as playing:
        replayed = offline.complete(REQUEST, Budget())
        assert playing.all_played
        with pytest.raises(missing):
            offline.complete(Request(({"role": "user", "content": "something else"},), Notes, 500), budget)

    assert [(each.state, each.tokens_in, each.error) for each in replayed.attempts] == [
        (each.state, each.tokens_in, each.error) for each in recorded.attempts
    ]
    assert replayed.parsed == recorded.parsed == PARSED
    assert KEY not in cassette.read_text()
    assert budget.reserve(1_000, 1_000)


# --- the script --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scripted", "state"),
    [
        (PARSED, "ok"),
        (GOOD, "ok"),
        (f"```json\n{GOOD}\n```", "ok"),
        ("prose", "invalid"),
        ("", "invalid"),
        ("I'm sorry, but I can't help with that.", "refused"),
        (ScriptedReply(state="refused"), "refused"),
        (ScriptedReply(state="truncated"), "truncated"),
        (ScriptedReply(state="failed"), "failed"),
        (ScriptedReply(GOOD, state="failed"), "failed"),
    ],
)
def test_a_scripted_completer_has_every_state(scripted: Any, state: str):
    """A reply of the script is read as a real one, unless the script states what became of it."""
    completer: Completer = ScriptedCompleter([scripted])

    completion = completer.complete(REQUEST, Budget())

    assert completion.state == completion.attempts[0].state == state
    assert (completion.parsed == PARSED) == (state == "ok")
    assert bool(completion.detail) == (state != "ok")


def test_a_scripted_completer_counts_and_spends():
    """It remembers its calls, costs what the script says, keeps to the budget and fails loudly at the end of the script."""
    replies: Sequence[ScriptedReply] = [ScriptedReply(GOOD, tokens_in=300, tokens_out=40, cost_usd=0.02)] * 3
    completer = ScriptedCompleter(replies)
    budget = Budget(max_cost_usd=0.05)

    completer.complete(REQUEST, budget)
    completer.complete(REQUEST, budget)
    with pytest.raises(CapReached):
        completer.complete(REQUEST, budget)

    assert completer.calls == [REQUEST, REQUEST]
    assert (budget.spent().requests, budget.spent().tokens) == (2, 680)
    completer.complete(REQUEST, Budget())
    with pytest.raises(AssertionError, match="the script is over"):
        completer.complete(REQUEST, Budget())


def test_a_scripted_completer_can_choose():
    """A function sees the request."""
    completer = ScriptedCompleter(lambda request: GOOD if "works" in request.messages[1]["content"] else "prose")

    assert completer.complete(REQUEST, Budget()).state == "ok"
    assert (
        completer.complete(Request(({"role": "user", "content": "a"}, {"role": "user", "content": "b"}), Notes, 9), Budget()).state
        == "invalid"
    )
