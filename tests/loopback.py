"""A real HTTP server on 127.0.0.1 that speaks OpenAI's chat completions and misbehaves by script.

    with Loopback([status(429, headers={"Retry-After": "2"}), reply('{"facts": []}')]) as server:
        LiteLlmCompleter("openai/any", base_url=server.base_url, api_key="k")
    assert len(server.seen) == 2

Each request takes the next answer of the script; an answer is a function that writes to the exchange it is given. A request past
the end of the script is answered with status 418 and stays visible in `seen`. Knows nothing of the package under test.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Seen:
    """One request as it arrived: path, headers (names in lower case) and parsed body."""

    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def text(self) -> str:
        """All message contents, one after the other."""
        return "\n".join(str(message["content"]) for message in self.body["messages"])


@dataclass
class Exchange:
    """What an answer may use: the request, and ways to write a reply, whole or in pieces."""

    seen: Seen
    handler: BaseHTTPRequestHandler
    stopping: threading.Event
    billed: list[tuple[int, int]] = field(default_factory=list)

    def head(self, code: int, headers: Mapping[str, str]) -> None:
        """Status line and headers; the connection closes after this exchange."""
        self.handler.send_response(code)
        for name, value in {"Connection": "close", **headers}.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()

    def write(self, data: bytes) -> None:
        """Bytes of the body, sent at once."""
        self.handler.wfile.write(data)
        self.handler.wfile.flush()

    def whole(self, code: int, data: bytes, content_type: str = "application/json", headers: Mapping[str, str] | None = None) -> None:
        """A complete reply."""
        self.head(code, {"Content-Type": content_type, "Content-Length": str(len(data)), **(headers or {})})
        self.write(data)


Answer = Callable[[Exchange], None]
Script = Iterable[Answer] | Callable[[Seen], Answer]


def chat_completion(
    content: str | None, *, usage: tuple[int, int] | None = (100, 20), finish_reason: str = "stop", **message: Any
) -> dict[str, Any]:
    """A reply body; `usage` is (prompt, completion) tokens, None leaves it out; `message` adds fields such as `refusal`."""
    body: dict[str, Any] = {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 1_780_000_000,
        "model": "loopback",
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": content, **message}}],
    }
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return body


def reply(content: str | None, **fields: Any) -> Answer:
    """A well-formed reply; fields as in `chat_completion`."""
    body = chat_completion(content, **fields)
    return sent(body, billed=fields.get("usage", (100, 20)))


def sent(body: Any, billed: tuple[int, int] | None = None) -> Answer:
    """Any JSON body with status 200."""

    def answer(exchange: Exchange) -> None:
        if billed is not None:
            exchange.billed.append(billed)
        exchange.whole(200, json.dumps(body).encode())

    return answer


def status(number: int, message: str = "scripted trouble", *, headers: Mapping[str, str] | None = None, **error: Any) -> Answer:
    """An error in OpenAI's format; `error` adds fields such as `code` or `param`."""
    data = json.dumps({"error": {"message": message, "type": "scripted", **error}}).encode()
    return lambda exchange: exchange.whole(number, data, headers=headers)


def html(code: int = 200) -> Answer:
    """What a proxy or a captive portal says instead."""
    return lambda exchange: exchange.whole(code, b"<!doctype html><html><body>Sign in to continue</body></html>", "text/html")


def not_json() -> Answer:
    """A body that calls itself JSON and is none."""
    return lambda exchange: exchange.whole(200, b'{"id": "chatcmpl-1", "choi')


def cut() -> Answer:
    """A reply whose connection ends in the middle of the body."""

    def answer(exchange: Exchange) -> None:
        data = json.dumps(chat_completion('{"facts": []}')).encode()
        exchange.head(200, {"Content-Type": "application/json", "Content-Length": str(len(data))})
        exchange.write(data[: len(data) // 2])

    return answer


def dropped() -> Answer:
    """No reply at all: the connection is closed at once."""
    return lambda exchange: None


def silent(seconds: float) -> Answer:
    """Nothing for `seconds`, then a good reply."""

    def answer(exchange: Exchange) -> None:
        exchange.stopping.wait(seconds)
        reply('{"facts": []}')(exchange)

    return answer


def drip(every: float = 1.0) -> Answer:
    """One byte of white space every `every` seconds, for ever: no gap is long, the whole never ends."""

    def answer(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Type": "application/json"})
        while not exchange.stopping.wait(every):
            exchange.write(b" ")

    return answer


def flood() -> Answer:
    """An endless body, as fast as it is taken."""

    def answer(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Type": "application/json"})
        while not exchange.stopping.is_set():
            exchange.write(b" " * 65_536)

    return answer


class Loopback:
    """The server, running between `__enter__` and `__exit__`; `seen` and `billed` may be read at any time.

    `script` is a sequence of answers, taken in the order of arrival, or a function that chooses the answer to a request.
    `billed` are the (prompt, completion) tokens of every reply that stated a usage.
    """

    def __init__(self, script: Script) -> None:
        self.seen: list[Seen] = []
        self.billed: list[tuple[int, int]] = []
        self.most_at_once = 0
        self._choose = script if callable(script) else self._in_order(list(script))
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._open = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def origin(self) -> str:
        """`http://127.0.0.1:<port>`."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def base_url(self) -> str:
        """The base URL of the API."""
        return f"{self.origin}/v1"

    def __enter__(self) -> "Loopback":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @staticmethod
    def _in_order(answers: list[Answer]) -> Callable[[Seen], Answer]:
        rest = iter(answers)
        return lambda seen: next(rest, status(418, "the script is over"))

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length", "0"))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        seen = Seen(handler.path, headers, json.loads(handler.rfile.read(length) or b"null"))
        with self._lock:
            self.seen.append(seen)
            self._open += 1
            self.most_at_once = max(self.most_at_once, self._open)
            answer = self._choose(seen)
        exchange = Exchange(seen, handler, self._stopping)
        try:
            answer(exchange)
        except ConnectionError:
            pass  # the client has gone: some answers are made to be left
        finally:
            handler.close_connection = True
            with self._lock:
                self._open -= 1
                self.billed += exchange.billed

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer._answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        return Handler
