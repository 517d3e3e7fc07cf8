"""The outbox: a publication comes in; each webhook of its sync is told of it, once.

A call is noted before the publication is committed, so that it cannot be forgotten whenever the process dies. It is made after
the commit, from what the ledger holds of the publication. What could not be delivered by the end of its run is delivered by
the next run of the sync that comes to publishing.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from sluice.errors import CallUnconfirmed, ConnectionInvalid
from sluice.flow.entering import Entry
from sluice.guard.calls import call_key, once
from sluice.model.base import ReviewId
from sluice.model.call import Call
from sluice.model.ledger import Publication
from sluice.model.review import Review
from sluice.model.spec import SyncSpec, WebhookSpec
from sluice.ports import Services

_KIND: Final = "webhook"


def prepare(services: Services, entry: Entry, spec: SyncSpec, review: Review) -> None:
    """Note who has to be told as soon as the review is published."""
    if spec.webhooks:
        calls = [_call(spec, review, hook) for hook in spec.webhooks]
        services.calls.prepare(calls, entry.run, entry.policy.idempotency_ttl)


def deliver(services: Services, entry: Entry, spec: SyncSpec, review: Review, *, is_repeated: bool) -> None:
    """Tell of the review's publication, if there is one, and of those that runs which are over could not tell of.

    Nothing here undoes a publication: a refusal is kept as the call's result, and a receiver that cannot be reached is left
    to a later run. But if the step `is_repeated` after an error, raises `CallUnconfirmed` for a call of this review.
    """
    hooks = {hook.name: hook for hook in spec.webhooks}
    if not hooks:
        return
    own = [_call(spec, review, hook) for hook in spec.webhooks]
    unconfirmed: CallUnconfirmed | None = None
    for call, publication in _due(services, spec, own):
        hook = hooks.get(call.name)
        if hook is None:
            continue
        try:
            _tell(services, entry, hook, call, publication)
        except CallUnconfirmed as error:
            # Who cannot be reached now is not asked again by this step.
            del hooks[call.name]
            unconfirmed = error if call in own else unconfirmed
        except ConnectionInvalid:
            del hooks[call.name]
        entry.pulse.moved()
    if is_repeated and unconfirmed is not None:
        raise unconfirmed


def _due(services: Services, spec: SyncSpec, own: list[Call]) -> Iterator[tuple[Call, Publication]]:
    """Yield calls with the publications they are to tell of; there is nothing to tell of a review that changed nothing."""
    ledger = services.ledger(spec)
    keys = {call.key for call in own}
    for call in [*own, *(left for left in services.calls.left(spec.sync) if left.key not in keys)]:
        publication = ledger.publication_of(ReviewId(call.subject))
        if publication is not None and publication.writes:
            yield call, publication


def _tell(services: Services, entry: Entry, hook: WebhookSpec, call: Call, publication: Publication) -> None:
    body: dict[str, JsonValue] = {
        "sync": publication.sync,
        "run": publication.run,
        "review": publication.review,
        "publication": publication.id,
        "counts": {outcome.value: count for outcome, count in publication.counts.items()},
        "applied_at": publication.applied_at.isoformat(),
        **({} if publication.undoes is None else {"undoes": publication.undoes}),
    }
    once(
        services.calls,
        call,
        entry.run,
        entry.policy,
        lambda begun: services.webhook(hook, entry.policy).post(begun.key, body),
    )


def _call(spec: SyncSpec, review: Review, hook: WebhookSpec) -> Call:
    key = call_key(_KIND, spec.sync, review.id, hook.name)
    return Call(key=key, sync=spec.sync, run=review.run, subject=review.id, name=hook.name)
