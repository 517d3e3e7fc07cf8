"""What a person does to a run by hand, as its page sends it, in; what was done, and what to do next, out."""

from enum import StrEnum
from functools import partial
from typing import Final

from pydantic import Field

from sluice.errors import NotFound
from sluice.flow.pinned_spec import pinned_ledger
from sluice.model.airflow_names import dag_id_of
from sluice.model.audit import Actor
from sluice.model.base import ShardKey
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Run
from sluice.ports import Services
from sluice.upkeep import by_hand, what_next
from sluice.web.writing import Done, Form, Reason

VIA: Final = "pages"


class ShardAct(StrEnum):
    """What may be done to a shard."""

    RESET = "reset"
    SKIP = "skip"
    STOP = "stop"


class ActOnShard(Form):
    """The form for a shard."""

    act: ShardAct
    shard: str = Field(min_length=1, max_length=200)
    reason: Reason


class ActOnRun(Form):
    """The form for the run itself."""

    reason: Reason


def act_on_shard(services: Services, run: Run, asked: ActOnShard, user: str) -> Done:
    """Reset, skip or stop a shard."""
    by, key = Actor(name=user, via=VIA, reason=asked.reason), ShardKey(asked.shard)
    match asked.act:
        case ShardAct.RESET:
            by_hand.reset_shard(services, run.id, key, by)
            said = f"{key} begins again from its first page. {what_next.after_reset(services.runs.get(run.id), key)}"
        case ShardAct.SKIP:
            by_hand.skip_shard(services, run.id, key, by)
            said = f"{key} is skipped. {what_next.after_skip(services.runs.get(run.id))}"
        case ShardAct.STOP:
            by_hand.stop_shard(services, run.id, key, by)
            said = f"{key} is stopped. {what_next.after_stop(services.runs.get(run.id), key)}"
    return Done(message=said, next=_page(run))


def cancel(services: Services, run: Run, asked: ActOnRun, user: str) -> Done:
    """End the run."""
    by = Actor(name=user, via=VIA, reason=asked.reason)
    ended = by_hand.cancel_run(services, run.id, by, partial(pinned_ledger, services))
    said = f"The run is {ended.run.status}."
    if ended.run.status is RunStatus.CANCELLED:
        said = f"{said} {what_next.after_cancel(ended.run, ended.publication, ended.unknown)}"
    return Done(message=said, next=_page(run))


def release(services: Services, run: Run, asked: ActOnRun, user: str) -> Done:
    """Take back the flight of the run's request, whoever has it."""
    lease = by_hand.release_lease(services, run.request_key, Actor(name=user, via=VIA, reason=asked.reason))
    if lease is None:
        raise NotFound("nobody has the flight of this run's request: there is nothing to release")
    return Done(message=f"Run {lease.owner} has the flight no more: the next run of the request has it.", next=_page(run))


def _page(run: Run) -> str:
    return f"dags/{dag_id_of(run.sync)}/runs/{run.id}"
