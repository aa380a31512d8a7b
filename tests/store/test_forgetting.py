"""What is to be gone is gone, down to the bytes of the file; what others support stays."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from osmia_memory import aging, reconcile
from osmia_memory.errors import StoreLockedError
from osmia_memory.models import Edge
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


# --- decay ------------------------------------------------------------------------------------------------------------


def fading(store: FactStore, days: int) -> dict[str, int]:
    """A decay pass some days after `NOW`."""
    now = NOW + timedelta(days=days)
    return store.prune(lambda fact: aging.is_prunable(fact, now, threshold=0.3), at=now)


def test_decay_pass_removes_text_of_all_tenants(store: FactStore) -> None:
    """What has faded loses its text, quotes, anchors, links and index; the pinned and the strong stay; the pass counts by tenant."""
    other = "incident-triage"
    run, theirs = a_run("s1"), a_run("s1", tenant=other)
    remember(
        store,
        run,
        says(
            run, "Zebrafish fade.", quotes=["zebrafish quote"], decay_rate=0.1, anchors=("file:zebrafish.py",), claim=a_claim("zebrafish")
        ),
        says(run, "Pinned fish stay.", decay_rate=0.1),
        says(run, "Slow fish stay.", decay_rate=0.001),
    )
    remember(store, theirs, says(theirs, "Their zebrafish fade too.", decay_rate=0.1))
    by_text = {f.content: f.fact_id for f in store.facts(TENANT)}
    store.pin(TENANT, by_text["Pinned fish stay."])
    store.link(TENANT, [Edge(by_text["Zebrafish fade."], by_text["Slow fish stay."], "relates_to", 1, "zebrafish reason", NOW)])
    assert fading(store, 1) == {}

    assert fading(store, 30) == {TENANT: 1, other: 1}

    assert {f.content for f in store.facts(TENANT)} == {"Pinned fish stay.", "Slow fish stay."}
    assert store.facts(other) == []
    assert store.search(TENANT, [REPO], ["zebrafish"], 5) == []
    assert store.edges(TENANT) == []
    assert [r.type for r in store.export_rows(other)] == ["run"]
    store.compact()
    assert b"ebrafish" not in bytes_of(store)
    assert fading(store, 30) == {}
    assert store.verify(reconcile.refold) == []


def test_later_evidence_revives_a_pruned_fact_with_its_history(store: FactStore) -> None:
    """The stub keeps who said it and when, so the fact that comes back counts its old witnesses."""
    remember_text(store, "s1", "Fish sleep.")
    remember_text(store, "s2", "Fish sleep.", at=NOW + timedelta(hours=1))
    fading(store, 400)
    (fact_id,) = {*store.facts_of_run(TENANT, a_run("s1").run_id)}
    stub, witnesses = store.state_for(TENANT, [fact_id])[fact_id]
    assert (stub.content, stub.runs, len(witnesses)) == ("", 2, 2)
    assert {w.candidate.content for w in witnesses} == {""}

    remember_text(store, "s3", "Fish sleep.", at=NOW + timedelta(days=401))

    (fact,) = store.facts(TENANT)
    assert (fact.fact_id, fact.content, fact.runs, fact.valid_from) == (fact_id, "Fish sleep.", 3, NOW)
    assert len(store.search(TENANT, [REPO], ["fish"], 5)) == 1
    assert store.verify(reconcile.refold) == []


def test_decay_pass_on_a_missing_store_creates_nothing(tmp_path: Path) -> None:
    """Nothing to do leaves nothing behind."""
    missing = FactStore(tmp_path / "none" / "memory.duckdb")

    assert fading(missing, 1000) == {}
    assert not missing.path.parent.exists()


def test_decay_pass_judges_again_before_it_removes(store: FactStore) -> None:
    """A fact that gained evidence between reading and removing is kept."""
    remember_text(store, "s1", "Fish sleep.")
    asked: list[str] = []

    def prunable_once(fact: object) -> bool:
        asked.append("")
        return len(asked) == 1

    assert store.prune(prunable_once, at=LATER) == {}
    assert len(store.facts(TENANT)) == 1
    assert replace(store.facts(TENANT)[0], recorded_at=None).runs == 1
