"""Fetching: a shard comes in; its pages go, byte for byte, into checkpointed chunks; the shard goes out, exhausted.

Whatever the source raises, the complete pages of the open chunk are checkpointed first, so that no page is asked for twice.
Then the shard fails, with the error's name for whoever looks; who has tries left claims it again and goes on from its cursor.
What the stores raise, `Fenced` above all, passes without a second try: the next claim reads the row again.

Where the supplier does not know the cursor any more, the shard begins again at once, in a new epoch; and once more, each time
that it has come further than before.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Self

import structlog
from structlog.contextvars import bound_contextvars

from sluice import log_events
from sluice.errors import CursorExpired, Fenced, NoProgress, Permanent, RawDataGone, Scope, SluiceError
from sluice.flow.bounds import Bounds
from sluice.flow.by_hand import left_by_hand
from sluice.flow.digest import content_digest
from sluice.flow.entering import entered_for_a_shard, heartbeat_of
from sluice.flow.measuring import count_retry, measured
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.progress import ToldProgress
from sluice.flow.redriving import LetterSource
from sluice.guard.heartbeat import Heartbeat
from sluice.guard.log_level import logged_from
from sluice.guard.memory import lack_of_memory_told
from sluice.guard.retries import DUE, due_at
from sluice.model.artifact import ArtifactKind, ArtifactRef
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import ShardStatus, Step
from sluice.model.metric import RetryScope
from sluice.model.run import Failure, Mode, Run
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy
from sluice.ports import Page, Services, Source

log: Final = structlog.get_logger()


def fetch(services: Services, run_id: RunId, shard_key: ShardKey) -> Shard:
    """Fetch what is missing of a shard. Running it again goes on from the last checkpoint, or changes nothing."""
    run = entered_for_a_shard(services, run_id, Step.FETCH)
    policy = services.policy(run.stage)
    bound = bound_contextvars(**run.log_context, shard=shard_key, step=str(Step.FETCH))
    with bound, logged_from(policy.log_level):
        shard = services.shards.claim(run_id, shard_key)
        if shard.attempt > 1 and not shard.exhausted:
            count_retry(services, run.stage, Step.FETCH, RetryScope.SHARD)
        while True:
            try:
                return _fetch_claimed(services, run, shard, policy)
            except Fenced as fenced:
                left_by_hand(services, shard, fenced)
                shard = services.shards.claim(run_id, shard_key)


def _fetch_claimed(services: Services, run: Run, shard: Shard, policy: StagePolicy) -> Shard:
    """Fetch a shard that was claimed to its end; one that has come in, or is skipped, is returned as it is."""
    reached = 0
    while not shard.exhausted and shard.status is ShardStatus.RUNNING:
        log.info(log_events.SHARD_CLAIMED, attempt=shard.attempt, pages=shard.pages, records=shard.records)
        pulse, began = heartbeat_of(services, run, shard, Step.FETCH, policy), services.clock.elapsed()
        fetching = _Fetching(services, run, policy, shard, pulse)
        try:
            with measured(services, run.stage, Step.FETCH), lack_of_memory_told(), pulse:
                fetching.go_on()
        except SluiceError as error:
            if isinstance(error, CursorExpired) and fetching.shard.pages > reached:
                reached = fetching.shard.pages
                shard = _begun_again(services, fetching.shard, error)
                continue
            if error.scope is not Scope.SHARD and not isinstance(error, Permanent):
                raise
            _give_up(services, run, fetching.shard, policy, error)
            raise
        shard = fetching.shard
        seconds = round(services.clock.elapsed() - began, 3)
        log.info(log_events.SHARD_FETCHED, chunks=shard.chunks, pages=shard.pages, records=shard.records, seconds=seconds)
    return shard


def _begun_again(services: Services, shard: Shard, error: CursorExpired) -> Shard:
    """Return the shard, claimed in a new epoch: what was fetched of it counts no more, as nobody knows what follows it."""
    services.redos.fetch_again(shard.key, shard)
    log.warning(log_events.SHARD_BEGUN_AGAIN, epoch=shard.epoch + 1, pages=shard.pages, message=error.message)
    return services.shards.claim(shard.run, shard.key)


def _give_up(services: Services, run: Run, shard: Shard, policy: StagePolicy, error: SluiceError) -> None:
    """Note why the shard failed. While Airflow waits until its supplier may be asked again, the run keeps its flight."""
    now = services.clock.now()
    due = due_at(error, now)
    failure, silence = Failure.of(error), None
    if due is not None:
        error.facts[DUE] = due
        if run.origin.is_airflow:
            silence = min(max(due - now, timedelta(0)), policy.wait_timeout) + policy.lease_ttl + policy.gap(run.origin)
        how = "Airflow asks again then" if run.origin.is_airflow else "run it again then"
        failure = Failure(
            error=failure.error,
            message=f"{error.message} Not before {due:%Y-%m-%dT%H:%M:%SZ}: {how}, from the last checkpoint on.",
        )
    services.shards.fail(shard, failure, silence)
    log.warning(log_events.SHARD_FAILED, error=failure.error, message=failure.message)


@dataclass
class _OpenChunk:
    """The pages received since the last checkpoint."""

    opened: float
    """In seconds of a clock that nobody sets back."""
    pages: list[Page] = field(default_factory=list)
    bytes: int = 0

    def add(self, page: Page) -> None:
        self.pages.append(page)
        self.bytes += len(page.body)


class _Fetching:
    """One attempt at one shard. `shard` is its row as of the last checkpoint."""

    def __init__(self, services: Services, run: Run, policy: StagePolicy, shard: Shard, pulse: Heartbeat) -> None:
        self.shard = shard
        self._services = services
        self._run = run
        self._policy = policy
        self._pulse = pulse
        self._chunk = _OpenChunk(services.clock.elapsed())
        self._progress = ToldProgress(services, shard)

    def go_on(self) -> None:
        """Bring in page after page until none follows."""
        if self._run.mode is Mode.REPLAY:
            raise RawDataGone(
                f"what was fetched of shard {self.shard.key} was lost or damaged, and a replay asks no supplier: run the "
                "sync in mode full instead"
            )
        spec = pinned_spec(self._services, self._run)
        source = self._source(spec)
        self._bounds = Bounds(self._run, spec, self._services.clock)
        pages = source.pages(self._bounds.request(self.shard, source))
        with _Ahead(pages, self._pulse.stopped) as ahead:
            while not self.shard.exhausted:
                page = self._received(ahead)
                if page is None:
                    self._store(exhausted=True)
                    return
                self._take(page)
                if page.cursor is None or self._is_full():
                    self._store(exhausted=page.cursor is None)

    def _source(self, spec: SyncSpec) -> Source:
        """Return the supplier; of a redrive, the stored records of its dead letters."""
        if self._run.mode is Mode.REDRIVE:
            return LetterSource(self._services, self._run, self.shard, spec)
        return self._services.source(spec, self._policy)

    def _received(self, ahead: "_Ahead") -> Page | None:
        """Return the next page. A chunk that grows old while the supplier is slow is stored meanwhile."""
        if self._chunk.pages and not ahead.is_ready(within=self._seconds_left()):
            self._store(exhausted=False)
        try:
            return ahead.next_page()
        except SluiceError:
            if self._chunk.pages:
                self._store(exhausted=False)
            raise

    def _take(self, page: Page) -> None:
        if not self._chunk.pages:
            self._chunk.opened = self._services.clock.elapsed()
        self._chunk.add(page)
        self._bounds.take(page)
        self._progress.received(page, self.shard)
        log.debug(
            log_events.PAGE_FETCHED,
            page=self.shard.pages + len(self._chunk.pages),
            records=page.records,
            bytes=len(page.body),
        )

    def _is_full(self) -> bool:
        return self._chunk.bytes >= self._policy.chunk_bytes or self._seconds_left() <= 0

    def _seconds_left(self) -> float:
        age = self._services.clock.elapsed() - self._chunk.opened
        return max(0.0, self._policy.chunk_age.total_seconds() - age)

    def _store(self, *, exhausted: bool) -> None:
        """Close the open chunk: the artifact first, then its pointer together with the cursor behind its last page."""
        pages = self._chunk.pages
        records = sum(page.records for page in pages)
        data = self._services.codec.pack([page.body for page in pages], self._policy.compression)
        ref = ArtifactRef(
            sync=self._run.sync,
            run=self._run.id,
            kind=ArtifactKind.RAW,
            shard=self.shard.key,
            seq=self.shard.chunks,
            variant=content_digest(data),
        )
        expires_at = self._services.clock.now() + self._policy.artifact_ttl
        pointer = self._services.artifacts.put(ref, data, records=records, expires_at=expires_at)
        log.info(log_events.ARTIFACT_STORED, artifact=pointer.key, kind=str(ref.kind), bytes=pointer.bytes, records=records)
        self.shard = self._services.shards.checkpoint(
            self.shard.model_copy(
                update={
                    "cursor": pages[-1].cursor if pages else self.shard.cursor,
                    "exhausted": exhausted,
                    **self._bounds.columns,
                    "high_mark": (pages[-1].mark if pages else None) or self.shard.high_mark,
                    "chunks": self.shard.chunks + 1,
                    "pages": self.shard.pages + len(pages),
                    "records": self.shard.records + records,
                }
            ),
            pointer,
            self._policy.lease_ttl,
        )
        log.info(
            log_events.CHUNK_CHECKPOINTED,
            artifact=pointer.key,
            chunk=ref.seq,
            pages=len(pages),
            records=records,
            exhausted=exhausted,
        )
        self._pulse.moved()
        self._chunk = _OpenChunk(self._services.clock.elapsed())


class _Ahead:
    """Asks for the next page in a thread of its own while the last one is dealt with."""

    def __init__(self, pages: Iterator[Page], stopped: Future[Any]) -> None:
        """Wait for no page any more once `stopped` has failed."""
        self._pages = pages
        self._stopped = stopped
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sluice-prefetch")
        # The thread logs with the fields bound here.
        self._run: Callable[..., Page | None] = copy_context().run
        self._coming: Future[Any] = self._ask()

    def _ask(self) -> Future[Any]:
        return self._executor.submit(self._run, next, self._pages, None)

    def is_ready(self, within: float) -> bool:
        """Whether the next page, or its error, is there, or comes within so many seconds."""
        return bool(wait([self._coming, self._stopped], timeout=within, return_when=FIRST_COMPLETED).done)

    def next_page(self) -> Page | None:
        """Return the next page, or None behind the last one, and ask for the one behind it."""
        wait([self._coming, self._stopped], return_when=FIRST_COMPLETED)
        if not self._coming.done():
            self._stopped.result()
        page: Page | None = self._coming.result()
        if page is not None and page.cursor is not None:
            self._coming = self._ask()
        return page

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for a request that is under way, and let the source close what it holds; who was interrupted waits for none."""
        is_interrupted = kind is not None and issubclass(kind, KeyboardInterrupt | NoProgress | Fenced)
        self._executor.shutdown(wait=not is_interrupted, cancel_futures=True)
        if is_interrupted:
            return
        close = getattr(self._pages, "close", None)
        if close is not None:
            close()
