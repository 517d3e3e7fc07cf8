"""An object in; what its page tells of it out: what ledger, table and state know, without any artifact but small ones."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from sluice.errors import NotFound, StateTooNew, StateUnreadable
from sluice.model.base import ObjectKey, PublicationId, ReviewId
from sluice.model.explanation import passed_by, what_became
from sluice.model.ledger import ObjectEvent, Publication
from sluice.model.reject import DeadLetter
from sluice.model.review import Review
from sluice.model.spec import SyncSpec
from sluice.ports import Services
from sluice.upkeep.explanation import Standing, standing

_LETTERS: Final = 20


@dataclass(frozen=True)
class Happened:
    """One thing that became of the object, and who let it pass."""

    event: ObjectEvent
    what: str
    by: str | None
    publication: Publication | None


@dataclass(frozen=True)
class History:
    """An object as far as that is told at once."""

    stands: Standing
    happened: list[Happened]
    """The newest first."""
    earlier: int
    """Events before those."""


def history_of(services: Services, spec: SyncSpec, key: ObjectKey, limit: int) -> History:
    """Return the newest `limit` events of an object, and how it stands; raise `NotFound` for one that nobody knows."""
    stands = standing(services, spec, key)
    events = stands.events[max(0, len(stands.events) - limit) :]
    published = _publications(services, spec, events)
    by_number = {event.publication for event in events}
    happened = []
    for event in reversed(events):
        made = published.get(event.publication) if event.publication is not None else None
        is_undone = made is not None and made.rolled_back_by in by_number
        what = what_became(event, made, is_undone=is_undone)
        happened.append(Happened(event, what, passed_by(made, _review(services, made)), made))
    return History(stands, happened, len(stands.events) - len(events))


def letters_of(services: Services, spec: SyncSpec, key: ObjectKey) -> list[DeadLetter]:
    """Return the newest letters of an object."""
    return services.letter_desk.of_object(spec.sync, key, _LETTERS)


def _publications(services: Services, spec: SyncSpec, events: Iterable[ObjectEvent]) -> dict[PublicationId, Publication]:
    ledger = services.ledger(spec)
    numbers = {event.publication for event in events if event.publication is not None}
    return {number: made for number in numbers if (made := ledger.publication(number)) is not None}


def _review(services: Services, publication: Publication | None) -> Review | None:
    """Return the review of a publication, unless it is gone."""
    if publication is not None:
        with suppress(NotFound, StateUnreadable, StateTooNew):
            return services.reviews.get(ReviewId(publication.review))
    return None
