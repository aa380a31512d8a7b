"""Knowledge as it was: rows of an export, less what was observed or recorded later. Pure.

What is left is folded, settled and decayed anew by the ordinary code, so a question about the past takes the same way as one about now.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from osmia_memory.store import rows
from osmia_memory.store.reading import Change


class Moment(NamedTuple):
    """A point in time. `as_of` limits what had been observed (event time), `known_at` what had been recorded; None: no limit."""

    as_of: datetime | None = None
    known_at: datetime | None = None

    @property
    def limit(self) -> datetime | None:
        """The earlier of the two: the clock stands there."""
        return min((t for t in self if t is not None), default=None)


def until(given: Iterable[rows.Row], moment: Moment, changes: Sequence[Change] = ()) -> list[rows.Row]:
    """The rows that were known at `moment`. `given` has to come with recording times, facts and runs before what names them.

    A run counts once it had finished. Links made by code and what they mark are left out: they follow from the facts. `changes` are the
    decisions of people, latest first; pins and wordings later than `known_at` are taken back as far as the journal tells.
    """
    undone = _undone(changes, moment.known_at)
    kept: list[rows.Row] = []
    runs: set[str] = {""}
    told: set[tuple[str, str]] = set()
    nodes: set[str] = set()
    for row in given:
        match row:
            case rows.RunRow():
                if _was(row.finished_at or row.started_at, row.recorded_at, moment):
                    runs.add(row.run_id or "")
                    nodes.add(row.run_id or "")
                    kept.append(row)
            case rows.FactRow():
                left = _witnesses(row, runs, moment)
                if left is not None:
                    nodes.add(row.fact_id or "")
                    told |= {(row.fact_id or "", w.run_id) for w in left.witnesses}
                    kept.append(_unmarked(left, undone))
            case rows.EvidenceRow():
                if (row.fact_id, row.run_id) in told:
                    kept.append(row)
            case rows.EdgeRow():
                if row.made_by == "hand" and {row.from_id, row.to_id} <= nodes and _was(row.created_at, None, moment):
                    kept.append(row)
            case rows.PatternRow():
                if _was(row.last_seen, None, moment):
                    kept.append(row)
            case _:
                pass  # a profile that came without its runs says nothing of when
    return kept


def _was(observed: datetime | None, recorded: datetime | None, moment: Moment) -> bool:
    """Whether something with these times was there; what has no time of its own was."""
    if moment.as_of is not None and observed is not None and observed > moment.as_of:
        return False
    return moment.known_at is None or recorded is None or recorded <= moment.known_at


def _witnesses(row: rows.FactRow, runs: set[str], moment: Moment) -> rows.FactRow | None:
    """The fact with the testimony that was there; None if there was none."""
    told = row.witnesses or (rows.WitnessRow(),)
    left = tuple(w for w in told if w.run_id in runs and _was(w.observed_at or row.valid_from, w.recorded_at or row.recorded_at, moment))
    return row.model_copy(update={"witnesses": left}) if left else None


def _unmarked(row: rows.FactRow, undone: dict[str, dict[str, object]]) -> rows.FactRow:
    """The fact without what follows from other facts, and without what people decided later."""
    changed: dict[str, object] = {"superseded_by": None, "valid_to": None, "recorded_at": None}
    before = undone.get(row.fact_id or "", {})
    if "pinned" in before:
        changed["pinned"] = bool(before["pinned"])
    if before.get("was_edited") is False and row.unedited is not None:
        changed |= {"content": row.unedited, "unedited": None}
    return row.model_copy(update=changed)


def _undone(changes: Sequence[Change], known_at: datetime | None) -> dict[str, dict[str, object]]:
    """Fact id -> what was set before the first decision of its kind after that time."""
    found: dict[str, dict[str, object]] = {}
    for change in changes:  # latest first: the earliest after the time is taken last, and stays
        if known_at is not None and change.at > known_at and change.what in ("pin", "unpin", "edit"):
            found.setdefault(change.subject, {}).update(change.before)
    return found
