"""The story that experiments tell chapters of: what the supplier holds, and how the sync is run then, come out.

It has all that a sync can meet: new, changed and dropped things, one that moves from shard to shard, one that breaks a rule and
comes right, one that stays broken, one without a key; a full load, an incremental one, and a full one that deletes. Each region
fills several pages, and each run several chunks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from sluice.model.run import Mode, Origin, RunRequest
from tests.chaos.shop import Thing

REGIONS: Final = ("east", "north", "west")

STAGE: Final[dict[str, Any]] = {
    "chunk_bytes": 900,
    "chunk_age": "10m",
    "retry": {"attempts": 2, "base": "0s", "cap": "0s"},
    "task_retries": 0,
    "breaker": {"open_for": "0.01s"},
}
"""Two pages fill a chunk; its age never does. Leases are long: an experiment says itself when one has run out.

A supplier that was in trouble is well again when the next worker comes, so nobody has to wait for its breaker."""

SYNC: Final[dict[str, Any]] = {
    "sync": "things",
    "stage": "chaos",
    "version": 1,
    "source": {
        "kind": "rest",
        "connection": "shop",
        "path": "/things",
        "query": {"region": "{{ shard.region }}", "since": "{{ watermark }}"},
        "records": "things",
        "cursor": {"path": "next", "parameter": "cursor"},
        "watermark": "updated_at",
    },
    "shards": {"kind": "values", "name": "region", "values": list(REGIONS)},
    "object": {"key": ["id"], "version": "updated_at"},
    "fields": [
        {"name": "id", "type": "bigint"},
        {"name": "name", "type": "text", "required": True},
        {"name": "price", "type": "numeric(12,4)"},
        {"name": "rank", "type": "integer"},
        {"name": "extra", "type": "json"},
        {"name": "updated_at", "type": "timestamptz", "required": True},
    ],
    "review": {
        "first_load": "auto-approve",
        "auto_approve": {"created": "100%", "changed": "100%", "deleted": "50%", "rejected": "50%"},
        "block": {"deleted": "90%"},
    },
    "target": {"connection": "sluice_target", "table": "public.things", "deletes": "soft"},
}


def write_project(include: Path, *, sync: Mapping[str, Any] | None = None, stage: Mapping[str, Any] | None = None) -> Path:
    """Write the sync and its stage, with these changes; return the folder."""
    spec = {**SYNC, **(sync or {})}
    (include / "syncs").mkdir(parents=True, exist_ok=True)
    (include / "syncs" / f"{spec['sync']}.yaml").write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    stages = {"stages": {"chaos": {**STAGE, **(stage or {})}}}
    (include / "stages.yaml").write_text(yaml.safe_dump(stages, sort_keys=False), encoding="utf-8")
    return include


World = dict[str, list[Thing]]


@dataclass(frozen=True)
class Chapter:
    """One run of the sync: what the supplier holds when it begins, and what is asked for."""

    name: str
    mode: Mode
    world: World

    @property
    def request(self) -> RunRequest:
        """What is asked for, by whoever executes runs without Airflow."""
        return RunRequest(sync="things", mode=self.mode, origin=Origin())


def thing(number: int, hour: int = 0, **changes: object) -> Thing:
    """Return a thing as the supplier has it since some hour."""
    facts: Thing = {
        "id": number,
        "name": f"thing {number} — ü\t\"'",
        "price": f"{number}.1250",
        "rank": None if number % 4 == 0 else number % 7,
        "extra": {"big": 2**60 + number, "note": "x" * 120},
        "updated_at": f"2026-01-{1 + hour // 24:02}T{hour % 24:02}:{number % 60:02}:00Z",
    }
    return {**facts, **changes}


def _first() -> World:
    world = {region: [thing(100 * place + n) for n in range(1, 12)] for place, region in enumerate(REGIONS, 1)}
    world["east"][4]["rank"] = "many"  # comes right in the second chapter
    world["north"][2]["rank"] = 2**40  # never does
    del world["west"][6]["id"]
    return world


def _second() -> World:
    world = _first()
    for place, region in enumerate(REGIONS, 1):
        for index in (0, 3, 7):
            world[region][index] = thing(100 * place + index + 1, hour=30, name=f"renamed {index}")
        world[region] += [thing(100 * place + n, hour=31) for n in (20, 21, 22, 23)]
    world["east"][4] = thing(105, hour=32)
    world["west"][1] = thing(302, hour=32, price="not a price")
    return world


def _third() -> World:
    world = _second()
    for region in REGIONS:
        del world[region][8:10]
    moved = world["north"].pop(0)
    world["east"].append({**moved, "updated_at": "2026-01-04T00:00:00Z", "name": "moved"})
    world["west"][3]["name"] = "changed without a new version"
    return world


def chapters() -> list[Chapter]:
    """Return the story."""
    return [
        Chapter("first load", Mode.FULL, _first()),
        Chapter("what changed", Mode.INCREMENTAL, _second()),
        Chapter("what is gone", Mode.FULL, _third()),
    ]
