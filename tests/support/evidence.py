"""Evidence for tests: some of everything that a review can show."""

from typing import Any

from sluice.model.base import ObjectKey, ShardKey
from sluice.model.evidence import (
    Bin,
    Drift,
    Evidence,
    FieldChange,
    FieldKind,
    FieldProfile,
    Measure,
    ObjectSample,
    Profile,
    ShardCount,
    ValueChange,
)
from sluice.model.ledger import Outcome
from sluice.model.quality import ExpectationResult, Met, Offender, OnFailure, Quality
from sluice.model.rows import Postdated


def some_evidence(word: str = "Grand Hotel", field: str = "name", **changes: Any) -> Evidence:
    """Return evidence in which `word` stands wherever the supplier's words may stand."""
    key, shard = ObjectKey(word), ShardKey(word)
    value = ValueChange(field=field, old=f"the {word}", new=f"our {word}")
    facts: dict[str, Any] = {
        "changes": (FieldChange(field=field, objects=2, samples=((key, f"the {word}", f"our {word}"), (key, None, ""))),),
        "samples": tuple(
            ObjectSample(key=key, outcome=outcome, shard=shard, old_shard=shard, old_version=1, version=2, values=(value,))
            for outcome in Outcome
        ),
        "profile": some_profile(word, (30, 50, 20)),
        "baseline": some_profile(word, (40, 30, 30)),
        "drifts": (
            Drift(field="rooms", measure=Measure.STABILITY_INDEX, value=0.4),
            Drift(field=field, measure=Measure.FREQUENCY_SHIFT, value=0.1),
        ),
        "shards": (ShardCount(shard=shard, objects=70, before=(90, 100, 95)), ShardCount(shard=shard, objects=3, before=())),
        "shards_in_all": 7,
        "postdated": Postdated(objects=3, key=key, value=word),
        "quality": some_quality(word, field),
        "schema_changes": (f"comment on column {field} is '{word}' -- its description changed",),
    }
    return Evidence(**{**facts, **changes})


def some_quality(word: str, field: str) -> Quality:
    """Return what a suite may find, of each kind."""
    failed = ExpectationResult(
        type="expect_column_values_to_be_in_set",
        columns=(field,),
        kwargs=f'{{"value_set": ["{word}"]}}',
        on_failure=OnFailure.REJECT,
        met=Met.FAILED,
        evaluated=990,
        unexpected=3,
        rejected=4,
        arriving=1,
        samples=(Offender(key=ObjectKey(word), value=word), Offender(value=None)),
    )
    whole = {
        "type": "expect_column_mean_to_be_between",
        "evaluated": None,
        "unexpected": None,
        "arriving": None,
        "samples": (),
        "rejected": 0,
    }
    return Quality(
        suite="hotels",
        engine="Great Expectations 1.24.1",
        rows=1000,
        results=(
            failed.model_copy(update={"met": Met.PASSED, "unexpected": 0, "arriving": None, "samples": (), "rejected": 0}),
            failed,
            failed.model_copy(update={**whole, "observed": word, "on_failure": OnFailure.WARN}),
            failed.model_copy(update={**whole, "met": Met.NOT_CHECKED, "why": f"no {word}", "on_failure": OnFailure.BLOCK}),
        ),
        seconds=7.25,
        import_seconds=5.5,
    )


def some_profile(word: str, rows: tuple[int, ...]) -> Profile:
    """Return a profile of a field of numbers, one of categories and one of neither."""
    bins = tuple(Bin(low=10 * place, high=10 * (place + 1), rows=count) for place, count in enumerate(rows))
    return Profile(
        rows=1000,
        looked_at=sum(rows),
        fields=(
            FieldProfile(
                field="rooms",
                kind=FieldKind.NUMBER,
                nulls=4,
                distinct=12,
                low="1",
                high="29",
                quantiles=((0.05, "2"), (0.25, "8"), (0.5, "14"), (0.75, "19"), (0.95, "26")),
                histogram=bins,
                deciles=bins,
            ),
            FieldProfile(field="name", kind=FieldKind.CATEGORY, nulls=0, distinct=2, categories={word: rows[0], "": rows[1]}),
            FieldProfile(field="tags", kind=FieldKind.OTHER, nulls=1, distinct=90, low=word, high=word),
        ),
    )
