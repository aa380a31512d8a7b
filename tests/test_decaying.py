"""The decay pass: what goes, what stays, and that how often it runs changes nothing."""

import json
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from osmia_memory import aging
from osmia_memory.config import Settings
from osmia_memory.decaying import DecayThread, decay
from osmia_memory.memory import Memory
from osmia_memory.testing import FixedClock
from tests.product import NOW, REPO, a_memory, everything_in, osmia

LATE = NOW + timedelta(days=400)


def row(content: str, **fields: object) -> bytes:
    """A fact of the shop."""
    return json.dumps({"type": "fact", "content": content, "fact_kind": "repo_quirk", "repo": REPO, **fields}).encode()


FADING = row("The staging host is zebra-quince.", decay_rate=0.05)
LASTING = row("The nightly export takes its columns from `columns.yaml`.", decay_rate=0.001)
PINNED = row("Invoices are rounded per line.", decay_rate=0.05, pinned=True)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """A fading, a lasting and a pinned fact, and one of another tenant."""
    memory = a_memory(tmp_path)
    for one in (FADING, LASTING, PINNED):
        memory.import_rows(one, name="rows")
    Memory(memory.store_path, "incident-triage", clock=memory.clock).import_rows(FADING, name="rows")
    return memory


def confidences(memory: Memory, now: datetime) -> dict[str, float]:
    """Of all facts, by a process that has just started."""
    fresh = Memory(memory.store_path, memory.tenant, clock=FixedClock(now))
    return {f.fact_id: aging.current_confidence(f, now) for f in fresh.facts()}


def test_faded_text_is_gone_of_every_tenant(memory: Memory) -> None:
    """Not a byte is left in the file; what lasts and what is pinned stays; a second pass finds nothing."""
    assert b"zebra-quince" in everything_in(memory.store_path)
    assert decay(memory.store, Settings(), LATE).pruned == {"incident-triage": 1, "ticketing": 1}
    assert b"zebra-quince" not in everything_in(memory.store_path)
    assert len(memory.facts()) == 2
    assert decay(memory.store, Settings(), LATE).pruned == {}
    assert memory.verify() == []


def test_a_pass_that_lost_the_store_is_finished_by_the_next(memory: Memory) -> None:
    """Text that was removed before another process took the store has bytes in the file until a later pass, though nothing fades any more."""
    memory.store.prune(lambda fact: "zebra" in fact.content, at=LATE)  # and no more: it was killed, or could not have the file

    assert decay(memory.store, Settings(), NOW).pruned == {}

    assert not memory.store.has_unerased()
    assert b"zebra-quince" not in memory.store_path.read_bytes()


@pytest.mark.slow
def test_failure_16_often_or_once_is_the_same(tmp_path: Path) -> None:
    """One pass or a thousand at one clock, with restarts between: identical confidences, and the pinned fact stays."""
    found = []
    for passes in (1, 1000):
        memory = a_memory(tmp_path / str(passes))
        for one in (FADING, LASTING, PINNED):
            memory.import_rows(one, name="rows")
        for n in range(passes):
            store = memory.store if n % 100 else Memory(memory.store_path, "ticketing").store
            decay(store, Settings(), LATE)
        found.append(confidences(memory, LATE))
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_only_the_pass_prunes(memory: Memory) -> None:
    """Opening, importing and asking leave what has faded where it is; it is only not shown."""
    late = Memory(memory.store_path, "ticketing", clock=FixedClock(LATE))
    assert late.prior_knowledge("restart the staging host zebra-quince", repo=REPO).text == ""
    late.import_rows(row("The docs are built by `make docs`."), name="rows")
    assert b"zebra-quince" in everything_in(memory.store_path)


def test_later_evidence_revives_with_history(memory: Memory) -> None:
    """A pruned fact that is seen again is back, first observed when it was first observed."""
    decay(memory.store, Settings(), LATE)
    again = row("The staging host is zebra-quince.", decay_rate=0.05, witnesses=[{"run_id": "r9", "observed_at": LATE.isoformat()}])
    Memory(memory.store_path, "ticketing", clock=FixedClock(LATE)).import_rows(again, name="rows")
    (fact,) = [f for f in memory.facts() if "zebra" in f.content]
    assert (fact.valid_from, fact.last_seen, fact.runs) == (NOW, LATE, 2)


def test_the_command_says_what_it_did(memory: Memory) -> None:
    """A dry run counts and writes nothing; a missing store is an error."""
    said = osmia("decay", "--dry-run", "--now", LATE.isoformat(), "--store", memory.store_path).out
    assert said == "would prune: 1 of incident-triage, 1 of ticketing\n"
    assert len(memory.facts()) == 3
    assert osmia("decay", "--now", LATE.isoformat(), "--store", memory.store_path).out.startswith("pruned: 1 of incident-triage")
    assert osmia("decay", "--store", memory.store_path.with_name("none")).status == 1
    missing = osmia("show", "f1:", "--store", memory.store_path)
    assert missing.status == 1


def test_a_pruned_fact_is_told_from_an_unknown_one(memory: Memory) -> None:
    """`show` says when it was pruned."""
    fact_id = next(f.fact_id for f in memory.facts() if "zebra" in f.content)
    decay(memory.store, Settings(), LATE)
    assert f"was pruned at {LATE:%Y-%m-%d}" in osmia("show", fact_id, "--store", memory.store_path).err


def test_the_thread_prunes_until_it_is_stopped(memory: Memory) -> None:
    """It works beside a reader, ends within its timeout, and leaves no thread behind."""
    thread = DecayThread(memory.store, Settings(), FixedClock(LATE), interval_seconds=0.02)
    with thread:
        for _ in range(250):
            if len(memory.facts()) == 2:
                break
            time.sleep(0.02)
    assert len(memory.facts()) == 2
    assert "osmia-memory-decay" not in {t.name for t in threading.enumerate()}


def test_a_failing_pass_is_logged_and_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A store that is no store does not end the thread, nor the process."""
    path = tmp_path / "memory.duckdb"
    path.write_bytes(b"no database at all" * 100)
    with DecayThread(Memory(path, "ticketing").store, Settings(), FixedClock(LATE), interval_seconds=0.02):
        for _ in range(250):
            if len(caplog.records) >= 2:
                break
            time.sleep(0.02)
    assert len(caplog.records) >= 2
    assert "tried again" in caplog.messages[0]
