"""Trying a spec: what it would do is told, before the first load, after it and without a target; and nothing is written."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.adapters.postgres import conninfo
from sluice.cli.requests import RequestsSeen
from sluice.errors import ConnectionInvalid, UsageInvalid
from sluice.flow.trial import try_spec
from sluice.model.base import ShardKey
from sluice.model.ledger import Outcome
from sluice.model.trial import Trial, TrialQuestion
from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLineHere
from tests.support.places import SPEC, Places, open_places
from tests.support.scripted_supplier import answer

CONTROL = {"rate", "breaker"}
"""What all workers share about a host is kept up by a trial as by anything else."""


@pytest.fixture
def places(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Places]:
    with open_places(tmp_path, database, artifacts) as places:
        yield places


def page(*records: str, following: str = "null") -> bytes:
    """Return an answer with these records."""
    return answer(f'{{"places": [{", ".join(records)}], "next": {following}}}'.encode())


def tried(places: Places, **question: Any) -> Trial:
    """Try the spec as it stands."""
    return try_spec(places.services, places.spec, TrialQuestion(**question))


def everything(database: ConnectionInfo, artifacts: ConnectionInfo) -> dict[str, Any]:
    """Return the rows of every table by its name, and the keys of the bucket."""
    found: dict[str, Any] = {}
    with psycopg.connect(conninfo(database)) as connection:
        tables = connection.execute(
            "select schemaname, tablename from pg_tables where schemaname not in ('pg_catalog', 'information_schema')"
        ).fetchall()
        for schema, name in tables:
            if name not in CONTROL:
                found[f"{schema}.{name}"] = connection.execute(f'select t::text from {schema}."{name}" t order by 1').fetchall()
    client = S3ArtifactStore(artifacts)._client
    listed = client.get_paginator("list_objects_v2").paginate(Bucket=artifacts.extra["bucket"])
    found["keys"] = [entry["Key"] for answered in listed for entry in answered.get("Contents", [])]
    return found


def test_before_the_first_load(places: Places, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """There is no table and no ledger row yet: all would be created, and no more is fetched than was asked for."""
    before = everything(database, artifacts)
    places.supplier.answers += [
        page('{"id": "a", "rate": 1.50}', '{"id": "b", "rooms": "x"}', following='"2"'),
        page('{"id": "c"}'),
    ]
    trial = tried(places, limit=2)
    assert trial.records == ('{"id": "a", "rate": 1.50}', '{"id": "b", "rooms": "x"}')
    assert (trial.pages, trial.is_cut, trial.shard, trial.shards) == (1, True, "all", 1)
    assert trial.rows[0].values == {"id": "a", "rooms": None, "rate": "1.5", "tags": None, "opened": None}
    assert [(reject.record, reject.key, reject.field) for reject in trial.rejects] == [(1, "b", "rooms")]
    assert trial.comparison is not None
    assert trial.comparison.outcomes == {Outcome.CREATED: 1, Outcome.REJECTED: 1}
    assert any("create table" in statement.lower() for statement in trial.comparison.table_changes)
    assert trial.failure is None
    assert everything(database, artifacts) == before
    assert places.supplier.asked == ["/places"]


def test_after_a_load(places: Places, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """What differs is told field by field, new columns included; what the records lack is no deletion."""
    places.bring('{"id": "a", "rooms": 1}', '{"id": "b", "rooms": 2}', '{"id": "c", "rooms": 3}')
    places.declare(fields=[*SPEC["fields"], {"name": "city", "type": "text"}])
    before = everything(database, artifacts)
    places.supplier.answers.append(page('{"id": "a", "rooms": 1, "city": "Metz"}', '{"id": "d"}', '{"id": "c", "rooms": 3}'))
    comparison = tried(places).comparison
    assert comparison is not None
    assert comparison.unchanged + comparison.outcomes.get(Outcome.CHANGED, 0) == 2
    told = {sample.key: sample for sample in comparison.objects}
    assert [(change.field, change.old, change.new) for change in told["a"].values] == [("city", None, "Metz")]  # type: ignore[index]
    assert told["d"].outcome is Outcome.CREATED  # type: ignore[index]
    assert "b" not in told
    assert Outcome.DELETED not in comparison.outcomes
    assert everything(database, artifacts) == before


def test_without_a_target(places: Places) -> None:
    """The rows are shown all the same, and it is said why there is no comparison."""

    def target(_: Any) -> Any:
        raise ConnectionInvalid("there is no connection 'sluice_target'")

    places.supplier.answers.append(page('{"id": "a"}'))
    trial = try_spec(replace(places.services, target=target), places.spec, TrialQuestion())
    assert [row.key for row in trial.rows] == ["a"]
    assert trial.comparison is None
    assert trial.incomparable == "there is no connection 'sluice_target'"
    assert trial.failure is None


def test_a_supplier_that_fails_half_way(places: Places) -> None:
    """What came before is shown, and what a run would fail with."""
    places.supplier.answers += [page('{"id": "a"}', following='"2"'), answer({}, "404 Not Found")]
    trial = tried(places)
    assert [row.key for row in trial.rows] == ["a"]
    assert trial.failure is not None
    assert trial.failure.error == "SupplierRefused"


def test_records_that_are_fetched_one_by_one(places: Places) -> None:
    """Of those that are listed no more are fetched than it takes to show some, and to know that there are more."""
    places.declare(source={**SPEC["source"], "detail": {"path": "/places/{{ record.id }}", "at_once": 1}})
    places.supplier.answers += [page('{"id": "a"}', '{"id": "b"}', '{"id": "c"}'), answer({"id": "a"}), answer({"id": "b"})]
    trial = tried(places, limit=1)
    assert (trial.records, trial.is_cut, trial.failure) == (('{"id": "a"}',), True, None)
    assert places.supplier.asked == ["/places", "/places/a", "/places/b"]


def test_a_table_that_does_not_fit(places: Places) -> None:
    """A run would fail at its review, and so does the trial, having shown the rest."""
    places.sql("create table public.places (id text primary key, rooms text)")
    places.supplier.answers.append(page('{"id": "a"}'))
    trial = tried(places)
    assert trial.failure is not None
    assert trial.failure.error == "TargetMismatch"
    assert [row.key for row in trial.rows] == ["a"]


def test_hints(places: Places) -> None:
    """A field that no record has, and a cursor that no answer has, are named with what is there instead."""
    source = {**SPEC["source"], "cursor": {"path": "paging.next", "parameter": "cursor"}}
    wrong = [
        {"name": "latitude", "path": "location.lat", "type": "numeric"},
        {"name": "first", "coalesce": ["nowhere", "id"], "type": "text"},
        {"name": "both", "concat": ["id", {"text": "/"}, "tag"], "type": "text"},
    ]
    places.declare(source=source, fields=[*SPEC["fields"], *wrong])
    places.supplier.answers.append(page('{"id": "a", "geo": {"lat": 48.5}, "rooms": 1, "rate": 2, "tags": 1, "opened": null}'))
    trial = tried(places)
    assert trial.paths == "id, geo.lat, rooms, rate, tags, opened"
    assert [(hint.path, hint.message) for hint in trial.hints] == [
        (("fields", 5, "path"), "no record has `location.lat`; did you mean `geo.lat`?"),
        (("fields", 7, "concat", 2), "no record has `tag`; did you mean `tags`?"),
        (
            ("source", "cursor", "path"),
            "no answer has `paging.next`; did you mean `next`?; it has: places, next",
        ),
    ]


def test_one_shard_of_several(places: Places) -> None:
    """The first is taken, or the one that is named."""
    source = {**SPEC["source"], "query": {"city": "{{ shard.city }}"}}
    places.declare(source=source, shards={"kind": "values", "name": "city", "values": ["metz", "paris"]})
    for shard, city in ((None, "metz"), (ShardKey("paris"), "paris")):
        places.supplier.answers.append(page())
        trial = tried(places, shard=shard)
        assert (trial.shard, trial.params, trial.shards, trial.rows) == (city, {"city": city}, 2, ())
        assert places.supplier.asked[-1] == f"/places?city={city}"
    with pytest.raises(UsageInvalid, match="places has no shard rome; its shards: metz, paris"):
        tried(places, shard=ShardKey("rome"))


def test_incremental(places: Places) -> None:
    """It begins where a run would; in mode full it begins at the beginning."""
    source = {**SPEC["source"], "watermark": "opened", "query": {"since": "{{ watermark }}"}}
    places.declare(source=source)
    places.bring('{"id": "a", "opened": "2026-01-02T00:00:00Z"}')
    places.supplier.answers.append(page('{"id": "b", "opened": "2099-01-01T00:00:00Z"}'))
    hint = next(hint.message for hint in tried(places).hints if hint.path == ("source", "watermark"))
    assert (
        hint == "records are dated after the fetch: 1, first: b 2099-01-01T00:00:00Z; they are taken in, and move no watermark"
    )
    places.supplier.answers += [page(), page()]
    assert tried(places).watermark is not None
    assert "since=2026-01-02" in places.supplier.asked[-1]
    assert tried(places, mode="full").watermark is None
    assert places.supplier.asked[-1] == "/places"


def test_the_command(places: Places, tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """It shows requests without secrets, hints with their lines, and ends as what it found deserves."""
    known = {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts}
    sluice = CommandLineHere(tmp_path, known)
    sluice.define("shop", places.supplier.connection(password="canary"))
    places.declare(source={**SPEC["source"], "auth": {"kind": "api_key", "query": "token"}})
    draft = tmp_path / "draft" / "places.yaml"
    draft.parent.mkdir()
    text = (tmp_path / "include/syncs/places.yaml").read_text(encoding="utf-8")
    draft.write_text(text.replace("name: tags", "path: label\n  name: tags"), encoding="utf-8")

    red = '{"id": "a", "note": "\\u001b[31mred"}'
    places.supplier.answers += [page(red, '{"id": null}'), page(red), answer({}, "403 Forbidden")]
    told = sluice.ask("try", "draft/places.yaml", code=4)
    [request] = told["requests"]
    assert (request["method"], request["status"]) == ("GET", 200)
    assert request["address"].endswith("/places?token=***")
    assert request["bytes"] > 0
    assert told["rejects"][0]["field"] == "id"
    line = draft.read_text(encoding="utf-8").splitlines().index("- path: label") + 1
    assert f"draft/places.yaml:{line}: fields[3].path: no record has `label`" in "\n".join(told["hints"])

    shown = sluice.call("try", "places", "--limit", "1")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "\x1b" not in shown.stdout
    assert "canary" not in shown.stdout + str(told)
    assert places.supplier.asked[-1] == "/places?token=canary"
    assert "What is not among these records is no deletion" in shown.stdout

    refused = sluice.ask("try", "places", code=1)
    assert (refused["failure"]["error"], refused["requests"][0]["status"]) == ("SupplierRefused", 403)


def test_requests_are_told_in_the_order_of_their_answers() -> None:
    """Other events pass without a trace."""
    seen = RequestsSeen()
    event = {"event": "sluice.request_answered", "method": "GET", "address": "http://a/", "status": 200, "bytes": 7}
    assert seen(None, "", {**event, "seconds": 0.0123, "error": None})["seconds"] == 0.0123
    seen(None, "", {"event": "sluice.page_fetched"})
    assert seen.requests == [{**{name: event[name] for name in event if name != "event"}, "error": None, "milliseconds": 12}]
