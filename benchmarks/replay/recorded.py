"""Archives of recorded runs -> one step a file, oldest first, with what the rules find in it. Each file is read once."""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from osmia_memory.digest import Digest
from osmia_memory.models import Skip
from osmia_memory.transcripts.read import ReadOptions
from osmia_memory.transcripts.redact import Redactor
from osmia_memory.transcripts.sources import sources
from osmia_memory.workers import digests, spare_processors

TENANT = "replay"
_KEY = b"equal secrets, equal masks: replay"  # fixed, so that two replays store the same


@dataclass(frozen=True)
class Step:
    """One recorded file: the question that its run begins with, and what is learned from it afterwards."""

    run: str
    repo: str
    engine: str | None
    task: str
    started_at: datetime
    learned: tuple[Digest, ...]  # a file may hold several runs, such as those of sub-agents


def load(paths: Sequence[str], plan: Iterable[dict[str, str]] | None = None) -> dict[str, list[Step]]:
    """The steps of each repository, oldest first.

    `plan` rows (run, source, repo, engine, started_at, task) decide the order, the questions and the names; without them, those of the
    readers are used. Files that no row names are left out, as are files that could not be read.
    """
    options = ReadOptions(tenant=TENANT, redactor=Redactor(_KEY))
    by_source: dict[str, list[Digest]] = {}
    for item in digests(sources(paths), options, {}, workers=spare_processors()):
        if isinstance(item, Digest):
            by_source.setdefault(item.run.source, []).append(item)
        elif isinstance(item, Skip):
            print(f"not read: {item.where}: {item.reason}", file=sys.stderr)
    steps = _planned(by_source, plan) if plan is not None else [_own(found) for found in by_source.values()]
    by_repo: dict[str, list[Step]] = {}
    for step in sorted(steps, key=lambda s: (s.started_at, s.run)):
        by_repo.setdefault(step.repo, []).append(step)
    return dict(sorted(by_repo.items()))


def _planned(by_source: dict[str, list[Digest]], plan: Iterable[dict[str, str]]) -> list[Step]:
    named = {_end(source): found for source, found in by_source.items()}
    steps = []
    for row in plan:
        found = named.get(_end(row["source"]), [])
        started = datetime.fromisoformat(row["started_at"]).astimezone(UTC) if row["started_at"] else datetime.min.replace(tzinfo=UTC)
        steps.append(Step(row["run"], row["repo"], row["engine"], row["task"], started, tuple(found)))
    return steps


def _end(source: str) -> str:
    """A file's own name: archives and folders are named differently by whoever reads them."""
    return source.rpartition("/")[2].rpartition(":")[2]


def _own(found: list[Digest]) -> Step:
    run = min((d.run for d in found), key=lambda r: (r.parent_session_id is not None, r.segment))
    started = run.started_at or run.finished_at or datetime.min.replace(tzinfo=UTC)
    return Step(run.session_id, run.repo or "", run.engine, run.description or run.title, started, tuple(found))


def plan_of(judge: str, archive: str) -> list[dict[str, str]]:
    """The judge's order and task texts."""
    done = subprocess.run([sys.executable, judge, "plan", archive], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]


def archive_name(path: str) -> str:
    """`mini-swe-agent` for `somewhere/mini-swe-agent.tar.xz`."""
    return Path(path).name.split(".tar")[0]
