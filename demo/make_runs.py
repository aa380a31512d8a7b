"""Make the demo's transcripts: play the stories on a throw-away machine and write each in its engine's own format.

    python demo/make_runs.py              # rewrites src/osmia_memory/demo/runs
    python demo/make_runs.py --keep       # and says where the throw-away machine is left

Every command is really run; nothing is written that it did not print. Only these things are made up: what the engines
and people say, the clock, and the ids. Afterwards the answer key's quotes are looked up again (`answers.py`).
"""

import argparse
import json
import shutil
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import answers
from engines import claude, codex, mini
from steps import Done, Edit, Interrupt, Played, Poll, Read, Record, Result, Sh, Step, Story, User
from stories import STORIES
from workshop import CWD, PATIENCE_SECONDS, REMOTE, Workshop

RUNS = Path(__file__).parents[1] / "src/osmia_memory/demo/runs"
SHELL = {"claude-code": "/bin/bash", "codex": "/bin/bash", "mini-swe-agent": "/bin/sh"}


def main() -> int:
    """Play the stories and write what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the throw-away machine for a look")
    parser.add_argument(
        "--first", type=int, metavar="N", default=len(STORIES), help="play the first N stories only; later ones build on them"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", default=RUNS, help="where to write; the answer key is only touched without this")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="harbor-")).resolve()
    try:
        workshop = Workshop(root)
        played = [play(workshop, story) for story in STORIES[: options.first]]
    finally:
        if options.keep:
            print(f"the machine is in {root}")
        else:
            shutil.rmtree(root)
    if options.out == RUNS:
        shutil.rmtree(RUNS, ignore_errors=True)
    for run in played:
        write(run, options.out)
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file())
    print(f"{len(played)} runs, {size / 1024:.0f} KB")
    missing = answers.locate(RUNS) if options.out == RUNS else []
    for line in missing:
        print(line)
    return 1 if missing else 0


def play(workshop: Workshop, story: Story) -> Played:
    """Everything a story does, really done."""
    base = workshop.begin(story.branch, story.start)
    at, done = story.start, []
    for number, step in enumerate(story.steps):
        workshop.tick(at)
        try:
            result = timed(workshop, story, step)
        except ValueError as error:
            raise SystemExit(f"{story.slug}, step {number}: {error}") from error
        at += pace(step, result)
        done.append(Done(step, result, at))
    if story.keep:
        workshop.land(story.branch)
    submission = done[-1].result.stdout.partition("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n")[2]
    if submission:
        done[-1] = replace(done[-1], result=replace(done[-1].result, stdout=submission))
    return Played(story, tuple(done), base, f"/{CWD}", REMOTE, submission)


def timed(workshop: Workshop, story: Story, step: Step) -> Result:
    """The step's result with the time that the record tells: what it waits for, which it must have waited."""
    began, waits = time.monotonic(), getattr(step, "waits", 0)
    result = perform(workshop, story, step)
    if time.monotonic() - began < waits - 1.5:  # a `Poll` comes a second after the start
        raise ValueError(f"it was over long before {waits} s:\n{result.stdout}")
    return replace(result, seconds=waits)


def perform(workshop: Workshop, story: Story, step: Step) -> Result:
    """What one step does to the machine."""
    if isinstance(step, Sh):
        argv = [SHELL[story.engine], "-c", step.command]
        if step.yields is not None:
            return workshop.leave_running(argv, step.seed, step.yields)
        # Only what waits by its nature may meet the harness's patience: a busy machine must not change the story.
        meant = story.engine == "mini-swe-agent" and step.waits >= mini.PATIENCE_SECONDS
        limit = mini.PATIENCE_SECONDS if meant else PATIENCE_SECONDS
        result = workshop.shell(argv, step.seed, merged=story.engine != "claude-code", limit=limit)
        if result.timed_out and not meant:
            raise ValueError(f"{step.command!r} did not end within {limit} s")
        return result
    if isinstance(step, Poll):
        return workshop.poll()
    if isinstance(step, Edit):
        return workshop.edit(step.path, step.old, step.new)
    if isinstance(step, Read):
        return Result(workshop.plain(workshop.read(step.path)))
    return Result()


def pace(step: Step, result: Result) -> timedelta:
    """How much time the record gives a step: never the measured fraction of a second, which differs each time."""
    if isinstance(step, User | Interrupt):
        return timedelta(seconds=74)
    words = getattr(step, "text", "") or getattr(step, "new", "") or getattr(step, "command", "")
    return timedelta(seconds=2 + len(words) // 90 + result.seconds, milliseconds=137 * (1 + len(words) % 7))


def write(played: Played, out: Path) -> None:
    """The transcript, and the outcome beside it where the story has one."""
    story = played.story
    folder = out / story.engine
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{played.day}-{story.slug}"
    if story.engine == "mini-swe-agent":
        text = json.dumps(mini.write(played), indent=1, ensure_ascii=False) + "\n"
        (folder / f"{stem}.traj.json").write_text(text)
    else:
        records = claude.write(played) if story.engine == "claude-code" else codex.write(played)
        (folder / f"{stem}.jsonl").write_text(_lines(records))
    if story.outcome:
        (folder / f"{stem}.outcome.json").write_text(json.dumps(story.outcome) + "\n")


def _lines(records: list[Record]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records)


if __name__ == "__main__":
    raise SystemExit(main())
