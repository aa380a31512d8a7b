"""The replay benchmark: what a run is shown was known before it began."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.replay import arms, own_judge, recorded
from benchmarks.replay.__main__ import DEMO, table

from osmia_memory.testing import Tape, a_run

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def steps() -> list[recorded.Step]:
    """The demo's runs, oldest first."""
    (only,) = recorded.load([str(DEMO)]).values()
    return only


def test_a_block_is_made_before_its_own_run_is_learned_from(steps: list[recorded.Step]) -> None:
    """The first run is shown nothing, and what a run is shown does not depend on it or on later ones."""
    blocks = arms.memory_blocks(steps)

    assert [s.started_at for s in steps] == sorted(s.started_at for s in steps)
    assert blocks[0]["bullets"] == []
    assert arms.memory_blocks(steps[:6]) == blocks[:6]
    assert any(b["bullets"] for b in blocks[1:6])


def test_bullets_come_without_label_and_confidence(steps: list[recorded.Step]) -> None:
    """A judge that looks for words such as "failure" must find them in the text itself."""
    texts = [b["text"] for block in arms.memory_blocks(steps[:6]) for b in block["bullets"]]

    assert texts
    assert not any("**" in text or "confidence" in text for text in texts)


def test_the_embedding_arm_tells_of_earlier_runs_only(steps: list[recorded.Step]) -> None:
    """At most ten one-line summaries, none of the run's own."""
    blocks = arms.embedding_blocks(steps)

    assert blocks[0]["bullets"] == []
    assert max(len(b["bullets"]) for b in blocks) == arms.MAX_SUMMARIES
    for step, block in zip(steps, blocks, strict=True):
        assert arms.summary(step.learned[0].run) not in [b["text"] for b in block["bullets"]]


def test_a_plan_decides_order_names_and_questions(steps: list[recorded.Step]) -> None:
    """Rows name files by where the judge found them; the last part of the path is what counts."""
    rows = [
        {
            "run": f"r{n}",
            "source": f"elsewhere/{Path(step.learned[0].run.source).name}",
            "repo": "acme/shop",
            "engine": "codex",
            "started_at": f"2026-01-0{9 - n}T00:00:00Z",
            "task": f"task {n}",
        }
        for n, step in enumerate(steps[:3])
    ]
    planned = recorded.load([str(DEMO)], rows)["acme/shop"]

    assert [(s.run, s.task, len(s.learned)) for s in planned] == [("r2", "task 2", 1), ("r1", "task 1", 1), ("r0", "task 0", 1)]


def test_our_own_judge_counts_what_two_earlier_runs_had_met() -> None:
    """The third run to lack a tool could have known; a bullet on something else is noise."""
    tape = Tape(a_run()).sh("frobtool check src", "bash: line 1: frobtool: command not found", 127).sh("python -m frob src", "ok")
    runs = [(f"r{n}", own_judge.happened([tape.transcript()])) for n in range(3)]
    told = ["`frobtool` is not found here; `python -m frob` did the same.", "`quux` is slow."]
    figures = own_judge.summed([own_judge.score(runs, {"r2": told})])

    assert figures["foreseen"] == {"count": 1, "foreseen": 1, "share": 1.0}
    assert (figures["useful"], figures["noise"]) == (0.5, 0.5)
    assert figures["coverage"] == {"share": 0.333, "bullets_per_block": 2.0}


def test_without_a_judge_the_demo_is_replayed_and_that_is_said(tmp_path: Path) -> None:
    """The result holds a row an arm and what made it; two hash seeds give the same figures."""
    written = []
    for seed in ("1", "2"):
        out = tmp_path / f"{seed}.json"
        command = [sys.executable, "-m", "benchmarks.replay", "--out", str(out)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        assert "our own small judge" in done.stderr
        written.append(json.loads(out.read_text(encoding="utf-8")))

    assert written[0]["by_archive"] == written[1]["by_archive"]
    assert set(written[0]["by_archive"]["demo"]) == {"memory", "memory_apart", "embedding", "nothing"}
    assert {"git", "versions", "seeds"} <= written[0]["stamp"].keys()
    assert "memory" in table("demo", written[0]["by_archive"]["demo"])
