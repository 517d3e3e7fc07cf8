"""A publication in; whether it can be taken back, and a run that shows what that would restore, out."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from sluice.errors import IllegalTransition, NotFound, NotUndoable, StateUnreadable
from sluice.flow.admission import admit
from sluice.flow.inline import new_inline_run, run_inline
from sluice.model.airflow_names import dag_id_of
from sluice.model.artifact import ArtifactKind
from sluice.model.audit import Actor
from sluice.model.base import RunId
from sluice.model.ledger import Publication
from sluice.model.lifecycle import RunEvent, RunStatus
from sluice.model.review import Review
from sluice.model.run import Failure, Mode, Origin, Run, RunRequest
from sluice.ports import Services
from sluice.web.surroundings import Surroundings
from sluice.web.writing import Done

_UNFINISHED: Final = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.WAITING)
_RECENT: Final = 100


@dataclass(frozen=True)
class Undoing:
    """How far taking a publication back has come."""

    why_not: str | None = None
    """Why it cannot be taken back, or not any more."""
    run: Run | None = None
    """The run that does so, if one is on its way."""
    review: Review | None = None
    """What that run would restore, if it waits for a person."""


def undoing_of(services: Services, publication: Publication) -> Undoing:
    """Look how far it has come."""
    if (why_not := _why_not(services, publication)) is not None:
        return Undoing(why_not=why_not)
    for run in services.runs.recent(publication.sync, _UNFINISHED, _RECENT):
        if run.undoes == publication.id and run.follows is None:
            review = services.reviews.latest(run.id)
            return Undoing(run=run, review=review if run.status is RunStatus.WAITING else None)
    return Undoing()


def begun(around: Surroundings, services: Services, publication: Publication, by: Actor) -> Done:
    """Let a run find out what taking the publication back would restore, and ask a person; nothing is restored by that.

    Where a review of it waits already, that one is to be decided. Raises `NotUndoable`.
    """
    present = undoing_of(services, publication)
    if present.why_not is not None:
        raise NotUndoable(present.why_not)
    pages = f"dags/{dag_id_of(publication.sync)}"
    if present.review is not None:
        return Done(message="What it would restore waits for a decision already.", next=f"{pages}/reviews/{present.review.id}")
    request = RunRequest(sync=publication.sync, mode=Mode.ROLLBACK, undoes=publication.id, origin=Origin(), by=by)
    run = admit(services, request, new_inline_run())
    if run.is_following:
        message = f"run {run.follows} takes the publication back already"
        services.runs.end(run, RunEvent.CANCEL, Failure(error=IllegalTransition.__name__, message=message))
        return Done(message=f"{message}.", next=f"{pages}/runs/{run.follows}")
    around.later(run.id, partial(run_inline, request=request, run_id=run.id))
    message = "Nothing is restored yet: a run finds out what would be, and then asks in a review."
    return Done(message=message, next=f"{pages}/runs/{run.id}")


def _why_not(services: Services, publication: Publication) -> str | None:
    if publication.rolled_back_by is not None:
        return f"it is taken back already, by publication {publication.rolled_back_by}"
    if publication.undo_key is None:
        return "it changed no row: there is nothing to restore"
    try:
        services.runs.get(RunId(publication.run))
    except NotFound:
        return "nothing is kept of it any more but its record"
    except StateUnreadable as error:
        return error.message
    kept = {pointer.key for pointer in services.pointers.of(RunId(publication.run), ArtifactKind.UNDO)}
    return None if publication.undo_key in kept else "what was before it is not kept any more"
