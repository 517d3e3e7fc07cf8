"""What a person is told of a rollback that had nothing to do."""

import pytest

from sluice.cli.output import console
from sluice.cli.undo import UndoAccount, draw_end, draw_preview
from sluice.model.base import PublicationId, ReviewId, RunId
from sluice.model.ledger import Publication
from sluice.model.lifecycle import RunStatus, Verdict
from sluice.model.review import Figures
from sluice.model.run import Mode
from tests.support.nouns import NOW, a_review, a_run

UNDONE = Publication(
    id=PublicationId(1017),
    sync="hotels",
    review=ReviewId("r"),
    run=RunId("run-0"),
    counts={},
    approved_by="ada",
    applied_at=NOW,
)


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        (0, "publication 1017 changed no row: there is nothing to restore"),
        (3, "nothing is left to restore of publication 1017: somebody has changed each of its objects since"),
    ],
)
def test_why_nothing_is_restored(objects: int, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no object was changed in the first place, nobody has changed it since."""
    figures = Figures(seen=objects, unchanged=0, live_before=9, conflicts=objects, outcomes={})
    account = UndoAccount(
        undone=UNDONE,
        run=a_run(mode=Mode.ROLLBACK, undoes=UNDONE.id, status=RunStatus.SUCCEEDED),
        review=a_review("r1", figures=figures, verdict=Verdict.AUTO_APPROVED),
        evidence=None,
        conflicts=[],
        publication=None,
    )
    draw_end(console(stderr=False), account)
    assert capsys.readouterr().out.strip() == told


@pytest.mark.parametrize("is_of_redrive", [True, False])
def test_what_becomes_of_dead_letters_is_said_before(is_of_redrive: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """They stay closed, though what a redrive has published is taken back."""
    account = UndoAccount(UNDONE, a_run(mode=Mode.ROLLBACK, undoes=UNDONE.id), None, None, [], None, is_of_redrive)
    draw_preview(console(stderr=False), account)
    assert ("dead letters that it closed stay closed" in capsys.readouterr().out) is is_of_redrive
