"""Completer: asks a model for one structured reply, and accounts for every HTTP request that it took.

One protocol and one implementation, over instructor (which shapes a request for a response model) and litellm (which reaches the
provider). Both are imported when the first call is made, and set up so that they fetch, print and write nothing of their own. Every
retry is decided in `completer`, theirs are off. Knows nothing of prompts, facts or stores.
"""

from osmia_memory.llm.completer import LiteLlmCompleter
from osmia_memory.llm.contract import Attempt, Completer, Completion, Estimate, Message, Price, Request, State
from osmia_memory.llm.reply import Reading, read_reply, read_text, tokens_of

__all__ = [
    "Attempt",
    "Completer",
    "Completion",
    "Estimate",
    "LiteLlmCompleter",
    "Message",
    "Price",
    "Reading",
    "Request",
    "State",
    "read_reply",
    "read_text",
    "tokens_of",
]
