from fakes import FakeClock
from harbor_queue import cli


def harbor(capsys, *argv):
    status = cli.main([str(word) for word in argv], FakeClock())
    return status, capsys.readouterr().out


def test_put_and_stats(tmp_path, capsys):
    db = tmp_path / "jobs.db"
    assert harbor(capsys, "put", db, "acme", "{}") == (0, "")
    assert harbor(capsys, "stats", db) == (0, "waiting: 1\n")


def test_drain_takes_everything(tmp_path, capsys):
    db = tmp_path / "jobs.db"
    for n in range(3):
        harbor(capsys, "put", db, "acme", n)
    status, out = harbor(capsys, "drain", db, "--batch", 2)
    assert status == 0
    assert len(out.splitlines()) == 3
    assert harbor(capsys, "stats", db) == (0, "waiting: 0\n")
