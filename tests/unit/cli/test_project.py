"""Finding the project, and what its local stack has left in the environment."""

from pathlib import Path

import pytest

from sluice.cli.project import find_project, load_environment, project_settings
from sluice.errors import UsageInvalid


def test_the_project_is_the_nearest_folder_upwards(project: Path) -> None:
    """From any folder below it the project is found; a folder that merely is called include makes none."""
    below = project / "dags" / "deep" / "include"
    below.mkdir(parents=True)
    assert find_project(below) == project
    assert find_project(project) == project
    assert find_project(Path("/usr")) is None


def test_outside_of_a_project_the_mend_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no project, the error says what one is."""
    monkeypatch.delenv("SLUICE_INCLUDE", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageInvalid, match=r"is in no Sluice project .*SLUICE_INCLUDE"):
        project_settings()


def test_the_include_folder_can_be_elsewhere(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SLUICE_INCLUDE goes before the project around the working directory."""
    assert project_settings().include == project / "include"
    monkeypatch.setenv("SLUICE_INCLUDE", "/srv/include")
    assert project_settings().include == Path("/srv/include")


def test_the_stacks_environment_fills_gaps_only(tmp_path: Path) -> None:
    """What is set stays; values are taken as they stand, with quotes, spaces and further equal signs."""
    (tmp_path / ".sluice").mkdir()
    (tmp_path / ".sluice/env").write_text('# made by sluice up\n\nA=from file\nB={"x": "a=b"}\nC=\nno entry\n#D=1\n')
    environ = {"A": "set"}
    load_environment(tmp_path, environ)
    assert environ == {"A": "set", "B": '{"x": "a=b"}', "C": ""}


def test_without_a_stack_the_environment_stays_as_it_is(tmp_path: Path) -> None:
    """A project whose stack was never up is in order."""
    environ: dict[str, str] = {}
    load_environment(tmp_path, environ)
    assert environ == {}
