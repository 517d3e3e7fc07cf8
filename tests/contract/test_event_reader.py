"""The contract of `EventReader`."""

import pytest

from sluice.errors import NotFound
from sluice.model.base import RunId, ShardKey
from sluice.model.journal import Subject
from sluice.model.lifecycle import RunEvent, RunStatus, ShardStatus, Step
from sluice.model.progress import Progress
from sluice.model.run import Failure
from sluice.model.standing import Brought
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, POLICY, a_pointer, a_run, plans

RUN, OSLO, PARIS, ROME = RunId("run-1"), ShardKey("oslo"), ShardKey("paris"), ShardKey("rome")


def test_a_journal_is_read_from_any_place(stores: Stores) -> None:
    """Its numbers have no gap; whoever goes on behind one gets the next, whether many at a time or one."""
    run = stores.runs.open(a_run(), POLICY)
    stores.shards.plan(run, plans(PARIS), {})
    stores.shards.fail(stores.shards.claim(RUN, PARIS), Failure(error="CursorStuck", message="twice"))
    stores.runs.end(stores.runs.enter(RUN, Step.REVIEW, MINUTE), RunEvent.FAIL)
    events = stores.events.after(RUN, 0, 99)
    assert [event.seq for event in events] == [1, 2, 3, 4, 5, 6]
    assert [(event.subject, event.event, event.status) for event in events] == [
        (Subject.RUN, "open", "pending"),
        (Subject.RUN, "plan", "pending"),
        (Subject.SHARD, "claim", "running"),
        (Subject.SHARD, "fail", "failed"),
        (Subject.RUN, "enter", "running"),
        (Subject.RUN, "fail", "failed"),
    ]
    assert events[1].facts == {"shards": 1}
    assert (events[3].name, events[3].facts) == (PARIS, {"error": "CursorStuck", "message": "twice"})
    one_by_one = [stores.events.after(RUN, seq, 1) for seq in range(7)]
    assert [event for some in one_by_one for event in some] == events
    assert stores.events.newest(RUN, 2) == events[:-3:-1]
    assert stores.events.after(RunId("nobody"), 0, 9) == stores.events.newest(RunId("nobody"), 9) == []


def test_a_run_as_it_stands(stores: Stores) -> None:
    """Shards are added up by status, with what open chunks hold; it began with its first claim."""
    run = stores.runs.open(a_run(), POLICY)
    assert stores.events.standing(RUN).began is None
    stores.shards.plan(run, plans(OSLO, PARIS, ROME), {})
    stores.runs.enter(RUN, Step.FETCH, MINUTE)
    oslo, paris = stores.shards.claim(RUN, OSLO), stores.shards.claim(RUN, PARIS)
    held = oslo.model_copy(update={"chunks": 1, "pages": 2, "records": 20, "exhausted": True})
    stores.shards.succeed(stores.shards.checkpoint(held, a_pointer(shard=OSLO), MINUTE))
    told = Progress(run=RUN, shard=PARIS, token=paris.token, chunk=0, pages=1, records=5)
    stores.progress.tell(told)
    standing = stores.events.standing(RUN)
    assert (standing.status, standing.step) == (RunStatus.RUNNING, Step.FETCH)
    assert standing.brought == {
        ShardStatus.SUCCEEDED: Brought(shards=1, pages=2, records=20),
        ShardStatus.RUNNING: Brought(shards=1, pages=1, records=5),
        ShardStatus.PENDING: Brought(shards=1, pages=0, records=0),
    }
    assert standing.began is not None
    assert standing.began <= standing.at
    assert (standing.records, standing.expected) == (25, 60)
    with pytest.raises(NotFound):
        stores.events.standing(RunId("nobody"))
