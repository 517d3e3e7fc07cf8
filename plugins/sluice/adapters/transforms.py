"""The team's function that a spec names, and a shard, come in; the function as the mapping calls it goes out, once it fits."""

import inspect
from collections.abc import Callable
from decimal import localcontext
from pathlib import Path
from typing import Any

from sluice.adapters.user_code import is_of_connection, load_current, where_raised
from sluice.errors import SpecInvalid
from sluice.model.base import ShardKey
from sluice.model.spec import SyncSpec
from sluice.model.transform import TransformContext, TransformSpec


class LoadedFunction:
    """A function that was loaded from the folder, or from what is installed."""

    def __init__(
        self, name: str, function: Callable[[Any, TransformContext], Any], digest: int, told: TransformContext
    ) -> None:
        self.name = name
        self.digest = digest
        self._function = function
        self._told = told

    def __call__(self, frame: Any) -> Any:
        """Return what the function makes of a frame; how it has decimals rounded is its own affair, and ends with the call."""
        with localcontext():
            return self._function(frame, self._told)

    def where_raised(self, error: BaseException) -> str:
        """Return the file and line of the team's code in which an error arose."""
        return where_raised(error)

    def is_outage(self, error: BaseException) -> bool:
        """Whether a lost connection or a time-out is behind an error."""
        return is_of_connection(error)


def team_function(spec: SyncSpec, shard: ShardKey, include: Path) -> LoadedFunction | None:
    """Return the function of a spec as its source is now; None if it has none. Raises `SpecInvalid`: see `loaded`."""
    if spec.transform is None:
        return None
    function, digest = loaded(spec.transform, include)
    told = TransformContext(sync=spec.sync, tenant=spec.tenant, shard=shard, version=spec.version)
    return LoadedFunction(spec.transform.function, function, digest, told)


def loaded(declared: TransformSpec, include: Path) -> tuple[Callable[[Any, TransformContext], Any], int]:
    """Return the function and the digest of its source.

    Raises `SpecInvalid` if it cannot be imported, or is nothing that takes a frame and a context and returns when it is done.
    """
    function, digest = load_current(declared.function, include, "transform.function")
    if not callable(function) or isinstance(function, type):
        raise SpecInvalid([f"transform.function: {declared.function} is no function"])
    called = function if inspect.isroutine(function) else function.__call__
    if any(kind(called) for kind in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)):
        raise SpecInvalid([f"transform.function: {declared.function} has to return its frame: it may not await or yield"])
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        raise SpecInvalid(
            [f"transform.function: {declared.function} has to take two arguments: the frame and its context"]
        ) from None
    return function, digest
