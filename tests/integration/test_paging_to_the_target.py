"""Lists that move while they are paged through, read by whole runs into a table."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluice.flow.inline import run_inline
from sluice.model.base import ShardKey
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Origin, RunRequest
from sluice.ports import ConnectionInfo
from tests.support.answering_supplier import Reply, answering
from tests.support.stall import SYNC, open_stall, price

Thing = dict[str, Any]

OFFSET = {"kind": "offset", "size": 2}
KEYSET = {"kind": "keyset", "size": 2, "field": "updated_at", "parameter": "after"}


class Moving:
    """Things in the order of their last change, two on a page; something happens behind the first page that is asked for."""

    def __init__(self, things: list[Thing], happening: Callable[[list[Thing]], None], *, is_exclusive: bool = False) -> None:
        self.things = things
        self._happening = happening
        self._is_exclusive = is_exclusive
        self._pages = 0

    def respond(self, _: str, query: dict[str, str]) -> Reply:
        """Answer with a page."""
        self._pages += 1
        if self._pages == 2:
            self._happening(self.things)
            self.things.sort(key=lambda thing: str(thing["updated_at"]))
        offset, after = int(query.get("offset", 0)), query.get("after", "")
        behind = [thing for thing in self.things if thing["updated_at"] > after or not self._is_excluded(thing, after)]
        return Reply({"things": behind[offset : offset + 2]})

    def _is_excluded(self, thing: Thing, after: str) -> bool:
        return bool(thing["updated_at"] < after or self._is_exclusive)


def brought(folder: Path, database: ConnectionInfo, artifacts: ConnectionInfo, cursor: Thing, moving: Moving) -> Thing:
    """Run the sync once, in full; return what the table holds."""
    source = {**SYNC["source"], "query": {}, "watermark": None, "cursor": cursor}
    with (
        answering(moving.respond) as supplier,
        open_stall(folder, database, artifacts, {"source": source}, supplier.connection) as stall,
    ):
        run = run_inline(stall.services, RunRequest(sync="prices", origin=Origin()))
        assert run.status is RunStatus.SUCCEEDED
        assert stall.services.shards.get(run.id, ShardKey("all")).exhausted
        return stall.prices()


@pytest.mark.parametrize(
    ("cursor", "is_exclusive"), [(OFFSET, False), (KEYSET, False), (KEYSET, True)], ids=["offset", "inclusive", "exclusive"]
)
def test_what_moves_takes_nothing_along(
    tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, cursor: Thing, is_exclusive: bool
) -> None:
    """A1 B2 | C3 D4: behind page 1, B is changed at 9. C is not lost, and of B the newest version is in the table."""

    def change(things: list[Thing]) -> None:
        things[1] = price("b", 29.0, version=9, hour=9)

    things = [price(key, number, version=number, hour=number) for number, key in enumerate("abcd", 1)]
    moving = Moving(things, change, is_exclusive=is_exclusive)
    table = brought(tmp_path, database, artifacts, cursor, moving)
    assert table == {"a": 1.0, "b": 29.0, "c": 3.0, "d": 4.0}


def test_a_full_run_deletes_nothing_that_moved_up(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """Where all that page 1 had is gone by page 2, what was behind it comes all the same."""

    def drop(things: list[Thing]) -> None:
        del things[:2]

    things = [price(key, number, version=number, hour=number) for number, key in enumerate("abcde", 1)]
    table = brought(tmp_path, database, artifacts, OFFSET, Moving(things, drop))
    assert table == {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0}


def test_null_instead_of_records_is_the_end(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """Three items with cursor x, one with y, then null with y once more: it ends, with four items."""
    items = [price(key, number, hour=number) for number, key in enumerate("abcd", 1)]
    replies = [{"things": items[:3], "next": "x"}, {"things": items[3:], "next": "y"}, {"things": None, "next": "y"}]
    with (
        answering(lambda _, __: Reply(replies.pop(0))) as supplier,
        open_stall(tmp_path, database, artifacts, None, supplier.connection) as stall,
    ):
        run = run_inline(stall.services, RunRequest(sync="prices", origin=Origin()))
        assert run.status is RunStatus.SUCCEEDED
        assert [path.partition("cursor=")[2] for path in supplier.asked] == ["", "x", "y"]
        assert stall.prices() == {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
