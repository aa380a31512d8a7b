"""Versioned prompts: folder -> Prompt -> messages. A version is its files and its reply model, hashed together and never changed again.

Templates hold layout; what comes from a run is passed to them as a value, never compiled, and stands between two lines with a mark that is
made from its own hash, so no text can end its place early. Knows nothing about models, budgets or the network.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import yaml
from pydantic import BaseModel

from osmia_memory import ids
from osmia_memory.errors import ConfigError, InternalError
from osmia_memory.extract.window import window
from osmia_memory.extract.wire import NominationsV1, PhraseV1, ProfileV1, ReplyV1
from osmia_memory.models import Event, TaskRun, Transcript
from osmia_memory.render import CHARS_PER_TOKEN

FOLDER = Path(__file__).parent / "prompts"
LOCK = FOLDER / "published.lock"  # "name version sha256", one a line
WIRES: Mapping[tuple[str, str], type[BaseModel]] = {
    ("extract_facts", "v1"): ReplyV1,
    ("reconcile", "v1"): NominationsV1,
    ("summarize_pattern", "v1"): PhraseV1,
    ("engine_profile", "v1"): ProfileV1,
}

_SHOWN_HASH = 6
_MARK = 8
_EXAMPLES_DATE = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

Message = Mapping[str, str]


@dataclass(frozen=True)
class Example:
    """A small record with the answer it deserves, shown to the model as an earlier turn. Of a prompt about runs it is a run."""

    name: str
    transcript: Transcript | None
    reply: BaseModel
    record: str = ""

    @property
    def shown(self) -> str:
        """The record as it is sent."""
        if self.transcript is None:
            return self.record
        return "\n".join(chunk.text for chunk in window(self.transcript, _rough_tokens))


@dataclass(frozen=True)
class Prompt:
    """One version of one prompt. `sha256` is over all files of its folder and the JSON schema of `wire`."""

    name: str
    version: str
    sha256: str
    wire: type[BaseModel]
    examples: tuple[Example, ...] = field(repr=False)
    system: str = field(repr=False)  # template
    user: str = field(repr=False)  # template

    @property
    def id(self) -> str:
        """`extract_facts@v1:1f3a9c`."""
        return f"{self.name}@{self.version}:{self.sha256[:_SHOWN_HASH]}"

    def render(self, *, record: str, part: int = 1, parts: int = 1) -> tuple[Message, ...]:
        """The system message, each example as a question and its answer, and the question about `record` (text of one part of a run)."""
        return (*self._opening, {"role": "user", "content": self._question(record, part, parts)})

    @cached_property  # the same before every question
    def _opening(self) -> tuple[Message, ...]:
        said = [{"role": "system", "content": self._filled("system.jinja", self.system, {})}]
        for example in self.examples:
            answer = example.reply.model_dump_json(exclude_defaults=True)
            said += [{"role": "user", "content": self._question(example.shown, 1, 1)}, {"role": "assistant", "content": answer}]
        return tuple(said)

    def _question(self, record: str, part: int, parts: int) -> str:
        values = {"record": record, "part": part, "parts": parts, "mark": _mark(record)}
        return self._filled("user.jinja", self.user, values)

    def _filled(self, file: str, template: str, values: Mapping[str, Any]) -> str:
        try:
            return _ENVIRONMENT.from_string(template).render(values).strip()
        except jinja2.TemplateError as error:
            raise InternalError(f"prompt `{self.name}` {self.version}: `{file}` cannot be rendered: {error}") from error


_ENVIRONMENT = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True)


def load(name: str, version: str, folder: Path = FOLDER) -> Prompt:
    """The prompt in `folder/<name>/<version>`.

    Raises:
        ConfigError: there is no such prompt; names those that there are.
        InternalError: its examples are no runs with answers of its reply model.
    """
    wire, place = WIRES.get((name, version)), folder / name / version
    if wire is None or not place.is_dir():
        there = ", ".join(f"`{n}` {v}" for n, v in WIRES)
        raise ConfigError(f"no prompt {name!r} {version!r}; there are {there}")
    files = {path.name: path.read_bytes() for path in sorted(place.iterdir()) if path.is_file()}
    texts = {file: data.decode("utf-8") for file, data in files.items()}
    return Prompt(
        name,
        version,
        _digest(files, wire),
        wire,
        tuple(_example(raw, wire) for raw in yaml.safe_load(texts["examples.yaml"])),
        texts["system.jinja"],
        texts["user.jinja"],
    )


def published(lock: Path = LOCK) -> Mapping[tuple[str, str], str]:
    """The hashes that published versions had when they were published, by name and version."""
    lines = [line.split() for line in lock.read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#")]
    return {(name, version): sha256 for name, version, sha256 in lines}


def _digest(files: Mapping[str, bytes], wire: type[BaseModel]) -> str:
    parts = {name: hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest() for name, data in files.items()}
    return hashlib.sha256(ids.canonical([parts, wire.model_json_schema()]).encode()).hexdigest()


def _rough_tokens(text: str) -> int:
    return len(text) // CHARS_PER_TOKEN


def _mark(text: str) -> str:
    """Digits that do not stand in the text."""
    mark = text
    while True:
        mark = hashlib.sha256(mark.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
        if mark not in text:
            return mark


# --- examples ---------------------------------------------------------------------------------------------------------


def _example(raw: Mapping[str, Any], wire: type[BaseModel]) -> Example:
    try:
        reply = wire.model_validate(raw["reply"])
        if "record" in raw:
            return Example(raw["name"], None, reply, raw["record"].strip())
        events = tuple(_events(raw["events"]))
        run = TaskRun(
            run_id=ids.run_id("", raw["run"]["engine"], raw["name"]),
            tenant_id="",
            session_id=raw["name"],
            version="",
            description=next(e.text for e in events if e.kind == "user"),
            started_at=_EXAMPLES_DATE,
            finished_at=_EXAMPLES_DATE + timedelta(seconds=len(events)),
            **raw["run"],
        )
    except (KeyError, TypeError, ValueError, StopIteration) as error:
        raise InternalError(f"example {raw.get('name')!r} is no run with an answer: {error!r}") from error
    return Example(raw["name"], Transcript(run, events), reply)


def _events(steps: Sequence[Mapping[str, Any]]) -> list[Event]:
    """A `command` is followed by its result; `edit` names the file."""
    found: list[Event] = []
    for step in steps:
        at = len(found)
        when = _EXAMPLES_DATE + timedelta(seconds=at)
        if "command" in step:
            found.append(Event(at, at, "command", step["command"], when, tool="shell"))
            found.append(Event(at + 1, at + 1, "command_result", step["result"], when, answers=at, exit_code=step["exit"]))
        elif "edit" in step:
            found.append(
                Event(at, at, "file_edit", step["new"], when, tool="Edit", args={"old_string": step["old"]}, paths=(step["edit"],))
            )
        elif "user" in step:
            found.append(Event(at, at, "user", step["user"], when))
        else:
            found.append(Event(at, at, "assistant", step["assistant"], when))
    return found
