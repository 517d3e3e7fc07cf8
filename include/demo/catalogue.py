"""Two GeoJSON files in, pages of hotels out, ordered by (updated_at, id); changes and removals are made up on demand.

Everything that is made up derives from the hotel's id and the number of the change, so that the same acts always lead to
the same catalogue.
"""

import base64
import binascii
import json
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

REGIONS = ("tokyo", "brittany")
FIRST_MONTH = datetime(2026, 1, 1, tzinfo=UTC)
FIRST_CHANGE = datetime(2026, 2, 1, tzinfo=UTC)
ADDRESS_PREFIX = "addr:"


class BadRequest(Exception):
    """A request that this supplier refuses; the message says why."""


@dataclass(frozen=True)
class Hotel:
    """A hotel as rendered JSON, cut where copies and changes differ: id, updated_at and rooms."""

    id: str
    region: str
    rooms: int | None
    before_rooms: str
    after_rooms: str

    @classmethod
    def from_feature(cls, region: str, feature: dict[str, Any]) -> Self:
        """Read one GeoJSON feature, whose numbers are still text."""
        tags = dict(feature["properties"])
        place = feature["geometry"]["coordinates"]
        longitude, latitude = place[0] if feature["geometry"]["type"] == "MultiPoint" else place
        address = {
            key.removeprefix(ADDRESS_PREFIX): value for key, value in tags.items() if key.startswith(ADDRESS_PREFIX) and value
        }
        rooms = tags.get("rooms") or ""
        before = f'"name":{text(tags.get("name") or None)},"location":{{"lat":{latitude},"lon":{longitude}}},'
        before += f'"stars":{text(tags.get("stars") or None)},"rooms":'
        after = f',"phone":{text(tags.get("phone") or tags.get("contact:phone") or None)}'
        after += f',"website":{text(tags.get("website") or tags.get("contact:website") or None)}'
        after += f',"address":{text(address)},"tags":{text(tags)}}}'
        return cls(
            id=feature.get("id") or f"{tags['osm_type']}/{tags['osm_id']}",
            region=region,
            rooms=int(rooms) if rooms.isdecimal() else None,
            before_rooms=before,
            after_rooms=after,
        )


def text(value: Any) -> str:
    """Return a value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, order=True)
class Entry:
    """One hotel's place in the feed."""

    updated_at: str
    id: str
    hotel: Hotel = field(compare=False)
    revision: int = field(compare=False)

    def render(self) -> str:
        """Return the hotel as JSON."""
        hotel = self.hotel
        rooms = "null" if hotel.rooms is None else hotel.rooms
        if self.revision:
            rooms = (hotel.rooms or 20) + self.revision
        head = f'{{"id":"{self.id}","region":"{hotel.region}","updated_at":"{self.updated_at}",'
        return f"{head}{hotel.before_rooms}{rooms}{hotel.after_rooms}"


@dataclass(frozen=True)
class Act:
    """Something that happened to the catalogue: a share of a region's hotels was changed or dropped."""

    kind: str
    percent: float
    region: str | None


class Catalogue:
    """The hotels as they stand after a list of acts."""

    def __init__(self, folder: Path) -> None:
        self._hotels = tuple(read_hotels(folder))
        self.copies = 1
        self.acts: list[Act] = []
        self._revisions: dict[str, int] = {}
        self._dropped: set[str] = set()
        self._feeds: dict[str | None, list[Entry]] = {}

    def restore(self, copies: int, acts: Iterable[Act]) -> None:
        """Begin anew with `copies` of every hotel, and let the acts happen again."""
        self.copies = copies
        self.acts, self._revisions, self._dropped, self._feeds = [], {}, set(), {}
        for act in acts:
            self.perform(act)

    def perform(self, act: Act) -> list[str]:
        """Change or drop a share of the hotels there are; return the ids of those it hit."""
        number = len(self.acts) + 1
        entries = self._feed(act.region)
        count = min(len(entries), max(1, round(len(entries) * act.percent / 100))) if act.percent else 0
        hit = [entry.id for entry in sorted(entries, key=lambda entry: (dice(entry.id, number), entry.id))[:count]]
        if act.kind == "drop":
            self._dropped.update(hit)
        else:
            self._revisions.update(dict.fromkeys(hit, number))
        self.acts.append(act)
        self._feeds = {}
        return sorted(hit)

    def size(self, region: str | None = None) -> int:
        """Return how many hotels there are."""
        return len(self._feed(region))

    def page(
        self, region: str | None, span: tuple[str | None, str | None], cursor: str | None, limit: int
    ) -> tuple[list[str], str | None, int]:
        """Return the rendered hotels behind `cursor`, the next cursor, and how many changed within `span`, its end excluded."""
        feed = self._feed(region)
        since, before = span
        first = bisect_left(feed, (since, ""), key=place) if since else 0
        end = bisect_left(feed, (before, ""), key=place) if before else len(feed)
        start = max(first, bisect_right(feed, decode_cursor(cursor), key=place)) if cursor else first
        entries = feed[start : min(start + limit, end)]
        more = bool(entries) and start + limit < end
        return [entry.render() for entry in entries], encode_cursor(place(entries[-1])) if more else None, max(end - first, 0)

    def _feed(self, region: str | None) -> list[Entry]:
        if region is not None and region not in REGIONS:
            raise BadRequest(f"region: {region!r} is not one of {', '.join(REGIONS)}")
        if region not in self._feeds:
            self._feeds[region] = sorted(self._entries(region))
        return self._feeds[region]

    def _entries(self, region: str | None) -> Iterator[Entry]:
        for hotel in self._hotels:
            if region not in (None, hotel.region):
                continue
            for copy in range(self.copies):
                key = f"{hotel.id}~{copy}" if copy else hotel.id
                if key not in self._dropped:
                    revision = self._revisions.get(key, 0)
                    yield Entry(updated_at(key, revision), key, hotel, revision)


def read_hotels(folder: Path) -> Iterator[Hotel]:
    """Yield the hotels of both files; numbers keep the digits they have there."""
    for region in REGIONS:
        document = json.loads((folder / f"hotels-{region}.geojson").read_text(encoding="utf-8"), parse_float=str)
        for feature in document["features"]:
            yield Hotel.from_feature(region, feature)


def dice(key: str, number: int) -> int:
    """Return a number that looks random and never changes."""
    return zlib.crc32(f"{number}:{key}".encode())


def updated_at(key: str, revision: int) -> str:
    """Return when a hotel was last touched: each change is later than whatever was there before it."""
    if revision == 0:
        moment = FIRST_MONTH + timedelta(seconds=dice(key, 0) % (31 * 86_400))
    else:
        moment = FIRST_CHANGE + timedelta(hours=revision, seconds=dice(key, revision) % 3_600)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def place(entry: Entry) -> tuple[str, str]:
    """Return what the feed is ordered by."""
    return entry.updated_at, entry.id


def encode_cursor(behind: tuple[str, str]) -> str:
    """Return an opaque token for what follows a place."""
    return base64.urlsafe_b64encode(json.dumps(behind).encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> tuple[str, str]:
    """Return the place a token stands for."""
    try:
        found: Sequence[Any] = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        moment, key = found
    except (binascii.Error, ValueError, TypeError) as error:
        raise BadRequest("cursor: not one that this supplier has given") from error
    return str(moment), str(key)
