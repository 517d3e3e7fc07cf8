"""How fast a run goes, and how much is left of it."""

from datetime import timedelta
from typing import Any

from sluice.model.lifecycle import RunStatus, ShardStatus, Step
from sluice.model.standing import Brought, Standing
from tests.support.nouns import NOW

DONE, AT_WORK, TO_COME = ShardStatus.SUCCEEDED, ShardStatus.RUNNING, ShardStatus.PENDING


def standing(**changes: Any) -> Standing:
    """Return a run ten seconds after it began: of four shards one is done, with 100 records, one has brought 50."""
    brought = {
        DONE: Brought(shards=1, pages=1, records=100),
        AT_WORK: Brought(shards=1, pages=1, records=50),
        TO_COME: Brought(shards=2, pages=0, records=0),
    }
    began = NOW - timedelta(seconds=10)
    facts = {"at": NOW, "began": began, "status": RunStatus.RUNNING, "step": Step.FETCH, "brought": brought}
    return Standing.model_validate(facts | changes)


def test_what_is_left_is_reckoned_by_the_shards_that_are_done() -> None:
    """150 records in ten seconds, 250 more to come: a quarter of a minute and a little."""
    run = standing()
    assert (run.shards, run.pages, run.records, run.expected, run.rate) == (4, 2, 150, 400, 15.0)
    assert run.left() == timedelta(seconds=17)


def test_a_shard_that_has_brought_more_than_the_others_is_expected_to_end() -> None:
    """Nothing is taken off what is there."""
    brought = {DONE: Brought(shards=1, pages=1, records=10), AT_WORK: Brought(shards=1, pages=1, records=50)}
    assert standing(brought=brought).expected == 60


def test_what_nobody_can_tell_is_not_told() -> None:
    """No shard is done, none was claimed, or the run does not run: no number is made up."""
    assert standing(brought={AT_WORK: Brought(shards=1, pages=1, records=50)}).left() is None
    assert standing(began=None).left() is None
    assert standing(status=RunStatus.WAITING).rate is None
    assert standing(began=NOW).rate is None
