"""A trial, as people read it."""

from typing import Any

import pytest

from sluice.cli.output import Output
from sluice.cli.trial import draw_trial
from sluice.model.base import ObjectKey, ShardKey
from sluice.model.evidence import ObjectSample, ValueChange
from sluice.model.ledger import Outcome
from sluice.model.run import Mode
from sluice.model.trial import Comparison, Trial, TrialReject, TrialRow

TRIAL = Trial(
    sync="hotels",
    mode=Mode.FULL,
    window=None,
    shard=ShardKey("paris"),
    params={"city": "paris", "country": "FR", "bytes": ""},
    shards=1200,
    watermark=None,
    until=None,
    pages=2,
    records=('{"id":"a","rate":1.50}', "no JSON \x1b[31m", '{"id":"c"}'),
    is_cut=True,
    columns={"id": "text", "rate": "numeric"},
    rows=(TrialRow(key=ObjectKey("a"), is_gone=False, values={"id": "a", "rate": None}),),
    rejects=(TrialReject(record=1, key=None, field=None, error="malformed", message="it is no JSON"),),
    paths="id, rate",
    hints=(),
    comparison=None,
    incomparable="there is no target",
)


def drawn(capsys: pytest.CaptureFixture[str], requests: int = 0, **changes: Any) -> str:
    """Return what a trial looks like."""
    asked = {"method": "GET", "address": "http://a/", "status": None, "bytes": None, "error": "SupplierUnavailable"}
    listed = [{**asked, "milliseconds": 7}] * requests
    trial = TRIAL.model_copy(update=changes)
    Output().result({}, lambda console: draw_trial(console, trial, listed, ["x.yaml:1: a: b"] if requests else []))
    return capsys.readouterr().out


def test_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers keep their spelling, nothing steers the terminal, and what is left out is said to be."""
    text = drawn(capsys, requests=31)
    for part in (
        "paris, of 1,200",
        "with   country FR ",
        "SupplierUnavailable",
        "and 1 more requests: see --json",
        "Records: 3 of 2 pages; there are more",
        '"rate": 1.50',
        "no JSON \\x1b[31m",
        "and 1 more: see --json",
        "Rejected: 1",
        "Not compared with the target: there is no target",
        "hint: x.yaml:1: a: b",
        "the records have: id, rate",
    ):
        assert part in text, text
    assert "\x1b" not in text


def test_what_would_change(capsys: pytest.CaptureFixture[str]) -> None:
    """Field by field; what is rejected has been told already."""
    changes = (ValueChange(field="rate", old="1.4", new=None), ValueChange(field="name", old="", new="x" * 100))
    objects = (
        ObjectSample(key=ObjectKey("a"), outcome=Outcome.CHANGED, shard=None, values=changes),
        ObjectSample(key=ObjectKey("new"), outcome=Outcome.CREATED, shard=None, values=changes),
        ObjectSample(key=ObjectKey("bad"), outcome=Outcome.REJECTED, shard=None, values=()),
    )
    outcomes = {Outcome.CHANGED: 1, Outcome.CREATED: 1, Outcome.REJECTED: 1}
    comparison = Comparison(table_changes=("alter table t",), outcomes=outcomes, unchanged=4, objects=objects)
    text = drawn(capsys, comparison=comparison)
    assert "to the table: alter table t" in text
    assert "1 changed, 1 created, 1 rejected, 4 unchanged" in text
    assert f'rate: 1.4 → null; name: "" → {"x" * 59}…' in text
    assert "bad " not in text


def test_nothing_came(capsys: pytest.CaptureFixture[str]) -> None:
    """That is said, too."""
    text = drawn(capsys, records=(), rows=(), rejects=(), pages=1, is_cut=False, paths=None)
    assert "Records: 0 of 1 page\n" in text
    assert "Rows: none" in text
