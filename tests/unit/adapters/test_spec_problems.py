"""The wording of pydantic's errors, where no spec of today can show it."""

from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from sluice.adapters.spec_problems import problems_of
from sluice.model.base import Frozen


class Cat(Frozen):
    """One sort of pet."""

    kind: Literal["cat"]
    lives: int


class Dog(Frozen):
    """Another sort of pet."""

    kind: Literal["dog"]


class Owner(Frozen):
    """Something that holds a choice of sorts."""

    pets: tuple[Annotated[Cat | Dog, Field(discriminator="kind")], ...]


@pytest.mark.parametrize(
    ("pet", "path", "message"),
    [
        ({"kind": "cta", "lives": 9}, ("pets", 0, "kind"), "unknown value 'cta'; did you mean 'cat'? allowed: cat, dog"),
        ({"lives": 9}, ("pets", 0, "kind"), "missing: says which sort of thing this is"),
        ({"kind": "cat"}, ("pets", 0, "lives"), "missing"),
        (
            {"kind": "cat", "lives": 9, "live": 1},
            ("pets", 0, "live"),
            "unknown key; did you mean 'lives'? allowed: kind, lives",
        ),
    ],
)
def test_a_choice_of_sorts_is_told_without_pydantics_tags(
    pet: dict[str, object], path: tuple[str | int, ...], message: str
) -> None:
    """In a union told apart by `kind`, the place is a path of the YAML and the words are a person's."""
    with pytest.raises(ValidationError) as caught:
        Owner.model_validate({"pets": [pet]})
    (problem,) = problems_of(Owner, caught.value, {})
    assert (problem.path, problem.message) == (path, message)
