"""What extraction and a cold query cost, as ratios within one run: machines differ, ratios hardly do.

    python benchmarks/speed.py [FOLDER] [--runs 3] [--facts 10000] [--out benchmarks/results/speed.json]

Extraction: wall time of `osmia-memory extract FOLDER` (a new process, redaction and store included) over one plain `json.loads` pass over
the same records in this process; peak memory of that process. Without FOLDER the shipped demo runs are taken, ten copies of each under
other session ids, so that start-up does not drown the rest.
Query: wall time of a cold `osmia-memory query` on a store with --facts facts of one repository over `python -c "import duckdb"`.
Each figure is the median of --runs, the compared commands taken in turn.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]
DEMO = ROOT / "src" / "osmia_memory" / "demo" / "runs"
COMMAND = [sys.executable, "-m", "osmia_memory.cli.app"]


def timed(command: list[str]) -> float:
    """Wall seconds of a command that must succeed."""
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def records(folder: pathlib.Path) -> list[bytes]:
    """Every record of the transcripts below a folder: lines of JSONL, whole documents of the rest."""
    found: list[bytes] = []
    for path in sorted(folder.rglob("*")):
        if path.name.endswith(".jsonl"):
            found += [line for line in path.read_bytes().split(b"\n") if line.strip()]
        elif path.name.endswith(".traj.json"):
            found.append(path.read_bytes())
    return found


def json_pass(lines: list[bytes]) -> float:
    """Wall seconds of one `json.loads` of every record."""
    started = time.perf_counter()
    for line in lines:
        try:
            json.loads(line)
        except ValueError:
            continue
    return time.perf_counter() - started


def copies(target: pathlib.Path, count: int) -> pathlib.Path:
    """The demo runs `count` times over; the session ids differ, so each copy is a run of its own."""
    for n in range(count):
        for path in DEMO.rglob("*"):
            if path.is_file():
                out = target / str(n) / path.relative_to(DEMO)
                out.parent.mkdir(parents=True, exist_ok=True)
                out.write_bytes(path.read_bytes().replace(b"019", b"a%02d" % n).replace(b"harbor-queue-1", b"harbor-queue-%d1" % (n + 1)))
    return target


def extraction(folder: pathlib.Path, runs: int) -> dict[str, float]:
    """Ratio and peak memory of extracting a folder into a new store."""
    lines, ratios, seconds = records(folder), [], []
    for _ in range(runs):
        base = json_pass(lines)
        with tempfile.TemporaryDirectory() as tmp:
            took = timed([*COMMAND, "extract", str(folder), "--store", f"{tmp}/m.duckdb", "--tenant", "bench"])
        ratios.append(took / base)
        seconds.append(took)
    peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {
        "records": len(lines),
        "megabytes": round(sum(map(len, lines)) / 1e6, 1),
        "seconds": round(statistics.median(seconds), 2),
        "times_json_loads": round(statistics.median(ratios), 2),
        "peak_memory_mb": round(peak_mb),
    }


def query(facts: int, runs: int) -> dict[str, float]:
    """Ratio of a cold query on a large repository, with and without the embedding."""
    words = "cart total rounding currency rate refund order stock price tax invoice basket coupon checkout ledger report export import sync wallet audit".split()
    with tempfile.TemporaryDirectory() as tmp:
        rows = pathlib.Path(tmp, "facts.jsonl")
        with rows.open("w") as file:
            for n in range(facts):
                a, b, c = words[n % 20], words[(n // 20) % 20], words[(n // 400) % 20]
                content = (
                    f"`shop/{a}/{b}_{n}.py` needs `{c}_{n % 97}` set before the {a} of a {b} is computed; `tests/{a}/test_{b}.py` shows it."
                )
                file.write(
                    json.dumps(
                        {
                            "type": "fact",
                            "content": content,
                            "fact_kind": "repo_quirk",
                            "repo": "acme/shop",
                            "confidence": 0.8,
                            "decay_rate": 0.0,
                        }
                    )
                    + "\n"
                )
        store = ["--store", f"{tmp}/m.duckdb", "--tenant", "bench"]
        subprocess.run([*COMMAND, "import", str(rows), *store], check=True, capture_output=True)
        ask = [*COMMAND, "query", "--repo", "acme/shop", "--task", "fix the rounding of the refund in shop/ledger/tax_77.py", *store]
        plain = pathlib.Path(tmp, "osmia-config.yaml")
        plain.write_text("memory:\n  embedding: false\n")
        ratios: dict[str, list[float]] = {"with_embedding": [], "without_embedding": []}
        for _ in range(runs + 1):  # the first round warms the file cache and is not counted
            base = timed([sys.executable, "-c", "import duckdb"])
            ratios["with_embedding"].append(timed(ask) / base)
            ratios["without_embedding"].append(timed([*ask, "--config", str(plain)]) / base)
    return {"facts": facts, **{f"times_import_duckdb_{name}": round(statistics.median(values[1:]), 2) for name, values in ratios.items()}}


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        folder = args.folder or copies(pathlib.Path(tmp), 10)
        result = {
            "extraction": extraction(folder, args.runs),
            "query": query(args.facts, args.runs),
            "cpus": os.cpu_count(),
            "python": sys.version.split()[0],
        }
    text = json.dumps(result, indent=1)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
