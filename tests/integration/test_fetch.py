"""Fetching over HTTP into a real object store and a real Postgres."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sluice.adapters.artifacts.codec import ZstdChunkCodec
from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.adapters.postgres import Database
from sluice.adapters.state import PostgresPointerStore, PostgresRunStore, PostgresShardStore, PostgresWatermarkStore
from sluice.errors import AnswerNotJson, StateUnavailable, SupplierUnavailable
from sluice.flow.admission import admit
from sluice.flow.fetcher import fetch
from sluice.flow.sharder import plan_shards
from sluice.model.artifact import ArtifactKind
from sluice.model.lifecycle import ShardStatus
from sluice.model.run import Origin, RunRequest
from sluice.model.stage import RetryPolicy, StagePolicy
from sluice.ports import ConnectionInfo
from tests.support.restraints import lone_source
from tests.support.scripted_supplier import answer, scripted
from tests.unit.flow.workshop import NORTH, RUN, Workshop


def page(number: int, last: int) -> dict[str, Any]:
    """What the supplier has on a page."""
    return {"hotels": [{"id": f"{number}-{place}"} for place in range(3)], "next": f"c{number}" if number < last else None}


def test_a_shard_is_resumed_where_it_stood(database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """After each failure the next attempt asks for the missing pages alone, and the chunks hold every body just once."""
    retry = RetryPolicy(attempts=2, base=timedelta(milliseconds=1))
    policy = StagePolicy(retry=retry, chunk_bytes=100)
    pages = [answer(page(number, 5)) for number in range(1, 6)]
    down = answer({}, "500 Internal Server Error")
    state = Database(database, StateUnavailable)
    script = [*pages[:3], answer(b"<html>", Content_Type="text/html"), *pages[3:4], down, down, *pages[4:]]
    with scripted(*script) as server:
        services = replace(
            Workshop(policy=policy).services,
            runs=PostgresRunStore(state),
            shards=PostgresShardStore(state),
            pointers=PostgresPointerStore(state),
            watermarks=PostgresWatermarkStore(state),
            artifacts=S3ArtifactStore(artifacts),
            codec=ZstdChunkCodec(),
            source=lambda spec, policy: lone_source(spec.source, server.connection(), policy),
        )
        admit(services, RunRequest(sync="hotels", origin=Origin()), RUN)
        plan_shards(services, RUN)
        with pytest.raises(AnswerNotJson):
            fetch(services, RUN, NORTH)
        failed = services.shards.of(RUN)[0]
        assert (failed.status, failed.cursor, failed.pages) == (ShardStatus.FAILED, "c3", 3)
        with pytest.raises(SupplierUnavailable):
            fetch(services, RUN, NORTH)
        shard = fetch(services, RUN, NORTH)
        start = "/hotels?region=north"
        followed = [f"{start}&cursor=c{number}" for number in (1, 2, 3, 3, 4, 4, 4)]
        assert server.asked == [start, *followed]
    pointers = services.pointers.of(RUN, ArtifactKind.RAW, NORTH)
    stored = [body for pointer in pointers for body in services.codec.pages(services.artifacts.get(pointer))]
    state.close()
    assert stored == [sent.partition(b"\r\n\r\n")[2] for sent in pages]
    assert (shard.exhausted, shard.pages, shard.records, shard.chunks) == (True, 5, 15, len(pointers))
    assert (shard.attempt, shard.failure) == (3, None)
