"""What several rules share: runs of tests, and quotes of commands and results."""

from typing import NamedTuple

from osmia_memory.extract import commands
from osmia_memory.extract.runners import Failing, Verdict
from osmia_memory.extract.shell import Simple
from osmia_memory.extract.view import Step, View
from osmia_memory.models import Evidence


class TestRun(NamedTuple):
    """A step in which tests of the repository really ran, passing or not."""

    step: Step
    main: Simple
    verdict: Verdict

    @property
    def at(self) -> int:
        """Event index of the command."""
        return self.step.index

    @property
    def is_whole(self) -> bool:
        """It was pointed at everything, not at a part."""
        where = commands.targets(self.main)
        return not commands.is_selective(self.main) and (not where or where[0] in ("./...", ".", "tests", "tests/", "test", "test/"))


def as_test_run(step: Step) -> TestRun | None:
    """The step as a run of tests, None if no test ran in it."""
    v = step.verdict
    if step.main is None or step.purpose != "test" or v is None or v.kind != "test" or v.broken_build or not v.ran:
        return None
    return TestRun(step, step.main, v)


def test_runs(view: View) -> list[TestRun]:
    """All runs of tests that this run did not write itself, in order."""
    return [t for s in view.steps if (t := as_test_run(s)) and not view.runs_own_code(s)]


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
