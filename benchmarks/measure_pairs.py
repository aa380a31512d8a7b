"""Labelled pairs of facts through import and reconcile: what was merged, superseded, left alone, and what of it was wrong.

    python benchmarks/measure_pairs.py [FILE ...] [--gold DIR] [--show] [--write]

FILE holds one pair a line, as benchmarks/pairs/README.md says; without one, all of benchmarks/pairs/*.jsonl. Every pair has a repository of its
own. Two arms: rules alone, and rules with a model that answers every question with every pair (`always_yes`). `--gold DIR` reads annotations with labelled
edges between facts (edges-*.json beside <run>.json files) and reports them apart. `--write` puts the figures into
benchmarks/results/pairs.json and the table of docs/benchmarks.md.
"""

import argparse
import json
import platform
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from osmia_memory.budget import Budget
from osmia_memory.extract.wire import NominationsV1, PairV1
from osmia_memory.llm import Request
from osmia_memory.memory import Memory
from osmia_memory.models import Edge, Fact
from osmia_memory.testing import ScriptedCompleter, ScriptedReply

ROOT = Path(__file__).resolve().parents[1]
PAIRS = ROOT / "benchmarks" / "pairs"
NOW = datetime(2026, 7, 1, tzinfo=UTC)
START, END = "<!-- pairs: benchmarks/measure_pairs.py -->", "<!-- end of pairs -->"
RESULTS = ROOT / "benchmarks" / "results" / "pairs.json"


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


class Outcome(NamedTuple):
    """What became of a set of pairs in each arm, and whether one `undo` led back from the second arm to the first, byte for byte."""

    arms: dict[str, list[Judged]]
    undone_exactly: bool


def judge(pairs: Sequence[dict[str, Any]]) -> Outcome:
    """What the memory makes of each pair by rules, and then with a model that says yes to everything."""
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(Path(folder) / "pairs.duckdb", "ticketing", clock=lambda: NOW)
        lines = [json.dumps(r) for n, pair in enumerate(pairs) for r in rows_of(pair, f"pairs/r{n}")]
        report = memory.import_rows("\n".join(lines).encode(), name="pairs")
        assert not report.rejected, report.rejected[:3]
        arms = {"rules": outcomes(memory, pairs)}
        before = list(memory.export_rows())
        named = memory.nominate(ScriptedCompleter(everything), Budget()).pairs
        arms["always_yes"] = outcomes(memory, pairs)
        if named:
            memory.undo()
        return Outcome(arms, list(memory.export_rows()) == before)


def outcomes(memory: Memory, pairs: Sequence[dict[str, Any]]) -> list[Judged]:
    """Each pair as the store has it now."""
    with memory.store.session() as session:
        held: dict[str, list[Fact]] = {}
        for fact in session.facts(memory.tenant, include_superseded=True):
            held.setdefault(fact.owner, []).append(fact)
        edges = [e for e in session.edges(memory.tenant) if e.relation != "relates_to"]
    by_end = {end: edge for edge in edges for end in (edge.from_id, edge.to_id)}
    return [Judged(pair, pair["relation"], _outcome(pair, held[f"pairs/r{n}"], by_end)) for n, pair in enumerate(pairs)]


def _outcome(pair: dict[str, Any], held: Sequence[Fact], edges: Mapping[str, Edge]) -> str:
    if len(held) == 1:
        return "same"
    edge = next((edges[f.fact_id] for f in held if f.fact_id in edges), None)
    if edge is None:
        return "unrelated"
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
        outcome = judge(pairs)
        report[name] = {arm: figures(judged) for arm, judged in outcome.arms.items()}
        report[name]["always_yes"]["undone_exactly"] = outcome.undone_exactly
        for j in outcome.arms["always_yes"] if given.show else ():
            if j.got != _expected(j.label):
                print(f"{j.pair['id']} {j.label} -> {j.got}\n    {j.pair['a']['content']}\n    {j.pair['b']['content']}")
    print("\n".join(table(report)))
    if given.write:
        RESULTS.write_text(json.dumps({"sets": report, "stamp": stamp()}, indent=1) + "\n", encoding="utf-8")
        path = ROOT / "docs" / "benchmarks.md"
        text = path.read_text(encoding="utf-8")
        path.write_text(
            f"{text.split(START)[0]}{START}\n\n" + "\n".join(table(report)) + f"\n\n{END}{text.split(END)[1]}", encoding="utf-8"
        )


def stamp() -> dict[str, Any]:
    """What the figures were measured with."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    return {
        "git": git("rev-parse", "--short", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--", "src", "benchmarks/pairs")),
        "python": platform.python_version(),
        **{name: version(name) for name in ("osmia-memory", "duckdb")},
        "seeds": "none: nothing is drawn",
    }


if __name__ == "__main__":
    main()
