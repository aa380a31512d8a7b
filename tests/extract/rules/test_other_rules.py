"""Floods, slow commands, changes taken back or refused, engines and people."""

import pytest

from osmia_memory.extract.rules import changes, cost, engines, people
from osmia_memory.extract.view import view
from osmia_memory.models import Signal
from osmia_memory.testing import Tape, a_run
from tests.extract.rules.test_how_to_test import found

# --- cost ---------------------------------------------------------------------------------------------------------------


def test_a_search_that_reads_recordings_is_told_with_the_folder() -> None:
    """The folder that most of the output came from, and what to exclude."""
    output = "".join(f"./.tapes/run{n}/full.jsonl:1:{'x' * 900}\n" for n in range(100))
    (content,) = found(cost.flood, Tape().sh('grep -R "Cart" .', output, args={"output_tokens": 50_000}))
    assert "`grep` also reads `.tapes/" in content
    assert "exclude `.tapes`" in content


def test_a_short_answer_or_a_source_folder_is_no_flood() -> None:
    """Only what no one wants to read counts."""
    assert found(cost.flood, Tape().sh("grep -R Cart .", "./.tapes/a.jsonl:1:x")) == []
    sources = "".join(f"./shop/cart.py:{n}:{'x' * 900}\n" for n in range(100))
    assert found(cost.flood, Tape().sh("grep -R Cart .", sources)) == []


def test_a_command_that_was_cut_off_is_told_with_the_part_that_finishes() -> None:
    """The limit and the variant are what the next run needs."""
    tape = (
        Tape()
        .sh("timeout 60 pytest tests/test_all.py", "collected 900 items", 124)
        .sh("pytest tests/test_all.py -k rates", "4 passed in 1.0s")
    )
    assert found(cost.slow, tape) == [
        "`pytest tests/test_all.py` did not finish within 60 s and was cut off; `pytest tests/test_all.py -k rates` finishes."
    ]


def test_a_command_that_the_run_rewrote_has_no_finishing_form() -> None:
    """An option that the run itself added may never have landed."""
    tape = Tape().sh("timeout 3 tools/wait", "waiting", 124).edit("tools/wait").sh("tools/wait --for 2", "no broker")
    assert found(cost.slow, tape) == [
        "`tools/wait` did not finish within 3 s and was cut off; run a part of it, in the background, or with a larger limit."
    ]


def test_a_long_run_is_told_by_the_runners_own_clock() -> None:
    """Waiting for a permission is not the suite's time."""
    assert found(cost.slow, Tape().sh("pytest tests", "9 passed in 140.0s", seconds=140)) == [
        "`pytest tests` takes about 2 minutes; give it a time limit above that."
    ]
    assert found(cost.slow, Tape().sh("pytest tests", "9 passed in 1.0s", seconds=300)) == []


def test_what_the_agent_timed_is_told() -> None:
    """`time` in front shows that the figure mattered."""
    assert found(cost.measured, Tape().sh("time make snapshot", "ok\nreal 0m17.4s\nuser 0m3s\n")) == [
        "`make snapshot` took 17 s when measured."
    ]


# --- changes ------------------------------------------------------------------------------------------------------------


def test_files_that_git_add_swept_in_are_told() -> None:
    """The patch holds a file that no command of the run named, and that is not new."""
    patch = "diff --git a/setup.cfg b/setup.cfg\n+++ b/setup.cfg\n+addopts = -p no:cacheprovider\ndiff --git a/shop/a.py b/shop/a.py\n+++ b/shop/a.py\n+x = 1\n"
    tape = (
        Tape()
        .sh("sed -i 's/1/2/' shop/a.py")
        .sh("git add -A && git diff --cached", patch)
        .add("file_edit", patch, tool="submission", paths=("setup.cfg", "shop/a.py"))
    )
    assert found(changes.swept_in, tape) == [
        "The prepared checkout already has uncommitted edits to `setup.cfg`; `git add -A` puts them into the patch, so stage only your own files."
    ]


def test_a_push_that_pushes_more_is_told_once() -> None:
    """Numbered references are left out: they differ from run to run."""
    output = "[tapes] Pushing tapes/main to origin... done\n[tapes] Pushing tapes/00012 to origin... done\n"
    assert found(changes.push_side_effect, Tape().sh("git push origin main", output)) == [
        "`git push` here also pushes `tapes/main` to the same remote, through the `tapes` hook."
    ]


def test_an_edit_that_broke_tests_and_was_taken_back_is_a_dead_end() -> None:
    """Another change has to pass afterwards; a debugging aid or a look at the baseline is no dead end."""
    red = "FAILED tests/test_cart.py::test_sum - TypeError\n== 1 failed, 3 passed in 0.1s =="
    tape = (
        Tape()
        .edit("shop/cart.py", "total = sum(prices, start=None)")
        .sh("pytest tests/test_cart.py", red, 1)
        .sh("git checkout shop/cart.py")
    )
    assert found(changes.dead_end, tape) == []
    back_again = (
        Tape()
        .edit("shop/cart.py", "total = sum(prices, start=None)")
        .sh("pytest tests/test_cart.py", red, 1)
        .sh("git checkout shop/cart.py")
    )
    back_again.edit("shop/cart.py", "total = sum(prices, start=None)").sh("pytest tests/test_cart.py", "4 passed in 0.1s")
    assert found(changes.dead_end, back_again) == []
    tape.edit("shop/cart.py", "total = sum(prices)").sh("pytest tests/test_cart.py", "4 passed in 0.1s")
    assert found(changes.dead_end, tape) == [
        "In `shop/cart.py` the edit `total = sum(prices, start=None)` was tried and taken back: `tests/test_cart.py::test_sum` failed with it (TypeError); another change passed."
    ]


def test_of_a_diff_the_line_that_was_added_is_what_was_tried() -> None:
    """The lines around it were there before."""
    patch = '@@\n     self.db = connect(path, timeout=5)\n+    self.db.execute("pragma locking_mode = exclusive")\n'
    red = "FAILED tests/test_cart.py::test_sum - Locked: database is locked\n== 1 failed, 3 passed in 0.1s =="
    tape = Tape().edit("shop/cart.py", patch).sh("pytest tests/test_cart.py", red, 1).sh("git checkout shop/cart.py")
    tape.edit("shop/cart.py", "total = sum(prices)").sh("pytest tests/test_cart.py", "4 passed in 0.1s")
    (content,) = found(changes.dead_end, tape)
    assert "the edit `self.db.execute(" in content


def test_two_files_that_a_test_ties_together_are_told() -> None:
    """The test fails after one change and passes after exactly one other file changed as well."""
    red = "FAILED tests/test_schema.py::test_versions - AssertionError: 8 != 7\n== 1 failed, 3 passed in 0.1s =="
    tape = Tape().edit("shop/schema.py").sh("pytest tests", red, 1).edit("deploy/schema.sql").sh("pytest tests", "4 passed in 0.1s")
    assert found(changes.needed_too, tape) == [
        "`deploy/schema.sql` and `shop/schema.py` must change together: `tests/test_schema.py::test_versions` fails while only one is changed."
    ]
    same = Tape().edit("shop/schema.py").sh("pytest tests", red, 1).edit("shop/schema.py").sh("pytest tests", "4 passed in 0.1s")
    assert found(changes.needed_too, same) == []
    failed = (
        Tape(a_run(outcome="failure"))
        .edit("shop/schema.py")
        .sh("pytest tests", red, 1)
        .edit("deploy/schema.sql")
        .sh("pytest tests", "4 passed in 0.1s")
    )
    assert found(changes.needed_too, failed) == []  # its tests were not the last word
    taken_back = Tape().edit("shop/schema.py").sh("pytest tests", red, 1).edit("deploy/schema.sql").sh("pytest tests", "4 passed in 0.1s")
    taken_back.sh("git checkout deploy/schema.sql", "Updated 1 path from the index").sh("pytest tests", "4 passed in 0.1s")
    assert found(changes.needed_too, taken_back) == []


def test_a_commit_refused_by_a_hook_is_told_with_its_line() -> None:
    """A lock or an empty commit is no refusal."""
    tape = (
        Tape()
        .sh("git commit -m 'add x'", "commit-msg hook: subject must start with a ticket, e.g. SHOP-12", 1)
        .sh("git commit -m 'SHOP-3 add x'")
    )
    (content,) = found(changes.rejected, tape)
    assert (
        content
        == "`git commit` is refused here unless its check passes: “commit-msg hook: subject must start with a ticket, e.g. SHOP-12”; it went through after that was met."
    )
    assert found(changes.rejected, Tape().sh("git commit -m x", "fatal: Unable to create '.git/index.lock': File exists. hook", 128)) == []


# --- engines ------------------------------------------------------------------------------------------------------------


def test_engine_facts_are_about_the_engine() -> None:
    """Rejected replies, cut output and commands left running."""
    tape = Tape(a_run(engine="mini-swe-agent")).add("error", "Please always provide EXACTLY ONE action, found 3 actions.", tool="format")
    assert "more than one fenced command block" in found(engines.format_rejected, tape)[0]
    cut = Tape(a_run(engine="mini-swe-agent")).sh("cat big.py", "The output of your last command was too long.", args={"truncated": True})
    assert "cuts command output above about 10,000 characters" in found(engines.output_cut, cut)[0]
    told = "Output too large (204.5KB). Full output saved to: /tmp/x.txt\n\nPreview (first 2KB):\nReading"
    saved = Tape(a_run(engine="claude-code")).sh("cat big.py", told, args={"truncated": True})
    assert "shows only their first 2KB" in found(engines.output_cut, saved)[0]
    left = Tape().sh("make all", "", None)
    left.add("tool_call", '{"session_id": 4, "chars": ""}', tool="write_stdin").add("command_result", "done", answers=0, exit_code=0)
    assert "`write_stdin`" in found(engines.left_running, left)[0]


def test_an_overflow_of_the_context_is_told_and_what_passes_by_itself_is_not() -> None:
    """A rate limit or an overloaded provider says nothing to the next run."""
    full = Tape().add("error", "prompt is too long: 210000 tokens", tool="provider")
    assert found(engines.provider_trouble, full) == [
        "codex hit a context overflow of its provider during a run; keep outputs and files read small."
    ]
    for passing in ("429 rate limit reached for requests", "529 overloaded"):
        assert found(engines.provider_trouble, Tape().add("error", passing, tool="provider")) == []
    count = Tape().add("error", "the request has 206,529 tokens", tool="provider")
    assert found(engines.provider_trouble, count) == []  # a number is no status


def test_limits_and_repetitions_are_told_when_corroborated() -> None:
    """One run stopped by its limit, or stuck in a loop, says little about the next."""
    run = a_run(signals=(Signal("limit", "cost", 0),))
    assert found(engines.limit_hit, Tape(run).say("budget used up")) == ["codex was stopped by its cost limit on a bug fix task."]
    loop = Tape().sh("make x", "error: no rule", 2).sh("make x", "error: no rule", 2).sh("make x", "error: no rule", 2)
    assert len(found(engines.repeated_call, loop)) == 1
    assert found(engines.repeated_call, Tape().sh("make x", "1", 2).sh("make x", "2", 2).sh("make x", "3", 2)) == []


# --- people -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        "no, use `make check` instead of pytest directly",
        "Please never commit to the main branch.",
        "don't add comments to tests",
        "We always rebase, never merge.",
    ],
)
def test_a_rule_that_a_user_states_is_kept_as_said(said: str) -> None:
    """Quoted, and told as an observation."""
    (content,) = found(people.user_correction, Tape().user("fix the cart").say("done").user(said))
    assert content == f"A user corrected an earlier run: “{said}”"


@pytest.mark.parametrize(
    "said",
    [
        "yes, do that",
        "can we use tabs instead of spaces in the Makefile?",
        "1. (High) never pass a nil context to `Fetch`\n2. (Low) rename it",
        "I have a tool that never gets past 27 in my test",
        "Review the change. " * 60,
    ],
)
def test_questions_reviews_and_chat_are_no_rules(said: str) -> None:
    """Only a short imperative about something named counts."""
    assert found(people.user_correction, Tape().user("fix the cart").say("done").user(said)) == []


def test_the_task_itself_is_no_correction() -> None:
    """The first turn is what the run was asked to do."""
    assert found(people.user_correction, Tape().user("Never use tabs in the Makefile; convert them.")) == []


def test_what_a_user_forbids_is_told_with_what_is_wanted_instead() -> None:
    """Two sentences of one turn, if the second says what to do."""
    said = "no, don't mock the client. mock the `wire` package it uses"
    (content,) = found(people.user_correction, Tape().user("test it").say("done").user(f"{said}\nthanks"))
    assert content == f"A user corrected an earlier run: “{said}”"


def test_a_correction_of_the_task_at_hand_waits_for_a_second_one_or_is_left_out() -> None:
    """A choice between two things holds longer than one about these tests."""

    def tags(said: str) -> list[tuple[str, ...]]:
        return [f.tags for f in people.user_correction(view(Tape().user("test it").say("done").user(said).transcript()))]

    assert tags("don't use `TempDir`, use `ShopDir`") == [()]
    assert tags("don't modify `send_mail`") == [("corroborate",)]
    assert tags("don't use `--fast` in those tests") == []


def test_of_two_runs_of_tests_in_a_line_neither_is_called_slow() -> None:
    """The second one, with the race detector, took the time."""
    output = "ok  \texample.org/shop\t1.2s\nok  \texample.org/shop\t75.0s"
    assert found(cost.slow, Tape().sh("go test ./... && go test -race ./...", output)) == []
    assert found(cost.slow, Tape().sh("go test -race ./...", output)) != []
