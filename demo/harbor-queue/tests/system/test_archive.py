import subprocess
from datetime import timedelta

from fakes import FakeClock
from harbor_queue import export
from harbor_queue.storage import Job


def finish_one(store, clock):
    job = Job("a", "acme", "{}", clock.now())
    store.put(job)
    store.finish(job, clock.now())


def test_archive_counts_finished_jobs(store, tmp_path):
    clock = FakeClock()
    finish_one(store, clock)
    assert export.archive(store, tmp_path / "done.db", clock.now() - timedelta(hours=1)) == 1


def test_archive_opens_in_the_sqlite_shell(store, tmp_path):
    clock = FakeClock()
    finish_one(store, clock)
    export.archive(store, tmp_path / "done.db", clock.now() - timedelta(hours=1))
    shell = subprocess.run(["sqlite3", str(tmp_path / "done.db"), "select id from done"], capture_output=True, text=True, check=True)
    assert shell.stdout == "a\n"
