"""Dead letters come in; the raw records that they are of go out, as far as these are kept."""

from collections.abc import Sequence

from sluice.errors import SpecInvalid
from sluice.mapping.stored_records import RecordGone, StoredRecords
from sluice.model.reject import DeadLetter
from sluice.model.spec import SyncSpec
from sluice.ports import Services


def raw_records(services: Services, spec: SyncSpec, letters: Sequence[DeadLetter]) -> list[bytes | None]:
    """Return the bytes of each letter's record, in the order of the letters; None for those that cannot be had any more."""
    stored = StoredRecords(services, spec)
    found: dict[int, bytes | None] = {}
    for letter in sorted(letters, key=_address):
        try:
            found[letter.id] = stored.record(letter.reject)
        except RecordGone:
            found[letter.id] = None
    return [found[letter.id] for letter in letters]


def raw_record(services: Services, letter: DeadLetter) -> tuple[bytes | None, str | None]:
    """Return the bytes of a letter's record, or why they cannot be had any more; the sync's spec may be broken or gone."""
    try:
        spec = services.spec(letter.sync)
    except SpecInvalid:
        spec = None
    try:
        return StoredRecords(services, spec).record(letter.reject), None
    except RecordGone as gone:
        return None, str(gone)


def _address(letter: DeadLetter) -> tuple[str, int, int]:
    address = letter.reject.address
    return (address.artifact, address.frame, address.index)
