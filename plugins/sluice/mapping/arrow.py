"""Arrow comes in; it goes out without pandas, until somebody else loads that, and without memory of its own.

Before it makes its first array, Arrow loads pandas, to know a series when it sees one; and again where it has to find out what
type a value has. That takes as long as to map ten thousand objects, and 60 MB; and none of Sluice's own values is a series. So
Arrow is asked for an array as this module is loaded, and told that there is no pandas; whoever makes an array or a scalar names
its type. Code that is not ours loads pandas as ever, before or after: Arrow knows a series from then on.

Arrow's own way to set memory aside keeps what was freed from Python, and Python's from Arrow: some 30 MB of a worker. Both take
it from the system, unless `ARROW_DEFAULT_MEMORY_POOL` says otherwise.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import get_ident
from types import ModuleType
from typing import Any, Final

import pyarrow as pa

_PANDAS: Final = "pandas"


def text_scalar(text: str | None) -> Any:
    """Return a text, or null, for Arrow to reckon with."""
    return pa.scalar(text, pa.string())


def tells_of_bytes(error: Exception) -> bool:
    """Whether an error that Arrow raised says that the bytes it was given are unsound.

    What the system says of a file has a number, and lack of memory is no matter of the bytes.
    """
    is_systems = isinstance(error, OSError) and error.errno is not None
    return isinstance(error, pa.ArrowException | OSError) and not is_systems and not isinstance(error, MemoryError)


class _Telling(Loader):
    """Loads pandas as another loader does, and then lets Arrow know it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return what the other one does."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module to the other loader, also for whoever asks it later on."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        # That Arrow cannot use this one is nothing to whoever loads it.
        with suppress(Exception):
            pa.nulls(0).to_pandas()


class _Watch(MetaPathFinder):
    """Stands before whoever finds modules. It stays: to take it away would make another thread pass over the one behind it."""

    def __init__(self) -> None:
        self._refused: int | None = None
        """The thread that is told that there is no pandas."""

    def refuse(self) -> None:
        """Let Arrow look for pandas in vain. Other threads, which may have use for it, find it meanwhile."""
        self._refused = get_ident()
        try:
            pa.array([], pa.null())
        finally:
            self._refused = None

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find pandas where it is found without us; leave all others to those who know."""
        if fullname != _PANDAS:
            return None
        if self._refused == get_ident():
            raise ModuleNotFoundError(f"{_PANDAS} is left out", name=_PANDAS)
        found = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Telling(spec.loader)
        return spec


def _leave_out_pandas() -> None:
    if _PANDAS in sys.modules:
        return
    watch = _Watch()
    sys.meta_path.insert(0, watch)
    watch.refuse()


def _share_memory() -> None:
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())


_leave_out_pandas()
_share_memory()
