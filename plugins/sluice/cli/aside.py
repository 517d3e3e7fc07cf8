"""A team's function comes in; the same function, which prints to stderr, goes out: stdout is for results."""

import sys
from contextlib import redirect_stdout
from typing import Any

from sluice.ports import TeamFunction


class PrintingAside:
    """A function whose prints do not get into a command's result."""

    def __init__(self, function: TeamFunction) -> None:
        self._function = function

    @property
    def name(self) -> str:
        """Its dotted path."""
        return self._function.name

    @property
    def digest(self) -> int:
        """The digest of the source it was loaded from."""
        return self._function.digest

    def __call__(self, frame: Any) -> Any:
        """Return what the function makes of a frame."""
        with redirect_stdout(sys.stderr):
            return self._function(frame)

    def where_raised(self, error: BaseException) -> str:
        """Return the file and line of the team's code in which an error arose."""
        return self._function.where_raised(error)

    def is_outage(self, error: BaseException) -> bool:
        """Whether an error tells of something that could not be reached."""
        return self._function.is_outage(error)


def aside(function: TeamFunction | None) -> TeamFunction | None:
    """Return a function that prints to stderr, if there is one."""
    return None if function is None else PrintingAside(function)
