"""What is shown of an open chunk, and when it is out of date."""

from typing import Any

import pytest

from sluice.model.base import RunId, ShardKey, Token
from sluice.model.lifecycle import ShardStatus
from sluice.model.progress import Progress, shown
from sluice.model.shard import Shard

RUN, PARIS = RunId("run-1"), ShardKey("paris")

SHARD = Shard(run=RUN, key=PARIS, params={}, status=ShardStatus.RUNNING, chunks=2, pages=20, records=200, token=Token(7))
TOLD = Progress(run=RUN, shard=PARIS, token=Token(7), chunk=2, pages=3, records=30, bytes=900)


def test_the_open_chunk_is_added_to_what_is_checkpointed() -> None:
    """People see how far a shard has come, not how far it is safe."""
    (seen,) = shown([SHARD], {PARIS: TOLD})
    assert (seen.pages, seen.records) == (23, 230)


@pytest.mark.parametrize(
    "stale",
    [
        {"chunks": 3, "pages": 23, "records": 230},
        {"token": Token(8)},
        {"status": ShardStatus.FAILED},
        {"status": ShardStatus.PENDING, "chunks": 0, "pages": 0, "records": 0},
        {"exhausted": True},
    ],
    ids=["checkpointed", "claimed again", "failed", "begun again", "fetched"],
)
def test_what_is_out_of_date_counts_for_nothing(stale: dict[str, Any]) -> None:
    """No page is counted twice, and none that was lost."""
    shard = SHARD.model_copy(update=stale)
    assert shown([shard], {PARIS: TOLD}) == [shard]


def test_a_shard_of_which_nothing_was_told_is_shown_as_it_is() -> None:
    """Progress may be lost at any time."""
    assert shown([SHARD], {}) == [SHARD]
