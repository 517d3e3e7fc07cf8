"""What follows a run in a browser: each event once, from where it left off, and how the run stands."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi import HTTPException

from sluice.errors import StateUnavailable
from sluice.flow.fetcher import fetch
from sluice.model.lifecycle import RunEvent
from sluice.ports import Services
from sluice.web.live import Live
from tests.unit.flow.workshop import NORTH, RUN, SOUTH, Workshop, page, planned
from tests.unit.web.visitor import Visitor


def live(workshop: Workshop, life: float = 0.0) -> Live:
    """Return streams that look without a pause, and end with their first look unless the run is at rest."""

    @contextmanager
    def services() -> Iterator[Services]:
        yield workshop.services

    return Live(services, apart=0, life=life)


def heard(streams: Live, after: int = 0) -> list[dict[str, Any]]:
    """Return the messages of one stream, with their fields."""

    async def listen() -> str:
        return "".join([message async for message in streams.messages(RUN, after)])

    messages = [
        dict(line.split(": ", 1) for line in block.splitlines()) for block in asyncio.run(listen()).split("\n\n") if block
    ]
    return [{**message, "data": json.loads(message["data"])} if "data" in message else message for message in messages]


def numbers(messages: list[dict[str, Any]]) -> list[int]:
    """Return the ids of the events, which those that may be lost have none of."""
    return [int(message["id"]) for message in messages if "id" in message]


def ended() -> Workshop:
    """A run that is over, with a shard that failed."""
    workshop = planned()
    workshop.lose(NORTH)
    services = workshop.services
    services.runs.end(services.runs.get(RUN), RunEvent.FAIL)
    return workshop


def test_a_run_that_is_over_is_told_of_to_its_end() -> None:
    """All events, how it stands, and that nothing follows: the browser does not come back."""
    workshop = ended()
    messages = heard(live(workshop, life=60))
    journal = workshop.services.events.after(RUN, 0, 99)
    assert numbers(messages) == [event.seq for event in journal]
    events = [message["data"] for message in messages if "id" in message]
    assert [(event["subject"], event["name"], event["event"]) for event in events][-1] == ("run", RUN, "fail")
    assert messages[-1] == {"event": "rest", "data": {}}
    (standing,) = [message["data"] for message in messages if message.get("event") == "standing"]
    assert (standing["status"], standing["shards"]) == ("failed", {"pending": 1, "failed": 1})


@pytest.mark.parametrize("seen", range(7))
def test_who_comes_back_gets_what_he_has_not_seen(seen: int) -> None:
    """Whatever number the connection broke behind: nothing is lost, nothing comes twice."""
    workshop = ended()
    last = workshop.services.events.newest(RUN, 1)[0].seq
    assert numbers(heard(live(workshop, life=60), after=seen)) == list(range(seen + 1, last + 1))


def test_a_stream_of_a_run_at_work_ends_so_that_the_browser_comes_back() -> None:
    """It does not say that the run is at rest; what happens until the browser is back comes then."""
    workshop = planned()
    streams = live(workshop)
    first = heard(streams)
    assert first[0] == {"retry": "1000"}
    assert "rest" not in {message.get("event") for message in first}
    workshop.supply(page(1, ("a", "2024-05-01T00:00:00Z"), is_last=True))
    fetch(workshop.services, RUN, SOUTH)
    second = heard(streams, after=numbers(first)[-1])
    assert numbers(first + second) == list(range(1, workshop.services.events.newest(RUN, 1)[0].seq + 1))


def test_state_that_cannot_be_reached_lets_the_browser_come_back_later() -> None:
    """There is no error in the middle of an answer."""

    @contextmanager
    def services() -> Iterator[Services]:
        raise StateUnavailable
        yield

    assert heard(Live(services, apart=0, life=0)) == [{"retry": "10000"}]


def test_too_many_streams_are_refused() -> None:
    """One that has ended makes room. They have their services in common, from the first to the last."""
    workshop, doors = planned(), []

    @contextmanager
    def services() -> Iterator[Services]:
        doors.append("opened")
        yield workshop.services
        doors.append("closed")

    streams = Live(services, apart=0, life=0)

    async def crowd() -> int:
        opened = [streams.messages(RUN, 0) for _ in range(32)]
        for stream in opened:
            await anext(stream)
        with pytest.raises(HTTPException) as refused:
            streams.answer(RUN, 0)
        await opened[0].aclose()  # type: ignore[attr-defined]  # a generator, whatever it is declared as
        streams.answer(RUN, 0)
        assert doors == ["opened"]
        for stream in opened[1:]:
            await stream.aclose()  # type: ignore[attr-defined]
        assert doors == ["opened", "closed"]
        return refused.value.status_code

    assert asyncio.run(crowd()) == 503


def test_a_browser_says_where_it_left_off() -> None:
    """The page says it in the address; a browser that comes back says it in a header, which is newer."""
    visitor = Visitor(ended())
    path = f"runs/{RUN}/events"
    answer = visitor.get(path, after=2)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "\nid: 3\n" in answer.text
    again = visitor.client().get(f"/dags/sluice_hotels/{path}?after=2", headers={"Last-Event-ID": "4"})
    assert "\nid: 4\n" not in again.text
    assert "\nid: 5\n" in again.text
    assert visitor.client().get(f"/dags/sluice_hotels/{path}", headers={"Last-Event-ID": "x"}).status_code == 422
