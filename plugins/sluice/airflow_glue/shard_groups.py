"""Shards are spread over mapped tasks here, and the shards of one task worked on, each by itself."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import Fenced, OutcomeUnknown, RateLimited, Retryable, Scope, ShardsFailed, SluiceError
from sluice.guard.retries import due_at
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import ShardStatus
from sluice.model.shard import Shard, some_of
from sluice.ports import ShardStore

log: Final = structlog.get_logger()

Work = Callable[[ShardKey], Shard]
"""A step of shard grain, for the run at hand."""


def spread(keys: Sequence[ShardKey], groups: int) -> list[dict[str, object]]:
    """Return one named group for each mapped task: each shard its own while they suffice, else several to a group."""
    if len(keys) <= groups:
        return [{"name": key, "shards": [key]} for key in keys]
    return [{"name": f"group {n + 1} of {groups}", "shards": list(keys[n::groups])} for n in range(groups)]


def fetch_group(store: ShardStore, run: RunId, keys: Sequence[ShardKey], fetch: Work) -> list[Shard]:
    """Fetch the group's shards, then help the other groups with theirs; raise `ShardsFailed` naming each that failed.

    A group answers for its own shards: those that another one took meanwhile are looked at again at the end, and taken
    over unless they came in. So a helper that dies leaves nothing behind. Once a supplier asks for a pause, none of them is
    asked for any more.
    """
    if len(keys) == 1:
        return [fetch(keys[0])]
    pass_ = _Pass(fetch)
    for key in keys:
        if not pass_.pauses and store.get(run, key).status is not ShardStatus.RUNNING:
            pass_.work_on(key)
    while not pass_.pauses and (other := store.claim_next(run)) is not None:
        pass_.help_with(other.key)
    for key in keys:
        if not pass_.pauses and key not in pass_.failed and not _is_fetched(store.get(run, key)):
            pass_.work_on(key)
    state = _state(store, run, keys)
    pass_.finish(len(keys), [key for key in keys if key not in pass_.failed and not _is_fetched(state[key])])
    return list(state.values())


def transform_group(store: ShardStore, run: RunId, keys: Sequence[ShardKey], transform: Work) -> list[Shard]:
    """Transform those of the group's shards that were fetched; raise `ShardsFailed` naming each that failed."""
    state = _state(store, run, keys)
    # One that began again since it was fetched is fetched by its transformation.
    fetched = [key for key in keys if _is_fetched(state[key]) or state[key].epoch]
    if not fetched:
        raise ShardsFailed(f"nothing was fetched of {some_of(keys)}, so there is nothing to transform")
    if len(keys) == 1:
        return [transform(keys[0])]
    pass_ = _Pass(transform)
    for key in fetched:
        pass_.work_on(key)
    pass_.finish(len(fetched))
    return list(_state(store, run, fetched).values())


class _Pass:
    """One pass over the shards of a mapped task, in which one that fails stops no other."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.failed: dict[ShardKey, Exception] = {}
        self.pauses: list[datetime] = []
        """From when on suppliers may be asked again that asked for a pause, or are left alone."""
        self.is_asked_for = False
        """Whether one of the pauses is a supplier's own wish."""

    def work_on(self, key: ShardKey) -> None:
        """Work on a shard of this group, and remember its failure; what concerns the whole run is raised at once."""
        try:
            self._work(key)
        except SluiceError as error:
            self._note(error)
            self.failed[key] = error
        except Exception as error:
            log.exception(log_events.SHARD_FAILED, shard=key)
            self.failed[key] = error

    def help_with(self, key: ShardKey) -> None:
        """Work on a shard of another group, which answers for it whatever happens here."""
        try:
            self._work(key)
        except Fenced:
            log.info(log_events.SHARD_TAKEN_BACK, shard=key)
        except SluiceError as error:
            self._note(error)
        except Exception:
            log.exception(log_events.SHARD_FAILED, shard=key)

    def _note(self, error: SluiceError) -> None:
        if error.scope is Scope.RUN:
            raise error
        due = due_at(error, datetime.now(UTC))
        if due is not None:
            self.pauses.append(due)
            self.is_asked_for = self.is_asked_for or isinstance(error, RateLimited)

    def finish(self, shards: int, left: Sequence[ShardKey] = ()) -> None:
        """Raise `ShardsFailed` if any of so many shards failed, or was left for later; `until` if one of them has to wait."""
        if not self.failed and not left:
            return
        named = some_of([f"{key}: {type(error).__name__}: {error}" for key, error in self.failed.items()], "; ")
        waiting = f"; {len(left)} more wait for their supplier" if left else ""
        raise ShardsFailed(
            f"{len(self.failed)} of {shards} shards failed: {named or 'none'}{waiting}",
            shards=[*self.failed, *left],
            is_retryable=bool(left) or any(_is_retryable(error) for error in self.failed.values()),
            until=min(self.pauses, default=None),
            is_asked_for=self.is_asked_for,
        )


def _state(store: ShardStore, run: RunId, keys: Sequence[ShardKey]) -> dict[ShardKey, Shard]:
    """Return these shards as they are now; the run may have thousands of others."""
    return {key: store.get(run, key) for key in keys}


def _is_fetched(shard: Shard) -> bool:
    return shard.exhausted or shard.status in {ShardStatus.SUCCEEDED, ShardStatus.SKIPPED}


def _is_retryable(error: Exception) -> bool:
    """Whether a repetition may help; what nobody foresaw may well be gone the next time."""
    return isinstance(error, Retryable | OutcomeUnknown) or not isinstance(error, SluiceError)
