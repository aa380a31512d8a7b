from datetime import timedelta

from fakes import FakeClock
from harbor_queue.storage import Job


def test_due_jobs_come_in_order(store):
    clock = FakeClock()
    store.put(Job("b", "acme", "{}", clock.now()))
    store.put(Job("a", "acme", "{}", clock.now() - timedelta(minutes=1)))
    assert [job.id for job in store.due(clock.now())] == ["a", "b"]


def test_finished_jobs_are_not_due(store):
    clock = FakeClock()
    job = Job("a", "acme", "{}", clock.now())
    store.put(job)
    store.finish(job, clock.now())
    assert store.due(clock.now()) == []


def test_requeued_job_waits(store):
    clock = FakeClock()
    job = Job("a", "acme", "{}", clock.now())
    store.put(job)
    store.requeue(job, clock.now() + timedelta(minutes=1))
    assert store.due(clock.now()) == []
    clock.advance(minutes=1)
    assert [job.id for job in store.due(clock.now())] == ["a"]
