"""Labelled pairs of facts through import and reconcile: what was merged, superseded, left alone, and what of it was wrong.

    python benchmarks/measure_pairs.py [FILE ...] [--gold DIR] [--show] [--write]

FILE holds one pair a line, as benchmarks/pairs/README.md says; without one, all of benchmarks/pairs/*.jsonl. Every pair has a repository of its
own. Two arms: rules alone, and rules with a model that answers every question with every pair (`always_yes`). `--gold DIR` reads annotations with labelled
edges between facts (edges-*.json beside <run>.json files) and reports them apart. `--write` puts the figures into
benchmarks/results/pairs.json and the table of docs/benchmarks.md.
"""

import argparse
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from osmia_memory.budget import Budget
from osmia_memory.extract.wire import NominationsV1, PairV1
from osmia_memory.llm import Request
from osmia_memory.memory import Memory
from osmia_memory.testing import ScriptedCompleter, ScriptedReply

ROOT = Path(__file__).resolve().parents[1]
PAIRS = ROOT / "benchmarks" / "pairs"
NOW = datetime(2026, 7, 1, tzinfo=UTC)
START, END = "<!-- pairs: benchmarks/measure_pairs.py -->", "<!-- end of pairs -->"
ARMS = ("rules", "always_yes")


class Judged(NamedTuple):
    """One pair, its label, and what became of it."""

    pair: dict[str, Any]
    label: str
    got: str  # "same", "supersedes", "reversed", "contradicts" or "unrelated"


def rows_of(pair: dict[str, Any], repo: str) -> list[dict[str, Any]]:
    """The import rows of both sides."""
    found: list[dict[str, Any]] = []
    for side in ("a", "b"):
        fact = dict(pair[side])
        place = {k: fact.pop(k) for k in ("branch", "base_commit", "environment") if k in fact}
        runs = fact.pop("runs", 1)
        names = [f"{pair['id']}-{side}-{n}" for n in range(runs)]
        found += [{"type": "run", "run_id": n, "engine": "codex", "session_id": n, "repo": repo, **place} for n in names]
        told = [{"run_id": n, "observed_at": fact["valid_from"]} for n in names]
        found.append({"type": "fact", **fact, "repo": repo, "witnesses": told})
    return found


def everything(request: Request) -> ScriptedReply:
    """Every pair of every question, both ways."""
    asked = str(request.messages[-1]["content"])
    numbers = [int(n) for n in re.findall(r"^(\d+) \(", asked, re.M)]
    pairs = [PairV1(newer=a, older=b, relation="supersedes") for a in numbers for b in numbers if a != b]
    return ScriptedReply(NominationsV1(pairs=pairs).model_dump_json())


def judge(pairs: Sequence[dict[str, Any]], arm: str) -> list[Judged]:
    """What the memory makes of each pair."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(Path(folder) / "pairs.duckdb", "ticketing", clock=lambda: NOW)
        lines = [json.dumps(r) for n, pair in enumerate(pairs) for r in rows_of(pair, f"pairs/r{n}")]
        report = memory.import_rows("\n".join(lines).encode(), name="pairs")
        assert not report.rejected, report.rejected[:3]
        if arm == "always_yes":
            memory.nominate(ScriptedCompleter(everything), Budget())
        for n, pair in enumerate(pairs):
            found.append(Judged(pair, pair["relation"], _outcome(memory, pair, f"pairs/r{n}")))
    return found


def _outcome(memory: Memory, pair: dict[str, Any], repo: str) -> str:
    held = memory.store.facts(memory.tenant, [("repo", repo)], include_superseded=True)
    if len(held) == 1:
        return "same"
    edges = [e for e in memory.store.edges(memory.tenant, [f.fact_id for f in held]) if e.relation != "relates_to"]
    if not edges:
        return "unrelated"
    edge = edges[0]
    if "same statement" in edge.reason:
        return "same"
    if edge.relation == "contradicts":
        return "contradicts"
    newer = max((pair["a"], pair["b"]), key=lambda f: f["valid_from"])["content"]
    kept = next(f.content for f in held if f.fact_id == edge.from_id)
    return "supersedes" if kept == newer else "reversed"


def figures(judged: Iterable[Judged]) -> dict[str, Any]:
    """Precision and recall by relation, and the two kinds of harm: wrong merges, wrong invalidations."""
    rows = list(judged)
    got, right = Counter(j.got for j in rows), Counter(j.label for j in rows if j.got == _expected(j.label))
    labels = Counter(j.label for j in rows)
    relations = {
        name: {
            "pairs": labels[name],
            "found": got[_expected(name)] if name != "conditional" else None,
            "recall": round(right[name] / labels[name], 3) if labels[name] else None,
            "precision": round(sum(j.got == name == j.label for j in rows) / got[name], 3) if got[name] and name != "conditional" else None,
        }
        for name in ("same", "supersedes", "contradicts", "conditional", "unrelated")
    }
    merges = [j for j in rows if j.got == "same" and j.label != "same"]
    wrong = [j for j in rows if j.got in ("supersedes", "reversed") and not (j.label == "supersedes" and j.got == "supersedes")]
    same = [j for j in rows if j.label == "same"]
    return {
        "pairs": len(rows),
        "relations": relations,
        "wrong_merges": len(merges),
        "wrong_invalidations": len(wrong),
        "missed": {c: sum(j.got != "same" for j in same if j.pair.get("closeness") == c) for c in ("exact", "light", "paraphrase")},
        "wrong": [j.pair["id"] for j in (*merges, *wrong)],
    }


def _expected(label: str) -> str:
    return "unrelated" if label == "conditional" else label


def gold_pairs(folder: Path) -> list[dict[str, Any]]:
    """Labelled edges of an annotation folder as pairs. A fact's time is the order of the annotated runs by name; each is one run's word."""
    facts, times = {}, {}
    for n, path in enumerate(sorted(folder.glob("*.json"))):
        value = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(value, dict) and "facts" in value:
            run = path.stem
            for fact in value["facts"]:
                key = fact["id"] if str(fact["id"]).startswith(run) else f"{run}-{fact['id']}"
                facts[key], times[key] = fact, NOW - timedelta(days=60 - n)
    found = []
    for path in sorted(folder.glob("edges-*.json")):
        for n, edge in enumerate(json.loads(path.read_text(encoding="utf-8"))):
            if edge["a"] in facts and edge["b"] in facts:
                a, b = (
                    {"content": facts[k]["content"], "fact_kind": "repo_quirk", "valid_from": times[k].isoformat()}
                    for k in (edge["a"], edge["b"])
                )
                label = "unrelated" if edge["relation"].startswith("unrelated") else edge["relation"]
                found.append({"id": f"{path.stem}-{n}", "relation": label, "a": a, "b": b})
    return found


def table(report: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    lines = [
        "| set | arm | pairs | wrong merges | wrong invalidations | recall same / supersedes / contradicts | missed exact / light / paraphrase |"
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for name, arms in report.items():
        for arm, f in arms.items():
            recalls = " / ".join(str(f["relations"][r]["recall"]) for r in ("same", "supersedes", "contradicts"))
            missed = " / ".join(str(f["missed"][c]) for c in ("exact", "light", "paraphrase"))
            lines.append(f"| {name} | {arm} | {f['pairs']} | {f['wrong_merges']} | {f['wrong_invalidations']} | {recalls} | {missed} |")
    return lines


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--show", action="store_true", help="print every pair that did not come out as labelled")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    sets = {
        p.stem: [json.loads(line) for line in p.read_text(encoding="utf-8").splitlines()]
        for p in given.files or sorted(PAIRS.glob("*.jsonl"))
    }
    if given.gold:
        sets["gold edges"] = gold_pairs(given.gold)
    report: dict[str, Any] = {}
    for name, pairs in sets.items():
        for arm in ARMS:
            judged = judge(pairs, arm)
            report.setdefault(name, {})[arm] = figures(judged)
            for j in judged if given.show and arm == ARMS[-1] else ():
                if j.got != _expected(j.label):
                    print(f"{j.pair['id']} {j.label} -> {j.got}\n    {j.pair['a']['content']}\n    {j.pair['b']['content']}")
    print("\n".join(table(report)))
    if given.write:
        (ROOT / "benchmarks" / "results" / "pairs.json").write_text(json.dumps(report, indent=1) + "\n")
        path = ROOT / "docs" / "benchmarks.md"
        text = path.read_text()
        path.write_text(f"{text.split(START)[0]}{START}\n\n" + "\n".join(table(report)) + f"\n\n{END}{text.split(END)[1]}")


if __name__ == "__main__":
    main()
