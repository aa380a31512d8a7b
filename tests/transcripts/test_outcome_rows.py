"""Outcome rows are read by content; what cannot be read is named with its place. Content is invented."""

import json
from datetime import UTC, datetime

import pytest

from osmia_memory.models import Skip
from osmia_memory.transcripts.outcome_rows import OutcomeRow, instances, read, repo_of

FORMS = {
    "instance to verdict": {"acme__shop-1": True, "acme__shop-2": False},
    "a list of rows": [{"instance_id": "acme__shop-1", "resolved": True}, {"instance_id": "acme__shop-2", "outcome": "failed"}],
    "rows in an object": {
        "total": 2,
        "instances": [{"instance_id": "acme__shop-1", "resolved": True}, {"id": "acme__shop-2", "passed": False}],
    },
    "reports by instance": {"acme__shop-1": {"resolved": True}, "acme__shop-2": {"resolved": False, "patch_applied": True}},
    "lists of ids": {"resolved_ids": ["acme__shop-1"], "unresolved_ids": ["acme__shop-2"]},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same(form: str) -> None:
    """Task, verdict and repository."""
    rows = [r for r in read(json.dumps(FORMS[form]).encode(), "f.json") if isinstance(r, OutcomeRow)]
    assert [(r.instance, r.outcome, r.repo) for r in rows] == [
        ("acme__shop-1", "success", "acme/shop"),
        ("acme__shop-2", "failure", "acme/shop"),
    ]


def test_jsonl_rows_with_figures() -> None:
    """Engine, model, time, cost and duration come along; a broken line is a skip with its number."""
    row = {
        "instanceId": "acme__shop-1",
        "agent": "codex",
        "model": "m",
        "timestamp": "2026-03-22T08:00:00Z",
        "costUsd": 0.5,
        "durationMs": 2000,
        "resolved": True,
    }
    found = list(read(f"{json.dumps(row)}\n{{\n{json.dumps({'resolved': True})}\n".encode(), "f.jsonl"))
    assert isinstance(found[0], OutcomeRow)
    assert (found[0].engine, found[0].at, found[0].cost_usd, found[0].duration_s) == (
        "codex",
        datetime(2026, 3, 22, 8, tzinfo=UTC),
        0.5,
        2.0,
    )
    assert [r.where for r in found if isinstance(r, Skip)] == ["f.jsonl:2", "f.jsonl:3"]


def test_only_successes_say_nothing_of_the_rest() -> None:
    """Such a file needs the instances there were; with them the rest failed."""
    only = json.dumps({"system": "x", "resolvedIds": ["acme__shop-1"]}).encode()
    (skip,) = read(only, "f.json")
    assert isinstance(skip, Skip)
    assert "--of" in skip.reason
    everything = instances(json.dumps(FORMS["instance to verdict"]).encode(), "all.json")
    assert {(r.instance, r.outcome) for r in read(only, "f.json", everything) if isinstance(r, OutcomeRow)} == {
        ("acme__shop-1", "success"),
        ("acme__shop-2", "failure"),
    }


@pytest.mark.parametrize("data", [b"", b"# no rows here", b"[]\n", b"{}", b"\x00\x01", b'{"a": 1}', b"[1, 2]"])
def test_what_is_no_outcome_file_gives_no_row(data: bytes) -> None:
    """Skips with a reason, or nothing; never a row."""
    assert [r for r in read(data, "f") if isinstance(r, OutcomeRow)] == []


@pytest.mark.parametrize(
    ("instance", "repo"),
    [
        ("django__django-11815", "django/django"),
        ("instance_acme__web-shop-04998908ba6721d64eba79ae3b65a351dcfbc5b5-vnan", "acme/web-shop"),
        ("instance_acme__shop-04998908ba6721d64eba79ae3b65a351dcfbc5b5", "acme/shop"),
        ("task 12", None),
    ],
)
def test_the_repository_follows_from_the_id(instance: str, repo: str | None) -> None:
    """Where the id is of the benchmarks' form."""
    assert repo_of(instance) == repo
