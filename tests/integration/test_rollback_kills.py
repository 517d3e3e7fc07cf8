"""Rollbacks in processes of their own, which are killed in the middle, or two of which are asked for the same."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluice import log_events
from sluice.flow.gate import decide
from sluice.flow.inline import resume_inline, run_inline
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Mode, Origin, Run, RunRequest
from sluice.ports import ConnectionInfo
from tests.chaos.worker import Errand, Mark
from tests.chaos.workers import Nursery, Worker, open_nursery
from tests.support.nouns import a_decision
from tests.support.stall import Stall, open_stall, price

GOOD = [price("a", 10), price("b", 20), price("c", 30)]
BAD = [price("a", 11, 2), price("b", 20), price("d", 40, 2)]
REVIEW = {
    "first_load": "auto-approve",
    "auto_approve": {"seen_at_least": "1%", "created": 99, "changed": 99, "deleted": 99, "drift": 99},
    "block": {"deleted": "100%"},
}


class Site:
    """A table with a publication too many, and workers that take it back."""

    def __init__(self, stall: Stall, nursery: Nursery, folder: Path, known: dict[str, ConnectionInfo]) -> None:
        self.stall = stall
        self._nursery = nursery
        self._folder = folder
        self._known = known
        stall.bring(GOOD)
        self.former = self.rows()
        stall.bring(BAD)
        self.undone = stall.publications()[-1]
        assert self.undone.counts == {Outcome.CHANGED: 1, Outcome.CREATED: 1, Outcome.DELETED: 1}
        self.request = RunRequest(sync="prices", mode=Mode.ROLLBACK, undoes=self.undone.id, origin=Origin())

    def start(self, run: Run | None = None, event: str | None = None) -> Worker:
        """Start a worker that asks for the rollback, or goes on with it, and stands still at an event."""
        marks = frozenset({Mark(1, event)} if event else ())
        work = self.request if run is None else run.id
        return self._nursery.start(Errand(self._folder / "include", self._folder / "worker", self._known, work, marks=marks))

    def ask(self) -> Run:
        """Ask for the rollback in this process."""
        return run_inline(self.stall.services, self.request)

    def approve(self, run: Run) -> Run:
        """Approve of what it would restore, and no more."""
        decide(self.stall.services, self.stall.review_of(run).id, a_decision())
        return run

    def finish(self) -> Run:
        """Ask for it again, as a person does after a kill; answer, where there is something to answer."""
        run = self.ask()
        return resume_inline(self.stall.services, self.approve(run).id) if run.status is RunStatus.WAITING else run

    def rows(self) -> list[tuple[Any, ...]]:
        """What the table holds, deleted rows included."""
        return self.stall.sql("select * from prices order by id")

    def rollbacks(self) -> list[dict[Outcome, int]]:
        """What the publications that took the one back have restored."""
        return [made.counts for made in self.stall.publications() if made.undoes == self.undone.id]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with open_nursery() as nursery:
        yield nursery


@pytest.fixture
def site(tmp_path: Path, nursery: Nursery, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Site]:
    """A site whose workers are missed soon."""
    known = {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts}
    policy = {"lease_ttl": "2s", "heartbeat": "0.5s"}
    with open_stall(tmp_path, database, artifacts, {"review": REVIEW}, **policy) as stall:
        yield Site(stall, nursery, tmp_path, known)


@pytest.mark.parametrize("event", [log_events.ROLLBACK_REVIEWED, log_events.RUN_PARKED])
def test_killed_before_it_is_answered(site: Site, event: str) -> None:
    """Nothing has happened to the table; asked for again, it is done as if nothing had been."""
    worker = site.start(event=event)
    worker.held()
    worker.kill()
    assert site.rows() != site.former
    assert site.finish().status is RunStatus.SUCCEEDED
    assert (site.rows(), site.rollbacks()) == (site.former, [{Outcome.ROLLED_BACK: 3}])


@pytest.mark.parametrize("event", [log_events.UNDO_STORED, log_events.PUBLICATION_COMMITTED])
def test_killed_behind_its_answer(site: Site, event: str) -> None:
    """Before the commit nothing has happened; behind it all has. Asked for again, it is published once, whichever it was."""
    worker = site.start(site.approve(site.ask()), event)
    worker.held()
    worker.kill()
    is_committed = event != log_events.UNDO_STORED
    assert (site.rows() == site.former, len(site.rollbacks())) == (is_committed, int(is_committed))
    assert site.finish().status is RunStatus.SUCCEEDED
    assert (site.rows(), site.rollbacks()) == (site.former, [{Outcome.ROLLED_BACK: 3}])


def test_two_at_once(site: Site) -> None:
    """One works, the other follows it through its gate, and ends as it does."""
    owner = site.start(event=log_events.ROLLBACK_REVIEWED)
    owner.held()
    follower = site.start(event=log_events.FLIGHT_AWAITED)
    follower.held()
    follower.go_on()
    owner.go_on()
    waiting = owner.end()
    assert (waiting.status, waiting.error) == (RunStatus.WAITING, None)
    (parked,) = site.stall.services.reviews.waiting("prices")
    assert parked.run == waiting.run
    assert (
        resume_inline(site.stall.services, site.approve(site.stall.services.runs.get(parked.run)).id).status
        is RunStatus.SUCCEEDED
    )
    followed = follower.end()
    assert (followed.status, followed.error) == (RunStatus.SUCCEEDED, None)
    assert followed.run != waiting.run
    assert (site.rows(), site.rollbacks()) == (site.former, [{Outcome.ROLLED_BACK: 3}])
