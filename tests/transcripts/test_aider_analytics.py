"""Aider's analytics log: what runs cost, without a word of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osmia_memory.errors import TranscriptError
from tests.transcripts.builders import jsonl, read_many, read_one, reasons
from tests.transcripts.damage import changed_somewhere, cut_somewhere, read_if_possible


def event(name: str, time: int, **properties):
    """A line of the log."""
    return {"event": name, "properties": properties, "user_id": "5d41402a-0000-4000-8000-000000000001", "time": time}


def sent(time: int, **more):
    """A message that was answered."""
    told = {
        "main_model": "acme/model-3",
        "edit_format": "diff",
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "cost": 0.25,
        "total_cost": 9,
    }
    return event("message_send", time, **{**told, **more})


RUN = (
    event("launched", 1772359200),
    event("repo", 1772359200, num_files=3),
    event("command_undo", 1772359205),
    event("message_send_starting", 1772359206),
    sent(1772359230),
    sent(1772359260, cost=0.5),
    event("exit", 1772359260, reason="Completed --message"),
)


def test_a_launch_that_sent_messages_is_a_run():
    """Its cost is the sum of its messages', which `total_cost` is not: that goes on over launches."""
    transcript = read_one(jsonl(*RUN))
    run = transcript.run
    assert (run.engine, run.model, run.cost_usd, run.tokens_in, run.tokens_out, run.duration_s) == (
        "aider",
        "acme/model-3",
        0.75,
        2000,
        100,
        60,
    )
    assert [e.text for e in transcript.events] == ["command_undo", "message_send", "message_send"]
    assert ([(s.name, s.value) for s in run.signals], run.outcome) == ([("exit_status", "completed")], "unknown")


def test_who_ran_it_is_not_kept():
    """The log names a person by an id."""
    assert "5d41402a" not in str(read_one(jsonl(*RUN)))


def test_launches_are_runs_of_their_own_and_idle_ones_are_none():
    """Also two in one second, and a log that begins within one."""
    idle = (event("launched", 1772359300), event("exit", 1772359300, reason="Unknown edit format"))
    first, second, third = read_many(jsonl(sent(1772359100), *RUN, *idle, *RUN))
    assert (first.run.cost_usd, second.run.segment, third.run.segment) == (0.25, "", "2")
    with pytest.raises(TranscriptError, match="no message was sent"):
        read_many(jsonl(*idle))


@pytest.mark.parametrize(
    ("reason", "value"), [("/exit", "session_end"), ("Control-C", "session_end"), ("Completed main CLI coder.run", "completed")]
)
def test_an_exit_is_no_failure(reason: str, value: str):
    """Leaving says nothing of the work."""
    run = read_one(jsonl(*RUN[:-1], event("exit", 1772359260, reason=reason))).run
    assert ([s.value for s in run.signals], run.outcome) == ([value], "unknown")


def test_a_strange_line_is_named():
    """And the rest is read."""
    assert "no analytics event" in reasons(read_one(jsonl(*RUN, {"stray": True})))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_is_no_traceback(data: st.DataObject):
    """Cut anywhere, with any value in any field."""
    read_if_possible(cut_somewhere(data, jsonl(*RUN)))
    read_if_possible(jsonl(*changed_somewhere(data, list(RUN))))
