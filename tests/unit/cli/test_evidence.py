"""The evidence of a review, as people read it on a terminal."""

import pytest

from sluice.cli.evidence import evidence_drawn
from sluice.cli.output import Output
from sluice.model.evidence import Evidence, VersionCount
from sluice.model.quality import Quality
from tests.support.evidence import some_evidence
from tests.support.nouns import a_review


def drawn(capsys: pytest.CaptureFixture[str], evidence: Evidence | None) -> str:
    """Return what it looks like."""
    Output().result({}, lambda console: console.print(evidence_drawn(a_review("r"), evidence)))
    return capsys.readouterr().out


def test_all_that_is_known_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """What becomes of the table, fields with an example, drift, shards beside what they delivered before, and objects."""
    told = [" ".join(line.split()) for line in drawn(capsys, some_evidence("Ritz")).splitlines()]
    assert "to the table: comment on column name is 'Ritz' -- its description changed" in told
    assert "name 2 Ritz: 'the Ritz' -> 'our Ritz'" in told
    assert "rooms population stability index 0.400" in told
    assert "shard (and 5 more) objects before" in told
    assert "Ritz 70 90, 100, 95" in told
    assert "dated after the fetch: 3, first: Ritz Ritz" in told
    assert "created: Ritz" in told
    assert "changed: Ritz, and 1 more" in told


def test_versions_are_laid_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    """How much each would change of what the table holds, new objects left out; nothing, where there is but one version."""
    made = [
        VersionCount(version=version, shards=shards, objects=110, created=10, changed=changed)
        for version, shards, changed in ((2, 9, 5), (3, 1, 40))
    ]
    told = [" ".join(line.split()) for line in drawn(capsys, some_evidence(versions=tuple(made))).splitlines()]
    assert "2 9 110 10 5 5.0%" in told
    assert "3 1 110 10 40 40.0%" in told
    assert "transformer" not in drawn(capsys, some_evidence())


def test_null_is_told_from_a_text_that_reads_like_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Texts stand in quotes."""
    (change,) = some_evidence().changes
    some = some_evidence(changes=(change.model_copy(update={"samples": (("a", None, "null"),)}),))
    assert "a: null -> 'null'" in drawn(capsys, some)


def test_a_supplier_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """What does not print is spelled out, wherever it stands."""
    told = drawn(capsys, some_evidence("\x1b[2J\r"))
    assert not {"\x1b", "\r"} & set(told)


def test_missing_evidence_is_told_as_missing(capsys: pytest.CaptureFixture[str]) -> None:
    """It never looks as if nothing had changed."""
    assert drawn(capsys, None).startswith("no evidence is kept of this review")


def test_nothing_to_tell_is_told_in_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    """A review without changes, drift or shards has an empty account of them."""
    nothing = {
        "changes": (),
        "samples": (),
        "drifts": (),
        "shards": (),
        "schema_changes": (),
        "postdated": None,
        "quality": None,
    }
    assert drawn(capsys, some_evidence(**nothing)).strip() == ""


def test_what_a_suite_found_is_told_with_its_cost(capsys: pytest.CaptureFixture[str]) -> None:
    """What is not met says how far from it, what could not be checked says why; a suite that was not run says so."""
    told = [" ".join(line.split()) for line in drawn(capsys, some_evidence("Ritz")).splitlines()]
    kind = "expect_column_values_to_be_in_set(name)"
    assert f"{kind} passed reject" in told
    assert any(
        line.startswith(f"{kind} failed reject 3 of 990 rows (0.3%) do not, for example 'Ritz' of Ritz") for line in told
    )
    assert "expect_column_mean_to_be_between(name) failed warn found Ritz" in told
    assert "expect_column_mean_to_be_between(name) not-checked block no Ritz" in told
    assert "1,000 rows, 7.2 s, 5.5 s of them for loading Great Expectations 1.24.1" in told
    skipped = drawn(capsys, some_evidence(quality=Quality(suite="hotels", not_run="nothing would change")))
    assert "suite hotels not run: nothing would change" in skipped
    assert "suite hotels could not be run: x" in drawn(capsys, some_evidence(quality=Quality(suite="hotels", trouble="x")))
