"""A folder that is one user's alone: a place goes in, an open folder to work in comes out, or an `OSError`.

    <place>/<user id>/<name>

Nothing in it is reached by its path, and no symbolic link is followed: whoever may write beside it cannot lead us elsewhere.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

_OWN_FOLDER: Final = 0o700
_OWN_FILE: Final = 0o600
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READING: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITING: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def private_folder(place: Path, name: str) -> Iterator[int]:
    """Yield the folder, made where it is missing; raise `PermissionError` if it is not this user's alone."""
    own = place / str(os.geteuid())
    place.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        own.mkdir(_OWN_FOLDER)
    with _opened(own) as user:
        facts = os.fstat(user)
        if facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) & ~_OWN_FOLDER:
            raise PermissionError(f"{own} is open to others")
        with suppress(FileExistsError):
            os.mkdir(name, _OWN_FOLDER, dir_fd=user)
        with _opened(name, user) as folder:
            yield folder


@contextmanager
def reading(folder: int, name: str) -> Iterator[int]:
    """Yield a file of the folder, open for reading."""
    file = os.open(name, _READING, dir_fd=folder)
    try:
        yield file
    finally:
        os.close(file)


def write(folder: int, name: str, data: bytes, now: float) -> None:
    """Write a file whose times are `now`. Whoever reads it meanwhile sees what was there, or all of the new one."""
    coming = f"{uuid4().hex}-coming"
    try:
        with os.fdopen(os.open(coming, _WRITING, _OWN_FILE, dir_fd=folder), "wb") as file:
            file.write(data)
            file.flush()
            os.utime(file.fileno(), (now, now))
        os.rename(coming, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(coming, dir_fd=folder)
        raise


@contextmanager
def _opened(path: Path | str, within: int | None = None) -> Iterator[int]:
    folder = os.open(path, _FOLDER, dir_fd=within)
    try:
        yield folder
    finally:
        os.close(folder)
