"""What a person is asked for, where options leave something open."""

import io
from typing import get_args

import pytest

from sluice.cli.drafting.asking import drafted_by
from sluice.cli.drafting.choices import MEANINGS, Kind, Paging, Shards


def test_whoever_sits_at_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty answer takes what is proposed, a wrong one is asked for again; what an option says is not asked for."""
    said = ["ftp", "rest", "", "/v1/hotels", "page", "data.items", "id, chain", "", "thirds", "values", "hotel-content", "", ""]
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in said)))
    draft = drafted_by("hotels", {"version": "rev"}, ["hotel-content"], is_there=True)
    assert (draft.kind, draft.connection, draft.path, draft.paging) == ("rest", "hotels_supplier", "/v1/hotels", "page")
    assert (draft.records, draft.key, draft.version, draft.watermark) == ("data.items", ("id", "chain"), "rev", None)
    assert (draft.shards, draft.stage, draft.target, draft.schedule) == ("values", "hotel-content", "public.hotels", None)
    assert {"kind": get_args(Kind), "paging": get_args(Paging), "shards": get_args(Shards)} == {
        name: tuple(words) for name, words in MEANINGS.items()
    }
