"""The answer key, `expected.json`: what a careful reader would keep of each run, and what must not be kept.

    python demo/answers.py                # look the quotes up again, after the runs were made anew
    python demo/answers.py --split DIR    # one file a run, for a scorer that wants them so

Facts and traps were written by reading the made transcripts whole. Only the record numbers are filled in here: each quote
has to stand in its run, verbatim, at or after the record of the quote before it.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KEY = Path(__file__).parent / "expected.json"
RUNS = Path(__file__).parents[1] / "src/osmia_memory/demo/runs"


def main() -> int:
    """Look up all quotes, or split the key."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", type=Path, metavar="DIR")
    options = parser.parse_args()
    if options.split:
        split(options.split)
        return 0
    missing = locate(RUNS)
    for line in missing:
        print(line)
    return 1 if missing else 0


def locate(runs: Path) -> list[str]:
    """Write the record number of every quote into the key; the quotes that were not found."""
    key, missing = json.loads(KEY.read_text()), []
    for run in key["runs"]:
        records = list(texts(runs / run["run"]))
        for fact in run["facts"]:
            at = 0
            for evidence in fact["evidence"]:
                found = next((n for n, text in enumerate(records) if n >= at and evidence["quote"] in text), None)
                if found is None:
                    missing.append(f"{fact['id']}: no record says {evidence['quote']!r}")
                else:
                    evidence["line"] = at = found
            fact["evidence_record"] = fact["evidence"][0].get("line")
    KEY.write_text(json.dumps(key, indent=1, ensure_ascii=False) + "\n")
    return missing


def split(folder: Path) -> None:
    """`<run>.json` for each run."""
    folder.mkdir(parents=True, exist_ok=True)
    for run in json.loads(KEY.read_text())["runs"]:
        name = Path(run["run"]).name
        (folder / (name.split(".")[0] + ".json")).write_text(json.dumps({**run, "run": name}, indent=1, ensure_ascii=False) + "\n")


def texts(path: Path) -> Iterator[str]:
    """All text of each record (a line, or a message of a trajectory), JSON inside of strings unpacked."""
    if path.name.endswith(".traj.json"):
        records = json.loads(path.read_text())["messages"]
    else:
        records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        yield "\n".join(_strings(record))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
    elif isinstance(value, str):
        yield value
        if value.startswith("{") and value.endswith("}"):
            try:
                yield from _strings(json.loads(value))
            except ValueError:
                return


if __name__ == "__main__":
    raise SystemExit(main())
