"""The pages of objects, letters and publications over real stores: what the supplier sent, and what people made of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluice.model.run import Mode
from sluice.ports import ConnectionInfo
from tests.support.places import Places, open_places
from tests.unit.packet.reading import Reading
from tests.unit.web.visitor import Visitor

DAG = "sluice_places"
KEY = 'a/"é&\u200d' + "k" * 1_900
FIRST = '{"id" : ' + json.dumps(KEY) + ',\t"rooms":9, "rate":1.50 ,"tags":"<b>"}'
BAD = '{"id": "bad", "rooms":"</pre>many"}'


@pytest.fixture
def places(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Places]:
    with open_places(tmp_path, database, artifacts) as places:
        yield places


def links(page: Any, part: str) -> list[str]:
    """Return the addresses that a page leads to, of those with this in them."""
    found = [str(each["href"]) for tag, each in Reading(page.text).elements if tag == "a" and part in str(each.get("href"))]
    return [str(page.url.join(link)) for link in dict.fromkeys(found)]


def test_an_object_from_its_value_to_its_bytes_and_back_again(places: Places) -> None:
    """Each value leads to the publication and the bytes that brought it; an undo, asked for in the pages, is told as well."""
    places.bring(FIRST, BAD, by="ada", comment="<i>first</i>")
    second = FIRST.replace('"rooms":9', '"rooms":4')
    places.bring(second, BAD, mode=Mode.FULL)
    ann = Visitor(places, reads={DAG}, changes={DAG})
    page = ann.get("objects", dag=DAG, key=KEY)
    text = " ".join(Reading(page.text).text.split())
    assert "ada (cli, " in text
    assert "<i>first</i>" in text
    assert "rooms 4" in text
    assert len(links(page, "/publications/")) == 2

    origin = ann.client().get(links(page, "/origin?")[0])
    told = " ".join(Reading(origin.text).text.split())
    assert ("rooms 4 2 policy" in told, "rate 1.5 1 ada" in told) == (True, True)
    assert [ann.client().get(link).text for link in links(origin, "/raw?")] == [FIRST, second]

    (letter,) = links(ann.get("letters", dag=DAG, cause="type:rooms"), "/letters/1")
    assert ann.client().get(links(ann.client().get(letter), "/raw?")[0]).text == BAD

    undo = ann.post("publications/2/undo", {"reason": "a wrong number"}, dag=DAG).json()
    (review,) = places.services.reviews.waiting("places")
    assert undo["next"] == f"dags/{DAG}/runs/{review.run}"
    ann.post(f"reviews/{review.id}", {"choice": "approve", "comment": "a wrong number"}, dag=DAG)
    assert places.sql("select rooms from public.places") == [(9,)]
    after = " ".join(Reading(ann.get("objects", dag=DAG, key=KEY).text).text.split())
    assert "put back, since publication 2 was undone" in after
    assert "changed, and undone by publication 3" in after
    trail = [(entry.by.name, entry.by.via, entry.by.reason) for entry in places.services.audit.of("places", review.run, 9)]
    assert trail == [("Ann", "pages", "a wrong number")] * len(trail)
    assert trail
