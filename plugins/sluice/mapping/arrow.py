"""Arrow comes in; it goes out without pandas: or with it, where code that is not ours is at work.

Before it makes its first array, Arrow loads pandas, to know a series when it sees one; and again where it has to find out what
type a value has. That takes as long as to map ten thousand objects, and 60 MB; and none of Sluice's own values is a series. So
Arrow is asked for an array here while there is no pandas, and whoever makes an array or a scalar names its type.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any, Final

import pyarrow as pa

_PANDAS: Final = "pandas"


class _Absence(MetaPathFinder):
    """Tells whoever would import pandas that there is none."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:  # noqa: ARG002
        """Raise what an import raises where a package is not installed; leave all others to those who know."""
        if fullname == _PANDAS:
            raise ModuleNotFoundError(f"{_PANDAS} is left out", name=_PANDAS)


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values as an array of that type."""
    return pa.array(values, kind)


def text_scalar(text: str | None) -> Any:
    """Return a text, or null, for Arrow to reckon with."""
    return pa.scalar(text, pa.string())


def _leave_out_pandas() -> None:
    if _PANDAS in sys.modules:
        return
    absence = _Absence()
    sys.meta_path.insert(0, absence)
    try:
        pa.array([], pa.null())
    finally:
        sys.meta_path.remove(absence)


def bring_in_pandas() -> None:
    """Let Arrow know a series again, as code that is not ours expects."""
    pa.nulls(0).to_pandas()


_leave_out_pandas()
