"""What tests have to say about a session as a whole: lines go in, by whichever process; they are printed at its end."""

import pytest

_LINES = pytest.StashKey[list[str]]()


def summary_of(config: pytest.Config) -> list[str]:
    """Return the lines of this process, to add to."""
    return config.stash.setdefault(_LINES, [])
