"""A worker's own copies of artifacts for one stage: bytes go in; the same bytes come out, or nothing.

    <sha-256>-written        what this worker has stored
    <sha-256>-read           what it has read of others

A file's modification time says when it came, its access time when it was last asked for. All of it may be gone, damaged, full
or forbidden at any moment, and other processes may be at work on it: whatever happens is a miss, told once, never an error.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog

from sluice import log_events
from sluice.adapters.artifacts.private_folder import private_folder, reading, write
from sluice.adapters.artifacts.worker import Stored
from sluice.model.artifact import Pointer
from sluice.model.stage import CachePolicy
from sluice.ports import Clock

_NAMES: Final = {True: "written", False: "read"}
_FILLED_AGAIN_TO: Final = 0.9
"""Below its bound, so that what comes next does not count all files again."""
_COUNTED_EVERY: Final = 60.0
"""Seconds after which a worker sees what others have brought."""

log: Final = structlog.get_logger()


class LocalCache:
    """The copies for one stage, within the bounds of its policy."""

    def __init__(self, place: Path, stage: str, policy: CachePolicy, clock: Clock) -> None:
        self._place = place
        self._stage = stage
        self._policy = policy
        self._clock = clock
        self._bytes = 0
        self._counted_at: float | None = None
        self._has_told = False

    def find(self, pointer: Pointer) -> Stored | None:
        """Return the bytes the pointer stands for, if they are here and right; what is not right goes."""
        if self._keeps_nothing:
            return None
        with self._tolerated(), private_folder(self._place, self._stage) as folder:
            for written_here in (True, False):
                if (data := self._right_bytes(folder, _name(pointer, written_here), pointer)) is not None:
                    return Stored(data, written_here)
        return None

    def keep(self, pointer: Pointer, stored: Stored) -> None:
        """Keep the bytes, at the cost of those that nobody has asked for since longest."""
        with self._tolerated(), private_folder(self._place, self._stage) as folder:
            if not self._keeps_nothing and len(stored.data) <= self._policy.size:
                write(folder, _name(pointer, stored.written_here), stored.data, self._now)
                self._bytes += len(stored.data)
            if self._is_to_be_counted():
                self._trim(folder)

    @property
    def _keeps_nothing(self) -> bool:
        return self._policy.age == timedelta(0)

    @property
    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _right_bytes(self, folder: int, name: str, pointer: Pointer) -> bytes | None:
        with suppress(FileNotFoundError), reading(folder, name) as file:
            facts = os.fstat(file)
            if self._now - facts.st_mtime <= self._policy.age.total_seconds():
                with os.fdopen(os.dup(file), "rb") as stream:
                    data = stream.read(pointer.bytes + 1)
                if hashlib.sha256(data).hexdigest() == pointer.sha256:
                    os.utime(file, (self._now, facts.st_mtime))
                    return data
            os.unlink(name, dir_fd=folder)
        return None

    def _is_to_be_counted(self) -> bool:
        if self._counted_at is None or self._bytes > self._policy.size:
            return True
        return self._clock.elapsed() - self._counted_at >= _COUNTED_EVERY

    def _trim(self, folder: int) -> None:
        """Remove what is too old; then, if it is too much, what nobody has asked for since longest."""
        oldest = self._now - self._policy.age.total_seconds()
        left: list[tuple[float, int, str]] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    facts = entry.stat(follow_symlinks=False)
                    if facts.st_mtime < oldest or self._keeps_nothing:
                        os.unlink(entry.name, dir_fd=folder)
                    else:
                        left.append((facts.st_atime, facts.st_size, entry.name))
        self._bytes = sum(size for _, size, _ in left)
        room = self._policy.size * (_FILLED_AGAIN_TO if self._bytes > self._policy.size else 1)
        for _, size, name in sorted(left):
            if self._bytes <= room:
                break
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            self._bytes -= size
        self._counted_at = self._clock.elapsed()

    @contextmanager
    def _tolerated(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            pass  # another process was faster, and has removed it
        except OSError as error:
            if not self._has_told:
                log.warning(log_events.CACHE_UNUSABLE, folder=str(self._place), stage=self._stage, error=str(error))
            self._has_told = True


def _name(pointer: Pointer, written_here: bool) -> str:
    return f"{pointer.sha256}-{_NAMES[written_here]}"
