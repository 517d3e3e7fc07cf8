"""The demo supplier: a small HTTP API over real hotels, which can be told to fail, lag, talk garbage, change and lose data."""

import argparse
import asyncio
import gzip
import json
import zlib
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import uvicorn
from catalogue import Act, BadRequest, Catalogue, encode_cursor
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

LARGEST_PAGE = 10_000
HUGE = 128  # MiB
EXAMPLES = """\
hotels:
  curl 'http://127.0.0.1:8090/hotels?region=tokyo&limit=2'
  curl 'http://127.0.0.1:8090/hotels?region=tokyo&limit=2&cursor=…'             what follows, until next_cursor is null
  curl 'http://127.0.0.1:8090/hotels?updated_since=2026-02-01T00:00:00Z'        what changed since then, inclusive
  curl 'http://127.0.0.1:8090/hotels?updated_before=2026-01-02T00:00:00Z'       what changed before then, exclusive

what it shall do from now on (GET shows it):
  curl 127.0.0.1:8090/_control -d '{"change": 1}'                               change 1% of the hotels
  curl 127.0.0.1:8090/_control -d '{"drop": {"percent": 5, "region": "tokyo"}}' remove 5% of those of Tokyo
  curl 127.0.0.1:8090/_control -d '{"fail": 500}'                               answer 500 from now on
  curl 127.0.0.1:8090/_control -d '{"fail": {"status": 429, "times": 2, "retry_after": 3}}'
  curl 127.0.0.1:8090/_control -d '{"fail": {"status": 503, "region": "tokyo", "after": 4}}'
  curl 127.0.0.1:8090/_control -d '{"garbage": "html"}'    or truncated, stuck-cursor, empty, huge, bomb, error-body
  curl 127.0.0.1:8090/_control -d '{"delay": 2.5}'                              wait before each answer; told anew, go on
  curl 127.0.0.1:8090/_control -d '{"spoil": 2}'                               send 2% of the hotels with "many" rooms
  curl 127.0.0.1:8090/_control -d '{"copies": 100}'                             serve every hotel a hundred times
  curl 127.0.0.1:8090/_control -d '{"fail": null, "garbage": null, "delay": 0}' be well again
  curl 127.0.0.1:8090/_control -d '{"reset": true}'                             be well, with the hotels as at first
  curl 127.0.0.1:8090/_requests                                                 what was asked for since the last reset
"""

Region = Literal["tokyo", "brittany"]
GarbageKind = Literal["html", "truncated", "stuck-cursor", "empty", "huge", "bomb", "error-body"]


class Strict(BaseModel):
    """What a control request may say; anything else is refused by name."""

    model_config = ConfigDict(extra="forbid")


class Trouble(Strict):
    """Which requests get a bad answer: `times` of them (all, without), once `after` good ones have gone by."""

    region: Region | None = None
    after: int = Field(default=0, ge=0)
    times: int | None = Field(default=None, ge=1)

    def strikes(self, region: str | None) -> bool:
        """Whether it hits a request for that region; counts it."""
        if self.region not in (None, region):
            return False
        if self.after:
            self.after -= 1
            return False
        if self.times is not None:
            self.times -= 1
            return self.times >= 0
        return True


class Failure(Trouble):
    """An error status."""

    status: Literal[400, 401, 403, 404, 429, 500, 502, 503, 504]
    retry_after: float | None = Field(default=None, ge=0)


class Garbage(Trouble):
    """An answer under status 200 that is of no use."""

    kind: GarbageKind


class Share(Strict):
    """Some of the hotels."""

    percent: float = Field(ge=0, le=100)
    region: Region | None = None


class Control(Strict):
    """The body of a POST to /_control."""

    reset: bool = False
    copies: int | None = Field(default=None, ge=1, le=100_000)
    delay: float | None = Field(default=None, ge=0, le=600)
    fail: Failure | int | None = None
    garbage: Garbage | GarbageKind | None = None
    change: Share | float | None = None
    drop: Share | float | None = None
    spoil: float | None = Field(default=None, ge=0, le=100)


class Supplier:
    """The API and what it has been told."""

    def __init__(self, catalogue: Catalogue, state: Path | None) -> None:
        self._catalogue = catalogue
        self._state = state
        self._delay = 0.0
        self._is_delay_over = asyncio.Event()
        self._spoilt = 0.0
        self._failure: Failure | None = None
        self._garbage: Garbage | None = None
        self._requests: deque[str] = deque(maxlen=100_000)
        if state is not None and state.exists():
            kept = json.loads(state.read_text())
            catalogue.restore(kept["copies"], [Act(**act) for act in kept["acts"]])

    def application(self) -> Starlette:
        """Return the ASGI application."""
        routes = [
            Route("/hotels", self.hotels),
            Route("/_control", self.show),
            Route("/_control", self.control, methods=["POST"]),
            Route("/_requests", self.requests),
        ]
        return Starlette(routes=routes, exception_handlers={BadRequest: refuse})

    async def hotels(self, request: Request) -> Response:
        """Answer with one page, unless told otherwise."""
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        self._requests.append(target)
        query = request.query_params
        region, cursor = query.get("region") or None, query.get("cursor") or None
        if self._delay:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_delay_over.wait(), self._delay)
        if self._failure and self._failure.strikes(region):
            pause = self._failure.retry_after
            headers = {} if pause is None else {"Retry-After": f"{pause:g}"}
            return JSONResponse({"error": "told to fail"}, self._failure.status, headers)
        hotels, following, total = self._catalogue.page(
            region, (query.get("updated_since"), query.get("updated_before")), cursor, limit(query.get("limit"))
        )
        hotels = [spoilt(hotel) if is_among(hotel, self._spoilt) else hotel for hotel in hotels] if self._spoilt else hotels
        if self._garbage and self._garbage.strikes(region):
            return garbled(self._garbage.kind, hotels, cursor, total)
        return page(hotels, following, total)

    async def control(self, request: Request) -> Response:
        """Take orders, all or none; answer with what holds now and the ids that were hit."""
        try:
            orders = Control.model_validate_json(await request.body())
            failure = Failure(status=orders.fail) if isinstance(orders.fail, int) else orders.fail
        except ValidationError as error:
            problems = [f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()]
            raise BadRequest("; ".join(problems)) from error
        if orders.reset:
            self._catalogue.restore(1, [])
            self._delay, self._spoilt, self._failure, self._garbage = 0.0, 0.0, None, None
            self._requests.clear()
        if orders.copies is not None:
            self._catalogue.restore(orders.copies, self._catalogue.acts)
        if "delay" in orders.model_fields_set:
            self._delay = orders.delay or 0.0
            self._is_delay_over.set()
            self._is_delay_over = asyncio.Event()
        if "spoil" in orders.model_fields_set:
            self._spoilt = orders.spoil or 0.0
        if "fail" in orders.model_fields_set:
            self._failure = failure
        if "garbage" in orders.model_fields_set:
            self._garbage = Garbage(kind=orders.garbage) if isinstance(orders.garbage, str) else orders.garbage
        hit = {"changed": self._perform("change", orders.change), "dropped": self._perform("drop", orders.drop)}
        self._keep()
        return JSONResponse({**self._settings(), **hit})

    async def show(self, _: Request) -> Response:
        """Answer with what holds now."""
        return JSONResponse(self._settings())

    async def requests(self, _: Request) -> Response:
        """Answer with the targets of the requests for hotels, oldest first."""
        return JSONResponse({"requests": list(self._requests)})

    def _perform(self, kind: str, share: Share | float | None) -> list[str]:
        if share is None:
            return []
        chosen = share if isinstance(share, Share) else Share(percent=share)
        return self._catalogue.perform(Act(kind, chosen.percent, chosen.region))

    def _settings(self) -> dict[str, Any]:
        return {
            "hotels": self._catalogue.size(),
            "copies": self._catalogue.copies,
            "acts": [asdict(act) for act in self._catalogue.acts],
            "delay": self._delay,
            "spoil": self._spoilt,
            "fail": self._failure.model_dump() if self._failure else None,
            "garbage": self._garbage.model_dump() if self._garbage else None,
        }

    def _keep(self) -> None:
        """Write down what has happened to the hotels; being ill is over with a restart."""
        if self._state is not None:
            fresh = self._state.with_name(self._state.name + ".new")
            fresh.write_text(
                json.dumps({"copies": self._catalogue.copies, "acts": [asdict(act) for act in self._catalogue.acts]})
            )
            fresh.replace(self._state)


def page(hotels: list[str], following: str | None, total: int) -> Response:
    """Return one page."""
    body = f'{{"hotels":[{",".join(hotels)}],"next_cursor":{json.dumps(following)},"total":{total}}}'
    return Response(body, media_type="application/json")


def is_among(hotel: str, percent: float) -> bool:
    """Whether a hotel is among so many percent, which are always the same ones."""
    return zlib.crc32(json.loads(hotel)["id"].encode()) % 10_000 < percent * 100


def spoilt(hotel: str) -> str:
    """Return the hotel with a number of rooms that is none."""
    return json.dumps({**json.loads(hotel), "rooms": "many"}, ensure_ascii=False)


def garbled(kind: GarbageKind, hotels: list[str], cursor: str | None, total: int) -> Response:
    """Return something under status 200 that is no page."""
    match kind:
        case "html":
            answer = Response("<!doctype html><title>Maintenance</title><h1>We will be back soon</h1>", media_type="text/html")
        case "truncated":
            whole = bytes(page(hotels, None, total).body)
            answer = Response(whole[: len(whole) // 2], media_type="application/json")
        case "stuck-cursor":
            answer = page(hotels, cursor or encode_cursor(("", "")), total)
        case "empty":
            answer = page([], None, 0)
        case "huge":
            answer = StreamingResponse(huge(), media_type="application/json")
        case "bomb":
            packed = gzip.compress(b'{"hotels":[' + b" " * (HUGE << 20) + b"]}", compresslevel=1)
            answer = Response(packed, media_type="application/json", headers={"Content-Encoding": "gzip"})
        case "error-body":
            answer = JSONResponse({"error": {"code": 17, "message": "internal error"}})
    return answer


async def huge() -> AsyncIterator[bytes]:
    """Yield a valid answer of a size nobody should take in."""
    yield b'{"hotels":['
    for _ in range(HUGE):
        yield b" " * (1 << 20)
    yield b'],"next_cursor":null,"total":0}'


def limit(given: str | None) -> int:
    """Return the page size."""
    if given is None:
        return 100
    if not given.isdecimal() or not 1 <= int(given) <= LARGEST_PAGE:
        raise BadRequest(f"limit: {given!r} is not a number from 1 to {LARGEST_PAGE}")
    return int(given)


async def refuse(_: Request, error: Exception) -> Response:
    """Answer a request that makes no sense."""
    return JSONResponse({"error": str(error)}, 400)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter, prog="supplier.py"
    )
    parser.add_argument("--port", type=int, default=8090, help="port of 127.0.0.1 to listen on (8090)")
    parser.add_argument("--data-dir", type=Path, default=Path(__file__).parent / "data", help="folder of the GeoJSON files")
    parser.add_argument("--state", type=Path, help="file that keeps changes and removals over a restart")
    parser.add_argument("--copies", type=int, default=1, metavar="N", help="serve every hotel N times, for large feeds (1)")
    options = parser.parse_args()
    catalogue = Catalogue(options.data_dir)
    catalogue.restore(options.copies, [])
    supplier = Supplier(catalogue, options.state)
    print(f"{catalogue.size()} hotels on http://127.0.0.1:{options.port}/hotels", flush=True)  # noqa: T201 - a program's output
    uvicorn.run(
        supplier.application(), host="127.0.0.1", port=options.port, log_level="warning", access_log=False, lifespan="off"
    )


if __name__ == "__main__":
    main()
