"""The hand-written pipeline, as somebody good writes it in a day: pages, COPY into a staging table, one upsert of what differs.

usage: with_copy.py SUPPLIER DSN
"""

import asyncio
import hashlib
import sys
from typing import Any

import aiohttp
import orjson
import psycopg

AT_ONCE = 4
COLUMNS = {
    "id": "text",
    "name": "text",
    "country": "text",
    "lat": "double precision",
    "lon": "double precision",
    "stars": "double precision",
    "phone": "text",
    "email": "text",
    "description": "text",
    "updated_at": "timestamptz",
    "version": "integer",
    "address": "jsonb",
    "amenities": "jsonb",
    "rooms": "jsonb",
    "row_hash": "bytea",
}
NAMES = ", ".join(COLUMNS)
TYPED = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))

CREATE = f"""
create table if not exists hotels ({TYPED}, gone_at timestamptz, primary key (id));
create temporary table staged ({TYPED})
"""
WRITE = f"""
insert into hotels ({NAMES})
select {", ".join(f"s.{name}" for name in COLUMNS)}
from staged s left join hotels h on h.id = s.id
where h.id is null or h.row_hash <> s.row_hash or h.gone_at is not null
on conflict (id) do update set {", ".join(f"{name} = excluded.{name}" for name in COLUMNS)}, gone_at = null
"""  # noqa: S608 - our own constants
MARK_GONE = """
update hotels h set gone_at = now()
where h.gone_at is null and not exists (select from staged s where s.id = h.id)
"""


def digest_of(hotel: dict[str, Any]) -> str:
    """Return what tells a hotel from one that differs in anything."""
    return hashlib.blake2b(orjson.dumps(hotel, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


def line(hotel: dict[str, Any], digest: str) -> str:
    """Return a hotel as COPY reads it."""
    values = [hotel[name] for name in COLUMNS if name != "row_hash"]
    text = "\0".join([value if isinstance(value, str) else orjson.dumps(value).decode() for value in values])
    for sign, escaped in ESCAPES:
        text = text.replace(sign, escaped)
    return text.replace("\0", "\t") + f"\t\\\\x{digest}\n"


async def fetch_all(session: aiohttp.ClientSession, supplier: str, countries: list[str], pages: asyncio.Queue[Any]) -> None:
    """Put all pages into the queue, and None behind the last one."""
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(fetch(session, supplier, countries, pages))
    await pages.put(None)


async def fetch(session: aiohttp.ClientSession, supplier: str, countries: list[str], pages: asyncio.Queue[Any]) -> None:
    """Put the pages of country after country into the queue."""
    while countries:
        query = {"country": countries.pop(), "limit": "500"}
        while True:
            async with session.get(f"{supplier}/hotels", params=query) as answer:
                answer.raise_for_status()
                page = orjson.loads(await answer.read())
            await pages.put(page["hotels"])
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]


async def main(supplier: str, dsn: str) -> None:
    """Bring the table up to date."""
    pages: asyncio.Queue[Any] = asyncio.Queue(2 * AT_ONCE)
    async with aiohttp.ClientSession() as session, await psycopg.AsyncConnection.connect(dsn) as connection:
        async with session.get(f"{supplier}/countries") as answer:
            countries = [country["code"] for country in await answer.json()]
        cursor = connection.cursor()
        await cursor.execute(CREATE)
        fetching = asyncio.create_task(fetch_all(session, supplier, countries, pages))
        async with cursor.copy(f"copy staged ({NAMES}) from stdin") as copy:
            while (page := await pages.get()) is not None:
                await copy.write("".join(line(hotel, digest_of(hotel)) for hotel in page))
        await fetching
        await cursor.execute("analyze staged")
        await cursor.execute(WRITE)
        await cursor.execute(MARK_GONE)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
