"""A declared field comes in; how its value comes out of a record that is taken apart with care goes out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sluice.mapping.exact import CONTAINER, ExactType, exact_type
from sluice.mapping.expressions import Expression, expression_of
from sluice.mapping.literals import literal
from sluice.mapping.members import Members, Taken, taken_by
from sluice.mapping.values import text_of, token_text, value_of
from sluice.mapping.violation import Violation
from sluice.model.fields import FieldSpec
from sluice.model.paths import Path, spell_path


@dataclass(frozen=True)
class Found:
    """It stands at a path."""

    path: Path

    def value(self, kind: ExactType, members: Members) -> Any:
        """Return the value; raise `Violation` if there is none of the type."""
        token = members.find(self.path)
        return None if token is None else value_of(kind, token)


@dataclass(frozen=True)
class Made:
    """An expression makes it of texts."""

    paths: tuple[Path, ...]
    expression: Expression
    text: Callable[[bytes], str | None]
    """Returns the text of a token."""

    def value(self, kind: ExactType, members: Members) -> Any:
        """Return the value; raise `Violation` if there is none of the type."""
        return read(kind, self.expression.of(self._texts(members)))

    def _texts(self, members: Members) -> Iterator[str | None]:
        for path in self.paths:
            token = members.find(path)
            yield None if token is None else self._text(token, path)

    def _text(self, token: bytes, path: Path) -> str | None:
        try:
            return self.text(token)
        except Violation as violation:
            at = f"{spell_path(path)}: " if len(self.paths) > 1 else ""
            raise Violation(violation.error, f"{at}{violation.message}") from None


@dataclass(frozen=True)
class Given:
    """The spec says it."""

    given: Any

    def value(self, _: ExactType, __: Members) -> Any:
        """Return the value."""
        return self.given


@dataclass(frozen=True)
class Left:
    """It is what the other fields leave."""

    taken: Taken

    def value(self, kind: ExactType, members: Members) -> Any:
        """Return the value; raise `Violation` if a member cannot be kept."""
        return value_of(kind, members.rest(self.taken))


Origin: TypeAlias = Found | Made | Given | Left


def origin_of(field: FieldSpec, kind: ExactType, fields: Sequence[FieldSpec]) -> Origin:
    """Return where the value of one of some fields comes from; raise `Violation` if its constant is none of its type."""
    if field.constant is not None:
        return Given(literal(exact_type(field.type), field.constant))
    if field.rest:
        return Left(taken_by(path for other in fields for path in other.paths))
    if field.is_expression:
        return Made(field.paths, expression_of(field), token_text if _is_container(kind) else text_of)
    return Found(field.paths[0])


def read(kind: ExactType, text: str | None) -> Any:
    """Return the value of the text that an expression came to."""
    if text is None:
        return None
    return value_of(kind, text.encode()) if _is_container(kind) else kind.from_text(text)


def _is_container(kind: ExactType) -> bool:
    return kind.item is not None or CONTAINER in kind.accepts
