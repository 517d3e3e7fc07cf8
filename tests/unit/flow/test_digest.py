"""Digests: what an approval is bound to."""

import pytest

from sluice.flow.digest import content_digest, review_digest
from sluice.model.artifact import ArtifactKind
from sluice.model.run import Mode
from tests.support.nouns import a_pointer, a_run

RUN, DIFF = a_run(), a_pointer(kind=ArtifactKind.DIFF)
ROWS, MORE = a_pointer(kind=ArtifactKind.ROWS), a_pointer(kind=ArtifactKind.ROWS, seq=1, content="one more row")
STAGED = [ROWS]


@pytest.mark.parametrize(
    "other",
    [
        review_digest(a_run("run-2"), DIFF, STAGED, 0, ()),
        review_digest(a_run(spec_hash="6" * 64), DIFF, STAGED, 0, ()),
        review_digest(a_run(transformer_version=2), DIFF, STAGED, 0, ()),
        review_digest(RUN, a_pointer(kind=ArtifactKind.DIFF, content="other bytes"), STAGED, 0, ()),
        review_digest(RUN, DIFF, [ROWS, MORE], 0, ()),
        review_digest(RUN, DIFF, [a_pointer(kind=ArtifactKind.ROWS, content="another row")], 0, ()),
        review_digest(RUN, DIFF, STAGED, 1, ()),
        review_digest(RUN, DIFF, STAGED, 0, ("rooms drifted",)),
    ],
    ids=["run", "spec", "version", "diff", "more rows", "other rows", "shards", "checks"],
)
def test_an_approval_is_of_a_diff_under_a_spec(other: str) -> None:
    """Of another run, spec, version, diff, staged set, number of shards, or found by other checks, it is another one."""
    assert other != review_digest(RUN, DIFF, STAGED, 0, ())


def test_an_approval_outlives_what_does_not_shape_the_diff() -> None:
    """A new token, or another place of the same bytes."""
    moved = DIFF.model_copy(update={"key": "elsewhere"})
    later = RUN.model_copy(update={"token": 7, "mode": Mode.INCREMENTAL})
    assert review_digest(later, moved, STAGED, 0, ()) == review_digest(RUN, DIFF, STAGED, 0, ())


def test_bytes_have_a_short_name() -> None:
    """The same bytes the same one, others another."""
    assert content_digest(b"a") == content_digest(b"a") != content_digest(b"b")
    assert len(content_digest(b"")) == 16
