"""The demo supplier serves the real hotels page by page, and misbehaves exactly as told."""

import json
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.support.servers import PROJECT, Supplier

HTTP = urllib3.PoolManager(retries=False, timeout=10)
DATA = PROJECT / "include" / "demo" / "data"


def get(supplier: Supplier, target: str) -> urllib3.BaseHTTPResponse:
    return HTTP.request("GET", supplier.url + target)


def read_all(supplier: Supplier, query: str = "region=tokyo", limit: int = 100) -> list[dict[str, Any]]:
    hotels: list[dict[str, Any]] = []
    cursor = ""
    while cursor is not None:
        page = get(supplier, f"/hotels?{query}&limit={limit}" + (f"&cursor={cursor}" if cursor else "")).json()
        hotels += page["hotels"]
        cursor = page["next_cursor"]
    return hotels


@pytest.mark.parametrize(("region", "count"), [("tokyo", 377), ("brittany", 111)])
def test_every_hotel_comes_once(supplier: Supplier, region: str, count: int) -> None:
    """Paging through a region yields every hotel of its file once, whatever the page size."""
    ids = [hotel["id"] for hotel in read_all(supplier, f"region={region}", limit=40)]
    assert len(ids) == len(set(ids)) == count
    assert ids == [hotel["id"] for hotel in read_all(supplier, f"region={region}", limit=1000)]


def test_positions_keep_their_digits(supplier: Supplier) -> None:
    """A position is served with the digits it has in the file, not as a float made of them."""
    body = get(supplier, "/hotels?region=tokyo&limit=1000").data.decode()
    features = json.loads((DATA / "hotels-tokyo.geojson").read_text(), parse_float=str)["features"]
    for feature in features:
        longitude, latitude = feature["geometry"]["coordinates"]
        assert f'"location":{{"lat":{latitude},"lon":{longitude}}}' in body


def test_a_change_hits_its_share_and_is_newer_than_all_before(supplier: Supplier) -> None:
    """Changing 10% of Tokyo alters 38 of 377 hotels, and updated_since then yields those alone."""
    before = {hotel["id"]: hotel for hotel in read_all(supplier)}
    changed = supplier.control(change={"percent": 10, "region": "tokyo"})["changed"]
    newest = max(hotel["updated_at"] for hotel in before.values())
    after = {hotel["id"]: hotel for hotel in read_all(supplier)}
    assert len(changed) == 38
    assert sorted(key for key in before if before[key] != after[key]) == changed
    assert all(after[key]["updated_at"] > newest and after[key]["rooms"] != before[key]["rooms"] for key in changed)
    first = min(after[key]["updated_at"] for key in changed)
    assert sorted(hotel["id"] for hotel in read_all(supplier, f"region=tokyo&updated_since={first}")) == changed


def test_the_same_acts_lead_to_the_same_hotels(supplier: Supplier) -> None:
    """After a reset, the same changes and removals hit the same hotels in the same way."""
    outcomes = []
    for _ in range(2):
        supplier.reset()
        supplier.control(change=5, drop=2)
        outcomes.append(read_all(supplier, "", limit=1000))
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0]) == 478


def test_some_hotels_are_spoilt_until_told_otherwise(supplier: Supplier) -> None:
    """Always the same ones, in their rooms alone, and as long as that is asked for."""
    sound = {hotel["id"]: hotel for hotel in read_all(supplier, "", limit=1000)}
    supplier.control(spoil=2)
    spoilt = {hotel["id"]: hotel for hotel in read_all(supplier, "", limit=1000) if hotel["rooms"] == "many"}
    assert 0 < len(spoilt) < 25
    assert {key: {**hotel, "rooms": sound[key]["rooms"]} for key, hotel in spoilt.items()} == {
        key: sound[key] for key in spoilt
    }
    supplier.control(spoil=0)
    assert read_all(supplier, "", limit=1000) == list(sound.values())


def test_a_failure_is_counted_and_kept_to_its_region(supplier: Supplier) -> None:
    """Two requests for Tokyo behind the first get 429 with Retry-After, those for Brittany none."""
    supplier.control(fail={"status": 429, "region": "tokyo", "after": 1, "times": 2, "retry_after": 3})
    tokyo = [get(supplier, "/hotels?region=tokyo&limit=1") for _ in range(4)]
    assert [answer.status for answer in tokyo] == [200, 429, 429, 200]
    assert tokyo[1].headers["Retry-After"] == "3"
    supplier.control(fail=503)
    assert get(supplier, "/hotels?region=brittany").status == 503


@pytest.mark.parametrize(
    ("kind", "sign"),
    [
        ("html", b"<!doctype html>"),
        ("truncated", b'{"hotels":['),
        ("empty", b'{"hotels":[],"next_cursor":null,"total":0}'),
        ("error-body", b'{"error"'),
    ],
)
def test_garbage_looks_as_asked(supplier: Supplier, kind: str, sign: bytes) -> None:
    """Each kind of garbage comes under status 200."""
    supplier.control(garbage=kind)
    answer = get(supplier, "/hotels?region=tokyo&limit=3")
    assert answer.status == 200
    assert answer.data.startswith(sign)
    assert kind != "truncated" or not answer.data.endswith(b"}")


def test_a_stuck_cursor_stands_still(supplier: Supplier) -> None:
    """Following a stuck cursor leads to the same cursor again."""
    supplier.control(garbage="stuck-cursor")
    first = get(supplier, "/hotels?region=tokyo&limit=3").json()["next_cursor"]
    assert get(supplier, f"/hotels?region=tokyo&limit=3&cursor={first}").json()["next_cursor"] == first


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("/hotels?region=oslo", "brittany"),
        ("/hotels?limit=0", "limit"),
        ("/hotels?cursor=%21", "cursor"),
        ("/hotels?cursor=bnVsbA", "cursor"),
    ],
)
def test_requests_that_make_no_sense_are_refused_by_name(supplier: Supplier, target: str, word: str) -> None:
    """A wrong parameter is answered with 400 and its name."""
    answer = get(supplier, target)
    assert answer.status == 400
    assert word in answer.json()["error"]


def test_orders_are_taken_all_or_none(supplier: Supplier) -> None:
    """An order with a mistake in it changes nothing and names the mistake."""
    before = get(supplier, "/_control").json()
    answer = HTTP.request("POST", f"{supplier.url}/_control", json={"change": 50, "drop": {"percent": 1, "region": "oslo"}})
    assert answer.status == 400
    assert "drop.Share.region" in answer.json()["error"]
    assert get(supplier, "/_control").json() == before


def test_it_remembers_what_it_was_asked(supplier: Supplier) -> None:
    """The targets of requests are kept in order, and forgotten by a reset."""
    get(supplier, "/hotels?region=tokyo&limit=1")
    get(supplier, "/hotels?region=brittany&limit=1")
    assert supplier.requests() == ["/hotels?region=tokyo&limit=1", "/hotels?region=brittany&limit=1"]
    supplier.reset()
    assert supplier.requests() == []


def test_copies_make_a_large_feed(supplier: Supplier) -> None:
    """With copies, every hotel comes so many times, under ids of its own."""
    supplier.control(copies=20)
    ids = [hotel["id"] for hotel in read_all(supplier, "region=brittany", limit=1000)]
    assert len(set(ids)) == len(ids) == 111 * 20


def test_changes_survive_a_restart(tmp_path: Path) -> None:
    """A supplier with a state file comes back with the hotels as they were."""
    bodies = []
    for change in (7, 0):
        supplier = Supplier(tmp_path, state=tmp_path / "state.json")
        supplier.control(change=change)
        bodies.append(get(supplier, "/hotels?region=tokyo&limit=1000").data)
        supplier.stop()
    assert bodies[0] == bodies[1]
