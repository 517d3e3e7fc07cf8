"""The account of a run, as people read it."""

import re
from datetime import timedelta
from typing import Any

import pytest

from sluice.cli.account import Account, draw_account
from sluice.cli.output import Output
from sluice.model.base import PublicationId, ReviewId, ShardKey, Token
from sluice.model.ledger import Outcome, Publication
from sluice.model.lifecycle import RunStatus, ShardStatus, Step, Verdict
from sluice.model.review import Choice, Decision, Figures
from sluice.model.run import Failure, Mode, Window
from sluice.model.shard import Shard
from tests.support.nouns import NOW, a_review, a_run

RUN = a_run("inline-1", status=RunStatus.WAITING, step=Step.GATE)
REVIEW = a_review("r1", run=RUN.id).model_copy(
    update={
        "figures": Figures(seen=1500, unchanged=300, live_before=1200, outcomes={Outcome.CREATED: 1200, Outcome.DELETED: 0}),
        "reasons": ("1,200 created, more than 20%",),
    }
)
PUBLICATION = Publication(
    id=PublicationId(7),
    sync="hotels",
    review=REVIEW.id,
    run=RUN.id,
    counts={Outcome.CREATED: 1200, Outcome.DELETED: 0},
    applied_at=NOW,
)


def a_shard(key: str, status: ShardStatus, **changes: Any) -> Shard:
    """Return a shard of the run."""
    return Shard(run=RUN.id, key=ShardKey(key), params={}, status=status, token=Token(1), **changes)


def drawn(capsys: pytest.CaptureFixture[str], **parts: Any) -> str:
    """Return what an account looks like."""
    account = Account(**{"run": RUN, "shards": [], "review": None, "publication": None, **parts})
    Output().result({}, lambda console: draw_account(console, account))
    return capsys.readouterr().out


def test_a_review_that_waits_says_why_and_how_to_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """The figures, the reasons and the commands that decide stand together."""
    told = drawn(capsys, review=REVIEW)
    assert "waiting (at gate)" in told
    assert "because 1,200 created, more than 20%" in told
    assert "sluice review show r1" in told
    assert "sluice review approve r1" in told
    assert "--deletes-at-most" not in told
    assert re.search(r"created +1,200 +new in the table", told)
    assert "nothing published" in told


def test_a_review_that_deletes_says_how_to_let_so_many_through(capsys: pytest.CaptureFixture[str]) -> None:
    """The command to answer with names the number, which whoever runs it has read then."""
    deleting = REVIEW.model_copy(update={"figures": REVIEW.figures.model_copy(update={"outcomes": {Outcome.DELETED: 39}})})
    told = drawn(capsys, review=deleting)
    assert "sluice review approve r1 --deletes-at-most 39   (or --without-deletes, or reject)" in told


def test_what_became_of_a_review_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """By which newer one it was superseded, and what number of deletions a decision let through."""
    superseded = REVIEW.model_copy(update={"verdict": Verdict.SUPERSEDED, "superseded_by": ReviewId("r2")})
    assert re.search(r"superseded by +r2", drawn(capsys, review=superseded))
    decision = Decision(choice=Choice.APPROVE, by="ada", via="cli", comment="closed", deletes_at_most=39, at=NOW)
    approved = REVIEW.model_copy(update={"verdict": Verdict.APPROVED, "decision": decision})
    told = drawn(capsys, review=approved)
    assert "approve by ada (cli), 2026-01-31 12:00:00Z, at most 39 deletions: closed" in told


def test_a_publication_is_told_with_its_counts_and_decision(capsys: pytest.CaptureFixture[str]) -> None:
    """What was published, who approved it and why: in one place, and no longer how to answer."""
    decision = Decision(choice=Choice.APPROVE, by="ada", via="cli", comment="fine", at=NOW)
    approved = REVIEW.model_copy(update={"verdict": Verdict.APPROVED, "decision": decision})
    told = drawn(capsys, review=approved, publication=PUBLICATION)
    assert "approve by ada (cli), 2026-01-31 12:00:00Z: fine" in told
    assert "publication 7, 2026-01-31 12:00:00Z: 1,200 created\n" in told
    assert "sluice review approve" not in told


@pytest.mark.parametrize(("status", "told"), [(RunStatus.WAITING, "follows"), (RunStatus.SUCCEEDED, "result of")])
def test_whose_outcome_a_run_has(capsys: pytest.CaptureFixture[str], status: RunStatus, told: str) -> None:
    """A run that waits for another names it, and so does one that has another's result."""
    run = a_run("inline-2", status=status, follows=RUN.id)
    assert re.search(rf"^{told} +inline-1 *$", drawn(capsys, run=run), re.MULTILINE)


def test_a_rollback_says_what_it_takes_back(capsys: pytest.CaptureFixture[str]) -> None:
    """By the number of the publication, as it was asked for."""
    run = a_run("inline-2", mode=Mode.ROLLBACK, undoes=PublicationId(1700))
    assert re.search(r"^takes back +publication 1700 *$", drawn(capsys, run=run), re.MULTILINE)


def test_a_replay_says_what_it_maps_again(capsys: pytest.CaptureFixture[str]) -> None:
    """By the id of the run that has fetched it."""
    run = a_run("inline-2", mode=Mode.REPLAY, replays=RUN.id)
    assert re.search(r"^maps again +what run inline-1 has fetched *$", drawn(capsys, run=run), re.MULTILINE)


def test_a_replay_of_a_window_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """It names no run."""
    window = Window(start=NOW, end=NOW + timedelta(days=1))
    told = drawn(capsys, run=a_run("inline-2", mode=Mode.REPLAY, window=window))
    assert re.search(r"^maps again +what all runs have fetched that were begun within *$", told, re.MULTILINE)


@pytest.mark.parametrize(
    ("versions", "told"), [((None, None), "version 1"), ((1, 7), "version 1: 1 shards, version 7: 1 shards")]
)
def test_which_versions_make_its_shards(
    capsys: pytest.CaptureFixture[str], versions: tuple[int | None, ...], told: str
) -> None:
    """One, or how many shards each of two."""
    shards = [
        Shard(
            run=RUN.id, key=ShardKey(f"s{at}"), params={}, status=ShardStatus.PENDING, token=Token(0), transformer_version=made
        )
        for at, made in enumerate(versions)
    ]
    assert re.search(rf"^transformer +{told} *$", drawn(capsys, shards=shards), re.MULTILINE)


def test_a_failed_shard_names_its_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """Failures of the run and of its shards are told, without what a supplier may have put into them."""
    failure = Failure(error="AnswerNotJson", message="not JSON: \x1b[2Jhello")
    shard = Shard(
        run=RUN.id, key=ShardKey("tokyo"), params={}, status=ShardStatus.FAILED, token=Token(2), failure=failure, attempt=3
    )
    run = RUN.model_copy(update={"status": RunStatus.FAILED, "failure": failure, "finished_at": NOW})
    told = drawn(capsys, run=run, shards=[shard])
    assert "AnswerNotJson: not JSON: \\x1b[2Jhello" in told
    assert "\x1b" not in told
    assert "(at " not in told


def test_an_unreachable_target_hides_only_the_publication(capsys: pytest.CaptureFixture[str]) -> None:
    """That it cannot be told whether something was published is not the same as that nothing was."""
    told = drawn(capsys, unknown="the target database cannot be reached")
    assert "whether it was published is unknown: the target database cannot be reached" in told
    assert "nothing published" not in told


def test_of_many_shards_those_are_shown_that_are_not_done(capsys: pytest.CaptureFixture[str]) -> None:
    """What each status comes to, and the failed ones by name; thousands are no table to read."""
    done = [a_shard(f"{n}-{n + 9}", ShardStatus.SUCCEEDED, records=10) for n in range(0, 20_000, 10)]
    failure = Failure(error="SupplierRefused", message="404 of that one")
    told = drawn(capsys, shards=[*done, a_shard("late", ShardStatus.FAILED, failure=failure)])
    assert re.search(r"succeeded +2,000 +0 +20,000", told)
    assert re.search(r"failed +1 +0 +0", told)
    assert "50 of 2,001 shards, those first that are not done" in told
    assert "404 of that one" in told
    assert len(told.splitlines()) < 100


def test_shards_are_ordered_as_people_order_them(capsys: pytest.CaptureFixture[str]) -> None:
    """A number in a key counts by its value."""
    told = drawn(capsys, shards=[a_shard(key, ShardStatus.PENDING) for key in ("1000-1999", "0-999", "20000-20999")])
    assert told.index("0-999") < told.index("1000-1999") < told.index("20000-20999")
