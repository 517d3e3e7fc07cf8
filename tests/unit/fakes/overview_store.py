"""All syncs at a glance, out of what the other fakes hold."""

from collections.abc import Sequence

from sluice.model.ledger import WRITING_OUTCOMES
from sluice.model.lifecycle import APPROVALS, WAITING_VERDICTS, RunStatus
from sluice.model.overview import Published, RestingStage, RunGlance, SyncGlance
from sluice.model.reject import DeadLetterStatus
from sluice.model.run import Mode, Run
from tests.unit.fakes.memory import Memory


class MemoryOverviewStore:
    """The port `OverviewStore`; `rests` is for tests to fill."""

    def __init__(self, memory: Memory, rests: Sequence[RestingStage] = ()) -> None:
        self._memory = memory
        self._rests = list(rests)

    def syncs(self, syncs: Sequence[str], runs: int) -> list[SyncGlance]:
        """Look at each sync."""
        with self._memory.lock:
            return [self._sync(sync, runs) for sync in sorted(syncs)]

    def resting(self) -> list[RestingStage]:
        """Return what a test has put here."""
        return self._rests

    def _sync(self, sync: str, limit: int) -> SyncGlance:
        memory = self._memory
        runs = [run for run in reversed(memory.runs.values()) if run.sync == sync]
        good = (run for run in runs if run.status is RunStatus.SUCCEEDED and run.mode is not Mode.ROLLBACK)
        last_good = next(good, None)
        incident = next((one for one in memory.incidents if one.sync == sync and one.ended_at is None), None)
        open_lines = [lines for lines in memory.lines.values() if lines.sync == sync and lines.status is DeadLetterStatus.OPEN]
        return SyncGlance(
            sync=sync,
            runs=tuple(RunGlance.model_validate(run.model_dump(include=set(RunGlance.model_fields))) for run in runs[:limit]),
            stage=runs[0].stage if runs else None,
            alert=incident.level if incident is not None else None,
            good_at=last_good.created_at if last_good is not None else None,
            published=next((published for run in runs if (published := self._published(run)) is not None), None),
            reviews=sum(review.verdict in WAITING_VERDICTS for review in memory.reviews.values() if review.sync == sync),
            letters=sum(letter.sync == sync and letter.status is DeadLetterStatus.OPEN for letter in memory.dead_letters)
            + sum(lines.objects for lines in open_lines),
        )

    def _published(self, run: Run) -> Published | None:
        reviews = [review for review in self._memory.reviews.values() if review.run == run.id]
        if run.status not in ("succeeded", "partial") or run.follows is not None or not reviews or run.finished_at is None:
            return None
        review = reviews[-1]
        writes = any(review.figures.count(outcome) for outcome in WRITING_OUTCOMES)
        if review.verdict not in APPROVALS or not writes:
            return None
        return Published(run=run.id, review=review.id, outcomes=review.figures.outcomes, at=run.finished_at)
