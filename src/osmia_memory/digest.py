"""One file -> digests: reading, redaction and rules in one go, with nothing of the events kept unless a model is to read them too.
What a worker process does."""

import pickle
import re
from collections.abc import Mapping
from typing import BinaryIO, NamedTuple

from osmia_memory.extract import heuristics
from osmia_memory.models import Skip, TaskRun, Transcript
from osmia_memory.transcripts.context import ReadOptions
from osmia_memory.transcripts.read import read_source
from osmia_memory.transcripts.sources import Source

Known = Mapping[str, tuple[str, str]]  # run id -> version and extractor that are stored


class Digest(NamedTuple):
    """A run and what it says. `extraction` is None where this version of the run was known already, `transcript` unless it is to be kept."""

    run: TaskRun
    skipped: tuple[Skip, ...]
    masked: Mapping[str, int]
    events: int
    extraction: heuristics.Extraction | None
    vocabulary: tuple[str, ...]
    transcript: Transcript | None = None
    actions: tuple[str, ...] = ()  # distinct command lines and edited paths
    shown: tuple[str, ...] = ()  # lines of our own block that the run was given


def is_current(stored: tuple[str, str] | None, run: TaskRun) -> bool:
    """Whether these rules have read this version of the run. What a model added stands behind a "+" in the stored extractor."""
    return stored is not None and (stored[0], stored[1].partition("+")[0]) == (run.version, heuristics.EXTRACTOR)


def digest(transcript: Transcript, known: Known | None = None, *, keep: bool = False) -> Digest:
    """What the rules find in one transcript."""
    run = transcript.run
    is_known = known is not None and is_current(known.get(run.run_id), run)
    extraction = None if is_known else heuristics.extract(transcript)
    vocabulary = () if is_known else tuple(heuristics.vocabulary(transcript))
    kept = transcript if keep else None
    done, shown = ((), ()) if is_known else (_actions(transcript), _shown(transcript))
    return Digest(
        run, tuple(transcript.skipped), dict(transcript.masked), len(transcript.events), extraction, vocabulary, kept, done, shown
    )


_MAX_ACTIONS, _MAX_ACTION = 300, 300
_BULLET = re.compile(r"^- \*\*[A-Z][\w ]+\*\* \(confidence: [\d.]+\): (.+)$", re.M)


def _actions(transcript: Transcript) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for event in transcript.events:
        if event.kind == "command":
            found[event.text[:_MAX_ACTION]] = None
        elif event.kind == "file_edit":
            found.update(dict.fromkeys(event.paths))
        if len(found) >= _MAX_ACTIONS:
            break
    return tuple(found)


def _shown(transcript: Transcript) -> tuple[str, ...]:
    return tuple(line for e in transcript.events if e.kind == "injected_memory" for line in _BULLET.findall(e.text))


def digests_of(source: Source, options: ReadOptions, known: Known, *, keep: bool = False) -> list[Digest | Skip]:
    """The digests of all runs of one file, each with its transcript if `keep`; a `Skip` if it cannot be read."""
    return [item if isinstance(item, Skip) else digest(item, known, keep=keep) for item in read_source(source, options)]


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer pickled sources with their pickled digests until `requests` closes; the options and the known runs come first."""
    options, known = pickle.load(requests)
    while True:
        try:
            source = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(digests_of(source, options, known), answers)
        answers.flush()
