"""What several rules share: runs of tests, and quotes of commands and results."""

import re

from osmia_memory.extract import commands
from osmia_memory.extract.runners import Failing
from osmia_memory.extract.shell import Simple
from osmia_memory.extract.view import Step, View
from osmia_memory.models import Evidence


def made_here(view: View, test_id: str) -> bool:
    """The test stands in a file that this run made."""
    return any(len(name) > 4 and commands.names(test_id, name) for name in view.created_names)


def cite_command(view: View, step: Step) -> Evidence | None:
    """The typed command, where it stands in the call."""
    texts = [" ".join(step.main.argv), commands.typed(step.main)] if step.main else []
    return next((e for text in (*texts, step.line) if (e := view.cite(step.call, text))), None)


def cite_result(view: View, step: Step, line: str) -> Evidence | None:
    """A line of the output, in the result event that holds it."""
    return next((e for r in reversed(step.results) if line and (e := view.cite(r, line))), None)


def one_line(text: str, limit: int = 110) -> str:
    """White space folded, back-ticks turned into quotes, cut at a word."""
    text = " ".join(text.split()).replace("`", "'")
    return text if len(text) <= limit else text[:limit].rsplit(" ", 1)[0] + " …"


def is_cut(reason: str) -> bool:
    """The runner shortened the reason to nothing useful."""
    return len(reason) <= 8 or (reason.endswith("...") and len(reason) < 30)


def in_brackets(failing: Failing) -> str:
    """` (reason)`, "" where the runner gave none worth telling."""
    return "" if is_cut(failing.reason) else f" ({one_line(failing.reason)})"


def short_test(test_id: str) -> str:
    """The test's own name, without file and class."""
    return test_id if test_id.endswith(".py") else test_id.rsplit("::", 1)[-1].rsplit(".", 1)[-1]


def written_here(view: View, test_id: str, before: int) -> bool:
    """The run itself wrote this test, in a file that was there before."""
    plain = short_test(test_id).split("[")[0]
    wrote = re.compile(rf"\b(?:def|func|fn|it\(|test\() *['\"]?{re.escape(plain)}\b")
    texts = (view.transcript.events[e.at].text for e in view.edits if e.at < before)
    return any(plain in text and wrote.search(text) for text in texts)


def is_product(view: View, main: Simple) -> bool:
    """A linter's own repository runs the linter to try it."""
    return (view.transcript.run.repo or "").rpartition("/")[2] in (main.program, *commands.runner(main)[1:])
