"""Steps that mend: a run or a shard goes into its step; what was lost of the steps before is made again first, or meanwhile.

For whoever does one step at a time. What is lost again and again is not made for ever: then `RedoNeeded` stands. All that is
remembered is in state: a worker that dies in the middle of this leaves nothing that the next try of the step would not find.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import structlog

from sluice import log_events
from sluice.errors import ApprovalVoid, LedgerMoved, RedoNeeded, ReviewWaiting, Scope, SluiceError
from sluice.flow import fetcher, publisher, reviewer, transformer
from sluice.flow.damage import is_void
from sluice.flow.gate import hold
from sluice.flow.rebuilding import rebuilding
from sluice.flow.rollback import review_rollback
from sluice.model.base import RunId, ShardKey
from sluice.model.ledger import Publication
from sluice.model.lifecycle import APPROVALS, ShardStatus
from sluice.model.review import Review
from sluice.model.shard import Shard
from sluice.ports import Services

log: Final = structlog.get_logger()

MOST_REDOS: Final = 2
"""What is damaged more often than that has a cause that no repetition mends."""

T = TypeVar("T")


def transform(services: Services, run_id: RunId, shard_key: ShardKey) -> Shard:
    """Transform a shard; one that had to begin again is fetched first."""

    def work() -> Shard:
        if _is_to_be_fetched(services.shards.get(run_id, shard_key)):
            fetcher.fetch(services, run_id, shard_key)
        return transformer.transform(services, run_id, shard_key)

    return _mending(services, work)


def review(services: Services, run_id: RunId) -> Review:
    """Review a run; shards that have something to make again are brought in first. A rollback has none."""

    def work() -> Review:
        if services.runs.get(run_id).undoes is not None:
            return review_rollback(services, run_id)
        _bring_in(services, run_id)
        return reviewer.review(services, run_id)

    return _mending(services, work)


def held(services: Services, run_id: RunId) -> Review:
    """Hold a run at the gate; a review that could not be read, and was removed, is made again first."""

    def work() -> Review:
        if services.reviews.latest(run_id) is None:
            review(services, run_id)
        return hold(services, run_id)

    return _mending(services, work)


def publish(services: Services, run_id: RunId, *, is_repeated: bool = False) -> Publication | None:
    """Publish a run; shards that have something to make again are brought in first, and a review that is void is made again.

    One of the same diff is the same review, whose approval stands. Another has to be approved by itself: if that takes a
    person, the run waits at its gate, and `ReviewWaiting` says for which review. Whoever has it decided calls this again.
    """

    def work() -> Publication | None:
        _bring_in(services, run_id)
        latest = services.reviews.latest(run_id)
        if latest is None or (latest.verdict in APPROVALS and is_void(services, latest)):
            review(services, run_id)
        return publisher.publish(services, run_id, is_repeated=is_repeated)

    def reviewing() -> Publication | None:
        try:
            return work()
        except (ApprovalVoid, LedgerMoved):
            review(services, run_id)
            raise

    try:
        return _mending(services, reviewing)
    except ReviewWaiting:
        hold(services, run_id)
        raise


def _mending(services: Services, work: Callable[[], T]) -> T:
    for redone in range(MOST_REDOS):
        try:
            with rebuilding(services):
                return work()
        except (RedoNeeded, ApprovalVoid, LedgerMoved) as error:
            log.warning(log_events.STEP_REPEATED, times=redone + 1, message=error.message)
    return work()


def _bring_in(services: Services, run_id: RunId) -> None:
    """Take the shards that have something to make again through their steps; one that fails has told so itself."""
    for shard in services.shards.of(run_id):
        if _is_to_be_fetched(shard) or _is_to_be_mapped(shard):
            try:
                transform(services, run_id, shard.key)
            except SluiceError as error:
                if error.scope is not Scope.SHARD:
                    raise


def _is_to_be_fetched(shard: Shard) -> bool:
    """Whether it began again, and was not fetched to its end since."""
    return shard.epoch > 0 and not shard.exhausted and shard.status is not ShardStatus.SKIPPED


def _is_to_be_mapped(shard: Shard) -> bool:
    return shard.exhausted and shard.status in (ShardStatus.PENDING, ShardStatus.RUNNING)
