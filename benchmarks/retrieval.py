"""Does a new task get the facts that matter? Recall, precision and what off-topic texts return, with each ingredient left out in turn.

    python benchmarks/retrieval.py                      # the invented facts and tasks of retrieval.json
    python benchmarks/retrieval.py --filler 300         # the same among 300 narrow facts of the same repository
    python benchmarks/retrieval.py --gold DIR           # annotated facts and queries in a folder

Prints one JSON object: for each variant recall, precision, mean_returned, mrr (mean of 1 / rank of the first relevant fact),
empty_for_relevant (queries that got nothing), off_topic (facts returned for texts that have nothing to do with code; should be 0) and
milliseconds a query. The clock stands still, so equal code prints equal numbers (times aside).

A gold folder holds `<run>.json` (repo, engine, facts with id, kind, scope, content), `queries-*.json` (id, title, description, engine,
task_type, relevant) and optionally `edges-*.json` (pairs labelled `same` count as one).
"""

import argparse
import contextlib
import hashlib
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from osmia_memory import embedding, ids, retrieve, similarity
from osmia_memory.models import Fact, Query

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TENANT = "benchmark"
OWN_SET = Path(__file__).with_name("retrieval.json")


@dataclass(frozen=True)
class Task:
    """A query and the names of the facts that answer it."""

    query: Query
    relevant: frozenset[str]


@dataclass(frozen=True)
class Case:
    """Facts, the name under which each is known to the labels, tasks, and off-topic queries."""

    facts: tuple[Fact, ...]
    names: dict[str, str]
    tasks: tuple[Task, ...]
    off_topic: tuple[Query, ...]


# --- loading ----------------------------------------------------------------------------------------------------------


def a_fact(row: dict[str, Any]) -> Fact:
    """A fact from a row with content, kind, repo and optionally scope, engine, runs; observed within the 14 days before now."""
    scope = row.get("scope", "repo")
    owner = {"repo": row["repo"], "engine": row.get("engine"), "org": row["repo"].partition("/")[0]}[scope]
    minutes = int(hashlib.sha256(row["content"].encode()).hexdigest(), 16) % (14 * 24 * 60)
    seen = NOW - timedelta(minutes=minutes)
    content = " ".join(row["content"].split())
    fact_id = ids.fact_id(TENANT, scope, owner or "", None, content)
    return Fact(fact_id, TENANT, content, row["kind"], scope, owner or "", 0.8, 0.01, seen, seen, row.get("runs", 1))


def a_task(row: dict[str, Any], repo: str, same: dict[str, str], with_task_type: bool) -> Task:
    """A task from a row with title, description, engine, relevant."""
    text = f"{row['title']}\n\n{row['description']}"
    query = Query(TENANT, text, repo, row.get("engine"), row.get("task_type") if with_task_type else None)
    return Task(query, frozenset(same.get(name, name) for name in row["relevant"]))


def own_case(with_task_type: bool) -> Case:
    """The invented set that ships with the project."""
    data = json.loads(OWN_SET.read_text(encoding="utf-8"))
    facts = {row["id"]: a_fact(row) for row in data["facts"]}
    tasks = tuple(a_task(row, row["repo"], {}, with_task_type) for row in data["queries"])
    off_topic = tuple(Query(TENANT, row["text"], row["repo"], "codex") for row in data["off_topic"])
    return Case(tuple(facts.values()), {f.fact_id: name for name, f in facts.items()}, tasks, off_topic)


def gold_case(folder: Path, with_task_type: bool) -> Case:
    """The annotated set in `folder`. Facts of equal content, or labelled `same`, share a name."""
    rows: dict[str, dict[str, Any]] = {}
    queries: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if path.name.startswith("queries-"):
            queries += data
        elif path.name.startswith("edges-"):
            edges += data
        elif isinstance(data, dict) and "facts" in data:
            rows |= {f["id"]: {**f, "repo": data["repo"], "engine": data["engine"]} for f in data["facts"]}
    facts = {name: a_fact(row) for name, row in rows.items()}
    same: dict[str, str] = {}
    by_fact: dict[str, str] = {}
    for name, fact in facts.items():
        same[name] = by_fact.setdefault(fact.fact_id, name)
    for edge in edges:
        if edge["relation"] == "same" and edge["a"] in same and edge["b"] in same:
            old, new = same[edge["b"]], same[edge["a"]]
            same = {name: new if group == old else group for name, group in same.items()}
    tasks = []
    for row in queries:
        known = [name for name in row["relevant"] if name in rows]
        if known:
            tasks.append(a_task({**row, "relevant": known}, rows[known[0]]["repo"], same, with_task_type))
    distinct = {f.fact_id: f for f in facts.values()}
    return Case(tuple(distinct.values()), {f.fact_id: same[name] for name, f in facts.items()}, tuple(tasks), ())


# --- made up ----------------------------------------------------------------------------------------------------------

_PARTS = "queue parser ledger cursor widget socket bucket sampler router planner mixer voucher beacon canvas tracker broker".split()
_SLIPS = (
    "`src/{a}/{b}.py` keeps the {c} open after an error; close it in a finally block.",
    "`tests/{a}/test_{b}.py::test_{c}` needs the {d} fixture, or it reads stale data.",
    "Renaming `{a}_{b}` breaks the {c} export, which looks it up by name.",
    "The {a} retries the {b} twice before the {c} gives up, so its log shows each failure three times.",
    "`{a}.{b}()` returns None while the {c} is warming up; callers in src/{d} check for it.",
)


def filler(repo: str, count: int, seed: int) -> list[Fact]:
    """Narrow facts of one repository, each true of one corner of it."""
    rng = random.Random(f"{repo} {seed}")
    found: dict[str, Fact] = {}
    while len(found) < count:
        a, b, c, d = rng.sample(_PARTS, 4)
        content = rng.choice(_SLIPS).format(a=a, b=f"{b}_{rng.randrange(100)}", c=c, d=d)
        found[content] = a_fact({"content": content, "kind": "repo_quirk", "repo": repo})
    return list(found.values())


_DAILY = {
    "verb": "bake paint iron sew rent photograph taste varnish fold carry hum peel".split(),
    "quality": "velvet wooden lukewarm crispy fragrant creamy striped juicy woollen tiny".split(),
    "thing": "tulip saxophone teapot hammock pumpkin scarf lantern violin wardrobe kite ladder sofa".split(),
    "person": ["my grandmother", "the neighbour", "our dentist", "the gardener", "the choir", "a tired plumber"],
    "place": ["in the garden", "beside the lake", "at the bakery", "on the balcony", "in the attic", "at the seaside"],
}
_DAILY_TASKS = (
    "{verb} the {quality} {thing} for {person} {place}",
    "find out whether {person} can {verb} the {thing} {place}",
    "please {verb} seven {quality} {thing}s before breakfast",
)


def everyday(repos: Sequence[str], count: int, seed: int) -> list[Query]:
    """Tasks that have nothing to do with code."""
    rng = random.Random(f"everyday {seed}")
    texts = [rng.choice(_DAILY_TASKS).format(**{k: rng.choice(v) for k, v in _DAILY.items()}) for _ in range(count)]
    return [Query(TENANT, text, repos[n % len(repos)], "codex") for n, text in enumerate(texts)]


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(case: Case, embed: retrieve.Embed | None, filler_facts: int) -> dict[str, float]:
    """One variant over all tasks and off-topic texts of a case."""
    relevant = returned = hits = empty = off_topic = 0
    reciprocal = seconds = 0.0
    stores: dict[str, tuple[Fact, ...]] = {}
    for repo in {q.repo or "" for q in [*(t.query for t in case.tasks), *case.off_topic]}:
        stores[repo] = (*case.facts, *filler(repo, filler_facts, 1))

    def ask(query: Query) -> list[str]:
        owners = set(retrieve.owners(query))
        known = [f for f in stores[query.repo or ""] if (f.scope, f.owner) in owners]
        return [case.names.get(r.fact.fact_id, r.fact.fact_id) for r in retrieve.rank(query, known, now=NOW, embed=embed)]

    for task in case.tasks:
        start = time.perf_counter()
        found = ask(task.query)
        seconds += time.perf_counter() - start
        relevant += len(task.relevant)
        returned += len(set(found))
        hits += len(task.relevant & set(found))
        empty += not found
        reciprocal += next((1 / n for n, name in enumerate(found, 1) if name in task.relevant), 0.0)
    for query in case.off_topic:
        off_topic += len(ask(query))
    tasks = len(case.tasks)
    return {
        "recall": round(hits / relevant, 3),
        "precision": round(hits / max(returned, 1), 3),
        "mean_returned": round(returned / tasks, 2),
        "mrr": round(reciprocal / tasks, 3),
        "empty_for_relevant": empty,
        "off_topic": off_topic,
        "ms": round(1000 * seconds / tasks, 2),
    }


@contextlib.contextmanager
def changed(module: Any, **values: Any) -> Iterator[None]:
    """Other values of a module's parameters for the length of a `with`; cached terms are forgotten before and after."""
    old = {name: getattr(module, name) for name in values}
    try:
        for name, value in values.items():
            setattr(module, name, value)
        similarity.forget_terms()
        yield
    finally:
        for name, value in old.items():
            setattr(module, name, value)
        similarity.forget_terms()


VARIANTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "full": (retrieve, {}),
    "without embedding": (None, {}),
    "without stems": (similarity, {"stem": lambda word: word}),
    "without stop words": (similarity, {"STOP_WORDS": frozenset()}),
    "without generic words": (similarity, {"GENERIC_WEIGHT": 1.0}),
    "without title weight": (similarity, {"TITLE_WEIGHT": 1.0}),
    "without standing facts": (retrieve, {"MAX_STANDING": 0}),
    "without floor": (retrieve, {"FLOOR": -9.0}),
    "floor independent of size": (retrieve, {"FLOOR_PER_LOG_FACT": 0.0, "FLOOR": 0.42}),
    "without grounds": (retrieve, {"GROUNDS": 0}),
    "without share of best": (retrieve, {"SHARE_OF_BEST": 0.0}),
    "without recency": (retrieve, {"RECENCY_EXPONENT": 0.0}),
    "recency as a plain factor": (retrieve, {"RECENCY_EXPONENT": 1.0}),
}


def main() -> None:
    """Parse, measure every variant, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, metavar="DIR", help="annotated facts and queries instead of the invented ones")
    parser.add_argument("--filler", type=int, default=0, metavar="N", help="narrow facts added to each repository")
    parser.add_argument("--with-task-type", action="store_true", help="give each query its task type")
    parser.add_argument("--everyday", type=int, default=200, metavar="N", help="drawn off-topic texts")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn texts")
    options = parser.parse_args()
    case = gold_case(options.gold, options.with_task_type) if options.gold else own_case(options.with_task_type)
    if not case.tasks:
        parser.error(f"no annotated run with queries in {options.gold}")
    repos = sorted({t.query.repo or "" for t in case.tasks})
    case = replace(case, off_topic=(*case.off_topic, *everyday(repos, options.everyday, options.seed)))
    results: dict[str, Any] = {"facts": len(case.facts), "tasks": len(case.tasks), "off_topic_texts": len(case.off_topic)}
    embed = embedding.load()
    for name, (module, values) in VARIANTS.items():
        with changed(module or retrieve, **values):
            results[name] = measure(case, None if module is None else embed, options.filler)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
