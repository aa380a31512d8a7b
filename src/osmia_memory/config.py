"""The `memory:` section of osmia-config.yaml, read once at the edge. Commands given by hand need none of it."""

import difflib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from osmia_memory.errors import ConfigError

DEFAULT_STORE = Path(".osmia/memory.duckdb")
DEFAULT_TENANT = "ticketing"
FILE_NAME = "osmia-config.yaml"


@dataclass(frozen=True)
class Settings:
    """Every key that is read. The first six are the documented ones of an Osmia controller."""

    enabled: bool = False
    store_path: Path = Path("/var/lib/osmia/memory.db")
    decay_interval_hours: int = 24
    prune_threshold: float = 0.05
    max_facts_per_query: int = 10
    tenant_isolation: bool = True  # accepted and without effect: isolation is unconditional
    tenant: str = ""  # for commands given by hand; "" means "ticketing"
    max_block_tokens: int = 1200  # upper bound of a rendered block
    embedding: bool = True  # fuse the static embedding with the lexical ranking
    lock_wait_seconds: float = 5.0
    llm_max_cost_per_day: float | None = None  # USD, over all tenants of the store; a day is one of UTC
    llm_max_tokens_per_day: int | None = None


def load(path: Path | None, environment: Mapping[str, str]) -> tuple[Settings, bool]:
    """(settings, whether a file said so). Without `path`, `./osmia-config.yaml` is read if it is there.

    `OSMIA_MEMORY_STORE` and `OSMIA_MEMORY_TENANT` override the file.

    Raises:
        ConfigError: no such file, no YAML mapping, an unknown key (names the nearest known one) or a value out of range.
    """
    chosen = path or (Path(FILE_NAME) if Path(FILE_NAME).is_file() else None)
    settings = Settings()
    if chosen is not None:
        settings = _parse(_section(chosen), str(chosen))
    if store := environment.get("OSMIA_MEMORY_STORE"):
        settings = replace(settings, store_path=Path(store))
    if tenant := environment.get("OSMIA_MEMORY_TENANT"):
        settings = replace(settings, tenant=tenant)
    return settings, chosen is not None


def _section(path: Path) -> Mapping[str, Any]:
    import yaml  # only a configured deployment pays for the parser

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise ConfigError(f"cannot read the configuration `{path}`: {error.strerror}; pass another file with `--config`") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"`{path}` is no valid YAML: {error}") from error
    section = document.get("memory", {}) if isinstance(document, dict) else None
    if not isinstance(section, dict):
        raise ConfigError(f"`{path}` must be a mapping with a `memory:` section")
    return section


def _parse(section: Mapping[str, Any], name: str) -> Settings:
    from pydantic import TypeAdapter, ValidationError  # only a configured deployment pays for it

    known = [f.name for f in fields(Settings)]
    for key in section:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, 1)
            hint = f"; did you mean `{near[0]}`?" if near else f"; known keys: {', '.join(known)}"
            raise ConfigError(f"`{name}`: unknown key `memory.{key}`{hint}")
    try:
        settings = TypeAdapter(Settings).validate_python(dict(section))
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"`{name}`: `memory.{'.'.join(map(str, first['loc']))}`: {first['msg']} (got {first['input']!r})") from error
    _check(settings, name)
    return settings


def _check(settings: Settings, name: str) -> None:
    for key, low, high in (
        ("decay_interval_hours", 1, 24 * 365),
        ("prune_threshold", 0, 1),
        ("max_facts_per_query", 1, 100),
        ("max_block_tokens", 50, 100_000),
        ("lock_wait_seconds", 0, 600),
    ):
        value = getattr(settings, key)
        if not low <= value <= high:
            raise ConfigError(f"`{name}`: `memory.{key}` must be between {low} and {high}, got {value!r}")
    for key in ("llm_max_cost_per_day", "llm_max_tokens_per_day"):
        cap = getattr(settings, key)
        if cap is not None and not cap >= 0:
            raise ConfigError(f"`{name}`: `memory.{key}` must be 0 or more, got {cap!r}")
    if not settings.tenant_isolation:
        warnings.warn("`memory.tenant_isolation: false` has no effect: isolation is unconditional", stacklevel=3)
