"""The block for people: each line with the evidence behind it, and nothing of a transcript can change the page. Content is invented."""

import html.parser
import json
import re
from pathlib import Path

import pytest

from osmia_memory import presenting
from osmia_memory.memory import Memory
from tests.product import NOW, PYTEST_FAILS, REPO, TESTS_RUN, a_memory, a_task_run, learn, osmia
from tests.test_over_time import NO_TLS, TLS, told

TASK = "`python -m pytest` fails on tests/test_cart.py, run the tests another way"
HOSTILE = "The dev server prints `<script>alert(1)</script>` & \u202eevil\u200b {{ 7*7 }} </pre><h1>."


class Tags(html.parser.HTMLParser):
    """Counts elements, and keeps text by element id."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.block = ""
        self.in_block = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.in_block = self.in_block or ("id", "block") in attrs

    def handle_endtag(self, tag: str) -> None:
        self.in_block = self.in_block and tag != "pre"

    def handle_data(self, data: str) -> None:
        if self.in_block:
            self.block += data


def parsed(page: str) -> Tags:
    """The page as a browser reads it."""
    tags = Tags()
    tags.feed(page)
    return tags


def page_of(memory: Memory, task: str, repo: str = REPO) -> tuple[str, str]:
    """(page, block) for a task."""
    block = memory.prior_knowledge(task, repo=repo)
    shown = memory.evidence_of(block)
    return presenting.page(shown, block.text, task=task, repo=repo, now=NOW, known=block.known), block.text


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Five runs that agree."""
    memory = a_memory(tmp_path)
    learn(memory, *(a_task_run(f"s{n}", PYTEST_FAILS, TESTS_RUN, day=n + 1) for n in range(5)))
    return memory


def test_each_line_has_its_quotes_from_different_runs(memory: Memory) -> None:
    """The latest and the oldest run first, with engine, outcome, source and record; how many more there are is said."""
    page, _ = page_of(memory, TASK)
    first = memory.evidence_of(memory.prior_knowledge(TASK, repo=REPO))[0]
    assert len(first.told.quotes) == presenting.MAX_QUOTES
    assert [q.where[:10] for q in first.told.quotes] == ["2026-05-05", "2026-05-01", "2026-05-04"]
    assert all("aider" in q.where and "record" in q.where for q in first.told.quotes)
    assert "2 more runs say it" in first.told.more
    assert page.count("<figure>") == sum(
        len(t.quotes) for line in memory.evidence_of(memory.prior_knowledge(TASK, repo=REPO)) for t in line.all
    )


def test_the_block_in_the_page_is_the_block(memory: Memory) -> None:
    """What the agent gets, character by character."""
    page, block = page_of(memory, TASK)
    assert parsed(page).block.strip() == block.strip()
    assert not re.search(r"<script|https?://|@import|url\(", page)


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    """Tags, templates, closing elements and invisible characters of a fact, a quote or a task do nothing."""
    memory = a_memory(tmp_path)
    fact = {"type": "fact", "fact_id": "f", "content": HOSTILE, "fact_kind": "repo_quirk", "repo": REPO}
    quote = {"type": "evidence", "fact_id": "f", "run_id": "r", "quote": HOSTILE + "<img src=x onerror=alert(1)>"}
    memory.import_rows("\n".join(map(json.dumps, (fact, quote))).encode(), name="rows")
    page, block = page_of(memory, f"the dev server prints evil <b>{HOSTILE}</b>")
    assert block
    tags = parsed(page)
    assert {"script", "img", "b", "h3"}.isdisjoint(tags.seen)
    assert tags.seen.count("h1") == 1
    assert "49" not in page
    assert "\u202e" not in page
    assert "⟨U+202E⟩" in page


def test_a_dispute_shows_both_sides(tmp_path: Path) -> None:
    """The contrary is shown as such, with what is known of it."""
    page, _ = page_of(told(a_memory(tmp_path), TLS, NO_TLS), "Set up TLS for the dev server")
    assert "Unresolved" in page
    assert "The contrary: The dev server" in page
    assert "entered by hand" in page


def test_nothing_says_why(memory: Memory) -> None:
    """An unknown repository is told from a known one without a match."""
    assert "no run of it was read" in page_of(memory, TASK, repo="acme/unknown")[0]
    assert "nothing that is known fits" in page_of(memory, "translate the greeting into Portuguese")[0]


def test_long_quotes_are_cut_in_the_middle() -> None:
    """Both ends stay."""
    text = presenting._cut("a" * 2000 + "z")
    assert text.startswith("aaa")
    assert text.endswith("z")
    assert "1401 characters" in text


def test_the_command_writes_the_page(memory: Memory, tmp_path: Path) -> None:
    """To a file beside the block, to stdout instead of it, and as text on stderr."""
    asked = ["query", "--repo", REPO, "--task", TASK, "--store", memory.store_path, "--now", NOW.isoformat()]
    plain = osmia(*asked)
    out = tmp_path / "page.html"
    both = osmia(*asked, "--html", out, "--evidence")
    assert both.out == plain.out
    assert parsed(out.read_text()).block.strip() == plain.out.strip()
    assert "| " in both.err
    assert osmia(*asked, "--html", "-").out == out.read_text()
    assert osmia(*asked, "--html", tmp_path / "no" / "page.html").status == 1
