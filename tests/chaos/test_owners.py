"""Two workers and one request: who is late is refused, who is second follows, and one of them does the work."""

import pytest

from sluice import log_events
from sluice.model.connections import STATE, TARGET
from tests.chaos.lab import Experiment, Lab
from tests.chaos.proxies import CopyHeld, PostgresProxy, serving
from tests.chaos.worker import Mark

LIVELY = {
    "lease_ttl": "2s",
    "heartbeat": "0.2s",
    "no_progress_timeout": "3s",
    "timeouts": {"read": "1s"},
    "chunk_age": "1s",
}
"""What runs out does so by itself before a test loses patience."""

REFUSED = ("Fenced", "FlightTaken")
"""How a worker ends that finds another in its place: the other has taken over, or works at this moment."""

PAUSES = [
    Mark(2, log_events.PAGE_FETCHED),
    Mark(1, log_events.ARTIFACT_STORED),
    Mark(2, log_events.CHUNK_CHECKPOINTED),
    Mark(1, log_events.SHARD_FETCHED),
    Mark(1, log_events.CHUNK_TRANSFORMED),
    Mark(3, log_events.SHARD_TRANSFORMED),
    Mark(1, log_events.REVIEW_MADE),
    Mark(1, log_events.PUBLICATION_COMMITTED),
]


@pytest.mark.parametrize("moment", PAUSES, ids=lambda mark: mark.event)
def test_a_worker_paused_past_its_lease_and_woken_changes_nothing(lab: Lab, moment: Mark) -> None:
    """SIGSTOP, another takes over and comes to the end, SIGCONT: the first is refused, or has nothing left to write."""
    with lab.experiment(lab.story[1]) as experiment:
        sleeper = experiment.start(moment)
        sleeper.held()
        sleeper.pause()
        sleeper.go_on()
        experiment.faults.append(f"paused past its lease at {moment.event}")
        experiment.go_on()
        written = _writes(experiment)
        sleeper.wake()
        ended = sleeper.end()
        assert ended.error in REFUSED or ended.status == "failed", ended
        assert _writes(experiment) == written
        experiment.check()


def test_a_worker_paused_in_the_middle_of_a_publication_does_not_hold_the_target_for_ever(lab: Lab) -> None:
    """The server ends the transaction of one that is not heard of for long; another publishes; the first is refused."""
    with lab.experiment(lab.story[2]) as experiment:
        experiment.include = lab.project(stage=LIVELY)
        sleeper = experiment.start(Mark(1, log_events.UNDO_STORED))
        sleeper.held()
        sleeper.pause()
        sleeper.go_on()
        experiment.faults.append("paused past its lease inside the publication's transaction")
        experiment.go_on()
        written = _writes(experiment)
        sleeper.wake()
        ended = sleeper.end()
        assert ended.error in (*REFUSED, "TargetUnavailable"), ended
        assert _writes(experiment) == written
        experiment.check()


def test_a_worker_paused_while_it_stages_leaves_the_others_staging_alone(lab: Lab) -> None:
    """It wakes when another has staged, and is about to publish: it is refused, and what the other publishes is the other's."""
    held = CopyHeld("staged")
    with lab.experiment(lab.story[2]) as experiment, serving(PostgresProxy(experiment.place.target, lambda: held)) as proxy:
        sleeper = experiment.start(connections={TARGET: proxy.connection})
        assert held.reached.wait(60)
        sleeper.pause()
        experiment.faults.append("paused past its lease while it staged")
        experiment.let_leases_run_out()
        other = experiment.start(Mark(1, log_events.REVIEW_MADE))
        other.held()
        sleeper.wake()
        held.may_go_on.set()
        refused = sleeper.end()
        assert refused.error in REFUSED, refused
        other.go_on()
        published = other.end()
        assert published.status == "succeeded", published
        experiment.check()


def test_a_lease_runs_out_by_itself(lab: Lab) -> None:
    """Nobody says so but the database's clock: the second run follows the paused one until then, and takes over."""
    with lab.experiment(lab.story[0]) as experiment:
        experiment.include = lab.project(stage=LIVELY)
        sleeper = experiment.start(Mark(2, log_events.CHUNK_CHECKPOINTED))
        sleeper.held()
        sleeper.pause()
        sleeper.go_on()
        experiment.faults.append("paused past its lease, which ran out by itself")
        ended = experiment.start().end()
        assert ended.status == "succeeded", ended
        sleeper.wake()
        refused = sleeper.end()
        assert refused.error in REFUSED, refused
        experiment.check()


def test_two_owners_at_once(lab: Lab) -> None:
    """Both work, step by step in turn, since the lease of the first ended while it lived: only the second's work counts."""
    with lab.experiment(lab.story[1]) as experiment:
        first = experiment.start(Mark(2, log_events.CHUNK_CHECKPOINTED))
        first.held()
        experiment.let_leases_run_out()
        second = experiment.start(Mark(1, log_events.CHUNK_TRANSFORMED))
        second.held()
        experiment.faults.append("two owners at once")
        first.go_on()
        refused = first.end()
        assert refused.error in REFUSED, refused
        second.go_on()
        ended = second.end()
        assert ended.status == "succeeded", ended
        experiment.check()


def test_the_same_run_started_while_it_works(lab: Lab) -> None:
    """The second follows the first, asks the supplier for nothing, and ends as it does."""
    with lab.experiment(lab.story[0]) as experiment:
        experiment.include = lab.project(stage={"heartbeat": "0.2s"})
        owner = experiment.start(Mark(2, log_events.CHUNK_CHECKPOINTED))
        owner.held()
        follower = experiment.start(Mark(1, log_events.FLIGHT_AWAITED))
        follower.held()
        experiment.faults.append("started while it worked")
        owner.go_on()
        follower.go_on()
        assert [owner.end().status, follower.end().status] == ["succeeded", "succeeded"]
        assert experiment.shop.pages_asked() == experiment.calm.asked
        experiment.check()


def test_the_same_run_started_several_times_at_once(lab: Lab) -> None:
    """Whoever comes first works; in the end all have succeeded, and the work was done once."""
    with lab.experiment(lab.story[0]) as experiment:
        experiment.include = lab.project(stage={"heartbeat": "0.2s", "result_ttl": "1h"})
        workers = [experiment.start() for _ in range(4)]
        experiment.faults.append("started four times at once")
        ended = [worker.end() for worker in workers]
        assert {end.status for end in ended} == {"succeeded"}, ended
        assert experiment.shop.pages_asked() == experiment.calm.asked
        experiment.check()


def test_a_follower_takes_over_from_an_owner_that_is_killed(lab: Lab) -> None:
    """It has waited, and goes on from the dead owner's checkpoints as soon as the lease is over."""
    with lab.experiment(lab.story[0]) as experiment:
        experiment.include = lab.project(stage={"heartbeat": "0.2s"})
        owner = experiment.start(Mark(5, log_events.CHUNK_CHECKPOINTED))
        owner.held()
        follower = experiment.start(Mark(1, log_events.FLIGHT_AWAITED))
        follower.held()
        experiment.kill(owner, "killed while another run follows")
        experiment.let_leases_run_out()
        follower.go_on()
        ended = follower.end()
        assert ended.status == "succeeded", ended
        experiment.check()


def _writes(experiment: Experiment) -> tuple[int, ...]:
    """Return how many commits have written to state and to the target, since the experiment began."""
    return tuple(experiment.sql(conn_id, "select last_value from chaos.commits")[0][0] for conn_id in (STATE, TARGET))
