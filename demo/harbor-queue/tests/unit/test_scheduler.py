from datetime import timedelta

from fakes import FakeClock
from harbor_queue.scheduler import next_batch
from harbor_queue.storage import Job


def fill(store, clock):
    for n, tenant in enumerate(["acme", "birch", "cedar"]):
        for k in range(2):
            store.put(Job(f"{tenant}-{k}", tenant, "{}", clock.now() + timedelta(seconds=n)))
    clock.advance(minutes=1)


def test_no_tenant_is_served_twice_before_another(store):
    clock = FakeClock()
    fill(store, clock)
    assert {job.tenant for job in next_batch(store, clock.now(), 3)} == {"acme", "birch", "cedar"}


def test_longest_waiting_tenant_is_in_the_batch(store):
    clock = FakeClock()
    fill(store, clock)
    assert "acme" in [job.tenant for job in next_batch(store, clock.now(), 2)]


def test_nothing_due(store):
    assert next_batch(store, FakeClock().now(), 5) == []
