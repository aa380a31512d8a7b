"""What the model pass did and what it cost."""

from datetime import datetime, timedelta

import pytest

from osmia_memory import reconcile
from osmia_memory.errors import TenantError
from osmia_memory.store.fact_store import FactStore
from osmia_memory.store.ledger import ChunkState, Request, Spent
from osmia_memory.testing import NOW
from tests.store.builders import TENANT, remember_text

PROMPT = "extract_facts@v1:abc123"
CHUNK = ChunkState("r1:a", PROMPT, "key1", 1, 2, "refused", "a-model", "it said no")
PAID = Request("a-model", "refused", 1000, 20, 0.002, 1.5)
UNKNOWN_PRICE = Request("a-model", "failed", 500, 0, None, 0.1, "503")


def record(store: FactStore, tenant: str, chunk: ChunkState, requests: list[Request], at: datetime = NOW) -> None:
    """One part of a run was asked for."""
    store.record_requests(tenant, chunk.run_id, chunk.prompt, chunk.key, requests, at=at)
    store.record_chunks(tenant, [chunk], at=at)


def test_a_chunk_has_one_state_and_all_its_requests(store: FactStore) -> None:
    """A later attempt replaces the state; what was spent stays spent."""
    record(store, TENANT, CHUNK, [UNKNOWN_PRICE, PAID])
    assert store.pending_chunks(TENANT) == [CHUNK]

    record(store, TENANT, CHUNK._replace(state="ok", detail=""), [PAID])

    assert store.chunk_states(TENANT, ["r1:a", "r1:b"], PROMPT) == {("r1:a", "key1"): "ok"}
    assert store.pending_chunks(TENANT) == []
    assert store.spent()._replace(cost_usd=0) == Spent(3, 2540, 0)
    assert store.spent().cost_usd == pytest.approx(0.004)


def test_another_prompt_has_states_of_its_own(store: FactStore) -> None:
    """What was asked with an earlier version says nothing about this one."""
    record(store, TENANT, CHUNK._replace(state="ok"), [PAID])

    assert store.chunk_states(TENANT, ["r1:a"], "extract_facts@v2:def456") == {}


def test_spending_is_summed_from_a_moment_on_and_for_a_tenant(store: FactStore) -> None:
    """A day's budget is that of the store; a tenant's share can be asked for."""
    record(store, TENANT, CHUNK, [PAID], NOW - timedelta(days=1))
    record(store, TENANT, CHUNK._replace(key="key2"), [PAID])
    record(store, "other", CHUNK, [PAID, PAID])

    assert store.spent(since=NOW).requests == 3
    assert store.spent(since=NOW, tenant=TENANT).requests == 1
    assert store.spent(tenant="other").cost_usd == pytest.approx(0.004)


def test_tenants_do_not_see_each_other(store: FactStore) -> None:
    """States and pending parts are a tenant's own."""
    record(store, "other", CHUNK, [PAID])

    assert store.chunk_states(TENANT, ["r1:a"], PROMPT) == {}
    assert store.pending_chunks(TENANT) == []
    with pytest.raises(TenantError):
        store.pending_chunks("")


def test_a_forgotten_run_leaves_its_cost_only(store: FactStore) -> None:
    """Its states go, the sum of the money does not."""
    remember_text(store, "s1", "Tests are run with `pytest`.")
    (run,) = store.runs(TENANT)
    record(store, TENANT, CHUNK._replace(run_id=run.run_id), [PAID])

    store.forget_run(TENANT, run.run_id, lambda witnesses: reconcile.fold(TENANT, witnesses))

    assert store.pending_chunks(TENANT) == []
    assert store.spent().requests == 1
