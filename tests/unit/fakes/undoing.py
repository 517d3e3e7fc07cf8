"""Before-images in memory: rows and ledger of some objects as they were, held against what became of them, and put back."""

import json
import pickle
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

from sluice.errors import LedgerMoved, NotUndoable
from sluice.model.base import ObjectKey, PublicationId
from sluice.model.evidence import ObjectSample, ValueChange
from sluice.model.ledger import LedgerObject, ObjectState, Outcome, Publication
from sluice.model.undo import Conflict, ConflictKind
from sluice.ports import Undo
from tests.unit.fakes.ledger import MemoryLedger

Rows = dict[ObjectKey, dict[str, Any]]
Image = tuple[dict[str, Any] | None, LedgerObject | None]


def pack(images: Mapping[ObjectKey, Image]) -> bytes:
    """Return before-images as bytes."""
    return pickle.dumps(dict(sorted(images.items())), protocol=4)


def unpack(images: bytes) -> dict[ObjectKey, Image]:
    """Return the before-images that the bytes hold."""
    held: dict[ObjectKey, Image] = pickle.loads(images)  # noqa: S301 - the fake's own
    return held


class MemoryUndoing:
    """The rows and the ledger of one sync, on which publications are taken back."""

    def __init__(self, sync: str, rows: Rows, ledger: MemoryLedger, altered: Iterable[ObjectKey]) -> None:
        self._sync = sync
        self._rows = rows
        self._ledger = ledger
        self._altered = set(altered)

    def images(self, keys: Iterable[ObjectKey]) -> bytes:
        """Return some objects as they are."""
        return pack({key: (self._rows.get(key), self._ledger.objects.get((self._sync, key))) for key in keys})

    def compare(self, undone: PublicationId, images: BinaryIO, diff: BinaryIO) -> Undo:
        """Return what would be restored; the diff is one line of JSON for each object."""
        held = unpack(images.read())
        conflicts = [conflict for key in held if (conflict := self._conflict(undone, key)) is not None]
        restored = [key for key in held if key not in {conflict.key for conflict in conflicts}]
        entries = [
            {"key": key, "outcome": Outcome.ROLLED_BACK, **({"seq": 0, "position": 0} if held[key][0] is not None else {})}
            for key in restored
        ]
        diff.write("\n".join(json.dumps(entry) for entry in entries).encode())
        live = sum(known.state is ObjectState.LIVE for known in self._ledger.objects.values())
        return Undo(
            objects=len(held),
            restored=len(restored),
            live_before=live,
            live_after=live,
            conflicts=conflicts,
            changes=(),
            samples=[self._sample(key, held[key][0]) for key in restored],
        )

    def load(self, approved: Iterable[ObjectKey], undone: PublicationId, images: BinaryIO) -> dict[ObjectKey, Image]:
        """Return what was approved of the images."""
        present = self._ledger.publication(undone)
        if present is None or present.rolled_back_by is not None:
            raise NotUndoable(f"publication {undone} has been taken back meanwhile", publication=undone)
        if moved := [key for key in approved if self._conflict(undone, key) is not None]:
            raise LedgerMoved(f"{len(moved)} objects of publication {undone} were changed", objects=len(moved))
        return {key: image for key, image in unpack(images.read()).items() if key in set(approved)}

    def restore(self, images: Mapping[ObjectKey, Image], publication: Publication) -> None:
        """Write rows and ledger as they were; let both publications name each other."""
        now = {"publication": publication.id, "last_changed_run": publication.run}
        for key, (row, known) in images.items():
            if row is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = row
            present = self._ledger.objects[self._sync, key]
            gone = present.model_copy(update={**now, "state": ObjectState.DELETED})
            self._ledger.objects[self._sync, key] = known.model_copy(update=now) if known is not None else gone
        for place, made in enumerate(self._ledger.published):
            if made.id == publication.undoes:
                self._ledger.published[place] = made.model_copy(update={"rolled_back_by": publication.id})

    def _conflict(self, undone: PublicationId, key: ObjectKey) -> Conflict | None:
        known = self._ledger.objects.get((self._sync, key))
        present = self._ledger.publication(undone)
        if present is not None and present.rolled_back_by is not None:
            return Conflict(key=key, kind=ConflictKind.PUBLISHED, publication=present.rolled_back_by)
        if known is not None and known.publication != undone:
            return Conflict(key=key, kind=ConflictKind.PUBLISHED, publication=known.publication)
        if known is not None and known.state is ObjectState.LIVE and key not in self._rows:
            return Conflict(key=key, kind=ConflictKind.GONE)
        return Conflict(key=key, kind=ConflictKind.ALTERED) if known is None or key in self._altered else None

    def _sample(self, key: ObjectKey, row: dict[str, Any] | None) -> ObjectSample:
        old, new = self._rows.get(key) or {}, row or {}
        changes = [
            ValueChange(field=name, old=_text(old.get(name)), new=_text(new.get(name)))
            for name in {**old, **new}
            if old.get(name) != new.get(name)
        ]
        return ObjectSample(key=key, outcome=Outcome.ROLLED_BACK, shard=None, values=tuple(changes))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
