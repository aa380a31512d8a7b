"""What a task is about, by its text."""

import pytest

from osmia_memory.transcripts.task import language, task_type, title


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Fix the login on mobile", "bug_fix"),
        ("can you fix the linting error", "bug_fix"),
        ("Cart total ignores the discount\n\nExpected behavior: 9.99. Actual: 10.99", "bug_fix"),
        ("Add a `--dry-run` flag", "feature"),
        ("please implement retries for the uploader", "feature"),
        ("let's rename Foo to Bar everywhere", "refactor"),
        ("Refactor the session module", "refactor"),
        ("add tests for the parser", "test"),
        ("Increase the coverage of the sync package", "test"),
        ("update the changelog", "docs"),
        ("open an issue that we need an FAQ in the README", "docs"),
        ("can you review the changes in this branch?", "review"),
        ("take a look at this PR and tell me what you think", "review"),
        ("bump go-billy to v6", "chore"),
        ("commit and push", "chore"),
        ("is there an easy way to show progress?", "question"),
        ("why does the upload wait so long?", "question"),
        ("Blue is a colour", "unknown"),
        ("", "unknown"),
        ("\n\n", "unknown"),
    ],
)
def test_the_kind_of_a_task(text: str, kind: str):
    """By the verb it opens with, else by what it talks about."""
    assert task_type(text) == kind


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n## Fix the cart\nmore", "Fix the cart"),
        ("Hi,\n\nplease\nadd a flag", "add a flag"),
        ("https://example.com/x\nLook at this", "Look at this"),
        ("a" * 200, "a" * 119 + "…"),
        ("---\n```\n", ""),
    ],
)
def test_the_title_is_the_first_line_that_says_something(text: str, line: str):
    """Greetings, rules, fences and bare links do not."""
    assert title(text) == line


def test_the_language_is_that_of_most_files():
    """Scripts and markup only where there is nothing else."""
    assert language(["a.go", "b.go", "c.py", "d.md"]) == "go"
    assert language(["run.sh", "run2.sh", "a.rs"]) == "rust"
    assert language(["run.sh"]) == "shell"
    assert language(["README.md", "Makefile"]) is None
