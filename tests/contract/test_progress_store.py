"""The contract of `ProgressStore`."""

import pytest

from sluice.model.base import RunId, ShardKey, Token
from sluice.model.progress import Progress
from sluice.model.shard import Shard
from tests.contract.conftest import Stores
from tests.support.nouns import POLICY, a_run, plans

RUN, PARIS, ROME = RunId("run-1"), ShardKey("paris"), ShardKey("rome")


@pytest.fixture
def paris(stores: Stores) -> Shard:
    """A claimed shard, beside another one."""
    stores.shards.plan(stores.runs.open(a_run(), POLICY), plans(PARIS, ROME), {})
    return stores.shards.claim(RUN, PARIS)


def told(shard: Shard, pages: int, chunk: int = 0) -> Progress:
    """Return so much progress."""
    return Progress(
        run=RUN, shard=shard.key, token=shard.token, chunk=chunk, pages=pages, records=pages * 10, bytes=pages * 100
    )


def test_nothing_was_told_yet(stores: Stores, paris: Shard) -> None:
    """A shard of which nothing was told is not in the answer, nor is a run that is not there an error."""
    assert stores.progress.of(RUN) == {}
    assert stores.progress.of(RunId("nobody")) == {}


def test_the_last_word_stands(stores: Stores, paris: Shard) -> None:
    """There is one row for each shard, however often it is told of."""
    rome = stores.shards.claim(RUN, ROME)
    for progress in (told(paris, 1), told(rome, 5), told(paris, 3), told(paris, 2, chunk=1)):
        stores.progress.tell(progress)
    assert stores.progress.of(RUN) == {PARIS: told(paris, 2, chunk=1), ROME: told(rome, 5)}


def test_an_older_token_changes_nothing(stores: Stores, paris: Shard) -> None:
    """Who lost the shard is not heard, and hears nothing of it either."""
    present = stores.shards.claim(RUN, PARIS)
    stores.progress.tell(told(present, 1))
    stores.progress.tell(told(paris, 9))
    stores.progress.tell(told(paris.model_copy(update={"key": ShardKey("oslo"), "token": Token(99)}), 9))
    assert stores.progress.of(RUN) == {PARIS: told(present, 1)}
