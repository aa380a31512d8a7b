"""The order of commits comes from a real checkout, and goes before the clock."""

import json
import subprocess
from pathlib import Path

import pytest

from osmia_memory import commits
from osmia_memory.errors import InputError
from tests.product import REPO, a_memory
from tests.test_over_time import row, told


def git(folder: Path, *arguments: str) -> str:
    """What git prints there."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@northwind.example"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, name: str) -> str:
    """One more commit; its hash."""
    git(folder, "commit", "-q", "--allow-empty", "-m", name)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """An empty repository."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return folder


def test_ancestors_are_those_of_the_history(checkout: Path) -> None:
    """A fork is no ancestor, a merge has both sides, a short or unknown hash does not hurt."""
    first = commit(checkout, "first")
    git(checkout, "checkout", "-q", "-b", "side")
    side = commit(checkout, "side")
    git(checkout, "checkout", "-q", "main")
    second = commit(checkout, "second")
    git(checkout, "merge", "-q", "--no-ff", "-m", "merge", "side")
    merged = git(checkout, "rev-parse", "HEAD")
    found = commits.ancestors(checkout, [first, side, second[:12], merged, "0" * 40, "--version"])
    assert found == {
        first: frozenset(),
        side: frozenset({first}),
        second[:12]: frozenset({first}),
        merged: frozenset({first, side, second[:12]}),
    }


def test_no_checkout_is_said(tmp_path: Path) -> None:
    """A folder that git does not know is an error with a way out."""
    with pytest.raises(InputError, match="checkout"):
        commits.ancestors(tmp_path, ["a" * 40])


def test_the_later_commit_supersedes_whatever_the_clock_says(checkout: Path, tmp_path: Path) -> None:
    """A run of the last day that worked on an old commit tells the older state."""
    old, new = commit(checkout, "port 8080"), commit(checkout, "port 9090")
    memory = a_memory(tmp_path)
    runs = [
        {"type": "run", "run_id": name, "engine": "codex", "session_id": name, "repo": REPO, "base_commit": base}
        for name, base in (("r-old", old), ("r-new", new))
    ]
    facts = [
        row("The dev server listens on port 9090.", 1, witnesses=[{"run_id": "r-new"}]),
        row("The dev server listens on port 8080.", 9, witnesses=[{"run_id": "r-old"}]),
    ]
    for run, fact in zip((runs[1], runs[0]), facts, strict=True):
        memory.import_rows("\n".join(map(json.dumps, (run, fact))).encode(), name="rows")
    assert len(memory.facts()) == 2, "commits whose order nobody knows are not compared"
    assert memory.order_commits(checkout, REPO) == 1
    assert [f.content for f in memory.facts()] == ["The dev server listens on port 9090."]
    assert memory.order_commits(checkout, REPO) == 0
    told(memory, row("The dev server needs TLS.", 2))
    assert memory.verify() == []
