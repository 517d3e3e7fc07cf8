"""Reviews: which shards one is of."""

import pytest

from sluice.model.base import RunId, ShardKey, Token
from sluice.model.lifecycle import ShardStatus
from sluice.model.shard import Shard
from tests.support.nouns import a_review

DONE, LOST, LEFT, SKIPPED = ShardStatus.SUCCEEDED, ShardStatus.FAILED, ShardStatus.PENDING, ShardStatus.SKIPPED


@pytest.mark.parametrize(
    ("failed", "statuses", "covers"),
    [
        (0, (DONE, DONE), True),
        (1, (DONE, LOST), True),
        (1, (DONE, LEFT), True),
        (1, (DONE, SKIPPED), True),
        (1, (DONE, DONE), False),
        (2, (DONE, DONE, LOST), False),
        (2, (DONE, LOST, LEFT), True),
    ],
)
def test_a_review_covers_the_shards_that_had_come_in(failed: int, statuses: tuple[ShardStatus, ...], *, covers: bool) -> None:
    """One that came in since then is not covered, however it had failed before."""
    review = a_review("r")
    review = review.model_copy(update={"figures": review.figures.model_copy(update={"shards_failed": failed})})
    shards = [
        Shard(run=RunId("run-1"), key=ShardKey(str(number)), params={}, status=status, token=Token(0))
        for number, status in enumerate(statuses)
    ]
    assert review.covers(shards) is covers
