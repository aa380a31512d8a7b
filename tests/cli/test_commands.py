"""Every command: its help, its example, its JSON, its exit status, and what goes to stdout and what to stderr."""

import functools
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import typer

from osmia_memory.cli.app import COMMANDS, application
from osmia_memory.memory import Memory
from tests.product import LINT, NO_JUST, REPO, TESTS_RUN, a_task_run, as_jsonl, osmia, osmia_process, sh

GROUP: Any = typer.main.get_command(application())
DEMO_REPO = "northwind/harbor-queue"
NOW = "2026-03-30T09:00:00Z"
FACT = json.dumps({"type": "fact", "content": "Carts are frozen on Fridays.", "fact_kind": "repo_quirk", "repo": REPO}).encode()


def example(command: str) -> str:
    """The command line behind `Example:` in its help."""
    (line,) = re.findall(r"^Example: (.+)$", GROUP.commands[command].help, re.M)
    return str(line)


_IDS: dict[str, str] = {}  # of the shipped runs' facts, which are the same in every copy of the store


def a_fact_id(store: Path, word: str = "runs the whole test suite") -> str:
    """A fact of the shipped runs."""
    if word not in _IDS:
        _IDS[word] = next(f.fact_id for f in Memory(store, "ticketing").facts() if word in f.content)
    return _IDS[word]


def runs_here(folder: Path) -> Path:
    """Two runs of our own format in `runs/`."""
    path = folder / "runs" / "may.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(as_jsonl(a_task_run("s1", TESTS_RUN, LINT), a_task_run("s2", TESTS_RUN, NO_JUST)))
    return path


# --- help and examples ------------------------------------------------------------------------------------------------


def test_all_commands_are_listed() -> None:
    """The table of modules and the application agree."""
    assert set(GROUP.commands) == set(COMMANDS)
    listed = osmia("--help")
    assert listed.status == 0
    assert all(re.search(rf"^  {name} ", listed.out, re.M) for name in COMMANDS)
    assert "Episodic memory for coding agents" in listed.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_one_line_of_help_and_an_example(command: str) -> None:
    """The first line is a sentence; every option and argument says what it is."""
    told = osmia(command, "--help")
    assert (told.status, told.err) == (0, "")
    first = GROUP.commands[command].help.split("\n")[0]
    assert first.endswith(".")
    assert len(first) < 140
    assert example(command).startswith(("osmia-memory ", "echo "))
    assert all(getattr(p, "help", "") for p in GROUP.commands[command].params)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_runs(command: str, folder: Path, store: Path, demo_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the shipped runs, with ids that exist: exit status 0 and no complaint."""
    shutil.copytree(demo_runs / "claude-code", folder / "runs")
    shutil.copy(store, folder / "memory.duckdb")
    (folder / "facts.jsonl").write_bytes(FACT)
    (folder / "resolved.json").write_text('{"acme__shop-12": true}')
    memory, fact_id = Memory(store, "ticketing"), a_fact_id(store)
    if command in ("restore", "undo"):
        memory.retract(fact_id, "to be taken back")
    line = example(command).replace("f1:3a0c5e", fact_id[:12])
    line = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", memory.store.runs("ticketing")[0].session_id, line)
    if line.startswith("echo "):
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert "[REDACTED:" in done.stdout
        return
    ran = osmia(*shlex.split(line)[1:])
    assert ran.status == 0, ran.err
    assert "error" not in ran.err.lower()


def test_the_whole_program_without_a_command_shows_its_help() -> None:
    """As misuse: nothing was asked for."""
    ran = osmia()
    assert ran.status == 2
    assert "Commands:" in ran.out + ran.err


# --- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["extract", "runs"], {"source", "run", "unchanged", "facts", "discarded", "skipped", "masked"}),
        (["extract", "runs", "--dry-run"], {"source", "run", "unchanged", "facts", "discarded", "skipped", "masked"}),
        (["query", "--repo", DEMO_REPO, "--task", "tools/check fails"], {"known", "block", "facts"}),
        (["list"], {"fact_id", "content", "fact_kind", "scope", "owner", "confidence", "runs", "valid_from", "last_seen", "pinned"}),
        (["show", "FACT"], {"fact_id", "content", "runs"}),
        (["explain", "FACT"], {"fact", "witnesses"}),
        (["stats"], {"runs", "facts", "groups", "patterns", "profiles"}),
        (["retract", "FACT"], {"action", "fact_id", "dry_run"}),
        (["restore", "RETRACTED"], {"action", "fact_id", "dry_run"}),
        (["edit", "FACT", "--content", "Other words for it."], {"action", "fact_id", "dry_run"}),
        (["pin", "FACT"], {"action", "fact_id", "dry_run"}),
        (["unpin", "FACT", "--dry-run"], {"action", "fact_id", "dry_run"}),
        (["forget", "--repo", DEMO_REPO, "--dry-run"], {"runs", "facts", "dry_run"}),
        (["import", "facts.jsonl"], {"added", "known", "rejected"}),
        (["export"], {"type"}),
        (["verify"], {"problems"}),
        (["doctor"], {"state", "path", "tenants"}),
        (["demo"], {"runs", "facts", "blocks"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_json_of_every_command_parses(arguments: list[str], keys: set[str], folder: Path, store: Path) -> None:
    """One object a line on stdout and nothing else; times are RFC 3339."""
    runs_here(folder)
    (folder / "facts.jsonl").write_bytes(FACT + b"\n{}")
    retracted = a_fact_id(store, "is not installed")
    if "RETRACTED" in arguments:
        Memory(store, "ticketing").retract(retracted, "gone")
    named = [a_fact_id(store) if a == "FACT" else retracted if a == "RETRACTED" else a for a in arguments]

    ran = osmia(*named, "--json")

    assert ran.status == 0, ran.err
    assert ran.rows
    for row in ran.rows:
        assert keys <= row.keys()
    assert not re.search(r'"\d{4}-\d\d-\d\d \d\d:', ran.out)


def test_every_command_that_prints_data_can_print_json() -> None:
    """`redact` prints JSON and nothing else."""
    without = {name for name, command in GROUP.commands.items() if "as_json" not in {p.name for p in command.params}}
    assert without == {"redact"}


def test_a_dry_run_prints_one_object_for_each_run(demo_runs: Path, folder: Path) -> None:
    """With the documented keys, each quote in the record it names; nothing is written."""
    ran = osmia("extract", demo_runs, "--dry-run", "--json")
    assert (ran.status, len(ran.rows)) == (0, 14)
    for row in ran.rows:
        assert {"source", "run", "facts", "discarded", "skipped"} <= row.keys()
        for fact in row["facts"]:
            assert {"content", "fact_kind", "scope", "confidence", "evidence"} <= fact.keys()
            assert fact["evidence"]
            assert all({"record", "quote"} <= e.keys() and isinstance(e["record"], int) for e in fact["evidence"])
    claude = [r for r in ran.rows if r["run"]["engine"] == "claude-code"]
    for row in claude:
        lines = Path(row["source"]).read_text().splitlines()
        quotes = [(e["record"], e["quote"]) for f in row["facts"] for e in f["evidence"]]
        found = [json.dumps(q.split("\n")[0])[1:-1][:40] in lines[record] for record, q in quotes if "~" not in q and "[REDACTED" not in q]
        assert found.count(True) >= len(found) * 0.9  # a quote may stand in a string within a string
    assert list(folder.iterdir()) == []


def test_text_of_any_kind_becomes_json(folder: Path) -> None:
    """Lone surrogates, separators that cut lines and numbers that are none, in a process whose locale knows ASCII only."""
    run = a_task_run("s1", sh("bin/test\ud800", "40 passed in 2.20s"), title="Räume \ud800 auf\u2028bitte", model="m\ud800")
    data = as_jsonl(run).replace(b'"title"', b'"cost_usd": NaN, "title"')
    environment = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    dry = osmia_process("extract", "-", "--dry-run", "--json", stdin=data, cwd=folder, **environment)
    assert dry.status == 0, dry.err
    assert dry.value["run"]["title"].startswith("Räume")
    assert osmia("extract", "-", stdin=data).status == 0
    assert osmia("stats", "--json").value["runs"] == 1
    for command in (["list"], ["export"]):
        ran = osmia_process(*command, stdin=data, cwd=folder, **environment)
        assert (ran.status, "Traceback" in ran.err) == (0, False), ran.err


# --- stdout and stderr ------------------------------------------------------------------------------------------------


def test_data_goes_to_stdout_and_messages_to_stderr(folder: Path) -> None:
    """A block can be piped into a prompt: nothing but it is on stdout."""
    runs_here(folder)
    stored = osmia("extract", "runs")
    assert (stored.status, stored.out) == (0, "")
    assert "2 runs read; 3 new, 1 reinforced, 0 retired in .osmia/memory.duckdb" in stored.err
    block = osmia("query", "--repo", REPO, "--task", "make lint", "--now", "2026-05-10T00:00:00Z", "--explain")
    assert block.out.startswith("## Prior Knowledge\n\n")
    assert "relevant f1:" in block.err
    assert osmia("query", "--repo", REPO, "--task", "make lint", "--now", "2026-05-10T00:00:00Z").out == block.out


@pytest.mark.parametrize("command", ["query", "list", "stats", "export", "extract"])
def test_the_tenant_is_said_unless_it_was_given(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On stderr: option before environment before configuration before `ticketing`."""
    arguments = [command, str(runs_here(folder))] if command == "extract" else [command]
    assert "tenant: ticketing\n" in osmia(*arguments).err
    (folder / "osmia-config.yaml").write_text("memory:\n  tenant: from-file\n  store_path: own.duckdb\n")
    assert "tenant: from-file\n" in osmia(*arguments).err
    monkeypatch.setenv("OSMIA_MEMORY_TENANT", "from-environment")
    assert "tenant: from-environment\n" in osmia(*arguments).err
    assert "tenant:" not in osmia(*arguments, "--tenant", "incident-triage").err


def test_tenants_are_apart_on_the_command_line(folder: Path) -> None:
    """What one stored, the other does not list; each `--tenant` is a world of its own."""
    runs_here(folder)
    osmia("extract", "runs", "--tenant", "incident-triage")
    assert osmia("list").out == ""
    assert osmia("list", "--tenant", "nobody").status == 0
    assert "make lint" in osmia("list", "--tenant", "incident-triage").out


# --- the store --------------------------------------------------------------------------------------------------------


def test_the_store_is_found_in_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Option, OSMIA_MEMORY_STORE, configuration, `./.osmia/memory.duckdb`; an empty variable says nothing."""
    runs_here(folder)

    def made_by(*arguments: str) -> set[str]:
        before = set(folder.rglob("*.duckdb"))
        assert osmia("extract", "runs", *arguments).status == 0
        return {str(p.relative_to(folder)) for p in set(folder.rglob("*.duckdb")) - before}

    monkeypatch.setenv("OSMIA_MEMORY_STORE", "")
    assert made_by() == {".osmia/memory.duckdb"}
    (folder / "osmia-config.yaml").write_text("memory:\n  store_path: configured.duckdb\n")
    assert made_by() == {"configured.duckdb"}
    (folder / "other.yaml").write_text("memory:\n  store_path: other.duckdb\n")
    assert made_by("--config", "other.yaml") == {"other.duckdb"}
    monkeypatch.setenv("OSMIA_MEMORY_STORE", "environment.duckdb")
    assert made_by() == {"environment.duckdb"}
    assert made_by("--store", "option.duckdb") == {"option.duckdb"}


def test_a_new_store_is_for_its_owner_alone(folder: Path) -> None:
    """File 0600, whatever the umask; its folder 0700."""
    before = os.umask(0)
    try:
        runs_here(folder)
        osmia("extract", "runs")
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / ".osmia" / "memory.duckdb").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / ".osmia").stat().st_mode) == 0o700


@pytest.mark.parametrize("command", [c for c in COMMANDS if "dry_run" in {p.name for p in GROUP.commands[c].params}])
def test_a_dry_run_writes_nothing(command: str, folder: Path, store: Path) -> None:
    """Every command that writes has one, and it leaves the store as it was."""
    runs_here(folder)
    (folder / "facts.jsonl").write_bytes(FACT)
    (folder / "resolved.json").write_text('{"acme__shop-12": true}')
    Memory(store, "ticketing").retract(retracted := a_fact_id(store, "is not installed"), "gone")
    arguments = {
        "extract": ["runs"],
        "edit": [a_fact_id(store), "--content", "Other words."],
        "restore": [retracted],
        "forget": ["--repo", DEMO_REPO],
        "import": ["facts.jsonl"],
        "decay": [],
        "reconcile": [],
        "import-outcomes": ["resolved.json", "--engine", "codex"],
    }.get(command, [a_fact_id(store)])
    before = store.read_bytes()
    assert osmia(command, *arguments, "--dry-run").status == 0
    assert store.read_bytes() == before
    if command == "reconcile":
        return  # needs a model
    assert osmia(command, *arguments).status == 0
    assert store.read_bytes() != before


def test_decisions_by_hand_take_effect(store: Path) -> None:
    """Retract, restore, edit, pin and unpin, seen through `list` and `show`."""
    fact_id = a_fact_id(store)
    assert osmia("retract", fact_id, "--reason", "replaced").status == 0
    assert fact_id[:13] not in osmia("list").out
    assert osmia("show", fact_id).status == 1
    assert osmia("restore", fact_id[3:12]).out == f"restored: {fact_id}\n"
    assert osmia("edit", fact_id, "--content", "  Call `tools/check`\n for ada@lovelace-mail.io  ").status == 0
    assert "Call `tools/check` for [REDACTED:email:" in osmia("show", fact_id).out
    assert osmia("pin", fact_id).status == 0
    assert osmia("show", fact_id, "--json").value["pinned"] is True
    assert osmia("unpin", fact_id).status == 0
    assert osmia("show", fact_id, "--json").value["pinned"] is False


def test_explain_shows_every_run_with_its_words(store: Path) -> None:
    """Engine, session, outcome, file, record and quote."""
    told = osmia("explain", a_fact_id(store)).out
    assert told.count("record ") >= 13
    for word in ("claude-code", "codex", "mini-swe-agent", "(success)", "2026-03-02-retry-cap.jsonl", "'tools/check'"):
        assert word in told


def test_statistics_have_counts_and_intervals(store: Path) -> None:
    """In words; too few runs are said to be too few."""
    told = osmia("stats", "--engines", "--patterns").out
    assert "14 runs, " in told
    assert re.search(r"northwind/harbor-queue: 14 runs, \d+ of \d+ known outcomes were successes \(\d+% to \d+%\)", told)
    assert osmia("stats", "--repo", "acme/unknown").out.startswith("0 runs, 0 facts")


def test_export_to_a_file_is_whole(folder: Path, store: Path) -> None:
    """The same lines as on stdout, and no half-written file beside it."""
    assert osmia("export", "--out", "memory.jsonl").out == ""
    assert (folder / "memory.jsonl").read_text() == osmia("export").out
    assert sorted(p.name for p in folder.iterdir()) == [".osmia", "memory.jsonl"]
    again = osmia("import", "memory.jsonl", "--tenant", "incident-triage")
    assert again.status == 0
    assert osmia("export", "--tenant", "incident-triage").out != ""
    assert osmia("verify").out == "the store is sound\n"


def test_doctor_tells_the_state_of_a_store(store: Path) -> None:
    """And of a missing one."""
    report = osmia("doctor", "--json").value
    assert (report["state"], report["tenants"]["ticketing"]["runs"], report["mode"]) == ("ok", 14, "0600")
    assert osmia("doctor", "--json", "--store", "missing.duckdb").value["state"] == "missing"
    assert not Path("missing.duckdb").exists()


# --- standard input ---------------------------------------------------------------------------------------------------


def test_standard_input_is_read(folder: Path) -> None:
    """By extract, import, query and redact."""
    assert osmia("extract", "-", stdin=as_jsonl(a_task_run("s1", TESTS_RUN, LINT))).status == 0
    assert osmia("import", "-", stdin=FACT).out == "imported 1 rows new, 0 known already, 0 rejected\n"
    piped = osmia("query", "--repo", REPO, "--task", "-", stdin=b"Why are carts frozen on Fridays?\xff")
    assert "Carts are frozen on Fridays" in piped.out
    Path("task.md").write_text("Why are carts frozen on Fridays?")
    assert osmia("query", "--repo", REPO, "--task", "@task.md").out == piped.out
    masked = osmia("redact", stdin=b'{"text": "password=hunter2secret"}\n\n{"text": "caf\\u00e9 \\ud800"}\n')
    assert [set(row) for row in masked.rows] == [{"text"}, {"text"}]
    assert "hunter2secret" not in masked.out
    assert masked.rows[1]["text"] == "café \ud800"


# --- exit status ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "arguments", "says"),
    [
        (0, ["query", "--task", "anything", "--repo", "acme/unknown"], ""),
        (0, ["list", "--tenant", "unknown"], ""),
        (0, ["stats", "--repo", "acme/unknown"], ""),
        (0, ["export", "--tenant", "unknown"], ""),
        (0, ["forget", "--repo", "acme/unknown"], ""),
        (0, ["extract", "good.jsonl", "bad.jsonl"], "skipped 1:"),
        (0, ["import", "mixed.jsonl"], "mixed.jsonl:2"),
        (1, ["extract", "good.jsonl", "bad.jsonl", "--strict"], "skipped 1:"),
        (1, ["import", "mixed.jsonl", "--strict"], "mixed.jsonl:2"),
        (1, ["extract", "missing.jsonl"], "No such file"),
        (1, ["extract", "bad.jsonl"], "bad.jsonl"),
        (1, ["extract", "empty"], "no run could be read"),
        (1, ["extract", "nothing-*.jsonl"], "no file matches"),
        (1, ["import", "missing.jsonl"], "No such file"),
        (1, ["import", "."], "directory"),
        (1, ["import", "bad.jsonl"], "bad.jsonl:1"),
        (1, ["show", "f1:unknown"], "has no fact"),
        (1, ["explain", ""], "has no fact"),
        (1, ["retract", "f1:unknown"], "has no fact"),
        (1, ["restore", "f1:unknown"], "0 retracted or superseded facts"),
        (1, ["forget", "--run", "unknown"], "has no run"),
        (1, ["verify"], "there is no store"),
        (1, ["export", "--out", "missing/folder/out.jsonl"], "cannot write"),
        (2, ["unknown"], "No such command"),
        (2, ["list", "--unknown"], "No such option"),
        (2, ["extract"], "Missing argument"),
        (2, ["show"], "Missing argument"),
        (2, ["query", "--task", "@missing"], "cannot read"),
        (2, ["query", "--task", "@."], "cannot read"),
        (2, ["query", "--task", "x", "--task-type", "poem"], "bug_fix"),
        (2, ["query", "--task", "x", "--max-facts", "0"], "--max-facts"),
        (2, ["query", "--task", "x", "--now", "yesterday"], "--now"),
        (2, ["query", "--task", "x", "--now", "0001-01-01T00:00:00+23:00"], "--now"),
        (2, ["extract", "good.jsonl", "--at", "soon"], "--at"),
        (2, ["extract", "good.jsonl", "--outcome", "fine"], "success"),
        (2, ["list", "--kind", "poem"], "repo_quirk"),
        (2, ["list", "--tenant", ""], "a tenant is required"),
        (2, ["list", "--config", "missing.yaml"], "missing.yaml"),
        (2, ["list", "--config", "typo.yaml"], "did you mean `tenant`"),
        (2, ["list", "--config", "bad.yaml"], "no valid YAML"),
        (2, ["forget"], "exactly one"),
        (2, ["forget", "--run", "a", "--repo", "b"], "exactly one"),
        (2, ["edit", "f1:00"], "--content"),
        (2, ["export", "--out", "."], "--out"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_exit_status(status: int, arguments: list[str], says: str, folder: Path) -> None:
    """0 done, also partly; 1 nothing could be done, or something was skipped under --strict; 2 misuse. What was wrong is said on stderr."""
    (folder / "good.jsonl").write_bytes(as_jsonl(a_task_run("s1", TESTS_RUN)))
    (folder / "bad.jsonl").write_bytes(b"no transcript")
    (folder / "mixed.jsonl").write_bytes(FACT + b"\n{}")
    (folder / "empty").mkdir()
    (folder / "typo.yaml").write_text("memory:\n  tenent: x\n")
    (folder / "bad.yaml").write_text("memory: [")
    ran = osmia(*arguments)
    assert (ran.status, says in ran.err) == (status, True), ran
    if status == 2:
        assert ran.out == ""


def test_nothing_known_says_so_in_json(store: Path) -> None:
    """An unknown repository or tenant is told apart from a known one to which nothing belongs."""
    task = ["--task", "translate the greeting into Portuguese", "--json"]
    assert osmia("query", "--repo", "acme/unknown", *task).value == {"known": False, "block": "", "facts": []}
    assert osmia("query", "--repo", DEMO_REPO, *task).value == {"known": True, "block": "", "facts": []}
    assert osmia("query", "--repo", DEMO_REPO, "--tenant", "unknown", *task).value["known"] is False


def test_a_bad_time_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the variable, for no option was given."""
    monkeypatch.setenv("OSMIA_MEMORY_NOW", "yesterday")
    ran = osmia("query", "--task", "x")
    assert (ran.status, "OSMIA_MEMORY_NOW" in ran.err) == (2, True)


def test_isolation_cannot_be_switched_off(folder: Path) -> None:
    """The key is accepted, and a plain warning says that it has no effect."""
    (folder / "osmia-config.yaml").write_text("memory:\n  tenant_isolation: false\n  store_path: own.duckdb\n")
    ran = osmia("list")
    assert (ran.status, ran.out) == (0, "")
    assert "warning: `memory.tenant_isolation: false` has no effect" in ran.err
    assert "config.py" not in ran.err


# --- as a process -----------------------------------------------------------------------------------------------------


def test_the_command_works_as_a_process(folder: Path) -> None:
    """Standard input to block, with the clock of the environment."""
    data = as_jsonl(*(a_task_run(f"s{n}", TESTS_RUN, LINT) for n in range(2)))
    assert osmia_process("extract", "-", stdin=data, cwd=folder).status == 0
    arguments = ("query", "--repo", REPO, "--task", "make lint prints warnings")
    ran = osmia_process(*arguments, cwd=folder, OSMIA_MEMORY_NOW="2026-05-10T00:00:00Z")
    assert (ran.status, ran.err) == (0, "tenant: ticketing\n")
    assert ran.out == osmia(*arguments, "--now", "2026-05-10T00:00:00Z").out
    assert "`make lint`" in ran.out


def test_a_reader_that_leaves_is_no_error(folder: Path, store: Path) -> None:
    """`export | head -1` ends with 0 and without a word about pipes, whether much or little was left to write."""
    for arguments in (["export"], ["show", a_fact_id(store)]):
        command = [sys.executable, "-m", "osmia_memory.cli.app", *arguments, "--tenant", "ticketing"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 0


def test_an_interrupt_says_what_it_left(folder: Path) -> None:
    """Ctrl-C ends with 130 and one line."""
    command = [sys.executable, "-m", "osmia_memory.cli.app", "extract", "-"]
    # A suite that a shell started in the background ignores SIGINT, and so would its children.
    heeds = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, preexec_fn=heeds) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"tenant: ticketing\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert b"interrupted; what was stored so far is kept\n" in told
    assert process.returncode == 130


def test_the_version_is_the_packages() -> None:
    """One line, status 0."""
    ran = osmia("--version")
    assert (ran.status, ran.out) == (0, f"osmia-memory {metadata.version('osmia-memory')}\n")
