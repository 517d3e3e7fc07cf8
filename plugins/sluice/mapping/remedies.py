"""Some objects that could not be taken in for one cause come in; which declaration of their field might mend that goes out.

These are rules of thumb, and each is only proposed: whoever asks tries it on the objects (see `upkeep.triage`).
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any, Final

from sluice.mapping import shapes
from sluice.mapping.rules import FieldRules
from sluice.mapping.violation import ALLOWED, OUT_OF_RANGE, PATTERN, PRECISION, REQUIRED, TYPE, UNMAPPED
from sluice.model.fields import FieldSpec, TypeName
from sluice.model.paths import Path, spell_path
from sluice.model.triage import Proposal, Ward

_BIGINT: Final = 2**63
_ALIKE: Final = 0.75
"""How much of two words has to agree for one to be taken for the other."""
_FORMATS: Final = {
    TypeName.DATE: ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d", "%Y/%m/%d", "%d-%m-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y"),
    TypeName.TIMESTAMPTZ: (
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M:%S",
        "%d.%m.%Y %H:%M:%S",
        "%d.%m.%Y %H:%M",
        "%d/%m/%Y %H:%M:%S",
        "%d/%m/%Y %H:%M",
        "%m/%d/%Y %H:%M:%S",
        "%Y%m%d%H%M%S",
        "%a, %d %b %Y %H:%M:%S %z",
    ),
}


def remedies(ward: Ward) -> Iterator[Proposal]:
    """Yield what might mend the field of a group, the likelier first; nothing for what no rule knows."""
    field, rule = ward.field, _RULES.get(ward.cause.error)
    if field is None or rule is None:
        return
    documents = [document for document in shapes.decoded(each.record for each in ward.specimens) if isinstance(document, dict)]
    if documents:
        yield from rule(field, documents)


def _unmapped(field: FieldSpec, documents: Sequence[Any]) -> Iterator[Proposal]:
    """Map what is spelled almost like something that is mapped to the same."""
    table = dict(field.map or {})
    found = _likenesses(_texts(field, documents), list(table))
    if found:
        changed = {**table, **{text: table[alike] for text, alike in found.items()}}
        yield Proposal(because=f"{_pairs(found)} in `map`", changes={"map": changed})


def _not_allowed(field: FieldSpec, documents: Sequence[Any]) -> Iterator[Proposal]:
    """Map what is spelled almost like something that is allowed to that."""
    allowed = [value for value in field.allowed or () if isinstance(value, str)]
    texts = _texts(field, documents)
    if field.map is None and (found := _likenesses(texts, allowed)):
        changed = {**{value: value for value in allowed}, **found}
        yield Proposal(because=f"{_pairs(found)} in `allowed`", changes={"map": changed})
    unknown = sorted({text for text in texts if text not in allowed})
    if allowed and unknown:
        more = [*field.allowed, *unknown] if field.allowed else unknown
        yield Proposal(because=f"the supplier may have new values: {', '.join(unknown)}", changes={"allowed": more})


def _unreadable(field: FieldSpec, documents: Sequence[Any]) -> Iterator[Proposal]:
    """Read dates in another format, numbers with a fraction as such, and anything as text."""
    texts = _texts(field, documents)
    for pattern in _FORMATS.get(field.type.name, ()):
        fitting = [text for text in texts if _fits(text, pattern)]
        if fitting:
            zone = {"zone": "UTC"} if field.type.name is TypeName.TIMESTAMPTZ and "%z" not in pattern else {}
            asked = ", if its clocks show UTC" if zone else ""
            yield Proposal(because=f"{fitting[0]} may be written as {pattern}{asked}", changes={"format": pattern, **zone})
    if field.type.name in (TypeName.INTEGER, TypeName.BIGINT) and texts and all(_decimal(text) is not None for text in texts):
        yield Proposal(because="the numbers have fractions", changes={"type": "numeric"})


def _too_large(field: FieldSpec, documents: Sequence[Any]) -> Iterator[Proposal]:
    """Make room for numbers that are larger than declared."""
    numbers = [number for text in _texts(field, documents) if (number := _decimal(text)) is not None]
    if not numbers:
        return
    if field.type.name is TypeName.INTEGER and all(-_BIGINT <= number < _BIGINT for number in numbers):
        yield Proposal(because="the numbers have outgrown integer", changes={"type": "bigint"})
    elif field.type.name in (TypeName.INTEGER, TypeName.BIGINT):
        yield Proposal(because=f"the numbers have outgrown {field.type.name}", changes={"type": "numeric"})
    elif field.type.name is TypeName.NUMERIC:
        yield _wider(field, numbers)


def _too_fine(field: FieldSpec, documents: Sequence[Any]) -> Iterator[Proposal]:
    """Make room for more fractional digits."""
    numbers = [number for text in _texts(field, documents) if (number := _decimal(text)) is not None]
    if numbers and field.type.name is TypeName.NUMERIC and field.type.precision is not None:
        yield _wider(field, numbers)


def _absent(field: FieldSpec, documents: Sequence[Any]) -> Iterator[Proposal]:
    """Look for the value where the record may have it by now."""
    if len(field.paths) == 1 and (moved := shapes.moved(field.paths[0], documents)) is not None:
        yield Proposal(because=f"it may stand at {spell_path(moved)} by now", changes={"path": list(moved)})


def _untidy(field: FieldSpec, documents: Sequence[Any]) -> Iterator[Proposal]:
    """Tell white space and look-alike characters from values that are wrong; no declaration takes them away."""
    if field.pattern is None:
        return
    texts = _texts(field, documents)
    tidied = [(text, tidy) for text in texts if (tidy := _tidied(text)) != text]
    broken = set(FieldRules(field).broken([tidy for _, tidy in tidied]))
    mended = {text: tidy for place, (text, tidy) in enumerate(tidied) if place not in broken}
    if mended:
        text, tidy = next(iter(mended.items()))
        fit = f"{len(mended)} of {len(texts)} values fit once they are tidied, as {text!r} does as {tidy!r}"
        yield Proposal(because=f"{fit}: let a transform do that")


_RULES: Final[Mapping[str, Callable[[FieldSpec, Sequence[Any]], Iterator[Proposal]]]] = {
    UNMAPPED: _unmapped,
    ALLOWED: _not_allowed,
    TYPE: _unreadable,
    OUT_OF_RANGE: _too_large,
    PRECISION: _too_fine,
    REQUIRED: _absent,
    PATTERN: _untidy,
}


def _wider(field: FieldSpec, numbers: Sequence[Decimal]) -> Proposal:
    """Return the numeric that holds what is declared and the numbers as well."""
    scale = max(field.type.scale or 0, *(_fraction(number) for number in numbers))
    whole = max((field.type.precision or 0) - (field.type.scale or 0), *(number.adjusted() + 1 for number in numbers), 1)
    return Proposal(
        because=f"the numbers have outgrown {field.type.sql}", changes={"type": f"numeric({whole + scale},{scale})"}
    )


def _fraction(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def _texts(field: FieldSpec, documents: Sequence[Any]) -> list[str]:
    """Return the scalars that stand where the field is read from, as texts, each once."""
    found: dict[str, None] = {}
    for document in documents:
        for path in field.paths:
            value = _at(document, path)
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                found.setdefault(str(value))
    return list(found)


def _at(document: Any, path: Path) -> Any:
    """Return what stands at a path of a document; None if nothing does, or many things."""
    for step in path:
        match document, step:
            case dict(), str():
                document = document.get(step)
            case list(), int() if step < len(document):
                document = document[step]
            case _:
                return None
    return document


def _likenesses(texts: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return, for each text that is not known, the one known text it is spelled like."""
    plain = {_plain(text): text for text in known}
    found: dict[str, str] = {}
    for text in texts:
        if text in known:
            continue
        alike = get_close_matches(_plain(text), list(plain), 1, _ALIKE)
        if alike:
            found[text] = plain[alike[0]]
    return found


def _pairs(found: Mapping[str, str]) -> str:
    return ", ".join(f"{text!r} is spelled like {alike!r}" for text, alike in list(found.items())[:3])


def _plain(text: str) -> str:
    """Return a text in small letters, without accents, punctuation and white space."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in letters if letter.isalnum())


def _tidied(text: str) -> str:
    """Return a text in compatible characters, without white space around it and with single spaces within."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _fits(text: str, pattern: str) -> bool:
    try:
        datetime.strptime(text, pattern)  # noqa: DTZ007 - only whether it can be read
    except ValueError:
        return False
    return True


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
