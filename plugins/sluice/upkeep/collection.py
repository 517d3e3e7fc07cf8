"""Collecting garbage: what has outlived the time its stage gives it goes; what somebody still needs stays; the rest is counted.

The order keeps every pointer whole, whenever a collector is killed: a pointer counts no more before its bytes go, and is
removed after them. The next collection finds what was left and goes on.
"""

from datetime import timedelta
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import SluiceError
from sluice.model.audit import POLICY, Act, Actor
from sluice.model.base import RunId
from sluice.model.garbage import Garbage, Needed
from sluice.ports import Services

log: Final = structlog.get_logger()

_QUIET: Final = timedelta(days=30)
"""What is known of a supplier is forgotten once nobody has asked it for so long: longer than any breaker looks back."""
_OBJECTS_AT_ONCE: Final = 100
"""While so many are removed, none of their runs can be gone on with."""


def collect(services: Services, *, dry_run: bool, by: Actor = POLICY) -> Garbage:
    """Remove what has outlived its time, and return what it was; a dry run only counts it.

    Of a sync whose newest publication is not known nothing is removed that could be needed to undo it. Running it again removes
    what has outlived its time since.
    """
    needed = _needed(services)
    if dry_run:
        return services.garbage.estimate(needed, _QUIET)
    control = services.garbage.sweep_control(_QUIET)
    session = services.garbage.sweep_session()
    artifacts, size = _remove_artifacts(services, needed)
    runs = services.garbage.sweep_runs(needed)
    garbage = Garbage(control=control, session=session, artifacts=artifacts, bytes=size, runs=runs, kept=needed.unknown)
    log.info(log_events.GARBAGE_COLLECTED, **garbage.model_dump())
    if garbage.artifacts or garbage.runs:
        facts = garbage.model_dump(mode="json", include={"artifacts", "bytes", "runs"})
        services.audit.note(Act.COLLECT_GARBAGE, by, None, facts)
    return garbage


def _needed(services: Services) -> Needed:
    """Ask each target for the newest publication of its syncs."""
    published: list[RunId] = []
    unknown: dict[str, str] = {}
    for sync in services.garbage.syncs():
        try:
            newest = services.ledger(services.spec(sync)).publications(sync, 1)
        except SluiceError as error:
            unknown[sync] = error.message
            continue
        published += [publication.run for publication in newest]
    return Needed(published=tuple(published), unknown=unknown)


def _remove_artifacts(services: Services, needed: Needed) -> tuple[int, int]:
    """Remove expired bytes, then what points to them; return how many objects there were, and their size."""
    number, size = 0, 0
    condemned = services.garbage.condemn(needed)
    for start in range(0, len(condemned), _OBJECTS_AT_ONCE):
        with services.garbage.removing(condemned[start : start + _OBJECTS_AT_ONCE], needed) as pointers:
            for pointer in pointers:
                services.artifacts.remove(pointer)
        number += len(pointers)
        size += sum(pointer.bytes for pointer in pointers)
    return number, size
