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
    if source.records:
        return
    for key, _ in source.cursor.places():
        if source.cursor.kind != "body" or key != "path":  # such a list has always been taken for the only page
            problem = "the answer is itself the list (source.records is empty), so nothing stands beside it: leave this out"
            yield Problem((*path, "cursor", key), problem)


def _parameters(source: RestSource, path: Path) -> Iterator[Problem]:
    """Check that each parameter of paging has a place that nothing else takes, but for the value that a keyset begins with."""
    paging = source.cursor
    whose: dict[str, str] = {}
    cursor = f"{'.'.join(map(str, path))}.cursor"
    for key, name in paging.parameters():
        shown = f"{cursor}.{key}"
        keys = name.split(".") if paging.into == "body" else [name]
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
        if name in whose:
            yield Problem((*path, "cursor", key), f"{name!r} is {cursor}.{whose[name]} already")
        whose[name] = key
