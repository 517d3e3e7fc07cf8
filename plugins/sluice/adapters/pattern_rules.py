"""The draft of a sync in; patterns of its fields that cannot be used, or that values of the same field do not match, out.

They are apart from the other rules of fields because it takes pyarrow to try them, which no DAG file loads.
"""

from collections.abc import Iterator

from sluice.adapters.field_rules import listings
from sluice.adapters.spec_draft import Draft
from sluice.adapters.yaml_positions import Path, Problem
from sluice.mapping.rules import FieldRules, pattern_refused
from sluice.mapping.violation import Violation
from sluice.model.fields import FieldSpec, TypeName


def broken_rules(draft: Draft) -> Iterator[Problem]:
    """Yield each rule that does not hold. A field that is wrong in itself is left alone."""
    for place, listing in listings(draft):
        for index, field in enumerate(listing.specs):
            if field is None or field.pattern is None or field.type.name is not TypeName.TEXT:
                continue
            if why := pattern_refused(field.pattern):
                yield Problem((*place, index, "pattern"), f"is no regular expression of RE2: {why}")
            else:
                yield from _unmatched((*place, index), field)


def _unmatched(at: Path, field: FieldSpec) -> Iterator[Problem]:
    rules = FieldRules(FieldSpec(name=field.name, type=field.type, pattern=field.pattern))
    allowed = ((("allowed", place), value) for place, value in enumerate(field.allowed or ()))
    for key, value in ((("default",), field.default), *allowed):
        if isinstance(value, str):
            try:
                rules.check(value)
            except Violation as violation:
                yield Problem((*at, *key), f"breaks a rule of the field's own: {violation.message}")
