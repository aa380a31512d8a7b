"""What the model pass adds, and what it lets through: the demo runs by rules alone and with each recorded model. Offline.

    python benchmarks/extraction.py [--out benchmarks/results/extraction.json]
    python benchmarks/extraction.py --gold DIR --runs DIR --llm MODEL [--base-url URL] [--max-cost USD]    # sends, and may cost

An arm is a cassette of cassettes/extract_facts/v1, or `rules`. For each: facts stored, proposals kept and dropped by reason, requests, tokens,
cost at the stated price; `rules_unchanged`: the facts of the rules are the same as without the model; `ungrounded`: stored quotes of the
model that do not stand in the event they cite, character by character (should be 0).

The arm `authored` is an exam for the verification (benchmarks/authored), not a model: `verification_loss` is the share of its good proposals
that were dropped, `leak` the share of planted bad ones that were kept, each proposal judged by itself. Neither says anything about a model.

With --gold, the model is asked about real runs and compared with annotations: DIR holds `<run>.json` with `run` (a file name below --runs)
and `facts`, each with `must_mention` (lists of alternatives, all lists to be met by one fact). `recall` is the share of annotated facts that
some fact of the run meets, `matched_share` the share of facts that meet some annotated one.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from osmia_memory import demonstration, recording
from osmia_memory.budget import Budget
from osmia_memory.extract import proposals
from osmia_memory.extract.wire import FactV1, ReplyV1
from osmia_memory.llm import LiteLlmCompleter
from osmia_memory.memory import Memory
from osmia_memory.model_pass import ModelPass
from osmia_memory.models import Skip
from osmia_memory.pipeline import RunReport
from osmia_memory.transcripts.redact import Redactor

HERE = Path(__file__).parent
OUT = HERE / "results" / "extraction.json"


# --- the recorded arms ------------------------------------------------------------------------------------------------


def reports_of(memory: Memory, paths: Sequence[Path], model_pass: ModelPass | None = None) -> list[RunReport]:
    """All runs, in the order they were read."""
    found = memory.extract([str(p) for p in paths], keep_transcripts=True, model_pass=model_pass)
    return [r for r in found if not isinstance(r, Skip)]


def figures(memory: Memory, reports: Sequence[RunReport]) -> dict[str, Any]:
    """What an arm stored and spent."""
    done = [r.proposals for r in reports if r.proposals is not None]
    dropped = Counter(drop.reason for p in done for drop in p.dropped)
    states: Counter[str] = Counter()
    for p in done:
        states.update(p.states)
    return {
        "runs": len(reports),
        "facts": len(memory.facts()),
        "requests": sum(p.requests for p in done),
        "tokens_in": sum(p.tokens_in for p in done),
        "tokens_out": sum(p.tokens_out for p in done),
        "cost_usd": None if any(p.cost_usd is None for p in done) else round(sum(p.cost_usd or 0 for p in done), 6),
        "parts": dict(sorted(states.items())),
        "kept": sum(p.kept for p in done),
        "dropped": dict(dropped.most_common()),
    }


def by_rules(memory: Memory) -> set[tuple[str, str]]:
    """(run, content) of everything that a rule said."""
    found = set()
    for fact in memory.facts():
        found |= {
            (w["run"]["run_id"], w["content"]) for w in memory.testimony(fact.fact_id) if w["run"] and w["source"].startswith("heuristic")
        }
    return found


def ungrounded(memory: Memory, reports: Sequence[RunReport]) -> int:
    """Stored quotes of the model that do not stand where they say."""
    transcripts = {r.run.run_id: r.digest.transcript for r in reports}
    wrong = 0
    for fact in memory.facts():
        for told in memory.testimony(fact.fact_id):
            transcript = transcripts.get(told["run"]["run_id"]) if told["run"] else None
            if told["source"].startswith("llm:") and transcript is not None:
                wrong += sum(
                    not e["quote"] or transcript.events[e["event"]].text[e["span"][0] : e["span"][1]] != e["quote"]
                    for e in told["evidence"]
                )
    return wrong


def recorded_arms(folder: Path) -> dict[str, Any]:
    """The arm of the rules, and one for each cassette."""
    arms: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as stores:
        plain = demonstration.memory(Path(stores) / "rules.duckdb")
        reports = reports_of(plain, [demonstration.RUNS])
        arms["rules"] = {**figures(plain, reports), "origin": "rules alone; no model"}
        told = by_rules(plain)
        for path in sorted((folder / "extract_facts" / "v1").glob("*.yaml")):
            memory = demonstration.memory(Path(stores) / f"{path.stem}.duckdb")
            with demonstration.recorded_model(path.stem, folder) as (model_pass, origin):
                asked = reports_of(memory, [demonstration.RUNS], model_pass)
            arms[path.stem] = {
                **figures(memory, asked),
                "rules_unchanged": by_rules(memory) == told,
                "ungrounded": ungrounded(memory, asked),
                "origin": origin.recorded_from,
                "price_of": origin.price_of,
            }
        if "authored" in arms:
            arms["authored"] |= exam(reports)
    return arms


# --- the exam of the verification ------------------------------------------------------------------------------------


def verdicts(reports: Sequence[RunReport]) -> Iterator[tuple[str, str, str, FactV1]]:
    """(run file, label or kind of bad, "kept" or the reason, proposal) of every authored proposal, judged by itself."""
    runs = {Path(r.run.source).name: r for r in reports}
    redact = Redactor(demonstration.MASK_KEY).redact
    for path in sorted((HERE / "authored").glob("*.yaml")):
        written = yaml.safe_load(path.read_text(encoding="utf-8"))
        report = runs[written["run"]]
        assert report.digest.transcript is not None
        assert report.digest.extraction is not None
        known = report.digest.extraction.candidates
        for row in written["proposals"]:
            fact = FactV1.model_validate(row["fact"])
            found = proposals.verify(report.digest.transcript, 1, ReplyV1(facts=[fact]), known, redact, "llm:exam")
            verdict = "kept" if found.candidates else found.dropped[0].reason
            yield written["run"], "good" if row["label"] == "good" else row["kind_of_bad"], verdict, fact


def exam(reports: Sequence[RunReport]) -> dict[str, Any]:
    """Loss and leak, and both by kind."""
    good: Counter[str] = Counter()
    bad: dict[str, Counter[str]] = {}
    for _, kind, verdict, _ in verdicts(reports):
        (good if kind == "good" else bad.setdefault(kind, Counter()))[verdict] += 1
    planted, leaked = sum(c.total() for c in bad.values()), sum(c["kept"] for c in bad.values())
    return {
        "good": good.total(),
        "good_dropped": {reason: n for reason, n in good.items() if reason != "kept"},
        "verification_loss": round(1 - good["kept"] / good.total(), 4),
        "planted": planted,
        "leak": round(leaked / planted, 4),
        "planted_by_kind": {kind: {"planted": c.total(), "kept": c["kept"]} for kind, c in sorted(bad.items())},
    }


# --- real runs with annotations ---------------------------------------------------------------------------------------


def against_gold(gold: Path, runs: Path, model: str, base_url: str | None, max_cost: float | None) -> dict[str, Any]:
    """Rules, and rules with the model, on annotated runs."""
    annotated = {d["run"]: d["facts"] for p in sorted(gold.glob("*.json")) if "facts" in (d := json.loads(p.read_text())) and "run" in d}
    files = [p for p in sorted(runs.rglob("*")) if p.name in annotated or p.stem in annotated]
    completer = LiteLlmCompleter(model, base_url=base_url)
    budget = Budget(max_cost_usd=max_cost)
    budget.check_priced(completer.price is not None)
    arms: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as stores:
        for arm, asking in (("rules", None), ("model", ModelPass(completer, budget))):
            memory = Memory(Path(stores) / f"{arm}.duckdb", "benchmark")
            reports = reports_of(memory, files, asking)
            arms[arm] = {**figures(memory, reports), **_compared(memory, reports, annotated)}
    return arms


def _compared(memory: Memory, reports: Sequence[RunReport], annotated: dict[str, Any]) -> dict[str, Any]:
    contents: dict[str, list[str]] = {}
    for fact in memory.facts():
        for told in memory.testimony(fact.fact_id):
            contents.setdefault(told["run"]["run_id"] if told["run"] else "", []).append(" ".join(told["content"].lower().split()))
    wanted = found = said = matched = 0
    for report in reports:
        name = Path(report.run.source).name
        facts = annotated.get(name) or annotated.get(Path(name).stem) or []
        texts = contents.get(report.run.run_id, [])
        wanted, said = wanted + len(facts), said + len(texts)
        found += sum(any(_meets(text, f["must_mention"]) for text in texts) for f in facts)
        matched += sum(any(_meets(text, f["must_mention"]) for f in facts) for text in texts)
    return {"annotated": wanted, "recall": round(found / max(wanted, 1), 4), "matched_share": round(matched / max(said, 1), 4)}


def _meets(text: str, must: Sequence[Sequence[str]]) -> bool:
    return all(any(word.lower() in text for word in alternatives) for alternatives in must)


# --- the table in the docs --------------------------------------------------------------------------------------------

DOCS = HERE.parent / "docs" / "model-pass.md"
_BEGIN, _END = "<!-- figures: benchmarks/extraction.py -->\n", "<!-- end of figures -->"


def table(arms: dict[str, Any]) -> str:
    """The figures as a table for people."""
    rows = [
        "| arm | facts stored | proposals kept | dropped | tokens in / out | cost, USD | quotes not in the run | rules' facts unchanged |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, arm in arms.items():
        if name == "rules":
            rows.append(f"| rules | {arm['facts']} | | | | | | |")
            continue
        cost = "" if arm["cost_usd"] is None else f"{arm['cost_usd']:.4f}"
        asked = [str(arm["kept"]), str(sum(arm["dropped"].values())), f"{arm['tokens_in']:,} / {arm['tokens_out']:,}", cost]
        checked = [str(arm["ungrounded"]), "yes" if arm["rules_unchanged"] else "no"]
        cells = [name, str(arm["facts"]), *asked, *checked]
        rows.append("| " + " | ".join(cells) + " |")
    found = "\n".join(rows) + "\n"
    if "authored" in arms:
        arm = arms["authored"]
        found += (
            f"\nThe exam of the verification, each of the authored proposals judged by itself: verification loss {arm['verification_loss']:.1%} "
            f"(of {arm['good']} good ones), leak {arm['leak']:.1%} (of {arm['planted']} planted bad ones of {len(arm['planted_by_kind'])} kinds).\n"
        )
    return found


def write_table(arms: dict[str, Any]) -> None:
    """Put it in its place in the docs."""
    before, _, rest = DOCS.read_text(encoding="utf-8").partition(_BEGIN)
    DOCS.write_text(before + _BEGIN + "\n" + table(arms) + "\n" + _END + rest.partition(_END)[2], encoding="utf-8")


# --- the command ------------------------------------------------------------------------------------------------------


def stamp() -> dict[str, Any]:
    """What the figures were measured with."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False).stdout.strip()

    return {
        "git": git("rev-parse", "--short", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--", "src", "prompts", "cassettes", "benchmarks/authored")),
        "python": platform.python_version(),
        **{name: version(name) for name in ("osmia-memory", "litellm", "instructor", "duckdb", "vcrpy")},
        "seeds": "none: nothing is drawn",
    }


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--cassettes", type=Path, default=recording.FOLDER)
    parser.add_argument("--wrong", action="store_true", help="list the authored proposals with the wrong verdict")
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--llm")
    parser.add_argument("--base-url")
    parser.add_argument("--max-cost", type=float)
    given = parser.parse_args()
    if given.wrong:
        with tempfile.TemporaryDirectory() as store:
            for run, kind, verdict, fact in verdicts(reports_of(demonstration.memory(Path(store) / "x.duckdb"), [demonstration.RUNS])):
                if (kind == "good") != (verdict == "kept"):
                    print(f"{run}: {kind}, {verdict}: {fact.content}")
        return 0
    if given.gold:
        if not (given.runs and given.llm):
            parser.error("--gold needs --runs and --llm")
        arms = against_gold(given.gold, given.runs, given.llm, given.base_url, given.max_cost)
    else:
        arms = recorded_arms(given.cassettes)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"arms": arms, "stamp": stamp()}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if not given.gold and given.out == OUT:
        write_table(arms)
    for name, arm in arms.items():
        print(name, json.dumps({k: v for k, v in arm.items() if k != "origin"}, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
