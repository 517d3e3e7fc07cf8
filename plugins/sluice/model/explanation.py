"""Why the target holds what it holds of one object: each thing that became of it, with all that led to it.

State and artifacts outlive their time by nothing: what was removed meanwhile is `gone`, in words, and the rest is told all the
same. Values are text, the same for equal values.
"""

from collections.abc import Sequence

from pydantic import Field

from sluice.model.base import Frozen, ObjectKey, PublicationId, ShardKey
from sluice.model.evidence import ValueChange
from sluice.model.ledger import WRITING_OUTCOMES, LedgerObject, ObjectEvent, Outcome, Publication
from sluice.model.review import Review
from sluice.model.run import Run


def passed_by(publication: Publication | None, review: Review | None) -> str | None:
    """Say who let a publication pass; None: nobody knows, or had to."""
    decision = review.decision if review is not None else None
    if decision is None:
        return publication.approved_by if publication is not None else None
    said = f": {decision.comment}" if decision.comment else ""
    return f"{decision.by} ({decision.via}, {decision.at:%Y-%m-%d %H:%M:%SZ}){said}"


def what_became(event: ObjectEvent, publication: Publication | None, *, is_undone: bool) -> str:
    """Say what became of an object by an event; `is_undone`: what took its publication back has not left it alone."""
    if publication is not None and publication.undoes is not None:
        return f"{'put back' if event.new_hash else 'taken out'}, since publication {publication.undoes} was undone"
    if publication is not None and is_undone:
        return f"{event.outcome}, and undone by publication {publication.rolled_back_by}"
    return event.outcome.value


class RawRecord(Frozen):
    """One record as the supplier sent it, byte for byte, and where it is kept."""

    artifact: str = Field(description="the key of the raw chunk in the bucket")
    shard: ShardKey
    chunk: int
    page: int = Field(description="counted from 0 within the chunk")
    index: int = Field(description="counted from 0 within the page")
    data: bytes


class Trace(Frozen):
    """One thing that became of an object, followed back to the supplier."""

    event: ObjectEvent
    publication: Publication | None
    review: Review | None
    run: Run | None
    values: dict[str, str | None] | None = Field(description="the row as it was delivered; None: there is none, or it is gone")
    raw: RawRecord | None
    said: str | None = Field(default=None, description="why it was rejected")
    gone: tuple[str, ...] = Field(default=(), description="what cannot be told any more, and why")

    @property
    def is_written(self) -> bool:
        """Whether it changed the target table."""
        return self.event.outcome in WRITING_OUTCOMES

    @property
    def by(self) -> str | None:
        """Who let it pass: a person with the way the answer came and the comment, or the policy."""
        return passed_by(self.publication, self.review)

    @property
    def took_out(self) -> bool:
        """Whether the target holds no row of the object since."""
        return self.is_written and self.event.new_hash is None


class FieldOrigin(Frozen):
    """A value of an object, and the publication that brought it."""

    field: str
    value: str | None
    publication: PublicationId | None
    is_certain: bool = Field(description="whether it is known that the publication before had brought another value")


class Explanation(Frozen):
    """All that can be told of one object."""

    sync: str
    key: ObjectKey
    held: LedgerObject | None
    traces: tuple[Trace, ...] = Field(description="newest first")
    earlier: int = Field(ge=0, description="events that are not among the traces, being older")
    altered: str | None = Field(description="how the table differs from what was published; None: it does not")
    alterations: tuple[ValueChange, ...] = Field(default=(), description="published, and held by the table now")

    @property
    def present(self) -> Trace | None:
        """The trace of the row that was published last; None if it is too old, or the object is gone."""
        written = self._written
        return written[0] if written and not written[0].took_out else None

    def what(self, trace: Trace) -> str:
        """Say what became of the object; what took the publication back may have left this object alone."""
        publication = trace.publication
        undone = publication is not None and self.trace_of(publication.rolled_back_by) is not None
        return what_became(trace.event, publication, is_undone=undone)

    def trace_of(self, publication: PublicationId | None) -> Trace | None:
        """Return what a publication wrote."""
        return next((trace for trace in self._written if trace.event.publication == publication), None)

    def source_of(self, trace: Trace) -> Trace:
        """Return the trace that leads to the supplier: of a row that was put back, the one that had brought it first."""
        if trace.raw is None and trace.event.outcome is Outcome.ROLLED_BACK and trace.event.new_hash is not None:
            older = self.traces[self.traces.index(trace) + 1 :]
            return next((seen for seen in older if seen.raw and seen.event.new_hash == trace.event.new_hash), trace)
        return trace

    @property
    def origins(self) -> tuple[FieldOrigin, ...]:
        """The fields of the present row, each with the publication its value dates from; none if its values are gone."""
        written = self._written
        if not written or written[0].values is None:
            return ()
        return tuple(self._origin(name, written) for name in written[0].values)

    def former(self, field: str) -> tuple[FieldOrigin, ...]:
        """Return all values a field has had, newest first; those of publications whose rows are gone are not among them."""
        written, found = self._written, []
        while written:
            if written[0].values is None or field not in written[0].values:
                written = written[1:]
                continue
            origin = self._origin(field, written)
            found.append(origin)
            brought = [trace.event.publication for trace in written].index(origin.publication)
            written = written[brought + 1 :]
        return tuple(found)

    @property
    def _written(self) -> Sequence[Trace]:
        return [trace for trace in self.traces if trace.is_written]

    def _origin(self, field: str, written: Sequence[Trace]) -> FieldOrigin:
        """Go back from the first of some traces as long as the value stays the same."""
        newest, *older = written
        value = (newest.values or {}).get(field)
        brought, is_certain = newest, self.earlier == 0
        for trace in older:
            if trace.took_out:
                is_certain = True
                break
            if trace.values is None:
                is_certain = False
                break
            if field not in trace.values or trace.values[field] != value:
                is_certain = True
                break
            brought = trace
        return FieldOrigin(field=field, value=value, publication=brought.event.publication, is_certain=is_certain)
