"""A stage that is added to those that are there."""

import pytest
import yaml

from sluice.cli.drafting.stages_file import with_stage
from sluice.errors import UsageInvalid


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ["new"]),
        ("stages:\n  a: {}", ["a", "new"]),
        ("stages:\n    a:\n        retry:\n            attempts: 3\n\n# of the defaults\ndefaults: {}\n", ["a", "new"]),
        ("defaults: {}\nstages:\n  a: # the first\n", ["a", "new"]),
    ],
)
def test_a_stage_is_added_behind_the_others(text: str | None, expected: list[str]) -> None:
    """All else stands as it stood, comments included."""
    after = with_stage(text, "new", "of the new sync")
    assert after is not None
    assert list(yaml.safe_load(after)["stages"]) == expected
    lines = iter(after.splitlines())
    assert all(line in lines for line in (text or "").splitlines())


def test_a_stage_that_is_there_or_cannot_be_added() -> None:
    """It is not written twice, nor into a file that is not in lines."""
    assert with_stage("stages:\n  a: {}\n", "a", "") is None
    for text in ("stages: {a: {}}\n", "defaults: {}\n", "[1, 2", "stages:\n"):
        with pytest.raises(UsageInvalid, match="declare the stage new there by hand"):
            with_stage(text, "new", "")
