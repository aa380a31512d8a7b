"""The errors of litellm, openai, httpx and asyncio as ours: one line without secrets, and whether anything may have been billed."""

import os
import re
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from osmia_memory.errors import (
    ProviderAuthError,
    ProviderError,
    ProviderRefusedError,
    ProviderRequestError,
    ProviderUnavailableError,
)

_LONGEST_LINE = 240  # characters


class Trouble(NamedTuple):
    """`is_attempt`: whether a request left this machine, as far as can be told; `is_billed`: whether its reply may have been written."""

    error: ProviderError
    is_attempt: bool
    is_billed: bool


_PREFIX = re.compile(r"litellm\.\w+: |(?:\w* ?Error|\w*Exception)(?: \w+Error)?\s*[:\-]\s*|Error code: \d+ - ")
_TOKEN = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|key|api)[-_][\w*.\-]{6,}|\bAIza[\w-]{6,}|\beyJ[\w.-]{10,}"
    r"|(?i:\b(?:bearer|basic|authorization|x-api-key|api[-_ ]?key)\b[\"']?\s*[:= ]\s*[\"']?(?!provided|is\b|was\b)\S+)"
    r"|\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{32,}"
)
_URL = re.compile(r"\b\w+://[^\s\"'<>)\]]*")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD")


def translated(error: BaseException, seconds: float, key: str | None) -> Trouble:
    """An error of litellm, openai, httpx or asyncio as ours, after a request with this key that was given `seconds`."""
    chain = causes(error)
    names = {kind.__name__ for cause in chain for kind in type(cause).__mro__}  # by name: openai has an httpx of its own, httpx2
    status = next((s for s in (getattr(cause, "status_code", None) for cause in chain) if isinstance(s, int)), None)
    answered = bool(names & {"HTTPStatusError", "ConnectError", "ConnectTimeout"})  # with an error status, or by no connection
    said = one_line(str(error), key)
    ours: ProviderError
    if names & {"TimeoutError", "TimeoutException"}:
        ours = ProviderUnavailableError(f"no complete reply within {seconds:g} s")
    elif "ContentPolicyViolationError" in names or (status == 400 and re.search(r"content[ _](?:management )?(?:policy|filter)", said)):
        ours = ProviderRefusedError("the provider's filter refused the request")
    elif status in (401, 403) or (not answered and re.search("missing credentials|api_key", said, re.IGNORECASE)):
        # What it says is not repeated: it may show the key.
        ours = ProviderAuthError("the provider rejected the key, or there is none for this model")
    elif "ContextWindowExceededError" in names:
        ours = ProviderRequestError("the prompt is longer than the model's context window")
    elif "ImportError" in names:
        ours = ProviderRequestError(f"litellm lacks a package for this provider: {said}")
    elif "LLM Provider NOT provided" in said:
        ours = ProviderRequestError("litellm does not know the provider of this model: name it as `<provider>/<model>`")
    elif "insufficient_quota" in str(error) or "exceeded your current quota" in said:
        ours = ProviderRequestError(f"the account's quota is used up ({status})")
    elif status is not None and status < 500 and status not in (408, 409, 425, 429):
        ours = ProviderRequestError(f"the provider does not take the request ({status}): {said}")
    else:
        ours = ProviderUnavailableError(_unavailable(chain, status, said, key), _retry_after(chain))
    # Without an answer, what looks like a fault of the request was found by the library, before anything left.
    was_sent = answered or not isinstance(ours, ProviderRequestError | ProviderAuthError)
    return Trouble(ours, was_sent, was_sent and not answered)


def _unavailable(chain: Sequence[BaseException], status: int | None, said: str, key: str | None) -> str:
    """How the connection ended, or what the provider said: litellm gives a lost connection a status of its own invention."""
    lost = next((cause for cause in chain if any(kind.__name__ == "TransportError" for kind in type(cause).__mro__)), None)
    if lost is not None:
        return f"the connection failed ({type(lost).__name__}: {one_line(str(lost), key)})"
    if any("HTTPStatusError" in type(cause).__name__ for cause in chain):
        return f"the provider is in trouble ({status}): {said}"
    return f"no chat completion came back: {said}"


def causes(error: BaseException) -> list[BaseException]:
    """The error and what it came from, outermost first."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return chain


def _retry_after(chain: Sequence[BaseException]) -> float | None:
    """Seconds that the provider asks to wait; never negative."""
    for headers in (getattr(getattr(cause, "response", None), "headers", None) for cause in chain):
        asked = headers.get("retry-after") if headers is not None else None
        if headers is None or not asked:
            continue
        try:
            return max(0.0, float(asked))  # in this order NaN is 0
        except ValueError:
            try:
                wait = parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("date", ""))
            except (ValueError, TypeError):
                return None
            return max(wait.total_seconds(), 0.0)
    return None


def _secrets(key: str | None) -> list[str]:
    """What must not be in a message: the key, and whatever the environment calls one."""
    known = [value for name, value in os.environ.items() if _SECRET_NAME.search(name)]
    return [secret for secret in (key, *known) if secret and len(secret) >= 6]


def one_line(text: str, key: str | None) -> str:
    """What a library says, for a log: without its class names, `key` and other secrets, paths of URLs and line ends."""
    text = text.split("Traceback (most recent call last)")[0]
    for secret in sorted(_secrets(key), key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _URL.sub(lambda url: origin(url[0]), text)
    text = " ".join(_TOKEN.sub("***", text).split())
    while prefix := _PREFIX.match(text):
        text = text[prefix.end() :]
    text = "".join(c for c in text if c.isprintable())
    return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 3] + "..."


def origin(url: str) -> str:
    """Host and port of a URL, without credentials, path and query."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return "***"
