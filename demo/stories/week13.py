"""23 to 27 March 2026."""

from steps import Edit, Interrupt, Poll, Say, Sh, Story, Think, User, started

from stories.week10 import SUBMIT

STATS_SLOW = Story(
    slug="stats-slow",
    engine="claude-code",
    start=started("2026-03-23 09:03"),
    branch="main",
    task="Why does `harbor stats` get slow on big queue files? Just explain it to me, don't change anything.",
    steps=(
        Sh("git remote -v && git log --oneline -3", "See where we are"),
        Sh('grep -rn "tenant" *', "Find where tenants are counted"),
        Think("That was mostly recorded traffic in fixtures/recordings. Search the source."),
        Sh('grep -rn "tenant" src', "Search the source only"),
        Sh("cat .env.local", "Look for the path of a big queue file"),
        Say("No queue file is configured here, so I'll ask SQLite for its plan on an empty one."),
        Sh(
            'PYTHONPATH=src python3 -c "\nfrom pathlib import Path\nfrom harbor_queue.storage import Store\n'
            "store = Store(Path('plan.db'))\nfor query in ('select count(*) from jobs where finished is null',"
            " 'select tenant, count(*) from jobs where finished is null group by tenant order by tenant'):\n"
            "    print([row[3] for row in store.connection.execute('explain query plan ' + query)])\n\"; rm -f plan.db*",
            "Ask for the query plans",
        ),
        Say(
            "`harbor stats` runs two queries, and both are full scans of `jobs`: there is no index on `finished`, so SQLite reads every row, also"
            " those of finished jobs, which are never deleted. The second query sorts the groups in a temporary B-tree on top. So the time grows"
            " with all jobs ever put, not with the waiting ones. A partial index on `tenant` where `finished is null` would help both."
        ),
        User("Makes sense, thanks. Could you try that index quickly on a copy?"),
        Think("They want a quick trial on a copy. I need a big file for that."),
        Interrupt(),
    ),
)

ATOMIC_CLAIM = Story(
    slug="atomic-claim",
    engine="codex",
    start=started("2026-03-25 14:44"),
    branch="feat/atomic-claim",
    task="Two workers can take the same job. Make taking a job atomic and add a test with two stores on one file.",
    outcome={"outcome": "partial", "reason": "Store.claim is there and tested; the scheduler does not use it yet"},
    steps=(
        Sh("sed -n '30,60p' src/harbor_queue/storage.py"),
        Sh("timeout 3 tools/integration", yields=1.0),
        Poll(waits=3),
        Say(
            "The integration script waits for a broker on 127.0.0.1:7411, which does not run here, so I'll work with `tools/check`. First the test."
        ),
        Edit(
            "tests/unit/test_storage.py",
            "def test_requeued_job_waits",
            "def test_two_workers_never_take_the_same_job(store):\n"
            "    now = datetime.now(UTC)\n"
            "    for n in range(4):\n"
            '        store.put(Job(str(n), "acme", "{}", now))\n'
            "    other = Store(store.path)\n"
            "    taken = [job.id for worker in (store, other) for job in worker.claim(now, 3)]\n"
            "    other.connection.close()\n"
            '    assert sorted(taken) == ["0", "1", "2", "3"]\n\n\n'
            "def test_requeued_job_waits",
        ),
        Edit("tests/unit/test_storage.py", "from datetime import timedelta\n", "from datetime import UTC, datetime, timedelta\n"),
        Edit("tests/unit/test_storage.py", "from harbor_queue.storage import Job\n", "from harbor_queue.storage import Job, Store\n"),
        Think("Simplest: let a store lock the file for itself, so that no other worker gets at it."),
        Edit(
            "src/harbor_queue/storage.py",
            "        schema.create(self.connection)\n",
            '        self.connection.execute("pragma locking_mode = exclusive")\n        schema.create(self.connection)\n\n'
            "    def claim(self, now: datetime, size: int) -> list[Job]:\n"
            '        """Take up to `size` due jobs."""\n        return self.due(now)[:size]\n',
        ),
        Sh("tools/check -- tests/unit/test_storage.py", waits=5),
        Say(
            "With an exclusive lock the second store cannot even open the file: `database is locked`. That is the wrong way; I'll take it back."
        ),
        Sh("git checkout src/harbor_queue/storage.py"),
        Think("One update statement that moves `due` into the future for the rows it returns is atomic and needs no schema change."),
        Edit(
            "src/harbor_queue/storage.py",
            "    def finish(self,",
            "    def claim(self, now: datetime, size: int) -> list[Job]:\n"
            '        """Take up to `size` due jobs: nobody else gets them for `LEASE`."""\n'
            '        query = """update jobs set due = ? where id in\n'
            "            (select id from jobs where finished is null and due <= ? order by due, id limit ?)\n"
            '            returning id, tenant, body, due, attempt"""\n'
            "        rows = self.connection.execute(query, (text(now + LEASE), text(now), size)).fetchall()\n"
            "        self.connection.commit()\n"
            "        return [Job(i, tenant, body, datetime.fromisoformat(due), attempt) for i, tenant, body, due, attempt in rows]\n\n"
            "    def finish(self,",
        ),
        Edit(
            "src/harbor_queue/storage.py",
            "from datetime import datetime\n",
            "from datetime import datetime, timedelta\n",
        ),
        Edit(
            "src/harbor_queue/storage.py",
            "\n\n@dataclass(frozen=True)\nclass Job:",
            "\nLEASE = timedelta(minutes=5)\n\n\n@dataclass(frozen=True)\nclass Job:",
        ),
        Sh("tools/check"),
        Say("Claiming is one `update ... returning` now, and the two-store test passes. The scheduler still uses `due`."),
        User(
            "Good. But don't use the real time in tests, use `FakeClock` from `tests/fakes.py`. Leave the scheduler for a later change and commit."
        ),
        Edit("tests/unit/test_storage.py", "    now = datetime.now(UTC)\n", "    now = FakeClock().now()\n"),
        Edit("tests/unit/test_storage.py", "from datetime import UTC, datetime, timedelta\n", "from datetime import timedelta\n"),
        Edit("changes/atomic-claim.md", "", "Two workers can take jobs from one file without getting the same ones (`Store.claim`).\n"),
        Sh("tools/check"),
        Sh("git add -A && git commit -m 'Claim jobs atomically'"),
        Say(
            "The test uses `FakeClock`, `tools/check` passes, and `Store.claim` is committed. `next_batch` does not use it yet, as agreed."
        ),
    ),
)

STATS_JSON = Story(
    slug="stats-json",
    engine="mini-swe-agent",
    start=started("2026-03-27 07:26"),
    branch="agent/163",
    issue=163,
    task="`harbor stats --json`\n\nPrint the numbers of `harbor stats` as one JSON object: `waiting` (total) and `tenants` (name to number).",
    outcome={"outcome": "success"},
    keep=True,
    steps=(
        Think("Look at the command and how it is tested."),
        Sh("grep -n 'def stats' -A 8 src/harbor_queue/cli.py; cat CONTRIBUTING.md"),
        Think("Run the tests as the notes say."),
        Sh("just test"),
        Think("No just. The recipe is tools/check."),
        Sh("cat justfile && tools/check"),
        Think("Good. Add the option and print the object."),
        Sh(
            "python3 - <<'EOF'\nfrom pathlib import Path\npath = Path('src/harbor_queue/cli.py')\ntext = path.read_text()\n"
            "text = text.replace('import argparse\\n', 'import argparse\\nimport json\\n')\n"
            'text = text.replace(\'    say(f"waiting: {store.depth()}")\\n\', \'    if args.json:\\n        print(json.dumps({"waiting": store.depth(),'
            ' "tenants": dict(store.depth_by_tenant())}))\\n        return 0\\n    say(f"waiting: {store.depth()}")\\n\')\n'
            'text = text.replace(\'        if run is drain:\\n\', \'        if run is stats:\\n            command.add_argument("--json", action="store_true")\\n'
            "        if run is drain:\\n')\n"
            "path.write_text(text)\nEOF\ncat >> tests/unit/test_cli.py <<'EOF'\n\n\ndef test_stats_as_json(tmp_path, capsys):\n"
            '    db = tmp_path / "jobs.db"\n    harbor(capsys, "put", db, "acme", "{}")\n'
            '    assert harbor(capsys, "stats", db, "--json") == (0, \'{"waiting": 1, "tenants": {"acme": 1}}\\n\')\nEOF\ntools/check tests/unit/test_cli.py'
        ),
        Think("The path goes after a double dash."),
        Sh("tools/check -- tests/unit/test_cli.py"),
        Think("The lint step does not allow print in src; it has to be say."),
        Sh("sed -i 's/        print(json.dumps/        say(json.dumps/' src/harbor_queue/cli.py && tools/check -- tests/unit/test_cli.py"),
        Think("Now everything, with a release note."),
        Sh("echo '`harbor stats --json` prints one JSON object.' > changes/stats-json.md && tools/check", seed=2),
        Think("test_longest_waiting_tenant_is_in_the_batch again: the scheduler is not touched here. Run once more."),
        Sh("tools/check"),
        Think("Green without a change, so it is flaky. Submit."),
        Sh(SUBMIT),
    ),
)

STORIES = (STATS_SLOW, ATOMIC_CLAIM, STATS_JSON)
