"""Which jobs run next."""

from datetime import datetime

from harbor_queue.storage import Job, Store


def next_batch(store: Store, now: datetime, size: int) -> list[Job]:
    """Up to `size` due jobs, the tenants in turn, so that no tenant waits for another's backlog."""
    waiting: dict[str, list[Job]] = {}
    for job in store.due(now):
        waiting.setdefault(job.tenant, []).append(job)
    batch: list[Job] = []
    tenants = set(waiting)
    while tenants and len(batch) < size:
        for tenant in tenants.copy():
            if len(batch) < size:
                batch.append(waiting[tenant].pop(0))
            if not waiting[tenant]:
                tenants.discard(tenant)
    return batch
