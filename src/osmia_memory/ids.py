"""Content ids: canonical JSON -> tagged hash. The identity contract; knows nothing of storage."""

import hashlib
import json
import re
from typing import Any

from osmia_memory.models import Claim

_DIGITS = 24  # 96 bits: no collision among 10^12 ids with probability above 10^-5


def canonical(value: Any) -> str:
    """JSON with sorted keys and no insignificant white space; equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def content_id(tag: str, value: Any) -> str:
    """`<tag>:<24 hex>` of the canonical JSON of `value`."""
    data = canonical(value).encode("utf-8", "surrogatepass")
    return f"{tag}:{hashlib.sha256(data).hexdigest()[:_DIGITS]}"


def normalised(content: str) -> str:
    """Content as compared for identity: white space folded, letter case and a final full stop aside.

    Numbers, paths and negation stay: they make two similar sentences different facts.
    """
    return re.sub(r"\s+", " ", content).strip().rstrip(".").casefold()


def fact_id(tenant_id: str, scope: str, owner: str, claim: Claim | None, content: str) -> str:
    """Id of a fact: its claim with its value, or its normalised content where there is no claim."""
    what: Any = list(claim) if claim is not None else normalised(content)
    return content_id("f1", [tenant_id, scope, owner, what])


def run_id(tenant_id: str, engine: str, session_id: str, segment: str = "") -> str:
    """Id of a run: (tenant, engine, session or instance id, segment)."""
    return content_id("r1", [tenant_id, engine, session_id, segment])
