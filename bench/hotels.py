"""A number of hotels comes in; their records, the same in every run, go out as pages of JSON and as lines of JSON.

There are two states of the supplier: `first`, and `second`, in which of 1,000 hotels ten have changed, one is new and one is
gone. A record has about 1.3 kB, most of it text, in fourteen fields, of which three are nested.
"""

import json
import random
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

COUNTRIES: Final = "AT BE BG CH CZ DE DK ES FI FR GB GR HR HU IT NL NO PL PT SE".split()  # noqa: SIM905 - easier to read
PAGE: Final = 500
STATES: Final = ("first", "second")

_LETTERS: Final = "aaabcdeeeefghiiijklmnnooprrsstttuuvwzäéöüåçñøßčłž"
_AMENITIES: Final = (  # noqa: SIM905 - easier to read
    "air_conditioning bar beach breakfast concierge crib ev_charging family_rooms fireplace garden gym laundry lift lounge "
    "minibar parking pets pool restaurant sauna shuttle skiing spa terrace wifi"
).split()
_BOARDS: Final = ("none", "breakfast", "half", "full", "all")


def _words(draw: random.Random, number: int) -> list[str]:
    return ["".join(draw.choices(_LETTERS, k=draw.randint(3, 9))) for _ in range(number)]


_WORDS: Final = _words(random.Random(7), 1_000)  # noqa: S311 - sample data
"""A text has so many different words, as a language does: it can be compressed like one."""


@dataclass(frozen=True)
class Facts:
    """What a table has to hold of one state of the supplier, and how much of that is not there any more."""

    hotels: int
    """Delivered in this state."""
    versions: int
    """The sum of their `version`."""
    letters: int
    """The sum of the lengths of their `description`."""
    gone: int = 0
    """Hotels of the state before that are delivered no more; and their sums."""
    gone_versions: int = 0
    gone_letters: int = 0


@dataclass(frozen=True)
class Hotels:
    """The supplier's data on disk."""

    folder: Path

    @classmethod
    def made(cls, cache: Path, number: int) -> "Hotels":
        """Return the data of about `number` hotels, made unless it is there."""
        folder = cache / f"hotels-{number}"
        if not folder.exists():
            making = folder.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir(parents=True)
            _make(making, number)
            making.rename(folder)
        return cls(folder)

    def facts(self, state: str) -> Facts:
        """Return what a state is known to hold."""
        return Facts(**json.loads((self.folder / f"{state}.facts.json").read_text()))

    def lines(self, state: str) -> Path:
        """Return the file that has one record in each line."""
        return self.folder / f"{state}.jsonl"


def hotel(country: str, place: int) -> dict[str, Any]:
    """Return one hotel as it is at first."""
    draw = random.Random(f"{country}{place}")  # noqa: S311 - sample data, the same in every run
    words = draw.choices(_WORDS, k=72)
    return {
        "id": f"{country}-{place:08d}",
        "name": f"{words[0].title()} {words[1].title()} {words[2]}",
        "country": country,
        "address": {
            "street": f"{words[3].title()} {draw.randint(1, 250)}",
            "postcode": f"{draw.randint(0, 99999):05d}",
            "city": words[4].title(),
            "region": words[5].title(),
            "country": country,
        },
        "lat": round(draw.uniform(36, 70), 6),
        "lon": round(draw.uniform(-10, 30), 6),
        "stars": draw.choice((1.0, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0)),
        "amenities": draw.sample(_AMENITIES, draw.randint(6, 10)),
        "rooms": [_room(draw, words[6 + number], words[9 + number]) for number in range(3)],
        "description": " ".join(words[12:])[:400].strip(),
        "phone": f"+{draw.randint(30, 49)} {draw.randint(100, 999)} {draw.randint(100_000, 999_999)}",
        "email": f"desk{place}@{words[10]}.example",
        "updated_at": _instant(draw),
        "version": draw.randint(1, 40),
    }


def changed(hotel: dict[str, Any]) -> dict[str, Any]:
    """Return a hotel as it is later: another price, another text, and a newer version."""
    rooms = [{**room, "price": round(room["price"] * 1.1, 2)} for room in hotel["rooms"]]
    text = f"{hotel['description'][:-24].strip()}, modernisé en 2026"
    return hotel | {
        "rooms": rooms,
        "description": text,
        "version": hotel["version"] + 1,
        "updated_at": f"2026{hotel['updated_at'][4:]}".replace("2026-12", "2026-09").replace("2026-11", "2026-10"),
    }


def _instant(draw: random.Random) -> str:
    day = f"2025-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d}"
    return f"{day}T{draw.randint(10, 23)}:{draw.randint(10, 59)}:00Z"


def _room(draw: random.Random, code: str, name: str) -> dict[str, Any]:
    return {
        "code": code[:4].upper(),
        "name": f"{name.title()} room",
        "board": draw.choice(_BOARDS),
        "max_occupancy": draw.randint(1, 5),
        "size_m2": round(draw.uniform(11, 70), 1),
        "price": round(draw.uniform(35, 640), 2),
        "currency": "EUR",
        "refundable": draw.random() < 0.6,
    }


def _make(folder: Path, number: int) -> None:
    """Write both states, country by country, then join the countries."""
    each = number // len(COUNTRIES)
    with ProcessPoolExecutor(2) as pool:
        parts = list(pool.map(_make_country, [folder] * len(COUNTRIES), COUNTRIES, [each] * len(COUNTRIES)))
    for state in STATES:
        index: dict[str, list[tuple[int, int]]] = {}
        start = 0
        with (folder / f"{state}.pages").open("wb") as pages, (folder / f"{state}.jsonl").open("wb") as lines:
            for country, (_, sizes) in zip(COUNTRIES, parts, strict=True):
                index[country] = []
                for size in sizes[state]:
                    index[country].append((start, size))
                    start += size
                for kind, sink in (("pages", pages), ("jsonl", lines)):
                    part = folder / f"{state}.{country}.{kind}"
                    with part.open("rb") as source:
                        shutil.copyfileobj(source, sink)
                    part.unlink()
        (folder / f"{state}.index.json").write_text(json.dumps(index))
        sums = [facts[state] for facts, _ in parts]
        whole = {name: sum(part[name] for part in sums) for name in sums[0]}
        (folder / f"{state}.facts.json").write_text(json.dumps(whole))


def _make_country(folder: Path, country: str, each: int) -> tuple[dict[str, dict[str, int]], dict[str, list[int]]]:
    first = [hotel(country, place) for place in range(each)]
    # Spread over the ids, so that what changes lies as scattered as in life.
    lot = [place * 7919 % 1000 for place in range(each)]
    gone = [record for record, drawn in zip(first, lot, strict=True) if drawn == 10]
    second = [changed(record) if drawn < 10 else record for record, drawn in zip(first, lot, strict=True) if drawn != 10]
    second += [hotel(country, place) for place in range(each, each + each // 1000)]
    facts, sizes = {}, {}
    for state, records, lost in (("first", first, []), ("second", second, gone)):
        facts[state] = asdict(Facts(*_sums(records), *_sums(lost)))
        sizes[state] = []
        with (
            (folder / f"{state}.{country}.pages").open("wb") as pages,
            (folder / f"{state}.{country}.jsonl").open("wb") as lines,
        ):
            for page, is_last in _pages([_written(record) for record in records]):
                cursor = None if is_last else str(len(sizes[state]) + 1)
                body = b'{"hotels":[%b],"next_cursor":%b}' % (b",".join(page), json.dumps(cursor).encode())
                sizes[state].append(pages.write(body))
                lines.write(b"\n".join(page) + b"\n")
    return facts, sizes


def _sums(records: list[dict[str, Any]]) -> tuple[int, int, int]:
    return len(records), sum(one["version"] for one in records), sum(len(one["description"]) for one in records)


def _pages(records: list[bytes]) -> Iterator[tuple[list[bytes], bool]]:
    for start in range(0, len(records), PAGE):
        yield records[start : start + PAGE], start + PAGE >= len(records)


def _written(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


if __name__ == "__main__":
    print(Hotels.made(Path(sys.argv[1]), int(sys.argv[2])).folder)
