"""A draft as it is looked at before it is written."""

import pytest

from sluice.cli.drafting.asking import drafted_by
from sluice.cli.drafting.look import drafted
from sluice.errors import SpecInvalid

STAGES = "stages:\n  hotel-content: {}\n"


def test_an_invalid_draft_is_told_by_line() -> None:
    """What cannot be known before the files are read is told as `sluice validate` tells it."""
    draft = drafted_by("hotels", {"stage": "unknown"}, [], is_there=False)
    with pytest.raises(SpecInvalid, match=r"include/syncs/hotels.yaml:\d+: stage: no stage 'unknown'"), drafted(draft, STAGES):
        pass
