"""storage: what a supplier asks for while a file is opened is not taken for a connection that broke."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sluice.adapters.sources.files.storage import Handle, StoredFile
from sluice.errors import RateLimited, SupplierResting, SupplierUnavailable
from tests.support.stored_files import MemoryStorage


class RefusingStorage(MemoryStorage):
    """Lets a file be opened once."""

    def __init__(self, error: SupplierUnavailable) -> None:
        super().__init__({"file": b"0123456789"}, part=5, breaks=[5])
        self.error = error
        self.refused = 0

    @contextmanager
    def open(self, file: StoredFile, start: int, end: int | None) -> Iterator[Iterator[bytes]]:
        if self.opened:
            self.refused += 1
            raise self.error
        with super().open(file, start, end) as parts:
            yield parts


@pytest.mark.parametrize(
    "error", [RateLimited("later", retry_after=3600), SupplierResting("not now"), SupplierUnavailable("503, five times")]
)
def test_who_may_not_go_on_now_does_not_insist(error: SupplierUnavailable) -> None:
    """Behind a connection that broke, the supplier asks for a pause, or is given up: it is asked once, and that is told."""
    storage = RefusingStorage(error)
    parts = Handle(storage, storage.look("file"), attempts=3).bytes_from()
    assert next(parts) == b"01234"
    with pytest.raises(SupplierUnavailable) as raised:
        next(parts)
    assert (raised.value, storage.refused) == (error, 1)
