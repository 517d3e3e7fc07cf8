"""Files for a moment, on a disk that has room and on one that has none."""

import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sluice.errors import DiskFull
from sluice.guard.temporary_files import temporary_file


@pytest.fixture
def narrow() -> Iterator[None]:
    """No file of this process may have more than 10 kB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("length", [10_001, 1 << 20], ids=["when it is read again", "when it is written"])
@pytest.mark.usefixtures("narrow")
def test_a_disk_that_runs_full(length: int) -> None:
    """It says what to do, be it told at once or when the last bytes leave the buffer."""
    with pytest.raises(DiskFull, match=r"TMPDIR .*\(File too large\)"), temporary_file() as file:  # noqa: PT012
        file.write(bytes(length))
        file.seek(0)


@pytest.mark.usefixtures("narrow")
def test_a_disk_that_runs_full_under_arrow() -> None:
    """What Arrow writes comes through as what it was."""
    table = pa.table({"n": pa.array(range(100_000), pa.int64())})
    with pytest.raises(DiskFull), temporary_file() as file, pq.ParquetWriter(file, table.schema) as writer:
        writer.write_table(table)


def test_no_folder_takes_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """That is the same to whoever has to mend it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(DiskFull, match="No such file"), temporary_file():
        pass


def test_other_errors_are_none_of_its_own() -> None:
    """A connection that breaks in the block says nothing of the disk."""
    with pytest.raises(ConnectionResetError), temporary_file():
        raise ConnectionResetError
