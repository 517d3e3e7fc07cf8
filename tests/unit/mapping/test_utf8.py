"""What is UTF-8, as Python's own decoder sees it."""

from hypothesis import example, given
from hypothesis import strategies as st

from sluice.mapping.utf8 import is_utf8


@given(st.one_of(st.binary(), st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))))
@example(b"\xed\xa0\x80")
@example(b"\xc0\xaf")
@example(b"\xf4\x90\x80\x80")
@example("ž\U0010ffff".encode())
def test_it_agrees_with_pythons_decoder(text: bytes) -> None:
    """Of any bytes: neither surrogates, nor forms that are too long, nor what lies beyond the last character pass."""
    try:
        text.decode()
    except UnicodeDecodeError:
        assert not is_utf8(text)
    else:
        assert is_utf8(text)
