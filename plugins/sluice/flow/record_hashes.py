"""Places of records in a raw chunk come in; what tells their bytes from others goes out."""

from collections.abc import Collection

from sluice.flow.damage import intact
from sluice.mapping.pages import PageSplitter
from sluice.mapping.places import Place
from sluice.mapping.reject_lines import bytes_hash
from sluice.model.artifact import Pointer
from sluice.model.run import Run
from sluice.model.spec import SyncSpec
from sluice.ports import Services


def record_hashes(services: Services, run: Run, spec: SyncSpec, raw: Pointer, places: Collection[Place]) -> dict[Place, str]:
    """Return the hash of each of these records of a chunk."""
    splitter, found = PageSplitter(spec.source.stored_records), {}
    frames = {frame for frame, _ in places}
    with intact(services, raw, run) as chunk:
        for frame, page in enumerate(services.codec.pages(chunk)):
            if frame in frames:
                records = splitter.split(page).records
                found.update({(frame, index): bytes_hash(records[index]) for at, index in places if at == frame})
    return found
