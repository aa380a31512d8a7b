"""How likely an engine is to succeed at a task of a repository, from outcomes seen so far. Pure.

Four simple predictors; `benchmarks/predict.py` compares them and docs/benchmarks.md holds the figures. `expected` is the one that is kept.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

PRIOR = 10.0  # outcomes that a group's own rate has to outweigh; benchmarks/predict.py: 5 to 30 make no difference in the third digit


class Seen(NamedTuple):
    """Successes and runs, over all and by engine, repository and both."""

    hits: Counter[tuple[str, ...]]
    runs: Counter[tuple[str, ...]]

    def add(self, engine: str, repo: str, success: bool) -> None:
        """Count one outcome."""
        for key in ((), ("engine", engine), ("repo", repo), ("both", engine, repo)):
            self.runs[key] += 1
            self.hits[key] += success

    def rate(self, key: tuple[str, ...], otherwise: float) -> float:
        """The rate of a group, drawn towards `otherwise` by `PRIOR` outcomes."""
        return (self.hits[key] + PRIOR * otherwise) / (self.runs[key] + PRIOR)


def nothing_seen() -> Seen:
    """No outcome yet."""
    return Seen(Counter(), Counter())


def global_rate(seen: Seen, engine: str, repo: str) -> float:
    """The rate of all runs."""
    return (seen.hits[()] + 1) / (seen.runs[()] + 2)


def engine_rate(seen: Seen, engine: str, repo: str) -> float:
    """The engine's rate."""
    return seen.rate(("engine", engine), global_rate(seen, engine, repo))


def engine_in_repo(seen: Seen, engine: str, repo: str) -> float:
    """The engine's rate in this repository, drawn towards its rate over all."""
    return seen.rate(("both", engine, repo), engine_rate(seen, engine, repo))


def additive(seen: Seen, engine: str, repo: str) -> float:
    """What the engine adds to the rate of all, plus what the repository adds."""
    base = global_rate(seen, engine, repo)
    return min(0.99, max(0.01, seen.rate(("engine", engine), base) + seen.rate(("repo", repo), base) - base))


PREDICTORS: Mapping[str, Callable[[Seen, str, str], float]] = {
    "global rate": global_rate,
    "engine rate": engine_rate,
    "engine x repository, shrunk": engine_in_repo,
    "engine + repository": additive,
}
expected = additive


def brier(outcomes: Iterable[tuple[str, str, bool]], predict: Callable[[Seen, str, str], float]) -> float:
    """Mean squared error of predicting each (engine, repo, success) before it is seen, in the order given."""
    seen, total, count = nothing_seen(), 0.0, 0
    for engine, repo, success in outcomes:
        total += (predict(seen, engine, repo) - success) ** 2
        count += 1
        seen.add(engine, repo, success)
    return total / count if count else 0.0
