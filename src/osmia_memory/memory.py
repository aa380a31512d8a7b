"""Memory: the facade that the command line, hooks and servers call. Opens nothing until it is used, holds nothing open."""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from osmia_memory import render, retrieve, similarity
from osmia_memory.config import Settings
from osmia_memory.errors import InputError, RowError, StoreError, TenantError
from osmia_memory.models import Edge, Fact, Outcome, Query, Ranked, Skip, TaskRun, TaskType
from osmia_memory.store.fact_store import FactStore

if TYPE_CHECKING:  # a query does not pay for reading transcripts
    from osmia_memory import feedback, presenting
    from osmia_memory.budget import Budget
    from osmia_memory.digest import Digest
    from osmia_memory.llm import Completer, Completion
    from osmia_memory.model_pass import ModelPass
    from osmia_memory.nominating import Nominations
    from osmia_memory.pipeline import RunReport
    from osmia_memory.store.reading import Change
    from osmia_memory.transcripts.read import ReadOptions

_LOAD_WHOLE = 3000  # facts of the query's owners up to which all are ranked; of more, the best lexical matches
_SHORTLIST = 600
_LATEST = 300
_LOG = logging.getLogger(__name__)
_PAID_FOR_SECONDS = 60.0
MAX_DEPTH = 4  # steps of a walk along links


class Block(NamedTuple):
    """An answer to a query: the text for the prompt ("" if nothing is known) and what it was made of."""

    text: str
    facts: tuple[Ranked, ...]
    known: bool  # whether anything was ever stored for this tenant and repository


class _Found(NamedTuple):
    """What there is to rank for a query."""

    known: bool  # the repository, or without one the tenant
    facts: list[Fact]
    statistics: retrieve.Statistics | None  # None: `facts` are all
    words: set[str]  # terms of the task that occur in the repository's runs
    contradictions: list[tuple[str, str]]


class Related(NamedTuple):
    """A fact that a link leads to, and how many steps away it is."""

    step: int
    edge: Edge
    fact: Fact


class ImportReport(NamedTuple):
    """What an import did; `rejected` are (file:line, reason)."""

    added: int
    known: int
    rejected: tuple[tuple[str, str], ...]


class OutcomesReport(NamedTuple):
    """What an import of outcome rows did; `rejected` are (file and row, reason)."""

    added: int
    known: int
    rejected: tuple[tuple[str, str], ...]


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    """A JSON value with every text in it redacted; keys and ids stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {k: v if k.endswith("_id") or k == "type" else _redacted(v, redact) for k, v in value.items()}
    return [_redacted(v, redact) for v in value] if isinstance(value, list) else value


def _shown(ranked: Sequence[Ranked], text: str, provenance: bool) -> tuple[Ranked, ...]:
    """Those of the facts whose lines are in the block: the budget may have left some out."""
    lines = text.splitlines()
    if text.count("\n- ") == len(ranked):
        return tuple(ranked)
    return tuple(r for r in ranked if render.prior_knowledge([r], provenance=provenance).splitlines()[-1] in lines)


def utc_now() -> datetime:
    """The clock that `Memory` uses unless it is given one."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Memory:
    """One tenant's view of one store. Other tenants' knowledge cannot be reached through it."""

    store_path: Path
    tenant: str
    settings: Settings = field(default_factory=Settings)
    clock: Callable[[], datetime] = field(default=utc_now)
    mask_key: bytes | None = None  # instead of the store's own, for transcripts whose masks must be the same in every store
    name: str | None = None  # what messages call the store, where it is a copy

    def __post_init__(self) -> None:
        if not isinstance(self.tenant, str) or not self.tenant.strip():
            raise TenantError(f"a tenant is required, got {self.tenant!r}; pass one, there is no wildcard")

    @cached_property
    def store(self) -> FactStore:
        """The store, opened for each operation and let go of."""
        return FactStore(self.store_path, lock_wait_seconds=self.settings.lock_wait_seconds)

    def has_store(self) -> bool:
        """Whether there is anything at the store's path: asking and deciding create no file."""
        try:
            return self.store_path.exists()
        except OSError as error:  # a name too long, a folder that may not be entered
            raise StoreError(f"cannot look at the store {str(self.store_path)!r}: {error.strerror}; pass another file") from error

    # --- writing ----------------------------------------------------------------------------------------------------------

    def extract(
        self,
        paths: Sequence[str],
        *,
        stdin: bytes | None = None,
        repo: str | None = None,
        engine: str | None = None,
        outcome: Outcome | None = None,
        at: datetime | None = None,
        dry_run: bool = False,
        workers: int = 0,
        keep_transcripts: bool = False,
        model_pass: "ModelPass | None" = None,
    ) -> "Iterator[RunReport | Skip]":
        """Read transcripts and store what they teach, run by run; `dry_run` writes nothing and shows each run's own plan.

        A run that is stored already in this version costs one look-up. What could not be read comes out as `Skip`.
        `workers` processes take part in the reading of more than a few megabytes. With a `model_pass`, the model is asked about each run
        once its rules' facts are stored, unless it is a dry run. `keep_transcripts` leaves each report its transcript.
        """
        from osmia_memory import pipeline
        from osmia_memory.transcripts.sources import sources
        from osmia_memory.workers import digests

        keep = keep_transcripts or model_pass is not None
        asks_store = not dry_run or (keep and self.has_store())  # an estimate is to know what is answered already
        options = self._options(self._mask_key(asks_store), repo, engine, outcome, at)
        if not dry_run:
            self.take_spool()
        stored = {} if dry_run else self.store.run_versions(self.tenant)
        # What the rules know may have parts that no model has read.
        items = digests(sources(paths, stdin), options, {} if keep else stored, workers=workers, keep=keep)
        if dry_run:
            return pipeline.preview(items)
        if model_pass is not None:
            return self._with_model(items, model_pass, options.redactor.redact)
        return pipeline.store_runs(items, self.store, self.clock, self.tenant, stored)

    def _with_model(
        self, items: "Iterator[Digest | Skip]", model_pass: "ModelPass", redact: Callable[[str], str]
    ) -> "Iterator[RunReport | Skip]":
        from osmia_memory import pipeline
        from osmia_memory.model_pass import propose

        # what was paid for is worth a longer wait
        patient = FactStore(self.store_path, lock_wait_seconds=max(_PAID_FOR_SECONDS, self.settings.lock_wait_seconds))
        return propose(pipeline.store_runs(items, patient, self.clock, self.tenant), model_pass, patient, self.clock, redact)

    def record_injection(
        self, session: str, *, repo: str | None, engine: str | None, fact_ids: Sequence[str], tokens: int, withheld: bool = False
    ) -> str:
        """Note what a coming run is shown, without waiting for the store; returns the record's key. `session` is the run's own id.

        Raises:
            InputError: no id; StoreError: the spool beside the store cannot be written.
        """
        from osmia_memory import spool

        if not session.strip():
            raise InputError("a record needs the id of the coming run")
        name = self._redactor(b"ids are no secrets")(session.strip())
        return spool.put(self.store_path, self.tenant, name, self.clock(), repo, engine, fact_ids, tokens, withheld=withheld)

    def take_spool(self) -> list[tuple[str, str]]:
        """Take the waiting records into the store; returns (file, reason) of what is none, which is set aside."""
        from osmia_memory import spool

        found = spool.waiting(self.store_path)
        self.store.record_injections(found.records)
        spool.done(found)
        for path, reason in found.bad:
            _LOG.warning("%s is no record of an injection (%s); it was set aside as %s", path, reason, path.with_suffix(".bad").name)
        return [(str(path), reason) for path, reason in found.bad]

    def feedback(self, *, repo: str | None = None) -> "list[feedback.Verdict]":
        """How runs fared with and without each fact that was ever shown; what seems to do harm first."""
        from osmia_memory import feedback

        if not self.has_store():
            return []
        self.take_spool()
        with self.store.session() as s:
            recorded, runs = s.injections(self.tenant), {r.session_id: r for r in s.runs(self.tenant) if r.parent_session_id is None}
            known = s.facts(self.tenant, include_superseded=True)
        shown = [
            feedback.Shown(
                run.run_id if (run := runs.get(r.session)) else None,
                run.repo if run else r.repo,
                run.task_type if run else None,
                run.outcome if run else "unknown",
                r.withheld,
                {i: i in (r.used or ()) for i in r.fact_ids},
            )
            for r in recorded
        ]
        asked = {r.session for r in recorded}
        others = [feedback.Shown(r.run_id, r.repo, r.task_type, r.outcome, False, {}) for r in runs.values() if r.session_id not in asked]
        found = feedback.verdicts(known, shown, others)
        owned = {f.fact_id for f in known if repo in (None, f.owner)}
        return [v for v in found if v.fact_id in owned]

    def nominate(self, completer: "Completer", budget: "Budget", *, repo: str | None = None, dry_run: bool = False) -> "Nominations":
        """Let a model name pairs of facts that cannot both hold, among those that code finds worth asking about (`nominating`).

        What was spent is recorded; `undo` takes back what one call named. A dry run says how many requests it would take.
        """
        from osmia_memory import nominating

        found = list(nominating.groups(self.facts(repo=repo)))
        if dry_run or not found:
            return nominating.Nominations((), len(found), 0, 0)
        named = nominating.nominate(found, completer, budget, self.recorder())
        self.store.nominate(self.tenant, named.pairs, completer.model, at=self.clock())
        return named

    def recorder(self) -> "Callable[[str, Completion], None]":
        """Puts what a completion has cost into the store's ledger."""
        from osmia_memory.store.ledger import Request as Recorded

        redact = self._redactor(self.store.redaction_key())

        def record(prompt: str, completion: "Completion") -> None:
            attempts = [
                Recorded(a.model, a.state, a.tokens_in, a.tokens_out, a.cost_usd, a.latency_s, redact(a.error)) for a in completion.attempts
            ]
            self.store.record_requests(self.tenant, "", prompt, prompt, attempts, at=self.clock())

        return record

    def redact(self, text: str) -> str:
        """The text without secrets, masked with this store's key."""
        return self._redactor(self.store.redaction_key())(text)

    def order_commits(self, checkout: Path, repo: str | None = None) -> int:
        """Learn from a checkout which of the commits that runs began at come before which; later facts are then those of later commits.

        `repo` is the key of its repository, by default the one that its remote tells. Returns how many pairs are new.

        Raises:
            InputError: no checkout, or nobody can say of which repository.
        """
        from osmia_memory import commits
        from osmia_memory.transcripts import repo_key

        key = repo or repo_key.from_cwd(str(checkout.resolve()))
        if key is None:
            raise InputError(f"`{checkout}` has no remote that names its repository; give --repo as well")
        known = self.store.commits(self.tenant, key) if self.has_store() else []
        found = commits.ancestors(checkout, known)
        return self.store.order_commits(self.tenant, key, found) if found else 0

    def _mask_key(self, asks_store: bool) -> bytes:
        if self.mask_key is not None:
            return self.mask_key
        return self.store.redaction_key() if asks_store else b"a dry run keeps no masks"

    def _options(self, key: bytes, repo: str | None, engine: str | None, outcome: Outcome | None, at: datetime | None) -> "ReadOptions":
        from osmia_memory.transcripts.read import ReadOptions
        from osmia_memory.transcripts.redact import Redactor

        return ReadOptions(tenant=self.tenant, repo=repo, engine=engine, outcome=outcome, at=at, redactor=Redactor(key))

    def retract(self, fact_id: str, reason: str) -> None:
        """Withdraw a fact for good; later runs do not bring it back.

        Raises:
            InputError: the tenant has no such fact; so do `restore`, `edit` and `pin`.
        """
        self._check_store(fact_id)
        self.store.retract(self.tenant, fact_id, self._redactor(self.store.redaction_key())(reason), at=self.clock())

    def restore(self, fact_id: str) -> None:
        """Bring back a fact that was retracted or superseded; what superseded it will not do so again."""
        self._check_store(fact_id)
        self.store.restore(self.tenant, fact_id, at=self.clock())

    def undo(self, change_id: int | None = None) -> "Change":
        """Take back one change by hand or by a model (None: the latest); the store is then as before it. Returns the change.

        Raises:
            InputError: no such change, or one whose text is gone for good.
        """
        if not self.has_store():
            raise InputError(f"there is no store at `{self.store_path}`, so nothing to take back")
        return self.store.undo(self.tenant, change_id, at=self.clock())

    def changes(self, limit: int | None = 20) -> "list[Change]":
        """What people and models changed, latest first."""
        return self.store.changes(self.tenant, limit) if self.has_store() else []

    def edit(self, fact_id: str, content: str) -> str:
        """Reword a fact; later runs do not change the wording back. Returns the wording as stored, without secrets."""
        self._check_store(fact_id)
        wording = self._redactor(self.store.redaction_key())(content)
        self.store.edit(self.tenant, fact_id, wording, at=self.clock())
        return wording

    def pin(self, fact_id: str, pinned: bool) -> None:
        """Set or take off a pin."""
        self._check_store(fact_id)
        (self.store.pin if pinned else self.store.unpin)(self.tenant, fact_id, at=self.clock())

    def _check_store(self, fact_id: str) -> None:
        if not self.has_store():
            raise InputError(f"tenant {self.tenant!r} has no fact {fact_id!r}: there is no store at `{self.store_path}`")

    @contextmanager
    def at(self, *, as_of: datetime | None = None, known_at: datetime | None = None) -> "Iterator[Memory]":
        """This memory as it was: a copy that holds only what had been observed by `as_of` and recorded by `known_at`, for reading.

        Its clock stands at `as_of`, else at `known_at`, and everything it answers is folded, settled and decayed as of then. Without
        either it is this memory itself.

        Raises:
            InputError: a time without a zone.
        """
        if as_of is None and known_at is None:
            yield self
            return
        for name, moment in (("as_of", as_of), ("known_at", known_at)):
            if moment is not None and moment.tzinfo is None:
                raise InputError(f"`{name}` is {moment!r}, without a zone; give a timezone-aware time")
        import tempfile

        from osmia_memory import past, reconcile

        wanted = past.Moment(as_of, known_at)
        clock = wanted.clock
        assert clock is not None
        with tempfile.TemporaryDirectory(prefix="osmia-memory-") as folder:
            name = f"{self.store_path} as of {clock:%Y-%m-%dT%H:%M:%SZ}"
            copy = replace(self, store_path=Path(folder) / "past.duckdb", clock=lambda: clock, name=name)
            if self.has_store():
                with self.store.session() as s:  # all of one moment, whoever writes meanwhile
                    given = self.store.rows_with_times(self.tenant, retracted_after=known_at)
                    before = past.decided(s.changes(self.tenant), known_at)
                    around = self.store.surroundings(self.tenant)
                copy.store.import_rows(
                    self.tenant,
                    past.until(given, wanted, before),
                    reconcile.refold(self.tenant),
                    recorded_at=clock,
                    around=past.around(around, wanted, before),
                )
            yield copy

    # --- asking -----------------------------------------------------------------------------------------------------------

    def prior_knowledge(
        self,
        task: str,
        *,
        repo: str | None,
        engine: str | None = None,
        task_type: TaskType | None = None,
        max_facts: int | None = None,
        budget_tokens: int | None = None,
        provenance: bool = False,
    ) -> Block:
        """The block for a new task; the empty string if nothing that is known belongs to it. Only reads."""
        query = Query(self.tenant, task, repo, engine, task_type)
        if not self.has_store():
            return Block("", (), known=False)
        known, facts, statistics, known_terms, contradictions = self._candidates(query)
        ranked = retrieve.rank(
            query,
            facts,
            now=self.clock(),
            known_terms=known_terms,
            embed=self._embed() if facts else None,
            statistics=statistics,
            contradictions=contradictions,
            max_facts=self.settings.max_facts_per_query if max_facts is None else max_facts,
            decay_interval_hours=self.settings.decay_interval_hours,
            prune_threshold=self.settings.prune_threshold,
        )
        budget = self.settings.max_block_tokens if budget_tokens is None else budget_tokens
        text = render.prior_knowledge(ranked, budget_tokens=budget, provenance=provenance)
        return Block(text, _shown(ranked, text, provenance), known)

    def _candidates(self, query: Query) -> _Found:
        owners = retrieve.owners(query)
        terms = similarity.query_terms(query.task)
        with self.store.session() as s:
            known = s.known_repo(self.tenant, query.repo) if query.repo else self.tenant in s.known_tenants()
            words = s.terms_known(self.tenant, query.repo, similarity.terms(query.task)) if query.repo else set()
            facts = s.facts(self.tenant, owners, limit=_LOAD_WHOLE + 1) if owners else []
            disputed = s.contradictions(self.tenant) if facts else []
            facts += (
                self._of_other_repositories(s.shared(self.tenant, query.repo.partition("/")[0], query.repo), facts) if query.repo else []
            )
            if len(facts) <= _LOAD_WHOLE:
                return _Found(known, facts, None, words, disputed)
            counted = s.term_statistics(self.tenant, owners, terms)
            best = [fact_id for fact_id, _ in s.search(self.tenant, owners, terms, _SHORTLIST)]
            # how things are run here is seen by nearly every run, so the latest facts hold it
            shortlist = {f.fact_id: f for f in (*s.facts_by_id(self.tenant, best), *facts[:_LATEST])}
        return _Found(known, list(shortlist.values()), retrieve.Statistics(counted.documents, counted.frequencies), words, disputed)

    @staticmethod
    def _of_other_repositories(shared: Sequence[Fact], own: Sequence[Fact]) -> list[Fact]:
        """What the owner's other repositories have in common, without what this one knows by itself."""
        if not shared:
            return []
        from osmia_memory import aggregate

        known = {f.content for f in own} | {f.claim for f in own if f.claim}
        found = aggregate.across_repositories(shared, shared[0].owner.partition("/")[0])
        return [f for f in found if f.content not in known and f.claim not in known]

    def _embed(self) -> Callable[[Sequence[str]], Any] | None:
        if not self.settings.embedding:
            return None
        from osmia_memory import embedding

        return embedding.load()

    def facts(self, *, repo: str | None = None, engine: str | None = None, kind: str | None = None, min_runs: int = 1) -> list[Fact]:
        """Current facts, most supported and then most recent first.

        `engine` alone: the facts about that engine; with `repo`: those of the repository that runs of that engine support.
        """
        if not self.has_store():
            return []
        owners = [("repo", repo)] if repo else [("engine", engine)] if engine else None
        found = [f for f in self.store.facts(self.tenant, owners) if f.runs >= min_runs and kind in (None, f.fact_kind)]
        if repo and engine:
            found = [f for f in found if engine in f.engines]
        return sorted(found, key=lambda f: (-f.runs, -f.last_seen.timestamp(), f.fact_id))

    def fact(self, prefix: str) -> Fact:
        """The fact with this id, or with an id that begins so.

        Raises:
            InputError: none, or more than one.
        """
        ids = [i for i in self.store.find(self.tenant, prefix) if i.startswith("f1:")] if self.has_store() else []
        if len(ids) > 1:
            raise InputError(f"{prefix!r} is the beginning of {len(ids)} facts: {', '.join(ids[:4])}; give more of the id")
        fact = self.store.fact(self.tenant, ids[0]) if ids else None
        if fact is None and self.has_store() and (pruned := self.store.pruned(self.tenant, prefix)):
            raise InputError(f"{pruned[0]} was pruned at {pruned[1]:%Y-%m-%d}, and its text is gone; new evidence brings it back")
        if fact is None:
            raise InputError(
                f"tenant {self.tenant!r} has no fact {prefix!r} in `{self.name or self.store_path}`; `osmia-memory list` shows the ids"
            )
        return fact

    def evidence_of(self, block: Block) -> "list[presenting.Line]":
        """The lines of a block, each with the best quotes behind it."""
        from osmia_memory import presenting

        told = [f for r in block.facts for f in (r.fact, *r.also, *((r.disputed_by,) if r.disputed_by else ()))]
        return presenting.lines(block.facts, {f.fact_id: self.testimony(f.fact_id) for f in told if f.fact_id.startswith("f1:")})

    def restorable(self, prefix: str) -> str:
        """Id of the retracted or superseded fact that begins so, with or without its tag.

        Raises:
            InputError: none, or more than one.
        """
        bare = prefix.strip().removeprefix("f1:")
        ids = [i for i in self.store.tombstones(self.tenant) if i.removeprefix("f1:").startswith(bare)] if bare and self.has_store() else []
        if not ids and self.has_store():
            found = self.store.facts_by_id(self.tenant, [i for i in self.store.find(self.tenant, prefix) if i.startswith("f1:")])
            ids = [f.fact_id for f in found if f.superseded_by is not None]
        if len(ids) != 1:
            named = f": {', '.join(sorted(ids)[:4])}" if ids else ""
            raise InputError(f"{len(ids)} retracted or superseded facts begin with {prefix!r}{named}")
        return ids[0]

    def testimony(self, fact_id: str) -> list[dict[str, Any]]:
        """Every run that said it, oldest first, with its quotes and where they stand."""
        with self.store.session() as s:
            witnesses = sorted(s.witnesses(self.tenant, fact_id), key=lambda w: (w.observed_at, w.run_id))
            runs = {w.run_id: s.run(self.tenant, w.run_id) for w in witnesses if w.run_id}
        return [
            {
                "observed_at": w.observed_at,
                "source": w.candidate.source,
                "content": w.candidate.content,
                "run": None
                if (run := runs.get(w.run_id)) is None
                else {
                    "run_id": run.run_id,
                    "engine": run.engine,
                    "session": run.session_id,
                    "outcome": run.outcome,
                    "source": run.source,
                    "title": run.title,
                },
                "evidence": [
                    {"record": e.record, "event": e.event_index, "quote": e.quote, "span": list(e.span), "polarity": e.polarity}
                    for e in w.candidate.evidence
                ],
            }
            for w in witnesses
        ]

    def related(self, fact_id: str, depth: int = 2) -> list[Related]:
        """What typed links lead to from a fact within `depth` steps (1 to 4), nearest first; superseded facts too.

        Raises:
            InputError: `depth` is out of range.
        """
        if not 1 <= depth <= MAX_DEPTH:
            raise InputError(f"`depth` is {depth}; a walk takes 1 to {MAX_DEPTH} steps")
        found: list[Related] = []
        seen, frontier = {fact_id}, {fact_id}
        with self.store.session() as s:
            for step in range(1, depth + 1):
                links = s.edges(self.tenant, frontier)
                ends = {end for e in links for end in (e.from_id, e.to_id)}
                facts = {f.fact_id: f for f in s.facts_by_id(self.tenant, sorted(ends - seen))}
                told = [Related(step, e, facts[other]) for e in links for other in (e.from_id, e.to_id) if other in facts]
                found += sorted(told, key=lambda r: (r.edge.created_at, r.fact.fact_id))
                frontier, seen = set(facts), seen | set(facts)
        return found

    def history(self, fact_id: str) -> list[Related]:
        """What a fact superseded, was superseded by or is disputed by, step by step, oldest first."""
        found = [r for r in self.related(fact_id, MAX_DEPTH) if r.edge.relation != "relates_to"] if self.has_store() else []
        return sorted(found, key=lambda r: (r.fact.valid_from, r.fact.fact_id))

    # --- outcomes without transcripts -------------------------------------------------------------------------------------

    def import_outcomes(
        self,
        files: Sequence[tuple[str, bytes]],
        *,
        engine: str | None = None,
        repo: str | None = None,
        at: datetime | None = None,
        of: bytes | None = None,
        dry_run: bool = False,
    ) -> OutcomesReport:
        """Store outcome rows (name and bytes of each file) as runs without events, for rates and profiles.

        `engine` and `repo` overrule the rows; `at` stands in for times that they lack. A task that this engine has a transcript of, or
        that is stored with this outcome already, is known and counts once. `of` names all instances, for files that list only successes.
        """
        from osmia_memory import outcomes
        from osmia_memory.transcripts.outcome_rows import OutcomeRow, instances, read

        redact = self._redactor(b"a dry run keeps no masks" if dry_run else self.store.redaction_key())
        there = instances(of, "--of") if of is not None else set()
        rows: list[TaskRun] = []
        rejected: list[tuple[str, str]] = []
        for name, data in files:
            for row in read(data, name, there):
                if isinstance(row, OutcomeRow) and not (engine or row.engine):
                    rejected.append((name, "the rows do not say which engine it was; give --engine"))
                    break
                if isinstance(row, OutcomeRow):
                    rows.append(outcomes.as_run(row, self.tenant, engine, repo, at or self.clock(), name, redact, assumed=at is None))
                else:
                    rejected.append((row.where, row.reason))
        if dry_run:
            return OutcomesReport(len(rows), 0, tuple(rejected))
        added, known = outcomes.store(rows, self.store, self.tenant, self.clock())
        return OutcomesReport(added, known, tuple(rejected))

    # --- rows ---------------------------------------------------------------------------------------------------------------

    def import_rows(self, data: bytes, *, name: str, ignore_unknown: bool = False, dry_run: bool = False) -> ImportReport:
        """Take JSONL rows in, redacted; a bad row is rejected with its line and field, the others are imported.

        Raises:
            RowError, InputError: rows that are fine by themselves but do not fit together (evidence without its fact, a link without ends).
            TenantError: a row of another tenant.
        """
        from osmia_memory import reconcile
        from osmia_memory.store import rows

        redact = self._redactor(b"a dry run keeps no masks" if dry_run else self.store.redaction_key())
        good: list[rows.Row] = []
        rejected: list[tuple[str, str]] = []
        for number, text in enumerate(data.decode("utf-8", "replace").split("\n"), 1):  # a text may hold what `splitlines` cuts at
            if not text.strip():
                continue
            where = f"{name}:{number}"
            try:
                good.append(rows.parse(_redacted(json.loads(text), redact), where, ignore_unknown=ignore_unknown))
            except (RowError, ValueError, RecursionError) as error:
                rejected.append((where, str(error).removeprefix(f"{where}: ") if isinstance(error, RowError) else f"no JSON: {error}"))
        if dry_run or not good:
            return ImportReport(len(good), 0, tuple(rejected))
        done = self.store.import_rows(self.tenant, good, reconcile.refold(self.tenant), recorded_at=self.clock())
        return ImportReport(
            done.added + done.extended + done.runs + done.edges + done.statistics, done.unchanged + done.retracted, tuple(rejected)
        )

    def _redactor(self, key: bytes) -> Callable[[str], str]:
        from osmia_memory.transcripts.redact import Redactor

        return Redactor(key).redact

    def export_rows(self, *, repo: str | None = None, recorded: bool = False) -> Iterator[str]:
        """The tenant's knowledge as sorted, canonical lines; equal knowledge gives equal lines.

        With `repo`: its runs and facts, with their evidence and the links between them.
        """
        from osmia_memory.store import rows

        if not self.has_store():
            return
        ids: set[str | None] = set()  # runs and facts come before the evidence and links that name them
        for row in self.store.export_rows(self.tenant, recorded=recorded):
            match row:
                case rows.RunRow():
                    chosen, own_id = row.repo == repo, row.run_id
                case rows.FactRow():
                    chosen, own_id = (row.scope, row.owner) == ("repo", repo), row.fact_id
                case rows.EvidenceRow():
                    chosen, own_id = row.fact_id in ids, None
                case rows.EdgeRow():
                    chosen, own_id = {row.from_id, row.to_id} <= ids, None
                case rows.PatternRow():
                    chosen, own_id = row.group.get("repo") == repo, None
                case _:
                    chosen, own_id = False, None
            if repo is None or chosen:
                ids.add(own_id)
                yield rows.line(row)

    def forget(self, *, run: str | None = None, repo: str | None = None, dry_run: bool = False) -> tuple[int, int]:
        """Remove a run (by its id or session id) or a repository for good; returns how many runs and facts are gone.

        Raises:
            InputError: no such run, or not exactly one of `run` and `repo`.
        """
        from osmia_memory import reconcile

        if (run is None) == (repo is None):
            raise InputError(f"give exactly one of `run` and `repo` to forget, got run={run!r} and repo={repo!r}")
        there = self.has_store()
        runs = self.store.runs(self.tenant, repo) if there else []
        if run is not None:
            runs = [r for r in runs if run in (r.run_id, r.session_id)]
            if not runs:
                raise InputError(f"tenant {self.tenant!r} has no run {run!r} in `{self.store_path}`")
        if dry_run:
            return len(runs), self._only_supported_by({r.run_id for r in runs}, repo) if there else 0
        fold = reconcile.refold(self.tenant)
        done = [self.store.forget_run(self.tenant, r.run_id, fold, at=self.clock()) for r in runs] if repo is None else []
        if repo is not None and there:
            done = [self.store.forget_repo(self.tenant, repo, fold, at=self.clock())]
        return sum(d.runs for d in done), sum(d.facts for d in done)

    def _only_supported_by(self, runs: set[str], repo: str | None) -> int:
        """How many facts nobody but these runs supports, or belong to the repository."""
        with self.store.session() as s:
            owned = set(s.states(self.tenant, [("repo", repo)])) if repo is not None else set()
            touched = {fact_id for run_id in runs for fact_id in s.facts_of_run(self.tenant, run_id)} - owned
            told = s.state_for(self.tenant, touched)
        return len(owned) + sum({w.run_id for w in witnesses} <= runs for _, witnesses in told.values())

    def verify(self) -> list[str]:
        """What does not hold together in the store, all tenants; empty for a sound one."""
        from osmia_memory import reconcile

        if not self.has_store():
            raise InputError(f"there is no store at `{self.store_path}`; `osmia-memory extract` makes one")
        return [" ".join(map(str, problem)) for problem in self.store.verify(reconcile.refold)]

    def doctor(self) -> dict[str, Any]:
        """What can be said about the store's file, whatever state it is in."""
        return self.store.doctor()

    # --- statistics -------------------------------------------------------------------------------------------------------

    def statistics(self, *, repo: str | None = None) -> dict[str, Any]:
        """Counts and rates over the stored runs: as `reporting.statistics`, all zero without a store."""
        from osmia_memory import reporting

        return reporting.statistics(self.store if self.has_store() else None, self.tenant, self.facts(repo=repo), repo)
