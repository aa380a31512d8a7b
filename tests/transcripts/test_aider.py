"""Aider's chat history: many sessions in one text file, and every line that means something."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osmia_memory.errors import TranscriptError
from osmia_memory.models import Transcript
from osmia_memory.transcripts.aider_blocks import blocks, looks_like, sessions
from osmia_memory.transcripts.aider_words import usage, written
from osmia_memory.transcripts.read import ReadOptions, Source, read, read_all
from tests.transcripts.builders import kinds, of_kind, read_many, read_one, reasons
from tests.transcripts.damage import cut_somewhere, read_if_possible

START = "# aider chat started at 2026-03-01 10:00:00"
BANNER = ("Aider v0.80.1", "Main model: acme/model-3 with diff edit format", "Weak model: acme/small", "Git repo: .git with 12 files")
TOKENS = "Tokens: 5.2k sent, 310 received. Cost: $0.02 message, $0.02 session."
REPLY = """I subtract the discount.

shop/cart.py
```python
<<<<<<< SEARCH
    return total
=======
    return total - discount
>>>>>>> REPLACE
```"""


def printed(*lines: str) -> str:
    """Lines of Aider's own."""
    return "".join(f"> {line}  \n" if line else ">  \n" for line in lines)


def at_once(text: str) -> str:
    """Several lines that Aider prints in one go: one mark, and the two spaces at the end."""
    return f"> {text}  \n"


def typed(text: str) -> str:
    """What a person typed."""
    return "\n" + "".join(f"#### {line}  \n" for line in text.split("\n"))


def session(*parts: str, start: str = START, banner: tuple[str, ...] = BANNER) -> bytes:
    """A session with its banner."""
    return f"\n{start}\n\n{printed(*banner)}{''.join(parts)}".encode()


def signals(transcript: Transcript, name: str) -> list[str]:
    """Values of one signal."""
    return [s.value for s in transcript.run.signals if s.name == name]


# --- a session --------------------------------------------------------------------------------------------------------


def test_a_session_is_a_run():
    """Model, tokens, cost, edits and commits come from what Aider printed."""
    data = session(
        typed("Fix the cart total\nit ignores the discount"),
        f"\n{REPLY}\n\n",
        printed(TOKENS, "Applied edit to shop/cart.py", "Commit abc1234 fix: Subtract the discount"),
    )
    transcript = read_one(data, "x/history.md")
    run = transcript.run
    assert kinds(transcript) == ["system", "user", "assistant", "file_edit", "system"]
    assert (run.engine, run.model, run.cost_usd, run.tokens_in, run.tokens_out) == ("aider", "acme/model-3", 0.02, 5200, 310)
    assert (run.title, run.description) == ("Fix the cart total", "Fix the cart total\nit ignores the discount")
    assert run.started_at is not None
    assert (run.started_at.isoformat(), run.duration_s, run.times_assumed) == ("2026-03-01T10:00:00+00:00", None, False)
    (edit,) = of_kind(transcript, "file_edit")
    assert (edit.paths, edit.text) == (("shop/cart.py",), "    return total - discount")
    assert run.outcome == "unknown"


def test_each_start_is_a_run_and_keeps_its_identity_when_the_file_grows():
    """The file is appended to; what stands before is the same run in the same version."""
    one = session(typed("Fix the cart"), "\nDone.\n\n")
    two = session(typed("Add a test"), "\nDone.\n\n", start="# aider chat started at 2026-03-02 09:00:00")
    before, (first, second) = read_one(one), read_many(one + two)
    assert (first.run.run_id, first.run.version) == (before.run.run_id, before.run.version)
    assert (second.run.title, second.run.run_id != first.run.run_id) == ("Add a test", True)


def test_sessions_of_one_second_are_told_apart():
    """A benchmark starts many with the same words."""
    first, second = read_many(session(typed("hi"), "\nHello.\n\n") * 2)
    assert (first.run.segment, second.run.segment) == ("", "2")
    assert first.run.run_id != second.run.run_id


def test_a_start_without_a_question_is_no_run_and_is_counted_once():
    """Looking at the version, committing, leaving at once."""
    idle = session(typed("/exit"), start="# aider chat started at 2026-03-01 09:00:00")
    asked, again = read_many(idle * 8 + session(typed("hi"), "\nHello.\n\n") * 2)
    assert reasons(asked).count("nothing was asked") == 6
    assert "3 more" in reasons(asked)
    assert again.skipped == ()
    with pytest.raises(TranscriptError, match="nothing was asked"):
        read_many(idle)


def test_a_file_may_begin_within_a_session():
    """Its head has no time."""
    transcript = read_many(f"> old line  \n{typed('Fix it')}\nDone.\n".encode() + session(typed("hi")))[0]
    assert (transcript.run.title, transcript.run.times_assumed) == ("Fix it", True)


@pytest.mark.parametrize(
    ("line", "model"),
    [
        ("Main model: m/one with diff edit format, prompt cache", "m/one"),
        ("Models: m-two with diff edit format, weak model m-small", "m-two"),
        ("Model: m-three with \u267e\ufe0f whole edit format", "m-three"),
        ("Weak model: m-small", None),
        ("Model m-four: Unknown which environment variables are required.", None),
    ],
)
def test_the_model_stands_in_the_banner(line: str, model: str | None):
    """In several wordings, and not in every line with the word."""
    assert read_one(session(typed("hi"), banner=("Aider v0.50.0", line))).run.model == model


def test_the_model_that_answered_most_counts():
    """`/model` prints a banner again."""
    other = printed("Model: other with whole edit format")
    data = session(typed("/model other"), other, *[typed("hi") + "\nHello.\n\n" + printed(TOKENS)] * 2)
    assert read_one(data).run.model == "other"


def test_the_checkout_is_where_the_file_lies(tmp_path):
    """If it has its own name; another place says nothing."""
    path = tmp_path / "shop" / ".aider.chat.history.md"
    path.parent.mkdir()
    path.write_bytes(session(typed("hi"), "\nHello.\n"))
    (transcript,) = read_all([str(tmp_path)], ReadOptions("t"))
    assert isinstance(transcript, Transcript)
    assert (transcript.run.repo, str(transcript.run.cwd).endswith("/shop")) == ("local/shop", True)
    assert read_one(session(typed("hi")), "/srv/other/history.md").run.cwd is None


def test_the_banner_may_name_the_folder():
    """Where Aider was started below the checkout."""
    data = session(printed("Git working dir: /srv/shop"), typed("hi"), "\nok\n", printed("Applied edit to /srv/shop/a.py"))
    transcript = read_one(data)
    assert (transcript.run.cwd, of_kind(transcript, "file_edit")[0].paths) == ("/srv/shop", ("a.py",))


# --- tokens and cost --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tokens: 5,244 sent, 604 received. Cost: $0.02 request, $0.05 session.", (5244, 604, 0.05)),
        ("Tokens: 12k sent, 1.2k received. Cost: $0.05 message, $0.12 session.", (12000, 1200, 0.12)),
        ("Tokens: 15k sent, 278 received.\nCost: $0.05 message, $1.10 session. Use --no-stream.", (15000, 278, 1.1)),
        ("Tokens: 11k sent, 9.9k cache write, 40 received.", (11000, 40, None)),
        ("Tokens: 202 sent, 2,728 cache hit, 18 received. Cost: $0.00014 message, $0.00014 session.", (2930, 18, 0.00014)),
        ("Tokens: 2,930 sent, 2,728 cache hit, 18 received.", (2930, 18, None)),
        ("Tokens: 12k sent, 2.5k cache write, 30k cache hit, 18 received.", (42000, 18, None)),
        ("Tokens used in this chat", None),
    ],
)
def test_a_tokens_line_in_every_wording(text: str, expected: tuple[int, int, float | None] | None):
    """With commas or `k`, with what was cached, with the cost on the next line."""
    found = usage(text)
    assert (found and tuple(found)) == expected


def test_the_session_cost_is_cumulative_and_tokens_are_not():
    """A total that becomes smaller has begun anew."""
    costs = [("$0.02", "$0.02"), ("$0.03", "$0.05"), ("$0.01", "$0.01")]
    parts = [typed("hi") + "\nHello.\n\n" + printed(f"Tokens: 1k sent, 10 received. Cost: {a} message, {b} session.") for a, b in costs]
    run = read_one(session(*parts)).run
    assert (run.tokens_in, run.tokens_out, run.cost_usd) == (3000, 30, 0.06)


def test_a_session_without_prices_has_no_cost():
    """None, which is not zero."""
    run = read_one(session(typed("hi"), "\nHello.\n\n", printed("Tokens: 1k sent, 10 received."))).run
    assert (run.tokens_in, run.cost_usd) == (1000, None)


# --- commands ---------------------------------------------------------------------------------------------------------

OUTPUT = "== test session starts ==\n    def test():\n>       assert total == 3\nE       assert 5 == 3\n\n    \n1 failed in 0.1s"


@pytest.mark.parametrize(
    ("line", "command"),
    [("/run pytest -q", "pytest -q"), ("/test pytest -q", "pytest -q"), ("!pytest -q", "pytest -q"), ("/git status", "git status")],
)
def test_a_command_of_a_person_has_its_output(line: str, command: str):
    """Printed in one go: only its first line has the mark, only its last the two spaces."""
    transcript = read_one(session(typed(line), at_once(OUTPUT), printed("Add the output to the chat? n")))
    (call,), (result,) = of_kind(transcript, "command"), of_kind(transcript, "command_result")
    assert (call.text, call.args, result.answers, result.text, result.exit_code) == (command, {"by": "user"}, call.index, OUTPUT, None)


def test_output_that_is_added_to_the_chat_is_not_read_twice():
    """It is printed again line by line, without its indentation; what the person says to it is theirs."""
    again = printed(*(line.strip() for line in OUTPUT.split("\n")))
    asked = at_once("Add the output to the chat?\n(y/n/instructions) total is wrong")
    transcript = read_one(session(typed("/run pytest -q"), at_once(OUTPUT), asked, again, "\nI see.\n"))
    assert kinds(transcript) == ["system", "command", "command_result", "user", "assistant"]
    assert of_kind(transcript, "user")[0].text == "total is wrong"


def test_a_command_without_output_has_no_result():
    """What is printed next is about something else."""
    transcript = read_one(session(typed("/run true"), printed("Added 10 lines of output to the chat."), typed("go on"), "\nok\n"))
    assert of_kind(transcript, "command_result") == []


def test_commands_of_the_agent_and_the_exit_codes_that_are_told():
    """Only some versions tell that one failed."""
    told = printed("Run shell command? [Y/n] y", "Running make test", "Command 'make test' exited with status 2", "Running date")
    transcript = read_one(session(typed("go"), "\nI run it.\n\n", told))
    assert [(e.text, e.tool) for e in of_kind(transcript, "command")] == [("make test", "shell"), ("date", "shell")]
    (result,) = of_kind(transcript, "command_result")
    assert (result.answers, result.exit_code, result.is_error) == (of_kind(transcript, "command")[0].index, 2, True)


LINTED = ("# Fix any errors below, if possible.", "", "## Running: ./lint.sh shop/cart.py", "", "shop/cart.py:3:1: F401 unused", "",
          "## See relevant line below marked with \u2588.", "", "shop/cart.py:", "3\u2588import os")  # fmt: skip


def test_the_linter_that_aider_runs_is_a_command_once():
    """It is shown, and again in the person's place when the agent is to fix it; that is not the task."""
    data = session(printed(*LINTED), printed("Attempt to fix lint errors? y"), typed("\n".join(LINTED)), "\nFixed.\n")
    transcript = read_one(data)
    assert kinds(transcript) == ["system", "command", "command_result", "assistant"]
    assert (of_kind(transcript, "command")[0].text, of_kind(transcript, "command_result")[0].text) == (
        "./lint.sh shop/cart.py", "shop/cart.py:3:1: F401 unused",
    )  # fmt: skip
    assert transcript.run.description == ""


def test_what_aider_asks_on_its_own_is_not_the_task():
    """Its help is given documents in the person's place; `/ask` repeats the question."""
    question = "# Question: how do I undo?\n\n# Relevant docs:\n\n<doc>\nUse /undo.\n</doc>"
    transcript = read_one(session(typed("/ask how do I undo?"), typed(" how do I undo?"), typed(question), "\nLike so.\n"))
    assert [e.text for e in of_kind(transcript, "user")] == ["how do I undo?"]
    assert kinds(transcript) == ["system", "system", "user", "system", "assistant"]


@pytest.mark.parametrize(
    ("line", "kind"), [("/add a.py", "system"), ("/undo", "system"), ("/srv/shop is broken", "user"), ("#1 fails", "user")]
)
def test_commands_of_aider_are_not_words_of_a_person(line: str, kind: str):
    """And words that look a little like one are."""
    assert kinds(read_one(session(typed("hi"), typed(line))))[-1] == kind


# --- failures ---------------------------------------------------------------------------------------------------------


def test_edits_that_do_not_match_are_errors_of_the_edit_format():
    """With all that is said about them; no other engine's rule about replies is meant."""
    told = printed(
        "The LLM did not conform to the edit format.", "# 1 SEARCH/REPLACE block failed to match!", "", "Traceback (most recent call last):"
    )
    transcript = read_one(
        session(typed("go"), f"\n{REPLY}\n\n", printed(TOKENS), told, f"\n{REPLY}\n\n", printed("Applied edit to shop/cart.py"))
    )
    (error,) = of_kind(transcript, "error")
    assert (error.tool, error.is_error, "failed to match" in error.text, "Traceback" in error.text) == ("edit-format", True, True, True)
    assert len(of_kind(transcript, "file_edit")) == 1


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("Unexpected error: litellm.InternalServerError: AcmeException - Overloaded.", "provider"),
        ("litellm.RateLimitError: RateLimitError: 429", "provider"),
        ("Unexpected error: name 'httpx' is not defined", "harness"),
        ("The tests mention litellm", None),
    ],
)
def test_trouble_of_the_provider_and_of_aider(line: str, tool: str | None):
    """Neither is about the repository."""
    transcript = read_one(session(typed("go"), printed(line)))
    assert [e.tool for e in of_kind(transcript, "error")] == ([tool] if tool else [])


def test_a_reply_that_was_interrupted_and_a_person_who_left():
    """`^C` after a finished reply is how people leave."""
    cut = read_one(session(typed("go"), "\nI will\n\n", printed("", "^C again to exit")))
    left = read_one(session(typed("go"), "\nDone.\n\n", printed(TOKENS, "", "^C again to exit", "", "^C KeyboardInterrupt")))
    assert [(e.tool, e.args) for e in of_kind(cut, "error")] == [("harness", {"harness": "interrupted"})]
    assert kinds(left) == ["system", "user", "assistant"]


COMMITTED = printed("Applied edit to a.py", "Commit abc1234 fix: One")
TAKEN_BACK = typed("/undo") + printed("Removed: abc1234 fix: One", "Now at:  0000000 before")


def test_a_person_who_takes_back_everything_rejects_the_run():
    """The strongest sign that this format has."""
    run = read_one(session(typed("go"), "\nok\n\n", COMMITTED, TAKEN_BACK)).run
    assert (run.outcome, [s.value for s in run.signals if s.name == "review"]) == ("failure", ["rejected with /undo"])


@pytest.mark.parametrize(
    "rest",
    [
        (COMMITTED, printed("Commit def5678 fix: Two"), TAKEN_BACK),
        (COMMITTED, TAKEN_BACK, printed("Commit def5678 fix: Better")),
        (typed("/undo"), printed("The last commit was not made by aider in this chat session.")),
        (printed("Committing a.py before applying edits.", "Commit abc1234 my own"), TAKEN_BACK),
    ],
)
def test_a_run_of_which_something_stands_is_not_rejected(rest: tuple[str, ...]):
    """Also where the commit was of the person's own changes, or not of this session."""
    transcript = read_one(session(typed("go"), "\nok\n\n", *rest))
    assert (transcript.run.outcome, signals(transcript, "review")) == ("unknown", [])


def test_the_last_words_are_a_claim_and_no_success():
    """An engine's word for itself."""
    transcript = read_one(session(typed("go"), "\nI fixed it, all tests pass.\n\n", COMMITTED))
    assert (signals(transcript, "claim"), transcript.run.outcome) == (["done"], "unknown")


# --- the text ---------------------------------------------------------------------------------------------------------


def text_blocks(text: str) -> list[tuple[str, str]]:
    """(kind, text) of the blocks of a session's lines."""
    (found,) = sessions(text.split("\n"))
    return [(b.kind, b.text) for b in blocks(found)]


def test_headings_quotations_and_fences_belong_to_the_reply():
    """Marks count only with their two spaces, and not inside a fence that ends."""
    reply = "# A heading\n#### Smaller\n> a quotation\n\n```md\n> Added a.py  \n```\n\nDone."
    assert text_blocks(f"{reply}\n> Tokens: 1k sent, 10 received.  ") == [("reply", reply), ("printed", "Tokens: 1k sent, 10 received.")]


def test_a_fence_that_an_interruption_left_open_ends_there():
    """Else all that follows would be the reply."""
    found = text_blocks("```python\nprint(\n\n> ^C again to exit  \n\n#### go on  \n\n```\ncode\n```")
    assert [kind for kind, _ in found] == ["reply", "printed", "typed", "reply"]


def test_colours_and_carriage_returns_are_taken_off():
    """A history written on Windows, a listing in colour."""
    data = session(typed("!ls"), at_once("\x1b[34mshop\x1b[39;49m\nREADME")).replace(b"\n", b"\r\n")
    assert of_kind(read_one(data), "command_result")[0].text == "shop\nREADME"


def test_files_made_on_the_way_are_marked():
    """With the person's leave or without being asked."""
    data = session(typed("go"), "\nok\n\n", printed("Allow creation of new file a.py? y", "Applied edit to a.py", "Applied edit to b.py",
                                                   "Creating empty file c.py", "Applied edit to c.py", "Allow creation of new file d.py? n"))  # fmt: skip
    assert [(e.paths[0], dict(e.args)) for e in of_kind(read_one(data), "file_edit")] == [
        ("a.py", {"created": True}), ("b.py", {}), ("c.py", {"created": True}),
    ]  # fmt: skip


def test_the_new_text_of_a_file_is_taken_from_the_reply():
    """By search and replace, whole, with the name above or inside the fence; not that of another file."""
    inside = "```css\na.css\n<<<<<<< ORIGINAL\nx\n=======\ny\n>>>>>>> UPDATED\n<<<<<<< ORIGINAL\np\n=======\nq\n>>>>>>> UPDATED\n```"
    assert written(inside) == {"a.css": "y\nq"}
    assert written("b.py\n```python\nprint(1)\nos.path\n```\n") == {"b.py": "print(1)\nos.path"}
    assert written(f"{REPLY}\n\nIn short:\n\n```bash\nmake test\n```\n") == {"shop/cart.py": "    return total - discount"}
    assert written("I wrote:\n\n```bash\nmake test\n```\n") == {}


@pytest.mark.parametrize("piece", ["> quoted\n", "```\n", "```py\nx\n", "<<<<<<< SEARCH\n", "=======\n", "\n\n", "> x  \n", "#### x  \n"])
def test_time_grows_with_length_and_no_faster(piece: str):
    """What looks like a beginning may have no end."""
    text = session(typed("go"), "\n", piece * 30_000, "\n", printed("Applied edit to a.py"))
    start = time.perf_counter()
    read_one(text)
    assert time.perf_counter() - start < 10


def test_secrets_are_masked_wherever_they_stand():
    """In words, replies and output."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    transcript = read_one(session(typed(f"use {secret}"), f"\nI use {secret}.\n\n", typed(f"/run echo {secret}"), at_once(f"{secret}\nok")))
    assert secret not in str(transcript)
    assert sum(transcript.masked.values()) == 4


@pytest.mark.parametrize(
    ("data", "is_history"),
    [
        (session(typed("hi")), True),
        (typed("hi").encode() + printed("Applied edit to a.py").encode(), True),
        (typed("hi").encode(), False),
        (b"# Notes\n> Applied edit to a.py  \n", False),
        (b'{"text": "\\n# aider chat started at 2026-03-01 10:00:00\\n"}\n', False),
        (b"see `# aider chat started at 2026-03-01 10:00:00` in the file", False),
    ],
)
def test_content_tells_a_history(data: bytes, is_history: bool):
    """Other markdown, and records that quote one, are none."""
    assert looks_like(data) is is_history


def test_bytes_that_are_no_text_are_named():
    """And the rest is read."""
    transcript = read_one(session(typed("hi"), "\nHello \n").replace(b"Hello ", b"Hello \xff"))
    assert "invalid UTF-8" in reasons(transcript)


SAMPLE = session(typed("Fix it"), f"\n{REPLY}\n\n", printed(TOKENS), COMMITTED, typed("/run pytest"), at_once(OUTPUT), printed(*LINTED)) * 2


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_history_cut_or_damaged_anywhere_is_no_traceback(data: st.DataObject):
    """It is read as far as it can be, or refused in words."""
    read_if_possible(cut_somewhere(data, SAMPLE))


def test_reading_again_gives_the_same():
    """Same bytes, same runs."""
    options = ReadOptions("t")
    assert read(Source("a", SAMPLE), options) == read(Source("a", SAMPLE), options)
