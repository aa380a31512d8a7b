"""Which known facts belong to a task, in which order, and why. Pure: (query, facts, now) -> ranked facts with the parts of each score.

    score     = relevance x effective confidence x min(importance, 2) x recency
    relevance = lexical + SEMANTIC_WEIGHT x semantic

`lexical` is BM25 with each term's rarity scaled to [0, 1], divided by the square root of the query's weight, so that long and short
tasks compare. `semantic` is the cosine of the two texts' embeddings, 0 without a model. A fact has to reach a floor of relevance, which
rises with the number of facts: among many, some match by chance. Apart from that, up to three *standing* facts (how to test, lint and
build here, what fails anyway) accompany a task that is about this repository.

Knows nothing about storage, language models or rendering; an embedding comes in as a function.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from osmia_memory import aging, joining, similarity
from osmia_memory.instructions import instruction_kind
from osmia_memory.models import ACROSS, CODE_CHANGING, Fact, Query, Ranked

# Origin of the numbers: benchmarks/retrieval.py, which leaves each ingredient out in turn.
K1 = 0.6
B = 0.3
BACKGROUND = 10  # facts about anything else, imagined beside the known ones: in a store of three, no word is common yet
LEAST_RARITY = 0.35  # a word of every fact tells no two apart, but still says that the task is on them
TYPICAL_TERMS = 30  # terms of a fact of usual length; a constant, so that a fact's score does not depend on the others' length
SEMANTIC_WEIGHT = 0.7
EMBED_AT_MOST = 200  # facts; beyond that only the best lexical matches are embedded
FLOOR = 0.25
FLOOR_PER_LOG_FACT = 0.09
FLOOR_WITHOUT_EMBEDDING = -0.15  # added where there is no cosine, of which every fair match has some
GROUNDS = 2  # telling words that a fact has to share with the task
SEMANTIC_GROUND = 0.5  # a cosine that everyday texts do not reach with facts on code
FEWEST_FACTS = 8  # a smaller store is treated as one of this size
SHARE_OF_BEST = 0.25  # of the best score; a fact that is far weaker is left out
RECENCY_HOURS = 720
RECENCY_EXPONENT = 0.25  # one voter among others: as a plain factor it drowns relevance
AS_WELL = 0.95  # from this share of the other's relevance on, two facts match equally well
MAX_ACROSS = 2  # lines of patterns
MAX_STANDING = 3
MAX_ALIKE = 3
FREQUENT_RUNS = 3  # hit a failure that is called frequent, at least, and
FREQUENT_SHARE = 0.2  # of the runs of the fact that most runs saw
COMMAND_SHARE = 0.3  # likewise, of a test, lint or build command: what fewer use, most tasks do without
HIDDEN_TAGS = frozenset({"rule_proposal", "stale"})  # kept out of the block until a person decides
PROPOSED = "llm:"  # source of what a model proposed
NEEDS_MORE_RUNS = "corroborate"  # tag of what is worth telling only if several independent runs say so
NO_TESTS_NEEDED = frozenset({"docs", "question", "review"})

Embed = Callable[[Sequence[str]], Any]


class Statistics(NamedTuple):
    """How often terms occur among all facts of the query's owners, where `rank` is given only a shortlist of them."""

    documents: int
    frequencies: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Match:
    """A visible fact with what its score is made of."""

    fact: Fact
    relevance: float
    worth: float  # confidence x importance x recency
    score: float
    parts: Mapping[str, float]


def owners(query: Query) -> tuple[tuple[str, str], ...]:
    """The (scope, owner) pairs whose facts may be shown for `query`."""
    pairs = (("repo", query.repo), ("org", query.repo.partition("/")[0] if query.repo else None), ("engine", query.engine))
    return tuple((scope, owner) for scope, owner in pairs if owner)


def rank(
    query: Query,
    facts: Sequence[Fact],
    *,
    now: datetime,
    known_terms: Collection[str] = (),
    embed: Embed | None = None,
    statistics: Statistics | None = None,
    contradictions: Collection[tuple[str, str]] = (),
    max_facts: int = 10,
    decay_interval_hours: int = 24,
    prune_threshold: float = 0.05,
) -> list[Ranked]:
    """The facts to show for `query`, best first, standing ones last; none if nothing known belongs to it.

    `facts` are all facts of the query's owners, or a shortlist of them together with the `statistics` of all. `known_terms` are terms
    of this repository's runs (`similarity.terms`); a task that names them is a task on it. `embed` maps n texts to an n x d array of
    unit vectors. `contradictions` are pairs of ids of facts that contradict each other and are both still held.
    Equal input gives equal output: ties are broken by id.
    """
    visible = [f for f in facts if _is_visible(f, query, now, decay_interval_hours, prune_threshold)]
    if not visible or max_facts < 1:
        return []
    weights = _without_owner(similarity.query_terms(query.task), query)
    documents = {f.fact_id: similarity.index_terms(f) for f in visible}
    statistics = statistics or _statistics(documents)
    lexical = _lexical(weights, documents, statistics)
    semantic = _semantic(query.task, visible, lexical, embed) if weights else {}
    matches = [_weigh(f, lexical[f.fact_id], semantic.get(f.fact_id, 0.0), now, decay_interval_hours) for f in visible]
    floor = _floor(statistics.documents, embed is not None)
    at_home = _is_on_this_repository(query, weights, statistics, known_terms)
    passing = [
        m
        for m in matches
        if m.relevance >= floor and (at_home or _is_grounded(m, weights, documents[m.fact.fact_id])) and _names_subject(m.fact, weights)
    ]
    strong = _without_repeats(_strong(_corroborated_first(passing)))
    standing = (
        _standing(query, matches, strong, min(MAX_STANDING, max_facts // 2))
        if passing or at_home or _is_about_code(query, weights, statistics, known_terms)
        else []
    )
    chosen = [(m, False) for m in strong[: max_facts - len(standing)]] + [(m, True) for m in standing]
    ranked = [Ranked(m.fact, m.score, {**m.parts, "floor": floor}, standing=extra) for m, extra in chosen]
    ranked = _few_of_others(joining.families(ranked, visible))
    return joining.disputes(ranked, {f.fact_id: f for f in visible}, contradictions)


def _few_of_others(ranked: Sequence[Ranked]) -> list[Ranked]:
    """At most `MAX_ACROSS` lines of what other repositories of the owner have in common."""
    others = [r for r in ranked if ACROSS in r.fact.tags][MAX_ACROSS:]
    return [r for r in ranked if r not in others]


def _is_visible(fact: Fact, query: Query, now: datetime, interval_hours: int, threshold: float) -> bool:
    allowed = owners(query)
    return (
        fact.tenant_id == query.tenant_id
        and (fact.scope, fact.owner) in allowed
        and fact.superseded_by is None
        and (fact.valid_to is None or fact.valid_to > now)
        and not HIDDEN_TAGS.intersection(fact.tags)
        and (fact.runs > 1 or fact.pinned or NEEDS_MORE_RUNS not in fact.tags)
        and not aging.is_prunable(fact, now, threshold=threshold, interval_hours=interval_hours)
    )


# --- relevance --------------------------------------------------------------------------------------------------------


_LAYOUT = frozenset({"src", "lib", "pkg", "app", "apps", "packages", "python", "internal"})  # folders that hold a repository's whole code


def _without_owner(weights: Mapping[str, float], query: Query) -> Mapping[str, float]:
    """The repository's own name says nothing, nor does its code's folder: each of its facts could hold them."""
    own = set(similarity.terms(query.repo or ""))

    def says_nothing(term: str) -> bool:
        parts = [part for part in re.split(r"[/_.-]+", term) if part not in _LAYOUT]
        return term in own or all(part in own or similarity.stem(part) in own for part in parts)

    return {term: weight for term, weight in weights.items() if not says_nothing(term)}


def _statistics(documents: Mapping[str, Mapping[str, int]]) -> Statistics:
    frequencies: Counter[str] = Counter()
    for document in documents.values():
        frequencies.update(document.keys())
    return Statistics(len(documents), frequencies)


def _lexical(weights: Mapping[str, float], documents: Mapping[str, Mapping[str, int]], statistics: Statistics) -> dict[str, float]:
    total = statistics.documents + BACKGROUND
    rarest = math.log(total / 1.5)
    scale = {
        term: weight * max(LEAST_RARITY, math.log(total / (statistics.frequencies.get(term, 0) + 0.5)) / rarest)
        for term, weight in weights.items()
    }
    norm = math.sqrt(sum(weights.values())) or 1.0
    return {fact_id: _bm25(scale, document) / norm for fact_id, document in documents.items()}


def _bm25(scale: Mapping[str, float], document: Mapping[str, int]) -> float:
    damping = K1 * (1 - B + B * sum(document.values()) / TYPICAL_TERMS)
    return math.fsum(scale[t] * n * (K1 + 1) / (n + damping) for t, n in document.items() if t in scale)


def _semantic(task: str, facts: Sequence[Fact], lexical: Mapping[str, float], embed: Embed | None) -> dict[str, float]:
    if embed is None:
        return {}
    closest = sorted(facts, key=lambda f: (-lexical[f.fact_id], f.fact_id))[:EMBED_AT_MOST]
    vectors = embed([task, *(f.content for f in closest)])
    return {f.fact_id: max(0.0, round(float(c), 6)) for f, c in zip(closest, vectors[1:] @ vectors[0], strict=True)}


def _weigh(fact: Fact, lexical: float, semantic: float, now: datetime, interval_hours: int) -> _Match:
    confidence = aging.current_confidence(fact, now, interval_hours)
    importance = 2.0 if fact.pinned else min(fact.importance, 2.0)
    age_hours = max(0.0, (now - fact.last_seen) / timedelta(hours=1))
    recency = (1 / (1 + age_hours / RECENCY_HOURS)) ** RECENCY_EXPONENT
    relevance = lexical + SEMANTIC_WEIGHT * semantic
    worth = confidence * importance * recency
    parts = {
        "lexical": lexical,
        "semantic": semantic,
        "relevance": relevance,
        "confidence": confidence,
        "importance": importance,
        "recency": recency,
    }
    return _Match(fact, relevance, worth, relevance * worth, parts)


def _floor(documents: int, embedded: bool) -> float:
    floor = FLOOR + FLOOR_PER_LOG_FACT * math.log(max(documents, FEWEST_FACTS))
    return floor if embedded else floor + FLOOR_WITHOUT_EMBEDDING


def _is_grounded(match: _Match, weights: Mapping[str, float], document: Mapping[str, int]) -> bool:
    """One everyday word in common is chance; two, a name of code, or nearly the same meaning are not."""
    telling = similarity.telling(weights)
    common = [term for term in telling if term in document]
    needed = min(GROUNDS, len(telling))
    return (len(common) >= needed > 0) or any(similarity.is_compound(term) for term in common) or match.parts["semantic"] >= SEMANTIC_GROUND


def _names_subject(fact: Fact, weights: Mapping[str, float]) -> bool:
    """Whether the task names what the fact is about. Asked of trouble with single files and tests only: elsewhere it is no trouble."""
    if not fact.anchors or fact.fact_kind == "success_pattern":
        return True
    return any(_is_named(anchor.partition(":")[2], weights) for anchor in fact.anchors)


def _is_named(name: str, weights: Mapping[str, float]) -> bool:
    """The task holds the whole path or name, or all words of one of its own parts: file, test, or module of the test."""
    parts = [part for part in re.split(r"::|/|\.(?!\w{1,4}$)", name) if part]
    own = [re.sub(r"\.\w{1,4}$", "", part) for part in ([parts[0], parts[-1]] if "/" not in name else parts[-2:])]
    if any(term in weights for term in (name.lower(), parts[-1].lower()) if similarity.is_compound(term)):
        return True
    wanted = [{t for t in similarity.terms(part.replace("__init__", "")) if not similarity.is_compound(t)} for part in own]
    return any(words and words <= similarity.telling(weights) for terms in wanted if (words := terms - similarity.GENERIC_TERMS))


# --- which of the relevant ones ---------------------------------------------------------------------------------------


def _corroborated_first(matches: Sequence[_Match]) -> list[_Match]:
    """By score; but what one run said never outranks what several said and what matches as well, and an instruction no match of theirs."""
    several = [m for m in matches if _is_trusted(m.fact)]
    capped = []
    for m in matches:
        if not _is_trusted(m.fact):
            bar = 0.0 if instruction_kind(m.fact.content) else AS_WELL * m.relevance
            as_good = [other.score for other in several if other.relevance >= bar]
            m = replace(m, score=min([m.score, *as_good]))
        capped.append(m)
    return sorted(capped, key=lambda m: (-m.score, not _is_trusted(m.fact), m.fact.fact_id))


def _is_trusted(fact: Fact) -> bool:
    return fact.runs >= 2 or fact.pinned


def _strong(matches: Sequence[_Match]) -> list[_Match]:
    return [m for m in matches if m.score >= SHARE_OF_BEST * matches[0].score]


def _without_repeats(matches: Iterable[_Match]) -> list[_Match]:
    """No statement twice, and of single runs at most `MAX_ALIKE` that say the same of different things: the fourth is padding.

    What a model proposed from single runs counts as one kind: it is worth a few lines, not the block.
    """
    kept: list[_Match] = []
    alike: Counter[str] = Counter()
    for m in matches:
        attribute = PROPOSED if m.fact.source.startswith(PROPOSED) else m.fact.claim.attribute if m.fact.claim else ""
        kind = "" if _is_trusted(m.fact) else attribute
        if alike[kind] >= MAX_ALIKE or any(_says_again(m.fact, other.fact) for other in kept):
            continue
        kept.append(m)
        alike[kind] += bool(kind)
    return kept


_SPAN = re.compile(r"`([^`]+)`")


def _says_again(fact: Fact, shown: Fact) -> bool:
    """The same statement; or one that a model worded, and all it names, which is more than one thing, is named already."""
    if similarity.same_statement(fact.content, shown.content):
        return True
    names = set(_SPAN.findall(fact.content)) if fact.source.startswith(PROPOSED) else set()
    return len(names) > 1 and all(name in shown.content for name in names)


# --- standing facts ---------------------------------------------------------------------------------------------------

# Patterns are kept as text: `re` compiles and remembers them at their first use, which most queries never come to.
_RUNNER = r"""(?ix)(?<![\w-])(?:runtests?|run_tests?|tests?|check|lint)\.(?:py|sh|js|pl)(?!\w)
    | (?<![\w/.-])(?:
      (?:py\.?test|tox|nox|vitest|jest|ctest|rspec|phpunit|nextest|gotestsum|golangci-lint|ruff|flake8|mypy|eslint|clippy|pre-commit)(?![\w/.-])
    | (?:npm|pnpm|yarn|bun|deno|cargo|go|make|just|mise|task|rake|mix|mvn|(?:\./)?gradlew?|dotnet|swift|sbt|bazel|cmake|composer|hatch|poetry
        |uv|pdm|bundle|dune|stack|cabal|zig|meson|ninja|lein|nx|turbo)
        \s+(?:run\s+|exec\s+|-\S+\s+)*
        (?:[\w./:-]*(?:test|tests|check|lint|vet|build|compile|typecheck|fmt|verify|clippy|spec|pytest|ruff|mypy))(?!\w)
    | (?:\./)?(?:bin|scripts?|tools|dev|hack|ci)/(?:run[-_]?)?(?:tests?|checks?|lint|ci|verify)\b
    | python3?\s+-m\s+(?:pytest|unittest|tox|nox|mypy|ruff|build)
    )"""
_HOW_TO = r"""(?ix)\b(?:
      tests?\s+(?:(?:are|is)\s+)?(?:run|runs|built|executed|command|entry|suite)\b | \btests\b.{0,60}\bare\s+run\b
    | (?:run|runs|running|executes?)\s+(?:\w+\s+){0,3}(?:tests|suite|checks|linters?|lint|gate)\b
    | (?:whole|complete|full|default|entire)\s+(?:\w+\s+)?(?:checks?|suite|gate|build|tests)\b
    | lint(?:ing|s|ers?)?\b(?!/) | type-?checks?\b | before\s+(?:handing|committing|pushing)
    | not\s+installed | No\s+module\s+named
    )"""
_BASELINE = r"(?i)\b(?:on|with|in|from) (?:an? |the )?(?:unmodified|untouched|unchanged|clean|pristine|fresh) (?:code|checkout|tree|clone|main|master|copy)\b"
_SOURCE_FILE = r"[\w-]+\.(?:py|go|rs|ts|tsx|js|jsx|java|kt|rb|c|cc|cpp|h|cs|php|swift|scala)\b(?!::)"
_LINT = r"(?i)\b(?:lint\w*|clippy|ruff|mypy|eslint|flake8|type-?check\w*|fmt|vet)\b"
_TEST = r"(?i)\b(?:tests?|pytest|suite|nextest|vitest|jest|ctest|tox|gate|checks?)\b"


_READ_CHARS = 1000  # of a text; what says how things are run says it at once


def is_standing(fact: Fact, most_runs: int = 0, *, family_runs: int = 0) -> bool:
    """Whether a fact helps with nearly every task in its repository: how tests, lint and build run, or what fails anyway.

    Extraction marks its facts by the tag `standing`. A fact without tags, imported or saved by hand, is recognised by its text: it names
    a runner and says in general how things are run, or that something fails on unmodified code. A failure is standing too if many runs
    hit it, compared with `most_runs`, the number of runs that saw the best known fact. `family_runs` counts those that hit a failure of the
    same pattern.
    """
    if fact.scope == "engine":  # of use in half of the tasks at best, whatever the repository
        return False
    if "standing" in fact.tags:
        return fact.runs >= COMMAND_SHARE * most_runs
    if _is_frequent_failure(fact, most_runs, family_runs):
        return True
    if fact.tags or fact.runs < min(2, FREQUENT_SHARE * most_runs):
        return False
    text = fact.content[:_READ_CHARS]
    if re.search(_BASELINE, text):
        return True
    names_files = len(set(re.findall(_SOURCE_FILE, text))) > 1  # then it is about those files
    return not names_files and bool(re.search(_RUNNER, text) and re.search(_HOW_TO, text))


def _is_frequent_failure(fact: Fact, most_runs: int, family_runs: int) -> bool:
    runs = max(fact.runs, family_runs)
    return fact.fact_kind == "failure_pattern" and runs >= FREQUENT_RUNS and runs >= FREQUENT_SHARE * most_runs


def _purpose(fact: Fact) -> str:
    text = fact.content[:_READ_CHARS]
    if fact.fact_kind == "failure_pattern" or re.search(_BASELINE, text):
        return "failure"
    lint, test = re.search(_LINT, text), re.search(_TEST, text)
    if lint and (test is None or lint.start() < test.start()):
        return "lint"
    return "test" if test else "build"


def _standing(query: Query, matches: Sequence[_Match], chosen: Sequence[_Match], at_most: int) -> list[_Match]:
    """The best standing facts not chosen yet, one for each purpose: by worth, share of the runs that saw them, and fit to the task."""
    if query.task_type in NO_TESTS_NEEDED:
        return []
    shown = {m.fact.fact_id for m in chosen}
    most_runs = max((m.fact.runs for m in matches if m.fact.scope != "engine"), default=1)
    facts = [m.fact for m in matches]
    best: dict[str, tuple[float, _Match]] = {}
    for m in sorted(matches, key=lambda m: m.fact.fact_id):
        family_runs = sum(f.runs for f in joining.family(m.fact, facts))
        about_a_file = any(a.startswith("file:") for a in m.fact.anchors)
        if m.fact.fact_id not in shown and not about_a_file and is_standing(m.fact, most_runs, family_runs=family_runs):
            value = m.worth * (1 + m.relevance) * (1 + m.fact.runs / most_runs)
            if value > best.get(_purpose(m.fact), (0.0,))[0]:
                best[_purpose(m.fact)] = (value, m)
    ordered = sorted(best.values(), key=lambda pair: (-pair[0], pair[1].fact.fact_id))
    return [m for m in _without_repeats([*chosen, *(m for _, m in ordered)]) if m.fact.fact_id not in shown][:at_most]


def _is_on_this_repository(query: Query, weights: Mapping[str, float], statistics: Statistics, known_terms: Collection[str]) -> bool:
    """Whether the task is about code here: by its type, or by naming what occurs in this repository's facts and runs."""
    if query.task_type in CODE_CHANGING:
        return True
    telling = similarity.telling(weights)
    named = [term for term in telling if statistics.frequencies.get(term) or term in known_terms]
    if any(similarity.is_compound(term) for term in named):
        return True
    generic = sum(1 for term in weights if term not in telling and statistics.frequencies.get(term))
    needed = GROUNDS + max(0, int(math.log10(max(statistics.documents, 1) / 100)))  # a large store holds many an everyday word
    return bool(named) and len(named) + generic / 2 >= min(needed, len(telling))


def _is_about_code(query: Query, weights: Mapping[str, float], statistics: Statistics, known_terms: Collection[str]) -> bool:
    """Whether the task, given for a repository, reads like software work, although nothing says that it is on this one."""
    named = [term for term in similarity.telling(weights) if statistics.frequencies.get(term) or term in known_terms]
    return query.repo is not None and similarity.signs_of_code(query.task) + min(1, len(named)) >= GROUNDS
