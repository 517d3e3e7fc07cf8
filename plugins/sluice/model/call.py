"""A call with side effects: what is asked, under which key, and what is known of its result."""

from enum import StrEnum

from pydantic import Field

from sluice.model.base import Frozen, RunId


class CallStanding(StrEnum):
    """How much is known of a call."""

    DUE = "due"
    """Not begun yet."""
    UNCONFIRMED = "unconfirmed"
    """Begun, and nobody knows what became of it."""
    ACCEPTED = "accepted"
    REFUSED = "refused"


class CallResult(Frozen):
    """What the receiver made of a call. A refusal is a result, too: asking again would not help."""

    accepted: bool
    answer: str = Field(description="in words, such as `200 OK`")


class Call(Frozen):
    """One call with side effects. The receiver knows it by its key, however often it is made."""

    key: str
    sync: str
    run: RunId
    subject: str = Field(description="what it is about: the id of a review")
    name: str = Field(description="who is called: the name of a webhook")
    begun: int = Field(default=0, description="how often its intent was committed")
    trouble: str | None = Field(default=None, description="why the last try brought no result")
    result: CallResult | None = None

    @property
    def standing(self) -> CallStanding:
        """How much is known of it."""
        if self.result is not None:
            return CallStanding.ACCEPTED if self.result.accepted else CallStanding.REFUSED
        return CallStanding.UNCONFIRMED if self.begun else CallStanding.DUE
