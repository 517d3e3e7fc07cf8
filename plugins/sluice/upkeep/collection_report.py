"""What a collection has removed, or would, in; one line for each kind of it, as people read it, out."""

from collections.abc import Iterator

from sluice.model.garbage import Garbage, Heap


def lines(garbage: Garbage) -> Iterator[tuple[str, str]]:
    """Yield what it is about, and how much that is; what stays comes last, with the reason."""
    yield "artifacts", _heap(Heap(objects=garbage.artifacts, bytes=garbage.bytes))
    yield "orphans", _heap(garbage.orphans)
    yield "cold copies", _heap(garbage.copied)
    yield "runs", f"{garbage.runs:,}"
    yield "dead runs, which have failed now", f"{garbage.closed:,}"
    for table, number in (garbage.task | garbage.session | garbage.control).items():
        yield f"rows of {table}", f"{number:,}"
    for sync, of in sorted(garbage.syncs.items()):
        yield f"of {sync}", f"artifacts {_heap(of.artifacts)}, orphans {_heap(of.orphans)}, runs {of.runs:,}"
    for why, heap in sorted(garbage.held.items()):
        yield f"stays, {why}", _heap(heap)
    if garbage.strange.objects:
        yield "stays, of runs that state does not know", _heap(garbage.strange)


def _heap(heap: Heap) -> str:
    return f"{heap.objects:,} ({heap.bytes:,} bytes)"
