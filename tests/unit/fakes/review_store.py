"""Reviews in memory."""

from sluice.errors import IllegalTransition, NotFound
from sluice.model.base import ReviewId, RunId
from sluice.model.lifecycle import REVIEW_TRANSITIONS, WAITING_VERDICTS, ReviewEvent, advance
from sluice.model.review import Decision, Review
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
                if older.run == review.run and older.verdict in WAITING_VERDICTS:
                    verdict = advance(REVIEW_TRANSITIONS, older.verdict, ReviewEvent.SUPERSEDE)
                    reviews[older.id] = older.model_copy(update={"verdict": verdict})
            reviews[review.id] = review
            return review

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

    def waiting(self, sync: str | None = None) -> list[Review]:
        """Return the reviews that wait for a decision, oldest first."""
        with self._memory.lock:
            waiting = [review for review in self._memory.reviews.values() if review.verdict in WAITING_VERDICTS]
            return [review for review in waiting if sync is None or review.sync == sync]

    def decide(self, review: ReviewId, decision: Decision) -> Review:
        """Record the decision and move the verdict."""
        with self._memory.lock:
            present = self.get(review)
            if present.decision is not None and present.decision.choice is decision.choice:
                return present
            if present.verdict not in WAITING_VERDICTS:
                by = f", by {present.decision.by}" if present.decision else ""
                raise IllegalTransition(f"review {review} is {present.verdict}{by}: it no longer waits")
            verdict = advance(REVIEW_TRANSITIONS, present.verdict, decision.choice.event)
            decided = present.model_copy(update={"verdict": verdict, "decision": decision})
            self._memory.reviews[review] = decided
            return decided
