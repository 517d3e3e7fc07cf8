"""Acts by hand: who acts and why is known of each, and what is published already is not called off."""

from dataclasses import replace
from functools import partial

import pytest

from sluice.errors import ConnectionInvalid, IllegalTransition, UsageInvalid
from sluice.flow.inline import run_inline
from sluice.flow.pinned_spec import pinned_ledger
from sluice.model.audit import Act, Actor
from sluice.model.base import RunId
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.run import Mode, Origin, ReviewMode, Run, RunRequest
from sluice.upkeep.by_hand import Cancelled, cancel_run, release_lease, reset_shard, skip_shard, stop_shard
from sluice.upkeep.what_next import after_cancel, after_reset, after_skip, after_stop
from tests.support.nouns import MINUTE, a_run, an_actor
from tests.unit.fakes.ledger import MemoryLedger
from tests.unit.fakes.source import RegionalSource
from tests.unit.flow.workshop import MAY, NORTH, RUN, Workshop, page, planned, sync_spec

IN_AIRFLOW = Origin(dag_id="sluice_hotels", dag_run_id="manual")


def cancel(workshop: Workshop, run: RunId, by: Actor | None = None) -> Cancelled:
    """Cancel a run, whose target is asked as its pinned spec has it."""
    return cancel_run(workshop.services, run, by or an_actor(), partial(pinned_ledger, workshop.services))


@pytest.mark.parametrize("by", [an_actor(reason=" "), an_actor(name=" ")])
def test_nobody_acts_without_a_name_and_a_reason(by: Actor) -> None:
    """Nothing happens, and nothing is noted."""
    workshop = planned()
    for act in (reset_shard, skip_shard, stop_shard):
        with pytest.raises(UsageInvalid, match="is empty"):
            act(workshop.services, RUN, NORTH, by)
    with pytest.raises(UsageInvalid):
        cancel(workshop, RUN, by)
    with pytest.raises(UsageInvalid):
        release_lease(workshop.services, workshop.memory.runs[RUN].request_key, by)
    assert (workshop.memory.audit, workshop.memory.runs[RUN].status) == ([], RunStatus.RUNNING)


def test_what_is_said_is_kept_within_bounds() -> None:
    """Without the spaces around it, and no longer than anybody reads."""
    workshop = planned()
    skip_shard(workshop.services, RUN, NORTH, an_actor(f" {'why ' * 1000}", name=" ada "))
    (entry,) = workshop.memory.audit
    assert (entry.by.name, len(entry.by.reason), entry.act) == ("ada", 2000, Act.SKIP_SHARD)


def test_a_cancelled_runs_dag_run_is_ended_each_time_it_is_asked_for() -> None:
    """Airflow may not have been there the first time."""
    workshop = planned()
    for _ in range(2):
        assert cancel(workshop, RUN).run.status is RunStatus.CANCELLED
    assert (workshop.dag_runs.ended, len(workshop.memory.audit)) == ([RUN, RUN], 1)


def publishing() -> tuple[Workshop, Run]:
    """A run that has published, and has what follows that left to do."""
    workshop = Workshop(spec=sync_spec(review={"first_load": "auto-approve", "auto_approve": {"created": "100%"}}))
    workshop.equip()
    workshop.supplier = RegionalSource(north=(page(1, ("a", MAY), is_last=True),), south=(page(1, ("b", MAY), is_last=True),))
    request = RunRequest(sync="hotels", mode=Mode.FULL, review=ReviewMode.POLICY, origin=Origin())
    run = run_inline(workshop.services, request)
    left = run.model_copy(update={"status": RunStatus.RUNNING, "step": Step.PUBLISH, "finished_at": None})
    workshop.memory.runs[run.id] = left
    return workshop, left


def test_what_is_published_is_not_called_off() -> None:
    """Only what follows is left to do; the publication itself can be taken back. Whatever its spec says by now."""
    workshop, run = publishing()
    target, published_to = workshop.target, workshop.spec.target
    assert target is not None
    workshop.spec = sync_spec(target={**published_to.model_dump(), "table": "elsewhere"})
    services = replace(workshop.services, ledger=lambda spec: target.ledger if spec.target == published_to else MemoryLedger())
    with pytest.raises(IllegalTransition, match=r"published already, as publication 1: .*sluice rollback 1"):
        cancel_run(services, run.id, an_actor(), partial(pinned_ledger, services))
    assert workshop.memory.runs[run.id] == run


def test_what_is_published_as_it_is_called_off_is_told() -> None:
    """Its commit was under way as the target was asked: the run is cancelled, and its publication can be taken back."""
    workshop, run = publishing()
    assert workshop.target is not None
    answers = iter([MemoryLedger(), workshop.target.ledger])
    cancelled = cancel_run(workshop.services, run.id, an_actor(), lambda _: next(answers))
    assert (cancelled.run.status, cancelled.publication) == (RunStatus.CANCELLED, workshop.target.ledger.published[0])
    assert "`sluice rollback 1` takes that back" in after_cancel(cancelled.run, cancelled.publication, cancelled.unknown)


def test_a_run_whose_target_cannot_be_asked_is_called_off() -> None:
    """Whether anything of it is published is said to be unknown."""
    workshop, run = publishing()

    def undefined(_: Run) -> MemoryLedger:
        raise ConnectionInvalid("there is no Airflow connection warehouse")

    cancelled = cancel_run(workshop.services, run.id, an_actor(), undefined)
    assert (cancelled.run.status, cancelled.publication) == (RunStatus.CANCELLED, None)
    said = after_cancel(cancelled.run, cancelled.publication, cancelled.unknown)
    assert "there is no Airflow connection warehouse" in said
    assert "sluice publications hotels" in said


def test_what_to_do_next() -> None:
    """A task to clear in Airflow, the same command elsewhere, and nothing while somebody is at work."""
    run, here = a_run(origin=IN_AIRFLOW, status=RunStatus.PARTIAL), a_run(status=RunStatus.FAILED)
    assert "clear the task `shards.fetch` of north in DagRun manual of sluice_hotels" in after_stop(run, NORTH)
    assert after_reset(run, NORTH).startswith("Clear the task `shards.fetch` of north in DagRun manual")
    assert after_reset(here, NORTH).startswith("Ask for the same again (`sluice run hotels --inline`)")
    assert after_skip(run).startswith("Clear the task `review`")
    for status, said in ((RunStatus.WAITING, "approved"), (RunStatus.RUNNING, "begins again at once")):
        assert said in after_reset(a_run(status=status), NORTH)
    for status, said in ((RunStatus.WAITING, "it stands"), (RunStatus.RUNNING, "goes on without it")):
        assert said in after_skip(a_run(status=status))
    assert "clear it" in after_cancel(run, None, None)
    assert "sluice run hotels --inline" in after_cancel(here, None, None)


def test_a_lease_is_taken_from_the_dead_alone() -> None:
    """By the heartbeat of the stage that the owner is of; what was free already is left as it is."""
    workshop = planned()
    key = workshop.memory.runs[RUN].request_key
    with pytest.raises(IllegalTransition, match="not dead"):
        release_lease(workshop.services, key, an_actor())
    workshop.memory.clock.move(MINUTE)
    released = release_lease(workshop.services, key, an_actor())
    assert released is not None
    assert (released.owner, release_lease(workshop.services, key, an_actor())) == (RUN, None)
    workshop.services.runs.end(workshop.memory.runs[RUN], RunEvent.PARK)
