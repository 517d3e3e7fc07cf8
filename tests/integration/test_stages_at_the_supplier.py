"""Two stages ask the same supplier, and what their policies say makes the difference."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from sluice.errors import AnswerTooLarge, SluiceError, SupplierResting, SupplierUnavailable
from sluice.model.stage import BreakerPolicy, RetryPolicy, StagePolicy, Timeouts
from sluice.ports import ConnectionInfo, PageRequest
from tests.support.restraints import lone_source
from tests.support.scripted_supplier import ScriptedSupplier, answer, scripted
from tests.unit.flow.workshop import sync_spec

SOURCE = sync_spec().source
PAGE = answer({"hotels": [1, 2, 3], "next": None})
DOWN = answer({}, "503 Service Unavailable")
HASTE, PATIENCE = timedelta(milliseconds=50), timedelta(seconds=60)


def stage(**policy: Any) -> StagePolicy:
    """A stage that tries once, unless it says otherwise."""
    return StagePolicy(**({"retry": RetryPolicy(attempts=1)} | policy))


def ask(info: ConnectionInfo, policy: StagePolicy) -> int:
    """Return how many records a stage gets."""
    request = PageRequest(shard={"region": "north"}, cursor=None, watermark=None, window_start=None, window_end=None)
    return sum(page.records for page in lone_source(SOURCE, info, policy).pages(request))


def outcome(server: ScriptedSupplier, policy: StagePolicy) -> tuple[type[SluiceError] | None, int]:
    """Return how it ends for a stage, and after how many requests."""
    before = len(server.asked)
    try:
        ask(server.connection(), policy)
    except SluiceError as error:
        return type(error), len(server.asked) - before
    return None, len(server.asked) - before


class FullHouse:
    """A supplier whose queue of connections is full: whoever asks for another hears nothing until there is room."""

    def __init__(self) -> None:
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.guests = [socket.socket() for _ in range(2)]
        for guest in self.guests:
            guest.setblocking(False)
            guest.connect_ex(self.listener.getsockname())

    @property
    def connection(self) -> ConnectionInfo:
        """The Airflow connection to it."""
        return ConnectionInfo("shop", "http", *self.listener.getsockname(), None, None, "http", {})

    def make_room(self) -> None:
        """Let those who came first go."""
        for guest in self.guests:
            guest.close()

    def serve_one(self) -> None:
        """Take connections until somebody asks for something, and answer it."""
        while True:
            guest, _ = self.listener.accept()
            with guest:
                if guest.recv(4096):
                    guest.sendall(PAGE)
                    return


@pytest.fixture
def full_house() -> Iterator[FullHouse]:
    """A supplier without room."""
    house = FullHouse()
    yield house
    house.make_room()
    house.listener.close()


def test_attempts() -> None:
    """`retry.attempts`: where one gives up, the other gets its page."""
    retries = [RetryPolicy(attempts=attempts, base=timedelta(0), cap=timedelta(0)) for attempts in (2, 3)]
    with scripted(DOWN, DOWN, DOWN, DOWN, PAGE) as server:
        ended = [outcome(server, stage(retry=retry)) for retry in retries]
    assert ended == [(SupplierUnavailable, 2), (None, 3)]


def test_time_to_connect(full_house: FullHouse) -> None:
    """`timeouts.connect`: one has given up when the supplier takes connections at last; the other has not."""
    with ThreadPoolExecutor(1) as threads:
        patient = threads.submit(ask, full_house.connection, stage(timeouts=Timeouts(connect=PATIENCE)))
        with pytest.raises(SupplierUnavailable, match=r"no connection within 0\.05 s"):
            ask(full_house.connection, stage(timeouts=Timeouts(connect=HASTE)))
        full_house.make_room()
        full_house.serve_one()
        assert patient.result(60) == 3


def test_time_between_two_bytes() -> None:
    """`timeouts.read`: one has given up when the supplier speaks at last, the other has not."""
    speak = threading.Event()

    class Slow(list[bytes]):
        def pop(self, place: Any = -1) -> bytes:
            speak.wait(60)
            return super().pop(place)

    with scripted() as server, ThreadPoolExecutor(1) as threads:
        server.answers = Slow([PAGE, PAGE])
        patient = threads.submit(ask, server.connection(), stage(timeouts=Timeouts(read=PATIENCE)))
        with pytest.raises(SupplierUnavailable, match=r"nothing was received for 0\.05 s"):
            ask(server.connection(), stage(timeouts=Timeouts(read=HASTE)))
        speak.set()
        assert patient.result(60) == 3


def test_largest_answer() -> None:
    """`max_body`: the same answer is too large for one, and taken in by the other."""
    with scripted(PAGE, PAGE) as server:
        assert [outcome(server, stage(max_body=size))[0] for size in (10, 1000)] == [AnswerTooLarge, None]


def test_when_to_leave_a_supplier_alone() -> None:
    """`breaker`: where four failures of five tries are too many for one, the other goes on and gets its page."""
    retry = RetryPolicy(attempts=8, base=timedelta(0), cap=timedelta(0))
    busy = answer({}, "429 Too Many Requests", Retry_After="0")
    ended = []
    for share in ("50%", "100%"):
        policy = stage(retry=retry, breaker=BreakerPolicy.model_validate({"failure_rate": share}))
        with scripted(busy, *[DOWN] * 6, PAGE) as server:
            ended.append(outcome(server, policy))
    assert ended == [(SupplierResting, 5), (None, 8)]
