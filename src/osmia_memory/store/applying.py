"""Writing plans. Decides nothing: what a run's testimony does to the facts stands in the plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from osmia_memory.errors import InternalError, TenantError
from osmia_memory.models import Applied, Fact, Insert, Plan, Reinforce, Retire, TaskRun, Witness
from osmia_memory.store import codec, lexical, relating
from osmia_memory.store.operations import RETRACTED, Connection, Operations, checked_tenant, insert, take_numbers
from osmia_memory.store.reading import MANUAL_RUN_NO, RunVersion, State

MANUAL_RUN = ""  # the run id of testimony that was imported or saved by hand

FACT_TABLE = {**codec.FACT_COLUMNS, **codec.EXTRA_COLUMNS}
EXTRA = ", ".join(codec.EXTRA_COLUMNS)
_RUN_TABLE = {**codec.RUN_COLUMNS, "no": "BIGINT", "extractor": "VARCHAR", "vocabulary": "VARCHAR[]", "recorded_at": "TIMESTAMP"}
_WITNESS_TABLE = {"fact_no": "BIGINT", "run_no": "BIGINT", "observed_at": "TIMESTAMP", "recorded_at": "TIMESTAMP", "candidate": "VARCHAR"}
_EVIDENCE_TABLE = {"fact_no": "BIGINT", "run_no": "BIGINT", **codec.EVIDENCE_COLUMNS}

_Known = tuple[Fact, codec.Extra, Any]  # a fact, what the table holds beside it, when it was recorded


class Applying(Operations):
    """Writes that come from runs."""

    def apply(self, plan: Plan, *, recorded_at: datetime, extractor: str = "", vocabulary: Iterable[str] = ()) -> Applied:
        """Store one run and what it changes, in one transaction. The same version read by the same extractor again: nothing is written.

        `vocabulary` are lower-case names that occur in the run. A plan of the run `""` adds testimony given by hand and stores no run. The
        plan has to be made of the state as it is: take the state and apply the plan within one session.

        Raises:
            TenantError: the run has no tenant, or a fact of the plan another one.
        """
        return self.apply_many([plan], recorded_at=recorded_at, extractors=[extractor], vocabularies=[vocabulary])[0]

    def apply_many(
        self,
        plans: Sequence[Plan],
        *,
        recorded_at: datetime,
        extractors: Sequence[str] | None = None,
        vocabularies: Sequence[Iterable[str]] | None = None,
        again: bool = False,
    ) -> list[Applied]:
        """What `apply` does to one plan after the other, in one transaction; several times faster.

        Each plan has to be made of the state after the plan before it. `extractors` and `vocabularies` are as many as plans. `again` writes
        also what the same extractor says of the same version: a model may answer otherwise the second time.
        """
        readers = [""] * len(plans) if extractors is None else extractors
        words = [()] * len(plans) if vocabularies is None else vocabularies
        for plan in plans:
            _check(plan)
        entries = [RunEntry(p.run, tuple(v), x) for p, v, x in zip(plans, words, readers, strict=True)]
        with self._open_for_writing() as connection:
            batch = _gather(connection, list(zip(plans, entries, strict=True)), again)
            if any(not done.unchanged for done in batch.applied):
                with self._transaction(connection):
                    relate(connection, batch, write(connection, batch, recorded_at))
        return batch.applied


def _check(plan: Plan) -> None:
    tenant = checked_tenant(plan.run.tenant_id)
    for fact in plan.facts:
        if fact.tenant_id != tenant:
            raise TenantError(f"fact {fact.fact_id!r} of tenant {fact.tenant_id!r} in a plan for tenant {tenant!r}")
    for witness in _witnesses(plan):
        if witness.run_id != plan.run.run_id:
            raise InternalError(f"testimony of run {witness.run_id!r} in the plan of run {plan.run.run_id!r}")


def _witnesses(plan: Plan) -> Iterator[Witness]:
    for decision in plan.decisions:
        if isinstance(decision, Insert | Reinforce):
            yield decision.witness


# --- what the plans come to -------------------------------------------------------------------------------------------


class RunEntry(NamedTuple):
    """A run to be written."""

    run: TaskRun
    vocabulary: tuple[str, ...] = ()
    extractor: str = ""
    recorded_at: datetime | None = None  # None: now, or when it was first recorded


@dataclass
class Batch:
    """The sum of several plans: of each row, the last state."""

    stored_runs: dict[str, tuple[int, Any]]  # run id -> (number, when it was recorded)
    applied: list[Applied] = field(default_factory=list)
    runs: dict[str, RunEntry] = field(default_factory=dict)  # new or in a new version
    witnesses: dict[tuple[str, str], Witness] = field(default_factory=dict)  # by (fact id, run id)
    withdrawn: set[str] = field(default_factory=set)  # facts whose testimony by hand is replaced or retired
    facts: dict[str, Fact] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    edited: dict[str, str] = field(default_factory=dict)  # wordings that people gave to facts that are new here
    recorded: dict[tuple[str, str], datetime] = field(default_factory=dict)  # when testimony was first recorded, where that is known

    def add(self, plan: Plan, entry: RunEntry, retracted: set[str]) -> Applied:
        """Take one plan in. Retracted facts stay as they are, whatever it says of them."""
        run_id = plan.run.run_id
        if run_id == MANUAL_RUN:
            self.withdrawn |= {w.fact_id for w in _witnesses(plan)} | {d.fact_id for d in plan.decisions if isinstance(d, Retire)}
        else:
            self.runs[run_id] = entry
            self.witnesses = {key: w for key, w in self.witnesses.items() if key[1] != run_id}
        for witness in _witnesses(plan):
            if witness.fact_id not in retracted:
                self.witnesses[witness.fact_id, run_id] = witness
        for fact in plan.facts:
            if fact.fact_id not in retracted:
                self.facts[fact.fact_id] = fact
                self.gone.discard(fact.fact_id)
        for fact_id in set(plan.gone) - retracted:
            self.facts.pop(fact_id, None)
            self.gone.add(fact_id)
        kinds = [type(d) for d in plan.decisions]
        return Applied(kinds.count(Insert), kinds.count(Reinforce), kinds.count(Retire))


def _gather(connection: Connection, plans: Sequence[tuple[Plan, RunEntry]], again: bool) -> Batch:
    run_ids = [plan.run.run_id for plan, _ in plans if plan.run.run_id != MANUAL_RUN]
    rows = connection.execute(
        "SELECT run_id, version, extractor, no, recorded_at FROM runs WHERE run_id IN (SELECT unnest(?::VARCHAR[]))",
        [codec.storable_deep(run_ids)],
    ).fetchall()
    stored = {row[0]: RunVersion(row[1], row[2]) for row in rows}
    retracted = {row[0] for row in connection.execute("SELECT fact_id FROM tombstones").fetchall()}
    batch = Batch(stored_runs={row[0]: (row[3], row[4]) for row in rows})
    for plan, entry in plans:
        wanted = RunVersion(plan.run.version, entry.extractor)
        if stored.get(plan.run.run_id) == wanted and not again:
            batch.applied.append(Applied(unchanged=True))
            continue
        if plan.run.run_id != MANUAL_RUN:
            stored[plan.run.run_id] = wanted
        batch.applied.append(batch.add(plan, entry, retracted))
    return batch


def state_after(state: State, plan: Plan) -> State:
    """What `state_for` would return once `plan` is applied: the next plan of a batch can be made of it without asking the store."""
    told = {w.fact_id: w for w in _witnesses(plan)}
    after = {fact_id: known for fact_id, known in state.items() if fact_id not in plan.gone}
    for fact in plan.facts:
        others = [w for w in after[fact.fact_id][1] if w.run_id != plan.run.run_id] if fact.fact_id in after else []
        mine = [told[fact.fact_id]] if fact.fact_id in told else []
        after[fact.fact_id] = (fact, tuple(sorted([*others, *mine], key=lambda w: w.run_id)))
    return after


# --- writing ----------------------------------------------------------------------------------------------------------


def relate(connection: Connection, batch: Batch, numbers: Sequence[int]) -> None:
    """Work out what the facts with these row numbers are to others, within the caller's transaction."""
    for tenant in sorted({entry.run.tenant_id for entry in batch.runs.values()} | {fact.tenant_id for fact in batch.facts.values()}):
        relating.settle(connection, tenant, numbers)


def write(connection: Connection, batch: Batch, recorded_at: datetime) -> list[int]:
    """Bring the tables to the state that the batch describes, within the caller's transaction.

    Returns the row numbers of the facts that changed, and of those that had to do with removed ones.
    """
    now = codec.to_utc(recorded_at)
    fact_ids = list({*batch.facts, *batch.gone, *(fact_id for fact_id, _ in batch.witnesses), *batch.withdrawn})
    known = _known_facts(connection, fact_ids)
    run_numbers = {run_id: number for run_id, (number, _) in batch.stored_runs.items()}
    replaced = [number for run_id, number in run_numbers.items() if run_id in batch.runs]
    earlier = _take_back(connection, replaced, [known[f][0].no for f in batch.withdrawn if f in known])
    new_facts = [fact_id for fact_id in batch.facts if fact_id not in known]
    new_runs = [run_id for run_id in batch.runs if run_id not in run_numbers]
    numbers = iter(take_numbers(connection, len(new_facts) + len(new_runs) + len(batch.facts)))
    run_numbers |= {run_id: next(numbers) for run_id in new_runs}
    touched = remove_facts(connection, {fact_id: known[fact_id][0].no for fact_id in batch.gone if fact_id in known})
    changed = [(fact, *known[fact_id]) for fact_id, fact in batch.facts.items() if fact_id in known]
    added = [
        (batch.facts[f], codec.Extra(next(numbers), edited=batch.edited.get(f)), codec.to_utc(batch.facts[f].recorded_at) or now)
        for f in new_facts
    ]
    write_facts(connection, changed, added, numbers)
    known |= {fact.fact_id: (extra, now) for fact, extra, _ in added}
    keys = {key: (known[key[0]][0].no, run_numbers.get(key[1], MANUAL_RUN_NO)) for key in batch.witnesses if key[0] in known}
    earlier = {keys[key]: codec.to_utc(moment) for key, moment in batch.recorded.items()} | earlier
    write_witnesses(connection, {keys[key]: w for key, w in batch.witnesses.items() if key in keys}, earlier, now)
    _write_runs(connection, batch, run_numbers, now)
    return [*touched, *(known[fact_id][0].no for fact_id in batch.facts)]


def _write_runs(connection: Connection, batch: Batch, numbers: dict[str, int], now: Any) -> None:
    replaced = [run_id for run_id in batch.stored_runs if run_id in batch.runs]
    if replaced:
        connection.execute("DELETE FROM runs WHERE run_id IN (SELECT unnest(?::VARCHAR[]))", [codec.storable_deep(replaced)])
    rows = []
    for run_id, entry in batch.runs.items():
        first_recorded = batch.stored_runs[run_id][1] if run_id in batch.stored_runs else codec.to_utc(entry.recorded_at) or now
        words = sorted({word for word in entry.vocabulary if word})
        rows.append((*codec.run_row(entry.run), numbers[run_id], entry.extractor, words, first_recorded))
    insert(connection, "runs", _RUN_TABLE, rows)


def _known_facts(connection: Connection, fact_ids: list[str]) -> dict[str, tuple[codec.Extra, Any]]:
    """fact id -> (what the table holds beside the fact, when it was recorded)."""
    rows = connection.execute(
        f"SELECT fact_id, recorded_at, {EXTRA} FROM facts WHERE fact_id IN (SELECT unnest(?::VARCHAR[]))", [codec.storable_deep(fact_ids)]
    ).fetchall()
    return {row[0]: (codec.Extra(*row[2:]), row[1]) for row in rows}


def _take_back(connection: Connection, runs: list[int], facts_by_hand: list[int]) -> dict[tuple[int, int], Any]:
    """Remove what these runs, and people on these facts, said so far; not on retracted facts, which stay as they were.

    Returns when each testimony was first recorded, by (fact, run) number.
    """
    if not runs and not facts_by_hand:
        return {}
    which = (
        "(run_no IN (SELECT unnest($runs::BIGINT[])) OR (run_no = $manual AND fact_no IN (SELECT unnest($facts::BIGINT[])))) "
        f"AND fact_no NOT IN (SELECT no FROM facts WHERE fact_id IN {RETRACTED})"
    )
    parameters = {"runs": runs, "facts": facts_by_hand, "manual": MANUAL_RUN_NO}
    rows = connection.execute(f"SELECT fact_no, run_no, recorded_at FROM witnesses WHERE {which}", parameters).fetchall()
    for table in ("witnesses", "evidence"):
        connection.execute(f"DELETE FROM {table} WHERE {which}", parameters)
    return {(row[0], row[1]): row[2] for row in rows}


def remove_facts(connection: Connection, facts: Mapping[str, int]) -> list[int]:
    """Remove facts (id -> number) with their testimony and links; what they had superseded is current again.

    Returns the row numbers of the facts that code had linked with them.
    """
    if not facts:
        return []
    linked = set(relating.neighbours(connection, None, facts)) - set(facts.values())
    for table, column in (("facts", "no"), ("witnesses", "fact_no"), ("evidence", "fact_no"), ("slots", "fact_no")):
        connection.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT unnest(?::BIGINT[]))", [list(facts.values())])
    ids = {"ids": codec.storable_deep(list(facts))}
    within = "IN (SELECT unnest($ids::VARCHAR[]))"
    connection.execute(f"DELETE FROM edges WHERE from_id {within} OR to_id {within}", ids)
    connection.execute(f"UPDATE facts SET superseded_by = NULL, valid_to = NULL WHERE superseded_by {within}", ids)
    return sorted(linked)


def write_facts(connection: Connection, changed: Sequence[_Known], added: Sequence[_Known], numbers: Iterator[int]) -> None:
    """Replace `changed` and insert `added` facts; index those whose words changed, under the next of `numbers`."""
    rows: list[tuple[Any, ...]] = []
    to_index: list[tuple[Fact, int, lexical.Document]] = []
    to_file: list[tuple[Fact, int]] = []
    for fact, extra, recorded_at in [*changed, *added]:
        if not fact.content:  # a stub stays a stub
            extra = extra._replace(doc=None, doc_length=None, doc_key=None)
        else:
            words = lexical.document(replace(fact, content=extra.edited) if extra.edited is not None else fact)
            if extra.doc is None or extra.doc_key != words.key:
                number = next(numbers)
                to_index.append((fact, number, words))
                to_file.append((fact, extra.no))
                extra = extra._replace(doc=number, doc_length=words.length, doc_key=words.key)
            extra = extra._replace(pruned_at=None)
        row = dict(zip(codec.FACT_COLUMNS, codec.fact_row(fact), strict=True)) | {"recorded_at": recorded_at}
        rows.append((*row.values(), *extra))
    if changed:
        connection.execute("DELETE FROM facts WHERE no IN (SELECT unnest(?::BIGINT[]))", [[extra.no for _, extra, _ in changed]])
    insert(connection, "facts", FACT_TABLE, rows)
    lexical.index(connection, to_index)
    known = {extra.no for _, extra, _ in changed}
    relating.write_slots(connection, to_file, [no for _, no in to_file if no in known])


def write_witnesses(
    connection: Connection, witnesses: dict[tuple[int, int], Witness], earlier: dict[tuple[int, int], Any], recorded_at: datetime | None
) -> None:
    """Insert testimony by (fact, run) number with its evidence; the time it was first recorded is kept."""
    rows = [
        (*key, codec.to_utc(w.observed_at), earlier.get(key, recorded_at), codec.candidate_json(w.candidate))
        for key, w in witnesses.items()
    ]
    quotes = [(*key, *codec.evidence_row(i, e)) for key, w in witnesses.items() for i, e in enumerate(w.candidate.evidence)]
    insert(connection, "witnesses", _WITNESS_TABLE, rows)
    insert(connection, "evidence", _EVIDENCE_TABLE, quotes)
