"""Keys are readable, safe on any store, and never shared."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.artifacts.keys import checked_prefix, encode, key_of, owner_of
from sluice.errors import ConnectionInvalid
from sluice.model.artifact import ArtifactKind, ArtifactRef
from sluice.model.base import RunId, ShardKey

awkward = st.text(st.sampled_from("a./-=_%~\\é\0 日"), max_size=6) | st.text(max_size=300)
refs = st.builds(
    ArtifactRef,
    sync=awkward,
    run=awkward,
    kind=st.sampled_from(ArtifactKind),
    shard=st.none() | awkward,
    seq=st.integers(0, 10**7),
    variant=awkward,
)


def test_keys_are_readable() -> None:
    """Ordinary names stand in a key as they are, and the place of a chunk is plain."""
    ref = ArtifactRef(sync="hotels", run=RunId("inline-1"), kind=ArtifactKind.RAW, shard=ShardKey("north"), seq=12)
    assert key_of(ref, "sluice") == "sluice/hotels/inline-1/raw/north/000012.chunk"
    diff = ArtifactRef(sync="hotels", run=RunId("manual__2024-01-01T00:00:00+00:00"), kind=ArtifactKind.DIFF, variant="v1.2")
    assert key_of(diff) == "hotels/manual__2024-01-01T00=3A00=3A00=2B00=3A00/diff/-/000000-v1.2.parquet"


@given(ref=refs, prefix=st.sampled_from(["", "a", "a/b.c"]))
def test_keys_are_safe(ref: ArtifactRef, prefix: str) -> None:
    """No part is empty, a dot part, or long; all characters are safe; the whole fits any store."""
    key = key_of(ref, prefix)
    parts = key.split("/")
    assert len(parts) == 5 + len([part for part in prefix.split("/") if part])
    assert all(re.fullmatch(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]{0,254}", part) for part in parts)
    assert len(key) <= 1024


@given(ref=refs, prefix=st.sampled_from(["", "a/", "a/b.c/"]))
def test_keys_tell_whose_they_are(ref: ArtifactRef, prefix: str) -> None:
    """Unless a name was cut; a key is nobody's below another prefix, or with anything in front of it."""
    key = key_of(ref, prefix.rstrip("/"))
    cut = any(len(encode(name)) == 160 for name in (ref.sync, ref.run))
    assert owner_of(key, prefix) == (None if cut else (ref.sync, ref.run))
    assert owner_of(key, f"{prefix}other/") is None
    assert owner_of(f"cold/{key}", "") is None
    assert owner_of(key.rpartition(".")[0], prefix) is None


@given(one=refs, other=refs)
def test_different_refs_have_different_keys(one: ArtifactRef, other: ArtifactRef) -> None:
    """No two refs share a key, not even by letter case or in part."""
    assert (key_of(one) == key_of(other)) == (one == other)


@given(one=awkward, other=awkward)
def test_names_stay_apart(one: str, other: str) -> None:
    """Encoding keeps any two names apart, also from the mark for no shard."""
    assert (encode(one) == encode(other)) == (one == other)
    assert encode(one) != "-"


def test_long_names_are_cut_and_told_apart() -> None:
    """Two names that differ at their ends alone have different parts of bounded length."""
    parts = {encode("x" * 400 + end) for end in "ab"} | {encode("x" * 160), encode("x" * 161)}
    assert len(parts) == 4
    assert max(map(len, parts)) == 160


@pytest.mark.parametrize("prefix", ["a//b", "../a", "a/.", "a b", "é", 7, "x" * 200])
def test_a_prefix_that_makes_no_safe_key_is_refused(prefix: object) -> None:
    """What a connection gives as prefix is checked, and the mend said."""
    with pytest.raises(ConnectionInvalid, match="connection sluice_artifacts: `prefix` in the extra must be"):
        checked_prefix("sluice_artifacts", prefix)


def test_outer_slashes_of_a_prefix_do_not_matter() -> None:
    """`/a/b/` is meant as `a/b`, and `/` as nothing."""
    assert [checked_prefix("c", prefix) for prefix in ("/a/b/", "/", "")] == ["a/b", "", ""]
