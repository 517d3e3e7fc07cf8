"""Who is told, as a stage says, in; the class that tells them, or what is wrong with it, out. Airflow is loaded when asked."""

import inspect
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, Final

from sluice.adapters.user_code import load
from sluice.adapters.yaml_positions import Path
from sluice.errors import SpecInvalid
from sluice.model.stage import Notifier, StagePolicy

_BASE: Final = "BaseNotifier"
_PLACE: Final = "alerts.notify"


def notifier_class(to: Notifier, include: FilePath) -> Any:
    """Return the class of a notifier; raise `SpecInvalid` if there is none, or it cannot be made of its arguments."""
    found = load(to.notifier, include, _PLACE)
    if not isinstance(found, type) or _BASE not in {base.__name__ for base in found.__mro__}:
        raise SpecInvalid([f"{_PLACE}: {to.notifier} is no {_BASE} of Airflow's"])
    try:
        inspect.signature(found).bind(**to.arguments)
    except TypeError as error:
        raise SpecInvalid([f"{_PLACE}: {to.notifier} does not take these arguments: {error}"]) from error
    return found


def wrong_notifiers(policy: StagePolicy, include: FilePath) -> Iterator[tuple[Path, SpecInvalid]]:
    """Yield where in a policy a notifier stands that cannot tell anybody, and why."""
    for kind in type(policy.alerts.notify).model_fields:
        for number, to in enumerate(getattr(policy.alerts.notify, kind)):
            try:
                notifier_class(to, include)
            except SpecInvalid as error:
                yield ("alerts", "notify", kind, number), error


def is_absent(error: SpecInvalid) -> bool:
    """Whether what was asked for is not installed here; it may be where tasks run."""
    return isinstance(error.__cause__, ModuleNotFoundError)
