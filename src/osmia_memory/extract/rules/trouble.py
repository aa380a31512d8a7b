"""Failed steps whose output shows what went wrong in the environment: what several rules begin with."""

import functools
import posixpath
import re

from osmia_memory.extract import commands
from osmia_memory.extract.signs import Sign, signs
from osmia_memory.extract.view import Step, View


@functools.lru_cache(maxsize=1)  # four rules ask for those of one view
def troubles(view: View) -> tuple[tuple[int, Step, Sign], ...]:
    """The troubled steps in order, with their position among all steps and their sign."""
    first: dict[int, tuple[int, Step, Sign]] = {}
    for n, step, sign in every_trouble(view):
        first.setdefault(n, (n, step, sign))
    return tuple(first.values())


@functools.lru_cache(maxsize=1)
def every_trouble(view: View) -> tuple[tuple[int, Step, Sign], ...]:
    """Like `troubles`, with all signs of a step: the one that names the way out is not always the first."""
    return tuple((n, step, sign) for n, step in enumerate(view.steps) if _is_troubled(step) for sign in _signs(view, step))


def _is_troubled(step: Step) -> bool:
    """It failed, or printed a tool's error although its exit code was hidden."""
    if step.harness or step.main is None:
        return False
    hidden = bool(re.search(r"\|\||;|\||&&", step.line)) and step.purpose not in ("search", "read")
    return step.failed or (hidden and bool(re.search(r"^(?:fatal|error): |command not found", step.output[:4000], re.M)))


def _signs(view: View, step: Step) -> tuple[Sign, ...]:
    return tuple(found for found in signs(step.output) if _is_of_the_environment(view, step, found))


_OF_THE_PRODUCT = ("tool error", "missing file", "bad option", "service", "setting", "permission")


def _is_of_the_environment(view: View, step: Step, found: Sign) -> bool:
    """The sign tells of the environment, not of the product at work or of what the run made up."""
    v = step.verdict
    runs_product = step.purpose in ("run", "other") and step.main is not None and commands.runner_key(step.main) not in view.runners
    if found.line.startswith("E ") and found.kind != "missing module":
        return False
    if found.kind in _OF_THE_PRODUCT and ((runs_product and found.kind != "permission") or (v is not None and v.failing)):
        return False
    if found.kind == "missing module":
        if v is not None and v.ran and not v.broken_build:
            return False  # tests ran; what one of them imports is its own affair
        if "/" in found.key and not found.key.startswith("@"):
            return False  # a Go import path: `go get` is no mystery
        if found.key.split(".")[0] in view.created_names:
            return False
        return step.purpose == "test" or not is_of_the_repo(view, found.key)
    return not (found.kind == "missing file" and _is_trivial_path(view, found.key, step))


def is_of_the_repo(view: View, module: str) -> bool:
    """A module of this repository or one the run invented: its absence is the run's doing."""
    top = module.split(".")[0]
    repo = (view.transcript.run.repo or "").rsplit("/", 1)[-1].replace("-", "_")
    return (
        top == repo
        or any(p.startswith((f"{top}/", f"src/{top}/", f"lib/{top}/", f"{top}.py")) for p in view.edited)
        or bool(re.match(r"(?:test|my|repro|reproduce|demo|foo|bar|example|temp|check|verify)(?:_|$|\w*app)", top))
    )


def _is_trivial_path(view: View, key: str, step: Step) -> bool:
    name = posixpath.basename(key.rstrip("/"))
    return (
        not name or name in view.created_names or not re.search(r"[./]", key) or step.purpose in ("write", "git") or key.startswith("<tmp>")
    )
