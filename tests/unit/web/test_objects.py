"""The page of an object: what became of it, under whatever key; and what is said where there is nothing."""

import pytest

from sluice.flow.inline import run_inline
from sluice.model.base import ObjectKey, RunId
from sluice.model.run import Mode, Origin, RunRequest
from tests.support.nouns import a_reject
from tests.unit.fakes.source import RegionalSource
from tests.unit.flow.workshop import MAY, Workshop, page, sync_spec
from tests.unit.packet.reading import Reading
from tests.unit.web.visitor import DAG, Visitor

TRUSTING = {"first_load": "auto-approve", "auto_approve": {"created": "100%"}}
ODD = ('a/b?c=d&e="<i>"', "\u200d\u202e", "né" + "k" * 1_990)


def published(*keys: str) -> Workshop:
    """A workshop whose table holds objects of these keys."""
    workshop = Workshop(spec=sync_spec(review=TRUSTING))
    workshop.equip()
    hotels = page(1, *((key, MAY) for key in keys), is_last=True)
    workshop.supplier = RegionalSource(north=[hotels], south=[page(1, is_last=True)])
    run_inline(workshop.services, RunRequest(sync="hotels", mode=Mode.FULL, origin=Origin()))
    return workshop


@pytest.mark.parametrize("key", ODD)
def test_an_object_is_found_by_whatever_it_is_called(key: str) -> None:
    """Its state, its values and the publication stand there, and nothing of its key acts."""
    shown = Visitor(published(key)).get("objects", key=key)
    reading = Reading(shown.text)
    assert (shown.status_code, reading.unclosed) == (200, [])
    assert {tag for tag, _ in reading.elements}.isdisjoint({"b", "img"})
    assert "updated_at" in reading.text
    assert f'href="../../dags/{DAG}/publications/1"' in shown.text


def test_an_object_that_nobody_knows_leads_to_those_around_it() -> None:
    """And one that was never taken in to its dead letter."""
    workshop = published("a", "c")
    ann = Visitor(workshop)
    unknown = ann.get("objects", key="b")
    assert unknown.status_code == 404
    assert "objects?key=a" in unknown.text
    assert "objects?key=c" in unknown.text
    run = workshop.memory.runs[RunId(next(iter(workshop.memory.runs)))]
    letter = workshop.services.dead_letters
    shard = next(iter(workshop.memory.shards.values()))
    letter.record(run, shard, [a_reject("b")], "rejects-0")
    told = ann.get("objects", key="b")
    assert told.status_code == 200
    assert "stars: 7 is above 5" in told.text
    assert f"dags/{DAG}/letters/1" in told.text


def test_what_was_undone_or_changed_by_others_is_told() -> None:
    """The table is compared with what was published."""
    workshop = published("a")
    assert workshop.target is not None
    workshop.target.altered.add(ObjectKey("a"))
    assert "others have changed its row" in Visitor(workshop).get("objects", key="a").text


def test_a_dag_that_is_none_of_ours_shows_no_sync() -> None:
    """Also where it is called as a sync is: permission for it is none for that."""
    workshop = published("a")
    ann = Visitor(workshop, reads={DAG, "hotels"})
    assert ann.get("objects", dag="hotels", key="a").status_code == 404
    assert ann.get("publications", dag="hotels").status_code == 404
    assert ann.get("letters", dag="hotels").status_code == 404
