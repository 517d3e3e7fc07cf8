"""How often circles are looked for."""

import gc

import pytest

from sluice.mapping.collecting import rarely_collected


def test_the_usual_comes_back_whatever_happens() -> None:
    """Within the block searches are rarer; behind it, even if it fails, they are what they were."""
    usual, within = gc.get_threshold(), []

    @rarely_collected()
    def fail() -> None:
        within.append(gc.get_threshold()[0])
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert within > [usual[0]]
    assert gc.get_threshold() == usual
