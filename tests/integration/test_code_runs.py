"""Whole runs whose source is a class of the team's own: its pages in; what becomes of the table, also when it fails, out."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from sluice.flow.inline import run_inline
from sluice.model.lifecycle import RunStatus, ShardStatus
from sluice.model.run import Mode, Origin, Run, RunRequest
from sluice.ports import ConnectionInfo
from tests.support.stall import Stall, open_stall

WRITTEN = """
    from decimal import Decimal
    from pathlib import Path

    from sluice.ports import Page

    class Things:
        def __init__(self, context):
            self.folder = Path(context.options["folder"])

        def pages(self, request):
            for number in range(request.cursor or 1, 5):
                with (self.folder / "asked").open("a") as asked:
                    asked.write(f"{number} ")
                if number == 3 and not (self.folder / "mended").exists():
                    raise RuntimeError("nobody has thought of this")
                records = [{"id": f"k{number}", "price": Decimal(number) / 8, "version": number}]
                yield Page.of(records, cursor=number + 1 if number < 4 else None)
"""


@pytest.fixture
def stall(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Stall]:
    """A sync of what a class yields."""
    source = {"kind": "code", "code": "things_of_ours.Things", "options": {"folder": str(tmp_path)}}
    fields = [{"name": "id", "type": "text"}, {"name": "price", "type": "numeric"}, {"name": "version", "type": "bigint"}]
    policy = {"lease_ttl": "2s", "heartbeat": "0.5s"}
    with open_stall(tmp_path, database, artifacts, {"source": source, "fields": fields}, **policy) as stall:
        (tmp_path / "include/things_of_ours.py").write_text(dedent(WRITTEN))
        yield stall
    sys.modules.pop("things_of_ours", None)


def bring(stall: Stall) -> Run:
    """Run the sync once."""
    return run_inline(stall.services, RunRequest(sync="prices", mode=Mode.FULL, origin=Origin()))


def test_what_it_raises_costs_no_page_that_is_stored(stall: Stall, tmp_path: Path) -> None:
    """An error that Sluice does not know fails the shard; the next try goes on behind the last checkpoint."""
    run = bring(stall)
    (shard,) = stall.services.shards.of(run.id)
    assert (run.status, shard.status) == (RunStatus.FAILED, ShardStatus.FAILED)
    assert shard.failure is not None
    assert shard.failure.error == "CodeFailed"
    assert re.search(r"things_of_ours\.py:16: RuntimeError: nobody has thought of this", shard.failure.message)
    (tmp_path / "mended").touch()
    assert bring(stall).status is RunStatus.SUCCEEDED
    assert stall.prices() == {"k1": 0.125, "k2": 0.25, "k3": 0.375, "k4": 0.5}
    assert (tmp_path / "asked").read_text().split() == ["1", "2", "3", "3", "4"]
    assert not list((tmp_path / "include").rglob("*.pyc"))


def test_reading_a_spec_imports_nothing(stall: Stall) -> None:
    """What a DAG file is parsed for needs no supplier's code."""
    assert stall.services.spec("prices").source.kind == "code"
    assert "things_of_ours" not in sys.modules
