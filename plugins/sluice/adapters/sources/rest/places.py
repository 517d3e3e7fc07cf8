"""Where things stand in an answer, as a spec says it; the places that exclude each other out."""

from collections.abc import Iterator
from typing import Final

from sluice.model.source import RestSource

_NOTHING_BESIDE: Final = "the answer is itself the list (source.records is empty), so nothing stands beside it"
_MEND: Final = "say where the list stands, or page by kind: none, link, header, page, offset or keyset"


def places_of(source: RestSource) -> dict[str, tuple[str, ...]]:
    """Return what paging looks for beside the records: the path to it, by its key below `source`."""
    return {f"cursor.{key}": tuple(place.split(".")) for key, place in source.cursor.places()}


def exclusions(source: RestSource) -> Iterator[tuple[str, str]]:
    """Yield each key below `source` whose place stands inside of another, with what is wrong."""
    records = tuple(source.records.split(".")) if source.records else ()
    places = places_of(source)
    for key, path in places.items():
        shown = ".".join(path)
        if not records:
            yield key, f"{_NOTHING_BESIDE}: {_MEND if key == 'cursor.path' else 'leave this out'}"
        elif records == path[: len(records)]:
            yield key, f"{shown!r} stands inside source.records, which is a list"
        elif path == records[: len(path)]:
            yield "records", f"{source.records!r} stands inside source.{key}, which is a single value"
        for other, outer in places.items():
            if path != outer and outer == path[: len(outer)]:
                yield key, f"{shown!r} stands inside source.{other}, which is a single value"
