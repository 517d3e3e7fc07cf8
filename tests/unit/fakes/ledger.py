"""A `Ledger` in memory; tests put into it what a publication would."""

from collections.abc import Sequence

from sluice.model.base import ObjectKey, PublicationId, ReviewId
from sluice.model.ledger import LedgerObject, ObjectEvent, ObjectState, Publication, Remembered


class MemoryLedger:
    """Objects, events and publications as they were put in; `asked` lists the keys of each look-up."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, ObjectKey], LedgerObject] = {}
        self.happened: dict[tuple[str, ObjectKey], list[ObjectEvent]] = {}
        self.published: list[Publication] = []
        self.asked: list[list[ObjectKey]] = []

    def remembered(self, sync: str, transformer_version: int, keys: Sequence[ObjectKey]) -> dict[ObjectKey, Remembered]:
        self.asked.append(list(keys))
        found = {key: self.objects[sync, key] for key in keys if (sync, key) in self.objects}
        return {
            key: Remembered(raw_hash=held.raw_hash, row_hash=held.row_hash, source_version=held.source_version)
            for key, held in found.items()
            if held.state is ObjectState.LIVE and held.transformer_version == transformer_version
        }

    def object(self, sync: str, key: ObjectKey) -> LedgerObject | None:
        return self.objects.get((sync, key))

    def known(self, sync: str, keys: Sequence[ObjectKey]) -> dict[ObjectKey, LedgerObject]:
        return {key: self.objects[sync, key] for key in keys if (sync, key) in self.objects}

    def near(self, sync: str, key: ObjectKey, limit: int) -> list[ObjectKey]:
        keys = sorted(known for of_sync, known in self.objects if of_sync == sync and known != key)
        before = [known for known in keys if known < key]
        return before[len(before) - min(limit, len(before)) :] + [known for known in keys if known > key][:limit]

    def events(self, sync: str, key: ObjectKey) -> list[ObjectEvent]:
        return self.happened.get((sync, key), [])

    def publications(self, sync: str, limit: int, before: PublicationId | None = None) -> list[Publication]:
        of_sync = [made for made in self.published if made.sync == sync and (before is None or made.id < before)]
        return sorted(of_sync, key=lambda publication: publication.id, reverse=True)[:limit]

    def publication(self, publication: PublicationId) -> Publication | None:
        return next((made for made in self.published if made.id == publication), None)

    def publication_of(self, review: ReviewId) -> Publication | None:
        return next((publication for publication in self.published if publication.review == review), None)
