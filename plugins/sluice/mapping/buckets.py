"""A value and a number of buckets in; the one of them that has the value out, always the same."""

from typing import Final

import xxhash

_STEP: Final = 2862933555777941757
_MASK: Final = 2**64 - 1
_DRAW_BITS: Final = 31


def bucket_of(value: str, buckets: int, salt: str = "") -> int:
    """Return the bucket of a value, from 0 on. Every bucket has about as many; another salt spreads the values another way.

    With one bucket more, the new one takes its share from all others, and no value moves otherwise.
    """
    return jump(xxhash.xxh3_64_intdigest(f"{salt}\0{value}".encode("utf-8", "surrogatepass")), buckets)


def jump(number: int, buckets: int) -> int:
    """Return the bucket of a number of 64 bits, by the jump consistent hash of Lamping and Veach (2014).

    The number seeds a row of draws. Each draw says at how many buckets the value moves next, and it always moves to the newest.
    """
    bucket, following = 0, 0
    while following < buckets:
        bucket = following
        number = (number * _STEP + 1) & _MASK
        draw = (number >> (64 - _DRAW_BITS)) + 1
        following = ((bucket + 1) << _DRAW_BITS) // draw
    return bucket
