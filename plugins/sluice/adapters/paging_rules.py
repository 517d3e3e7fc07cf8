"""A source in; the rules of its paging that are broken out."""

from collections.abc import Iterator

from sluice.adapters.sources.rest.places import exclusions
from sluice.adapters.yaml_positions import Path, Problem
from sluice.model.source import RestSource, SourceSpec


def broken_rules(source: SourceSpec, path: Path) -> Iterator[Problem]:
    """Yield each rule that does not hold; the source stands at `path`."""
    if not isinstance(source, RestSource):
        return
    yield from _parameters(source, path)
    yield from (Problem((*path, *key.split(".")), problem) for key, problem in exclusions(source))


def _parameters(source: RestSource, path: Path) -> Iterator[Problem]:
    """Check that each parameter of paging has a place that nothing else takes, but for the value that a keyset begins with."""
    paging = source.cursor
    whose: dict[tuple[str, ...], str] = {}
    cursor = f"{'.'.join(map(str, path))}.cursor"
    for key, name in paging.parameters():
        shown = f"{cursor}.{key}"
        keys = tuple(name.split(".")) if paging.into == "body" else (name,)
        place: Path = (*path, paging.into)
        below: object = (source.query if paging.into == "query" else source.body) or {}
        for at, part in enumerate(keys):
            if not isinstance(below, dict):
                yield Problem(place, f"is in the way of {shown}, which goes to {name!r}: leave it out here")
                break
            if part not in below:
                break
            place, below = (*place, part), below[part]
            if at == len(keys) - 1 and (paging.kind, key) != ("keyset", "parameter"):
                yield Problem(place, f"is set by {shown}: leave it out here")
        for other, other_key in whose.items():
            if keys == other:
                yield Problem((*path, "cursor", key), f"{name!r} is {cursor}.{other_key} already")
            elif keys == other[: len(keys)] or other == keys[: len(other)]:
                inside = f"of {cursor}.{other_key}: what goes into a body cannot stand inside something else that does"
                yield Problem((*path, "cursor", key), f"{name!r} does not go with {'.'.join(other)!r} {inside}")
        whose[keys] = key
