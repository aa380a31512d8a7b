"""Which reader reads a file, and that nothing a file can hold ends the batch."""

import contextlib
import io
import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Skip, Transcript
from osmia_memory.transcripts.read import READERS, ReadOptions, Source, read, read_all
from osmia_memory.transcripts.records import take_apart
from tests.transcripts import test_aider_analytics as aider_analytics
from tests.transcripts import test_claude_stream as claude_stream
from tests.transcripts import test_cline as cline
from tests.transcripts import test_codex_exec as codex_exec
from tests.transcripts import test_gemini_cli as gemini_cli
from tests.transcripts import test_opencode as opencode
from tests.transcripts import test_openhands as openhands
from tests.transcripts import test_swe_agent as swe_agent
from tests.transcripts.builders import SESSION, Claude, Codex, jsonl, mini, ran, read_many, read_one, saw, thought
from tests.transcripts.test_taskrun import document

SAMPLES = {
    "claude-code": Claude().user("Fix it").bash("make test", "ok").says("Done.").data(),
    "codex": Codex().turn().user("Fix it").call("exec_command", "c", cmd="make test").output("c", ran("ok")).says("Done.").data(),
    "mini-swe-agent": mini(thought("look", "ls", 1772359200), saw("a")),
    "openhands": json.dumps(openhands.SAMPLE).encode(),
    "swe-agent": swe_agent.sample(),
    "opencode": document(),
}
MORE_SAMPLES = (
    jsonl(*openhands.SAMPLE_1),
    jsonl(openhands.row()),
    jsonl(*codex_exec.SAMPLE),
    jsonl(*claude_stream.SAMPLE),
    gemini_cli.document(gemini_cli.message("user", "Fix it")),
    jsonl(*gemini_cli.SAMPLE),
    opencode.export(opencode.asked("Fix it")),
    jsonl(*opencode.stream(opencode.asked("Fix it"))),
    jsonl(opencode.output("text", opencode.said("Done."))),
    cline.session(cline.user("Fix it")),
    cline.task(cline.agent("ok")),
    jsonl(*aider_analytics.RUN),
)
OPTIONS = ReadOptions("ticketing")


@pytest.mark.parametrize("engine", SAMPLES)
@pytest.mark.parametrize("name", ["a.jsonl", "b.json", "c.txt", "stdin", "archive.tar:x/d"])
def test_content_decides_and_the_name_never(engine: str, name: str):
    """A label can be wrong, a suffix can be missing."""
    assert read_one(SAMPLES[engine], name).run.engine == engine


def test_every_reader_knows_its_own_and_no_other():
    """No file is claimed by two."""
    for data in (*SAMPLES.values(), *MORE_SAMPLES):
        assert len([r.files for r in READERS if r.sniff(take_apart(data, "f").head(10))]) == 1


@pytest.mark.parametrize(
    ("data", "looks"),
    [
        (b'{"method": "generate", "response": {}}', "recorded replies of a Gemini model"),
        (b'{"name": "shop", "version": "1.0"}', "whose first object has the keys name, version"),
        (b"[1, 2, 3]", "JSON without objects"),
    ],
)
def test_a_file_nothing_recognises_is_told_what_it_looks_like(data: bytes, looks: str):
    """The message names the file, what it looks like, the known formats and the way in."""
    with pytest.raises(TranscriptError) as error:
        read_many(data, "x/run.json")
    text = str(error.value)
    assert text.startswith("x/run.json: ")
    assert looks in text
    assert "Codex rollout" in text
    assert "TaskRun JSON" in text


# --- identity and versions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", SAMPLES)
def test_reading_again_gives_the_same_transcript(engine: str):
    """Same bytes, same run, same version, same events; another tenant has another run."""
    one, two = read_one(SAMPLES[engine]), read_one(SAMPLES[engine])
    assert one == two
    assert read_one(SAMPLES[engine], tenant="incident-triage").run.run_id != one.run.run_id


@pytest.mark.parametrize("engine", ["claude-code", "codex"])
def test_a_grown_file_is_a_new_version_of_the_same_run(engine: str):
    """A hook may hand it over after every turn."""
    whole = SAMPLES[engine]
    shorter = b"\n".join(whole.split(b"\n")[:-2]) + b"\n"
    before, after = read_one(shorter).run, read_one(whole).run
    assert before.run_id == after.run_id
    assert before.version != after.version


@pytest.mark.parametrize("engine", SAMPLES)
def test_every_run_has_a_tenant_times_and_a_source(engine: str):
    """Later stages rely on it."""
    run = read_one(SAMPLES[engine], "x/run").run
    assert (run.tenant_id, run.source) == ("ticketing", "x/run")
    assert run.started_at is not None
    assert run.finished_at is not None
    assert run.started_at.tzinfo is UTC


def test_assumed_times_come_from_the_option_then_from_the_file():
    """And are marked so."""
    at, mtime = datetime(2026, 1, 2, tzinfo=UTC), datetime(2025, 1, 2, tzinfo=UTC)
    source = Source("x", mini(thought("a", "ls"), saw("x")), mtime=mtime)
    (by_option,) = read(source, ReadOptions("t", at=at))
    (by_file,) = read(source, ReadOptions("t"))
    assert (by_option.run.started_at, by_option.run.times_assumed) == (at, True)
    assert by_file.run.started_at == mtime


def test_options_name_repository_and_engine_where_the_content_does_not():
    """`--repo` overrules; `--engine` does not overrule what the records show."""
    assert read_one(SAMPLES["codex"], repo="git@github.com:kim/shop.git").run.repo == "kim/shop"
    assert read_one(SAMPLES["codex"], engine="aider").run.engine == "codex"
    events = [{"kind": "user", "text": "hi"}]
    nameless = json.dumps({"session_id": "s", "events": events}).encode()
    assert read_one(nameless, engine="my-agent").run.engine == "my-agent"
    assert read_one(nameless, "a.json", {"a.meta.json": b'{"engine": "Gemini CLI"}'}).run.engine == "gemini-cli"
    assert read_one(nameless).run.engine == "unknown"


# --- whole batches ----------------------------------------------------------------------------------------------------


def test_a_folder_is_read_file_by_file_and_what_fails_is_named(tmp_path: Path):
    """Good, bad, foreign and accompanying files together."""
    files = {
        "a.jsonl": SAMPLES["claude-code"], "b.jsonl": SAMPLES["codex"], "c/c.traj.json": SAMPLES["mini-swe-agent"], "c/report.json": b'{"resolved": true}',
        "d.jsonl": b"", "e.json": b'{"name": "x"}', "f.jsonl": bytes(range(256)), "g.md": b"# Notes", "h.py": b"x = 1", "a.meta.json": b'{"repo": "acme/shop"}',
    }  # fmt: skip
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    found = list(read_all([str(tmp_path)], OPTIONS))
    runs = [t.run for t in found if isinstance(t, Transcript)]
    skips = {Path(s.where).name: s.reason for s in found if isinstance(s, Skip)}
    assert sorted((r.engine, r.repo, r.outcome) for r in runs) == [
        ("claude-code", "acme/shop", "unknown"), ("codex", "acme/shop", "unknown"), ("mini-swe-agent", "acme/shop", "success"),
    ]  # fmt: skip
    assert sorted(skips) == ["d.jsonl", "e.json", "f.jsonl"]
    assert skips["d.jsonl"] == "the file is empty"
    assert skips["f.jsonl"] == "binary data"


def test_a_file_named_by_the_caller_is_never_passed_over_in_silence(tmp_path: Path):
    """Whatever its suffix."""
    (tmp_path / "g.md").write_bytes(b"# Notes")
    (tmp_path / "report.json").write_bytes(b'{"resolved": true}')
    found = [s.reason for s in read_all([str(tmp_path / "g.md"), str(tmp_path / "report.json")], OPTIONS) if isinstance(s, Skip)]
    assert found == ["text that is no JSON", "accompanies a transcript: it is read together with it"]


def test_an_archive_gives_what_the_folder_gives(tmp_path: Path):
    """With the report after the transcript."""
    path = tmp_path / "batch.tar.xz"
    with tarfile.open(path, "w:xz") as tar:
        for name, data in (
            ("r/c.traj.json", SAMPLES["mini-swe-agent"]),
            ("r/report.json", b'{"resolved": false}'),
            ("r/a.jsonl", SAMPLES["codex"]),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    found = [t for t in read_all([str(path)], OPTIONS) if isinstance(t, Transcript)]
    assert [(t.run.engine, t.run.outcome) for t in found] == [("mini-swe-agent", "failure"), ("codex", "failure")]
    assert found[0].run.source == f"{path}:r/c.traj.json"


def test_standard_input_is_read():
    """As a hook hands it over."""
    (transcript,) = read_all(["-"], OPTIONS, SAMPLES["claude-code"])
    assert isinstance(transcript, Transcript)
    assert (transcript.run.session_id, transcript.run.source) == (SESSION, "stdin")


def test_masked_secrets_are_counted_for_each_run():
    """Not for the batch so far."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    options = ReadOptions("t")
    (first,) = read(Source("a", Claude().user(f"use {secret}").data()), options)
    (second,) = read(Source("b", Claude().user("hi").data()), options)
    assert sum(first.masked.values()) == 1
    assert sum(second.masked.values()) == 0


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", SAMPLES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_file_cut_or_damaged_anywhere_is_no_traceback(engine: str, data: st.DataObject):
    """Every file is read as far as it can be, or refused in words."""
    sample = SAMPLES[engine]
    start = data.draw(st.integers(0, len(sample)))
    end = data.draw(st.integers(start, len(sample)))
    junk = data.draw(st.sampled_from([b"", b"\0\0", b"\xff\xfe", b"}{", b"\n", b'"', b"\\ud800", b"[" * 3000, b"null", b"1e999"]))
    with contextlib.suppress(TranscriptError):
        read(Source("f", sample[:start] + junk + sample[end:]), OPTIONS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.sampled_from(["user", "assistant", "2026-03-01T10:00:00Z", "text", "tool_use"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "content", "message", "id", "name", "input", "role", "output"]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.parametrize("engine", SAMPLES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_value_in_any_field_is_no_traceback(engine: str, data: st.DataObject):
    """A newer version may put anything anywhere."""
    lines = SAMPLES[engine].split(b"\n")
    values = [json.loads(line) for line in lines if line] if engine in ("claude-code", "codex") else [json.loads(SAMPLES[engine])]
    spot = data.draw(st.sampled_from(list(_spots(values))))
    _put(values, spot, data.draw(JSON))
    try:
        found = read(Source("f", jsonl(*values)), OPTIONS)
    except TranscriptError:
        return
    for transcript in found:
        assert [e.index for e in transcript.events] == list(range(len(transcript.events)))
        assert all(e.answers is None or e.answers < len(transcript.events) for e in transcript.events)
        assert {type(e.text) for e in transcript.events} <= {str}
        assert {type(e.exit_code) for e in transcript.events} | {type(e.duration_s) for e in transcript.events} <= {int, float, type(None)}
        assert {type(e.origin) for e in transcript.events} | {type(e.tool) for e in transcript.events} <= {str, type(None)}
        assert {type(p) for e in transcript.events for p in e.paths} <= {str}


def _spots(value, path=()):
    """Paths of every value inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from _spots(inner, (*path, key))


def _put(value, path, new) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new
