"""The configuration is read once; every key is checked, and unknown ones are named."""

from pathlib import Path

import pytest

from osmia_memory import config
from osmia_memory.errors import ConfigError


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "osmia-config.yaml"
    path.write_text(text)
    return path


def test_without_a_file_the_documented_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is said that no file was there."""
    monkeypatch.chdir(tmp_path)
    settings, configured = config.load(None, {})
    assert not configured
    assert (settings.enabled, settings.decay_interval_hours, settings.prune_threshold, settings.max_facts_per_query) == (
        False,
        24,
        0.05,
        10,
    )
    assert str(settings.store_path) == "/var/lib/osmia/memory.db"


def test_a_file_is_read_and_the_environment_overrides_it(tmp_path: Path) -> None:
    """Environment before file before default."""
    path = written(tmp_path, "memory:\n  max_facts_per_query: 3\n  store_path: a.db\n  tenant: incident-triage\nother: 1\n")
    settings, configured = config.load(path, {"OSMIA_MEMORY_STORE": "b.db"})
    assert configured
    assert (settings.max_facts_per_query, str(settings.store_path), settings.tenant) == (3, "b.db", "incident-triage")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("memory:\n  prune_treshold: 0.1\n", "did you mean `prune_threshold`"),
        ("memory:\n  prune_threshold: 7\n", "between 0 and 1"),
        ("memory:\n  max_facts_per_query: many\n", "max_facts_per_query"),
        ("memory: [1]\n", "must be a mapping"),
        ("memory: {\n", "no valid YAML"),
    ],
)
def test_a_bad_file_is_an_error_that_names_the_place(tmp_path: Path, text: str, says: str) -> None:
    """And what to write instead, where that can be known."""
    with pytest.raises(ConfigError, match=says):
        config.load(written(tmp_path, text), {})


def test_isolation_cannot_be_turned_off(tmp_path: Path) -> None:
    """The key is accepted, a warning says that it has no effect."""
    with pytest.warns(UserWarning, match="no effect"):
        config.load(written(tmp_path, "memory:\n  tenant_isolation: false\n"), {})


def test_a_missing_file_that_was_asked_for_is_an_error(tmp_path: Path) -> None:
    """Silence would hide a typo."""
    with pytest.raises(ConfigError, match="cannot read"):
        config.load(tmp_path / "nope.yaml", {})
