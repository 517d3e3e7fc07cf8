"""A `ShardFinder` whose shards stand in a list, or whose supplier fails."""

from collections.abc import Callable, Sequence

from sluice.errors import SluiceError
from sluice.model.shard import ShardPlan
from sluice.ports import ShardQuestion


class ListedShardFinder:
    """The port `ShardFinder`; it notes what it was asked for."""

    def __init__(self, *answers: Sequence[ShardPlan] | SluiceError) -> None:
        self.answers = list(answers)
        self.questions: list[ShardQuestion] = []

    def find(self, question: ShardQuestion, moved: Callable[[], None]) -> list[ShardPlan]:
        """Give the next of the answers; the last one stays."""
        self.questions.append(question)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, SluiceError):
            raise answer
        moved()
        return list(answer)
