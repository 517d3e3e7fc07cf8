"""An object in; why the target holds what it holds of it, and all it held before, out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sluice.errors import NotFound, TargetMismatch
from sluice.mapping.traces import canonical
from sluice.model.base import ObjectKey
from sluice.model.evidence import ValueChange
from sluice.model.explanation import Explanation, Trace
from sluice.model.ledger import LedgerObject, ObjectEvent, ObjectState
from sluice.model.spec import SyncSpec
from sluice.ports import Held, Services
from sluice.upkeep.tracing import pinned, trace, with_row

_NEAR: Final = 3


@dataclass(frozen=True)
class Standing:
    """What ledger and table hold of an object."""

    known: LedgerObject | None
    events: Sequence[ObjectEvent]
    """The oldest first."""
    spec: SyncSpec
    """Under which it was published last, as far as that is kept; else that of today."""
    row: Held | None
    altered: str | None
    """How the table differs from what was published; None: it does not."""

    @property
    def values(self) -> Mapping[str, str | None]:
        """The fields of the row in the table; none if there is no row."""
        return canonical(self.spec, self.row.values) if self.row is not None else {}


def standing(services: Services, spec: SyncSpec, key: ObjectKey) -> Standing:
    """Look an object up, in the ledger and in the table; raise `NotFound`, with the keys around it, for one nobody knows."""
    ledger = services.ledger(spec)
    known, events = ledger.object(spec.sync, key), ledger.events(spec.sync, key)
    if known is None and not events:
        near = ledger.near(spec.sync, key, _NEAR)
        where = f"in key order it would stand among {', '.join(near)}" if near else "nothing of this sync was published yet"
        raise NotFound(f"the ledger of {spec.sync} knows no object {key}: {where}", sync=spec.sync, near=near)
    its_spec = pinned(services, known.last_changed_run) if known is not None else None
    as_published = its_spec or spec
    row, trouble = _in_the_table(services, as_published, key)
    if known is not None and its_spec is None:
        trouble = trouble or _unclear(known, row)
    return Standing(known, events, as_published, row, trouble or altered(known, row))


def explain(services: Services, spec: SyncSpec, key: ObjectKey, limit: int, largest: int | None = None) -> Explanation:
    """Follow the newest `limit` events of an object back to the supplier, and look whether the table still agrees.

    Artifacts of more than `largest` bytes are not fetched for it, where that is given. Raises `NotFound` as `standing` does.
    """
    stands = standing(services, spec, key)
    known, events, row = stands.known, stands.events, stands.row
    traces = _traces(services, spec, key, events[max(0, len(events) - limit) :], largest)
    if known is not None and row is not None and row.row_hash == known.row_hash:
        traces = tuple(_with_values(seen, known, dict(stands.values)) for seen in traces)
    return Explanation(
        sync=spec.sync,
        key=key,
        held=known,
        traces=traces,
        earlier=len(events) - len(traces),
        altered=stands.altered,
        alterations=_alterations(stands.spec, known, row, traces) if known is not None and row is not None else (),
    )


def altered(known: LedgerObject | None, row: Held | None) -> str | None:
    """Say how the row of the table differs from what was published last; None: it does not."""
    is_live = row is not None and row.is_live
    if known is None or known.state is ObjectState.DELETED:
        return "others have put its row there" if is_live else None
    if row is None:
        return "others have removed its row"
    if not is_live:
        return "others have marked its row as deleted"
    return "others have changed its row" if row.row_hash != known.row_hash else None


def _unclear(known: LedgerObject, row: Held | None) -> str | None:
    """Say that a row differs which another spec than today's may have made; None: it does not."""
    if row is None or not row.is_live or known.state is ObjectState.DELETED or row.row_hash == known.row_hash:
        return None
    return "it is not as today's spec has it, and the one it was published under is gone: others may have changed it"


def changes(spec: SyncSpec, published: Mapping[str, str | None], row: Held) -> tuple[ValueChange, ...]:
    """Return the fields in which a row of the table differs from what was published."""
    present = canonical(spec, row.values)
    return tuple(
        ValueChange(field=name, old=value, new=present[name])
        for name, value in published.items()
        if name in present and present[name] != value
    )


def _in_the_table(services: Services, spec: SyncSpec, key: ObjectKey) -> tuple[Held | None, str | None]:
    """Return the row of the table, or why it cannot be compared."""
    try:
        with services.target(spec).held([key]) as found:
            return next(iter(list(found)), None), None
    except TargetMismatch as error:
        return None, f"it cannot be compared: {error.message}"


def _traces(
    services: Services, spec: SyncSpec, key: ObjectKey, events: Sequence[ObjectEvent], largest: int | None
) -> tuple[Trace, ...]:
    """Return the traces, newest first: each knows what the row was that it replaced."""
    traces: list[Trace] = []
    later: Trace | None = None
    for event in reversed(events):
        found = trace(services, spec, key, event, later, largest=largest)
        traces.append(found)
        later = found if found.is_written else later
    return tuple(traces)


def _with_values(seen: Trace, known: LedgerObject, values: dict[str, str | None]) -> Trace:
    """Let the table tell what a trace does not know any more."""
    if seen.values is not None or not _is_of(seen, known):
        return seen
    return with_row(seen, values)


def _alterations(spec: SyncSpec, known: LedgerObject, row: Held, traces: Sequence[Trace]) -> tuple[ValueChange, ...]:
    published = next((seen.values for seen in traces if _is_of(seen, known)), None)
    return changes(spec, published, row) if published is not None and row.is_live else ()


def _is_of(seen: Trace, known: LedgerObject) -> bool:
    """Whether a trace is of the row that the ledger knows: a rollback may have put it back under a spec of other fields."""
    if not seen.is_written or seen.took_out:
        return False
    return seen.event.new_hash == known.row_hash or seen.event.publication == known.publication
