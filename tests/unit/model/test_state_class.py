"""What the classes of state promise holds for each of their tables."""

from functools import reduce

import pytest

from sluice.model.stage import StagePolicy
from sluice.model.state_class import TABLES, Kept, OnFailure, StateClass, WriteMode


@pytest.mark.parametrize("kept", [pytest.param(kept, id=name) for name, kept in TABLES.items()])
def test_each_table_is_kept_as_its_class_wants_it(kept: Kept) -> None:
    """Control state is written at once and may not be lost; only session state may be aggregated and dropped."""
    assert (kept.writes is WriteMode.AT_ONCE) == (kept.state_class is StateClass.CONTROL)
    if kept.state_class is not StateClass.SESSION:
        assert kept.writes is not WriteMode.AGGREGATED
        assert kept.on_failure is OnFailure.RAISE


@pytest.mark.parametrize("ttl", sorted({kept.ttl for kept in TABLES.values() if kept.ttl}))
def test_each_time_to_live_is_a_key_of_the_policy(ttl: str) -> None:
    """Who changes the policy changes how long the table is kept."""
    assert reduce(getattr, ttl.split("."), StagePolicy()) is not None


def test_no_class_shares_its_time_to_live_with_another() -> None:
    """Each class has keys of its own."""
    keys = {
        state_class: {kept.ttl for kept in TABLES.values() if kept.state_class is state_class and kept.ttl}
        for state_class in StateClass
    }
    assert all(keys.values())
    assert len(set.union(*keys.values())) == sum(map(len, keys.values()))
