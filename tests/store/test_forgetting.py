"""What is to be gone is gone, down to the bytes of the file; what others support stays."""

from datetime import timedelta

import pytest

from osmia_memory import reconcile
from osmia_memory.errors import StoreLockedError
from osmia_memory.store import rows
from osmia_memory.store.fact_store import FactStore
from osmia_memory.testing import NOW, a_run
from tests.store.builders import REPO, TENANT, a_claim, remember, remember_text, says

FOLD = reconcile.refold(TENANT)
LATER = NOW + timedelta(days=2)


def bytes_of(store: FactStore) -> bytes:
    """Everything that is in the folder of the store."""
    return b"".join(p.read_bytes() for p in sorted(store.path.parent.iterdir()) if p.is_file())


def test_forgotten_run_is_really_gone(store: FactStore) -> None:
    """Text, quotes, names, index and the run leave the file itself; a control run keeps all of its own."""
    kept, gone = a_run("s1", title="kept title"), a_run("s2", title="zebrafish title", labels=("zebrafish",), at=LATER)
    remember(store, kept, says(kept, "The giraffe is fed with `make feed`.", quotes=["giraffe quote"]), vocabulary=["giraffe.py"])
    remember(
        store, gone, says(gone, "The zebrafish is fed with `make zebrafish`.", quotes=["zebrafish quote"]), vocabulary=["zebrafish.py"]
    )
    store.merge_postings()
    assert b"zebrafish" in bytes_of(store)

    done = store.forget_run(TENANT, gone.run_id, FOLD, at=NOW, who="ada")

    assert done == (1, 1, 0)
    assert b"zebrafish" not in bytes_of(store)
    assert b"giraffe" in bytes_of(store)
    assert [r.run_id for r in store.runs(TENANT)] == [kept.run_id]
    assert [f.content for f in store.facts(TENANT)] == ["The giraffe is fed with `make feed`."]
    assert store.terms_known(TENANT, "acme/shop", ["zebrafish.py", "giraffe.py"]) == {"giraffe.py"}
    assert [(c.what, c.subject, c.who) for c in store.changes(TENANT)] == [("forget_run", gone.run_id, "ada")]
    assert store.verify(reconcile.refold) == []
    assert store.path.stat().st_mode & 0o777 == 0o600


def test_fact_of_several_runs_is_folded_from_the_rest(store: FactStore) -> None:
    """Confidence, times and wording are those of a memory in which the run never was."""
    without = FactStore(store.path.parent / "without" / "memory.duckdb")
    claim = a_claim("pytest")
    for n in range(3):
        run = a_run(f"s{n}", at=NOW + timedelta(hours=n))
        for each in [store] if n == 1 else [store, without]:
            remember(each, run, says(run, f"Tests are run with `pytest` ({n}).", claim=claim, at=NOW + timedelta(hours=n)))

    done = store.forget_run(TENANT, a_run("s1").run_id, FOLD)

    assert done == (1, 0, 1)
    assert store.states(TENANT) == without.states(TENANT)
    assert [rows.line(r) for r in store.export_rows(TENANT)] == [rows.line(r) for r in without.export_rows(TENANT)]
    assert store.search(TENANT, [REPO], ["pytest"], 5) == without.search(TENANT, [REPO], ["pytest"], 5)
    assert store.verify(reconcile.refold) == []


def test_what_people_set_stays_on_a_fact_that_stays(store: FactStore) -> None:
    """Forgetting one of two runs takes neither pin nor wording from the fact."""
    (fact_id,) = remember_text(store, "s1", "Tests are run with `pytest`.")
    remember_text(store, "s2", "Tests are run with `pytest`.")
    store.pin(TENANT, fact_id)
    store.edit(TENANT, fact_id, "Run `pytest -q`.")

    store.forget_run(TENANT, a_run("s2").run_id, FOLD)

    (fact,) = store.facts(TENANT)
    assert (fact.pinned, fact.content, fact.runs) == (True, "Run `pytest -q`.", 1)
    assert store.verify(reconcile.refold) == []


def test_forgotten_run_can_be_read_again(store: FactStore) -> None:
    """Forgetting leaves no tombstone: the same transcript, given again, is stored again."""
    remember_text(store, "s1", "Tests are run with `pytest`.")
    before = store.export_rows(TENANT)
    store.forget_run(TENANT, a_run("s1").run_id, FOLD)
    assert store.export_rows(TENANT) == []

    remember_text(store, "s1", "Tests are run with `pytest`.")

    assert store.export_rows(TENANT) == before


def test_unknown_run_is_nothing_to_forget(store: FactStore) -> None:
    """No run, no change, no line in the journal."""
    remember_text(store, "s1", "Tests are run with `pytest`.")

    assert store.forget_run(TENANT, "r1:unknown", FOLD) == (0, 0, 0)
    assert store.changes(TENANT) == []


def test_forgotten_repository_takes_all_it_owns(store: FactStore) -> None:
    """Its runs, its facts (those saved by hand too) and links go; what they said of the engine and another repository's goes on without them."""
    for n, repo in enumerate(["acme/zebrafish", "acme/shop", "acme/zebrafish"]):
        run = a_run(f"s{n}", repo=repo, title=f"in {repo}")
        remember(
            store,
            run,
            says(run, f"Tests of {repo} are run with `pytest`.", owner=repo),
            says(run, "The engine forgets its folder.", scope="engine", owner="codex"),
        )
    by_hand = rows.parse({"type": "fact", "content": "The zebrafish is shy.", "fact_kind": "general", "repo": "acme/zebrafish"})
    pattern = rows.parse({"type": "pattern", "description": "Zebrafish tasks succeed.", "group": {"repo": "acme/zebrafish"}})
    store.import_rows(TENANT, [by_hand, pattern], FOLD, recorded_at=NOW)
    assert store.known_repo(TENANT, "acme/zebrafish")

    done = store.forget_repo(TENANT, "acme/zebrafish", FOLD)

    assert done == (2, 2, 1)
    assert not store.known_repo(TENANT, "acme/zebrafish")
    engine, shop = sorted(store.facts(TENANT), key=lambda f: f.scope)
    assert (engine.content, engine.runs) == ("The engine forgets its folder.", 1)
    assert shop.owner == "acme/shop"
    assert store.imported_statistics(TENANT) == ([], [])
    assert bytes_of(store).count(b"zebrafish") == 1  # the journal says which repository
    assert store.verify(reconcile.refold) == []


def test_forgetting_waits_for_nobody_within_its_own_session(store: FactStore) -> None:
    """The file cannot be written anew while it is open here; that is an error, not a hang."""
    store.lock_wait_seconds = 0.2
    remember_text(store, "s1", "Tests are run with `pytest`.")

    with store.session(write=True), pytest.raises(StoreLockedError, match="this process"):
        store.compact()


def test_compaction_keeps_everything(store: FactStore) -> None:
    """A rewritten file has the same content, schema and permissions."""
    remember_text(store, "s1", *(f"Part {n} is built with `make`." for n in range(30)))
    store.pin(TENANT, store.facts(TENANT)[0].fact_id)
    before = (
        store.export_rows(TENANT, recorded=True),
        store.generation(),
        store.changes(TENANT),
        store.search(TENANT, [REPO], ["make"], 50),
    )

    store.compact()

    assert (
        store.export_rows(TENANT, recorded=True),
        store.generation(),
        store.changes(TENANT),
        store.search(TENANT, [REPO], ["make"], 50),
    ) == before
    remember_text(store, "s1", "Part 1 is built with `make`.", version="v2")
    assert len(store.facts(TENANT)) == 1
