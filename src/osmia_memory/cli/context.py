"""What every command shares: options, the store and tenant they resolve to, and how errors end."""

import math
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from osmia_memory import config
from osmia_memory.memory import Memory

StoreOption = Annotated[
    Path | None, typer.Option("--store", help="Store file. Else OSMIA_MEMORY_STORE, the configuration, ./.osmia/memory.duckdb.")
]
TenantOption = Annotated[
    str | None, typer.Option("--tenant", help="Whose memory. Else OSMIA_MEMORY_TENANT, the configuration, `ticketing`.")
]
ConfigOption = Annotated[Path | None, typer.Option("--config", help="osmia-config.yaml to read. Else ./osmia-config.yaml if it is there.")]
NowOption = Annotated[str | None, typer.Option("--now", help="The time to take for now, RFC 3339. Else OSMIA_MEMORY_NOW, the clock.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object (or one a line) instead of text.")]
AsOfOption = Annotated[
    str | None, typer.Option("--as-of", help="Answer with what had been observed by then (RFC 3339), and as if it were then.")
]
KnownAtOption = Annotated[str | None, typer.Option("--known-at", help="Answer with what the store had recorded by then (RFC 3339).")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything was skipped.")]


class Session(NamedTuple):
    """The resolved store, tenant, settings and clock of one command."""

    memory: Memory
    settings: config.Settings
    now: Callable[[], datetime]


def session(
    store: Path | None, tenant: str | None, config_file: Path | None, now: str | None, *, environment: Mapping[str, str] | None = None
) -> Session:
    """Options before environment before configuration before defaults; the tenant is said on stderr unless it was given.

    Raises:
        ConfigError: a bad configuration.
        typer.BadParameter: a time that is none.
    """
    environment = os.environ if environment is None else environment
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        settings, configured = config.load(config_file, environment)
    for warning in told:
        say(f"warning: {warning.message}")
    in_file = configured or bool(environment.get("OSMIA_MEMORY_STORE"))
    path = store or (settings.store_path if in_file else config.DEFAULT_STORE)
    chosen = tenant if tenant is not None else settings.tenant or config.DEFAULT_TENANT
    if tenant is None:
        say(f"tenant: {chosen}")
    clock = clock_of(now, "--now") if now else clock_of(environment.get("OSMIA_MEMORY_NOW"), "OSMIA_MEMORY_NOW")
    return Session(Memory(path, chosen, settings, clock), settings, clock)


def at(s: Session, as_of: str | None, known_at: str | None) -> AbstractContextManager[Memory]:
    """The memory to read from: as it is, or as it was."""
    return s.memory.at(
        as_of=parse_time(as_of, "--as-of") if as_of else None, known_at=parse_time(known_at, "--known-at") if known_at else None
    )


def clock_of(text: str | None, option: str) -> Callable[[], datetime]:
    """A clock that stands at `text`, or the real one. `option` is what said so."""
    if not text:
        return lambda: datetime.now(UTC)
    moment = parse_time(text, option)
    return lambda: moment


def parse_time(text: str, option: str) -> datetime:
    """An RFC 3339 time, UTC where no zone is given.

    Raises:
        typer.BadParameter: it is no time; the message names the option and shows the form.
    """
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"{text!r} is no time; write it like 2026-05-15T12:00:00Z", param_hint=option) from error


def one_of(value: str | None, names: Collection[str], option: str) -> str | None:
    """The value, if it is one of these names or absent.

    Raises:
        typer.BadParameter: it is another; the message names them.
    """
    if value is not None and value not in names:
        raise typer.BadParameter(f"{value!r} is none of {', '.join(names)}", param_hint=option)
    return value


def say(message: str) -> None:
    """A message for people: stderr."""
    print(message, file=sys.stderr)


def show(text: str) -> None:
    """Data: stdout, without a newline of our own if there is one."""
    sys.stdout.write(text if not text or text.endswith("\n") else text + "\n")


def show_json(value: Any) -> None:
    """One JSON value on one line of stdout."""
    import json

    sys.stdout.write(json.dumps(_plain(value), ensure_ascii=False, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    """A value of ours as JSON has it: named fields as objects, times as RFC 3339, no number that is none."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "_asdict"):  # before `tuple`, which it is too
        return _plain(value._asdict())
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [_plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    raise TypeError(f"not JSON: {value!r}")
