"""How signals become an outcome, and what files beside a transcript say."""

import json

import pytest

from osmia_memory.models import Signal
from osmia_memory.transcripts.outcome import claim_of, decide, limit_reason
from osmia_memory.transcripts.sidecar import Beside, is_sidecar, read_beside, stems
from tests.transcripts.builders import Claude, read_one


def s(name: str, value: str) -> Signal:
    """A signal."""
    return Signal(name, value)


@pytest.mark.parametrize(
    ("signals", "outcome"),
    [
        ([], "unknown"),
        ([s("exit_status", "Submitted")], "unknown"),
        ([s("exit_status", "0"), s("claim", "done")], "unknown"),
        ([s("exit_status", "0"), s("claim", "failed")], "failure"),
        ([s("exit_status", "1")], "failure"),
        ([s("exit_status", "RuntimeError")], "failure"),
        ([s("exit_status", "interrupted")], "unknown"),
        ([s("limit", "max turns"), s("claim", "done")], "failure"),
        ([s("tests", "passed"), s("claim", "done")], "success"),
        ([s("tests", "failed"), s("claim", "done")], "failure"),
        ([s("tests", "passed"), s("claim", "failed")], "unknown"),
        ([s("tests", "failed"), s("tests", "passed"), s("claim", "done")], "success"),
        ([s("landed", "landed"), s("exit_status", "turn_aborted")], "success"),
        ([s("landed", "landed"), s("claim", "failed")], "unknown"),
        ([s("landed", "branch-only"), s("claim", "done")], "unknown"),
        ([s("review", "patch is incorrect"), s("claim", "done")], "failure"),
        ([s("review", "patch is correct"), s("claim", "done")], "success"),
        ([s("given", "success"), s("claim", "failed")], "unknown"),
        ([s("given", "success"), s("exit_status", "0")], "success"),
        ([s("given", "partial"), s("tests", "passed")], "partial"),
        ([s("resolved", "true"), s("exit_status", "1")], "success"),
        ([s("resolved", "false"), s("given", "success")], "failure"),
    ],
)
def test_signs_that_disagree_never_make_a_success(signals: list[Signal], outcome: str):
    """And what an engine says of itself is not enough for one."""
    assert decide(signals, Beside()) == outcome


def test_what_is_tested_and_given_outside_overrules_the_run():
    """In this order."""
    own = [s("claim", "failed"), s("resolved", "false")]
    assert decide(own, Beside(outcome="success")) == "success"
    assert decide(own, Beside(outcome="failure"), option="partial") == "partial"
    assert decide(own, Beside(resolved=True, outcome="failure"), option="failure") == "success"


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Fixed the login and added a test. All 12 tests pass.", "done"),
        ("The changelog is updated and pushed.", "done"),
        ("I was unable to reproduce the problem.", "failed"),
        ("I couldn't get the build to work in this environment.", "failed"),
        ("The fix is incomplete: two tests are still failing.", "failed"),
        ("I give up on the migration.", "failed"),
        ("The test failed before my change and passes now; done.", "done"),
        ("Which of the two do you prefer?", None),
    ],
)
def test_last_words_claim_success_failure_or_neither(text: str, claim: str | None):
    """A mention of a failure that was fixed is no failure."""
    assert claim_of(text) == claim


@pytest.mark.parametrize(
    "status", ["LimitsExceeded", "TimeExceeded", "exit_cost", "max_turns", "timed out", "watchdog: idle", "RepeatedFormatError"]
)
def test_limits_are_known_by_their_names(status: str):
    """Whatever engine names them."""
    assert limit_reason(status) == status


def test_a_crash_is_no_limit():
    """An exception's name."""
    assert limit_reason("RuntimeError") is None


# --- beside a transcript ----------------------------------------------------------------------------------------------


def test_names_of_accompanying_files():
    """They are no transcripts; a transcript's own name is not one of them."""
    for name in ("a.meta.json", "x/a.outcome.json", "report.json", "preds.json", "exit_statuses_17.yaml", "journal.jsonl", "results.json"):
        assert is_sidecar(name)
    for name in ("a.jsonl", "report.jsonl.txt", "a.traj.json", "metadata-run.jsonl", "my-report.json"):
        assert not is_sidecar(name)
    assert stems("x/a.b.jsonl") == ("a.b", "a")


def test_a_recorders_notes_tell_repository_branch_and_fate():
    """The source names the repository; the outcome in git is a weak sign."""
    meta = {
        "source": "acme/shop@runs/v1:ab/0.jsonl",
        "branches": ["fix/cart"],
        "model": "m",
        "engine": "Gemini CLI",
        "outcome_git": "landed",
        "labels": ["weekly"],
    }
    transcript = read_one(Claude().user("Fix it").says("Done.").data(), "a.transcript.jsonl", {"a.meta.json": json.dumps(meta).encode()})
    run = transcript.run
    assert (run.repo, run.branch, run.labels, run.outcome) == ("acme/shop", "fix/cart", ("weekly",), "success")
    assert s("landed", "landed") in run.signals


def test_content_beats_a_wrong_label_of_engine_and_model():
    """Labels are written by people and scripts, records by the engine."""
    meta = {"engine": "Gemini CLI", "model": "gemini-9"}
    run = read_one(Claude().user("Fix it").says("Done.").data(), "a.jsonl", {"a.meta.json": json.dumps(meta).encode()}).run
    assert (run.engine, run.model) == ("claude-code", "claude-opus-9")


@pytest.mark.parametrize("branches", [["a", "main"], ["None"], []])
def test_the_sessions_branch_stays_if_the_notes_name_several_or_none(branches: list[str]):
    """Unless it is only the trunk that the session started on."""
    notes = {"a.meta.json": json.dumps({"branches": branches}).encode()}
    assert read_one(Claude(gitBranch="fix/cart").user("hi").data(), "a.jsonl", notes).run.branch == "fix/cart"


def test_an_outcome_file_gives_outcome_and_reason():
    """As an object or a bare word; its reason is a signal."""
    session = Claude().user("Fix it").says("Done, all tests pass.").data()
    told = read_one(session, "a.jsonl", {"a.outcome.json": b'{"outcome": "failed", "reason": "reverted the next day"}'}).run
    assert (told.outcome, s("exit_status", "reverted the next day") in told.signals) == ("failure", True)
    assert read_one(session, "a.jsonl", {"a.outcome.json": b'"success"'}).run.outcome == "success"
    assert read_one(session, "a.jsonl", {"a.outcome.json": b"{broken"}).run.outcome == "unknown"


@pytest.mark.parametrize(
    ("report", "resolved"),
    [
        ({"resolved": True}, True),
        ({"acme__shop-17": {"resolved": False}}, False),
        ({"acme__shop-99": {"resolved": True}}, None),
        ({"resolved_ids": ["acme__shop-17"], "unresolved_ids": []}, True),
        ({"resolved_ids": [], "unresolved_ids": ["acme__shop-17"]}, False),
        ({"resolved": ["acme__shop-17"]}, True),
        ({"resolved": "yes"}, None),
        ([], None),
    ],
)
def test_a_test_report_is_read_in_all_its_shapes(report, resolved: bool | None):
    """Flat, by instance, or lists of ids; another instance's verdict is not this one's."""
    siblings = {"report.json": json.dumps(report).encode()}
    assert read_beside("x/acme__shop-17.traj.json", siblings, ()).resolved is resolved


def test_what_lies_beside_is_part_of_the_version():
    """A new outcome must be extracted anew; the run stays the same."""
    session = Claude().user("Fix it").data()
    before, after = read_one(session, "a.jsonl"), read_one(session, "a.jsonl", {"a.outcome.json": b'"failure"'})
    assert before.run.run_id == after.run.run_id
    assert before.run.version != after.run.version
