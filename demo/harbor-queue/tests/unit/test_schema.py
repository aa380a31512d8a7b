import re
import sqlite3
from pathlib import Path

from harbor_queue import schema

DEPLOYED = Path("deploy/schema.sql")


def test_deployed_schema_has_the_same_version():
    found = re.search(r"user_version = (\d+)", DEPLOYED.read_text())
    assert int(found[1]) == schema.SCHEMA_VERSION, f"{DEPLOYED} and src/harbor_queue/schema.py differ"


def test_deployed_schema_has_the_same_columns(store):
    deployed = sqlite3.connect(":memory:")
    deployed.executescript(DEPLOYED.read_text())
    columns = "select name from pragma_table_info('jobs')"
    assert deployed.execute(columns).fetchall() == store.connection.execute(columns).fetchall()
    deployed.close()
