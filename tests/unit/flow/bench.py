"""A run that was reviewed, on its way to the publisher."""

from sluice.flow.publisher import publish
from sluice.flow.reviewer import review
from sluice.model.base import ShardKey
from sluice.model.ledger import Publication
from sluice.model.lifecycle import Step, Verdict
from sluice.model.run import Mode
from tests.unit.flow.workshop import JUNE, MAY, NORTH, RUN, SOUTH, Workshop, sync_spec


class Bench:
    """A run whose shards came in, each with a hotel of its own, and were reviewed."""

    def __init__(self, verdict: Verdict = Verdict.APPROVED, *, lost: ShardKey | None = None, mode: Mode = Mode.FULL) -> None:
        self.workshop = Workshop(spec=sync_spec(review={"first_load": "auto-approve"}))
        self.target = self.workshop.equip()
        self.services = self.workshop.services
        self.workshop.begin(mode=mode)
        for key, at in ((NORTH, MAY), (SOUTH, JUNE)):
            if key == lost:
                self.workshop.lose(key)
            else:
                self.workshop.bring_in(key, (f"in {key}", at))
        self.review(verdict)

    def review(self, verdict: Verdict = Verdict.APPROVED) -> None:
        """Review what is there, and come to this verdict."""
        made = review(self.services, RUN)
        reviews = self.workshop.memory.reviews
        reviews[made.id] = made.model_copy(update={"verdict": verdict})

    def review_again_without(self, key: ShardKey) -> None:
        """Run the sync once more, the hotel of one shard being gone and a new one there."""
        memory = self.workshop.memory
        for table in (memory.runs, memory.shards, memory.pointers, memory.reviews):
            table.clear()  # type: ignore[attr-defined]
        self.workshop.begin(mode=Mode.FULL)
        for shard, at in ((NORTH, MAY), (SOUTH, JUNE)):
            self.workshop.bring_in(shard, ("new" if shard == key else f"in {shard}", at))
        self.review(Verdict.APPROVED)

    def publish(self) -> Publication | None:
        """Run the step."""
        return publish(self.services, RUN)

    def lose_the_run(self) -> None:
        """Let another worker enter the step, as if this one were dead."""
        self.services.runs.enter(RUN, Step.PUBLISH, self.workshop.policy.lease_ttl)

    def marks(self) -> dict[ShardKey, str]:
        """The watermarks."""
        return self.services.watermarks.of("hotels")
