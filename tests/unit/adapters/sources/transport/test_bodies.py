"""Bodies: whatever way they were encoded, in however many pieces, out comes what was meant, or a named error."""

import gzip
import zlib
from collections.abc import Callable

import httpx2
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.sources.transport.bodies import peek, read_body
from sluice.errors import AnswerNotJson, AnswerTooLarge, SluiceError, SupplierUnavailable

ENCODE: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress}
ENCODINGS = st.sampled_from(sorted(ENCODE))
ASKED = "GET http://shop.example/list"


def response(raw: bytes, encoding: str) -> httpx2.Response:
    """Return a response that nobody has read."""
    return httpx2.Response(200, headers={"Content-Encoding": encoding}, stream=httpx2.ByteStream(raw))


@given(ENCODINGS, st.lists(st.binary(max_size=3000), max_size=4))
def test_all_that_was_encoded_comes_out(encoding: str, parts: list[bytes]) -> None:
    """One member after the other, up to just the bound, which one byte more would break."""
    raw, body = b"".join(map(ENCODE[encoding], parts)), b"".join(parts)
    limit = max(len(raw), len(body))
    assert read_body(response(raw, encoding), limit, ASKED) == body
    if limit:
        with pytest.raises(AnswerTooLarge, match=f"^{ASKED}: the answer is larger than {limit - 1} bytes"):
            read_body(response(raw, encoding), limit - 1, ASKED)


@given(ENCODINGS, st.binary(min_size=1, max_size=3000), st.integers(min_value=1))
def test_what_is_cut_short_is_asked_for_again(encoding: str, body: bytes, where: int) -> None:
    """Wherever the stream ends before its end."""
    raw = ENCODE[encoding](body)
    begun = raw[: 1 + where % (len(raw) - 1)]
    with pytest.raises(SupplierUnavailable, match="cut short"):
        read_body(response(begun, encoding), 9000, ASKED)


@given(ENCODINGS, st.binary(max_size=300))
def test_garbage_is_never_taken_for_a_body(encoding: str, garbage: bytes) -> None:
    """What is no such stream is a named error, and to quote it fails no error."""
    try:
        read_body(response(garbage, encoding), 100_000, ASKED)
    except SluiceError as error:
        assert isinstance(error, AnswerNotJson | SupplierUnavailable | AnswerTooLarge)  # noqa: PT017  any of them will do
    assert isinstance(peek(response(garbage, encoding)), bytes)


@pytest.mark.parametrize("encoding", sorted(ENCODE))
def test_the_beginning_of_a_body_is_quoted_as_it_was_meant(encoding: str) -> None:
    """Even if the rest of it is gone."""
    said = b'{"error": "closed for maintenance until noon"}'
    assert peek(response(ENCODE[encoding](said), encoding)) == said
    assert peek(response(said, "")) == said


def test_a_window_of_zstd_beyond_the_standards_is_refused() -> None:
    """It would take more memory than a body may."""
    parameters = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    raw = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    with pytest.raises(AnswerNotJson, match="cannot be decompressed from zstd"):
        read_body(response(raw.compress(b"x" * 100) + raw.flush(), "zstd"), 9000, ASKED)
