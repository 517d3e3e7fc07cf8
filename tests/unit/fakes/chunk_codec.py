"""A `ChunkCodec` that neither compresses nor hashes: each page follows its length."""

from collections.abc import Iterator, Sequence

from sluice.errors import ArtifactCorrupt

_LENGTH = 8


class PlainChunkCodec:
    """Pages behind their lengths, and their number in front."""

    def pack(self, pages: Sequence[bytes], level: int) -> bytes:  # noqa: ARG002  nothing is compressed
        return b"".join([len(pages).to_bytes(_LENGTH), *(len(page).to_bytes(_LENGTH) + page for page in pages)])

    def pages(self, data: bytes) -> Iterator[bytes]:
        place = _LENGTH
        for _ in range(int.from_bytes(data[:_LENGTH])):
            start = place + _LENGTH
            place = start + int.from_bytes(data[place:start])
            if place > len(data):
                raise ArtifactCorrupt("a chunk is cut short")
            yield data[start:place]
        if place != len(data):
            raise ArtifactCorrupt("something follows behind the last page")
