"""One thing that became of an object comes in; what led to it goes out: publication, review, run, row and raw bytes.

What has outlived its time is told to be gone. A store that cannot be reached is no such thing, and raises.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from sluice.errors import AnswerUnusable, ArtifactCorrupt, NotFound, StateUnreadable
from sluice.mapping.columns import reading_in
from sluice.mapping.reject_lines import read
from sluice.mapping.traces import Place, Record, Values, image_in, place_in, record_at, record_in, row_in
from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import ObjectKey, ReviewId, RunId, ShardKey
from sluice.model.explanation import RawRecord, Trace
from sluice.model.ledger import LedgerObject, ObjectEvent, Outcome, Publication
from sluice.model.reject import Reject
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.model.spec import SyncSpec
from sluice.ports import Services

_DIFF: Final = "the diff, which leads to its row and its raw bytes"
_ROW: Final = "its row"
_RAW: Final = "its raw bytes"
_REJECT: Final = "why it was rejected"


def pinned(services: Services, run: RunId) -> SyncSpec | None:
    """Return the spec a run was admitted with; None if it is gone, or another release wrote it."""
    for pointer in services.pointers.of(run, ArtifactKind.SPEC)[-1:]:
        try:
            return SyncSpec.model_validate_json(services.artifacts.get(pointer))
        except (ArtifactCorrupt, ValidationError):
            break
    return None


def trace(
    services: Services,
    spec: SyncSpec,
    key: ObjectKey,
    event: ObjectEvent,
    later: Trace | None = None,
    *,
    largest: int | None = None,
) -> Trace:
    """Follow an event back. `later` is the trace of what was written next: it knows the row from before as well.

    Artifacts of more than `largest` bytes are told to be too large, where that is given.
    """
    publication = services.ledger(spec).publication(event.publication) if event.publication is not None else None
    following = _Following(services, pinned(services, event.run) or spec, key, event, largest)
    review = following.review(publication)
    run = following.run()
    values, raw, said = None, None, None
    if event.outcome is Outcome.REJECTED:
        raw, said = following.reject()
    elif event.outcome is Outcome.ROLLED_BACK:
        values = following.put_back(publication)
    elif place := following.place(review):
        values = following.row(place) if event.outcome is not Outcome.DELETED else None
        raw = following.raw(place)
    if values is None and event.new_hash is not None and later is not None:
        values = following.image(later.event.run)
    found = Trace(
        event=event,
        publication=publication,
        review=review,
        run=run,
        values=None,
        raw=raw,
        said=said,
        gone=tuple(dict.fromkeys(following.gone)),
    )
    return found if values is None else with_row(found, values)


def with_row(found: Trace, values: Values) -> Trace:
    """Return the trace with its row, from wherever that is known: it is not gone."""
    return found.model_copy(update={"values": values, "gone": tuple(lost for lost in found.gone if not lost.startswith(_ROW))})


def row_of(services: Services, spec: SyncSpec, held: LedgerObject) -> Values | None:
    """Return the row of an object as it was published last; None if it is gone."""
    for event in reversed(services.ledger(spec).events(held.sync, held.key)):
        if event.publication == held.publication:
            following = _Following(services, pinned(services, event.run) or spec, held.key, event)
            publication = services.ledger(spec).publication(held.publication)
            if event.outcome is Outcome.ROLLED_BACK:
                return following.put_back(publication)
            place = following.place(following.review(publication))
            return following.row(place) if place is not None else None
    return None


@dataclass
class _Following:
    """An event on its way back."""

    services: Services
    spec: SyncSpec
    key: ObjectKey
    event: ObjectEvent
    largest: int | None = None
    gone: list[str] = field(default_factory=list)
    kept_until: datetime | None = None
    """Until when what the run stored is kept, as far as that is known."""

    def review(self, publication: Publication | None) -> Review | None:
        if publication is None:
            return None
        try:
            review = self.services.reviews.get(ReviewId(publication.review))
        except (NotFound, StateUnreadable) as error:
            self.gone.append(f"review {publication.review}: {error.message}")
            return None
        self.kept_until = review.diff.expires_at
        return review

    def run(self) -> Run | None:
        try:
            return self.services.runs.get(self.event.run)
        except (NotFound, StateUnreadable) as error:
            self.gone.append(f"run {self.event.run}: {error.message}")
            return None

    def place(self, review: Review | None) -> Place | None:
        """Return where the new row stands; None if there never was one, as of an object that was absent."""
        pointers = [review.diff] if review is not None else self._pointers(ArtifactKind.DIFF, _DIFF)
        for pointer in pointers[-1:]:
            with self._losing(_DIFF):
                return place_in(self._bytes(pointer), self.key)
        return None

    def row(self, place: Place) -> Values | None:
        """Return the row; a chunk that was mapped twice has two artifacts, and the later one the more rows."""
        for pointer in reversed(self._pointers(ArtifactKind.ROWS, _ROW, place)):
            with self._losing(_ROW):
                values = row_in(self._bytes(pointer), self.spec, self.key, place)
                if values is not None:
                    return values
        if not any(lost.startswith(_ROW) for lost in self.gone):
            self.gone.append(f"{_ROW}: it was mapped again since")
        return None

    def raw(self, place: Place) -> RawRecord | None:
        """Return the supplier's bytes."""
        reading = self._reading(place)
        for pointer in self._pointers(ArtifactKind.RAW, _RAW, place) if place.raw_hash is not None else []:
            with self._losing(_RAW):
                pages = self.services.codec.pages(self._bytes(pointer))
                found = record_in(pages, self.spec, place.raw_hash or b"", reading)
                if found is not None:
                    return _raw(pointer, found)
                self.gone.append(f"{_RAW}: they were fetched again since, and came otherwise")
        return None

    def _reading(self, place: Place) -> int | None:
        """Return how the records of the place were read, as far as that is known."""
        for pointer in reversed(self.services.pointers.of(self.event.run, ArtifactKind.ROWS, place.shard)):
            if pointer.ref.seq == place.seq:
                with suppress(ArtifactCorrupt):
                    return reading_in(self._bytes(pointer))
        return None

    def reject(self) -> tuple[RawRecord | None, str | None]:
        """Return the supplier's bytes, and why they could not be taken in."""
        for pointer in self._pointers(ArtifactKind.REJECTS, _REJECT):
            with self._losing(_REJECT):
                for reject in read(self._bytes(pointer)):
                    if reject.key == self.key:
                        return self._rejected(reject), reject.message
        return None, None

    def _rejected(self, reject: Reject) -> RawRecord | None:
        for pointer in self._pointers(ArtifactKind.RAW, _RAW):
            if pointer.key == reject.address.artifact:
                with self._losing(_RAW):
                    pages = self.services.codec.pages(self._bytes(pointer))
                    found = record_at(pages, self.spec, reject.address.frame, reject.address.index)
                    return _raw(pointer, found) if found is not None else None
        return None

    def put_back(self, publication: Publication | None) -> Values | None:
        """Return the row that was there before the publication which was taken back; None if there was none."""
        if publication is None or publication.undoes is None or self.event.new_hash is None:
            return None
        undone = self.services.ledger(self.spec).publication(publication.undoes)
        values = self.image(undone.run) if undone is not None else None
        if values is None:
            self.gone.append(f"{_ROW}: what publication {publication.undoes} had overwritten is kept no more")
        return values

    def image(self, run: RunId) -> Values | None:
        """Return the row as it was when a run came to overwrite it."""
        spec = pinned(self.services, run) or self.spec
        for pointer in self.services.pointers.of(run, ArtifactKind.UNDO):
            try:
                values, hashed = image_in(self._bytes(pointer), spec, self.key)
            except ArtifactCorrupt:
                continue
            if hashed == self.event.new_hash:
                return values
        return None

    def _pointers(self, kind: ArtifactKind, what: str, place: Place | None = None) -> list[Pointer]:
        pointers = self.services.pointers.of(self.event.run, kind, place.shard if place else None)
        found = [pointer for pointer in pointers if place is None or pointer.ref.seq == place.seq]
        if not found:
            self.gone.append(f"{what}: {self._expired(self.kept_until) or 'nothing points to it any more'}")
        return found

    def _bytes(self, pointer: Pointer) -> bytes:
        if self.largest is not None and pointer.bytes > self.largest:
            raise ArtifactCorrupt(f"{pointer.bytes:,} bytes are too many to be looked through here: `sluice why` does it")
        try:
            return self.services.artifacts.get(pointer)
        except ArtifactCorrupt as error:
            raise ArtifactCorrupt(self._expired(pointer.expires_at) or error.message) from error

    @contextmanager
    def _losing(self, what: str) -> Iterator[None]:
        """Note what the block finds damaged or missing."""
        try:
            yield
        except (ArtifactCorrupt, AnswerUnusable) as error:
            self.gone.append(f"{what}: {error.message}")

    def _expired(self, at: datetime | None) -> str | None:
        return f"expired on {at:%Y-%m-%d}" if at is not None and at <= self.services.clock.now() else None


def _raw(pointer: Pointer, record: Record) -> RawRecord:
    return RawRecord(
        artifact=pointer.key,
        shard=ShardKey(pointer.ref.shard or ""),
        chunk=pointer.ref.seq,
        page=record.frame,
        index=record.index,
        data=record.data,
    )
