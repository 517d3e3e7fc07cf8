"""Bytes come in; whether they are UTF-8 goes out, at a third of what decoding them costs."""

from struct import Struct
from typing import Final

_OFFSETS: Final = Struct("=qq")


def is_utf8(text: bytes) -> bool:
    """Whether some bytes are UTF-8, strictly: without surrogates, nor anything in more bytes than it needs."""
    if text.isascii():
        return True
    import pyarrow as pa  # not where DAGs are parsed

    # Arrow is shown the bytes where they are; `pa.array` would copy them, and load pandas to ask whether they are some of its.
    buffers = [None, pa.py_buffer(_OFFSETS.pack(0, len(text))), pa.py_buffer(text)]
    try:
        pa.Array.from_buffers(pa.large_string(), 1, buffers).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
