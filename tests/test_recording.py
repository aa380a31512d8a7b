"""Cassettes: played strictly, readable, without keys; and what the recorded replies about the demo runs come to."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from osmia_memory import demonstration, recording
from osmia_memory.budget import Budget
from osmia_memory.errors import ConfigError, InputError
from osmia_memory.extract.wire import ReplyV1
from osmia_memory.llm import LiteLlmCompleter, Request
from osmia_memory.recording import Origin
from tests.loopback import Loopback, reply
from tests.product import osmia

ROOT = Path(__file__).parents[1]
ORIGIN = Origin("toy", "openai/toy", "a toy", "2026-05-01", 2000, has_base_url=True)
KEY = "sk-toy-0123456789abcdefghij"


def asks(text: str) -> Request:
    """A request about nothing."""
    return Request(({"role": "user", "content": text},), ReplyV1, 100)


def record(path: Path, *texts: str) -> None:
    """A cassette of these questions, each answered with nothing."""
    with Loopback([reply('{"facts": []}')] * len(texts)) as server, recording.recording(path, ORIGIN):
        completer = LiteLlmCompleter(ORIGIN.model, base_url=server.base_url, api_key=KEY)
        for text in texts:
            assert completer.complete(asks(text), Budget()).state == "ok"


def test_a_cassette_answers_without_a_network_and_says_where_it_is_from(tmp_path: Path) -> None:
    """The server is gone; the reply is the same. Bodies are readable, keys, hosts and headers are not there."""
    path = tmp_path / "toy.yaml"
    record(path, "one", "two")

    with recording.playing(path):
        completer = demonstration.completer(recording.origin_of(path))
        states = [completer.complete(asks(text), Budget()).state for text in ("two", "one")]

    assert states == ["ok", "ok"]
    text = path.read_text()
    assert recording.origin_of(path) == ORIGIN
    assert yaml.safe_load(text)["interactions"][0]["request"]["json"]["messages"] == [{"role": "user", "content": "one"}]
    assert not re.search(r"sk-toy|127\.0\.0\.1|[Aa]uthorization|[Uu]ser-[Aa]gent|x-stainless", text)


def test_a_request_without_a_recording_fails_loudly(tmp_path: Path) -> None:
    """It is no state of a part: the error comes through."""
    path = tmp_path / "toy.yaml"
    record(path, "one")
    with pytest.raises(recording.missing()), recording.playing(path):
        demonstration.completer(ORIGIN).complete(asks("something else"), Budget())


def test_a_recording_nobody_asked_for_is_an_error(tmp_path: Path) -> None:
    """The requests have changed."""
    path = tmp_path / "toy.yaml"
    record(path, "one", "two")
    with pytest.raises(InputError, match="1 recordings"), recording.playing(path):
        demonstration.completer(ORIGIN).complete(asks("one"), Budget())


def test_nothing_recorded_leaves_no_file(tmp_path: Path) -> None:
    """Nor does it replace one."""
    with pytest.raises(ConfigError, match="nothing was recorded"), recording.recording(tmp_path / "toy.yaml", ORIGIN):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_shipped_cassettes_are_listed() -> None:
    """Each says what it was recorded from."""
    ran = osmia("cassettes", "list", "--json")
    assert ran.status == 0
    assert {"authored", "small_model"} <= {row["arm"] for row in ran.rows}
    assert all(row["recorded_from"] for row in ran.rows)
    assert "no evidence of any model's quality" in next(row["recorded_from"] for row in ran.rows if row["arm"] == "authored")


def benchmark() -> Any:
    """The benchmark's module."""
    spec = importlib.util.spec_from_file_location("extraction_benchmark", ROOT / "benchmarks" / "extraction.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_verification_passes_its_exam() -> None:
    """Few good proposals are lost, no planted error passes, nothing ungrounded is stored, the rules' facts are as without."""
    arms = benchmark().recorded_arms(recording.FOLDER)

    authored = arms["authored"]
    assert authored["planted"] >= 60
    assert authored["verification_loss"] <= 0.05
    assert authored["leak"] == 0
    for name, arm in arms.items():
        if name != "rules":
            assert arm["ungrounded"] == 0, name
            assert arm["rules_unchanged"], name
    stored = json.loads((ROOT / "benchmarks" / "results" / "extraction.json").read_text())["arms"]
    assert stored["authored"]["leak"] == authored["leak"]
    assert stored["authored"]["verification_loss"] == authored["verification_loss"]
