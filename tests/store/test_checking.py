"""`verify` finds what is broken by other means, and `doctor` speaks about any file."""

import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from osmia_memory import reconcile
from osmia_memory.models import Edge
from osmia_memory.store import migrations
from osmia_memory.store.fact_store import FactStore
from osmia_memory.testing import NOW, a_run
from tests.store.builders import TENANT, a_claim, remember, says


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two tenants with two runs each, a link, a retraction and a pin."""
    store = FactStore(tmp_path_factory.mktemp("pattern") / "memory.duckdb")
    for tenant in (TENANT, "incident-triage"):
        for n in range(2):
            run = a_run(f"s{n}", tenant=tenant)
            remember(store, run, says(run, "Tests are run with `pytest`.", claim=a_claim("pytest")), says(run, f"Part {n} is slow."))
        one, two, three = store.facts(tenant)
        store.link(tenant, [Edge(one.fact_id, two.fact_id, "relates_to", 1, "", NOW)])
        store.pin(tenant, one.fact_id)
        store.retract(tenant, three.fact_id, "wrong")
    return store.path


@pytest.fixture
def sound(store: FactStore, pattern: Path) -> FactStore:
    """A copy of it."""
    shutil.copy(pattern, store.path)
    return store


BREAKAGES = {
    "DELETE FROM facts WHERE no = (SELECT min(no) FROM facts)": "testimony belongs to a fact",
    "DELETE FROM runs WHERE no = (SELECT min(no) FROM runs)": "testimony belongs to a run",
    "DELETE FROM witnesses WHERE run_no = (SELECT min(no) FROM runs)": "a quote belongs to testimony",
    "INSERT INTO witnesses SELECT * FROM witnesses LIMIT 1": "a run testifies to a fact once",
    "UPDATE evidence SET span_end = span_end + 1": "a span fits its quote",
    "UPDATE facts SET tenant_id = 'else'": "testimony stays within its tenant",
    "UPDATE facts SET content = content || ' always'": "a fact is the fold of its witnesses",
    "UPDATE facts SET confidence = confidence / 2": "a fact is the fold of its witnesses",
    "UPDATE facts SET owner = 'acme/other'": "a fact's id is that of its content",
    "UPDATE runs SET engine = 'aider'": "a run's id is that of its content",
    "UPDATE facts SET superseded_by = 'f1:nobody'": "what supersedes a fact is known",
    "UPDATE edges SET to_id = 'f1:nobody'": "a link has both ends",
    "UPDATE edges SET tenant_id = 'else'": "a link stays within its tenant",
    "INSERT INTO edges SELECT * FROM edges": "a link is there once",
    "UPDATE tombstones SET tenant_id = 'else'": "a retraction stays within its tenant",
    "DELETE FROM postings_tail": "the index holds every word of a fact",
    "UPDATE facts SET doc_key = 'd1:other'": "the index holds the words of a fact",
    "UPDATE facts SET doc = 1": "a number is given once",
    "UPDATE facts SET pruned_at = now()::TIMESTAMP": "a pruned fact has no text",
}


def test_sound_store_has_no_problems(sound: FactStore) -> None:
    """The control: nothing is wrong with what the store wrote itself, in two tenants."""
    assert sound.verify(reconcile.refold) == []
    assert FactStore(sound.path.parent / "missing.duckdb").verify(reconcile.refold) == []


@pytest.mark.parametrize(("statement", "rule"), BREAKAGES.items())
def test_each_kind_of_damage_is_found(sound: FactStore, statement: str, rule: str) -> None:
    """A change behind the store's back breaks the rule that is named."""
    with duckdb.connect(str(sound.path)) as connection:
        connection.execute(statement)

    assert rule in {problem.what for problem in sound.verify(reconcile.refold)}


# --- doctor -----------------------------------------------------------------------------------------------------------


def test_doctor_describes_a_healthy_store(sound: FactStore) -> None:
    """Path, size, versions, mode and counts by tenant."""
    found = sound.doctor()

    assert (found["state"], found["problem"], found["holder"]) == ("ok", None, None)
    assert found["path"] == str(sound.path)
    assert found["size_bytes"] == sound.path.stat().st_size
    assert (found["wal_bytes"], found["mode"], found["writable"]) == (None, "0600", True)
    assert (found["schema_version"], found["newest_schema"]) == (migrations.NEWEST, migrations.NEWEST)
    assert found["duckdb_version"] == duckdb.__version__
    assert found["generation"] == sound.generation()
    assert found["unmerged_facts"] == 6
    expected = {"runs": 2, "facts": 2, "superseded": 0, "pinned": 1, "pruned": 0, "retracted": 1, "evidence": 4, "edges": 1, "changes": 2}
    assert found["tenants"] == {TENANT: expected, "incident-triage": expected}


def test_doctor_names_who_holds_the_store(sound: FactStore) -> None:
    """A locked store can still be described, with the process that has it."""
    code = f"import duckdb; c = duckdb.connect({str(sound.path)!r}); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = sound.doctor()
        process.kill()

    assert found["state"] == "locked"
    assert found["holder"] == {"pid": process.pid, "name": Path(sys.executable).name}
    assert found["size_bytes"] > 0


@pytest.mark.parametrize(
    ("content", "state"), [(None, "missing"), (b"", "empty"), (b"SQLite format 3\0" + bytes(100), "corrupt"), (b"prose", "corrupt")]
)
def test_doctor_speaks_about_any_file(store: FactStore, content: bytes | None, state: str) -> None:
    """Whatever is at the path, the answer is a description and the file stays as it is."""
    if content is not None:
        store.path.write_bytes(content)

    found = store.doctor()

    assert found["state"] == state
    assert (found["problem"] is None) == (state in ("missing", "empty"))
    assert found["writable"]
    assert store.path.exists() == (content is not None)
    assert not store.path.exists() or store.path.read_bytes() == content


def test_doctor_tells_a_cut_file_and_versions_apart(sound: FactStore) -> None:
    """A truncated file is corrupt, a later schema is newer, an earlier one is older; none of it is repaired in passing."""
    whole = sound.path.read_bytes()
    sound.path.write_bytes(whole[:12288])
    assert sound.doctor()["state"] == "corrupt"
    sound.path.write_bytes(whole)
    with duckdb.connect(str(sound.path)) as connection:
        connection.execute("INSERT INTO migrations VALUES (99, 'later', now()::TIMESTAMP)")
    assert sound.doctor()["state"] == "newer"
    older = FactStore(sound.path.parent / "older.duckdb")
    with duckdb.connect(str(older.path)) as connection:
        migrations.migrate(connection, stop_before=2)
    assert older.doctor()["state"] == "older"


def test_doctor_sees_a_pending_log(sound: FactStore) -> None:
    """The log that a killed process left is reported, and the store is whole with it."""
    code = (
        f"import duckdb, os; c = duckdb.connect({str(sound.path)!r}); "
        "c.execute('UPDATE state SET generation = generation + 1'); os.kill(os.getpid(), 9)"
    )
    before = sound.generation()
    subprocess.run([sys.executable, "-c", code], check=False)

    found = sound.doctor()

    assert found["wal_bytes"] > 0
    assert (found["state"], found["generation"]) == ("ok", before + 1)
