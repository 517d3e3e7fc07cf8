"""Reviews in memory."""

from typing import Any

from sluice.errors import IllegalTransition, NotFound
from sluice.guard.supersession import Reviewed, covers
from sluice.model.audit import POLICY, Act, Actor
from sluice.model.base import ReviewId, RunId
from sluice.model.lifecycle import REVIEW_TRANSITIONS, WAITING_VERDICTS, ReviewEvent, Verdict, advance
from sluice.model.review import Decision, Review, no_longer_waits
from sluice.model.run import Run
from tests.unit.fakes.memory import Memory


class MemoryReviewStore:
    """The port `ReviewStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def save(self, review: Review, run: Run) -> Review:
        """Insert the review, unless it is there."""
        reviews = self._memory.reviews
        with self._memory.lock:
            self._memory.still_run(run.id, run.token)
            if review.id in reviews:
                return reviews[review.id]
            for older in list(reviews.values()):
                if older.verdict in WAITING_VERDICTS and self._gives_way(older, review):
                    verdict = advance(REVIEW_TRANSITIONS, older.verdict, ReviewEvent.SUPERSEDE)
                    reviews[older.id] = older.model_copy(update={"verdict": verdict, "superseded_by": review.id})
                    self._note(reviews[older.id], POLICY, successor=review.id)
            reviews[review.id] = review
            if review.verdict is Verdict.AUTO_APPROVED:
                self._note(review, POLICY, writes=review.figures.writes)
            return review

    def _note(self, review: Review, by: Actor, **facts: Any) -> None:
        told = {"verdict": review.verdict, **facts}
        self._memory.note_act(Act.DECIDE_REVIEW, by, sync=review.sync, run=review.run, subject=review.id, **told)

    def _gives_way(self, older: Review, newer: Review) -> bool:
        if older.run == newer.run:
            return True
        admitted = list(self._memory.runs)
        is_older = older.sync == newer.sync and admitted.index(older.run) < admitted.index(newer.run)
        return is_older and covers(self._reviewed(newer), self._reviewed(older))

    def _reviewed(self, review: Review) -> Reviewed:
        marks = {shard.key: shard.watermark for shard in self._memory.of_run(review.run)}
        return Reviewed(self._memory.run(review.run), review.figures, marks)

    def get(self, review: ReviewId) -> Review:
        """Return the review."""
        with self._memory.lock:
            if review not in self._memory.reviews:
                raise NotFound(f"there is no review {review}", review=review)
            found = self._memory.reviews[review]
            self._memory.require_readable("review", review, run=found.run, review=review)
            return found

    def latest(self, run: RunId) -> Review | None:
        """Return the newest review of the run."""
        with self._memory.lock:
            of_run = [review for review in self._memory.reviews.values() if review.run == run]
            return self.get(of_run[-1].id) if of_run else None

    def of(self, run: RunId) -> list[Review]:
        """Return the reviews of the run, the newest first."""
        with self._memory.lock:
            return [review for review in self._memory.reviews.values() if review.run == run][::-1]

    def waiting(self, sync: str | None = None) -> list[Review]:
        """Return the reviews that wait for a decision, oldest first."""
        with self._memory.lock:
            waiting = [review for review in self._memory.reviews.values() if review.verdict in WAITING_VERDICTS]
            return [review for review in waiting if sync is None or review.sync == sync]

    def count_waiting(self) -> int:
        """Count them."""
        return len(self.waiting())

    def superseded_by(self, review: ReviewId) -> list[Review]:
        """Return the reviews whose place that one has taken."""
        with self._memory.lock:
            return [older for older in self._memory.reviews.values() if older.superseded_by == review]

    def decide(self, review: ReviewId, decision: Decision) -> Review:
        """Record the decision and move the verdict."""
        with self._memory.lock:
            present = self.get(review)
            if present.decision is not None and present.decision.answers_as(decision):
                return present
            if present.verdict not in WAITING_VERDICTS:
                raise IllegalTransition(no_longer_waits(present, self._memory.reviews.get(present.superseded_by or review)))
            verdict = advance(REVIEW_TRANSITIONS, present.verdict, decision.choice.event)
            decided = present.model_copy(update={"verdict": verdict, "decision": decision})
            self._memory.reviews[review] = decided
            self._note(decided, decision.actor, choice=decision.choice)
            return decided
