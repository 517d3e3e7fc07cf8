"""The team's own function, as far as the mapping has to know it."""

from typing import Any, Protocol


class TeamFunction(Protocol):
    """A function of the team's for the objects of one shard."""

    @property
    def name(self) -> str:
        """Its dotted path."""

    @property
    def digest(self) -> int:
        """The digest of the source it was loaded from: code that was edited is another function."""

    def __call__(self, frame: Any) -> Any:
        """Return what the function makes of a frame; raise whatever it raises."""

    def where_raised(self, error: BaseException) -> str:
        """Return the file and line of the team's code in which an error arose."""

    def is_outage(self, error: BaseException) -> bool:
        """Whether an error tells of something that could not be reached, so that no object is to blame for it."""
