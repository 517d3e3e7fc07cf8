"""Trying: a spec comes in; what a run of it would ask for, map and change goes out. Nothing is written."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from sluice.errors import (
    AnswerUnusable,
    ConnectionInvalid,
    RecordsMissing,
    SchemaOutdated,
    SupplierRefused,
    SupplierUnavailable,
    TargetMismatch,
    TargetUnavailable,
    UsageInvalid,
)
from sluice.flow.admission import mode_of
from sluice.flow.bounds import Bounds
from sluice.flow.shard_plans import all_shards, marks_of
from sluice.mapping import shapes
from sluice.mapping.mapper import MappedChunk, Mapper
from sluice.mapping.pages import PageSplitter
from sluice.mapping.traces import rows_in
from sluice.model.base import RunId, Token
from sluice.model.fields import FieldSpec, LiteralText
from sluice.model.lifecycle import RunStatus, ShardStatus, Step
from sluice.model.run import Failure, Mode, Origin, ReviewMode, Run, RunRequest
from sluice.model.shard import Shard, ShardPlan, some_of
from sluice.model.spec import SyncSpec
from sluice.model.trial import Comparison, Hint, Trial, TrialQuestion, TrialReject, TrialRow
from sluice.ports import DiffScope, PageRequest, Services, ShardQuestion, Source

_SUPPLIER: Final = (SupplierUnavailable, SupplierRefused, AnswerUnusable)
"""What is the supplier's doing, or the spec's, and is told with all that came before it."""

_NO_TARGET: Final = (TargetUnavailable, ConnectionInvalid, SchemaOutdated)
"""Why there may be nothing to compare with, which takes nothing from the rest."""


def try_spec(services: Services, spec: SyncSpec, question: TrialQuestion) -> Trial:
    """Fetch a few records of one shard, map them, and compare them with what the target holds.

    What the supplier does wrong is told as the trial's `failure`. Raises `UsageInvalid` or `SpecInvalid` if it cannot be asked
    at all.
    """
    policy = services.policy(spec.stage)
    mode = mode_of(spec, _request(spec, question))
    marks = marks_of(services, spec.sync, mode, question.window)
    wanted = ShardQuestion(mode=mode, window=question.window, begun_at=services.clock.now(), marks=marks)
    plans = all_shards(services, spec, wanted)
    plan = _chosen(spec, plans, question)
    run = _run(spec, mode, wanted)
    bounds = Bounds(run, spec, services.clock)
    shard = Shard(
        run=run.id, key=plan.key, params=plan.params, status=ShardStatus.PENDING, watermark=marks.get(plan.key), token=run.token
    )
    fetched = _Fetched(spec.source.stored_records)
    asked = fetched.take(services.source(spec, policy), bounds, shard, question.limit)
    mapper = Mapper(spec, bounds.until, bounds.supplied_at, services.transform(spec, plan.key))
    mapped = mapper.map_chunk([fetched.page()], "trial", lambda _: {})
    comparison, incomparable, failure = _compared(services, spec, plan, mapped)
    documents = shapes.decoded(fetched.records)
    return Trial(
        sync=spec.sync,
        mode=mode,
        window=question.window,
        shard=plan.key,
        params=plan.params,
        shards=len(plans),
        watermark=asked.watermark if asked else None,
        until=asked.until if asked else None,
        pages=fetched.pages,
        records=tuple(record.decode(errors="backslashreplace") for record in fetched.records),
        is_cut=fetched.is_cut,
        columns={declared.name: declared.type.sql for declared in spec.fields},
        rows=tuple(
            TrialRow(key=key, is_gone=values is None, values=values or {}) for key, values in rows_in(mapped.rows, spec)
        ),
        rejects=tuple(
            TrialReject(record=reject.address.index, **reject.model_dump(include={"key", "field", "error", "message"}))
            for reject in mapped.rejects
        ),
        paths=shapes.named(documents) if documents else None,
        hints=(
            *_records_hints(spec, fetched),
            *_field_hints(spec, documents),
            *_paging_hints(spec, fetched),
            *_watermark_hints(mapped),
        ),
        comparison=comparison,
        incomparable=incomparable,
        failure=fetched.failure or failure,
    )


def _run(spec: SyncSpec, mode: Mode, wanted: ShardQuestion) -> Run:
    """Return the run that this would be, which nobody stores."""
    return Run(
        id=RunId("trial"),
        sync=spec.sync,
        stage=spec.stage,
        tenant=spec.tenant,
        request_key="trial",
        mode=mode,
        window=wanted.window,
        shards=(),
        review=ReviewMode.POLICY,
        spec_hash="",
        transformer_version=spec.version,
        origin=Origin(),
        status=RunStatus.RUNNING,
        step=Step.FETCH,
        token=Token(0),
        created_at=wanted.begun_at,
    )


def _request(spec: SyncSpec, question: TrialQuestion) -> RunRequest:
    return RunRequest(sync=spec.sync, mode=question.mode, window=question.window, origin=Origin())


def _chosen(spec: SyncSpec, plans: list[ShardPlan], question: TrialQuestion) -> ShardPlan:
    if not plans:
        raise UsageInvalid(f"{spec.sync} has nothing new to be cut into shards: try it with --mode full")
    if question.shard is None:
        return plans[0]
    for plan in plans:
        if plan.key == question.shard:
            return plan
    there = some_of([plan.key for plan in plans])
    raise UsageInvalid(f"{spec.sync} has no shard {question.shard}; its shards: {there}")


@dataclass
class _Fetched:
    """What has come from the supplier so far."""

    place: str
    """Where the list of records stands in a page."""
    pages: int = 0
    records: list[bytes] = field(default_factory=list)
    first: bytes | None = None
    """The first page as it came."""
    ends_early: bool = False
    """Whether the first page was the last, though nothing was cut."""
    is_cut: bool = False
    failure: Failure | None = None

    def take(self, source: Source, bounds: Bounds, shard: Shard, limit: int) -> PageRequest | None:
        """Take pages until there are as many records as were asked for; return what was asked, if it came to that."""
        splitter, asked = PageSplitter(self.place), None
        try:
            # One more than is shown tells whether there are more.
            asked = replace(bounds.request(shard, source), most=limit + 1)
            for page in source.pages(asked):
                bounds.take(page)
                self.first = page.body if self.first is None else self.first
                self.pages += 1
                found = [bytes(raw) for raw in splitter.split(page.body).records]
                wanted = limit - len(self.records)
                self.records += found[:wanted]
                self.is_cut = len(found) > wanted or (len(found) == wanted and page.cursor is not None)
                self.ends_early = self.pages == 1 and page.cursor is None
                if len(self.records) == limit:
                    break
        except _SUPPLIER as error:
            self.failure = Failure.of(error)
        return asked

    def page(self) -> bytes:
        """Return a page with these records alone."""
        body = b"[" + b",".join(self.records) + b"]"
        for key in reversed(self.place.split(".") if self.place else []):
            body = b"{" + msgspec.json.encode(key) + b":" + body + b"}"
        return body


def _watermark_hints(mapped: MappedChunk) -> list[Hint]:
    """Tell of records that are dated later than the supplier's own time."""
    if mapped.postdated is None:
        return []
    message = f"records are {mapped.postdated}; they are taken in, and move no watermark"
    return [Hint(path=("source", "watermark"), message=message)]


def _records_hints(spec: SyncSpec, fetched: _Fetched) -> list[Hint]:
    """Name the key of the spec that leads to no list."""
    if fetched.failure is None or fetched.failure.error != RecordsMissing.__name__:
        return []
    path = ("source", "format", "records") if spec.source.kind == "files" else ("source", "records")
    return [Hint(path=path, message="does not lead to the list of records")]


def _field_hints(spec: SyncSpec, documents: list[Any]) -> list[Hint]:
    """Name each field whose path leads nowhere in any of the records, though no function could have put it there."""
    if not documents or spec.transform is not None:
        return []
    hints = []
    for index, declared in enumerate(spec.fields):
        problems = [shapes.missing(path, documents, "record") for path in declared.paths]
        if declared.coalesce is not None and None in problems:
            continue
        hints += [
            Hint(path=("fields", index, *_key_of(declared, place)), message=problem)
            for place, problem in enumerate(problems)
            if problem is not None
        ]
    return hints


def _key_of(declared: FieldSpec, place: int) -> tuple[str | int, ...]:
    """Return which key of a field has its path of that number."""
    if declared.coalesce is not None:
        return ("coalesce", place)
    if declared.concat is not None:
        parts = [number for number, part in enumerate(declared.concat) if not isinstance(part, LiteralText)]
        return ("concat", parts[place])
    return ("path" if declared.path else "name",)


def _paging_hints(spec: SyncSpec, fetched: _Fetched) -> list[Hint]:
    """Tell a last page from one whose sign that another follows stands elsewhere."""
    source = spec.source
    if source.kind != "rest" or source.detail is not None or fetched.first is None or not source.records:
        return []
    answers = shapes.decoded([fetched.first])
    hints = []
    for key in ("path", "has_more", "total", "pages"):
        place = getattr(source.cursor, key, None)
        if place is None or (key == "path" and not fetched.ends_early):
            continue
        problem = shapes.missing(tuple(place.split(".")), answers, "answer")
        if problem is not None:
            there = shapes.named(answers)
            hints.append(Hint(path=("source", "cursor", key), message=f"{problem}; it has: {there}"))
    return hints


def _compared(
    services: Services, spec: SyncSpec, plan: ShardPlan, mapped: MappedChunk
) -> tuple[Comparison | None, str | None, Failure | None]:
    """Return the comparison, or why there is none, and what the table itself would make a run fail with."""
    try:
        return _comparison(services, spec, plan, mapped), None, None
    except _NO_TARGET as error:
        return None, error.message, None
    except TargetMismatch as error:
        return None, error.message, Failure.of(error)


def _comparison(services: Services, spec: SyncSpec, plan: ShardPlan, mapped: MappedChunk) -> Comparison:
    target = services.target(spec)
    table_changes = target.check()
    scope = DiffScope(complete=False, transformer_version=spec.version, deletes=spec.target.deletes != "ignore")
    with target.diffing() as diffing:
        diffing.stage(plan.key, 0, mapped.rows)
        diffing.stage_rejected([reject.key for reject in mapped.rejects if reject.key is not None])
        diffing.compare(scope)
        counts = diffing.counts()
        inspecting = diffing.inspecting(samples=max(1, mapped.objects + len(mapped.rejects)))
        for shard, seq in inspecting.needed():
            inspecting.load_rows(shard, seq, mapped.rows)
        _, objects = inspecting.differences()
    return Comparison(table_changes=table_changes, outcomes=dict(counts.outcomes), unchanged=counts.unchanged, objects=objects)
