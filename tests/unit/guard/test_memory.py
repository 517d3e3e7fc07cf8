"""Work that gets no memory, and work that fails by something else."""

import pytest

from sluice.errors import OutOfMemory
from sluice.guard.memory import lack_of_memory_told


def test_lack_of_memory_is_an_error_of_the_tree() -> None:
    """It may work later, and says what to do."""
    with pytest.raises(OutOfMemory, match="give it more"), lack_of_memory_told():
        bytearray(1 << 62)


def test_other_errors_pass() -> None:
    """What fails at run time is not always the memory."""
    with pytest.raises(RuntimeError, match="changed size"), lack_of_memory_told():
        raise RuntimeError("dictionary changed size during iteration")
