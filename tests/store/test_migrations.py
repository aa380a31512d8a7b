"""From an empty file through each version, with rows in place."""

from pathlib import Path

import duckdb
import pytest

from osmia_memory import reconcile
from osmia_memory.errors import StoreVersionError
from osmia_memory.store import migrations
from osmia_memory.store.fact_store import FactStore
from tests.store.builders import REPO, TENANT, remember_text

_A_RUN = """
    INSERT INTO runs VALUES ('r1:aa7bc4ef0e22e3c8f1e2a3ad', 1, 'ticketing', 'v1', 'rules@1', 'acme/shop', 'codex', NULL, 'bug_fix', NULL, 'success',
        NULL, NULL, NULL, NULL, TIMESTAMP '2026-01-01', NULL, NULL,
        '{"session_id":"s1","segment":"","title":"t","description":"","labels":[],"cwd":null,"branch":null,"base_commit":null,"environment":{},"times_assumed":false,"attempts":1,"signals":[],"source":""}',
        ['pytest'], TIMESTAMP '2026-01-02')
"""


def test_each_version_is_reached_from_the_one_before(tmp_path: Path) -> None:
    """One step at a time, each step and its record together; at the end the schema is that of a new store."""
    with duckdb.connect(str(tmp_path / "stepwise.duckdb")) as stepwise, duckdb.connect(str(tmp_path / "new.duckdb")) as new:
        for version in range(1, migrations.NEWEST + 1):
            assert migrations.migrate(stepwise, stop_before=version + 1) == version
            assert migrations.version_of(stepwise) == version
        migrations.migrate(new)
        tables = "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() ORDER BY ALL"
        assert stepwise.execute(tables).fetchall() == new.execute(tables).fetchall()


@pytest.mark.parametrize("version", range(1, migrations.NEWEST))
def test_older_store_keeps_its_rows(store: FactStore, version: int) -> None:
    """A store of any earlier version is brought up to date by the first operation, even one that reads, and its runs are still there."""
    with duckdb.connect(str(store.path)) as connection:
        migrations.migrate(connection, stop_before=version + 1)
        connection.execute(_A_RUN)
        connection.execute("UPDATE state SET next_no = 2")

    with pytest.raises(StoreVersionError, match="open it once for writing"):
        FactStore(store.path, read_only=True).runs(TENANT)
    (run,) = store.runs(TENANT)

    assert (run.session_id, run.repo, run.outcome) == ("s1", "acme/shop", "success")
    assert store.doctor()["schema_version"] == migrations.NEWEST
    remember_text(store, "s2", "Tests are run with `pytest`.")
    assert len(store.search(TENANT, [REPO], ["pytest"], 5)) == 1
    assert [p.what for p in store.verify(reconcile.refold)] == ["a run's id is that of its content"]  # the id above is made up


def test_migrating_twice_changes_nothing(store: FactStore) -> None:
    """A store that is up to date stays as it is."""
    remember_text(store, "s1", "Tests are run with `pytest`.")
    before = store.path.read_bytes()

    with store.session(write=True):
        pass

    assert store.path.read_bytes() == before


def test_failed_step_leaves_the_version_before(tmp_path: Path) -> None:
    """A step that fails half-way is undone with its record, and can be tried again."""
    with duckdb.connect(str(tmp_path / "memory.duckdb")) as connection:
        migrations.migrate(connection, stop_before=2)
        connection.execute("CREATE TABLE postings (in_the_way INTEGER)")  # the second step fails after its first statements

        with pytest.raises(duckdb.CatalogException):
            migrations.migrate(connection)

        columns = [row[0] for row in connection.execute("SELECT column_name FROM duckdb_columns() WHERE table_name = 'facts'").fetchall()]
        assert migrations.version_of(connection) == 1
        assert "doc" not in columns
        connection.execute("DROP TABLE postings")
        assert migrations.migrate(connection) == migrations.NEWEST
