"""Code of a team's own: found by its dotted path, without taking anything else's place."""

import sys
from pathlib import Path

import pytest

from sluice.adapters.user_code import load
from sluice.errors import SpecInvalid


@pytest.fixture
def include(tmp_path: Path) -> Path:
    """A folder of a team."""
    (tmp_path / "parts_41d7").mkdir()
    (tmp_path / "parts_41d7/__init__.py").touch()
    (tmp_path / "parts_41d7/own.py").write_text("from parts_41d7.other import VALUE\n\ndef sign():\n    return VALUE\n")
    (tmp_path / "parts_41d7/other.py").write_text("VALUE = 7\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('this is no json')\n")
    (tmp_path / "broken_41d7.py").write_text("x = 1\n\ny = 1 / 0\n")
    (tmp_path / "odd_41d7.py").write_text("x = 1\n)\n")
    (tmp_path / "ends_41d7.py").write_text("exit(1)\n")
    return tmp_path


def test_what_is_in_the_folder_is_found(include: Path) -> None:
    """Packages and their modules, which import each other; the folder is out of sight afterwards, and nothing is written."""
    path = list(sys.path)
    assert load("parts_41d7.own.sign", include, "source.auth.by")() == 7
    assert sys.path == path
    assert not list(include.rglob("*.pyc"))


def test_what_is_installed_comes_first(include: Path) -> None:
    """A file of the team's cannot take the place of a module that others use."""
    import json

    assert load("json.dumps", include, "source.auth.by") is json.dumps


@pytest.mark.parametrize(
    ("dotted", "message"),
    [
        ("broken_41d7.sign", r"source\.code: broken_41d7 cannot be imported \(.*broken_41d7\.py:3\): ZeroDivisionError"),
        ("odd_41d7.sign", r"source\.code: odd_41d7 cannot be imported \(.*odd_41d7\.py:2\): SyntaxError"),
        ("ends_41d7.sign", r"source\.code: ends_41d7 cannot be imported \(.*ends_41d7\.py:1\): SystemExit"),
        ("absent_41d7.sign", r"source\.code: absent_41d7 cannot be imported \(.*\): ModuleNotFoundError"),
        ("parts_41d7.own.absent", r"source\.code: parts_41d7\.own \(.*own\.py\) has no absent"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_place(include: Path, dotted: str, message: str) -> None:
    """The place in the spec, and that in the code."""
    with pytest.raises(SpecInvalid, match=message):
        load(dotted, include, "source.code")
