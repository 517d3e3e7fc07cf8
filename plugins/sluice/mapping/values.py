"""A JSON token and how its type is read come in; exactly its value, or a `Violation` that says why not, goes out."""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw

from sluice.mapping import tokens
from sluice.mapping.arrays import paired
from sluice.mapping.exact import BOOLEAN, CONTAINER, NUMBER, STRING, ExactType, is_number
from sluice.mapping.tokens import Unbalanced
from sluice.mapping.violation import ENCODING, MALFORMED, TYPE, Violation, shown_token
from sluice.model.fields import TypeName

_LIST: Final = msgspec.json.Decoder(list[Raw])


def value_of(kind: ExactType, token: bytes) -> Any:
    """Return the value of a token; null is None."""
    if token == b"null":
        return None
    if kind.item is not None:
        return paired(list(_items(kind, kind.item, token)))
    if CONTAINER in kind.accepts:
        return kind.from_text(_utf8(token))
    form, text = _scalar(token)
    if form not in kind.accepts:
        raise Violation(TYPE, f"{shown_token(token)} is {form}, not {kind.name}")
    if not text and kind.name != TypeName.TEXT:
        raise Violation(TYPE, f"an empty string is no {kind.name}")
    return kind.from_text(text)


def text_of(token: bytes) -> str | None:
    """Return the text of a token, numbers and truth values as they are written; null is None."""
    if token == b"null":
        return None
    form, text = _scalar(token)
    if form == CONTAINER:
        raise Violation(TYPE, f"{shown_token(token)} is {form}, not a text")
    return text


def token_text(token: bytes) -> str | None:
    """Return a token as it is written; null is None."""
    return None if token == b"null" else _utf8(token)


def items_of(token: bytes) -> list[bytes]:
    """Return the tokens of the items of an array; raise `Violation` if it is damaged beyond that."""
    try:
        return [bytes(part) for part in _LIST.decode(token)]
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        return [token[start:end] for _, start, end in tokens.items(token)]
    except Unbalanced:
        raise Violation(MALFORMED, f"{shown_token(token)} is not JSON") from None


def _items(kind: ExactType, item: ExactType, token: bytes) -> Iterator[Any]:
    """Yield the items of an array; what is wrong with one is told with its place, the first being 0."""
    if tokens.opens(token) != b"[":
        raise Violation(TYPE, f"{shown_token(token)} is no array, which {kind.name} has to be")
    for place, part in enumerate(items_of(token)):
        try:
            yield value_of(item, part)
        except Violation as violation:
            raise Violation(violation.error, f"item {place}: {violation.message}") from None


def _scalar(token: bytes) -> tuple[str, str]:
    """Return what kind of JSON value a token is, and its text."""
    match token[:1]:
        case b'"':
            return STRING, _string(token)
        case b"{" | b"[":
            return CONTAINER, ""
    text = _utf8(token)
    if text in ("true", "false"):
        return BOOLEAN, text
    if is_number(text):
        return NUMBER, text
    raise Violation(MALFORMED, f"{shown_token(token)} is not JSON")


def _utf8(token: bytes) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError:
        raise Violation(ENCODING, f"{shown_token(token)} has bytes that are not UTF-8") from None


def _string(token: bytes) -> str:
    try:
        return msgspec.json.decode(token, type=str)
    except msgspec.MsgspecError:
        pass
    try:
        json.loads(_utf8(token))
    except ValueError:
        raise Violation(MALFORMED, f"{shown_token(token)} is not JSON") from None
    raise Violation(ENCODING, f"{shown_token(token)} has a lone surrogate")
