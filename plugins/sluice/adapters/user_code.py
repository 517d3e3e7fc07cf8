"""The dotted path of something a team has written in; the thing itself out, or where in its code the import failed."""

import importlib
import os
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sluice.errors import SpecInvalid

_IMPORTING: Final = threading.Lock()
_OF_OTHERS: Final = (
    *(sysconfig.get_path(kind) + os.sep for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
    os.fspath(Path(__file__).parents[1]) + os.sep,
)
"""Where code lies that no team has written for Sluice: what is installed, and Sluice itself."""


def load(dotted: str, include: Path, place: str) -> Any:
    """Return what `module.name` leads to, importable from the folder `include` or installed.

    Raises `SpecInvalid`, naming `place` in the spec, if there is no such thing. The folder is looked at last, so that nothing
    in it can take the place of what is installed; nothing is written into it.
    """
    module, _, name = dotted.rpartition(".")
    with _importable(include):
        try:
            found = importlib.import_module(module)
        except (Exception, SystemExit) as exc:  # a script ends the process
            raise SpecInvalid(
                [f"{place}: {module} cannot be imported ({where_raised(exc)}): {type(exc).__name__}: {exc}"]
            ) from exc
    if not hasattr(found, name):
        raise SpecInvalid([f"{place}: {module} ({getattr(found, '__file__', None) or 'built in'}) has no {name}"])
    return getattr(found, name)


def where_raised(error: BaseException) -> str:
    """Return the file and line of the team's code in which an error arose, or of whatever code it was."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen ")]
    known = [frame for frame in frames if frame.filename not in (__file__, importlib.__file__)]
    own = [frame for frame in known if not frame.filename.startswith(_OF_OTHERS)] or known
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    return f"{own[-1].filename}:{own[-1].lineno}" if own else "before any line of it"


@contextmanager
def _importable(include: Path) -> Iterator[None]:
    folder = os.fspath(include.absolute())
    with _IMPORTING:
        writes = sys.dont_write_bytecode
        sys.dont_write_bytecode = True
        is_there = folder in sys.path
        if not is_there:
            sys.path.append(folder)
        try:
            importlib.invalidate_caches()
            yield
        finally:
            if not is_there:
                sys.path.remove(folder)
            sys.dont_write_bytecode = writes
