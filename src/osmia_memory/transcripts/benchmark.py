"""Tasks inside the instructions that a benchmark or harness puts around them. Pure; knows no file format.

The same instructions stand in hundreds of runs and are no knowledge of any repository.
"""

import re
from typing import NamedTuple

_FRAMES = tuple(
    re.compile(pattern, re.S)
    for pattern in (
        r"(?:\A|\n)ISSUE:\n(?P<task>.*?)\nINSTRUCTIONS:\n",
        r"\AWe're currently solving the following CTF challenge\.(?P<task>.*?)\nINSTRUCTIONS:\n",
        r"(?:\A|\n)# Problem Statement\n(?P<task>.*?)(?=\nIMPORTANT: You should|\n# Repository Instructions|\Z)",
    )
)
_TAGS = ("pr_description", "issue_description", "issue", "task_description")
_LEAD = "Consider the following PR description:"
_SLOT = re.compile(r"\{\{?\s*(?:problem_statement|issue|task|instance\.problem_statement)\s*\}?\}")
_INSTANCE = re.compile(
    r"(?:\A|__)(?P<org>[A-Za-z0-9][A-Za-z0-9.-]*(?:_[A-Za-z0-9.-]+)*)__(?P<name>[A-Za-z0-9.-]+(?:_[A-Za-z0-9.-]+)*)-i?\d+\Z"
)


class Framed(NamedTuple):
    """A prompt in three parts; only `task` was written for this run."""

    before: str
    task: str
    after: str


def split(prompt: str, template: str = "") -> Framed:
    """The prompt around its task, by the frames of known benchmarks or the template it was made of; else all of it is the task."""
    spans = [_in_tag(prompt), *(match.span("task") for frame in _FRAMES if (match := frame.search(prompt)))]
    for start, end in filter(None, spans):
        task = prompt[start:end].strip().removeprefix(_LEAD).strip()
        if task:
            at = prompt.index(task, start)
            return Framed(prompt[:at].strip(), task, prompt[at + len(task) :].strip())
    return _by_template(prompt, template) or Framed("", prompt, "")


def _in_tag(prompt: str) -> tuple[int, int] | None:
    """From where to where the first of the tags encloses something."""
    opened = ((at + len(tag) + 2, tag) for tag in _TAGS if (at := prompt.find(f"<{tag}>")) >= 0)
    return min(((start, end) for start, tag in opened if (end := prompt.find(f"</{tag}>", start)) >= 0), default=None)


def _by_template(prompt: str, template: str) -> Framed | None:
    slot = _SLOT.search(template)
    if slot is None:
        return None
    lead = re.split(r"\}\}?", template[: slot.start()])[-1].strip().rsplit("\n", 1)[-1]
    trail = re.split(r"\{\{?|\{%", template[slot.end() :], maxsplit=1)[0].strip()[:60]
    start = prompt.find(lead) + len(lead) if lead in prompt else -1
    end = prompt.find(trail, start) if trail and start >= 0 else len(prompt)
    if start < 0 or end < start or not prompt[start:end].strip():
        return None
    return Framed(prompt[:start].strip(), prompt[start:end].strip(), prompt[end:].strip())


def repo_of_instance(instance: str) -> str | None:
    """`org/name` of an instance id `org__name-123`, which may stand at the end of a longer name."""
    match = _INSTANCE.search(instance)
    return f"{match['org']}/{match['name']}" if match else None
