"""A table and its ledger in; what others have changed in the table since it was published, out. Nothing is written.

The table is read once, a batch at a time, so that memory does not grow with it. A publication that comes in meanwhile disturbs
nothing: what it brought is newer than the newest publication from before, and left out.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeVar

from sluice.errors import NotFound, TargetMismatch
from sluice.model.base import ObjectKey, PublicationId, RunId
from sluice.model.ledger import LedgerObject, ObjectState
from sluice.model.reconciliation import Alteration, Difference, Reconciliation
from sluice.model.spec import SyncSpec
from sluice.ports import Held, Services
from sluice.upkeep.explanation import changes
from sluice.upkeep.tracing import pinned, row_of

_AT_A_TIME: Final = 5_000
_T = TypeVar("_T")


def reconcile(services: Services, spec: SyncSpec, limit: int, tell: Callable[[int], None]) -> Reconciliation:
    """Compare the table with the ledger, and name up to `limit` objects of each kind of difference.

    `tell` hears from time to time how many rows have been looked at. Raises `NotFound` if nothing was published yet, and
    `TargetMismatch` if the table is not there or does not fit.
    """
    newest = services.ledger(spec).publications(spec.sync, 1)
    if not newest:
        raise NotFound(f"sync {spec.sync} has published nothing yet: there is nothing to compare {spec.target.table} with")
    comparison = _Comparison(services, pinned(services, newest[0].run) or spec, newest[0].id, limit)
    target = services.target(comparison.spec)
    with target.missing() as keys:
        for some_keys in _batches(keys):
            comparison.note_missing(some_keys)
    with target.held() as rows:
        for some_rows in _batches(rows):
            comparison.compare(some_rows)
            tell(comparison.rows)
    return comparison.result()


def _batches(items: Iterator[_T]) -> Iterator[list[_T]]:
    while batch := list(islice(items, _AT_A_TIME)):
        yield batch


@dataclass
class _Comparison:
    """What has been found so far."""

    services: Services
    spec: SyncSpec
    """The one of the newest publication."""
    newest: PublicationId
    limit: int
    rows: int = 0
    published_meanwhile: int = 0
    unclear: int = 0
    counts: Counter[Difference] = field(default_factory=Counter)
    alterations: dict[Difference, list[Alteration]] = field(default_factory=lambda: defaultdict(list))
    specs: dict[RunId, SyncSpec | None] = field(default_factory=dict)

    def note_missing(self, keys: Sequence[ObjectKey]) -> None:
        known = self._known(keys)
        for key in keys:
            if self._is_as_before(held := known.get(key)) and held is not None:
                self._note(key, Difference.MISSING, held)

    def compare(self, rows: Sequence[Held]) -> None:
        self.rows += len(rows)
        known = self._known([row.key for row in rows if row.key is not None])
        changed: dict[ObjectKey, Held] = {}
        for row in rows:
            held = known.get(row.key) if row.key is not None else None
            if row.key is None or held is None:
                self._note(row.key or self._unfit_key(row), Difference.UNKNOWN, None)
            elif (difference := _difference(held, row)) and self._is_as_before(held):
                if difference is Difference.CHANGED:
                    changed[row.key] = row
                else:
                    self._note(row.key, difference, held)
        self._compare_again(changed, known)

    def result(self) -> Reconciliation:
        return Reconciliation(
            sync=self.spec.sync,
            table=self.spec.target.table,
            rows=self.rows,
            counts={difference: self.counts[difference] for difference in Difference if self.counts[difference]},
            alterations=tuple(found for difference in Difference for found in self.alterations[difference]),
            published_meanwhile=self.published_meanwhile,
            unclear=self.unclear,
        )

    def _compare_again(self, changed: Mapping[ObjectKey, Held], known: Mapping[ObjectKey, LedgerObject]) -> None:
        """Look at rows that seem changed under the spec they were published with: its fields may have been others."""
        by_run: dict[RunId, list[ObjectKey]] = defaultdict(list)
        for key in changed:
            by_run[known[key].last_changed_run].append(key)
        for run, keys in by_run.items():
            spec = self._pinned(run)
            if spec is None:
                self.unclear += len(keys)
                continue
            rows = changed if spec.fields == self.spec.fields else self._held_under(spec, keys)
            for key in keys:
                if (row := rows.get(key)) is None:
                    self.unclear += 1
                elif row.row_hash != known[key].row_hash:
                    self._note(key, Difference.CHANGED, known[key], spec, row)

    def _held_under(self, spec: SyncSpec, keys: Sequence[ObjectKey]) -> Mapping[ObjectKey, Held]:
        """Return the rows as another spec reads them; none if the table does not fit it any more."""
        try:
            with self.services.target(spec).held(keys) as rows:
                return {row.key: row for row in rows if row.key is not None}
        except TargetMismatch:
            return {}

    def _pinned(self, run: RunId) -> SyncSpec | None:
        if run not in self.specs:
            self.specs[run] = pinned(self.services, run)
        return self.specs[run]

    def _known(self, keys: Sequence[ObjectKey]) -> dict[ObjectKey, LedgerObject]:
        return self.services.ledger(self.spec).known(self.spec.sync, keys)

    def _is_as_before(self, held: LedgerObject | None) -> bool:
        """Whether the ledger's row stood as it does when the comparison began."""
        if held is not None and held.publication <= self.newest:
            return True
        self.published_meanwhile += 1
        return False

    def _note(
        self,
        key: str,
        difference: Difference,
        held: LedgerObject | None,
        spec: SyncSpec | None = None,
        row: Held | None = None,
    ) -> None:
        self.counts[difference] += 1
        if self.counts[difference] > self.limit:
            return
        published = row_of(self.services, self.spec, held) if held is not None and row is not None else None
        self.alterations[difference].append(
            Alteration(
                key=key,
                difference=difference,
                publication=held.publication if held is not None else None,
                changes=changes(spec, published, row) if spec and row and published else (),
            )
        )

    def _unfit_key(self, row: Held) -> str:
        return ", ".join(str(row.values[name]) for name in self.spec.object.key)


def _difference(held: LedgerObject, row: Held) -> Difference | None:
    if held.state is ObjectState.DELETED:
        return Difference.REVIVED if row.is_live else None
    if not row.is_live:
        return Difference.DELETED
    return Difference.CHANGED if row.row_hash != held.row_hash else None
