"""Rows are strict on the way in and canonical on the way out."""

from datetime import UTC, datetime

import pytest

from osmia_memory.errors import RowError
from osmia_memory.store import rows

FACT = {"type": "fact", "content": "Tests are run with `pytest`.", "fact_kind": "repo_quirk", "repo": "acme/shop"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**FACT, "confidnce": 0.5}, "line 3 (fact): unknown field `confidnce`, did you mean `confidence`?"),
        ({**FACT, "xyzzy": 0.5}, "line 3 (fact): unknown field `xyzzy`; `--ignore-unknown` skips such fields"),
        ({**FACT, "witnesses": [{"run": "r1:x"}]}, "unknown field `witnesses.0.run`, did you mean `run_id`?"),
        (
            {**FACT, "claim": {"subjekt": "a", "subject": "b", "attribute": "c", "value": "d"}},
            "unknown field `claim.subjekt`, did you mean `subject`?",
        ),
        ({**FACT, "confidence": 1.5}, "`confidence`: Input should be less than or equal to 1, got 1.5"),
        ({**FACT, "decay_rate": "often"}, "`decay_rate`: Input should be a valid number"),
        (
            {**FACT, "fact_kind": "opinion"},
            "`fact_kind`: Input should be 'success_pattern', 'failure_pattern', 'repo_quirk' or 'general', got 'opinion'",
        ),
        ({**FACT, "content": ""}, "`content`: String should have at least 1 character"),
        ({**FACT, "valid_from": "yesterday"}, "`valid_from`: "),
        ({**FACT, "valid_from": 5}, "`valid_from`: not a time; write it like 2026-05-15T12:00:00Z, got 5"),
        ({"type": "fact", "fact_kind": "general"}, "line 3 (fact): `content` is missing"),
        ({"type": "evidence", "quote": "q", "run_id": "r"}, "`fact_id` is missing"),
        ({"type": "edge", "form": "a", "to": "b", "relation": "relates_to"}, "line 3 (edge): "),
        (
            {"type": "edge", "from": "a", "to": "b", "relation": "likes"},
            "`relation`: Input should be 'relates_to', 'contradicts' or 'supersedes'",
        ),
        ({"type": "run", "engine": "codex"}, "`session_id` is missing"),
        (
            {"type": "facts"},
            "line 3: `type` is 'facts', did you mean `fact`?; known types: fact, evidence, edge, pattern, engine_profile, run",
        ),
        ({"content": "x"}, "line 3: `type` is None; known types"),
        ([1], "line 3: a row is a JSON object, this is list"),
    ],
)
def test_error_names_the_field_and_the_nearest_known_one(row: object, message: str) -> None:
    """Whoever made the row sees where it is, which field, what was given and what is known."""
    with pytest.raises(RowError) as caught:
        rows.parse(row, "line 3")  # type: ignore[arg-type]
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "nonsense", "[1]", "\x00", '{"type": "fact"'])
def test_broken_line_is_a_row_error(text: str) -> None:
    """A cut or empty line is reported with its place."""
    with pytest.raises(RowError, match="line 7"):
        rows.parse(text, "line 7")


def test_unknown_fields_can_be_skipped_but_wrong_ones_cannot() -> None:
    """`ignore_unknown` drops what is unknown, at any depth, and still reports what is wrong."""
    row = rows.parse({**FACT, "extra": 1, "witnesses": [{"run_id": "r1:x", "more": 2}]}, ignore_unknown=True)
    assert isinstance(row, rows.FactRow)
    assert row.witnesses == (rows.WitnessRow(run_id="r1:x"),)

    with pytest.raises(RowError, match="`confidence`"):
        rows.parse({**FACT, "extra": 1, "confidence": "high"}, ignore_unknown=True)


def test_other_spellings_are_understood() -> None:
    """Aliases of older stores, a claim as a list, `pinned` as importance, times without a zone."""
    row = rows.parse(
        {**FACT, "fact_kind": "repo_behaviour", "claim": ["a", "b", "c", "d"], "importance": "pinned", "valid_from": "2026-05-15T12:00:00"}
    )
    assert isinstance(row, rows.FactRow)
    assert row.fact_kind == "repo_quirk"
    assert row.claim == rows.ClaimRow(subject="a", attribute="b", qualifier="c", value="d")
    assert row.pinned
    assert row.valid_from == datetime(2026, 5, 15, 12, tzinfo=UTC)
    other = rows.parse({**FACT, "fact_kind": "engine_capability", "valid_from": "2026-05-15T14:00:00+02:00"})
    assert isinstance(other, rows.FactRow)
    assert (other.fact_kind, other.valid_from) == ("general", row.valid_from)


def test_line_is_canonical() -> None:
    """Whatever the order of fields and the zone of times, equal rows make equal lines, and a line makes the row again."""
    one = rows.parse({**FACT, "valid_from": "2026-05-15T12:00:00Z", "tags": ["a"]})
    other = rows.parse({"tags": ["a"], "valid_from": "2026-05-15T14:00:00.000+02:00", **FACT})

    assert rows.line(one) == rows.line(other)
    assert rows.line(one) == (
        '{"content":"Tests are run with `pytest`.","fact_kind":"repo_quirk","repo":"acme/shop","tags":["a"],"type":"fact",'
        '"valid_from":"2026-05-15T12:00:00Z"}'
    )
    assert rows.parse(rows.line(one)) == one
    edge = rows.parse({"type": "edge", "from": "f1:a", "to": "f1:b", "relation": "relates_to"})
    assert rows.line(edge) == '{"from":"f1:a","relation":"relates_to","to":"f1:b","type":"edge"}'
