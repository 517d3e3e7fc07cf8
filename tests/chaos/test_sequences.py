"""Hypothesis makes up sequences of faults; whatever they are, asking again until it works gives what a quiet day gives."""

import os
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sluice import log_events
from sluice.model.connections import ARTIFACTS, STATE, TARGET
from tests.chaos.lab import Experiment, Lab
from tests.chaos.proxies import S3Proxy, Spoil, serving
from tests.chaos.worker import Mark

IS_FULL = os.environ.get("CHAOS") == "full"
SUPPLIER_FAILS = "supplier fails"
MOST_EVENTS = 45
MOST_COMMITS = 30
MOST_REQUESTS = 12
INSIDE_A_PUBLICATION = (log_events.UNDO_STORED,)
"""A worker that is paused there holds the target until the server has lost its patience: another test waits for that."""


@dataclass(frozen=True)
class Kill:
    """SIGKILL at the nth event."""

    nth: int

    def strike(self, experiment: Experiment) -> None:
        """Start a worker and let it meet the fault, if it comes so far."""
        worker = experiment.start(Mark(self.nth))
        if worker.is_held():
            experiment.kill(worker, "killed at an event")


@dataclass(frozen=True)
class KillInCommit:
    """SIGKILL in the nth commit of a database; it is made all the same, or not."""

    conn_id: str
    nth: int
    is_made: bool

    def strike(self, experiment: Experiment) -> None:
        """Start a worker and let it meet the fault, if it comes so far."""
        with experiment.commit_held(self.conn_id, self.nth) as commit:
            worker = experiment.start()
            session = commit.reached_or_ended(worker)
            if session is None:
                return
            experiment.kill(worker, "killed in a commit")
            if self.is_made:
                commit.make()
            else:
                commit.refuse(session)


@dataclass(frozen=True)
class Pause:
    """SIGSTOP at the nth event; it wakes when all is over."""

    nth: int

    def strike(self, experiment: Experiment) -> None:
        """Start a worker and let it meet the fault, if it comes so far."""
        worker = experiment.start(Mark(self.nth))
        if not worker.is_held():
            return
        if worker.events[-1] in INSIDE_A_PUBLICATION:
            worker.go_on()
            worker.end()
            return
        worker.pause()
        worker.go_on()
        experiment.sleepers.append(worker)
        experiment.faults.append("paused, and woken when all was over")


@dataclass(frozen=True)
class CutOff:
    """All sessions of a database are ended at the nth event."""

    conn_id: str
    nth: int

    def strike(self, experiment: Experiment) -> None:
        """Start a worker and let it meet the fault, if it comes so far."""
        worker = experiment.start(Mark(self.nth))
        if not worker.is_held():
            return
        other, name = {
            STATE: (TARGET, experiment.place.state.schema),
            TARGET: (STATE, experiment.place.target.schema),
        }[self.conn_id]
        experiment.sql(other, "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = %s", name)
        experiment.faults.append("all sessions of a database ended")
        worker.go_on()
        worker.end()


@dataclass(frozen=True)
class SupplierFails:
    """The supplier answers 500 from the nth request of this run on."""

    nth: int

    def strike(self, experiment: Experiment) -> None:
        """Start a worker and let it meet the fault, if it comes so far."""
        begun = len(experiment.shop.asked)
        experiment.shop.trouble = lambda _: 500 if len(experiment.shop.asked) - begun >= self.nth else None
        experiment.start().end()
        experiment.shop.trouble = lambda _: None
        if len(experiment.shop.asked) - begun >= self.nth:
            experiment.faults.append(SUPPLIER_FAILS)


@dataclass(frozen=True)
class StoreSpoiled:
    """Some requests to the object store are answered with 503 SlowDown or in half."""

    every: int
    spoil: Spoil

    def strike(self, experiment: Experiment) -> None:
        """Start a worker and let it meet the fault, if it comes so far."""
        asked = 0

        def spoils(method: str) -> Spoil | None:
            nonlocal asked
            asked += method != "HEAD"
            return self.spoil if method != "HEAD" and asked % self.every == 0 else None

        with serving(S3Proxy(experiment.place.artifacts, spoils)) as proxy:
            experiment.start(connections={ARTIFACTS: proxy.connection}).end()
            experiment.faults += [f"S3: {self.spoil.value}"] * proxy.spoiled


Fault = Kill | KillInCommit | Pause | CutOff | SupplierFails | StoreSpoiled

events = st.integers(1, MOST_EVENTS)
faults: st.SearchStrategy[Fault] = st.one_of(
    st.builds(Kill, events),
    st.builds(KillInCommit, st.just(STATE), st.integers(1, MOST_COMMITS), st.booleans()),
    st.builds(KillInCommit, st.just(TARGET), st.just(1), st.booleans()),
    st.builds(Pause, events),
    st.builds(CutOff, st.sampled_from([STATE, TARGET]), events),
    st.builds(SupplierFails, st.integers(1, MOST_REQUESTS)),
    st.builds(StoreSpoiled, st.integers(9, 30), st.sampled_from(Spoil)),
)


@pytest.mark.timeout(900)
@settings(
    max_examples=40 if IS_FULL else 6,
    derandomize=not IS_FULL,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink] if IS_FULL else [Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    print_blob=True,
)
@given(number=st.integers(0, 2), sequence=st.lists(faults, min_size=2, max_size=5))
def test_any_sequence_of_faults_ends_as_a_quiet_day_does(lab: Lab, number: int, sequence: list[Fault]) -> None:
    """Each worker meets the next fault, or comes to the end before; sleepers wake last, and change nothing."""
    with lab.experiment(lab.story[number]) as experiment:
        for fault in sequence:
            if experiment.succeeded():
                break
            experiment.let_leases_run_out()
            fault.strike(experiment)
        experiment.go_on()
        for sleeper in experiment.sleepers:
            sleeper.wake()
            sleeper.end()
        experiment.check(is_in_parts=SUPPLIER_FAILS in experiment.faults)
