"""A sync cut into shards in one way after another: each way brings in everything, and nothing is lost, doubled or deleted."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import psycopg
import pytest
import yaml

from sluice.adapters.metrics import LoggedMetrics
from sluice.adapters.postgres import conninfo
from sluice.flow.inline import run_inline
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Mode, Origin, RunRequest
from sluice.ports import ConnectionInfo
from sluice.settings import Settings
from sluice.wiring import open_services
from tests.support.local_server import Conversation, LocalServer, running

NUMBERS = 30
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
"""The hour of number 0; each has the next one."""


class Numbers(Conversation):
    """Answers with the numbers of a range, of a span of hours, of a bucket or of some tens, whichever is asked for."""

    def do_GET(self) -> None:
        """Answer."""
        address = urlsplit(self.path)
        asked = dict(parse_qsl(address.query))
        found = [self._record(number) for number in range(NUMBERS) if is_asked_for(number, asked)]
        body = json.dumps([{"ten": ten} for ten in range(NUMBERS // 10)] if address.path == "/tens" else found).encode()
        self.say(200, body)

    def _record(self, number: int) -> dict[str, Any]:
        return {"id": number, "at": (FIRST + timedelta(hours=number)).isoformat()}


def is_asked_for(number: int, asked: dict[str, str]) -> bool:
    """Whether a number is among those that a request is for."""
    at = FIRST + timedelta(hours=number)
    since = datetime.fromisoformat(asked.get("since", at.isoformat()))
    until = datetime.fromisoformat(asked.get("until", (at + timedelta(hours=1)).isoformat()))
    return (
        int(asked.get("from", number)) <= number < int(asked.get("below", number + 1))
        and number % int(asked.get("of", 1)) == int(asked.get("bucket", 0))
        and since <= at < until
        and str(number // 10) in asked.get("tens", str(number // 10)).split(",")
    )


@pytest.fixture
def supplier() -> Iterator[ConnectionInfo]:
    """A running server of numbers."""
    with running(LocalServer(Numbers)) as server:
        yield server.info("numbers")


TENS = {"kind": "rest", "connection": "numbers", "path": "/tens", "cursor": {"kind": "none"}}
WAYS: list[tuple[Any, dict[str, str], list[str]]] = [
    (None, {}, ["all"]),
    (
        {"kind": "ranges", "last": 29, "size": 12},
        {"from": "{{ shard.start }}", "below": "{{ shard.end }}"},
        ["0-11", "12-23", "24-29"],
    ),
    (
        {"kind": "windows", "every": "36500d", "start": "2026-01-01T00:00:00Z"},
        {"since": "{{ shard.start }}", "until": "{{ shard.end }}"},
        ["2026-01-01T00:00:00Z"],
    ),
    (
        {"kind": "buckets", "count": 3},
        {"bucket": "{{ shard.bucket }}", "of": "{{ shard.buckets }}"},
        ["0 of 3", "1 of 3", "2 of 3"],
    ),
    ({"kind": "listed", "name": "ten", "value": "ten", "source": TENS}, {"tens": "{{ shard.ten }}"}, ["0", "1", "2"]),
    (
        {"kind": "listed", "name": "ten", "value": "ten", "source": TENS, "buckets": 1},
        {"tens": "{{ shard.ten }}"},
        ["0 of 1"],
    ),
]


def spec(shards: Any, query: dict[str, str]) -> dict[str, Any]:
    """Return the spec of the sync, cut in one way."""
    return {
        "sync": "numbers",
        "stage": "hotel-content",
        "source": {"kind": "rest", "connection": "numbers", "path": "/numbers", "query": query, "cursor": {"kind": "none"}},
        **({} if shards is None else {"shards": shards}),
        "object": {"key": ["id"]},
        "fields": [{"name": "id", "type": "integer"}, {"name": "at", "type": "timestamptz"}],
        "review": {"first_load": "auto-approve", "auto_approve": {"deleted": "100%"}, "block": {"deleted": "100%"}},
        "target": {"table": "public.numbers"},
    }


def test_another_way_of_cutting_moves_objects_and_deletes_none(
    tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: ConnectionInfo
) -> None:
    """The first run loads all, and each later one finds all of it unchanged, in other shards: only the ledger notes which."""

    class Known:
        def get(self, conn_id: str) -> ConnectionInfo:
            return {"sluice_artifacts": artifacts, "numbers": supplier}.get(conn_id, database)

    (tmp_path / "syncs").mkdir()
    (tmp_path / "stages.yaml").write_text("stages: {hotel-content: {}}")
    with open_services(Settings(include=tmp_path, cache=tmp_path / "cache"), Known(), LoggedMetrics()) as services:
        for place, (shards, query, keys) in enumerate(WAYS):
            (tmp_path / "syncs" / "numbers.yaml").write_text(yaml.safe_dump(spec(shards, query)))
            run = run_inline(services, RunRequest(sync="numbers", mode=Mode.FULL, origin=Origin()))
            assert run.status is RunStatus.SUCCEEDED
            assert [shard.key for shard in services.shards.of(run.id)] == keys
            review = services.reviews.latest(run.id)
            assert review is not None
            figures = review.figures
            assert (figures.seen, figures.outcomes) == (NUMBERS, {Outcome.REFRESHED if place else Outcome.CREATED: NUMBERS})
            assert (figures.moved, figures.vanished) == (NUMBERS if place else 0, 0)
            with psycopg.connect(conninfo(database)) as connection:
                rows = connection.execute("select count(*), count(distinct id) from numbers").fetchone()
            assert rows == (NUMBERS, NUMBERS)
