"""What an answer says: its records and what stands beside them, as paging and checks need it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import Raw

from sluice.adapters.sources.transport.client import Answer


@dataclass(frozen=True)
class Reading:
    """An answer, read."""

    answer: Answer
    records: Sequence[Raw]
    """Each as its raw bytes."""
    values: Mapping[str, bytes]
    """The raw JSON at the places that the spec names, by the place's key in the spec; what is absent or null is left out."""

    @property
    def asked(self) -> str:
        """What was asked, fit for messages."""
        return self.answer.asked
