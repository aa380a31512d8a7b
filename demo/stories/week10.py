"""2 to 6 March 2026."""

from steps import Edit, Read, Say, Sh, Story, Think, User, started

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached"

RETRY_CAP = Story(
    slug="retry-cap",
    engine="claude-code",
    start=started("2026-03-02 09:14"),
    branch="fix/retry-cap",
    task="Jobs that keep failing end up waiting for days because the retry delay doubles without a limit. Cap the delay at"
    " 15 minutes, with a test, and push a branch when everything is green.",
    outcome={"outcome": "success"},
    keep=True,
    steps=(
        Say("I'll look at how the delay is computed and how tests are run here."),
        Sh("cat src/harbor_queue/retry.py CONTRIBUTING.md", "Read the retry module and the contributor notes"),
        Sh("just test", "Run the tests as CONTRIBUTING says"),
        Think("`just` is not installed on this machine. Let me call pytest myself."),
        Sh("python3 -m pytest", "Run the tests with pytest"),
        Think("The package is not importable. It has a src layout, so PYTHONPATH should do."),
        Sh("PYTHONPATH=src python3 -m pytest", "Run the tests with the source folder on the path"),
        Say("The suite also wants `HARBOR_ENV`, and the message points to `tools/check`, so I'll see what that script does."),
        Sh("cat justfile tools/check", "See what the recipes run"),
        Sh("tools/check", "Run lint and unit tests through the repository's script"),
        Say("`tools/check` is what `just test` would have run, and the tests pass before my change. Now the cap."),
        Edit(
            "src/harbor_queue/retry.py",
            "BASE_SECONDS = 20\n",
            "BASE_SECONDS = 20\nMAX_SECONDS = 15 * 60\n",
        ),
        Edit(
            "src/harbor_queue/retry.py",
            '"""How long to wait after `attempt` failures of `job_id`; doubles each time."""\n'
            "    return timedelta(seconds=BASE_SECONDS * 2**attempt)",
            '"""How long to wait after `attempt` failures of `job_id`; doubles each time, up to `MAX_SECONDS`."""\n'
            "    return timedelta(seconds=min(BASE_SECONDS * 2**attempt, MAX_SECONDS))",
        ),
        Edit(
            "tests/unit/test_retry.py",
            "def test_replay_gives",
            'def test_delay_is_capped():\n    assert retry.delay(40, "j1") == timedelta(minutes=15)\n\n\ndef test_replay_gives',
        ),
        Sh("tools/check tests/unit/test_retry.py", "Run the retry tests"),
        Sh("tools/check -- tests/unit/test_retry.py", "Pass the path after the double dash"),
        Sh("tools/check", "Run everything"),
        Sh("git add -A && git commit -m 'Cap the retry delay at 15 minutes'", "Commit"),
        Say("The commit hook wants a line for the release notes. I'll add it."),
        Edit("changes/retry-cap.md", "", "Failed jobs wait 15 minutes at most before they are tried again.\n"),
        Sh("git add -A && git commit -m 'Cap the retry delay at 15 minutes'", "Commit with the release note"),
        Sh("git push origin HEAD", "Push the branch"),
        Say(
            "The retry delay is now capped at 15 minutes (`MAX_SECONDS` in `retry.py`), with a test. `tools/check` passes with 14 tests,"
            " and the branch `fix/retry-cap` is pushed."
        ),
    ),
)

STATS_PER_TENANT = Story(
    slug="stats-per-tenant",
    engine="codex",
    start=started("2026-03-03 13:05"),
    branch="feat/stats-per-tenant",
    task="`harbor stats` prints a single number. Below it, print the number of waiting jobs of each tenant, one indented line a tenant,"
    " sorted by name. Commit when done.",
    outcome={"outcome": "success"},
    keep=True,
    steps=(
        Say("I'll find where the depth is counted and where it is printed."),
        Sh('rg -n "depth" .'),
        Sh('grep -rn "depth" .'),
        Think("Nearly all of that is recorded traffic under fixtures/recordings. Search the source only."),
        Sh('grep -rn "depth" src tests'),
        Sh("python3 -m pytest -q tests/unit/test_cli.py"),
        Sh("ls tools && cat tools/check"),
        Sh("tools/check -- tests/unit/test_cli.py"),
        Say("Tests run through `tools/check`, which sets the environment. Now the change: a query by tenant, and the lines in `stats`."),
        Edit(
            "src/harbor_queue/storage.py",
            '        return int(self.connection.execute("select count(*) from jobs where finished is null").fetchone()[0])\n',
            '        return int(self.connection.execute("select count(*) from jobs where finished is null").fetchone()[0])\n\n'
            "    def depth_by_tenant(self) -> list[tuple[str, int]]:\n"
            '        """How many jobs of each tenant are waiting, by name."""\n'
            '        query = "select tenant, count(*) from jobs where finished is null group by tenant order by tenant"\n'
            "        return self.connection.execute(query).fetchall()\n",
        ),
        Edit(
            "src/harbor_queue/cli.py",
            '    say(f"waiting: {Store(args.db).depth()}")\n',
            '    store = Store(args.db)\n    say(f"waiting: {store.depth()}")\n    for tenant, count in store.depth_by_tenant():\n'
            '        print(f"  {tenant}: {count}")\n',
        ),
        Edit("tests/unit/test_cli.py", '(0, "waiting: 1\\n")', '(0, "waiting: 1\\n  acme: 1\\n")'),
        Sh("tools/check"),
        Say("The lint step rejects `print` in `src/`; this code base writes through `say`."),
        Edit("src/harbor_queue/cli.py", '        print(f"  {tenant}: {count}")', '        say(f"  {tenant}: {count}")'),
        Sh("tools/check"),
        Sh("git add -A && git commit -q -m 'Show waiting jobs of each tenant in stats'"),
        Edit("changes/stats-per-tenant.md", "", "`harbor stats` also shows how many jobs of each tenant are waiting.\n"),
        Sh("git add -A && git commit -m 'Show waiting jobs of each tenant in stats'"),
        Say("`harbor stats` now prints one indented line a tenant below the total. `tools/check` passes, and the change is committed."),
    ),
)

REQUEUE_ATTEMPTS = Story(
    slug="requeue-attempts",
    engine="mini-swe-agent",
    start=started("2026-03-05 06:40"),
    branch="agent/142",
    issue=142,
    task="Requeued jobs forget their attempts\n\nA job that fails twice is retried after 20 seconds both times, because `Store.requeue`"
    " sets the attempt back to 0. It should count the attempt, so that the delay grows: after two requeues the attempt is 2.",
    outcome={"outcome": "success"},
    keep=True,
    steps=(
        Think("Let me see what is here."),
        Sh("ls && ls tests tools"),
        Think("Find where jobs are requeued."),
        Sh("rg -n requeue"),
        Think("ripgrep is not available, so grep in the source and test folders."),
        Sh('grep -rn "requeue" src tests'),
        Think("Run the storage tests before I change anything."),
        Sh("python3 -m pytest tests/unit/test_storage.py"),
        Think("The package is not installed. There is a tools/check script."),
        Sh("cat tools/check"),
        Think("Run the storage tests with it."),
        Sh("tools/check tests/unit/test_storage.py"),
        Think("Arguments for pytest go after a double dash."),
        Sh("tools/check -- tests/unit/test_storage.py"),
        Think("That works. Now count the attempt in the update statement."),
        Sh("sed -i 's/attempt = 0 where/attempt = attempt + 1 where/' src/harbor_queue/storage.py && git diff"),
        Think("Add a test for two requeues."),
        Sh(
            "cat >> tests/unit/test_storage.py <<'EOF'\n\n\ndef test_requeue_counts_the_attempt(store):\n    clock = FakeClock()\n"
            '    job = Job("a", "acme", "{}", clock.now())\n    store.put(job)\n    store.requeue(job, clock.now())\n'
            "    store.requeue(job, clock.now())\n    assert store.due(clock.now())[0].attempt == 2\nEOF\ntools/check",
            seed=2,
        ),
        Think(
            "test_longest_waiting_tenant_is_in_the_batch failed. I did not touch the scheduler, and the new test passes. Run the same again"
            " without changing anything."
        ),
        Sh("tools/check"),
        Think("Now all pass, with no edit in between: that scheduler test is flaky and has nothing to do with this change. Submit."),
        Sh(SUBMIT),
    ),
)

RETRY_SPREAD = Story(
    slug="retry-spread",
    engine="claude-code",
    start=started("2026-03-06 14:22"),
    branch="feat/retry-spread",
    task="When a broker outage ends, all failed jobs come back in the same second. Spread the retry delays by up to 20 % from job to job."
    " The cap of 15 minutes stays.",
    outcome={"outcome": "success"},
    keep=True,
    steps=(
        Read("src/harbor_queue/retry.py"),
        Sh("just test", "Run the tests"),
        Sh("ls tools && head -5 tools/check", "Look for the script behind the recipe"),
        Sh("tools/check", "Run lint and unit tests"),
        Say("Green. I'll add a random factor to the delay."),
        Edit("src/harbor_queue/retry.py", "from datetime import timedelta\n", "import random\nfrom datetime import timedelta\n"),
        Edit(
            "src/harbor_queue/retry.py",
            "    return timedelta(seconds=min(BASE_SECONDS * 2**attempt, MAX_SECONDS))",
            "    seconds = BASE_SECONDS * 2**attempt * random.uniform(0.8, 1.2)\n    return timedelta(seconds=min(seconds, MAX_SECONDS))",
        ),
        Sh("tools/check -- tests/unit/test_retry.py", "Run the retry tests"),
        Think(
            "A replay has to give the same delays again, so a random factor cannot work: two calls with the same arguments must agree. The"
            " factor has to come from the job id. Python's own hash is salted in each process, so crc32."
        ),
        Say("A random factor breaks replays: the same job and attempt must always give the same delay. I'll take it back."),
        Sh("git checkout src/harbor_queue/retry.py", "Take the random factor back"),
        Edit("src/harbor_queue/retry.py", "from datetime import timedelta\n", "import zlib\nfrom datetime import timedelta\n"),
        Edit(
            "src/harbor_queue/retry.py",
            "    return timedelta(seconds=min(BASE_SECONDS * 2**attempt, MAX_SECONDS))",
            "    spread = 0.8 + 0.4 * zlib.crc32(job_id.encode()) / 2**32\n"
            "    return timedelta(seconds=min(BASE_SECONDS * 2**attempt * spread, MAX_SECONDS))",
        ),
        Sh("tools/check -- tests/unit/test_retry.py", "Run the retry tests"),
        Say("That keeps replays stable. Now a test that two jobs really come back at different times."),
        Edit(
            "tests/unit/test_storage.py",
            "def test_requeue_counts",
            "def test_failed_jobs_come_back_apart(store, monkeypatch):\n"
            '    monkeypatch.setattr(retry, "BASE_SECONDS", 0.5)\n'
            '    for name in ("a", "b"):\n'
            '        job = Job(name, "acme", "{}", datetime.now(UTC))\n'
            "        store.put(job)\n"
            "        store.requeue(job, datetime.now(UTC) + retry.delay(0, name))\n"
            "    time.sleep(0.5)\n"
            "    assert len(store.due(datetime.now(UTC))) == 1\n\n\n"
            "def test_requeue_counts",
        ),
        Edit(
            "tests/unit/test_storage.py",
            "from datetime import timedelta\n\nfrom fakes import FakeClock\nfrom harbor_queue.storage import Job\n",
            "import time\nfrom datetime import UTC, datetime, timedelta\n\nfrom fakes import FakeClock\nfrom harbor_queue import retry\n"
            "from harbor_queue.storage import Job\n",
        ),
        Sh("tools/check", "Run everything"),
        Say("All green: the delays are spread by crc32 of the job id, with a test. Shall I commit?"),
        User("No, never sleep in tests, use `FakeClock` from `tests/fakes.py` instead. Then commit and push."),
        Edit(
            "tests/unit/test_storage.py",
            '    monkeypatch.setattr(retry, "BASE_SECONDS", 0.5)\n'
            '    for name in ("a", "b"):\n'
            '        job = Job(name, "acme", "{}", datetime.now(UTC))\n'
            "        store.put(job)\n"
            "        store.requeue(job, datetime.now(UTC) + retry.delay(0, name))\n"
            "    time.sleep(0.5)\n"
            "    assert len(store.due(datetime.now(UTC))) == 1\n",
            "    clock = FakeClock()\n"
            '    for name in ("a", "b"):\n'
            '        job = Job(name, "acme", "{}", clock.now())\n'
            "        store.put(job)\n"
            "        store.requeue(job, clock.now() + retry.delay(0, name))\n"
            '    clock.advance(seconds=min(retry.delay(0, "a"), retry.delay(0, "b")).total_seconds())\n'
            "    assert len(store.due(clock.now())) == 1\n",
        ),
        Edit(
            "tests/unit/test_storage.py",
            "import time\nfrom datetime import UTC, datetime, timedelta\n",
            "from datetime import timedelta\n",
        ),
        Edit(
            "tests/unit/test_storage.py",
            "def test_failed_jobs_come_back_apart(store, monkeypatch):",
            "def test_failed_jobs_come_back_apart(store):",
        ),
        Sh("tools/check", "Run everything"),
        Edit("changes/retry-spread.md", "", "Retries of different jobs are spread by up to 20 %.\n"),
        Sh("git add -A && git commit -m 'Spread retry delays by job' && git push origin HEAD", "Commit and push"),
        Say("The test now moves a `FakeClock` instead of sleeping. `tools/check` passes; committed and pushed as `feat/retry-spread`."),
    ),
)

STORIES = (RETRY_CAP, STATS_PER_TENANT, REQUEUE_ATTEMPTS, RETRY_SPREAD)
