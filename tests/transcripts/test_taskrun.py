"""Our own format: the documented way in for any engine and for a controller."""

import json

import pytest

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Environment, Signal
from tests.transcripts.builders import jsonl, kinds, read_many, read_one, reasons
from tests.transcripts.test_events import BLOCK

RUN = {
    "engine": "opencode",
    "session_id": "job-7",
    "repo": "acme/shop",
    "model": "acme/model-3",
    "task_type": "bug_fix",
    "title": "Fix the cart",
    "description": "The cart total ignores the discount.",
    "labels": ["nightly"],
    "language": "python",
    "branch": "fix/cart",
    "base_commit": "abc123",
    "environment": {"os": "linux", "shell": "bash", "sandbox": "docker", "interpreter": "python3.12"},
    "started_at": "2026-03-01T10:00:00Z",
    "finished_at": "2026-03-01T10:05:00Z",
    "cost_usd": 0.5,
    "tokens_in": 1000,
    "tokens_out": 50,
    "attempts": 2,
    "events": [
        {"kind": "user", "text": "The cart total ignores the discount.", "ts": "2026-03-01T10:00:00Z"},
        {"kind": "command", "text": "make test", "tool": "bash"},
        {"kind": "command_result", "text": "1 failed", "exit_code": 1, "duration_s": 2.5, "is_error": True},
        {"kind": "file_edit", "text": "total - discount", "paths": ["cart.py"]},
        {"kind": "assistant", "text": "Fixed."},
    ],
}


def document(**fields) -> bytes:
    """The run with some fields changed, as a JSON document."""
    return json.dumps({**RUN, **fields}, indent=2).encode()


def test_every_field_of_a_run_is_taken_over():
    """The names are those of `TaskRun`."""
    run = read_one(document()).run
    assert (run.engine, run.session_id, run.repo, run.model, run.task_type) == ("opencode", "job-7", "acme/shop", "acme/model-3", "bug_fix")
    assert (run.title, run.description) == ("Fix the cart", "The cart total ignores the discount.")
    assert (run.labels, run.language, run.branch, run.base_commit) == (("nightly",), "python", "fix/cart", "abc123")
    assert run.environment == Environment("linux", "bash", "docker", "python3.12")
    assert (run.cost_usd, run.tokens_in, run.tokens_out, run.attempts, run.duration_s) == (0.5, 1000, 50, 2, 300.0)


def test_events_are_numbered_and_results_answer_the_call_before_them():
    """`answers` need not be told; `record` is the place in `events`."""
    events = read_one(document()).events
    assert [(e.index, e.record, e.kind) for e in events] == [(i, i, k["kind"]) for i, k in enumerate(RUN["events"])]
    assert (events[2].answers, events[2].exit_code, events[2].duration_s, events[2].is_error) == (1, 1, 2.5, True)
    assert events[3].paths == ("cart.py",)


def test_told_indices_are_kept_apart_from_ours():
    """`answers` refers to the file's own `index`, whatever that counts from."""
    events = [
        {"kind": "command", "index": 10, "text": "a"},
        {"kind": "command", "index": 11, "text": "b"},
        {"kind": "dream", "index": 12},
        {"kind": "command_result", "index": 13, "answers": 10, "text": "A"},
    ]
    transcript = read_one(document(events=events))
    assert [(e.index, e.answers) for e in transcript.events] == [(0, None), (1, None), (2, 0)]
    assert "unknown event kind 'dream'" in reasons(transcript)


def test_one_run_a_line_is_as_good_as_a_document():
    """`record` is the line; every run has its own identity."""
    second = {**RUN, "session_id": "job-8", "engine": "cline"}
    first_run, second_run = read_many(jsonl(RUN, second))
    assert (first_run.run.session_id, second_run.run.session_id) == ("job-7", "job-8")
    assert {e.record for e in second_run.events} == {1}
    assert first_run.run.run_id != second_run.run.run_id


def test_events_may_follow_on_lines_of_their_own():
    """A controller that appends as it goes."""
    head = {k: v for k, v in RUN.items() if k != "events"}
    transcript = read_one(
        jsonl(
            head,
            {"kind": "user", "text": "Fix it"},
            {"kind": "command", "text": "ls"},
            {"kind": "command_result", "text": "a", "exit_code": 0},
        )
    )
    assert [(e.record, e.kind, e.answers) for e in transcript.events] == [(1, "user", None), (2, "command", None), (3, "command_result", 1)]


def test_a_run_without_events_still_counts():
    """A controller may know the outcome and nothing else."""
    transcript = read_one(jsonl({"engine": "cline", "session_id": "s", "description": "Fix it", "outcome": "failure"}))
    assert (kinds(transcript), transcript.run.outcome) == ([], "failure")
    assert transcript.run.times_assumed


def test_repeated_runs_and_stray_lines_are_named():
    """The rest is read."""
    found = read_many(jsonl(RUN, RUN, {"hello": 1}))
    assert len(found) == 1
    assert "record repeats an earlier one" in reasons(found[0])
    assert "neither a run nor an event of one" in reasons(found[0])


def test_unknown_fields_are_named_and_odd_values_do_no_harm():
    """A typo in a field name must not be silent; a wrong type is not a crash."""
    transcript = read_one(
        document(modle="x", labels=7, environment="docker", tokens_in="many", started_at="soon", attempts=None, signals=[3])
    )
    assert "unknown fields: modle" in reasons(transcript)
    assert (transcript.run.labels, transcript.run.tokens_in, transcript.run.attempts) == ((), None, 1)


def test_odd_events_are_named():
    """An event of another shape costs itself only."""
    transcript = read_one(
        document(
            events=[
                {"kind": "user", "text": 5},
                7,
                {"kind": "command", "text": "ls", "args": "x", "paths": 3},
                {"kind": "command", "text": None},
            ]
        )
    )
    assert [e.text for e in transcript.events] == ["5", ""]
    assert reasons(transcript) == "event of an unknown shape | event of an unknown shape"


def test_our_own_block_in_a_task_is_no_event_of_the_user():
    """A controller that prepends it to the prompt."""
    transcript = read_one(document(events=[{"kind": "user", "text": f"{BLOCK}\nFix it"}], description=None, title=None))
    assert kinds(transcript) == ["user", "injected_memory"]
    assert transcript.run.description == "Fix it"


def test_secrets_anywhere_in_a_run_are_redacted():
    """In fields, nested arguments and signals too."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    data = document(
        title=f"Use {secret}", description=f"Token {secret}", branch=secret, labels=[secret], failure_reason=f"bad {secret}",
        events=[{"kind": "tool_call", "text": secret, "tool": "x", "args": {"env": [{"TOKEN": secret}]}, "paths": [secret]}],
    )  # fmt: skip
    transcript = read_one(data)
    assert secret not in repr(transcript)
    assert sum(transcript.masked.values()) > 0


# --- outcome ----------------------------------------------------------------------------------------------------------


def signals(transcript) -> list[tuple[str, str]]:
    """All signals."""
    return [(s.name, s.value) for s in transcript.run.signals]


def test_exit_0_with_a_report_of_failure_is_no_success():
    """The process ended well, the agent did not."""
    gave_up = [{"kind": "user", "text": "Fix it"}, {"kind": "assistant", "text": "I was unable to fix the cart; the tests still fail."}]
    for fields in (
        {"exit_status": 0},
        {"exit_code": 0},
        {"exit_status": 0, "outcome": "success"},
        {"exit_status": "completed", "claim": "failed"},
    ):
        transcript = read_one(document(events=gave_up, **fields))
        assert ("claim", "failed") in signals(transcript)
        assert transcript.run.outcome in ("failure", "unknown")
    fine = read_one(document(events=[{"kind": "assistant", "text": "Fixed, all tests pass."}], exit_status=0, outcome="success"))
    assert fine.run.outcome == "success"


def test_the_jobs_failure_reason_is_kept():
    """Never just "unknown"; a limit is told as one."""
    crashed = read_one(document(failure_reason="container was evicted", outcome="failure"))
    late = read_one(document(watchdog_reason="no output for 600 s"))
    costly = read_one(document(failure_reason="budget exceeded: 5.00 USD"))
    assert ("exit_status", "container was evicted") in signals(crashed)
    assert ("limit", "no output for 600 s") in signals(late)
    assert ("limit", "budget exceeded: 5.00 USD") in signals(costly)
    assert {t.run.outcome for t in (crashed, late, costly)} == {"failure"}


def test_told_signals_are_kept_with_their_events():
    """Test results, a review verdict, a tested resolution."""
    told = [
        {"name": "tests", "value": "passed", "event_index": 2},
        {"name": "review", "value": "approved"},
        {"name": "resolved", "value": True},
    ]
    transcript = read_one(document(signals=told))
    assert Signal("tests", "passed", 2) in transcript.run.signals
    assert transcript.run.outcome == "success"
    assert read_one(document(resolved=False)).run.outcome == "failure"


def test_an_outcome_from_outside_overrules_what_the_run_says():
    """A file beside it, then the option; the tested resolution before both."""
    data = document(outcome="success")
    assert read_one(data, "j.json", {"j.outcome.json": b'{"outcome": "failure", "reason": "reverted"}'}).run.outcome == "failure"
    assert read_one(data, "j.json", outcome="partial").run.outcome == "partial"
    assert read_one(data, "j.json", {"report.json": b'{"resolved": false}'}, outcome="success").run.outcome == "failure"


def test_an_unfinished_document_gives_what_was_complete():
    """And it is named."""
    data = document()
    transcript = read_one(data[: data.index(b"total - discount")])
    assert kinds(transcript) == ["user", "command", "command_result"]
    assert "the document is cut off" in reasons(transcript)


def test_what_only_looks_like_a_run_is_not_taken_for_one():
    """An `events` list of something else."""
    with pytest.raises(TranscriptError, match="none of the known formats"):
        read_many(b'{"events": [{"kind": "click"}], "page": "/"}')


@pytest.mark.parametrize("verdict", ["changes requested", "CHANGES_REQUESTED", "change-request", "requested changes", "not approved"])
def test_a_review_that_asks_for_changes_is_no_success(verdict: str):
    """Reviewers and forges spell it in several ways."""
    assert read_one(document(outcome=None, review="approved")).run.outcome == "success"
    assert read_one(document(outcome=None, review=verdict)).run.outcome == "failure"


def test_every_text_of_a_run_is_redacted():
    """Not only events: ids, the engine's name and the surroundings may hold a home folder or a token too."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"[:36]
    names = (
        "engine",
        "session_id",
        "parent_session_id",
        "repo",
        "model",
        "branch",
        "base_commit",
        "language",
        "title",
        "description",
        "cwd",
    )
    run = read_one(document(**dict.fromkeys(names, f"x {token}"), environment={"interpreter": token}, labels=[token])).run
    assert token not in repr(run)
    nameless = {key: value for key, value in RUN.items() if key != "session_id"}
    assert "/home/ada" not in repr(read_one(json.dumps(nameless).encode(), "/home/ada/x.json").run)


def test_what_was_masked_is_counted_for_each_run_of_a_file():
    """The second run of a file does not answer for the secrets of the first."""
    lines = [json.dumps({**RUN, "session_id": name, "title": text}) for name, text in (("a", "in /home/ada/x"), ("b", "nothing here"))]
    first, second = read_many("\n".join(lines).encode(), "runs.jsonl")
    assert first.masked["home"] > second.masked.get("home", 0)
