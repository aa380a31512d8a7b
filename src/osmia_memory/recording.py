"""Cassettes: what a model answered about the demo runs, recorded over HTTP, and played again without a network.

One file an arm in `cassettes/<prompt>/<version>/`: where it comes from, then every request and its reply with JSON bodies as JSON, so that a
person can read what was asked and said. Played strictly: a request without a recording is an error, and so is a recording nobody asked for.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from osmia_memory.errors import ConfigError, InputError

FOLDER = Path(__file__).parent / "cassettes"
HOST = "recorded"  # in place of the host's name
_KEPT_HEADERS = ("content-type", "retry-after")  # of a reply


@dataclass(frozen=True)
class Origin:
    """What a cassette was recorded from, and with which settings its requests were made."""

    arm: str  # "authored", "small_model", or a name of your own
    model: str  # as given to the completer; the host is not kept
    recorded_from: str  # one sentence for people
    recorded_on: str  # a date
    window_tokens: int
    has_base_url: bool  # an OpenAI-compatible server, rather than the provider's own address
    usd_per_million_in: float | None = None
    usd_per_million_out: float | None = None
    price_of: str = ""  # whose list price that is


def path_of(arm: str, prompt: str = "extract_facts", version: str = "v1", folder: Path = FOLDER) -> Path:
    """Where an arm's cassette is."""
    return folder / prompt / version / f"{arm}.yaml"


def origin_of(path: Path) -> Origin:
    """What a cassette says of itself.

    Raises:
        InputError: there is no such cassette, or it says nothing of its origin.
    """
    try:
        return Origin(**_load(path.read_text(encoding="utf-8"))["origin"])
    except OSError as error:
        there = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml"))) or "none"
        raise InputError(
            f"no cassette `{path}` ({error.strerror}); there are: {there}. `osmia-memory cassettes record` makes one"
        ) from error
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise InputError(f"`{path}` is no cassette: it does not say what it was recorded from") from error


@contextmanager
def recording(path: Path, origin: Origin) -> Iterator[None]:
    """Everything that is sent meanwhile goes to its host and is written to `path` afterwards, which is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    try:
        with _player(origin).use_cassette(str(fresh), record_mode="new_episodes"):
            yield
        if not fresh.exists():
            raise ConfigError(f"nothing was recorded for `{path}`: no request was answered")
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


@contextmanager
def playing(path: Path) -> Iterator[Any]:
    """Everything that is sent meanwhile is answered from `path`; nothing leaves this machine. Gives vcrpy's cassette.

    Raises:
        InputError: at the end, recordings were left that nobody asked for.
    """
    with _player(origin_of(path)).use_cassette(str(path), record_mode="none", allow_playback_repeats=False) as cassette:
        yield cassette
        if not cassette.all_played:
            left = len(cassette) - cassette.play_count
            raise InputError(f"{left} recordings of `{path}` were not asked for: the requests have changed; record it again")


def missing() -> type[Exception]:
    """The error of a request without a recording; a completer has to pass it on."""
    import vcr.errors

    error: type[Exception] = vcr.errors.CannotOverwriteExistingCassetteException
    return error


def _player(origin: Origin) -> Any:
    import vcr

    player = vcr.VCR(
        match_on=("method", "path", "body"),
        decode_compressed_response=True,
        before_record_request=_scrubbed_request,
        before_record_response=_scrubbed_response,
        serializer="readable",
    )
    player.register_serializer("readable", _Readable(origin))
    return player


def _scrubbed_request(request: Any) -> Any:
    """Without host, port, query and headers but for the type of its body: they hold keys, and where a server stood says nothing."""
    from vcr.request import Request

    return Request(request.method, f"http://{HOST}{request.path}", request.body, {"content-type": "application/json"})


def _scrubbed_response(response: dict[str, Any]) -> dict[str, Any]:
    headers = {name: value for name, value in response["headers"].items() if name.lower() in _KEPT_HEADERS}
    return {**response, "headers": headers}


class _Readable:
    """vcrpy's serializer: bodies of JSON are kept as JSON, compared as they were sent."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin

    def serialize(self, cassette: Mapping[str, Any]) -> str:
        """The text of a cassette file."""
        turns = [{"request": _opened(i["request"]), "response": _opened(i["response"])} for i in cassette["interactions"]]
        document = {"origin": asdict(self._origin), "interactions": turns}
        return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=140)

    def deserialize(self, text: str) -> dict[str, Any]:
        """What vcrpy makes of it."""
        document = _load(text)
        turns = [{"request": _closed(i["request"]), "response": _closed(i["response"])} for i in document["interactions"]]
        return {"version": 1, "interactions": turns}


def _opened(half: Mapping[str, Any]) -> dict[str, Any]:
    body = half.get("body")
    text = body.get("string") if isinstance(body, dict) else body
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        parsed = json.loads(text or "null")
    except ValueError:
        return {**half, "body": text}
    return {**{k: v for k, v in half.items() if k != "body"}, "json": parsed}


def _closed(half: Mapping[str, Any]) -> dict[str, Any]:
    rest = {k: v for k, v in half.items() if k not in ("json", "body")}
    text = json.dumps(half["json"], ensure_ascii=False, separators=(",", ":")) if "json" in half else half.get("body")
    return {**rest, "body": {"string": text} if "status" in half else text}


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _load(text: str) -> Any:
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
