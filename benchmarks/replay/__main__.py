"""Does it help the next run? Recorded runs in time order, each asked for before it is learned from.

    python -m benchmarks.replay                                    # the demo's runs, with the small judge of our own
    python -m benchmarks.replay --judge JUDGE ARCHIVE [ARCHIVE...]  # other archives, with a judge beside its own arms

For each repository, before run i, memory holds only its earlier runs; the question is run i's task text, repository and engine. Writes
`benchmarks/results/replay.json` (without a judge `replay-demo.json`; or `--out`): {"by_archive": {archive: {arm: what the judge prints}}, "stamp": {...}}. The arm of this project
is `memory` (`memory_apart`: each failure in a bullet of its own); `embedding` is a search over one-line summaries of earlier runs, what vector memories do.

JUDGE is a script with two commands: `plan ARCHIVE` prints one row a run (run, source, repo, engine, started_at, task), `score ARCHIVE BLOCKS`
prints one JSON object on blocks of {"run", "bullets": [{"text"}], "tokens"}, and `score ARCHIVE --arm NAME` on an arm that it makes itself.
Everything is fixed (clock, order, ties), so equal code prints equal figures.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.replay import arms, own_judge, recorded

from osmia_memory.models import Transcript
from osmia_memory.transcripts.read import ReadOptions, read_all
from osmia_memory.transcripts.redact import Redactor

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "src" / "osmia_memory" / "demo" / "runs"
DOCS = ROOT / "docs" / "benchmarks.md"
RESULT = ROOT / "benchmarks" / "results" / "replay.json"
JUDGES_ARMS = ("nothing", "random", "newest", "frequent", "oracle")
OURS = {"memory": arms.memory_blocks, "memory_apart": arms.memory_apart_blocks, "embedding": arms.embedding_blocks}


def without_texts(value: Any) -> Any:
    """The figures without the failures that they count: texts of the archives stay where they are."""
    if not isinstance(value, dict):
        return value
    return {key: without_texts(each) for key, each in value.items() if key != "by_signature"}


def main() -> int:
    """Replay, print a table, write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archives", nargs="*", help="folders or tar files of transcripts")
    parser.add_argument("--judge", metavar="PATH", help="the judge's script; without it, the demo's runs and our own small judge")
    parser.add_argument("--blocks", type=Path, metavar="DIR", help="keep the blocks here, as <archive>-<arm>.jsonl")
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/replay.json, without a judge replay-demo.json")
    options = parser.parse_args()
    if options.judge and not options.archives:
        parser.error("give at least one archive to judge")
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        kept = options.blocks or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        if options.judge:
            by_archive = {recorded.archive_name(a): judged(options.judge, a, kept) for a in options.archives}
        else:
            print("no judge was given: our own small judge, whose figures stand for themselves", file=sys.stderr)
            by_archive = {recorded.archive_name(a): self_judged(a) for a in options.archives} or {"demo": self_judged(str(DEMO))}
    for archive, scores in by_archive.items():
        print(table(archive, scores))
    out: Path = options.out or (RESULT if options.judge else RESULT.with_name("replay-demo.json"))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(
        json.dumps({"by_archive": without_texts(by_archive), "stamp": stamp()}, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    )
    if options.judge and options.out is None:
        write_table(by_archive)
    return 0


_BEGIN, _END = "<!-- figures: benchmarks.replay -->\n", "<!-- end of figures -->"


def write_table(by_archive: dict[str, Any]) -> None:
    """Put the figures in their place in the docs."""
    rows = ["| archive | arm | foreseen | useful + standing | noise | bullets a block | unearned |", "|---|---|---|---|---|---|---|"]
    for archive, scores in by_archive.items():
        for arm, s in scores.items():
            cells = [_figure(s["foreseen"]["share"]), f"{_figure(s['useful'])} + {_figure(s.get('useful_standing'))}", _figure(s["noise"])]
            cells += [_figure(s["coverage"]["bullets_per_block"]), str(s.get("unearned", ""))]
            rows.append("| " + " | ".join([archive, arm, *cells]) + " |")
    before, _, rest = DOCS.read_text(encoding="utf-8").partition(_BEGIN)
    DOCS.write_text(before + _BEGIN + "\n" + "\n".join(rows) + "\n\n" + _END + rest.partition(_END)[2], encoding="utf-8")


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def judged(judge: str, archive: str, folder: Path) -> dict[str, Any]:
    """What the judge says of our arms and of its own."""
    by_repo = recorded.load([archive], recorded.plan_of(judge, archive))
    scores: dict[str, Any] = {}
    for arm, blocks_of in OURS.items():
        path = folder / f"{recorded.archive_name(archive)}-{arm}.jsonl"
        rows = [row for steps in by_repo.values() for row in blocks_of(steps)]
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        scores[arm] = _run(judge, archive, str(path))
    return scores | {arm: _run(judge, archive, "--arm", arm) for arm in JUDGES_ARMS}


def _run(judge: str, archive: str, *rest: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, judge, "score", archive, *rest], capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def self_judged(archive: str) -> dict[str, Any]:
    """The same with our own judge, for our arms and an empty block."""
    by_repo = recorded.load([archive])
    options = ReadOptions(tenant=recorded.TENANT, redactor=Redactor(b"replay"))
    texts: dict[str, list[Transcript]] = {}
    for item in read_all([archive], options):
        if isinstance(item, Transcript):
            texts.setdefault(item.run.source, []).append(item)
    scores = {}
    for arm, blocks_of in {**OURS, "nothing": arms.no_blocks}.items():
        parts = []
        for steps in by_repo.values():
            blocks = {row["run"]: [b["text"] for b in row["bullets"]] for row in blocks_of(steps)}
            runs = [(s.run, own_judge.happened(texts[s.learned[0].run.source])) for s in steps]
            parts.append(own_judge.score(runs, blocks))
        scores[arm] = own_judge.summed(parts)
    return scores


def table(archive: str, scores: dict[str, Any]) -> str:
    """One line an arm."""
    lines = [f"{archive:24} foreseen  useful  standing  noise  bullets/block  blocks"]
    for arm, s in scores.items():
        figures = (
            s["foreseen"]["share"],
            s["useful"],
            s.get("useful_standing"),
            s["noise"],
            s["coverage"]["bullets_per_block"],
            s["coverage"]["share"],
        )
        lines.append(f"  {arm:22} " + "  ".join(f"{'-' if f is None else f'{f:.3f}':>7}" for f in figures))
    return "\n".join(lines)


def stamp() -> dict[str, Any]:
    """Which code and libraries made the figures."""
    return {"git": _git_sha(), "versions": {name: _version(name) for name in _LIBRARIES}, "seeds": {}, "python": sys.version.split()[0]}


_LIBRARIES: Sequence[str] = ("osmia-memory", "duckdb", "wordllama", "tree-sitter", "tree-sitter-bash")


def _git_sha() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    raise SystemExit(main())
