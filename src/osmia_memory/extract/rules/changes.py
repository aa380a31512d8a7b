"""Rules about changes: approaches taken back, files that move together, what a commit sweeps in or sets off."""

import posixpath
import re
from collections.abc import Iterator

from osmia_memory.extract import commands
from osmia_memory.extract.commands import is_test_file
from osmia_memory.extract.rule import Finding, Rule
from osmia_memory.extract.rules.common import cite_command, cite_result, in_brackets, made_here, one_line, short_test, written_here
from osmia_memory.extract.rules.how_to_test import share_a_name
from osmia_memory.extract.shell import parse
from osmia_memory.extract.view import Step, View
from osmia_memory.models import Claim, Event, Evidence

_NOT_SOURCE = re.compile(
    r"(?:^|/)(?:CHANGELOG|CHANGES|README|AUTHORS|LICENSE)|\.(?:lock|sum|md|rst|txt|json|snap)$|(?:^|/)(?:docs?|changelog|doc/changes)/",
    re.I,
)


def swept_in(view: View) -> Iterator[Finding]:
    """`git add -A` put files into the result that the run never touched: the checkout was dirty before it began."""
    submission = next((e for e in view.events("file_edit") if e.tool == "submission"), None)
    step = next(
        (
            s
            for s in reversed(view.steps)
            if any(c.program == "git" and c.argv[1:2] == ("add",) and set(c.argv[2:]) & {"-A", "--all", "."} for c in parse(s.line))
        ),
        None,
    )
    if submission is None or step is None:
        return
    said = "\n".join(s.line for s in view.steps)
    new = set(re.findall(r"^diff --git a/(\S+) .*\nnew file mode", submission.text, re.M))
    swept = [p for p in submission.paths if posixpath.basename(p) not in said and p not in new]
    if not swept or len(swept) == len(submission.paths):
        return
    names = ", ".join(f"`{p}`" for p in sorted(swept)[:4])
    added = _first_added(submission, swept[0])
    yield Finding(
        f"The prepared checkout already has uncommitted edits to {names}; `git add -A` puts them into the patch, so stage only your own files.",
        "failure_pattern",
        Claim("checkout", "dirty files", "", " ".join(sorted(swept))),
        (view.cite(submission, added) if added else None, cite_command(view, step)),
        anchors=tuple(f"file:{p}" for p in swept),
    )


def _first_added(submission: Event, path: str) -> str:
    part = submission.text.partition(f"+++ b/{path}")[2]
    return next((line for line in part.splitlines() if line.startswith("+") and len(line) > 12), f"+++ b/{path}")


_PUSHING = re.compile(r"^(?:remote: )?\[?([\w-]+)\]? (?:Pushing|Syncing|pushing) (\S+) to (\S+?)\.*(?: done.*)?$", re.M)


def push_side_effect(view: View) -> Iterator[Finding]:
    """A `git push` that, through a hook, pushes something else too."""
    for step in view.steps:
        if not any(c.program == "git" and "push" in c.argv[1:4] for c in parse(step.line)):
            continue
        found = list(_PUSHING.finditer(step.output))
        refs = list(dict.fromkeys(m[2] for m in found if not re.search(r"\d{4}", m[2])))
        if refs:
            names = ", ".join(f"`{r}`" for r in refs[:3])
            yield Finding(
                f"`git push` here also pushes {names} to the same remote, through the `{found[0][1]}` hook.",
                "repo_quirk",
                Claim("git push", "also pushes", found[0][1], " ".join(sorted(refs))),
                (cite_result(view, step, found[0][0]), cite_command(view, step)),
            )
            return


# --- dead ends ----------------------------------------------------------------------------------------------------------


def dead_end(view: View) -> Iterator[Finding]:
    """An edit that made tests fail, was taken back, and was followed by another one under which they passed.

    Of a run that failed after all, nothing: the edit taken back may have been the right one.
    """
    if view.transcript.run.outcome == "failure":
        return
    for step in view.steps:
        path = next((p for p in _reverted(view, step) if not is_test_file(p)), None)
        edit = next((e for e in reversed(view.edits) if e.at < step.index and path in e.paths), None)
        if path is None or edit is None:
            continue
        failing = next(
            (s for s in view.steps if edit.at < s.index < step.index and s.purpose == "test" and s.verdict and s.verdict.failing), None
        )
        good = next((s for s in view.steps if s.index > step.index and s.purpose == "test" and s.worked), None)
        again = any(e.at > step.index and (good is None or e.at < good.index) and set(e.paths) & set(view.edited) for e in view.edits)
        tried = _tried(view.transcript.events[edit.at])
        if failing is None or good is None or not again or tried is None or failing.verdict is None or _came_back(view, step, tried):
            continue
        first = failing.verdict.failing[0]
        yield Finding(
            f"In `{path}` the edit `{tried}` was tried and taken back: `{first.test_id}` failed with it{in_brackets(first)}; another change passed.",
            "failure_pattern",
            Claim(path, "dead end", "", re.sub(r"\W+", " ", tried).strip()[:80]),
            (view.cite(view.transcript.events[edit.at], tried), cite_result(view, failing, first.test_id), cite_command(view, step)),
            anchors=(f"file:{path}",),
        )
        return


def _came_back(view: View, reverted: Step, tried: str) -> bool:
    """What was taken back is in a later edit or in the result: it was put aside for a look at the old state."""
    later = "\n".join(e.text for e in view.transcript.events if e.index > reverted.index and e.kind in ("file_edit", "command"))
    pieces = re.split(r"(?<!\\)/", tried)
    core = pieces[2] if re.match(r"(?:\d+,?\d*)?s/", tried) and len(pieces) > 2 else tried
    return len(core.strip()) > 3 and core.strip() in later


def _tried(event: Event) -> str | None:
    """The most telling line an edit brought in, short enough to quote."""
    old = str(event.args.get("old_string") or "")
    written = event.text.splitlines()
    if any(line.startswith("+") for line in written):  # a diff: its other lines were there before
        written = [line for line in written if line.startswith("+")]
    lines = [line.strip(" \t+") for line in written if line.strip() and line.strip() not in old and not line.startswith("-")]
    script = re.search(r"sed -i[^'\"]*(['\"])(.{8,100}?)\1", event.text) if event.kind == "command" else None
    if script:
        return script[2]
    telling = [x for x in lines if 12 <= len(x) <= 100 and re.search(r"\w+[(.=]", x) and not x.startswith(("#", "//", "*", "cat ", '"""'))]
    return telling[0].replace("`", "'") if telling and event.kind == "file_edit" else None


def _reverted(view: View, step: Step) -> list[str]:
    """Files of the repository that this command put back although the run had changed them."""
    changed = set(view.edits_between(-1, step.index)) & set(view.edited)
    back: list[str] = []
    for c in parse(step.line):
        if c.program == "git" and c.argv[1:2] in (("checkout",), ("restore",)) and "-b" not in c.argv:
            back += [p for w in c.argv[2:] if (p := view.relative(w)) in changed]
    return back


# --- files that move together -------------------------------------------------------------------------------------------


_SETTINGS = re.compile(r"\.(?:toml|ya?ml|cfg|ini|lock|md|rst|txt)$|(?:^|/)(?:apply|fix|patch|update|repro)\w*\.py$")


def needed_too(view: View) -> Iterator[Finding]:
    """An existing test failed after a change of one file and passed once exactly one other file was changed as well, and both changes stayed."""
    if view.transcript.run.outcome == "failure":
        return
    told: set[tuple[str, str]] = set()
    for n, run in enumerate(view.test_runs):
        before = [p for p in view.edits_between(-1, run.at) if p in view.edited and not is_test_file(p) and not _SETTINGS.search(p)]
        failing = [f for f in run.verdict.failing if not made_here(view, f.test_id) and not written_here(view, f.test_id, run.at)]
        later = next((r for r in view.test_runs[n + 1 :] if commands.runner_key(r.main) == commands.runner_key(run.main)), None)
        if not before or not failing or later is None or {f.test_id for f in failing} & {f.test_id for f in later.verdict.failing}:
            continue
        after = [p for p in view.edits_between(run.at, later.at) if p not in view.created]
        if len(after) != 1 or after[0] in before or is_test_file(after[0]) or _SETTINGS.search(after[0]) or later.verdict.broken_build:
            continue
        first = _closest(before, after[0], failing[0].test_id)
        pair = (min(first, after[0]), max(first, after[0]))
        if pair in told or any(set(pair) & set(_reverted(view, s)) for s in view.steps if s.index > run.at):
            continue
        told.add(pair)
        edit = next(e for e in view.edits if e.at > run.at and after[0] in e.paths)
        yield Finding(
            f"`{pair[0]}` and `{pair[1]}` must change together: `{failing[0].test_id}` fails while only one is changed.",
            "repo_quirk",
            Claim(pair[0], "changes with", pair[1], "tested"),
            (
                cite_result(view, run.step, short_test(failing[0].test_id)),
                cite_result(view, later.step, later.verdict.summary),
                _cite_edit(view, view.transcript.events[edit.at], after[0]),
            ),
            anchors=(f"file:{pair[0]}", f"file:{pair[1]}", f"test:{failing[0].test_id}"),
        )


def _closest(paths: list[str], other: str, test_id: str) -> str:
    """Of the files changed before, the one that the other file or the failing test names; the last one otherwise."""
    named = [p for p in paths if share_a_name(p, other) or share_a_name(p, test_id)]
    return (named or paths)[-1]


def _cite_edit(view: View, event: Event, path: str) -> Evidence | None:
    return (
        view.cite(event, path)
        or view.cite(event, posixpath.basename(path))
        or (view.quote(event, 0, min(len(event.text), 80)) if event.text else None)
    )


# --- rejected by a hook or a check --------------------------------------------------------------------------------------

_HOOK_LINE = re.compile(
    r"^.*(?:hook|pre-commit|commit-msg|husky|lefthook|changelog|CHANGELOG|sign-?off|conventional|protected branch|remote rejected|not allowed|must (?:have|be|contain|include|start)).*$",
    re.M | re.I,
)


def rejected(view: View) -> Iterator[Finding]:
    """A commit or push that a hook or the server refused, with the refusing line."""
    told: set[str] = set()
    for n, step in enumerate(view.steps):
        c = next((c for c in parse(step.line) if c.program == "git" and c.argv[1:2] in (("commit",), ("push",))), None)
        if (
            c is None
            or not step.exit_code
            or step.harness
            or re.search(r"nothing to commit|index\.lock|not a git repository|Could not resolve|unable to access", step.output)
        ):
            continue
        lines = [
            m[0].strip()
            for m in _HOOK_LINE.finditer(step.output)
            if len(m[0].strip()) < 200 and not m[0].startswith(("hint:", "To ", "husky -"))
        ]
        if not lines or c.argv[1] in told:
            continue
        told.add(c.argv[1])
        line = next((x for x in lines if re.search(r"must|missing|require|not allowed|rejected|error|fail|need", x, re.I)), lines[0])
        after = next((s for s in view.steps[n + 1 :] if s.worked and any(p.argv[:2] == c.argv[:2] for p in parse(s.line))), None)
        passed = "; it went through after that was met" if after else ""
        yield Finding(
            f"`git {c.argv[1]}` is refused here unless its check passes: “{' '.join(line.split())[:150]}”{passed}.",
            "repo_quirk",
            Claim(f"git {c.argv[1]}", "refused by", "", re.sub(r"\W+", " ", line.lower()).strip()[:80]),
            (cite_result(view, step, line), cite_command(view, after) if after else None),
        )


# --- rejected by the repository's own check -------------------------------------------------------------------------------

_FINDING = re.compile(r"^(?:\s*)([\w./-]+\.\w+):\d+(?::\d+)?:? +(?:error|warning)?:? *(\S.{12,140})$", re.M)


def check_rejects(view: View) -> Iterator[Finding]:
    """A finding of the repository's own check script, in a file that was then edited until the check passed."""
    told: set[str] = set()
    for n, step in enumerate(view.steps):
        main = step.main
        if (
            main is None
            or step.purpose not in ("test", "lint", "run", "build")
            or not step.exit_code
            or ("/" not in main.argv[0] and step.purpose != "lint")
        ):
            continue
        if re.search(
            r"(?:^|/)(?:python[\d.]*|node|go|pytest|ruff|mypy|flake8|eslint|tsc|golangci-lint)$", main.argv[0]
        ) or view.runs_own_code(step):
            continue
        key = commands.runner_key(main)
        for match in _FINDING.finditer(step.output):
            path, message = view.relative(match[1]), match[2].strip()
            later = next((s for s in view.steps[n + 1 :] if s.worked and s.main and commands.runner_key(s.main) == key), None)
            if (
                later is None
                or path not in view.edits_between(step.index, later.index)
                or message in told
                or re.search(r"Error\b|Traceback|assert|in \w+$|^in ", message)
            ):
                continue
            told.add(message)
            yield Finding(
                f"`{view.relative(key)}` rejects code here with “{one_line(message, 140)}”.",
                "repo_quirk",
                Claim(key, "rejects", re.sub(r"\W+", " ", message.lower()).strip()[:80], "yes"),
                (cite_result(view, step, match[0].strip()), cite_command(view, later)),
            )
            break


RULES = (
    Rule("check_rejects", 1, 0.75, 0.01, "the check said so, and passed once it was met", check_rejects),
    Rule("swept_in", 1, 0.8, 0.01, "the submitted patch shows it", swept_in),
    Rule("push_side_effect", 1, 0.8, 0.01, "the hook said so", push_side_effect),
    Rule("dead_end", 3, 0.65, 0.01, "the agent's own reason", dead_end),
    Rule("needed_too", 2, 0.75, 0.01, "a test failed without the other file and passed with it", needed_too),
    Rule("rejected", 1, 0.8, 0.01, "the check said so", rejected),
)
