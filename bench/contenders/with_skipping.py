"""The least a pipeline can do that keeps what came: unchanged hotels are told by their bytes, unread; pages are kept, too.

usage: with_skipping.py SUPPLIER DSN

It bounds what any tool can reach here. It has no checkpoints, exact numbers, ledger, events, review, publication or undo, keeps
its pages in the current folder instead of S3, unproven, and believes the supplier's every word.
"""

import asyncio
import hashlib
import sys
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import orjson
import psycopg
import uvloop
import zstandard
from with_copy import AT_ONCE, CREATE, NAMES, WRITE, line


class Page(msgspec.Struct):
    """A page, taken apart no further than its records."""

    hotels: list[msgspec.Raw]
    next_cursor: str | None


class Named(msgspec.Struct):
    """A record's key."""

    id: str


PAGE, NAMED = msgspec.json.Decoder(Page), msgspec.json.Decoder(Named)
KNOWN = "copy (select id, row_hash from hotels where gone_at is null) to stdout (format binary)"
MARK_GONE = "update hotels set gone_at = now() where id = any(%s)"


async def fetch(session: aiohttp.ClientSession, supplier: str, countries: list[str], pages: asyncio.Queue[Any]) -> None:
    """Put the pages of country after country into the queue, as they came and taken apart."""
    while countries:
        query = {"country": countries.pop(), "limit": "500"}
        while True:
            async with session.get(f"{supplier}/hotels", params=query) as answer:
                answer.raise_for_status()
                body = await answer.read()
            page = PAGE.decode(body)
            await pages.put((body, page.hotels))
            if page.next_cursor is None:
                break
            query["cursor"] = page.next_cursor


def news(records: list[msgspec.Raw], known: dict[str, bytes]) -> str:
    """Return the lines of those hotels that are not known by their bytes; what is met is struck off."""
    lines = []
    for raw in records:
        digest = hashlib.blake2b(raw, digest_size=16)
        if known.pop(NAMED.decode(raw).id, None) != digest.digest():
            lines.append(line(orjson.loads(memoryview(raw)), digest.hexdigest()))
    return "".join(lines)


async def main(supplier: str, dsn: str) -> None:
    """Bring the table up to date."""
    pages: asyncio.Queue[Any] = asyncio.Queue(2 * AT_ONCE)
    compress = zstandard.ZstdCompressor(level=1).compress
    async with aiohttp.ClientSession() as session, await psycopg.AsyncConnection.connect(dsn) as connection:
        async with session.get(f"{supplier}/countries") as answer:
            countries = [country["code"] for country in await answer.json()]
        cursor = connection.cursor()
        await cursor.execute(CREATE)
        async with cursor.copy(KNOWN) as copy:
            copy.set_types(["text", "bytea"])
            known = {key: digest async for key, digest in copy.rows()}

        async def fetch_all() -> None:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(fetch(session, supplier, countries, pages))
            await pages.put(None)

        fetching = asyncio.create_task(fetch_all())
        with Path("pages.zst").open("wb") as kept:  # noqa: ASYNC230 - nobody waits for a local file
            async with cursor.copy(f"copy staged ({NAMES}) from stdin") as copy:
                while (page := await pages.get()) is not None:
                    body, records = page
                    kept.write(compress(body))
                    if lines := news(records, known):
                        await copy.write(lines)
        await fetching
        await cursor.execute("analyze staged")
        await cursor.execute(WRITE)
        await cursor.execute(MARK_GONE, [list(known)])


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
