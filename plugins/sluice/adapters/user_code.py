"""The dotted path of something a team has written in; the thing itself out, or where in its code the import failed."""

import importlib
import importlib.util
import os
import socket
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import localcontext
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import xxhash

from sluice.errors import SpecInvalid

_CURRENT: Final[dict[str, tuple[int, ModuleType]]] = {}
"""By name, the modules that were loaded as they were at some moment, with the digest of their source then."""
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
    with _importable(include), _told(module, place):
        found = importlib.import_module(module)
    return _part(found, name, place)


def load_current(dotted: str, include: Path, place: str) -> tuple[Any, int]:
    """Return what `load` would, and the digest of the source of its module, which is run anew if it was edited since.

    So the digest is of the code that runs, however long this process has been living. Modules that it imports are not looked
    at; what is installed is run once.
    """
    module, _, name = dotted.rpartition(".")
    with _importable(include), _told(module, place):
        digest, found = _current(module, include)
    return _part(found, name, place), digest


def is_of_connection(error: BaseException) -> bool:
    """Whether a lost connection or a time-out is behind an error, whatever the client that was used has made of it."""
    import psycopg

    outages = (ConnectionError, TimeoutError, socket.gaierror, psycopg.OperationalError)
    found: BaseException | None = error
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        if isinstance(found, outages):
            return True
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return False


def where_raised(error: BaseException) -> str:
    """Return the file and line of the team's code in which an error arose, or of whatever code it was."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen ")]
    known = [frame for frame in frames if frame.filename not in (__file__, importlib.__file__)]
    own = [frame for frame in known if not frame.filename.startswith(_OF_OTHERS)] or known
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    return f"{own[-1].filename}:{own[-1].lineno}" if own else "before any line of it"


def _current(module: str, include: Path) -> tuple[int, ModuleType]:
    spec = importlib.util.find_spec(module)
    loader = spec.loader if spec is not None else None
    if spec is None or not isinstance(loader, SourceFileLoader):
        return 0, importlib.import_module(module)
    source = loader.get_data(loader.path)
    digest = xxhash.xxh3_64_intdigest(source)
    if not Path(loader.path).is_relative_to(include.absolute()):
        return digest, importlib.import_module(module)
    held = _CURRENT.get(module)
    if held is None or held[0] != digest or sys.modules.get(module) is not held[1]:
        held = _CURRENT[module] = digest, _run(spec, loader, source)
    return held


def _run(spec: ModuleSpec, loader: SourceFileLoader, source: bytes) -> ModuleType:
    """Run the source of a module, which takes the place of what was run of it before."""
    found, before = importlib.util.module_from_spec(spec), sys.modules.get(spec.name)
    sys.modules[spec.name] = found
    try:
        exec(loader.source_to_code(source, loader.path), found.__dict__)  # noqa: S102  as an import would do it
    except BaseException:
        sys.modules.pop(spec.name)
        if before is not None:
            sys.modules[spec.name] = before
        raise
    parent, _, name = spec.name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], name, found)
    return found


@contextmanager
def _told(module: str, place: str) -> Iterator[None]:
    """Say of whatever stops an import where that was."""
    try:
        yield
    except (Exception, SystemExit) as exc:  # a script ends the process
        raise SpecInvalid([f"{place}: {module} cannot be imported ({where_raised(exc)}): {type(exc).__name__}: {exc}"]) from exc


def _part(found: ModuleType, name: str, place: str) -> Any:
    if not hasattr(found, name):
        raise SpecInvalid([f"{place}: {found.__name__} ({getattr(found, '__file__', None) or 'built in'}) has no {name}"])
    return getattr(found, name)


@contextmanager
def _importable(include: Path) -> Iterator[None]:
    folder = os.fspath(include.absolute())
    with _IMPORTING, localcontext():  # what a module has decimals rounded to holds for no value of ours
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
