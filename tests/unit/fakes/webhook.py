"""A receiver of webhooks that answers as it is told to."""

from collections.abc import Mapping

from pydantic import JsonValue

from sluice.errors import SluiceError
from sluice.model.call import CallResult

ACCEPTED = CallResult(accepted=True, answer="200 OK")
REFUSED = CallResult(accepted=False, answer="410 Gone")


class ListedWebhook:
    """Gives one answer after the other, and accepts when there are none left; `told` lists the keys and bodies it got."""

    def __init__(self, *answers: CallResult | SluiceError | BaseException) -> None:
        self.answers = list(answers)
        self.told: list[tuple[str, Mapping[str, JsonValue]]] = []

    def post(self, key: str, body: Mapping[str, JsonValue]) -> CallResult:
        self.told.append((key, body))
        answer = self.answers.pop(0) if self.answers else ACCEPTED
        if isinstance(answer, BaseException):
            raise answer
        return answer
