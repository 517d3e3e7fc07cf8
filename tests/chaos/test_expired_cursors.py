"""A cursor that expires while a shard is read: through to the target, also where the worker dies between two epochs."""

from collections.abc import Callable

import pytest

from sluice import log_events
from sluice.model.connections import STATE, TARGET
from tests.chaos.lab import Lab
from tests.chaos.shop import Asked
from tests.chaos.story import World, thing
from tests.chaos.worker import Mark

EAST: World = {"east": [thing(number, hour=number) for number in range(1, 12)], "north": [], "west": []}
EXPIRED = 410


def expires_once(at: int) -> Callable[[Asked], int | None]:
    """Return a trouble: the first request behind so many things is refused."""
    told: list[Asked] = []

    def trouble(asked: Asked) -> int | None:
        if asked.offset != at or told:
            return None
        told.append(asked)
        return EXPIRED

    return trouble


@pytest.mark.parametrize("is_killed", [False, True], ids=["undisturbed", "killed between the epochs"])
def test_the_shard_begins_again_and_nothing_is_doubled(lab: Lab, is_killed: bool) -> None:
    """Behind two checkpoints the cursor is gone; the second epoch brings all, and what the first had stored counts no more."""
    with lab.another_story(EAST) as experiment:
        experiment.shop.trouble = expires_once(at=9)
        if is_killed:
            worker = experiment.start(Mark(1, log_events.SHARD_BEGUN_AGAIN))
            worker.held()
            experiment.kill(worker, "killed between two epochs of a shard")
            experiment.go_on()
        else:
            assert experiment.start().end().status == "succeeded"
            experiment.faults.append("a cursor that expires")
        with experiment.counted():
            rows = "select id, count(*) from public.things where _sluice_deleted_at is null group by 1 order by 1"
            assert experiment.sql(TARGET, rows) == [(number, 1) for number in range(1, 12)]
            outcomes = "select outcome, count(*), count(distinct key) from sluice_ledger.object_event group by 1"
            assert experiment.sql(TARGET, outcomes) == [("created", 11, 11)]
            fetched = """select s.pages, s.records, s.exhausted, sum(a.records)
                from sluice_state.run r
                join sluice_state.shard s on s.run = r.id and s.key = 'east'
                join sluice_state.artifact a on a.run = r.id and a.shard = s.key and a.kind = 'raw'
                where r.status = 'succeeded' and a.superseded_at is null
                group by 1, 2, 3"""
            assert experiment.sql(STATE, fetched) == [(4, 11, True, 11)]
            superseded = "select sum(records) from sluice_state.artifact where kind = 'raw' and superseded_at is not null"
            assert experiment.sql(STATE, superseded)[0][0] > 0
            experiment.check_soundness()
