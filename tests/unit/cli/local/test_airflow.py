"""Airflow on this machine: what it is told at each start, without starting it."""

from configparser import RawConfigParser
from pathlib import Path

from sluice.cli.local.airflow import AirflowServer


def test_whoever_is_logged_in_stays_so_when_it_is_begun_anew(tmp_path: Path) -> None:
    """A page that follows a run comes back by itself: what its login was signed with is the same, and nobody else's."""

    def secrets(home: Path) -> tuple[str, str]:
        AirflowServer(home, tmp_path, tmp_path / "logs", "sqlite://").configure()
        settings = RawConfigParser()
        settings.read(home / "airflow.cfg")
        return settings["api"]["secret_key"], settings["api_auth"]["jwt_secret"]

    first = secrets(tmp_path / "one")
    assert secrets(tmp_path / "one") == first
    assert not {*first} & {*secrets(tmp_path / "another")}
