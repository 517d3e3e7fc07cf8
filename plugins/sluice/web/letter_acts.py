"""Dead letters that a person has chosen, and why, come in; a redrive asked of Airflow, or letters given up, go out."""

from typing import Annotated, Final

from pydantic import Field

from sluice.errors import AirflowUnavailable, ConnectionInvalid, NotFound, UsageInvalid
from sluice.model.airflow_names import dag_id_of
from sluice.model.audit import Act, Actor
from sluice.model.run import Mode, Origin, Redrive, ReviewMode, RunRequest
from sluice.ports import Services
from sluice.web.surroundings import Surroundings
from sluice.web.writing import Done, Form, Reason

_MOST: Final = 1_000
_LARGEST: Final = 2**63 - 1


class Chosen(Form):
    """Letters by number, or all objects of a cause."""

    letters: tuple[Annotated[int, Field(ge=1, le=_LARGEST)], ...] = Field(default=(), max_length=_MOST)
    cause: str | None = Field(default=None, max_length=_MOST)
    reason: Reason
    look: bool = Field(default=False, description="whether a person is to look at what a redrive would publish")

    @property
    def selection(self) -> Redrive:
        """What is chosen; raises `UsageInvalid` if that is nothing."""
        if not self.letters and self.cause is None:
            raise UsageInvalid("choose some letters first")
        return Redrive(letters=tuple(sorted(set(self.letters))), cause=self.cause)

    def by(self, user: str) -> Actor:
        """Return who chose, and why, as the audit trail has it."""
        return Actor(name=user, via="pages", reason=self.reason)


def redriven(around: Surroundings, services: Services, sync: str, chosen: Chosen, user: str) -> Done:
    """Ask Airflow for a run that takes the letters up again; where it cannot be asked, say how to do it here."""
    objects = _open(services, sync, chosen)
    request = RunRequest(
        sync=sync,
        mode=Mode.REDRIVE,
        redrives=chosen.selection,
        review=ReviewMode.ALWAYS if chosen.look else ReviewMode.POLICY,
        origin=Origin(),
    )
    try:
        asked = services.triggers.ask(request)
    except (ConnectionInvalid, AirflowUnavailable) as error:
        raise type(error)(f"{error.message}. Without Airflow: {_inline(sync, chosen)}") from error
    dag_id = dag_id_of(sync)
    facts = {**chosen.selection.model_dump(mode="json"), "objects": objects}
    services.audit.note(Act.REDRIVE, chosen.by(user), sync, facts, around.run_id_of(dag_id, asked.dag_run_id))
    waits = f" {dag_id} is paused: it begins once somebody unpauses it." if asked.is_paused else ""
    message = f"{objects:,} objects are taken up again by DagRun {asked.dag_run_id}.{waits}"
    return Done(message=message, next=f"dags/{dag_id}/dagRuns/{asked.dag_run_id}")


def discarded(services: Services, sync: str, chosen: Chosen, user: str) -> Done:
    """Give the letters up."""
    _open(services, sync, chosen)
    objects = services.letter_desk.discard(sync, chosen.selection, chosen.by(user))
    return Done(message=f"{objects:,} objects are given up.")


def _open(services: Services, sync: str, chosen: Chosen) -> int:
    """Return how many objects are chosen and open; raise `NotFound` if there are none."""
    objects = sum(services.redrives.shards(sync, chosen.selection).values())
    if not objects:
        raise NotFound(f"nothing of what was chosen is open any more among the dead letters of {sync}")
    return objects


def _inline(sync: str, chosen: Chosen) -> str:
    numbers = " ".join(map(str, chosen.letters))
    cause = f"--cause '{chosen.cause}'" if chosen.cause is not None else ""
    return f"sluice dlq redrive {' '.join(filter(None, [sync, numbers, cause]))} --inline"
