"""What the pages say can be typed: every command line in them parses, every command is on a page, the reference is the program's own help."""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from osmia_memory import demonstration
from osmia_memory.cli.app import COMMANDS, application
from osmia_memory.config import Settings
from osmia_memory.models import Skip

ROOT = Path(__file__).parents[1]
PAGES = sorted(p for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if p.is_file())
GROUP: Any = typer.main.get_command(application())


def in_fences(text: str) -> Iterator[str]:
    """Command lines in fenced blocks, with continued lines joined, and without prompt, comment and what is piped in."""
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            for part in line.split(" | "):
                if match := re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*(osmia-memory .*)", part.strip()):
                    yield match[1]


def in_prose(text: str) -> Iterator[str]:
    """Command lines in code spans."""
    return (span for span in re.findall(r"`(osmia-memory [^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)))


FENCED = [(page.relative_to(ROOT), line) for page in PAGES for line in in_fences(page.read_text())]
SPANS = [(page.relative_to(ROOT), line) for page in PAGES for line in in_prose(page.read_text())]


def words(line: str) -> list[str]:
    """The line as a shell splits it, up to a redirection."""
    found = shlex.split(line, comments=True)
    return found[1 : next((n for n, word in enumerate(found) if word in (">", ">>", "<", "&&", ";")), None)]


def test_there_is_something_to_check() -> None:
    """The pages show commands; the search finds them."""
    assert {"README.md", "cli.md"} <= {page.name for page in PAGES}
    assert len(FENCED) > len(COMMANDS)
    assert list(in_fences("```\n$ A=1 osmia-memory list \\\n  --limit 3  # few\necho x | osmia-memory redact\n```\n")) == [
        "osmia-memory list    --limit 3  # few",
        "osmia-memory redact",
    ]


@pytest.mark.parametrize(("page", "line"), FENCED, ids=lambda value: str(value)[:70])
def test_every_command_line_of_the_pages_parses(page: Path, line: str) -> None:
    """As a known command with its own options and all it requires."""
    command, *arguments = words(line)
    assert command in GROUP.commands, line
    GROUP.commands[command].make_context(command, arguments)  # raises a usage error that names what is wrong


@pytest.mark.parametrize(("page", "line"), SPANS, ids=lambda value: str(value)[:70])
def test_every_command_that_prose_names_is_known(page: Path, line: str) -> None:
    """It may be shortened, but its name and options exist."""
    command, *arguments = words(line)
    assert command in GROUP.commands, line
    known = {name for p in GROUP.commands[command].params for name in p.opts}
    assert {a.partition("=")[0] for a in arguments if a.startswith("--")} <= known


def test_every_command_is_on_a_page() -> None:
    """In the README or the reference."""
    shown = {words(line)[0] for page, line in [*FENCED, *SPANS] if page.name in ("README.md", "cli.md")}
    assert shown >= set(COMMANDS)


def test_the_reference_is_current() -> None:
    """`python docs/make_cli_reference.py` would change nothing."""
    spec = importlib.util.spec_from_file_location("make_cli_reference", ROOT / "docs" / "make_cli_reference.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert maker.PAGE.read_text() == maker.reference(), "run `python docs/make_cli_reference.py`"


def test_every_setting_is_in_the_guide_with_its_default() -> None:
    """And nothing that is none."""
    text = (ROOT / "docs" / "guide.md").read_text()
    section = text.partition("## Configuration")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", section, re.M))
    defaults = {name: getattr(Settings(), name) for name in Settings.__dataclass_fields__}
    assert told == {name: str(value).lower() if isinstance(value, bool) else str(value) or "ticketing" for name, value in defaults.items()}


def test_links_between_pages_lead_somewhere() -> None:
    """Every relative link names a file of the checkout."""
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_json_of_the_guide_is_a_run(tmp_path: Path) -> None:
    """The example of a TaskRun is read as one."""
    examples = re.findall(r"^```json\n(.*?)^```", (ROOT / "docs" / "guide.md").read_text(), re.M | re.S)
    (run,) = [e for e in examples if '"events"' in e]
    (tmp_path / "run.json").write_text(run)
    command = [sys.executable, "-m", "osmia_memory.cli.app", "extract", "run.json", "--dry-run", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 run read" in done.stderr) == (0, True), done.stderr


def test_the_block_of_the_readme_is_what_the_demo_prints(tmp_path: Path) -> None:
    """The first task of the demo, by rules alone, to the byte."""
    memory = demonstration.memory(tmp_path / "demo.duckdb")
    repo = next(r.run.repo for r in list(memory.extract([str(demonstration.RUNS)])) if not isinstance(r, Skip))
    task = json.loads(demonstration.TASKS.read_text())[0]

    text = f"{task['title']}\n\n{task['description']}"
    block = memory.prior_knowledge(text, repo=repo, engine=task["engine"], task_type=task.get("task_type")).text

    assert f"```\n{block}```" in (ROOT / "README.md").read_text()
