"""Where a record of the supplier's stands comes in; its bytes go out, if they are of the sync that asks."""

from sluice.errors import NotFound, SpecInvalid
from sluice.mapping.stored_records import RecordGone, StoredRecords
from sluice.model.artifact import ArtifactKind
from sluice.model.reject import RawAddress
from sluice.model.spec import SyncSpec
from sluice.ports import Services


def stored_record(services: Services, sync: str, address: RawAddress, largest: int) -> bytes:
    """Return the bytes of a record, exactly as the supplier had sent them.

    Raises `NotFound` for what is no raw chunk of the sync, is kept no more, or is a chunk of more than `largest` bytes.
    """
    pointer = services.pointers.named([address.artifact]).get(address.artifact)
    if pointer is None or pointer.ref.sync != sync or pointer.ref.kind is not ArtifactKind.RAW:
        raise NotFound(f"{sync} has no such raw chunk, or not any more")
    if pointer.bytes > largest:
        raise NotFound(f"its chunk has {pointer.bytes:,} bytes, too many to be looked through here: `sluice why` does it")
    try:
        return StoredRecords(services, _spec(services, sync)).at(address)
    except RecordGone as gone:
        raise NotFound(f"the record is gone: {gone}") from gone


def _spec(services: Services, sync: str) -> SyncSpec | None:
    try:
        return services.spec(sync)
    except SpecInvalid:
        return None
