"""Which shards a canary makes: always the same ones, more of them with a larger share, and about as many as it says."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sluice.errors import UsageInvalid
from sluice.model.base import ShardKey
from sluice.model.canary import CanarySpec
from sluice.model.spec import SyncSpec
from tests.unit.flow.workshop import sync_spec

SHARES = st.decimals("0.000001", 1, places=6)
KEYS = st.text(min_size=1, max_size=20).map(ShardKey)
MANY: Final = 4_000


def canary(share: object, version: int = 2) -> CanarySpec:
    """A canary of a share."""
    return CanarySpec.model_validate({"version": version, "share": share})


@given(first=SHARES, second=SHARES, key=KEYS)
def test_a_larger_share_only_adds_shards(first: object, second: object, key: ShardKey) -> None:
    """Whoever raises it step by step sees no shard go back."""
    small, large = (canary(share) for share in sorted((first, second), key=str))
    assert not small.makes("hotels", key) or large.makes("hotels", key)


@given(key=KEYS)
def test_all_is_all(key: ShardKey) -> None:
    """A share of 100% leaves no shard out."""
    assert canary("100%").makes("hotels", key)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_it_is_about_the_share(share: float) -> None:
    """Of many shards, within five standard deviations; of another sync or version, other ones."""
    keys = [ShardKey(f"shard-{number}") for number in range(MANY)]
    made = {key for key in keys if canary(f"{share:.0%}").makes("hotels", key)}
    spread = (share * (1 - share) * MANY) ** 0.5
    assert abs(len(made) - share * MANY) < 5 * spread
    assert made != {key for key in keys if canary(f"{share:.0%}").makes("rates", key)}
    assert made != {key for key in keys if canary(f"{share:.0%}", version=3).makes("hotels", key)}


def test_it_never_moves() -> None:
    """What was a canary's shard yesterday is one today, in every process and release."""
    keys = [ShardKey(name) for name in ("paris", "rome", "tokyo", "oslo", "lima", "cairo", "bonn", "kyiv")]
    assert [key for key in keys if canary("30%").makes("hotels", key)] == MADE


MADE: Final = ["oslo", "bonn"]


def with_canary(**changes: object) -> SyncSpec:
    """A spec of version 1 with a canary of version 2."""
    return sync_spec(canary=CanarySpec.model_validate({"version": 2, "share": "50%", **changes}))


def test_a_version_means_a_spec_of_it_alone() -> None:
    """The canary's fields, in the order of the spec's; the spec itself without its canary."""
    fields = [field.model_copy(update={"description": "other"}) for field in reversed(sync_spec().fields)]
    spec = with_canary(fields=[field.model_dump() for field in fields])
    assert spec.versions == (1, 2)
    assert spec.as_version(1) == sync_spec()
    meant = spec.as_version(2)
    assert (meant.version, meant.canary) == (2, None)
    assert [field.name for field in meant.fields] == [field.name for field in spec.fields]
    assert {field.description for field in meant.fields} == {"other"}
    assert with_canary().as_version(2).fields == spec.fields


@pytest.mark.parametrize(
    ("spec", "why"),
    [(with_canary(), "hotels is version 1, and its canary is version 2"), (sync_spec(), "hotels is version 1, and no canary")],
)
def test_no_other_version_is_known(spec: SyncSpec, why: str) -> None:
    """Both that there are are named."""
    with pytest.raises(UsageInvalid, match=f"{why}: there is no version 7"):
        spec.as_version(7)


def test_a_spec_without_one_is_written_as_before() -> None:
    """Its hash, by which requests are the same, stays what it was."""
    assert "canary" not in sync_spec().model_dump()
    assert SyncSpec.model_validate_json(with_canary().model_dump_json()) == with_canary()


@pytest.mark.parametrize("share", ["0%", "101%", 0.1, "a tenth"])
def test_a_share_is_a_share(share: object) -> None:
    """Above nothing, up to all."""
    with pytest.raises(ValidationError):
        canary(share)
