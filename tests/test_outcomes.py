"""Outcomes without transcripts: stored once, counted exactly, kept apart by tenant. Content is invented."""

import json
import random
import sqlite3
from pathlib import Path

import pytest

from osmia_memory import predicting
from osmia_memory.aggregate import wilson
from osmia_memory.memory import Memory
from tests.product import TESTS_RUN, a_memory, a_task_run, learn, osmia

RNG = random.Random(3)
ROWS = {
    engine: {f"{repo.replace('/', '__')}-{n}": RNG.random() < rate for repo in ("acme/shop", "acme/cart") for n in range(40)}
    for engine, rate in (("codex", 0.7), ("aider", 0.3))
}


def files(folder: Path) -> dict[str, Path]:
    """One file an engine."""
    found = {engine: folder / f"{engine}.json" for engine in ROWS}
    for engine, path in found.items():
        path.write_text(json.dumps(ROWS[engine]))
    return found


def test_rates_are_exactly_those_of_the_raw_rows(tmp_path: Path) -> None:
    """An independent query over the raw rows gives the same counts, rates and intervals, by engine and by engine and repository."""
    store = tmp_path / "m.duckdb"
    raw = sqlite3.connect(":memory:")
    raw.execute("CREATE TABLE rows (engine, repo, ok)")
    for engine, path in files(tmp_path).items():
        assert osmia("import-outcomes", path, "--engine", engine, "--at", "2026-01-01T00:00:00Z", "--store", store).status == 0
        for instance, ok in ROWS[engine].items():
            raw.execute("INSERT INTO rows VALUES (?, ?, ?)", (engine, instance.rsplit("-", 1)[0].replace("__", "/"), ok))
    report = json.loads(osmia("stats", "--engines", "--json", "--store", store).out)
    told = {tuple(sorted(g["key"].items())): (g["known"], g["successes"], g["interval"]) for g in report["engines"]}
    expected = {}
    for engine, runs, hits in raw.execute("SELECT engine, count(*), sum(ok) FROM rows GROUP BY engine"):
        expected[(("engine", engine),)] = (runs, hits, list(wilson(hits, runs)))
    for engine, repo, runs, hits in raw.execute("SELECT engine, repo, count(*), sum(ok) FROM rows GROUP BY engine, repo"):
        expected[("engine", engine), ("repo", repo)] = (runs, hits, list(wilson(hits, runs)))
    assert told == expected
    shown = osmia("stats", "--engines", "--store", store).out
    assert "strong: " in shown
    assert "expected success of the next task" in shown


def test_again_is_nothing_new_and_a_changed_row_replaces(tmp_path: Path) -> None:
    """Equal rows write nothing; another verdict for the same task counts instead of the first."""
    memory = a_memory(tmp_path)
    path = files(tmp_path)["codex"]
    given = [(path.name, path.read_bytes())]
    assert memory.import_outcomes(given, engine="codex").added == 80
    before = memory.store_path.read_bytes()
    again = memory.import_outcomes(given, engine="codex")
    assert (again.added, again.known) == (0, 80)
    assert memory.store_path.read_bytes() == before
    flipped = json.dumps({"acme__shop-0": not ROWS["codex"]["acme__shop-0"]}).encode()
    assert memory.import_outcomes([("x", flipped)], engine="codex").added == 1
    assert memory.statistics()["runs"] == 80


def test_a_run_with_a_transcript_counts_once(tmp_path: Path) -> None:
    """The row of a task that was read from its transcript is known."""
    memory = a_memory(tmp_path)
    learn(memory, a_task_run("acme__shop-1", TESTS_RUN))
    report = memory.import_outcomes([("x", b'{"acme__shop-1": false, "acme__shop-2": true}')], engine="aider")
    assert (report.added, report.known) == (1, 1)
    assert memory.statistics()["runs"] == 2


def test_rows_without_an_engine_are_refused(tmp_path: Path) -> None:
    """The message says what to give; other tenants see nothing of what is imported."""
    ran = osmia("import-outcomes", files(tmp_path)["codex"], "--store", tmp_path / "m.duckdb")
    assert ran.status == 1
    assert "--engine" in ran.err
    memory = a_memory(tmp_path, name="other.duckdb")
    memory.import_outcomes([("x", b'{"acme__shop-1": true}')], engine="aider")
    assert Memory(memory.store_path, "incident-triage", clock=memory.clock).statistics()["runs"] == 0


def test_secrets_in_rows_are_masked(tmp_path: Path) -> None:
    """What a row says goes through the same redaction as a transcript."""
    memory = a_memory(tmp_path)
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    memory.import_outcomes([("x", json.dumps([{"id": "t-1", "resolved": True, "model": token}]).encode())], engine="aider")
    assert token.encode() not in memory.store_path.read_bytes()
    assert "[REDACTED:" in str(memory.store.runs("ticketing")[0].model)


# --- predictors -----------------------------------------------------------------------------------------------------------


def test_each_outcome_is_predicted_before_it_is_seen() -> None:
    """The first guess is one half; a run of successes is believed more and more."""
    outcomes = [("codex", "acme/shop", True)] * 3
    assert predicting.brier(outcomes, predicting.global_rate) == pytest.approx(((1 / 2) ** 2 + (1 / 3) ** 2 + (1 / 4) ** 2) / 3)


def test_the_kept_predictor_is_not_worse_where_engines_and_repositories_differ() -> None:
    """On outcomes whose chance is that of the engine plus that of the repository it beats the simpler ones."""
    rng = random.Random(0)
    outcomes = []
    for _ in range(3000):
        engine, repo = rng.choice("abc"), rng.choice("xyz")
        chance = {"a": 0.2, "b": 0.4, "c": 0.6}[engine] + {"x": -0.15, "y": 0.0, "z": 0.25}[repo]
        outcomes.append((engine, repo, rng.random() < chance))
    scores = {name: predicting.brier(outcomes, predict) for name, predict in predicting.PREDICTORS.items()}
    assert min(scores, key=lambda name: scores[name]) == "engine + repository"
    assert predicting.expected is predicting.PREDICTORS["engine + repository"]
