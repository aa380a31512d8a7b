"""9 to 13 March 2026."""

from steps import Edit, Poll, Read, Say, Sh, Story, Think, started

from stories.week10 import SUBMIT

INTEGRATION_RUN = Story(
    slug="integration-run",
    engine="codex",
    start=started("2026-03-09 08:31"),
    branch="chore/integration-run",
    task="Run the integration suite on this machine and tell me whether archiving still works against a real broker. Do not change code.",
    outcome={"outcome": "failure", "reason": "no broker on this machine; the integration suite never started"},
    steps=(
        Say("I'll read the integration script first."),
        Sh("cat tools/integration"),
        Think("It waits until something listens on port 7411, without a limit. Put a timeout in front."),
        Sh("timeout 3 tools/integration", yields=1.0),
        Poll(waits=3),
        Say("Nothing listens on 7411: the script would wait forever. I'll see whether a broker can be started or reached."),
        Sh("docker compose up -d broker"),
        Sh("env | grep HARBOR"),
        Sh("git fetch origin"),
        Think(
            "No docker, and the network is not reachable from this sandbox today. The system tests do not need the broker, so run those."
        ),
        Sh("tools/check --full"),
        Say(
            "I was not able to run the integration suite: `tools/integration` waits for a broker on 127.0.0.1:7411 and there is none here, docker"
            " is not installed, and the network cannot be reached right now. `tools/check --full` runs without a broker; there,"
            " `test_archive_opens_in_the_sqlite_shell` fails on the untouched checkout because the `sqlite3` program is missing. Whether"
            " archiving works against a broker is not known."
        ),
    ),
)

JOB_PRIORITY = Story(
    slug="job-priority",
    engine="mini-swe-agent",
    start=started("2026-03-10 11:02"),
    branch="agent/151",
    issue=151,
    task="Jobs need a priority\n\nAdd an integer column `priority` (not null, default 0) to the jobs table and raise the schema version to 8."
    " `harbor migrate` has to add the column to older files. Ordering by priority is a later change.",
    outcome={"outcome": "success"},
    keep=True,
    steps=(
        Think("Find the schema."),
        Sh("cat src/harbor_queue/schema.py && grep -n 'migrate' -A 14 src/harbor_queue/cli.py | head -30"),
        Think("How are tests run?"),
        Sh("python3 -m pytest -q"),
        Think("Not like that. Look for a script."),
        Sh("ls tools && tools/check"),
        Think("tools/check works. Add the column and raise the version."),
        Sh(
            "sed -i 's/SCHEMA_VERSION = 7/SCHEMA_VERSION = 8/; s/    finished text/    finished text,\\n    priority integer not null default 0/'"
            " src/harbor_queue/schema.py && git diff --stat"
        ),
        Think("Run the tests."),
        Sh("tools/check"),
        Think(
            "deploy/schema.sql is a second copy of the schema for the operators, and the tests compare the two. Both the version and the columns"
            " have to change there as well."
        ),
        Sh(
            "sed -i 's/user_version = 7/user_version = 8/; s/    finished text/    finished text,\\n    priority integer not null default 0/'"
            " deploy/schema.sql && tools/check"
        ),
        Think("Green. Now the migration: files before version 7 lack `finished`, files before version 8 lack `priority`."),
        Sh(
            "python3 - <<'EOF'\nfrom pathlib import Path\npath = Path('src/harbor_queue/cli.py')\n"
            "old = '        connection.execute(\"alter table jobs add column finished text\")\\n'\n"
            "new = '        if found < 7:\\n    ' + old + '        connection.execute(\"alter table jobs add column priority integer not null default 0\")\\n'\n"
            "path.write_text(path.read_text().replace(old, new))\nEOF\ngit diff src/harbor_queue/cli.py"
        ),
        Think("Try it on a file of release 0.7."),
        Sh("python3 fixtures/old_db.py old.db && PYTHONPATH=src python3 -m harbor_queue.cli migrate old.db"),
        Think("It wants a backup."),
        Sh("PYTHONPATH=src python3 -m harbor_queue.cli migrate old.db --backup old.bak"),
        Think(
            "The migration works. Remove the scratch files, so that they do not get into the patch, add a release note and run everything again."
        ),
        Sh(
            "rm old.db old.bak && echo 'Jobs have a priority; run `harbor migrate` once.' > changes/job-priority.md && tools/check && git status --short"
        ),
        Think("All green. Submit."),
        Sh(SUBMIT),
    ),
)

ARCHIVE_EMPTY = Story(
    slug="archive-empty",
    engine="claude-code",
    start=started("2026-03-12 15:47"),
    branch="fix/archive-empty",
    task="The nightly archive is empty when it starts right after the last job. `harbor archive jobs.db done.db --since <time of that job>`"
    " should contain the job. Find out why it does not and fix it.",
    outcome={"outcome": "success"},
    keep=True,
    steps=(
        Read("src/harbor_queue/export.py"),
        Think(
            "The archive opens a second connection to the file, while the store uses the write-ahead log. If the rows have not been"
            " checkpointed, the second connection might not see them."
        ),
        Say(
            "My guess is the write-ahead log: the second connection may not see rows that are not checkpointed yet. First a test that shows it."
        ),
        Edit(
            "tests/system/test_archive.py",
            "def test_archive_opens_in",
            "def test_archive_has_the_job_of_that_very_moment(store, tmp_path):\n    clock = FakeClock()\n    finish_one(store, clock)\n"
            '    assert export.archive(store, tmp_path / "done.db", clock.now()) == 1\n\n\ndef test_archive_opens_in',
        ),
        Sh("tools/check --full", "Run unit and system tests"),
        Say("The new test fails as expected. I'll checkpoint the log before the second connection is opened."),
        Edit(
            "src/harbor_queue/export.py",
            "    source = sqlite3.connect(store.path)\n",
            '    store.connection.execute("pragma wal_checkpoint(truncate)")\n    source = sqlite3.connect(store.path)\n',
        ),
        Sh("tools/check -- tests/system/test_archive.py", "Run the archive tests"),
        Say("The checkpoint changes nothing: the same test still fails. So the write-ahead log is not the cause. I'll take that back."),
        Sh("git checkout src/harbor_queue/export.py", "Take the checkpoint back"),
        Sh(
            'python3 -c "from datetime import UTC, datetime; t = datetime(2026, 1, 5, 9, tzinfo=UTC); a, b = t.isoformat(),'
            " t.strftime('%Y-%m-%dT%H:%M:%SZ'); print(a, b, a >= b)\"",
            "Compare the two ways in which times are written",
        ),
        Say(
            "That is it: jobs are stored with `isoformat()`, which ends in `+00:00`, and the query compares them as text with a time that ends"
            " in `Z`. `+` sorts before `Z`, so a job of the same second is left out."
        ),
        Edit("src/harbor_queue/export.py", 'since.strftime("%Y-%m-%dT%H:%M:%SZ")', "since.isoformat()"),
        Sh("tools/check -- tests/system/test_archive.py", "Run the archive tests"),
        Think("One is left: the sqlite3 shell. Is that mine? Check on the unmodified code."),
        Sh("git stash", "Put my changes aside"),
        Sh("tools/check -- tests/system/test_archive.py", "Run the archive tests on the unmodified code"),
        Sh("git stash pop", "Bring my changes back"),
        Say(
            "`test_archive_opens_in_the_sqlite_shell` also fails without my changes: the `sqlite3` program is not installed on this machine. That"
            " one was there before."
        ),
        Edit("changes/archive-empty.md", "", "`harbor archive --since` no longer leaves out jobs that finished in that second.\n"),
        Sh("tools/check", "Run lint and unit tests"),
        Sh(
            "git add -A && git commit -m 'Compare archive times in the form in which they are stored' && git push origin HEAD",
            "Commit and push",
        ),
        Say(
            "Fixed: `export.archive` now compares times in the form in which they are stored (`isoformat()`), instead of with a trailing `Z`. The new"
            " system test passes, `tools/check` is green, and `fix/archive-empty` is pushed."
        ),
    ),
)

JOB_NOTE = Story(
    slug="job-note",
    engine="codex",
    start=started("2026-03-13 10:20"),
    branch="feat/job-note",
    task="Add an optional text column `note` to jobs (schema version 9) and `harbor put --note TEXT`. Nothing reads it yet. Commit when the"
    " tests pass.",
    outcome={"outcome": "success"},
    keep=True,
    steps=(
        Say("I'll look for the places that know the schema."),
        Sh("rg -n SCHEMA_VERSION"),
        Sh("grep -rn SCHEMA_VERSION src tests"),
        Sh("sed -n '1,40p' src/harbor_queue/schema.py && sed -n '12,45p' src/harbor_queue/storage.py"),
        Edit("src/harbor_queue/schema.py", "SCHEMA_VERSION = 8", "SCHEMA_VERSION = 9"),
        Edit(
            "src/harbor_queue/schema.py",
            "    priority integer not null default 0\n",
            "    priority integer not null default 0,\n    note text\n",
        ),
        Edit("src/harbor_queue/storage.py", "    attempt: int = 0\n", "    attempt: int = 0\n    note: str | None = None\n"),
        Edit(
            "src/harbor_queue/storage.py",
            "        row = (job.id, job.tenant, job.body, job.due.isoformat(), job.attempt)\n"
            '        self.connection.execute("insert into jobs (id, tenant, body, due, attempt) values (?, ?, ?, ?, ?)", row)\n',
            "        row = (job.id, job.tenant, job.body, job.due.isoformat(), job.attempt, job.note)\n"
            '        self.connection.execute("insert into jobs (id, tenant, body, due, attempt, note) values (?, ?, ?, ?, ?, ?)", row)\n',
        ),
        Edit(
            "src/harbor_queue/cli.py",
            "    Store(args.db).put(Job(args.id or uuid.uuid4().hex, args.tenant, args.body, clock.now()))\n",
            "    Store(args.db).put(Job(args.id or uuid.uuid4().hex, args.tenant, args.body, clock.now(), note=args.note))\n",
        ),
        Edit(
            "src/harbor_queue/cli.py",
            '            command.add_argument("--id")\n',
            '            command.add_argument("--id")\n            command.add_argument("--note")\n',
        ),
        Edit(
            "src/harbor_queue/cli.py",
            '        connection.execute("alter table jobs add column priority integer not null default 0")\n',
            "        if found < 8:\n"
            '            connection.execute("alter table jobs add column priority integer not null default 0")\n'
            '        connection.execute("alter table jobs add column note text")\n',
        ),
        Sh("tools/check"),
        Say(
            "There is a second copy of the schema, `deploy/schema.sql`, and a test keeps the two equal. It has to change together with `schema.py`."
        ),
        Edit("deploy/schema.sql", "    priority integer not null default 0\n", "    priority integer not null default 0,\n    note text\n"),
        Edit("deploy/schema.sql", "user_version = 8", "user_version = 9"),
        Sh("tools/check", seed=2),
        Think("A scheduler test fails now. Nothing of this touches the scheduler. Run it again as it is."),
        Sh("tools/check"),
        Say("Passed without any change in between, so that scheduler test is flaky. I'll add the release note and try the migration."),
        Edit("changes/job-note.md", "", "`harbor put --note` keeps a note with a job; run `harbor migrate` once.\n"),
        Sh("python3 fixtures/old_db.py old.db && PYTHONPATH=src python3 -m harbor_queue.cli migrate old.db"),
        Sh("PYTHONPATH=src python3 -m harbor_queue.cli migrate old.db --backup old.bak && rm old.db old.bak"),
        Sh("git add -A && git commit -m 'Keep a note with a job'"),
        Say(
            "`harbor put --note` stores a note, the schema is at version 9 in both `schema.py` and `deploy/schema.sql`, and `harbor migrate` adds the"
            " column. `tools/check` passes; committed."
        ),
    ),
)

STORIES = (INTEGRATION_RUN, JOB_PRIORITY, ARCHIVE_EMPTY, JOB_NOTE)
