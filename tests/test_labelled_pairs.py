"""The labelled pairs of facts in benchmarks/pairs/pairs.jsonl: their form, counts and times, never how reconciliation judges them."""

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).resolve().parents[1] / "benchmarks" / "pairs" / "pairs.jsonl"
PAIRS: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
LEAST = {"same": 60, "supersedes": 45, "contradicts": 30, "conditional": 40, "unrelated": 75}
PLACE = ("branch", "base_commit", "environment")


def of(relation: str) -> list[dict[str, Any]]:
    return [pair for pair in PAIRS if pair["relation"] == relation]


def by_time(pair: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Earlier and later fact; `a` and `b` as they stand if the times are equal."""
    earlier, later = sorted((pair["a"], pair["b"]), key=lambda fact: datetime.fromisoformat(fact["valid_from"]))
    return earlier, later


def test_ids_are_consecutive():
    """Ids number the lines from p301 on, so that no other file of pairs has them."""
    assert [pair["id"] for pair in PAIRS] == [f"p{n}" for n in range(301, 301 + len(PAIRS))]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: str(pair["id"]))
def test_pair_has_the_stated_form(pair):
    """A pair has the fields of its label and two facts of one repository with an aware time before July 2026."""
    closeness = {"closeness"} if pair["relation"] == "same" else set()
    assert set(pair) == {"id", "relation", "close", "a", "b", "why"} | closeness
    assert pair["relation"] in LEAST
    assert pair.get("closeness", "exact") in ("exact", "light", "paraphrase")
    assert isinstance(pair["close"], bool)
    assert pair["why"].endswith(".")
    assert pair["a"]["repo"] == pair["b"]["repo"]
    assert ("claim" in pair["a"]) == ("claim" in pair["b"])
    for fact in (pair["a"], pair["b"]):
        required = {"content", "fact_kind", "repo", "valid_from"}
        assert required <= set(fact) <= required | {"claim", "runs", *PLACE}
        assert fact["fact_kind"] in ("repo_quirk", "failure_pattern", "success_pattern", "general")
        assert fact["repo"].count("/") == 1
        assert (
            datetime.fromisoformat("2026-01-01T00:00:00Z")
            <= datetime.fromisoformat(fact["valid_from"])
            < datetime.fromisoformat("2026-07-01T00:00:00Z")
        )
        assert len(fact.get("claim", "four")) == 4
        assert all(isinstance(part, str) for part in fact.get("claim", []))
        assert fact.get("runs", 1) >= 1


def test_counts_cover_every_label():
    """Every label and closeness has its least number of pairs; most pairs are close, a third or more have claims."""
    labels = Counter(pair["relation"] for pair in PAIRS)
    assert {label: labels[label] >= least for label, least in LEAST.items()} == dict.fromkeys(LEAST, True)
    assert all(count >= 20 for count in Counter(pair["closeness"] for pair in of("same")).values())
    assert sum(pair["close"] for pair in PAIRS) * 2 >= len(PAIRS)
    assert sum(pair["close"] for pair in of("unrelated")) * 4 >= 3 * len(of("unrelated"))
    assert sum("claim" in pair["a"] for pair in PAIRS) * 3 >= len(PAIRS)


def test_no_repository_or_sentence_occurs_in_two_pairs():
    """Pairs share neither repository nor sentence, so that no pair leans on another."""
    assert max(Counter(pair["a"]["repo"] for pair in PAIRS).values()) == 1
    assert max(Counter(content for pair in PAIRS for content in {pair["a"]["content"], pair["b"]["content"]}).values()) == 1


def test_later_fact_comes_second_unless_told():
    """`b` is the earlier fact only where `why` says that the order is reversed, and some pairs are."""
    reversed_ = [pair for pair in PAIRS if by_time(pair)[0] is not pair["a"]]
    assert reversed_ == [pair for pair in PAIRS if "everse order" in pair["why"]]
    assert reversed_


def test_superseding_fact_is_newer_and_as_strong():
    """In `supersedes` the later fact has as many runs as the earlier one, in the same place."""
    for earlier, later in map(by_time, of("supersedes")):
        assert earlier["valid_from"] < later["valid_from"]
        assert later.get("runs", 1) >= earlier.get("runs", 1)
        assert [earlier.get(key) for key in PLACE] == [later.get(key) for key in PLACE]


def test_contradicting_fact_is_not_newer_or_clearly_weaker():
    """In `contradicts` both are of one time, or the later has fewer than half the runs, in the same place."""
    for earlier, later in map(by_time, of("contradicts")):
        assert earlier["valid_from"] == later["valid_from"] or later.get("runs", 1) * 2 < earlier.get("runs", 1)
        assert [earlier.get(key) for key in PLACE] == [later.get(key) for key in PLACE]


def test_claims_agree_with_the_label():
    """One claim in `same`, one slot with two values in `supersedes` and `contradicts`, two slots or places in `conditional`, two slots in `unrelated`."""
    for pair in (pair for pair in PAIRS if "claim" in pair["a"]):
        one, other = pair["a"]["claim"], pair["b"]["claim"]
        one_slot = one[:3] == other[:3]
        one_place = [pair["a"].get(key) for key in PLACE] == [pair["b"].get(key) for key in PLACE]
        agrees = {
            "same": one == other,
            "supersedes": one_slot and one != other,
            "contradicts": one_slot and one != other,
            "conditional": not (one_slot and one_place),
            "unrelated": not one_slot,
        }
        assert agrees[pair["relation"]], pair["id"]
