"""Knowledge that corrects itself through the ordinary paths: import, query, explain, restore, undo. Content is invented."""

import itertools
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from osmia_memory import aging
from osmia_memory.decaying import decay
from osmia_memory.errors import InputError
from osmia_memory.memory import Memory
from osmia_memory.models import Fact
from osmia_memory.testing import FixedClock
from tests.product import NOW, REPO, a_memory, osmia

TASK = "The dev server does not come up on its port; fix the port of the dev server"


def row(content: str, day: int, **fields: Any) -> dict[str, Any]:
    """A fact row of the shop, observed on that day before now."""
    at = (NOW - timedelta(days=30 - day)).isoformat()
    return {"type": "fact", "content": content, "fact_kind": "repo_quirk", "repo": REPO, "valid_from": at, **fields}


PORTS = [row(f"The dev server listens on port {port}.", day) for day, port in enumerate((8080, 8081, 8082), 1)]
TLS, NO_TLS = row("The dev server needs TLS.", 3), row("The dev server does not need TLS.", 3)


def told(memory: Memory, *rows: dict[str, Any]) -> Memory:
    """The memory, after importing these rows one by one."""
    for one in rows:
        report = memory.import_rows(json.dumps(one).encode(), name="rows")
        assert not report.rejected, report.rejected
    return memory


def current(memory: Memory) -> set[str]:
    """Contents of the current facts."""
    return {f.content for f in memory.facts()}


def the_fact(memory: Memory, part: str) -> Fact:
    """The fact whose content holds `part`, superseded or not."""
    (found,) = [f for f in memory.store.facts(memory.tenant, include_superseded=True) if part in f.content]
    return found


def exported(memory: Memory) -> list[str]:
    """The whole export."""
    return list(memory.export_rows())


def test_only_the_latest_value_reaches_the_block(tmp_path: Path) -> None:
    """Superseded values are in no block and no list, whatever the order of import, and every order exports the same bytes."""
    exports = set()
    for number, order in enumerate(itertools.permutations(PORTS)):
        memory = told(a_memory(tmp_path / str(number)), *order)
        assert current(memory) == {"The dev server listens on port 8082."}
        text = memory.prior_knowledge(TASK, repo=REPO).text
        assert "8082" in text
        assert "8081" not in text
        exports.add("\n".join(exported(memory)))
    assert len(exports) == 1


def test_an_unresolved_contradiction_is_one_line(tmp_path: Path) -> None:
    """Neither side is hidden, and neither is told as if nothing spoke against it."""
    memory = told(a_memory(tmp_path), TLS, NO_TLS)
    text = memory.prior_knowledge("Set up TLS for the dev server", repo=REPO).text
    assert text.count("\n- ") == 1
    assert "says the contrary" in text


def test_a_restored_fact_stays_and_undo_takes_the_restoration_back(tmp_path: Path) -> None:
    """Later evidence for the newer value does not supersede the restored one again; undo leads back to the exact earlier state."""
    memory = told(a_memory(tmp_path), *PORTS[:2])
    before = exported(memory)
    memory.restore(the_fact(memory, "8080").fact_id)
    assert current(memory) == {r["content"] for r in PORTS[:2]}
    told(memory, {**PORTS[1], "content": "The dev server listens on port 8081", "witnesses": [{"run_id": "later"}]})
    assert "The dev server listens on port 8080." in current(memory)

    other = told(a_memory(tmp_path / "other"), *PORTS[:2])
    other.restore(the_fact(other, "8080").fact_id)
    assert exported(other) != before
    other.undo()
    assert exported(other) == before


@pytest.mark.parametrize("what", ["retract", "pin", "edit", "restore a retracted one"])
def test_undo_leads_back_to_the_exact_state(tmp_path: Path, what: str) -> None:
    """Each decision of a person can be taken back; what was superseded by the fact is superseded again."""
    memory = told(a_memory(tmp_path), *PORTS[:2], TLS)
    newest = the_fact(memory, "8081").fact_id
    if what.startswith("restore"):
        memory.retract(newest, "moved")
    before = exported(memory), current(memory)
    match what:
        case "retract":
            memory.retract(newest, "moved")
            assert "The dev server listens on port 8080." in current(memory)
        case "pin":
            memory.pin(newest, True)
        case "edit":
            memory.edit(newest, "The port of the dev server is 8081.")
        case _:
            memory.restore(newest)
    assert (exported(memory), current(memory)) != before
    memory.undo()
    assert (exported(memory), current(memory)) == before
    assert memory.verify() == []


def test_undo_says_what_it_cannot_do(tmp_path: Path) -> None:
    """Nothing to undo, an unknown change, one that was undone, one whose text is gone: an error that says so."""
    memory = a_memory(tmp_path)
    with pytest.raises(InputError, match="nothing to take back"):
        memory.undo()
    told(memory, TLS)
    with pytest.raises(InputError, match="no change to take back"):
        memory.undo()
    memory.pin(the_fact(memory, "TLS").fact_id, True)
    done = memory.undo()
    for number, reason in ((done.change_id, "already"), (9999, "not in the journal")):
        with pytest.raises(InputError, match=reason):
            memory.undo(number)
    memory.forget(repo=REPO)
    with pytest.raises(InputError, match="gone for good"):
        memory.undo()


def test_a_rewording_is_one_line_with_the_runs_of_both(tmp_path: Path) -> None:
    """What two people noted in nearly the same words counts twice and is shown once."""
    first = row("The lint step fails without `node` installed.", 1)
    again = row("Lint step fails without `node` installed", 2, witnesses=[{"run_id": "r2", "observed_at": NOW.isoformat()}])
    memory = told(a_memory(tmp_path), again, first)
    (fact,) = memory.facts()
    assert (fact.content, fact.runs) == (first["content"], 2)
    assert memory.verify() == []
    assert [r.edge.reason for r in memory.history(fact.fact_id)] == ["the same statement in other words"]


def test_history_is_told_as_a_chain(tmp_path: Path) -> None:
    """`explain` shows every value in turn, oldest first, with what replaced it."""
    memory = told(a_memory(tmp_path), *PORTS)
    newest = the_fact(memory, "8082").fact_id
    assert [r.fact.content[-5:-1] for r in memory.history(newest) if r.step == 1] == ["8080", "8081"]
    shown = osmia("explain", newest, "--store", memory.store_path).out
    assert shown.index("8080") < shown.rindex("8081") < shown.rindex("8082")
    assert "superseded by" in shown


def test_a_walk_stops_at_its_depth(tmp_path: Path) -> None:
    """Links are followed step by step; out of range is an error, not everything."""
    links = [{"type": "edge", "from": f"n{n}", "to": f"n{n + 1}", "relation": "relates_to", "reason": "seen together"} for n in range(4)]
    nodes = [row(f"Module `m{n}.py` has a part in the nightly export.", 1, fact_id=f"n{n}") for n in range(5)]
    memory = a_memory(tmp_path)
    memory.import_rows("\n".join(map(json.dumps, [*nodes, *links])).encode(), name="rows")
    start = the_fact(memory, "m0.py").fact_id
    reached = {depth: {r.fact.content.split("`")[1] for r in memory.related(start, depth)} - {"m0.py"} for depth in (1, 2, 4)}
    assert reached == {1: {"m1.py"}, 2: {"m1.py", "m2.py"}, 4: {"m1.py", "m2.py", "m3.py", "m4.py"}}
    for depth in (0, 5):
        with pytest.raises(InputError, match="1 to 4"):
            memory.related(start, depth)


def test_links_do_not_cross_tenants(tmp_path: Path) -> None:
    """The same fact of another tenant is neither superseded nor linked."""
    memory = told(a_memory(tmp_path), PORTS[0])
    other = told(Memory(memory.store_path, "incident-triage", clock=memory.clock), *PORTS[1:])
    assert current(memory) == {"The dev server listens on port 8080."}
    assert current(other) == {"The dev server listens on port 8082."}
    assert all("8080" not in line for line in exported(other))


def test_failure_26_what_is_pinned_survives(tmp_path: Path) -> None:
    """Time, the decay pass, a newer value, a re-wording: a pinned fact stays as it is; saving a known text as pinned pins it."""
    memory = told(a_memory(tmp_path), PORTS[0], TLS)
    told(memory, {**PORTS[0], "pinned": True})
    (pinned,) = [f for f in memory.facts() if f.pinned]
    assert pinned.content == PORTS[0]["content"]
    told(memory, PORTS[1], row("Dev server listens on port 8080", 9))
    much_later = NOW + timedelta(days=4000)
    assert decay(memory.store, memory.settings, much_later).pruned
    late = Memory(memory.store_path, memory.tenant, clock=FixedClock(much_later))
    assert PORTS[0]["content"] in current(late)
    assert PORTS[0]["content"].rstrip(".") in late.prior_knowledge(TASK, repo=REPO).text
    kept = late.store.facts_by_id(late.tenant, [pinned.fact_id])[0]
    assert aging.current_confidence(kept, much_later) == kept.confidence
    assert TLS["content"] not in current(late)
