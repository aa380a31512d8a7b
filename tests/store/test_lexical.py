"""BM25 over postings, against a slow obvious version."""

import math
import random
from datetime import timedelta

from osmia_memory import reconcile, similarity
from osmia_memory.models import Fact
from osmia_memory.store.fact_store import FactStore
from osmia_memory.testing import NOW, a_run
from tests.store.builders import REPO, TENANT, remember, remember_text, says

WORDS = "cart order stock price tax invoice ledger queue worker retry cache token session login export import schema migrate rollback deploy".split()


def bm25(facts: list[Fact], terms: dict[str, float], k1: float = 0.6, b: float = 0.3, typical: float = 30) -> list[tuple[str, float]]:
    """Robertson's formula, term by term over all documents."""
    documents = {f.fact_id: similarity.index_terms(f) for f in facts}
    scores = {}
    for fact_id, document in documents.items():
        length, score = sum(document.values()), 0.0
        for term, weight in terms.items():
            frequency = sum(term in d for d in documents.values())
            if term in document:
                rarity = math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
                tf = document[term]
                score += weight * rarity * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / typical))
        if any(term in document for term in terms):
            scores[fact_id] = round(score, 6)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def some_facts(store: FactStore, count: int, *, seed: int = 7) -> None:
    """Facts of random words, in two repositories."""
    choose = random.Random(seed)
    for n in range(count // 10):
        run = a_run(f"s{n}", at=NOW + timedelta(minutes=n))
        sentences = [" ".join(choose.choices(WORDS, k=choose.randint(3, 12))) + f" item{n * 10 + k}" for k in range(10)]
        remember(store, run, *(says(run, s, owner=choose.choice(["acme/shop", "acme/other"])) for s in sentences))


def test_scores_are_those_of_the_formula(store: FactStore) -> None:
    """Ranking and scores equal the slow version, before and after merging, within one owner and over two."""
    some_facts(store, 120)
    queries = [{"cart": 1.0}, {"cart": 1.5, "retry": 0.5, "unheard": 1.0}, dict.fromkeys(WORDS, 1.0)]
    for owners in ([REPO], [REPO, ("repo", "acme/other")]):
        facts = store.facts(TENANT, owners)
        for weights in queries:
            expected = bm25(facts, weights)
            assert store.search(TENANT, owners, weights, 1000) == expected
            assert store.search(TENANT, owners, weights, 3) == expected[:3]
    unmerged = store.search(TENANT, [REPO], WORDS, 1000)
    assert store.tail_length() == 120

    store.merge_postings()

    assert store.tail_length() == 0
    assert store.search(TENANT, [REPO], WORDS, 1000) == unmerged
    some_facts(store, 40, seed=8)  # new versions of no run: all unchanged
    remember_text(store, "another", "cart retry on the worker")
    assert store.search(TENANT, [REPO], ["cart", "retry"], 1000) == bm25(store.facts(TENANT, [REPO]), {"cart": 1.0, "retry": 1.0})


def test_statistics_count_current_facts(store: FactStore) -> None:
    """Document frequencies are those of the owners' current facts; terms nobody holds are left out."""
    remember_text(store, "s1", "The cart retries.", "The cart waits.", "The stock waits.")
    fact_id = remember_text(store, "s2", "A cart that is wrong.")[0]
    store.retract(TENANT, fact_id, "wrong")

    found = store.term_statistics(TENANT, [REPO], ["cart", "stock", "unheard"])

    assert found == (3, {"cart": 2, "stock": 1})
    assert store.term_statistics(TENANT, [REPO], []) == (3, {})
    assert store.term_statistics(TENANT, [("repo", "acme/none")], ["cart"]) == (0, {})


def test_no_term_and_no_owner_find_nothing(store: FactStore) -> None:
    """An empty question has an empty answer."""
    remember_text(store, "s1", "The cart retries.")

    assert store.search(TENANT, [REPO], [], 5) == []
    assert store.search(TENANT, [], ["cart"], 5) == []
    assert store.search(TENANT, [("engine", "acme/shop")], ["cart"], 5) == []


def test_facts_that_left_are_not_found(store: FactStore) -> None:
    """Retired, retracted and edited-away words find nothing, merged or not."""
    kept, retracted, edited = remember_text(store, "s1", "The cart retries.", "The cart waits.", "The cart sleeps.")
    remember_text(store, "s2", "The cart leaves.")
    store.merge_postings()
    store.retract(TENANT, retracted, "wrong")
    store.edit(TENANT, edited, "The basket sleeps.")
    remember(store, a_run("s2", version="v2"))

    for _ in range(2):
        assert [fact_id for fact_id, _ in store.search(TENANT, [REPO], ["cart"], 9)] == [kept]
        assert [fact_id for fact_id, _ in store.search(TENANT, [REPO], ["basket"], 9)] == [edited]
        store.merge_postings()
    assert store.verify(reconcile.refold) == []
    store.edit(TENANT, edited, None)
    assert len(store.search(TENANT, [REPO], ["cart"], 9)) == 2


def test_reinforcement_does_not_touch_the_index(store: FactStore) -> None:
    """A fact with the same words keeps its postings: a hook that reinforces adds nothing to the tail."""
    remember_text(store, "s1", "The cart retries.")
    store.merge_postings()

    remember_text(store, "s2", "The cart retries.")

    assert store.tail_length() == 0
    assert len(store.search(TENANT, [REPO], ["cart"], 9)) == 1


def test_reindexing_gives_the_same_answers(store: FactStore) -> None:
    """The index can be built anew from the facts."""
    some_facts(store, 40)
    before = store.search(TENANT, [REPO], WORDS, 1000)

    assert store.reindex() == 40

    assert store.search(TENANT, [REPO], WORDS, 1000) == before
    assert store.tail_length() == 0
    assert store.verify(reconcile.refold) == []
