"""Records as the supplier sent them come in; which paths stand in them goes out, and which one a wrong path may have meant."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from sluice.model.paths import EACH, Path, spell_path

_MOST_PATHS: Final = 40
"""So many paths are named; a record may have thousands of keys."""
_LONGEST_PATH: Final = 100
"""Characters shown of each."""
_DEPTH: Final = 4
_ALIKE: Final = 0.8
"""How much of a path has to agree, of all of it."""


def decoded(texts: Iterable[bytes]) -> list[Any]:
    """Return the documents among some texts; those that are not JSON are left out."""
    documents = []
    for text in texts:
        try:
            documents.append(msgspec.json.decode(text))
        except (msgspec.MsgspecError, RecursionError):
            continue
    return documents


def paths_in(documents: Iterable[Any]) -> list[tuple[str, ...]]:
    """Return the paths of all values below objects, in the order in which they first appear; lists are not looked into."""
    found: dict[tuple[str, ...], None] = {}
    for document in documents:
        _gather(document, (), found)
    return list(found)


def lists_in(document: Any) -> list[str]:
    """Return where the lists of a document stand, keys joined by dots, nothing for its root; lists are not looked into."""
    if isinstance(document, list):
        return [""]
    paths = paths_in([document])
    return [".".join(path) for path in paths if isinstance(_at(document, path), list)]


def has_path(document: Any, path: Path) -> bool:
    """Whether something, if only null, stands at a path of a document."""
    for place, step in enumerate(path):
        if step == EACH:
            return isinstance(document, list) and any(has_path(item, path[place + 1 :]) for item in document)
        if isinstance(step, int):
            if not isinstance(document, list) or step >= len(document):
                return False
            document = document[step]
        elif not isinstance(document, dict) or step not in document:
            return False
        else:
            document = document[step]
    return True


def missing(path: Path, documents: Sequence[Any], what: str) -> str | None:
    """Say that nothing stands at a path of any of the documents, and which one may be meant; None: something does.

    `what` is how one of the documents is called.
    """
    if any(has_path(document, path) for document in documents):
        return None
    meant = moved(path, documents)
    return f"no {what} has `{spell_path(path)}`" + (f"; did you mean `{spell_path(meant)}`?" if meant else "")


def moved(path: Path, documents: Sequence[Any]) -> tuple[str, ...] | None:
    """Return another path of some documents that may be meant by one at which they have nothing; None: none is alike."""
    there = {".".join(known): known for known in paths_in(documents) if known != path}
    meant = _meant(spell_path(path), list(there))
    return None if meant is None else there[meant]


def named(documents: Iterable[Any]) -> str:
    """Return the paths of some documents for people, up to as many as they would read."""
    paths = [".".join(path)[:_LONGEST_PATH] for path in paths_in(documents)]
    more = len(paths) - _MOST_PATHS
    return (", ".join(paths[:_MOST_PATHS]) or "nothing") + (f", and {more:,} more" if more > 0 else "")


def _at(document: Any, path: Sequence[str]) -> Any:
    for key in path:
        document = document[key]
    return document


def _gather(document: Any, above: tuple[str, ...], found: dict[tuple[str, ...], None]) -> None:
    if not isinstance(document, dict):
        return
    for key, value in document.items():
        path = (*above, key)
        if isinstance(value, dict) and value and len(path) < _DEPTH:
            _gather(value, path, found)
        else:
            found.setdefault(path)


def _meant(wanted: str, there: Sequence[str]) -> str | None:
    """Return the path that ends alike, or is spelled almost alike."""
    last = wanted.rpartition(".")[2]
    alike = [known for known in there if known.rpartition(".")[2].casefold() == last.casefold()]
    return next(iter(alike or get_close_matches(wanted, there, 1, _ALIKE)), None)
