"""The local cache of artifacts: what it keeps and for how long, and that nothing which befalls it is an error."""

import hashlib
import os
import resource
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from sluice import log_events
from sluice.adapters.artifacts.cache import LocalCache
from sluice.adapters.artifacts.worker import Stored
from sluice.model.artifact import Pointer
from sluice.model.stage import CachePolicy
from tests.support.nouns import a_pointer
from tests.unit.fakes.clock import FakeClock

DAY = timedelta(days=1)


class Bench:
    """A cache of one stage, and its files."""

    def __init__(self, place: Path, size: int = 1000, age: timedelta = DAY, stage: str = "hotel-content") -> None:
        self.clock = FakeClock()
        self.cache = LocalCache(place, stage, CachePolicy(size=size, age=age), self.clock)
        self.folder = place / str(os.geteuid()) / stage

    def keep(self, content: str, *, written_here: bool = True) -> Pointer:
        """Keep the bytes, a moment after what was kept before."""
        pointer = a_pointer(content=content)
        self.clock.move(timedelta(seconds=1))
        self.cache.keep(pointer, Stored(content.encode(), written_here))
        return pointer

    def has(self, content: str) -> bool:
        """Whether those bytes are found."""
        self.clock.move(timedelta(seconds=1))
        found = self.cache.find(a_pointer(content=content))
        assert found is None or found.data == content.encode()
        return found is not None

    def file(self, content: str) -> Path:
        """The only file of those bytes."""
        (file,) = self.folder.glob(f"{hashlib.sha256(content.encode()).hexdigest()}-*")
        return file

    @property
    def bytes(self) -> int:
        """All that lies there."""
        return sum(file.stat().st_size for file in self.folder.iterdir())


@contextmanager
def told(times: int) -> Iterator[None]:
    """Expect so many warnings about the cache."""
    with capture_logs() as logs:
        yield
    assert [entry["event"] for entry in logs] == [log_events.CACHE_UNUSABLE] * times


def test_what_was_written_and_what_was_read_are_kept_apart(tmp_path: Path) -> None:
    """Both are found, each as what it is; what nobody kept is not."""
    bench = Bench(tmp_path)
    mine, theirs = bench.keep("mine"), bench.keep("theirs", written_here=False)
    assert bench.cache.find(mine) == Stored(b"mine", written_here=True)
    assert bench.cache.find(theirs) == Stored(b"theirs", written_here=False)
    assert bench.cache.find(a_pointer(content="nobody's")) is None
    assert sorted(file.name[64:] for file in bench.folder.iterdir()) == ["-read", "-written"]


def test_nobody_else_can_look_into_it(tmp_path: Path) -> None:
    """Folders and files are the user's alone, whatever the umask."""
    before = os.umask(0)
    try:
        bench = Bench(tmp_path / "cache")
        bench.keep("secret")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (bench.folder.parent, bench.folder, bench.file("secret"))]
    assert modes == [0o700, 0o700, 0o600]


def test_the_least_recently_used_go(tmp_path: Path) -> None:
    """What was asked for stays before what came later but was not."""
    bench = Bench(tmp_path, size=30)
    for content in ("a" * 10, "b" * 10, "c" * 10):
        bench.keep(content)
    assert bench.has("a" * 10)
    bench.keep("d" * 10)
    assert [bench.has(letter * 10) for letter in "abcd"] == [True, False, False, True]


def test_what_is_larger_than_all_of_it_is_not_kept(tmp_path: Path) -> None:
    """It would cost everything else."""
    bench = Bench(tmp_path, size=10)
    bench.keep("small")
    bench.keep("far too large")
    assert (bench.has("small"), bench.has("far too large")) == (True, False)


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    """Age counts from when it came, however often it is asked for; its file goes when it is asked for, or by itself."""
    bench = Bench(tmp_path, age=timedelta(minutes=10))
    bench.keep("asked for")
    bench.keep("forgotten")
    bench.clock.move(timedelta(minutes=9))
    assert bench.has("asked for")
    bench.clock.move(timedelta(minutes=2))
    assert not bench.has("asked for")
    bench.keep("new")
    assert [file for file in bench.folder.iterdir() if file != bench.file("new")] == []


def test_an_age_of_nothing_keeps_nothing(tmp_path: Path) -> None:
    """And what an earlier policy has left goes."""
    Bench(tmp_path).keep("before")
    bench = Bench(tmp_path, age=timedelta(0))
    assert not bench.has("before")
    bench.keep("after")
    assert list(bench.folder.iterdir()) == []


def test_a_clock_that_was_set_back_does_no_harm(tmp_path: Path) -> None:
    """What comes from the future is there, and within the bounds."""
    bench = Bench(tmp_path, size=20)
    bench.keep("a" * 10)
    bench.clock.turn_back(timedelta(days=400))
    assert bench.has("a" * 10)
    for letter in "bcd":
        bench.keep(letter * 10)
    assert bench.bytes <= 20


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 40), st.booleans()), max_size=25))
def test_the_bound_holds_whatever_comes(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, bool]]) -> None:
    """After each artifact no more lies there than is allowed, and what is found is right."""
    bench = Bench(tmp_path_factory.mktemp("cache"), size=60)
    for letter, length, is_kept in steps:
        if is_kept:
            bench.keep(letter * length)
            assert bench.bytes <= 60
        else:
            bench.has(letter * length)


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[3] ^= 1
    file.write_bytes(data)


def lengthened(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


def led_elsewhere(file: Path) -> None:
    elsewhere = file.parent.parent / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize("damage", [emptied, flipped, lengthened, led_elsewhere, a_folder, a_pipe])
def test_a_damaged_copy_is_a_miss(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """Bytes are checked against the pointer here as well; links are not followed; the right bytes may come again."""
    bench = Bench(tmp_path)
    bench.keep("right bytes")
    damage(bench.file("right bytes"))
    assert not bench.has("right bytes")
    if damage is not a_folder:
        bench.keep("right bytes")
        assert bench.has("right bytes")


def a_file_in_its_place(place: Path) -> None:
    place.write_text("no folder")


def open_to_others(place: Path) -> None:
    own = place / str(os.geteuid())
    own.mkdir(parents=True)
    own.chmod(0o750)


def a_link_to_somewhere(place: Path) -> None:
    place.mkdir()
    (place.parent / "theirs").mkdir(0o700)
    (place / str(os.geteuid())).symlink_to(place.parent / "theirs")


@pytest.mark.parametrize("prepare", [a_file_in_its_place, open_to_others, a_link_to_somewhere])
def test_a_folder_that_cannot_be_used_is_told_once(tmp_path: Path, prepare: Callable[[Path], None]) -> None:
    """Nothing is kept there, nothing is found, nothing fails."""
    place = tmp_path / "cache"
    prepare(place)
    bench = Bench(place)
    with told(times=1):
        bench.keep("a")
        bench.keep("b")
        assert not bench.has("a")


def test_a_full_disk_is_told_once_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    """Half a file is removed; what was kept before is still found."""
    bench = Bench(tmp_path, size=100_000)
    bench.keep("before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with told(times=1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
        try:
            bench.keep("x" * 50_000)
            bench.keep("y" * 50_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert bench.bytes == len("before")
    assert (bench.has("before"), bench.has("x" * 50_000)) == (True, False)


def test_workers_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Each finds right bytes or nothing, while the others write, read and remove the same files; nobody has to tell of it."""
    problems: list[object] = []

    def work(number: int) -> None:
        bench = Bench(tmp_path, size=300)
        for turn in range(150):
            content = f"artifact {(turn * number) % 13}" * 5
            bench.keep(content)
            if (found := bench.cache.find(a_pointer(content=content))) is not None and found.data != content.encode():
                problems.append(found)

    with told(times=0):
        workers = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert problems == []
    bench = Bench(tmp_path, size=300)
    bench.keep("last")
    assert bench.bytes <= 300


def test_a_folder_that_is_removed_meanwhile_is_made_again(tmp_path: Path) -> None:
    """All of it may be lost at any time."""
    bench = Bench(tmp_path)
    bench.keep("a")
    bench.file("a").unlink()
    bench.folder.rmdir()
    assert not bench.has("a")
    bench.keep("a")
    assert bench.has("a")
