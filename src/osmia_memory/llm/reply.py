"""What a reply says: its state and content. Repairs nothing, asks nobody."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from osmia_memory.llm.contract import Message, State

_LONGEST_ECHO = 4_000  # characters of a rejected reply that are shown to the model again


class Reading(NamedTuple):
    """What a reply says: `parsed` if and only if the state is ok; `text` as the model wrote it."""

    state: State
    parsed: BaseModel | None
    detail: str = ""
    text: str = ""


_THOUGHT = re.compile(r"\s*<(think|thinking|thought|reasoning)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```\w*[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_FENCE = re.compile(r"^```\w*[ \t]*\n(.*?)\n[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
# "I cannot find any facts" is a wrong format, not a refusal: the verb decides.
_REFUSAL = re.compile(
    r"(?:i|i['’]m|sorry|unfortunately|as an ai|(?:my )?apologies)\b.{0,160}?"
    r"\b(?:can(?:no|['’])?t|unable|not able|won['’]t|will not|not comfortable|decline)(?:\s+(?:to|be|able))*"
    r"(?:\s*\.?$|\s+(?:help|assist|comply|fulfil|provide|process|continue|support|share|answer|complete|discuss|engage|do th)\w*\b)",
    re.DOTALL | re.IGNORECASE,
)


def read_reply(reply: Mapping[str, Any], wire: type[BaseModel]) -> Reading:
    """The state and content of a chat completion, as an endpoint or a batch file returns it (`choices`, `message`, ...).

    A thought in front and a fence around are taken off; beyond that nothing is repaired: JSON in the midst of prose, JSON in a string,
    a schema instead of an instance and values of another type are invalid.
    """
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, Sequence) and choices and isinstance(choices[0], Mapping) else {}
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    text = _plain_text(message.get("content"))
    if message.get("refusal"):
        return Reading("refused", None, "the model refused", text)
    if choice.get("finish_reason") == "content_filter":
        return Reading("refused", None, "the provider's filter stopped the reply", text)
    if choice.get("finish_reason") in ("length", "max_tokens"):
        return Reading("truncated", None, "the reply was cut at the limit of tokens", text)
    return read_text(text, wire)


def read_text(text: str, wire: type[BaseModel]) -> Reading:
    """The same for the text of a reply that ended by itself."""
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate is no text
    bare = _unwrapped(text)
    try:
        return Reading("ok", wire.model_validate_json(bare, strict=True), "", text)
    except ValidationError as error:
        if "{" not in bare and _REFUSAL.match(bare):
            return Reading("refused", None, "the model refused in prose", text)
        return Reading("invalid", None, _complaint(error) if bare else "the reply is empty", text)


def _plain_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def _unwrapped(text: str) -> str:
    """The reply without a thought in front of it and without the one fence around it."""
    thought = _THOUGHT.match(text)
    text = text[thought.end() if thought else 0 :].strip().removeprefix("\ufeff")
    whole = _FENCED.fullmatch(text)
    if whole:
        return whole[1]
    fenced = [] if text.startswith("{") else _FENCE.findall(text)
    return fenced[0] if len(fenced) == 1 else text


def _complaint(error: ValidationError) -> str:
    """At most five faults, each with its place; without the values, which are the model's words."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(map(str, fault['loc'])) or 'reply'}: {fault['msg']}" for fault in faults[:5]]
    more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
    return "; ".join(lines) + more


def asked_again(messages: tuple[Message, ...], reading: Reading) -> tuple[Message, ...]:
    """The original messages, the rejected reply and what is wrong with it."""
    echo = reading.text if len(reading.text) <= _LONGEST_ECHO else reading.text[:_LONGEST_ECHO] + " [...]"
    demand = f"This reply does not fit the schema: {reading.detail}\nReply again with one JSON object that fits it, and nothing else."
    return (*messages, {"role": "assistant", "content": echo.strip() or "(empty)"}, {"role": "user", "content": demand})


def tokens_of(reply: Mapping[str, Any]) -> tuple[int, int] | None:
    """(prompt, reply) tokens as the reply states them; None if it does not, or says that it took none."""
    usage = reply.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    tokens_in, tokens_out = (n if isinstance(n, int) and not isinstance(n, bool) and n >= 0 else 0 for n in counts)
    return (tokens_in, tokens_out) if tokens_in + tokens_out else None
