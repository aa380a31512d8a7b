"""Is the best-ranked fact the current one? Numbered facts, of which later ones update earlier ones, through import, reconcile and query.

    python benchmarks/supersession.py FILE.json[.xz] [--limit N]

FILE holds a list of sets, each with a numbered list of facts as `context`, `questions`, `answers` and `metadata.qa_pair_ids`
(MemoryAgentBench's fact consolidation). The number of a fact is its event time, and each is one run's word. Single-hop sets only. A
question counts as right when the best-ranked fact holds one of its answers; `newest` is how often the latest of all facts that share
the question's best line does. Results of all sets go to
benchmarks/results/supersession.json.
"""

import argparse
import json
import lzma
import re
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from osmia_memory.memory import Memory

HERE = Path(__file__).resolve().parent
START = datetime(2026, 1, 1, tzinfo=UTC)
REPO = "world/facts"


def sets(path: Path) -> Iterator[tuple[str, list[str], list[tuple[str, list[str]]]]]:
    """(name, facts in order, (question, answers)) of each single-hop set."""
    data = path.read_bytes()
    for one in json.loads(lzma.decompress(data) if path.suffix == ".xz" else data):
        name = one["metadata"]["source"]
        if "_sh_" in name:
            facts = [m[1].strip() for m in re.finditer(r"^\d+\. (.*)$", one["context"], re.M)]
            yield name, facts, list(zip(one["questions"], one["answers"], strict=True))


def filled(folder: Path, facts: list[str]) -> Memory:
    """A memory that was told the facts one by one, each by a run of its own."""
    moment = START + timedelta(minutes=len(facts))
    memory = Memory(folder / "facts.duckdb", "ticketing", clock=lambda: moment)
    rows = []
    for number, content in enumerate(facts):
        at = (START + timedelta(minutes=number)).isoformat()
        told = [{"run_id": f"r{number}", "observed_at": at}]
        rows.append({"type": "fact", "content": content, "fact_kind": "general", "repo": REPO, "valid_from": at, "witnesses": told})
    report = memory.import_rows("\n".join(map(json.dumps, rows)).encode(), name="facts")
    assert not report.rejected, report.rejected[:3]
    return memory


def holds(content: str, answers: list[str]) -> bool:
    """Whether a line ends with one of the answers."""
    return any(answer.casefold() in content.casefold() for answer in answers)


def measure(name: str, facts: list[str], asked: list[tuple[str, list[str]]]) -> dict[str, Any]:
    """The counts of one set."""
    with tempfile.TemporaryDirectory() as folder:
        memory = filled(Path(folder), facts)
        found = {"questions": len(asked), "facts": len(facts), "answered": 0, "current_first": 0, "current_shown": 0, "wrong": []}
        for question, answers in asked:
            block = memory.prior_knowledge(question, repo=REPO, task_type="question")
            lines = [ranked.fact.content for ranked in block.facts]
            found["answered"] += bool(lines)
            found["current_first"] += bool(lines) and holds(lines[0], answers)
            found["current_shown"] += any(holds(line, answers) for line in lines)
            if lines and not holds(lines[0], answers):
                found["wrong"].append([question, answers, lines[:2]])
    return {"set": name, **found}


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--limit", type=int, help="sets with more facts are left out, and no results are written")
    parser.add_argument("--wrong", action="store_true", help="print the questions whose best line is not current")
    given = parser.parse_args()
    results = []
    for name, facts, asked in sets(given.file):
        if given.limit is None or len(facts) <= given.limit:
            row = measure(name, facts, asked)
            for question, answers, lines in row.pop("wrong"):
                if given.wrong:
                    print(question, answers, lines, sep="\n    ")
            results.append(row)
            print(json.dumps(row))
    total = {key: sum(r[key] for r in results) for key in ("questions", "answered", "current_first", "current_shown")}
    total["share"] = round(total["current_first"] / max(1, total["questions"]), 4)
    print(json.dumps(total))
    if given.limit is None:  # a part of the sets is no result
        (HERE / "results" / "supersession.json").write_text(json.dumps({"sets": results, "total": total}, indent=1) + "\n")


if __name__ == "__main__":
    main()
