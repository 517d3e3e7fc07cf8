"""What the worker depends on is restarted, cut off, overloaded or locked; then it is well again, and the same is asked for."""

from itertools import count

import pytest

from sluice import log_events
from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from sluice.model.connections import ARTIFACTS, TARGET
from tests.chaos.lab import Experiment, Lab
from tests.chaos.proxies import CommitAnswerCut, CopyCut, PostgresProxy, S3Proxy, Spoil, serving
from tests.chaos.worker import Ended, Mark
from tests.chaos.workers import Worker

MOMENTS = [
    Mark(3, log_events.CHUNK_CHECKPOINTED),
    Mark(2, log_events.CHUNK_TRANSFORMED),
    Mark(1, log_events.REVIEW_MADE),
    Mark(1, log_events.UNDO_STORED),
]
each_moment = pytest.mark.parametrize("moment", MOMENTS, ids=lambda mark: mark.event)


@each_moment
def test_postgres_restarted(lab: Lab, postgres: PostgresServer, moment: Mark) -> None:
    """Sessions end in the middle of whatever they are at; the run fails with a name for it, or does not even notice."""
    with lab.experiment(lab.story[2]) as experiment:
        worker = experiment.start(moment)
        worker.held()
        postgres.stop()
        postgres.start()
        experiment.faults.append("Postgres restarted")
        _finish(experiment, worker, "StateUnavailable", "TargetUnavailable")


@pytest.mark.parametrize("moment", MOMENTS[:1] + MOMENTS[3:], ids=lambda mark: mark.event)
def test_s3_restarted(lab: Lab, s3: S3Server, moment: Mark) -> None:
    """Between two artifacts, and between an undo artifact and the publication, the store is away, and comes back."""
    with lab.experiment(lab.story[1]) as experiment:
        worker = experiment.start(moment)
        worker.held()
        s3.stop()
        try:
            worker.go_on()
            ended = worker.end()
        finally:
            s3.start()
        experiment.faults.append("S3 restarted")
        _finish(experiment, ended, "ArtifactsUnavailable")


@pytest.mark.parametrize("table", ["staged", "approved", "incoming"])
def test_a_connection_cut_in_copy(lab: Lab, table: str) -> None:
    """The rows of a COPY come through in half: for the review, for the publication's diff, for its rows."""
    with (
        lab.experiment(lab.story[2]) as experiment,
        serving(PostgresProxy(experiment.place.target, lambda: CopyCut(table))) as proxy,
    ):
        worker = experiment.start(connections={TARGET: proxy.connection})
        ended = worker.end()
        assert proxy.has_struck.is_set()
        experiment.faults.append(f"connection cut in COPY to {table}")
        assert ended.error == "TargetUnavailable", ended
        _finish(experiment, ended, "TargetUnavailable")


def test_the_answer_to_a_publications_commit_lost(lab: Lab) -> None:
    """Nobody hears that it was committed: the run says that it does not know, and the next one looks before it repeats."""
    with (
        lab.experiment(lab.story[2]) as experiment,
        serving(PostgresProxy(experiment.place.target, lambda: CommitAnswerCut("sluice_ledger.publication"))) as proxy,
    ):
        worker = experiment.start(connections={TARGET: proxy.connection})
        ended = worker.end()
        assert proxy.has_struck.is_set()
        assert ended.error == "CommitUnconfirmed", ended
        experiment.faults.append("answer to the publication's commit lost")
        _finish(experiment, ended, "CommitUnconfirmed")


@pytest.mark.parametrize("spoil", Spoil, ids=lambda spoil: spoil.value)
def test_s3_overloaded_for_a_moment(lab: Lab, spoil: Spoil) -> None:
    """Now and then a request is answered with 503 SlowDown, and is repeated, or in half, and the run fails and is resumed."""
    numbers = count(1)
    without_copies = lab.project(stage={"local_cache": {"age": "0s"}})
    with (
        lab.experiment(lab.story[1]) as experiment,
        serving(
            S3Proxy(experiment.place.artifacts, lambda method: spoil if method != "HEAD" and next(numbers) % 8 == 0 else None)
        ) as proxy,
    ):
        experiment.include = without_copies
        ended = experiment.start(connections={ARTIFACTS: proxy.connection}).end()
        assert proxy.spoiled >= 1
        experiment.faults += [f"S3: {spoil.value}"] * proxy.spoiled
        _finish(experiment, ended, "ArtifactsUnavailable")


def test_s3_overloaded_for_long(lab: Lab) -> None:
    """From some put on every request is answered with 503 SlowDown: the run fails with a name for it, and the next goes on."""
    puts = count(1)
    with (
        lab.experiment(lab.story[1]) as experiment,
        serving(
            S3Proxy(experiment.place.artifacts, lambda method: Spoil.SLOW_DOWN if method == "PUT" and next(puts) >= 5 else None)
        ) as proxy,
    ):
        ended = experiment.start(connections={ARTIFACTS: proxy.connection}).end()
        assert ended.error == "ArtifactsUnavailable", ended
        experiment.faults.append("S3: 503 SlowDown for good")
        _finish(experiment, ended, "ArtifactsUnavailable")


@each_moment
def test_a_state_store_that_becomes_read_only(lab: Lab, moment: Mark) -> None:
    """It answers, and takes nothing any more: the run is red and says why; what the target has committed is not repeated."""
    with lab.experiment(lab.story[2]) as experiment:
        worker = experiment.start(moment)
        worker.held()
        _set_read_only(experiment, "on")
        experiment.faults.append("state store read-only")
        worker.go_on()
        ended = worker.end()
        _set_read_only(experiment, "off")
        assert ended.error == "StateUnavailable", ended
        _finish(experiment, ended, "StateUnavailable")


def _set_read_only(experiment: Experiment, value: str) -> None:
    """Set it for new sessions, and end all others."""
    name = experiment.place.state.schema
    experiment.sql(TARGET, f'alter database "{name}" set default_transaction_read_only = {value}')
    experiment.sql(TARGET, "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = %s", name)


def _finish(experiment: Experiment, worker: Worker | Ended, *names: str) -> None:
    """Let the worker end, with success or an error of one of these names; then ask for the same until it has succeeded."""
    if isinstance(worker, Worker):
        worker.go_on()
        worker = worker.end()
    assert worker.status == "succeeded" or worker.error in names, worker
    experiment.go_on()
    experiment.check()
