"""Who has stored an artifact: nothing goes in, a name comes out that all processes of one user on one machine share."""

import hashlib
import os
import socket
from dataclasses import dataclass
from functools import cache
from typing import Final

_BYTES: Final = 8


@dataclass(frozen=True)
class Stored:
    """The bytes of an artifact, and whether this worker has stored them."""

    data: bytes
    written_here: bool


@cache
def worker_id() -> str:
    """Return this worker's name. It tells workers apart, and says nothing else about them."""
    return hashlib.blake2b(f"{os.geteuid()}@{socket.gethostname()}".encode(), digest_size=_BYTES).hexdigest()
