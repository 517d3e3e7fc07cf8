"""Triage, end to end: proposals are tried on stored objects and change nothing; what a person makes of them is redriven."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice.errors import CodeFailed
from sluice.flow.inline import run_inline
from sluice.model.reject import Cause
from sluice.model.run import Mode, Origin, Redrive, RunRequest
from sluice.ports import ConnectionInfo
from sluice.upkeep.triage import triaged
from tests.support.command_line import CommandLineHere
from tests.support.stall import SYNC, Stall, open_stall, price

SOON = {"first_load": "auto-approve", "auto_approve": {"created": 9, "rejected": "100%"}}
BOARD = {"name": "board", "type": "text", "map": {"half board": "hb", "bed and breakfast": "bb"}}


@pytest.fixture
def stall(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Stall]:
    declared = {"review": SOON, "fields": [*SYNC["fields"], BOARD]}
    with open_stall(tmp_path, database, artifacts, declared) as stall:
        yield stall


def edit(folder: Path, **changes: Any) -> None:
    """Edit the spec of the stall."""
    path = folder / "include/syncs/prices.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **changes}, sort_keys=False))


def with_board(key: str, board: str) -> dict[str, Any]:
    """An object with a board."""
    return price(key, 1, 1, board=board)


def test_a_proposal_is_tried_changes_nothing_and_mends_once_it_is_declared(stall: Stall, tmp_path: Path) -> None:
    """Two of three are spelled like what is mapped: the map that is proposed takes in two, after a person has written it."""
    stall.bring(
        [with_board("a", "half board"), with_board("b", "HALF-BOARD"), with_board("c", "Half Board"), with_board("d", "yurt")]
    )
    spec = stall.services.spec("prices")
    (group,) = triaged(stall.services, spec)
    assert (str(group.ward.cause), group.ward.objects) == ("unmapped:board", 3)
    (weighed,) = group.proposals
    assert (weighed.takes_in, weighed.of, weighed.refused) == (2, 3, None)
    assert stall.prices() == {"a": 1.0}
    assert len(stall.services.letter_desk.selected("prices", Redrive(), 9)) == 3

    edit(tmp_path, fields=[*SYNC["fields"], {**BOARD, **weighed.proposal.changes}])
    request = {"sync": "prices", "mode": Mode.REDRIVE, "redrives": Redrive(cause="unmapped:board"), "origin": Origin()}
    run_inline(stall.services, RunRequest.model_validate(request))
    assert stall.prices() == {"a": 1.0, "b": 1.0, "c": 1.0}
    assert [letter.reject.key for letter in stall.services.letter_desk.selected("prices", Redrive(), 9)] == ["d"]


def test_a_team_s_own_triage(stall: Stall, tmp_path: Path) -> None:
    """It is asked instead; what it proposes is tried alike, and a change that no spec could declare is told to be none."""
    code = """
        def triage(ward):
            yield {"because": f"{ward.cause} of {len(ward.specimens)}", "changes": {"map": {"yurt": "tent"}}}
            yield {"because": "nonsense", "changes": {"map": 3}}
            yield {"because": "ask the supplier"}
    """
    (tmp_path / "include/nurses.py").write_text("\n".join(line[8:] for line in code.splitlines()))
    edit(tmp_path, triage="nurses.triage")
    stall.bring([with_board("d", "yurt")])
    (group,) = triaged(stall.services, stall.services.spec("prices"), Cause(error="unmapped", field="board"))
    assert [(each.proposal.because, each.takes_in, each.refused is None) for each in group.proposals] == [
        ("unmapped:board of 1", 1, True),
        ("nonsense", 0, False),
        ("ask the supplier", None, True),
    ]


@pytest.mark.parametrize("body", ["raise OSError('no luck')", "return [3]", "return None"])
def test_a_triage_that_fails_says_so(stall: Stall, tmp_path: Path, body: str) -> None:
    """It is the team's code that failed, and no proposal is made up for it."""
    module = f"nurses_{zlib.crc32(body.encode())}"
    (tmp_path / f"include/{module}.py").write_text(f"def triage(ward):\n    {body}\n")
    edit(tmp_path, triage=f"{module}.triage")
    stall.bring([with_board("d", "yurt")])
    with pytest.raises(CodeFailed, match=f"triage {module}.triage failed: "):
        list(triaged(stall.services, stall.services.spec("prices")))


def test_the_command(stall: Stall, tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """The keys are printed as they would stand in the spec; a cause that is none is told."""
    known = {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts}
    sluice = CommandLineHere(tmp_path, known)
    assert "no dead letters are open" in sluice.call("dlq", "triage", "prices").stdout
    stall.bring([with_board("b", "HALF-BOARD"), {**price("c", 1, 1), "id": ["c"]}])
    shown = sluice.call("dlq", "triage", "prices").stdout
    assert "unmapped:board: 1 objects" in shown
    assert "which takes in 1 of 1" in shown
    assert "HALF-BOARD: hb" in shown
    assert "sluice dlq redrive prices --cause unmapped:board --review always" in shown
    told = sluice.ask("dlq", "triage", "prices", "--cause", "unmapped:board")
    assert told["causes"][0]["proposals"][0]["proposal"]["changes"]["map"]["HALF-BOARD"] == "hb"
    assert "type:nothing" in sluice.call("dlq", "triage", "prices", "--cause", "type:nothing").stderr
