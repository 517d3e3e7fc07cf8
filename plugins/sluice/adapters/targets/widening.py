"""The type a column has and the type it should have; whether every value of the one is, unaltered, a value of the other."""

import re
from typing import Final

from sluice.model.fields import FieldType, TypeName

_WHOLE_DIGITS: Final = {"smallint": 5, "integer": 10, "bigint": 19}
"""How many digits the widest value of a whole number has."""
_WIDER: Final = {
    TypeName.INTEGER: frozenset({"smallint"}),
    TypeName.BIGINT: frozenset({"smallint", "integer"}),
}
_NUMERIC: Final = re.compile(r"numeric\((\d+),(\d+)\)").fullmatch
_VARCHAR: Final = re.compile(r"character varying(\(\d+\))?").fullmatch


def is_widening(present: str, declared: FieldType, *, is_key: bool) -> bool:
    """Return whether a column of type `present`, as the catalog spells it, can become the declared type without loss.

    Of a key, the text has to stay the same, too: by it the ledger knows the object.
    """
    if declared.item is not None:
        return present.endswith("[]") and is_widening(present.removesuffix("[]"), declared.item, is_key=is_key)
    if declared.name is TypeName.TEXT:
        return _VARCHAR(present) is not None
    if declared.name is TypeName.NUMERIC:
        return not is_key and _fits(present, declared)
    return present in _WIDER.get(declared.name, ())


def _fits(present: str, declared: FieldType) -> bool:
    """Whether numbers of a type have a place for each digit in a numeric."""
    match = _NUMERIC(present)
    if match is None and present not in _WHOLE_DIGITS:
        return False
    if declared.precision is None:
        return True
    precision, scale = (int(match[1]), int(match[2])) if match else (_WHOLE_DIGITS[present], 0)
    declared_scale = declared.scale or 0
    return declared_scale >= scale and declared.precision - declared_scale >= precision - scale
