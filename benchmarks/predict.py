"""Predicting each outcome before it is seen: Brier scores of simple predictors.

    python benchmarks/predict.py NAME=FILE [NAME=FILE ...] [--shuffles 10] [--write]

NAME is the engine of a file of outcome rows (as `osmia-memory import-outcomes` takes them). The outcomes are shuffled with seeds 0, 1, ...;
each score is the mean over the shuffles. `--write` puts them into benchmarks/results/predict.json and the table of docs/benchmarks.md.
"""

import argparse
import json
import random
import statistics
import sys
from pathlib import Path

from osmia_memory import predicting
from osmia_memory.transcripts.outcome_rows import OutcomeRow, read

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "benchmarks.md"
START, END = "<!-- predictors: benchmarks/predict.py -->", "<!-- end of predictors -->"


def outcomes(named: list[str]) -> list[tuple[str, str, bool]]:
    """(engine, repository, success) of every row with a verdict, in the order of files and rows."""
    found = []
    for one in named:
        engine, _, path = one.partition("=")
        for row in read(Path(path).read_bytes(), path):
            if isinstance(row, OutcomeRow) and row.outcome in ("success", "failure"):
                found.append((engine, row.repo or "", row.outcome == "success"))
    return found


def scores(rows: list[tuple[str, str, bool]], shuffles: int) -> dict[str, float]:
    """Mean Brier score by predictor."""
    found: dict[str, list[float]] = {name: [] for name in predicting.PREDICTORS}
    for seed in range(shuffles):
        order = rows[:]
        random.Random(seed).shuffle(order)
        for name, predict in predicting.PREDICTORS.items():
            found[name].append(predicting.brier(order, predict))
    return {name: round(statistics.mean(values), 4) for name, values in found.items()}


def main() -> None:
    """Print the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--shuffles", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = outcomes(given.files)
    if not rows:
        sys.exit("no outcome could be read from these files")
    found = scores(rows, given.shuffles)
    engines, repos = len({r[0] for r in rows}), len({r[1] for r in rows})
    report = {"outcomes": len(rows), "engines": engines, "repositories": repos, "shuffles": given.shuffles, "brier": found}
    print(json.dumps(report, indent=1))
    if given.write:
        (ROOT / "benchmarks" / "results" / "predict.json").write_text(json.dumps(report, indent=1) + "\n")
        lines = [
            f"{len(rows):,} outcomes of {engines} engines in {repos} repositories, {given.shuffles} shuffles.",
            "",
            "| predictor | Brier |",
            "|---|---|",
        ]
        lines += [f"| {name} | {value:.4f} |" for name, value in found.items()]
        text = TABLE.read_text()
        before, after = text.split(START)[0], text.split(END)[1]
        TABLE.write_text(f"{before}{START}\n\n" + "\n".join(lines) + f"\n\n{END}{after}")


if __name__ == "__main__":
    main()
