"""The oracle: databases and bucket of an experiment in; out come a picture to compare, and what is wrong by itself.

A picture leaves out what may differ from run to run (ids of runs, numbers of publications, tokens, moments) by putting ranks in
their place. Two pictures are equal if nobody who looks at table, ledger, events, dead letters or watermarks can tell which of
the two histories was disturbed.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row, tuple_row

from sluice.adapters.artifacts.codec import ZstdChunkCodec
from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.adapters.postgres import conninfo
from sluice.adapters.state.pointers import pointer_from_row
from sluice.errors import SluiceError
from sluice.model.artifact import Pointer
from sluice.model.lifecycle import (
    FINAL_RUN_STATUSES,
    REVIEW_TRANSITIONS,
    RUN_TRANSITIONS,
    SHARD_TRANSITIONS,
    ReviewEvent,
    RunEvent,
    RunStatus,
    ShardEvent,
    ShardStatus,
    Verdict,
)
from sluice.ports import ConnectionInfo

Picture = dict[str, Any]

_TARGET_SIDE = {
    "table": "select to_jsonb(t) - '_sluice_deleted_at', _sluice_deleted_at is null from public.things t order by id",
    "objects": """
        select key, shard, encode(raw_hash, 'hex'), encode(row_hash, 'hex'), transformer_version, source_version, state,
            (select count(*) from sluice_ledger.publication p where p.id <= o.publication)
        from sluice_ledger.object o order by key""",
    "object events": """
        select key, (select count(*) from sluice_ledger.publication p where p.id <= e.publication), outcome,
            encode(old_hash, 'hex'), encode(new_hash, 'hex'), source_version, shard
        from sluice_ledger.object_event e order by 1, 2, 3""",
    "publications": "select counts, rolled_back_by from sluice_ledger.publication order by id",
    "fences": "select sync from sluice_ledger.fence order by sync",
    "relations": """
        select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname !~ '^pg_(catalog|toast)|information_schema|chaos' and c.relkind in ('r', 'p') order by 1""",
}

_STATE_SIDE = {
    "watermarks": "select shard, value from sluice_state.watermark order by shard",
}

_DEAD_LETTERS = """
    select object_key, shard, error, field, message, attempts, status, raw_artifact, raw_frame, raw_index
    from sluice_state.dead_letter order by object_key nulls first, id"""


@dataclass(frozen=True)
class Place:
    """Where an experiment happens."""

    state: ConnectionInfo
    target: ConnectionInfo
    artifacts: ConnectionInfo


def picture(place: Place, store: S3ArtifactStore) -> Picture:
    """Return what the world can see."""
    shown: Picture = {}
    for info, queries in ((place.target, _TARGET_SIDE), (place.state, _STATE_SIDE)):
        with psycopg.connect(conninfo(info), row_factory=tuple_row) as connection:
            for name, query in queries.items():
                shown[name] = connection.execute(query).fetchall() if _is_there(connection, name) else []
    with psycopg.connect(conninfo(place.state), row_factory=dict_row) as connection:
        shown["dead letters"] = [_letter(store, connection, row) for row in connection.execute(_DEAD_LETTERS)]
    return shown


def without_parts(shown: Picture) -> Picture:
    """Return what of a picture is the same if some shards were published later than others.

    What was rejected is noted by each publication of a run that saw it.
    """
    return {
        **{name: shown[name] for name in ("table", "fences", "watermarks", "dead letters")},
        "objects": [row[:-1] for row in shown["objects"]],
        "object events": [(row[0], *row[2:]) for row in shown["object events"] if row[2] != "rejected"],
    }


def differences(calm: Picture, disturbed: Picture) -> list[str]:
    """Return what sets a picture apart from the one it should be equal to."""
    told: list[str] = []
    for name in calm:
        right, wrong = ([repr(row) for row in shown[name]] for shown in (calm, disturbed))
        told += [f"{name}: missing: {row}" for row in (Counter(right) - Counter(wrong)).elements()]
        told += [f"{name}: too much: {row}" for row in (Counter(wrong) - Counter(right)).elements()]
    return told


def problems(place: Place, store: S3ArtifactStore) -> list[str]:
    """Return all that may not be, whatever happened before."""
    with (
        psycopg.connect(conninfo(place.state), row_factory=dict_row) as state,
        psycopg.connect(conninfo(place.target), row_factory=dict_row) as target,
    ):
        return [
            *_dangling(store, state, target),
            *_unfinished(state),
            *_misdeeds(state),
            *_doubles(target),
            *_orphans(state, target),
        ]


def unreferenced(place: Place, store: S3ArtifactStore) -> set[str]:
    """Return the keys below the experiment's prefix that no pointer names: bytes whose worker died before it named them."""
    answer = store._client.list_objects_v2(Bucket=place.artifacts.extra["bucket"], Prefix=f"{place.artifacts.extra['prefix']}/")
    assert not answer["IsTruncated"]
    stored = {entry["Key"] for entry in answer.get("Contents", [])}
    with psycopg.connect(conninfo(place.state)) as state:
        return stored - {key for (key,) in state.execute("select key from sluice_state.artifact")}


def _is_there(connection: psycopg.Connection[Any], name: str) -> bool:
    if name != "table":
        return True
    row = connection.execute("select to_regclass('public.things') is not null").fetchone()
    return bool(row and row[0])


def _letter(store: S3ArtifactStore, connection: psycopg.Connection[Any], row: dict[str, Any]) -> tuple[Any, ...]:
    """Return a dead letter with the bytes its address leads to, in place of the address."""
    held = connection.execute("select * from sluice_state.artifact where key = %s limit 1", [row["raw_artifact"]]).fetchone()
    assert held is not None, f"no pointer to the bytes of dead letter {row}"
    pages = list(ZstdChunkCodec().pages(store.get(pointer_from_row(held))))
    record = json.loads(pages[row["raw_frame"]])["things"][row["raw_index"]]
    return (*[row[name] for name in ("object_key", "shard", "error", "field", "message", "attempts", "status")], record)


def _dangling(store: S3ArtifactStore, state: psycopg.Connection[Any], target: psycopg.Connection[Any]) -> Iterator[str]:
    named = {pointer_from_row(row) for row in state.execute("select * from sluice_state.artifact")}
    named |= {Pointer.model_validate(row["diff"]) for row in state.execute("select diff from sluice_state.review")}
    publications = target.execute("select run, undo_key, undo_sha256 from sluice_ledger.publication where undo_key is not null")
    wanted = {(pointer.key, pointer.sha256): pointer for pointer in named}
    for row in publications:
        if (row["undo_key"], row["undo_sha256"]) not in wanted:
            yield f"the undo artifact {row['undo_key']} of run {row['run']} has no pointer"
    for pointer in wanted.values():
        try:
            store.get(pointer)
        except SluiceError as error:
            yield f"dangling: {error.message}"


def _unfinished(state: psycopg.Connection[Any]) -> Iterator[str]:
    for row in state.execute("select id, status from sluice_state.run where status in ('pending', 'running')"):
        yield f"run {row['id']} is left {row['status']}"
    final = [str(status) for status in FINAL_RUN_STATUSES]
    query = "select owner from sluice_state.lease l join sluice_state.run r on r.id = l.owner where r.status = any(%s)"
    for row in state.execute(query, [final]):
        yield f"run {row['owner']} is over and keeps its flight"
    query = """select run, s.key from sluice_state.shard s join sluice_state.run r on r.id = s.run
        where r.status = 'succeeded' and s.status not in ('succeeded', 'skipped')"""
    for row in state.execute(query):
        yield f"run {row['run']} has succeeded without its shard {row['key']}"


def _misdeeds(state: psycopg.Connection[Any]) -> Iterator[str]:
    """Hold the journal of each run against the table of transitions."""
    journal: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in state.execute("select * from sluice_state.event order by run, seq"):
        journal[row["run"]].append(row)
    for run, entries in journal.items():
        if [entry["seq"] for entry in entries] != list(range(1, len(entries) + 1)):
            yield f"the journal of run {run} has gaps"
        standing: dict[tuple[str, str], str] = {}
        for entry in entries:
            subject = (entry["subject"], entry["name"])
            if not _is_legal(entry, standing.get(subject)):
                yield f"run {run}: {subject} was {standing.get(subject)} when {entry['event']} made it {entry['status']}"
            standing[subject] = entry["status"]


def _is_legal(entry: dict[str, Any], before: str | None) -> bool:
    event, after = entry["event"], entry["status"]
    match entry["subject"]:
        case "run" if event in set(RunEvent):
            return before is not None and RUN_TRANSITIONS.get((RunStatus(before), RunEvent(event))) == after
        case "shard" if event in set(ShardEvent):
            known = [ShardStatus(before)] if before else list(ShardStatus)  # one that was adopted comes as it is
            return any(SHARD_TRANSITIONS.get((status, ShardEvent(event))) == after for status in known)
        case "review" if event in set(ReviewEvent):
            return before is not None and REVIEW_TRANSITIONS.get((Verdict(before), ReviewEvent(event))) == after
    return True


def _doubles(target: psycopg.Connection[Any]) -> Iterator[str]:
    told: dict[str, list[str]] = defaultdict(list)
    for row in target.execute("select key, outcome from sluice_ledger.object_event order by key, publication, at"):
        told[row["key"]].append(row["outcome"])
    for key, outcomes in told.items():
        lives = [outcome for outcome in outcomes if outcome in ("created", "deleted", "reappeared")]
        if lives != [("deleted" if place % 2 else "reappeared" if place else "created") for place in range(len(lives))]:
            yield f"object {key}: {outcomes}"
    reviews = Counter(row["review"] for row in target.execute("select review from sluice_ledger.publication"))
    yield from (f"review {review} was published {number} times" for review, number in reviews.items() if number > 1)


def _orphans(state: psycopg.Connection[Any], target: psycopg.Connection[Any]) -> Iterator[str]:
    """Rows that belong to something that is not there, where no foreign key can forbid it."""
    runs = {row["id"] for row in state.execute("select id from sluice_state.run")}
    reviews = {row["id"] for row in state.execute("select id from sluice_state.review")}
    naming = "select table_name from information_schema.columns where table_schema = 'sluice_state' and column_name = 'run'"
    for table in [row["table_name"] for row in state.execute(naming)]:
        for row in state.execute(f"select distinct run from sluice_state.{table} where run is not null"):
            if row["run"] not in runs:
                yield f"{table}: there is no run {row['run']}"
    for row in target.execute("select review, run from sluice_ledger.publication"):
        if row["run"] not in runs or row["review"] not in reviews:
            yield f"publication: there is no run {row['run']}, or no review {row['review']}"
    for table in ("object", "object_event"):
        query = f"select key from sluice_ledger.{table} where publication not in (select id from sluice_ledger.publication)"
        yield from (f"{table}: the publication of {row['key']} is not there" for row in target.execute(query))
