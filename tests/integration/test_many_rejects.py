"""So many bad objects that no person reads them one by one: a sample has letters, all of them are counted, and none is lost."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sluice.adapters.postgres import Database
from sluice.adapters.state import PostgresDeadLetterStore
from sluice.errors import StateUnavailable
from sluice.flow.inline import run_inline
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Mode, Origin, Redrive, Run, RunRequest
from sluice.ports import ConnectionInfo
from sluice.upkeep.collection import collect
from tests.support.places import SPEC, Places, open_places
from tests.support.scripted_supplier import answer

MANY, MOST = 3_000, 50
REVIEW = {**SPEC["review"], "auto_approve": {**SPEC["review"]["auto_approve"], "created": MANY}}
INCREMENTAL: dict[str, Any] = {
    "source": {**SPEC["source"], "watermark": "opened", "query": {"since": "{{ watermark }}"}},
    "review": REVIEW,
}


@pytest.fixture
def places(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Places]:
    with open_places(tmp_path, database, artifacts, INCREMENTAL) as places:
        state = Database(database, StateUnavailable)
        places.services = replace(places.services, dead_letters=PostgresDeadLetterStore(state, MOST))
        yield places
        state.close()


def records(numbers: range, rooms: str) -> list[str]:
    """Places with so many rooms; how many they really have stands elsewhere."""
    return [f'{{"id": "{number:06d}", "rooms": {rooms}, "beds": 1}}' for number in numbers]


def counted(places: Places) -> tuple[int, int]:
    """How many objects are open, and how many of them have a letter."""
    groups = places.services.letter_desk.groups("places")
    return sum(group.objects for group in groups), sum(group.letters for group in groups)


def redriven(places: Places) -> Run:
    """Take all of them up again."""
    request = RunRequest(sync="places", mode=Mode.REDRIVE, redrives=Redrive(), origin=Origin())
    return run_inline(places.services, request)


def test_figures_a_sample_and_artifacts(places: Places) -> None:
    """The counts follow what comes right and what comes bad again, exactly; and all of it can be redriven."""
    request = RunRequest(sync="places", mode=Mode.FULL, origin=Origin())
    places.supplier.answers.append(page := page_of(range(MANY)))
    assert run_inline(places.services, request).status is RunStatus.WAITING
    assert counted(places) == (MANY, MOST)
    places.supplier.answers.append(page)
    run_inline(places.services, request.model_copy(update={"force": True}))
    assert counted(places) == (MANY, MOST)
    places.sql("update sluice_state.artifact set expires_at = now() - interval '1 day' where kind in ('raw', 'rejects')")
    collect(places.services, dry_run=False)

    right = range(MOST - 10, MANY // 2)
    places.bring(*records(right, "1"), mode=Mode.INCREMENTAL)
    assert counted(places) == (MANY - len(right), MOST - 10)

    assert redriven(places).status is RunStatus.SUCCEEDED
    assert counted(places) == (MANY - len(right), MOST)

    fields = [{**field, "path": "beds"} if field["name"] == "rooms" else field for field in SPEC["fields"]]
    places.declare(**INCREMENTAL, fields=fields, version=2)
    assert redriven(places).status is RunStatus.SUCCEEDED
    assert counted(places) == (0, 0)
    assert places.sql("select count(*) from places") == [(MANY,)]
    assert places.sql("select count(*) from sluice_state.dead_letter_lines") == [(0,)]


def page_of(numbers: range) -> bytes:
    """A page of bad places, as the supplier sends it."""
    body = ", ".join(records(numbers, '"many"'))
    return answer(f'{{"places": [{body}], "next": null}}'.encode())
