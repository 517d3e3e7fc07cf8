"""The values of an object's natural key come in, the text it is known by goes out."""

from collections.abc import Sequence
from typing import Any

import msgspec

from sluice.mapping.exact import ExactType, told_apart
from sluice.model.base import ObjectKey


def key_text(kinds: Sequence[ExactType], values: Sequence[Any]) -> ObjectKey:
    """Return the text of a key out of values that begin with its own: one value is itself, several are a JSON list of texts.

    So `("A", "B, C")` and `("A, B", "C")` are different objects.
    """
    texts = [kind.to_text(told_apart(value)) for kind, value in zip(kinds, values, strict=False)]
    return ObjectKey(texts[0] if len(texts) == 1 else msgspec.json.encode(texts).decode())
