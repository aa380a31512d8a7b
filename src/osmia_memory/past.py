"""Knowledge as it was: rows of an export, less what was observed, recorded or decided later. Pure.

What is left is folded, settled and decayed anew by the ordinary code, so a question about the past takes the same way as one about now.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from osmia_memory.store import rows
from osmia_memory.store.reading import Change
from osmia_memory.store.surroundings import Pair, Surroundings

# What nobody could know of a run before it had ended. Without times it is in no statistic.
_NOT_YET: dict[str, Any] = {
    "started_at": None,
    "finished_at": None,
    "duration_s": None,
    "cost_usd": None,
    "tokens_in": None,
    "tokens_out": None,
    "outcome": "unknown",
    "signals": (),
    "vocabulary": (),
}


class Moment(NamedTuple):
    """A point in time. `as_of` limits what had been observed (event time), `known_at` what had been recorded; None: no limit."""

    as_of: datetime | None = None
    known_at: datetime | None = None

    @property
    def clock(self) -> datetime | None:
        """The time at which confidence is computed."""
        return self.known_at if self.as_of is None else self.as_of


class Decided(NamedTuple):
    """What people and models had decided otherwise by a time than they have now."""

    marks: dict[str, dict[str, Any]]  # fact id -> "pinned", "importance", "edited", "retracted" as they were
    pairs: dict[tuple[str, str, str], bool]  # (kind, one, other): whether it was on record


def decided(changes: Sequence[Change], known_at: datetime | None) -> Decided:
    """Go back through the journal (latest first) to `known_at`; None: to nowhere."""
    found = Decided({}, {})
    by_id = {change.change_id: change for change in changes}
    for change in changes:  # the earliest after the time is taken last, and stays
        if known_at is None or change.at <= known_at:
            continue
        if change.what == "undo":
            _apply_again(found, by_id.get(change.before["change"]))
        else:
            _take_back(found, change)
    return found


def _take_back(found: Decided, change: Change) -> None:
    marks = found.marks.setdefault(change.subject, {})
    match change.what:
        case "pin" | "unpin":
            marks["pinned"] = bool(change.before["pinned"])
        case "set_importance":
            marks["importance"] = change.before["importance"]
        case "edit":
            marks["edited"] = change.before["was_edited"]
        case "retract":
            marks["retracted"] = False
        case "restore":
            marks["retracted"] = bool(change.before.get("retracted"))
    found.pairs.update(dict.fromkeys(_pairs_of(change), False))


def _apply_again(found: Decided, change: Change | None) -> None:
    """Before the undo, the change stood. A weight or wording that was taken back is nowhere kept."""
    if change is None:
        return
    marks = found.marks.setdefault(change.subject, {})
    match change.what:
        case "pin" | "unpin":
            marks["pinned"] = change.what == "pin"
        case "retract":
            marks["retracted"] = True
        case "restore":
            marks["retracted"] = False
    found.pairs.update(dict.fromkeys(_pairs_of(change), True))


def _pairs_of(change: Change) -> list[tuple[str, str, str]]:
    """What the change said of pairs of facts."""
    named = [("nominated", one, other) for one, other in change.before.get("pairs", ())]
    named += [("apart", change.subject, other) for other in change.before.get("apart", ())]
    return [(kind, min(one, other), max(one, other)) for kind, one, other in named]


def around(given: Surroundings, moment: Moment, before: Decided) -> Surroundings:
    """What was known beside the rows. The order of commits has no time: it was always so."""
    pairs = {(p.kind, p.one, p.other): p for p in given.pairs if _was(None, p.recorded_at, moment)}
    for key, was_there in before.pairs.items():
        if was_there and moment.known_at is not None:
            pairs.setdefault(key, Pair(*key, "", moment.known_at))
        elif not was_there:
            pairs.pop(key, None)
    stubs = tuple(s for s in given.stubs if _was(s.fact.valid_from, s.fact.recorded_at, moment))
    return given._replace(pairs=tuple(pairs.values()), stubs=stubs)


def until(given: Iterable[rows.Row], moment: Moment, before: Decided) -> list[rows.Row]:
    """The rows that were known at `moment`. `given` has to come with recording times.

    Testimony counts from its event, a run's outcome and figures once it had finished. Links made by code and what they mark are left out:
    they follow from the facts.
    """
    table = list(given)
    all_runs = [r for r in table if isinstance(r, rows.RunRow)]
    all_facts = [r for r in table if isinstance(r, rows.FactRow)]
    recorded: set[str | None] = {"", *(r.run_id for r in all_runs if _was(None, r.recorded_at, moment))}
    away: set[str | None] = {fact_id for fact_id, marks in before.marks.items() if marks.get("retracted")}
    facts = {r.fact_id: left for r in all_facts if r.fact_id not in away and (left := _witnessed(r, recorded, moment))}
    told = {(fact_id or "", w.run_id) for fact_id, fact in facts.items() for w in fact.witnesses}
    speaking = {run_id for _, run_id in told}
    runs = {r.run_id: ran for r in all_runs if r.run_id in recorded and (ran := _by_then(r, moment.as_of, r.run_id in speaking))}
    links = {(r.from_id, r.to_id) for r in table if isinstance(r, rows.EdgeRow) and r.made_by == "code"}
    away |= {r.fact_id for r in all_facts} - facts.keys()
    for fact_id, fact in facts.items():
        follows = (fact.superseded_by, fact_id) in links or fact.superseded_by in away
        facts[fact_id] = _unmarked(fact, before.marks.get(fact_id or "", {}), follows=follows)
    return [*runs.values(), *facts.values(), *_rest(table, told, facts.keys() | runs.keys(), moment)]


def _rest(table: Iterable[rows.Row], told: Container[tuple[str, str]], nodes: Container[str | None], moment: Moment) -> Iterator[rows.Row]:
    """What hangs on the runs and facts that were there: quotes, links by hand, statistics without runs."""
    for row in table:
        match row:
            case rows.EvidenceRow():
                is_there = (row.fact_id, row.run_id) in told
            case rows.EdgeRow():
                has_ends = row.from_id in nodes and row.to_id in nodes
                is_there = row.made_by == "hand" and has_ends and _was(row.created_at, row.created_at, moment)
            case rows.PatternRow():
                is_there = _was(row.last_seen, None, moment)
            case _:
                is_there = False  # a profile that came without its runs says nothing of when
        if is_there:
            yield row


def _was(observed: datetime | None, recorded: datetime | None, moment: Moment) -> bool:
    """Whether something with these times was there; what has no time of its own was."""
    if moment.as_of is not None and observed is not None and observed > moment.as_of:
        return False
    return moment.known_at is None or recorded is None or recorded <= moment.known_at


def _by_then(row: rows.RunRow, as_of: datetime | None, is_told: bool) -> rows.RunRow | None:
    """The run as far as it had gone; `is_told`: something that it said had been observed."""
    ended = row.finished_at or row.started_at
    if as_of is None or (ended is not None and ended <= as_of):
        return row
    if not is_told:
        return None
    return row if ended is None else row.model_copy(update=_NOT_YET)


def _witnessed(row: rows.FactRow, runs: set[str | None], moment: Moment) -> rows.FactRow | None:
    """The fact with the testimony that was there, each with its time of recording; None if there was none."""
    told = [w.model_copy(update={"recorded_at": w.recorded_at or row.recorded_at}) for w in row.witnesses or (rows.WitnessRow(),)]
    left = tuple(w for w in told if w.run_id in runs and _was(w.observed_at or row.valid_from, w.recorded_at, moment))
    recorded_at = min((w.recorded_at for w in left if w.recorded_at), default=None)
    return row.model_copy(update={"witnesses": left, "recorded_at": recorded_at}) if left else None


def _unmarked(row: rows.FactRow, marks: dict[str, Any], *, follows: bool) -> rows.FactRow:
    """The fact as people had marked it. `follows`: what supersedes it does so by the facts alone, or was not there."""
    changed: dict[str, Any] = {name: marks[name] for name in ("pinned", "importance") if name in marks}
    if follows:
        changed |= {"superseded_by": None, "valid_to": None}
    if marks.get("edited") is False and row.unedited is not None:
        changed |= {"content": row.unedited, "unedited": None}
    return row.model_copy(update=changed)
