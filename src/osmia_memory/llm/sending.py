"""How a request leaves: a gate that paces, litellm made silent, an HTTP client with bounds, a loop in which every request ends in time.

litellm, instructor, openai and httpx are imported in this module alone, when the first call is made.
"""

import asyncio
import functools
import logging
import math
import os
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import BaseModel

from osmia_memory.llm.contract import Message

if TYPE_CHECKING:
    import httpx

_LARGEST_REPLY = 8_000_000  # bytes; a reply of 64,000 tokens has about 300,000
_GRACE = 3.0  # seconds for a request that is past its time to let go of its connection
_THREAD = "osmia-memory-llm"
_HTTP_LOGGERS = "httpx httpcore.connection httpcore.http11 httpcore.http2 httpcore.proxy openai._base_client openai._response".split()


class Gate:
    """Lets at most `at_once` in, and no more than `per_minute` a minute, evenly spaced.

    Until `open`, one at a time: the first reply teaches how the provider wants to be asked and how it counts tokens.
    """

    def __init__(self, at_once: int, per_minute: float | None, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._at_once = at_once
        self._spacing = 60.0 / per_minute if per_minute else 0.0
        self._clock, self._sleep = clock, sleep
        self._changed = threading.Condition()
        self._inside = 0
        self._is_open = False
        self._next = -math.inf

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Waits for a turn, and holds it."""
        with self._changed:
            while self._inside >= (self._at_once if self._is_open else 1):
                self._changed.wait()
            self._inside += 1
            now = self._clock()
            slot = max(now, self._next)
            self._next = slot + self._spacing
        try:
            if slot > now:
                self._sleep(slot - now)
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def open(self) -> None:
        """From now on several at once."""
        with self._changed:
            self._is_open = True
            self._changed.notify_all()


@functools.cache
def litellm() -> ModuleType:
    """litellm, silent: imported here alone."""
    # Without these it fetches a price list at import, lists of headers at calls and tokenizers while counting, and reads `.env` files.
    os.environ.update({"LITELLM_OFFLINE_MODE": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"})
    import litellm

    litellm.suppress_debug_info = True
    litellm.disable_aiohttp_transport = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "instructor"):
        logging.getLogger(name).disabled = True  # they log prompts and keys
    # A usage that is no number is ours to judge, not to be told about on stderr.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    for name in _HTTP_LOGGERS:
        logging.getLogger(name).addFilter(_is_of_others)
    return litellm


def _is_of_others(record: logging.LogRecord) -> bool:
    """Whether a record of the HTTP libraries is about a request that is not ours; ours may have a secret in its URL or body."""
    return record.threadName != _THREAD


def shaped(wire: type[BaseModel], messages: Sequence[Message], mode: str) -> dict[str, Any]:
    """`messages` and `response_format`, as instructor puts a request for `wire` in this mode."""
    from instructor.v2 import Mode, Provider, mode_registry

    handlers = mode_registry.get_handlers(Provider.OPENAI, Mode[mode])
    options: dict[str, Any] = handlers.request_handler(wire, {"messages": [dict(message) for message in messages]})[1]
    return options


async def post(body: Mapping[str, Any], *, model: str, base_url: str | None, key: str | None, seconds: float) -> Mapping[str, Any]:
    """The reply to one HTTP request by litellm's client for the provider; raises what litellm raises."""
    options = {**body, "model": model, "timeout": seconds, "max_retries": 0, "num_retries": 0, "no-log": True}
    return _plain(await litellm().acompletion(**options, api_base=base_url, api_key=key))


async def post_to_openai(body: Mapping[str, Any], *, model: str, base_url: str | None, key: str, seconds: float) -> Mapping[str, Any]:
    """The same for OpenAI and whatever speaks its protocol, by an HTTP client of ours."""
    import openai

    options = {**body, "model": model, "timeout": seconds, "max_retries": 0, "num_retries": 0, "no-log": True}
    async with _http_client() as http:
        # It takes a client of httpx, which cassettes know, as well as one of httpx2, which its types name.
        client = openai.AsyncOpenAI(api_key=key, base_url=base_url, http_client=cast(Any, http), max_retries=0, timeout=seconds)
        return _plain(await litellm().acompletion(**options, client=client))


def _plain(reply: Any) -> Mapping[str, Any]:
    read: Mapping[str, Any] = reply.model_dump(warnings=False)
    return read


def _http_client() -> "httpx.AsyncClient":
    """A client that reads no more than `_LARGEST_REPLY`, follows no redirect and keeps no connection."""
    import httpx

    class Bounded(httpx.AsyncByteStream):
        def __init__(self, stream: httpx.AsyncByteStream) -> None:
            self._stream = stream

        async def __aiter__(self) -> Any:
            size = 0
            async for part in self._stream:
                size += len(part)
                if size > _LARGEST_REPLY:
                    raise httpx.ReadError(f"the reply is larger than {_LARGEST_REPLY:,} bytes")
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: httpx.Response) -> None:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = Bounded(response.stream)

    # A kept connection that the server has closed meanwhile would cost an attempt; a new one costs nothing beside a model's seconds.
    return httpx.AsyncClient(
        verify=_trust(),
        headers={"Accept-Encoding": "identity"},  # what is counted is what is kept
        limits=httpx.Limits(max_keepalive_connections=0),
        event_hooks={"response": [bound]},
    )


@functools.cache
def _trust() -> Any:
    import httpx

    return httpx.create_ssl_context()


class Ended(NamedTuple):
    """How a request ended: with a reply, or with an error of whatever kind."""

    reply: Mapping[str, Any]
    error: BaseException | None


def run(work: Coroutine[Any, Any, Mapping[str, Any]], seconds: float) -> Ended:
    """Runs to the end, or for `seconds`, whatever a library is waiting for; does not raise what `work` raises."""
    future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, seconds), _loop())
    try:
        error = future.exception(seconds + _GRACE)
    except TimeoutError as stuck:  # the loop itself, in code that does not wait as it should
        future.cancel()
        return Ended({}, stuck)
    return Ended({}, error) if error else Ended(future.result(), None)


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """A loop in a thread of its own, so that callers may be any threads, also such that have a loop already."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=_THREAD, daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_loop.cache_clear)  # threads do not survive a fork
