"""Collecting garbage: what has outlived the time its stage gives it goes; what somebody still needs stays; the rest is counted.

The order keeps every pointer whole, whenever a collector is killed: cold copies are made and verified first, a pointer counts
no more before its bytes go, and is removed after them. The next collection finds what was left and goes on.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import SluiceError
from sluice.model.audit import POLICY, Act, Actor
from sluice.model.base import RunId
from sluice.model.garbage import Garbage, Needed
from sluice.ports import Services
from sluice.upkeep.removal import Removal

log: Final = structlog.get_logger()

_QUIET: Final = timedelta(days=30)
"""What is known of a supplier is forgotten once nobody has asked it for so long: longer than any breaker looks back."""
_GRACE: Final = timedelta(days=7)
"""A run that nobody has heard of for so long is dead, and nobody is about to point to what is so old."""


def _unheard(_: str) -> None:
    """Nobody listens."""


def collect(services: Services, *, dry_run: bool, by: Actor = POLICY, tell: Callable[[str], None] = _unheard) -> Garbage:
    """Remove what has outlived its time, and return what it was; a dry run only counts it.

    Of a sync whose publications are not known nothing is removed that could be needed to undo one. Running it again removes
    what has outlived its time since. `tell` hears what is being done, and how far that is.
    """
    needed, grace = _needed(services), _grace(services)
    removal = Removal(services, needed, grace, tell)
    if dry_run:
        estimated = services.garbage.estimate(needed, _QUIET, grace)
        removal.count(estimated)
        removal.orphans(is_dry=True)
        return removal.garbage(copied=services.cold is not None)
    removal.closed = services.garbage.close_silent(grace)
    removal.control = services.garbage.sweep_control(_QUIET)
    removal.events()
    removal.session = {
        table: number + removal.session.get(table, 0) for table, number in services.garbage.sweep_session().items()
    }
    removal.artifacts()
    removal.orphans(is_dry=False)
    removal.runs()
    garbage = removal.garbage()
    log.info(log_events.GARBAGE_COLLECTED, **garbage.model_dump(mode="json"))
    if garbage.artifacts or garbage.orphans.objects or garbage.runs or garbage.closed:
        told = {"artifacts", "bytes", "orphans", "runs", "closed", "copied"}
        services.audit.note(Act.COLLECT_GARBAGE, by, None, garbage.model_dump(mode="json", include=told))
    return garbage


def _needed(services: Services) -> Needed:
    """Ask each target for the newest publication of its syncs, and for those that are being taken back."""
    published: list[RunId] = []
    unknown: dict[str, str] = {}
    undoing = services.garbage.undoing()
    for sync in sorted({*services.garbage.syncs(), *(undo.sync for undo in undoing)}):
        try:
            ledger = services.ledger(services.spec(sync))
            known = [
                *ledger.publications(sync, 1),
                *(ledger.publication(undo.publication) for undo in undoing if undo.sync == sync),
            ]
        except SluiceError as error:
            unknown[sync] = error.message
            continue
        published += [publication.run for publication in known if publication is not None]
    return Needed(published=tuple(dict.fromkeys(published)), unknown=unknown)


def _grace(services: Services) -> timedelta:
    """Return how long nothing is given up: longer than any task, any wait and any takeover."""
    spans = [_GRACE]
    for sync in services.garbage.syncs():
        try:
            policy = services.policy(services.spec(sync).stage)
        except SluiceError:
            continue  # its runs have ended, or it has no policy to wait by
        spans += [policy.longest_run + policy.retry_window, policy.takeover, policy.wait_timeout]
    return max(spans)
