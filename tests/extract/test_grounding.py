import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from osmia_memory.extract import grounding
from osmia_memory.extract.grounding import ground, ground_in, locate
from osmia_memory.models import Transcript
from osmia_memory.testing import NOW, Tape

SET = json.loads((Path(__file__).parent / "quotes.json").read_text("utf-8"))
CASES: list[dict[str, Any]] = SET["cases"]


def run_of(name: str) -> Transcript:
    """One of the runs that the labelled quotes are from."""
    tape = Tape()
    for event in SET["runs"][name]:
        tape.add(event["kind"], event["text"])
    return tape.transcript()


RUNS = {name: run_of(name) for name in SET["runs"]}


def said_by(case: dict[str, Any]) -> str | None:
    """What is stored for a labelled quote, None if it is refused."""
    evidence = ground_in(case["quote"], RUNS[case["run"]], case["event"])
    return evidence.quote if evidence else None


# --- the labelled quotes ----------------------------------------------------------------------------------------------


def test_set_is_large_and_mixed() -> None:
    """The set has at least 80 faithful and 70 unfaithful quotes, of at least 20 kinds each."""
    faithful = Counter(case["why"] for case in CASES if case["says"] is not None)
    unfaithful = Counter(case["why"] for case in CASES if case["says"] is None)

    assert faithful.total() >= 80
    assert unfaithful.total() >= 70
    assert min(len(faithful), len(unfaithful)) >= 20


@pytest.mark.parametrize("case", [c for c in CASES if c["says"] is not None], ids=lambda c: f"{c['why']}: {c['quote'][:30]!a}")
def test_faithful_quote_is_found(case: dict[str, Any]) -> None:
    """A quote that says what the event says is found, and its span holds those very characters of the event."""
    evidence = ground_in(case["quote"], RUNS[case["run"]], case["event"])

    assert evidence is not None
    start, end = evidence.span
    assert RUNS[case["run"]].events[case["event"]].text[start:end] == evidence.quote == case["says"]
    assert (evidence.status == "exact") == (case["quote"].strip() == case["says"])


@pytest.mark.parametrize("case", [c for c in CASES if c["says"] is None], ids=lambda c: f"{c['why']}: {c['quote'][:30]!a}")
def test_unfaithful_quote_is_refused(case: dict[str, Any]) -> None:
    """A quote that is stitched, changed in a word, number, name or negation, too short, or from an injected block is not found."""
    assert said_by(case) is None


# --- properties -------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    "the queue worker retries `go test` **every** *second* lease_seconds --race config.yaml it's “open” — naïve Привет 日本語 x=1 (ok) v2.10.3 "
    "/etc/app/ 10² ½ “ \x1b[31mred\x1b[0m caf\u00e9".split(" ")
)
SEPARATORS = st.sampled_from([" ", " ", " ", "\n", "\n- ", "\n> ", "\t", "\r\n", "  ", " — ", ", ", ". "])


@st.composite
def texts(draw: st.DrawFn) -> list[str]:
    """An event's text in pieces: words and what separates them, in turn."""
    words = draw(st.lists(WORDS, min_size=4, max_size=40))
    pieces = [words[0]]
    for word in words[1:]:
        pieces += [draw(SEPARATORS), word]
    return pieces


def is_long_enough(quote: str) -> bool:
    """Whether a quote has the length that is asked for, however much is folded away."""
    return sum(c.isalnum() and c.isascii() for c in bare(quote)) >= 10


@given(st.text(), st.text(), st.sampled_from(["a plain core", "core\n\tof words", "**core** of `it`"]), st.text(), st.text())
def test_any_part_of_a_text_is_found_exactly(before: str, head: str, core: str, tail: str, after: str) -> None:
    """Every part of a random text that does not end within a word is found, at a place where the text says just that."""
    quote, text = (head + core + tail).strip(), f"{before}({head}{core}{tail}){after}"

    found = ground(quote, text)

    assert found is not None
    assert found.status == "exact"
    assert text[found.start : found.end] == quote


@given(texts(), st.data())
def test_words_of_a_text_are_found_exactly(pieces: list[str], data: st.DataObject) -> None:
    """Whole words in a row are found exactly, whatever markup stands around or among them."""
    first = data.draw(st.integers(0, len(pieces) // 2)) // 2 * 2
    last = data.draw(st.integers(first // 2, len(pieces) // 2)) * 2
    quote, text = "".join(pieces[first : last + 1]), "".join(pieces)
    assume(is_long_enough(quote))

    found = ground(quote, text)

    assert found is not None
    assert (text[found.start : found.end], found.status) == (quote.strip(), "exact")


NOISE: dict[str, list[str]] = {
    " ": ["\n", "  ", "\t", "\u00a0", "\n    ", " \u200b", "\r\n", "\u2009"],
    "\n": [" ", "\n\n", "\n    ", "\r\n"],
    "'": ["\u2019", "\u2018"],
    "“": ['"', "„"],
    "”": ['"', "“"],
    "—": ["-", "–"],
    "e": ["\u0435", "e\u200b", "\uff45"],
    "o": ["\u043e", "\u03bf", "o\u00ad"],
    "é": ["e\u0301"],
    "\x1b[31m": [""],
    "\x1b[0m": ["", "\x1b[1m\x1b[0m"],
}


@given(texts(), st.data())
@settings(max_examples=300)
def test_folding_noise_does_not_hide_a_quote(pieces: list[str], data: st.DataObject) -> None:
    """A quote in other white space, signs and letters is found, and the span says the same once noise of that kind is taken out."""
    first = data.draw(st.integers(0, len(pieces) // 2)) // 2 * 2
    last = data.draw(st.integers(first // 2, len(pieces) // 2)) * 2
    said, text = "".join(pieces[first : last + 1]), "".join(pieces)
    assume(is_long_enough(said))
    quote = said
    for sign, others in NOISE.items():
        if sign in quote and data.draw(st.booleans()):
            quote = quote.replace(sign, data.draw(st.sampled_from(others)))

    found = ground(quote, text)

    assert found is not None
    assert bare(text[found.start : found.end]) == bare(quote) == bare(said)


def bare(text: str) -> str:
    """A slow and obvious folding of the noise above, with markup and white space left out altogether."""
    for sign, others in NOISE.items():
        for other in sorted(others, key=len, reverse=True):
            if other.strip():
                text = text.replace(other, sign)
    for gone in ("\x1b[31m", "\x1b[0m", "\x1b[1m", "\u200b", "\u00ad", "`", "**", "*"):
        text = text.replace(gone, "")
    text = text.replace("“", '"').replace("”", '"').replace("—", "-")
    return "".join(piece for piece in text.split() if piece not in ("-", ">"))


@given(st.lists(st.sampled_from("the queue worker retries every second job twice".split()), min_size=5, max_size=30), st.data())
def test_a_skipped_word_is_noticed(words: list[str], data: st.DataObject) -> None:
    """A quote from which one word in the middle is left out is refused, unless the text says that too."""
    text = " ".join(words)
    gone = data.draw(st.integers(1, len(words) - 2))
    quote = " ".join(words[:gone] + words[gone + 1 :])

    assert (ground(quote, text) is not None) == (quote in text)


# --- one event, in a run ----------------------------------------------------------------------------------------------


def test_evidence_names_run_event_record_and_time() -> None:
    """Evidence carries the run, the event, its record and its time, and the words of the event rather than those of the quote."""
    run = Tape().say("Looking.").sh("make", "the “lint” step\nfailed").transcript()

    evidence = ground_in('the "lint" step failed', run, 2)

    assert evidence is not None
    assert (evidence.run_id, evidence.event_index, evidence.record) == (run.run.run_id, 2, 2)
    assert (evidence.quote, evidence.span, evidence.status) == ("the “lint” step\nfailed", (0, 22), "folded")
    assert evidence.observed_at == run.events[2].ts
    assert evidence.polarity == "supports"


@pytest.mark.parametrize("kind", ["injected_memory", "compaction", "system"])
def test_words_of_injected_blocks_are_no_evidence(kind: Any) -> None:
    """A quote that only an injected block, a summary of earlier history or a system prompt holds is found nowhere; said elsewhere it is."""
    said = "`make seed` has to run first"
    run = Tape().add(kind, said).say("Right.").transcript()
    control = Tape().add(kind, said).user(said).transcript()

    assert ground_in(said, run, 0) is None
    assert locate(said, run) == ()
    assert ground_in(said, control, 1) is not None
    assert locate(said, control) == (1,)


@pytest.mark.parametrize("index", [-1, 2, 10**9])
def test_event_that_does_not_exist_says_nothing(index: int) -> None:
    """An index outside the run is refused rather than counted from its end."""
    run = Tape().user("the suite takes 14 minutes").say("the suite takes 14 minutes").transcript()

    assert ground_in("the suite takes 14 minutes", run, index) is None


def test_wrong_event_differs_from_nowhere() -> None:
    """`locate` tells a quote that other events hold from one that the run does not hold."""
    run = Tape().user("Never touch vendor/.").say("I will never touch vendor/.").sh("ls vendor/", "a b").transcript()

    assert ground_in("never touch vendor/", run, 2) is None
    assert locate("never touch vendor/", run) == (1,)
    assert locate("Always touch vendor/", run) == ()


def test_event_without_time_takes_the_time_of_the_run() -> None:
    """Where an event has no time, the evidence has that of the run's end."""
    tape = Tape().say("the suite takes 14 minutes")
    tape.events[0] = type(tape.events[0])(0, 0, "assistant", "the suite takes 14 minutes")

    evidence = ground_in("takes 14 minutes", tape.transcript(), 0)

    assert evidence is not None
    assert evidence.observed_at == tape.run.finished_at != NOW


# --- places that leave something out ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("the timeout is 300 seconds", "the timeout is 30"),
        ("the timeout is 3\u200b0 seconds", "the timeout is 3"),
        ("needs go 1.22.3 to build", "needs go 1.22"),
        ("an area of 10\u00b2 pixels", "an area of 10"),
        ("returns (-12 items left)", "12 items left"),
        ("the unstable branch", "stable branch"),
        ("it cannot be reopened", "it can"),
        ("we don\u2019t restart it", "restart it"),
        ("we do **not** restart it", "restart it again".removesuffix(" again")),
        ("started with --no-cache-dir", "cache-dir"),
        ("the workers aren't restarted", "the workers are"),
        ("started with --fix-only here", "started with --fix"),
        ("started with --race and -v", "-race and -v"),
        ("reads config.yaml.bak first", "reads config.yaml"),
        ("look at internal/backoff/next.go", "look at internal/backoff"),
        ("set lease_seconds_max there", "set lease_seconds"),
        ("the parser_state is kept", "state is kept"),
        ("the re\u200bopened ticket", "opened ticket"),
    ],
)
def test_place_that_cuts_a_word_or_a_number_or_drops_a_negation_is_passed_over(text: str, quote: str) -> None:
    """A quote that stops within a number, a name, a flag or a path, or beside a negation, is refused there and found where it is said."""
    assert ground(quote, text) is None
    if len(quote) >= grounding.MIN_LETTERS:
        found = ground(quote, f"{text}; {quote}; end")
        assert found is not None
        assert found.start == len(text) + 2


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ('{"log": "12 passed\\nFAIL harbor/queue\\nexit"}', "FAIL harbor/queue"),
        ("in src/queue/retry.py:48: too long", "retry.py:48"),
        ("the last job (see drain_all)", "see drain_all"),
        ("it stops \u2014 every\u2014thing else", "it stops \u2014 every"),
        ("\u65e5\u672c\u8a9e\u306e\u30ad\u30e5\u30fc\u304c\u7a7a\u3067\u3059\u3002", "\u8a9e\u306e\u30ad\u30e5\u30fc\u304c\u7a7a\u3067"),
        ("see \x1b]8;;https://lint.example/rules\x1b\\rules\x1b]8;;\x1b\\ of lint", "rules of lint"),
    ],
)
def test_quote_may_begin_and_end_where_words_do(text: str, quote: str) -> None:
    """After an escaped line break, a folder, a bracket, a dash or a link, and anywhere in a script without spaces, a quote may begin or end."""
    assert ground(quote, text) is not None


# --- cost -------------------------------------------------------------------------------------------------------------


def test_folding_a_large_event_is_quick() -> None:
    """A quote of 200 characters is searched in an event of 1 MB without a pause, whether it is there or not, at the first time and after."""
    lines = [f"2026-05-0{n % 9 + 1} worker-{n}:\tjob {n * 7} took\t{n % 90} ms – “done”" for n in range(18_000)]
    text = "\n".join(lines)
    there = " ".join(lines[9_000:9_004]).replace("\t", "  ")
    absent = there.replace("took", "lost", 1)
    started = time.perf_counter()

    for _ in range(5):
        assert ground(there, text) is not None
        assert ground(absent, text) is None

    assert len(text) > 900_000
    assert time.perf_counter() - started < 5  # 0.3 s on two slow cores; a search that folds the text for every quote takes 20 s


@pytest.mark.parametrize("piece", [" ", "* ", "**a ", "> ", "`", "\x1b]", "\u0301", "… ", "-\n", "’"])
def test_endless_repetition_ends(piece: str) -> None:
    """Quotes and texts of one repeated sign end in time, found or not."""
    started = time.perf_counter()

    ground(f"begin {piece * 20_000} end", f"begin {piece * 100_000} end")

    assert time.perf_counter() - started < 10
