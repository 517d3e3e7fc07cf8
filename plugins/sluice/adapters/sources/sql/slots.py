"""The columns of a key and a bucket in; the condition that a row's key falls into that bucket out.

The server hashes the key to one of many slots, and Sluice says which slots belong to the bucket. So the server need not know
how values are spread over buckets, and with one bucket more no key moves but to the new one.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from sluice.adapters.sources.sql.fragments import MARK, Fragment, column_of
from sluice.mapping.buckets import bucket_of
from sluice.model.sharding import BucketShards

_SLOTS: Final = 65_536
"""As many as two bytes tell apart: about six for each bucket where there are as many as there may be."""


def in_bucket(key: Sequence[str], bucket: int, buckets: BucketShards) -> Fragment:
    """Return the condition. It looks the slot up in a text of bits, one for each slot."""
    parts = ", ".join(f"{column_of(name)}::text" for name in key)
    hashed = f"sha256(convert_to(json_build_array({MARK}::text, {parts})::text, 'UTF8'))"
    slot = f"get_byte(hashed, 0) * 256 + get_byte(hashed, 1) from {hashed} hashed"
    return Fragment(f"get_bit({MARK}, (select {slot})) = 1", (_bits(bucket, buckets.count, buckets.salt), buckets.salt))


def _bits(bucket: int, count: int, salt: str) -> bytes:
    bits = bytearray(_SLOTS // 8)
    for slot, owner in enumerate(_owners(count, salt)):
        if owner == bucket:
            bits[slot // 8] |= 1 << slot % 8  # as Postgres counts the bits of a byte, from the lowest on
    return bytes(bits)


@lru_cache(maxsize=4)
def _owners(count: int, salt: str) -> tuple[int, ...]:
    """Return the bucket of each slot."""
    return tuple(bucket_of(str(slot), count, salt) for slot in range(_SLOTS))
