"""The contract of `WatermarkStore`."""

import pytest

from sluice.errors import Fenced
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import Step
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, POLICY, a_run

PARIS, ROME = ShardKey("paris"), ShardKey("rome")


def test_marks_are_kept_by_sync_and_shard(stores: Stores) -> None:
    """Each mark is text as it was given; a shard without one has none."""
    run = stores.runs.open(a_run(), POLICY)
    assert stores.watermarks.of("hotels") == {}
    stores.watermarks.advance("hotels", {PARIS: "2026-01-31T12:00:00Z"}, run)
    stores.watermarks.advance("hotels", {PARIS: "2026-02-01T12:00:00Z", ROME: "9"}, run)
    assert stores.watermarks.of("hotels") == {PARIS: "2026-02-01T12:00:00Z", ROME: "9"}
    assert stores.watermarks.of("rates") == {}


def test_advancing_nothing_is_nothing(stores: Stores) -> None:
    """A run without marks leaves them alone."""
    stores.watermarks.advance("hotels", {}, stores.runs.open(a_run(), POLICY))
    assert stores.watermarks.of("hotels") == {}


def test_a_run_that_was_overtaken_moves_nothing(stores: Stores) -> None:
    """An older token of the same run is fenced."""
    earlier = stores.runs.open(a_run(), POLICY)
    stores.runs.enter(RunId("run-1"), Step.PUBLISH, MINUTE)
    with pytest.raises(Fenced):
        stores.watermarks.advance("hotels", {PARIS: "9"}, earlier)
    assert stores.watermarks.of("hotels") == {}


def test_an_older_run_moves_no_mark_of_a_younger_one(stores: Stores) -> None:
    """Not even the marks the younger one left alone: all or none."""
    older = stores.runs.open(a_run(), POLICY)
    younger = stores.runs.open(a_run("run-2", request_key="another"), POLICY)
    stores.watermarks.advance("hotels", {PARIS: "9"}, younger)
    with pytest.raises(Fenced, match="paris"):
        stores.watermarks.advance("hotels", {PARIS: "5", ROME: "5"}, older)
    assert stores.watermarks.of("hotels") == {PARIS: "9"}
    stores.watermarks.advance("hotels", {ROME: "5"}, older)
    assert stores.watermarks.of("hotels") == {PARIS: "9", ROME: "5"}
