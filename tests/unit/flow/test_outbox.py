"""The outbox: who is told of a publication, when, and what becomes of a call that did not get through."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import CallUnconfirmed, ConnectionInvalid, LedgerMoved, ReceiverUnavailable
from sluice.flow.admission import admit
from sluice.flow.fetcher import fetch
from sluice.flow.publisher import publish
from sluice.flow.reviewer import review
from sluice.flow.settlement import settle
from sluice.flow.sharder import plan_shards
from sluice.flow.transformer import transform
from sluice.model.base import RunId
from sluice.model.call import Call, CallResult, CallStanding
from sluice.model.ledger import Outcome, Publication
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Mode, Origin, RunRequest
from sluice.model.stage import RetryPolicy, StagePolicy
from tests.support.nouns import NOW
from tests.unit.fakes.webhook import ACCEPTED, REFUSED, ListedWebhook
from tests.unit.flow.workshop import JUNE, MAY, NORTH, RUN, SOUTH, Workshop, page, sync_spec

DOWN = ReceiverUnavailable("POST http://shop/hook: connection refused")
ONCE = StagePolicy(retry=RetryPolicy(attempts=1))
HOOKS = [{"name": name, "connection": name, "path": "/hook"} for name in ("shop", "search")]


class Bench:
    """A run whose review is approved, of a sync with two webhooks."""

    def __init__(self, *shop: CallResult | Exception, hooks: list[dict[str, str]] = HOOKS) -> None:
        review_policy = {"first_load": "auto-approve", "auto_approve": {"created": "100%"}}
        self.workshop = Workshop(spec=sync_spec(review=review_policy, webhooks=hooks), policy=ONCE)
        self.target = self.workshop.equip()
        self.services = self.workshop.services
        self.shop, self.search = ListedWebhook(*shop), ListedWebhook()
        self.workshop.webhooks.update(shop=self.shop, search=self.search)
        self.workshop.begin(mode=Mode.FULL)
        self.workshop.bring_in(NORTH, ("a", MAY))
        self.workshop.bring_in(SOUTH, ("b", JUNE))
        review(self.services, RUN)

    def publish(self, *, is_repeated: bool = False) -> Publication:
        """Run the step."""
        publication = publish(self.services, RUN, is_repeated=is_repeated)
        assert publication is not None
        return publication

    def calls(self, run: str = RUN) -> dict[str, Call]:
        """The calls of a run by name."""
        return {call.name: call for call in self.services.calls.of(RunId(run))}

    def standings(self) -> dict[str, CallStanding]:
        """How much is known of each call of the run."""
        return {name: call.standing for name, call in self.calls().items()}


def keys(receiver: ListedWebhook) -> list[str]:
    """The keys a receiver was told."""
    return [key for key, _ in receiver.told]


def test_each_webhook_is_told_what_was_published() -> None:
    """Who did what, and how much of it; never the rows."""
    bench = Bench()
    publication = bench.publish()
    body = {
        "sync": "hotels",
        "run": RUN,
        "review": publication.review,
        "publication": publication.id,
        "counts": {"created": 2},
        "applied_at": publication.applied_at.isoformat(),
    }
    assert [told for _, told in bench.shop.told + bench.search.told] == [body, body]
    assert bench.standings() == {"shop": CallStanding.ACCEPTED, "search": CallStanding.ACCEPTED}
    assert len({*keys(bench.shop), *keys(bench.search)}) == 2


def test_of_a_rollback_it_is_told_what_it_took_back() -> None:
    """So that a receiver can take back what it has made of that one."""
    bench = Bench(DOWN)
    published = bench.publish()
    bench.target.ledger.published[-1] = published.model_copy(update={"undoes": 17})
    bench.publish()
    assert [body["undoes"] for _, body in bench.shop.told[-1:]] == [17]


def test_a_publication_is_told_of_once() -> None:
    """However often the step runs."""
    bench = Bench()
    bench.publish()
    bench.publish()
    settle(bench.services, RUN)
    bench.publish()
    assert (len(bench.shop.told), len(bench.search.told)) == (1, 1)


def test_a_sync_without_webhooks_calls_nobody() -> None:
    """Nor is anything noted."""
    bench = Bench(hooks=[])
    bench.publish()
    assert bench.workshop.memory.calls == {}


def test_the_calls_are_noted_before_the_publication_is_committed() -> None:
    """Whenever the process dies, they are known to be due; but as long as nothing is published, nobody is told."""
    bench = Bench()

    class Torn(Exception):
        pass

    def torn(*_: Any) -> Any:
        raise Torn

    bench.target.publishing = torn  # type: ignore[method-assign]
    with pytest.raises(Torn):
        bench.publish()
    assert bench.standings() == {"shop": CallStanding.DUE, "search": CallStanding.DUE}
    assert bench.shop.told == []


def test_a_process_that_dies_between_commit_and_call() -> None:
    """The next try of the step finds the publication, and tells of it."""
    bench = Bench()

    def die(*_: Any) -> Any:
        raise KeyboardInterrupt

    asked = bench.workshop.webhooks["shop"].post
    bench.shop.post = die  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        bench.publish()
    bench.shop.post = asked  # type: ignore[method-assign]
    bench.publish()
    assert (len(bench.shop.told), len(bench.search.told)) == (1, 1)
    assert bench.calls()["shop"].begun == 2


def test_a_refusal_is_kept_and_undoes_nothing() -> None:
    """The run succeeds, and the refusal is there to be seen; the other webhook is told as ever."""
    bench = Bench(REFUSED)
    with capture_logs() as logs:
        bench.publish()
    assert bench.standings() == {"shop": CallStanding.REFUSED, "search": CallStanding.ACCEPTED}
    assert [entry["log_level"] for entry in logs if entry["event"] == log_events.CALL_ANSWERED] == ["warning", "info"]
    assert settle(bench.services, RUN).status is RunStatus.SUCCEEDED


def test_a_step_that_is_repeated_fails_for_a_receiver_that_is_away() -> None:
    """The publication stands, the others are told, and the repetition tells the one who was away under the same key."""
    bench = Bench(DOWN)
    with pytest.raises(CallUnconfirmed, match="connection refused"):
        bench.publish(is_repeated=True)
    assert (len(bench.target.ledger.published), len(bench.search.told)) == (1, 1)
    assert set(bench.services.watermarks.of("hotels")) == {NORTH, SOUTH}
    bench.publish(is_repeated=True)
    assert len(set(keys(bench.shop))) == 1
    assert (len(bench.shop.told), len(bench.search.told)) == (2, 1)


@pytest.mark.parametrize("trouble", [DOWN, ConnectionInvalid("there is no Airflow connection 'shop'")])
def test_without_a_repetition_the_call_is_left(trouble: Exception) -> None:
    """The run ends as it would, and says what was left."""
    bench = Bench(trouble)
    bench.publish()
    assert settle(bench.services, RUN).status is RunStatus.SUCCEEDED
    left = bench.calls()["shop"]
    assert (left.standing, left.trouble) == (CallStanding.UNCONFIRMED, str(trouble))


def test_a_missing_connection_is_not_repeated() -> None:
    """To try again at once would not help; a person has to define it, and a later run tells of the publication."""
    bench = Bench(ConnectionInvalid("there is no Airflow connection 'shop'"))
    bench.publish(is_repeated=True)
    assert bench.standings()["shop"] is CallStanding.UNCONFIRMED


def next_run(bench: Bench, *hotels: tuple[str, str]) -> Publication | None:
    """Let a run of another request of the sync go through to its publication."""
    run = RunId("run-2")
    workshop = bench.workshop
    admit(bench.services, RunRequest(sync="hotels", mode=Mode.FULL, shards=(NORTH, SOUTH), origin=Origin()), run)
    plan_shards(bench.services, run)
    for key, held in ((NORTH, [("a", MAY), *hotels]), (SOUTH, [("b", JUNE)])):
        workshop.supply(page(1, *held, is_last=True))
        fetch(bench.services, run, key)
        transform(bench.services, run, key)
    review(bench.services, run)
    return publish(bench.services, run)


def test_the_next_run_delivers_what_was_left() -> None:
    """Though it has nothing to publish itself; the receiver hears of the earlier publication, under its key."""
    bench = Bench(DOWN)
    first = bench.publish()
    settle(bench.services, RUN)
    assert next_run(bench) is None
    assert len(set(keys(bench.shop))) == 1
    assert bench.shop.told[-1][1]["review"] == first.review
    assert bench.standings() == {"shop": CallStanding.ACCEPTED, "search": CallStanding.ACCEPTED}
    assert len(bench.search.told) == 1


def test_the_next_run_tells_of_both() -> None:
    """Of its own publication and of the one that was left."""
    bench = Bench(DOWN)
    first = bench.publish()
    settle(bench.services, RUN)
    second = next_run(bench, ("c", JUNE))
    assert second is not None
    told: list[Mapping[str, Any]] = [body for _, body in bench.shop.told]
    assert [body["publication"] for body in told] == [first.id, second.id, first.id]


def test_a_run_that_is_still_at_work_delivers_for_itself() -> None:
    """Only what runs left that are over is taken up."""
    bench = Bench(DOWN)
    bench.publish()
    next_run(bench)
    assert len(bench.shop.told) == 1


def test_a_receiver_that_stays_away_is_asked_once_a_step() -> None:
    """However much it has been left."""
    bench = Bench(DOWN, DOWN)
    bench.publish()
    settle(bench.services, RUN)
    next_run(bench, ("c", JUNE))
    assert len(bench.shop.told) == 2
    assert len(bench.search.told) == 2


def test_what_was_left_is_given_up_in_the_end() -> None:
    """After the stage's idempotency_ttl nobody is told any more of what is long past."""
    bench = Bench(DOWN)
    bench.publish()
    settle(bench.services, RUN)
    bench.workshop.memory.clock.move(ONCE.idempotency_ttl + timedelta(seconds=1))
    next_run(bench)
    assert len(bench.shop.told) == 1


def test_a_webhook_that_is_declared_no_more_is_not_told() -> None:
    """What was left for it stays until it expires."""
    bench = Bench(DOWN)
    bench.publish()
    settle(bench.services, RUN)
    bench.workshop.spec = bench.workshop.spec.model_copy(update={"webhooks": bench.workshop.spec.webhooks[1:]})
    next_run(bench)
    assert (len(bench.shop.told), bench.standings()["shop"]) == (1, CallStanding.UNCONFIRMED)


def test_a_publication_without_any_change_is_not_told_of() -> None:
    """All that was approved came to be there before, by another run."""
    bench = Bench()
    published = bench.target.ledger.published
    review_of = bench.services.reviews.latest(RUN)
    assert review_of is not None
    counts: dict[Outcome, int] = {}
    empty = Publication.model_validate(
        {"id": 1, "sync": "hotels", "review": review_of.id, "run": RUN, "counts": counts, "applied_at": NOW}
    )
    published.append(empty)
    assert bench.publish() == empty
    assert bench.shop.told == []


def test_a_publication_that_failed_is_not_told_of() -> None:
    """Not even by the next run."""
    bench = Bench(ACCEPTED)

    def moved(*_: Any) -> Any:
        raise LedgerMoved

    present = bench.target.publishing
    bench.target.publishing = moved  # type: ignore[method-assign]
    with pytest.raises(LedgerMoved):
        bench.publish()
    settle(bench.services, RUN)
    bench.target.publishing = present  # type: ignore[method-assign]
    second = next_run(bench)
    assert second is not None
    assert [body["publication"] for _, body in bench.shop.told] == [second.id]
