"""The one implementation: any model that litellm knows. The only place where a request is repeated, and where it is paid for."""

import functools
import json
import math
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from osmia_memory.budget import Budget
from osmia_memory.errors import (
    CapReached,
    ConfigError,
    ProviderError,
    ProviderRefusedError,
    ProviderRequestError,
    ProviderUnavailableError,
)
from osmia_memory.llm import sending
from osmia_memory.llm.contract import Attempt, Completion, Estimate, Message, Price, Request, State
from osmia_memory.llm.reply import Reading, asked_again, read_reply, tokens_of
from osmia_memory.llm.trouble import causes, one_line, origin, translated

_LONGEST_WAIT = 60.0  # seconds between two attempts, whatever `Retry-After` asks for
_RUN_AT_HOME = ("ollama", "ollama_chat", "lemonade", "llamafile", "lm_studio", "hosted_vllm", "xinference")
_FORMAT = re.compile(r"response[_ ]?format|json[_ ]?schema|structured[_ ]output|guided_json", re.IGNORECASE)


@dataclass(frozen=True)
class _Dialect:
    """How a request is put: instructor's mode, and whether the temperature may be set."""

    mode: Literal["JSON_SCHEMA", "JSON", "MD_JSON"] = "JSON_SCHEMA"
    temperature: bool = True

    def simpler(self, complaint: str) -> "_Dialect | None":
        """The dialect to use after a request was rejected with this message; None if the message is about something else."""
        if self.temperature and "temperature" in complaint.lower():
            return replace(self, temperature=False)
        if self.mode == "JSON_SCHEMA" and _FORMAT.search(complaint):
            return replace(self, mode="JSON" if "json_object" in complaint.lower() else "MD_JSON")
        return None


class _Outcome(NamedTuple):
    reading: Reading
    error: ProviderError | None
    attempt: Attempt | None  # None if no request left this machine


class LiteLlmCompleter:
    """Any model that litellm knows, over HTTP; may be used by several threads.

    Args:
        model: A litellm model string: `gpt-4o-mini`, `anthropic/claude-sonnet-4-5`, or `openai/<name>` with a `base_url`.
        base_url: Of an OpenAI-compatible server, with its `/v1`.
        api_key: Else from the provider's environment variable.
        price: Else from litellm's table.
        max_attempts: Requests for one completion: retries, re-asks, and repetitions in a simpler form where a provider does not take
            `response_format` or a temperature, which is remembered.
        timeout_s: Seconds for one request from beginning to end.
        requests_per_minute: Over all threads; None does not limit.
        at_once: Requests in flight.
        sleep, clock: The passing of time, in seconds.
        passed_on: Errors that are not the provider's and are raised as they are, wherever in a chain of causes they stand, such as a
            cassette without the request.

    Raises:
        ConfigError: a value is out of range.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        price: Price | None = None,
        max_attempts: int = 3,
        timeout_s: float = 60.0,
        requests_per_minute: float | None = None,
        at_once: int = 4,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        passed_on: tuple[type[BaseException], ...] = (),
    ) -> None:
        limits = {"max_attempts": max_attempts, "timeout_s": timeout_s, "requests_per_minute": requests_per_minute, "at_once": at_once}
        for name, value in limits.items():
            if value is not None and not value > 0:
                raise ConfigError(f"`{name}` is {value!r}; it has to be above 0")
        if not model.strip():
            raise ConfigError("the model's name is empty; pass a litellm model string such as `gpt-4o-mini`")
        if base_url is not None and urlsplit(base_url).scheme not in ("http", "https"):
            raise ConfigError("the base URL does not begin with `http://` or `https://`")
        self.model = model
        self._base_url = base_url
        self._api_key = api_key
        self._given_price = price
        self._max_attempts = max_attempts
        self._timeout_s = timeout_s
        self._sleep, self._clock = sleep, clock
        self._passed_on = passed_on
        self._gate = sending.Gate(at_once, requests_per_minute, clock, sleep)
        self._dialect = _Dialect()
        self._adapting = threading.Lock()

    def __repr__(self) -> str:
        return f"LiteLlmCompleter({self.model!r}{f' at {origin(self._base_url)}' if self._base_url else ''})"

    @functools.cached_property
    def price(self) -> Price | None:
        """As given, else as in litellm's table; None where neither knows."""
        if self._given_price is not None:
            return self._given_price
        prices = [self._entry[name] for name in ("input_cost_per_token", "output_cost_per_token") if name in self._entry]
        # The table has 0 where it does not know, and where a model runs at home.
        if len(prices) < 2 or (not any(prices) and self._provider not in _RUN_AT_HOME):
            return None
        return Price(*(float(price) * 1_000_000 for price in prices))

    def count_tokens(self, text: str) -> int:
        """Tokens of `text`: by litellm for the models in its table (exact for OpenAI's, near for others), else a quarter of the characters."""
        if not self._entry:
            return math.ceil(len(text) / 4)
        pieces = (text[at : at + 20_000] for at in range(0, len(text), 20_000))  # a tokenizer is slow on long runs without a space
        return sum(sending.litellm().token_counter(model=self.model, text=piece) for piece in pieces)

    def estimate(self, request: Request) -> Estimate:
        """What one attempt would take; sends nothing."""
        tokens_in = self._prompt_tokens(self.body(request))
        return Estimate(tokens_in, request.max_tokens, self._cost(tokens_in, request.max_tokens))

    def body(self, request: Request) -> dict[str, Any]:
        """The request in OpenAI's format, as it is sent to such an endpoint and as a batch file wants it."""
        return self._body(request, request.messages, self._dialect)

    def from_batch(self, request: Request, response_body: Mapping[str, Any], *, price_factor: float = 0.5) -> Completion:
        """What came back for `body(request)` in a batch file: a chat completion, or the body of an error, as one attempt.

        Args:
            price_factor: What a batch costs in relation to single requests.
        """
        error = response_body.get("error")
        if isinstance(error, Mapping):
            filtered = error.get("code") == "content_filter"
            said = one_line(str(error.get("message", "")), self._api_key)
            detail = "the provider's filter refused the request" if filtered else f"the batch says: {said}"
            reading = Reading("refused" if filtered else "failed", None, detail)
            attempt = self._attempt(reading, (0, 0), 0.0, estimated=False)
        else:
            reading, attempt = self._read(response_body, request, self.body(request), 0.0)
        if attempt.cost_usd is not None:
            attempt = replace(attempt, cost_usd=attempt.cost_usd * price_factor)
        return Completion(reading.state, reading.parsed, (attempt,), reading.detail)

    def complete(self, request: Request, budget: Budget) -> Completion:
        """One structured reply; as in `Completer`."""
        budget.check_priced(self.price is not None)
        attempts: list[Attempt] = []
        reading = Reading("failed", None, "nothing was sent")
        messages = request.messages
        for number in range(1, self._max_attempts + 1):
            dialect = self._dialect
            try:
                reading, error, attempt = self._within_budget(self._body(request, messages, dialect), request, budget)
            except CapReached as cap:
                if not attempts:
                    raise
                return Completion(reading.state, None, tuple(attempts), f"{reading.detail}; not tried again: {cap}")
            attempts += [attempt] if attempt else []
            if reading.state == "invalid":
                messages = asked_again(request.messages, reading)
            elif self._has_adapted(dialect, error):
                pass
            elif error is None or not error.retryable:
                break
            elif number < self._max_attempts:
                self._sleep(_wait(error, number))
        self._gate.open()
        return Completion(reading.state, reading.parsed, tuple(attempts), reading.detail)

    def _within_budget(self, body: Mapping[str, Any], request: Request, budget: Budget) -> _Outcome:
        """What came of one request, reserved before and settled after."""
        with self._gate.turn():
            most_in = self._most_prompt_tokens(body)
            reservation = budget.reserve(most_in, request.max_tokens, self._cost(most_in, request.max_tokens))
            outcome = None
            try:
                outcome = self._sent(body, request)
            finally:
                budget.settle(reservation, outcome.attempt if outcome else None)
        if outcome.error is None:
            self._gate.open()
        return outcome

    def _sent(self, body: Mapping[str, Any], request: Request) -> _Outcome:
        """What came of one request."""
        sending.litellm()  # the import is not the provider's time
        started = self._clock()
        ended = sending.run(self._post(body), self._timeout_s)
        latency = self._clock() - started
        if ended.error is None:
            reading, attempt = self._read(ended.reply, request, body, latency)
            return _Outcome(reading, None, attempt)
        for cause in causes(ended.error):
            if isinstance(cause, self._passed_on):
                raise cause
        error, is_attempt, is_billed = translated(ended.error, self._timeout_s, self._api_key)
        state: State = "refused" if isinstance(error, ProviderRefusedError) else "failed"
        reading = Reading(state, None, str(error))
        if not is_attempt:
            return _Outcome(reading, error, None)
        tokens = (self._prompt_tokens(body), request.max_tokens) if is_billed else (0, 0)
        return _Outcome(reading, error, self._attempt(reading, tokens, latency, estimated=is_billed))

    def _read(self, reply: Mapping[str, Any], request: Request, body: Mapping[str, Any], latency: float) -> tuple[Reading, Attempt]:
        reading = read_reply(reply, request.wire)
        stated = tokens_of(reply)
        tokens = stated or (self._prompt_tokens(body), self.count_tokens(reading.text))
        return reading, self._attempt(reading, tokens, latency, estimated=stated is None)

    def _attempt(self, reading: Reading, tokens: tuple[int, int], latency: float, *, estimated: bool) -> Attempt:
        return Attempt(reading.state, self.model, *tokens, self._cost(*tokens), latency, reading.detail, estimated)

    async def _post(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        key = self._api_key or os.environ.get("OPENAI_API_KEY") or ("none" if self._base_url else None)
        # Without a key litellm itself says what is missing, and some of OpenAI's models are not for chat.
        if self._provider == "openai" and key and self._entry.get("mode", "chat") == "chat":
            return await sending.post_to_openai(body, model=self.model, base_url=self._base_url, key=key, seconds=self._timeout_s)
        return await sending.post(body, model=self.model, base_url=self._base_url, key=self._api_key, seconds=self._timeout_s)

    def _body(self, request: Request, messages: Sequence[Message], dialect: _Dialect) -> dict[str, Any]:
        shaped = sending.shaped(request.wire, messages, dialect.mode)
        temperature = {"temperature": 0} if dialect.temperature else {}
        return {"model": self.model.removeprefix("openai/"), **shaped, "max_tokens": request.max_tokens, **temperature}

    def _has_adapted(self, used: _Dialect, error: ProviderError | None) -> bool:
        """Whether the request was rejected for its form and there is another to try."""
        if not isinstance(error, ProviderRequestError):
            return False
        with self._adapting:
            if self._dialect == used:  # else another thread was faster
                self._dialect = used.simpler(str(error)) or used
            return self._dialect != used

    @functools.cached_property
    def _entry(self) -> Mapping[str, Any]:
        """What litellm's table says of the model; empty if it is not there. A plain look-up: its own functions may log in somewhere."""
        table: Mapping[str, Mapping[str, Any]] = sending.litellm().model_cost
        provider, _, name = self.model.partition("/")
        entry = table.get(self.model)
        if entry is None and table.get(name, {}).get("litellm_provider") == provider:
            entry = table[name]
        return entry or {}

    @property
    def _provider(self) -> str:
        named = self.model.partition("/")[0] if "/" in self.model else ""
        return named or str(self._entry.get("litellm_provider", ""))

    def _prompt_tokens(self, body: Mapping[str, Any]) -> int:
        return sum(self.count_tokens(text) for text in _texts(body)) + 4 * len(body["messages"])

    def _most_prompt_tokens(self, body: Mapping[str, Any]) -> int:
        """More than the prompt will be found to have: a tenth more than counted, and where the tokenizer is not known, a third of
        the bytes. What a budget learns from the first reply corrects it.
        """
        if self._entry:
            return math.ceil(1.1 * self._prompt_tokens(body))
        return max(self._prompt_tokens(body), sum(len(text.encode("utf-8", "replace")) for text in _texts(body)) // 3)

    def _cost(self, tokens_in: int, tokens_out: int) -> float | None:
        return None if self.price is None else self.price.cost(tokens_in, tokens_out)


def _texts(body: Mapping[str, Any]) -> list[str]:
    """Everything in a request that has tokens; providers count the schema as well."""
    return [*(str(message["content"]) for message in body["messages"]), json.dumps(body.get("response_format", ""))]


def _wait(error: ProviderError, number: int) -> float:
    """Seconds after attempt `number`: as asked for, else 1, 2, 4, ..."""
    asked = error.retry_after_s if isinstance(error, ProviderUnavailableError) else None
    return min(2.0 ** (number - 1) if asked is None else asked, _LONGEST_WAIT)
