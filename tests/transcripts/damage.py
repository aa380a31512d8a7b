"""Damage that a file may have, for readers' property tests."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Transcript
from osmia_memory.transcripts.read import ReadOptions, Source, read

JUNK = (b"", b"\0\0", b"\xff\xfe", b"}{", b"\n", b'"', b"\\ud800", b"[" * 3000, b"null", b"1e999", b"> ", b"#### \n")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=9)
    | st.sampled_from(["user", "assistant", "text", "tool_use", "2026-03-01T10:00:00Z"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "content", "id", "name", "input", "role", "output"]), inner, max_size=4)
    ),
    max_leaves=8,
)


def cut_somewhere(data: st.DataObject, sample: bytes) -> bytes:
    """The sample with a piece replaced by junk."""
    start = data.draw(st.integers(0, len(sample)))
    end = data.draw(st.integers(start, len(sample)))
    return sample[:start] + data.draw(st.sampled_from(JUNK)) + sample[end:]


def changed_somewhere(data: st.DataObject, value: Any) -> Any:
    """A copy of `value` with any value in the place of one inside it."""
    changed = inner = deepcopy(value)
    spot = data.draw(st.sampled_from(list(_spots(value))))
    for key in spot[:-1]:
        inner = inner[key]
    inner[spot[-1]] = data.draw(VALUES)
    return changed


def _spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from _spots(inner, (*path, key))


def read_if_possible(sample: bytes) -> list[Transcript]:
    """What is read of it, well formed; nothing if it is refused in words."""
    try:
        found = read(Source("f", sample), ReadOptions("ticketing"))
    except TranscriptError:
        return []
    for transcript in found:
        assert [e.index for e in transcript.events] == list(range(len(transcript.events)))
        assert all(e.answers is None or e.answers < e.index for e in transcript.events)
        assert {type(e.text) for e in transcript.events} <= {str}
        assert {type(e.exit_code) for e in transcript.events} | {type(e.duration_s) for e in transcript.events} <= {int, float, type(None)}
        assert {type(e.origin) for e in transcript.events} | {type(e.tool) for e in transcript.events} <= {str, type(None)}
        assert {type(p) for e in transcript.events for p in e.paths} <= {str}
    return found


ODD: tuple[Any, ...] = (None, True, 7, -1.5, "", "odd", [], [[]], {}, {"type": "odd"}, [None, 3, "x", {"text": 1}])


def survives_damage(sample: bytes) -> None:
    """Cut or broken at many places, each with some junk."""
    for at in range(0, len(sample), max(1, len(sample) // 60)):
        for junk in (b"", b"\0\0", b"}{", b"\xff\n", b"[["):
            read_if_possible(sample[:at] + junk)
            read_if_possible(sample[:at] + junk + sample[at + 5 :])


def survives_odd_values(value: Any, as_lines: bool) -> None:
    """Each odd value in each place of `value`, which is written as one document or as lines."""
    for odd in _odd_versions(value):
        lines = odd if as_lines and isinstance(odd, list) else [odd]
        read_if_possible(b"\n".join(json.dumps(line).encode() for line in lines))


def _odd_versions(value: Any) -> Iterator[Any]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        for odd in (*ODD, *_odd_versions(inner)):
            copy = dict(value) if isinstance(value, dict) else list(value)
            copy[key] = odd
            yield copy
