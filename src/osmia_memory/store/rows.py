"""The rows of import and export: one JSON object a line, told apart by `type`. Knows nothing about storage.

Reading is strict: an unknown field is an error that names it and the nearest known one. Writing is canonical: sorted keys, no field that
says nothing, times as RFC 3339 in UTC; equal knowledge gives equal bytes.
"""

import difflib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, model_validator

from osmia_memory.errors import RowError
from osmia_memory.models import FactKind, Outcome, Polarity, QuoteStatus, Relation, Scope, TaskType

_KIND_ALIASES = {"repo_behaviour": "repo_quirk", "engine_capability": "general"}


def _zoned(value: Any) -> Any:
    """A time without a zone is UTC."""
    moment = datetime.fromisoformat(value.strip().replace("Z", "+00:00")) if isinstance(value, str) else value
    if isinstance(moment, datetime):
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    raise ValueError("not a time; write it like 2026-05-15T12:00:00Z")


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _claim(value: Any) -> Any:
    """A claim may be written as [subject, attribute, qualifier, value]."""
    return dict(zip(ClaimRow.model_fields, value, strict=True)) if isinstance(value, list | tuple) and len(value) == 4 else value


Time = Annotated[datetime, BeforeValidator(_zoned), PlainSerializer(_rfc3339, when_used="json")]
Kind = Annotated[FactKind, BeforeValidator(lambda value: _KIND_ALIASES.get(value, value) if isinstance(value, str) else value)]
Text = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Names = tuple[str, ...]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ClaimRow(_Model):
    """What a fact says in fixed form."""

    subject: str
    attribute: str
    qualifier: str = ""
    value: str


class WitnessRow(_Model):
    """One run's testimony within a fact row. A field that is not given is as in the fact row."""

    run_id: str = ""  # "": given by hand
    observed_at: Time | None = None
    content: Text | None = None
    fact_kind: Kind | None = None
    confidence: Share | None = None
    decay_rate: Share | None = None
    source: str | None = None
    engine: str | None = None
    task_type: TaskType | None = None
    anchors: Names | None = None
    tags: Names | None = None
    recorded_at: Time | None = None


class FactRow(_Model):
    """A fact. Without `witnesses` and evidence rows it is a manual one with a single witness.

    What follows from the witnesses (`runs`, `refuting_runs`, `engines`, `last_seen`) is written for readers and folded anew on import.
    """

    type: Literal["fact"] = "fact"
    fact_id: str | None = None  # names it for evidence and edge rows of the same file
    tenant_id: str | None = None
    content: Text
    unedited: Text | None = None  # the witnesses' wording, where a person gave another one
    fact_kind: Kind
    scope: Scope | None = None  # the one that `owner`, `repo` or `engine` suggests
    owner: str | None = None
    repo: str | None = None  # another way to write scope "repo" and its owner
    engine: str | None = None
    task_type: TaskType | None = None
    confidence: Share = 0.7
    decay_rate: Share = 0.02
    valid_from: Time | None = None  # None: the time given for the import
    last_seen: Time | None = None
    claim: Annotated[ClaimRow | None, BeforeValidator(_claim)] = None
    anchors: Names = ()
    tags: Names = ()
    importance: Annotated[float, Field(ge=0)] = 1.0
    pinned: bool = False
    valid_to: Time | None = None
    superseded_by: str | None = None
    source: str | None = None
    runs: int | None = None
    refuting_runs: int | None = None
    engines: Names | None = None
    recorded_at: Time | None = None
    witnesses: tuple[WitnessRow, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _pinned_importance(cls, values: Any) -> Any:
        """`"importance": "pinned"` is another way to write `"pinned": true`."""
        if isinstance(values, Mapping) and values.get("importance") == "pinned":
            return {**{k: v for k, v in values.items() if k != "importance"}, "pinned": True}
        return values


class EvidenceRow(_Model):
    """A quote behind a fact. Branch, base commit and environment are those of the run, repeated for readers."""

    type: Literal["evidence"] = "evidence"
    tenant_id: str | None = None
    fact_id: Text
    run_id: Text
    event_index: Annotated[int, Field(ge=0)] = 0
    record: Annotated[int, Field(ge=0)] | None = None  # None: as `event_index`
    quote: str
    span: tuple[int, int] | None = None  # None: from the beginning
    status: QuoteStatus = "exact"
    polarity: Polarity = "supports"
    observed_at: Time | None = None  # None: the fact's `valid_from`
    origin: str | None = None
    source: str | None = None
    branch: str | None = None
    base_commit: str | None = None
    environment: Mapping[str, str] | None = None


class EdgeRow(_Model):
    """A link between two facts or runs."""

    type: Literal["edge"] = "edge"
    tenant_id: str | None = None
    from_id: Annotated[Text, Field(validation_alias=AliasChoices("from", "from_id"), serialization_alias="from")]
    to_id: Annotated[Text, Field(validation_alias=AliasChoices("to", "to_id"), serialization_alias="to")]
    relation: Relation
    weight: float = 1.0
    reason: str = ""
    created_at: Time | None = None
    made_by: Literal["code", "hand"] = "hand"  # what code links follows from the facts and is worked out anew on import


class PatternRow(_Model):
    """A statistic that came without its runs."""

    type: Literal["pattern"] = "pattern"
    tenant_id: str | None = None
    pattern_id: str | None = None
    description: Text
    frequency: int = 0
    confidence: Share = 0.0
    runs: int = 0
    hits: int = 0
    interval: tuple[float, float] = (0.0, 1.0)
    group: Mapping[str, str] = {}
    first_seen: Time | None = None
    last_seen: Time | None = None


class EngineProfileRow(_Model):
    """What runs that are not here say about an engine."""

    type: Literal["engine_profile"] = "engine_profile"
    tenant_id: str | None = None
    engine: Text
    model: str | None = None
    sample_count: int = 0
    success_rate: Share | None = None
    interval: tuple[float, float] | None = None
    strengths: Names = ()
    weaknesses: Names = ()
    by_group: Mapping[str, tuple[int, int]] = {}


class SignalRow(_Model):
    """One sign of how a run ended."""

    name: str
    value: str
    event_index: int | None = None


class RunRow(_Model):
    """A run, with the names that occur in it and what read it."""

    type: Literal["run"] = "run"
    tenant_id: str | None = None
    run_id: str | None = None  # names it for evidence rows of the same file
    engine: Text
    session_id: Text
    version: str = ""
    segment: str = ""
    parent_session_id: str | None = None
    repo: str | None = None
    model: str | None = None
    task_type: TaskType = "unknown"
    title: str = ""
    description: str = ""
    labels: Names = ()
    language: str | None = None
    cwd: str | None = None
    branch: str | None = None
    base_commit: str | None = None
    environment: Mapping[str, str] = {}
    started_at: Time | None = None
    finished_at: Time | None = None
    times_assumed: bool = False
    duration_s: float | None = None
    cost_usd: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    attempts: int = 1
    outcome: Outcome = "unknown"
    signals: tuple[SignalRow, ...] = ()
    source: str = ""
    extractor: str = ""
    vocabulary: Names = ()
    recorded_at: Time | None = None


Row = FactRow | EvidenceRow | EdgeRow | PatternRow | EngineProfileRow | RunRow
TYPES: Mapping[str, type[Row]] = {model.model_fields["type"].default: model for model in get_args(Row)}


def parse(value: str | bytes | Mapping[str, Any], where: str = "row", *, ignore_unknown: bool = False) -> Row:
    """One row, from its line or its object. `where` ("line 3") stands in front of error messages.

    Raises:
        RowError: no JSON object, no known type, or a field that is unknown, missing or of the wrong kind; the message names it.
    """
    fields = _object(value, where)
    kind = str(fields.get("type"))
    if kind not in TYPES:
        raise RowError(f"{where}: `type` is {fields.get('type')!r}{_nearest(kind, TYPES)}; known types: {', '.join(TYPES)}")
    model = TYPES[kind]
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        unknown = {e["loc"] for e in error.errors() if e["type"] == "extra_forbidden"}
        if ignore_unknown and len(unknown) == len(error.errors()):
            return parse(_without(fields, unknown), where)
        raise RowError(f"{where} ({kind}): {_told(error, model, ignore_unknown=ignore_unknown)}") from error


def line(row: Row) -> str:
    """The canonical line of a row, without a newline."""
    return json.dumps(as_dict(row), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def as_dict(row: Row) -> dict[str, Any]:
    """The canonical object of a row: plain JSON values of the fields that were set."""
    return {"type": row.type, **row.model_dump(mode="json", by_alias=True, exclude_unset=True)}


def _object(value: str | bytes | Mapping[str, Any], where: str) -> Mapping[str, Any]:
    if isinstance(value, str | bytes):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise RowError(f"{where}: no JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise RowError(f"{where}: a row is a JSON object, this is {type(value).__name__}")
    return value


def _without(fields: Mapping[str, Any], unknown: set[tuple[int | str, ...]]) -> Mapping[str, Any]:
    kept: dict[str, Any] = json.loads(json.dumps(dict(fields), default=str))
    for *path, name in unknown:
        place: Any = kept
        for step in path:
            place = place[step]
        place.pop(name)
    return kept


def _told(error: ValidationError, model: type[BaseModel], *, ignore_unknown: bool) -> str:
    errors = [e for e in error.errors() if not (ignore_unknown and e["type"] == "extra_forbidden")]
    first = errors[0]
    name = ".".join(str(step) for step in first["loc"])
    if first["type"] == "extra_forbidden":
        return (
            f"unknown field `{name}`{_nearest(name.rpartition('.')[2], _names(model, first['loc']))}; `--ignore-unknown` skips such fields"
        )
    if first["type"] == "missing":
        return f"`{name}` is missing"
    return f"`{name}`: {first['msg'].removeprefix('Value error, ')}, got {first['input']!r}"


def _names(model: type[BaseModel], where: tuple[int | str, ...]) -> list[str]:
    nested: Mapping[str, type[BaseModel]] = {"witnesses": WitnessRow, "claim": ClaimRow, "signals": SignalRow}
    found = nested.get(str(where[0]), model) if len(where) > 1 else model
    names = []
    for name, field in found.model_fields.items():
        alias = field.validation_alias
        names += [name, *(str(c) for c in alias.choices)] if isinstance(alias, AliasChoices) else [name]
    return names


def _nearest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f", did you mean `{near[0]}`?" if near else ""
