"""A team's function and a number of objects come in; what it made of each goes out, or why it failed for that one alone.

A frame that it fails for is halved until the objects are found that it fails for by themselves. The others go through. Where
none ever does, nothing is wrong with the objects.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, TypeVar

import pyarrow as pa

from sluice.errors import TransformBroken, TransformUnavailable
from sluice.mapping.violation import FUNCTION, Problem
from sluice.ports import TeamFunction

Places = Sequence[int]
"""Which objects of a chunk are meant."""
Problems = tuple[Problem, ...]
"""What the function has done to an object that leads nowhere."""

Made = TypeVar("Made")

_ENOUGH: Final = 32
"""So many objects that failed, and none that came through: it is the function that fails."""
_LONGEST: Final = 300


class Unusable(Exception):
    """A signal within the mapping: what a function did to a frame leads nowhere, whatever the single object."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Narrowing:
    """Calls one function, and remembers across the chunks of a shard whether any object ever came through."""

    def __init__(self, function: TeamFunction, moved: Callable[[], object]) -> None:
        """Call `moved` after each attempt: it may take thousands of them to find what a chunk's bad objects are."""
        self._function = function
        self._moved = moved
        self._failed = 0
        self._has_worked = False

    def call(self, frame: Any) -> Any:
        """Return what the function makes of a frame; raise `Unusable`, naming the place in its code, if it fails.

        Raises `TransformUnavailable` where something could not be reached, or memory was lacking: no object is to blame.
        """
        try:
            with _telling_nan_from_null():
                return self._function(frame)
        except (Exception, SystemExit) as exc:  # noqa: BLE001  only the team could say which there are
            message = f"failed at {self._function.where_raised(exc)}: {_told(exc)}"
            if isinstance(exc, MemoryError) or self._function.is_outage(exc):
                raise TransformUnavailable(f"{self._function.name} {message}") from None
            raise Unusable(message) from None

    def outcomes(self, number: int, attempt: Callable[[Places], Sequence[Made | Problems]]) -> list[Made | Problems]:
        """Return what was made of each of so many objects; `attempt` raises `Unusable` if it takes some of them by themselves.

        Raises `TransformBroken` if no object ever comes through.
        """
        found: dict[int, Made | Problems] = {}
        waiting: list[Places] = [range(number)] if number else []
        while waiting:
            places = [place for place in waiting.pop() if place not in found]
            if places and not self._attempt(places, attempt, found):
                half = len(places) // 2
                waiting += [places[half:], places[:half]]
                if not self._has_worked:
                    self._probe(places, attempt, found)
        return [found[place] for place in range(number)]

    def _probe(
        self, places: Places, attempt: Callable[[Places], Sequence[Made | Problems]], found: dict[int, Made | Problems]
    ) -> None:
        """Try single objects from all over a frame until one comes through, so that a broken function fails for no more."""
        for place in places[:: max(1, len(places) // _ENOUGH)]:
            if self._has_worked:
                return
            self._attempt([place], attempt, found)

    def _attempt(
        self, places: Places, attempt: Callable[[Places], Sequence[Made | Problems]], found: dict[int, Made | Problems]
    ) -> bool:
        """Note what was made of some objects; return False if that is nothing, so that it takes fewer at a time."""
        made: Sequence[Made | Problems]
        try:
            made = attempt(places)
        except Unusable as unusable:
            if len(places) > 1:
                return False
            made = [(Problem(None, FUNCTION, f"{self._function.name} {unusable.message}"),)]
        finally:
            self._moved()
        found.update(zip(places, made, strict=True))
        failures = [outcome for outcome in made if isinstance(outcome, tuple)]
        self._has_worked = self._has_worked or len(failures) < len(made)
        self._failed += len(failures)
        if self._failed >= _ENOUGH and not self._has_worked:
            (problem, *_) = failures[-1]
            raise TransformBroken(
                f"no object comes through {self._function.name}, of {self._failed} that were tried: "
                + (f"{problem.field}: {problem.message}" if problem.field else problem.message)
            )
        return True


@contextmanager
def readable() -> Iterator[None]:
    """Raise `Unusable` where the block finds that it cannot read what a function has returned."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, pa.ArrowException) as error:
        raise Unusable(f"has returned what cannot be read: {_told(error)}") from None


def _telling_nan_from_null() -> AbstractContextManager[None]:
    """Let pandas keep what has no result (0/0) apart from what is not there, for as long as the block takes."""
    import pandas as pd

    name = "future.distinguish_nan_and_na"
    return nullcontext() if pd.get_option(name) else pd.option_context(name, True)


def _told(error: BaseException) -> str:
    """Return what an error says, bounded, and in signs that can be shown and stored."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  it is the team's
        text = type(error).__name__
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return text if text.isprintable() else json.dumps(text)[1:-1]
