"""The order of a line's fields: what happened first, whose it is last."""

from sluice.guard.log_order import in_order


def test_whose_an_event_is_comes_last() -> None:
    """In one order, whatever order it was bound in; what others log stays as it is."""
    bound = {"attempt": 1, "step": "fetch", "sync": "hotels", "dag_id": "d", "run": "r", "stage": "s", "shard": "paris"}
    shown = in_order(None, "info", {"event": "sluice.shard_fetched", "pages": 3, **bound})
    assert list(shown) == ["event", "pages", "dag_id", "sync", "stage", "run", "shard", "step", "attempt"]
    assert list(in_order(None, "info", {"event": "theirs", **bound})) == ["event", *bound]
