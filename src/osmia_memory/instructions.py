"""Whether a stored text tells its reader what to do. Text found in transcripts may be written to be obeyed; memory only reports.

Knows nothing about ranking or rendering. Pure.
"""

import re
import unicodedata
from typing import Literal

_READ_CHARS = 5000  # far more than is ever shown of one text

_LEAD = r"(?:^|[.;:!?>]\s*|[-–—]\s+)(?:please\s+|always\s+|never\s+|just\s+|simply\s+|first\s*,?\s+|now\s+|you\s+(?:must|should|have\s+to|need\s+to)\s+|make\s+sure\s+(?:to|you)\s+)*"
# Kept as text: `re` compiles and remembers them at their first use, and importing this module costs nothing.
_ORDERS = (
    # against what the reader was told before
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.]{0,40}\b(?:previous|prior|above|earlier|preceding|all|any|other|system|these|your)\b"
    r"[^.]{0,30}\b(?:instruction|rule|prompt|guideline|directive|message|context|constraint|guard ?rail)s?\b",
    r"\b(?:you are now|from now on,? you|new instructions?\s*:|system prompt|developer mode|jailbreak|act as (?:an?|the)\b|pretend (?:to be|you))",
    r"\b(?:do not|don't|never|without)\s+(?:tell|inform|mention|reveal|ask|notify|alert|warn)\w*\s+(?:\w+\s+){0,4}(?:user|human|reviewer|operator|maintainer|anyone)\b",
    # code from elsewhere, data to elsewhere
    r"\b(?:curl|wget|iwr|irm|invoke-webrequest|fetch)\b[^|]{0,200}\|\s*(?:sudo\s+)?(?:\S*/)?(?:(?:ba|z|da|k|fi)?sh|python3?|node|perl|ruby|iex)\b",
    r"\bbase64\s+(?:-d|-D|--decode)\b[^|]{0,80}\|\s*\S*sh\b|\b(?:eval|source|bash\s+<)\s*[\"'(<$]+\s*(?:\()?\s*(?:curl|wget)\b",
    r"\b(?:send|post|upload|e-?mail|forward|leak|exfiltrate|transmit|publish)\b[^.]{0,60}"
    r"\b(?:secret|token|password|credential|api[ -]?key|private key|\.env|environment variable)s?\b[^.]{0,60}\b(?:to|at|into)\b",
    # safeguards off
    _LEAD + r"(?:disable|deactivate|turn\s+off|switch\s+off|skip|bypass|suppress|ignore|remove|trust)\b[^.]{0,60}"
    r"\b(?:tls|ssl|certificate|verif\w+|signature|authenticat\w+|authori[sz]\w+|sandbox\w*|security|safety|permission|firewall|audit\w*|hooks?|review)\b",
    _LEAD
    + r"(?:use|run|set|add|pass|commit|push|export|execute|call|do)\b[^.]{0,80}(?:--no-verify\b|--insecure\b|verify\s*=\s*false\b|--dangerously\S+"
    r"|--no-sandbox\b|stricthostkeychecking[ =]no|git_ssl_no_verify|node_tls_reject_unauthorized|chmod\s+(?:-r\s+)?0?777|rm\s+-\w*r\w*f?\s+[~/$])",
)
_ADVICE = r"""(?ix)^\W*(?:
      (?:please|always|never|do\s+not|don't|must|should|remember|ensure|make\s+sure|you\s+(?:must|should|can|need|have))\b
    | (?:add|avoid|call|change|check|clear|close|commit|compare|copy|create|delete|disable|download|edit|enable|exclude|execute|export|fetch|fix|follow
        |get|give|ignore|include|install|keep|leave|limit|link|list|load|look|move|open|pass|pick|prefer|pull|push|put|quote|read|rebuild|regenerate
        |remove|rename|replace|rerun|reset|restart|rewrite|run|save|search|send|set|skip|split|start|stop|store|switch|take|treat|trust|try|turn|update
        |use|verify|wait|watch|wrap|write)\s+(?!is\b|are\b|was\b|were\b|has\b|fails?\b|runs?\b|needs?\b|must\b|does\b|may\b|can\b)
    )"""


def instruction_kind(text: str) -> Literal["order", "advice"] | None:
    """Whether a text tells its reader what to do: an order that no observation would give, or advice worded as an imperative."""
    plain = visible(text)[:_READ_CHARS]
    if any(re.search(order, plain, re.IGNORECASE) for order in _ORDERS):
        return "order"
    return "advice" if re.match(_ADVICE, plain) else None


# --- what a reader sees -----------------------------------------------------------------------------------------------

# Letters by category, invisible in fact; braille blank; variation selectors.
_INVISIBLE = re.compile("[\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def visible(text: str) -> str:
    """`text` without control, format, surrogate, private and unassigned characters; any white space is one space."""
    shown = _INVISIBLE.sub("", text)
    if not shown.isascii() or not shown.isprintable():
        shown = "".join(_replacement(c) for c in shown)
    return " ".join(shown.split())


def _replacement(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp", "Zs"):
        return " "
    return "" if category[0] == "C" else character
