"""Whom stages tell: what a project is told of notifiers that cannot tell anybody."""

from pathlib import Path

import pytest

from sluice.adapters.notifiers import is_absent, notifier_class, wrong_notifiers
from sluice.adapters.spec_files import SpecFiles

CODE = """
class BaseNotifier: ...
class Mail(BaseNotifier):
    def __init__(self, to): self.to = to
class Nobody: ...
"""
STAGES = """\
defaults:
  alerts:
    notify:
      warn:
        - {notifier: told_by_tests.Mail, arguments: {to: ada}}
        - {notifier: told_by_tests.Nobody}
stages:
  hotel-content: {}
  hotel-rates:
    alerts:
      notify:
        page: [{notifier: told_by_tests.Mail}]
        review: [{notifier: told_by_nobody.Mail}, {notifier: told_by_tests.Male}]
"""


@pytest.fixture
def include(tmp_path: Path) -> Path:
    """A folder of specs with notifiers of the team's own."""
    (tmp_path / "told_by_tests.py").write_text(CODE)
    (tmp_path / "stages.yaml").write_text(STAGES)
    return tmp_path


def told(include: Path, stage: str) -> list[str]:
    """Return what is wrong with a stage's notifiers, those left out that are not installed here."""
    files = SpecFiles(include)
    wrong = [(path, error.message) for path, error in wrong_notifiers(files.policy(stage), include) if not is_absent(error)]
    return [line.partition(":")[2] for line in files.placed_in_stages(stage, wrong)]


def test_what_cannot_tell_is_told_with_its_line(include: Path) -> None:
    """No notifier, no such class, arguments that it does not take; what is not installed here may be where tasks run."""
    nobody = "alerts.notify: told_by_tests.Nobody is no BaseNotifier of Airflow's"
    assert told(include, "hotel-content") == [f"6: defaults.alerts.notify.warn[1]: {nobody}"]
    _, page, review = told(include, "hotel-rates")
    arguments = "told_by_tests.Mail does not take these arguments: missing a required argument: 'to'"
    assert page == f"12: stages.hotel-rates.alerts.notify.page[0]: alerts.notify: {arguments}"
    assert review.startswith("13: stages.hotel-rates.alerts.notify.review[1]: ")
    assert review.endswith("has no Male")


def test_who_tells_is_made_as_the_stage_says(include: Path) -> None:
    """Of the class and the arguments that are declared."""
    (mail, _) = SpecFiles(include).policy("hotel-content").alerts.notify.warn
    assert notifier_class(mail, include)(**mail.arguments).to == "ada"
