"""The address of a record comes in; its bytes go out, exactly as the supplier had sent them, or why they cannot be had."""

from collections.abc import Iterator

from pydantic import ValidationError

from sluice.errors import AnswerUnusable, ArtifactCorrupt
from sluice.mapping.pages import PageSplitter
from sluice.mapping.reject_lines import bytes_hash
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId
from sluice.model.reject import RawAddress, Reject
from sluice.model.spec import SyncSpec
from sluice.ports import Services


class RecordGone(Exception):
    """A signal to whoever asks for a record: why its bytes cannot be had."""


class StoredRecords:
    """Raw chunks, read from front to back: who asks in the order of addresses has each of them read once."""

    def __init__(self, services: Services, spec: SyncSpec | None) -> None:
        """Take a page apart as the spec of the run has it that fetched it; where that is not kept, as `spec` has it."""
        self._services = services
        self._spec = spec
        self._artifact: str | None = None
        self._why: str | None = None
        """Why the present chunk cannot be read; None: it can."""
        self._pages: Iterator[tuple[int, bytes]] = iter(())
        self._frame = -1
        self._found: list[bytes] = []
        self._splitter = PageSplitter("")

    def record(self, reject: Reject) -> bytes:
        """Return the bytes of a rejected record; raise `RecordGone`."""
        return self.at(reject.address, reject.raw_hash)

    def at(self, address: RawAddress, raw_hash: str | None = None) -> bytes:
        """Return the bytes that stand at an address, and have this hash where it is given; raise `RecordGone`."""
        if address.artifact != self._artifact or address.frame < self._frame:
            self._open(address.artifact)
        while self._why is None and self._frame < address.frame:
            self._turn(address.frame)
        if self._why is not None:
            raise RecordGone(self._why)
        record = self._found[address.index] if address.index < len(self._found) else b""
        if not record or (raw_hash is not None and bytes_hash(record) != raw_hash):
            raise RecordGone("other bytes stand in their place: a page was taken apart otherwise when they were met")
        return record

    def _open(self, artifact: str) -> None:
        self._artifact, self._frame, self._found, self._why = artifact, -1, [], None
        pointer = self._services.pointers.named([artifact]).get(artifact)
        if pointer is None:
            self._why = "nothing points to their chunk any more"
            return
        try:
            self._pages = enumerate(self._services.codec.pages(self._services.artifacts.get(pointer)))
        except ArtifactCorrupt as error:
            self._why = error.message
        if (spec := self._spec_of(pointer.ref.run)) is None:
            self._why = (
                "where they stand in their page is not known: the spec of their run is gone, and the present one is broken"
            )
        else:
            self._splitter = PageSplitter(spec.source.stored_records)

    def _turn(self, wanted: int) -> None:
        """Turn to the next page; it is taken apart only if it is the one that is wanted."""
        try:
            self._frame, body = next(self._pages)
            self._found = [bytes(raw) for raw in self._splitter.split(body).records] if self._frame == wanted else []
        except StopIteration:
            self._why = "their chunk has fewer pages than it had"
        except (ArtifactCorrupt, AnswerUnusable) as error:
            self._why = error.message

    def _spec_of(self, run: RunId) -> SyncSpec | None:
        for pointer in self._services.pointers.of(run, ArtifactKind.SPEC)[-1:]:
            try:
                return SyncSpec.model_validate_json(self._services.artifacts.get(pointer))
            except (ArtifactCorrupt, ValidationError):
                break
        return self._spec
