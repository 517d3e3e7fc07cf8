"""The values of an object's natural key, or what a person wrote for them, come in; the text it is known by goes out."""

from collections.abc import Sequence
from typing import Any

import msgspec

from sluice.errors import UsageInvalid
from sluice.mapping.exact import ExactType, exact_type, told_apart
from sluice.mapping.violation import Violation
from sluice.model.base import ObjectKey
from sluice.model.spec import SyncSpec


def key_text(kinds: Sequence[ExactType], values: Sequence[Any]) -> ObjectKey:
    """Return the text of a key out of values that begin with its own: one value is itself, several are a JSON list of texts.

    So `("A", "B, C")` and `("A, B", "C")` are different objects.
    """
    texts = [kind.to_text(told_apart(value)) for kind, value in zip(kinds, values, strict=False)]
    return ObjectKey(texts[0] if len(texts) == 1 else msgspec.json.encode(texts).decode())


def key_named(spec: SyncSpec, written: str) -> ObjectKey:
    """Return the key a person means: the value of the one key field, or a JSON list of the values of several.

    Raises `UsageInvalid`, saying what a key of the sync looks like.
    """
    kinds = [exact_type(spec.field(name).type) for name in spec.object.key]
    parts = [written] if len(kinds) == 1 else _parts(written)
    try:
        if parts is not None and len(parts) == len(kinds):
            return key_text(kinds, [kind.from_text(part) for kind, part in zip(kinds, parts, strict=True)])
        why = f"{written} is no such list" if parts is None else f"{written} has {len(parts)}"
    except Violation as violation:
        why = violation.message
    raise UsageInvalid(f"an object of {spec.sync} is named by {_form(spec)}: {why}")


def _parts(written: str) -> list[str] | None:
    try:
        tokens = [bytes(token) for token in msgspec.json.decode(written, type=list[msgspec.Raw])]
        return [msgspec.json.decode(token, type=str) if token[:1] == b'"' else token.decode() for token in tokens]
    except msgspec.MsgspecError:
        return None


def _form(spec: SyncSpec) -> str:
    if len(spec.object.key) == 1:
        return f"its {spec.object.key[0]}"
    return f"a JSON list of its {len(spec.object.key)} key fields [{', '.join(spec.object.key)}], in quotes of the shell"
