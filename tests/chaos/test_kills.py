"""Workers are killed with SIGKILL: wherever they log an event, and in every commit they make."""

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from sluice.model.connections import STATE, TARGET
from tests.chaos.lab import Lab
from tests.chaos.story import Chapter, chapters
from tests.chaos.worker import Mark

T = TypeVar("T")

AT_ONCE = 3
SAMPLE = 3

each_chapter = pytest.mark.parametrize("number", range(len(chapters())), ids=[chapter.name for chapter in chapters()])


@pytest.mark.timeout(900)
@each_chapter
def test_a_worker_killed_at_an_event_loses_and_doubles_nothing(lab: Lab, is_full: bool, number: int) -> None:
    """Killed where it logs, among them between each artifact and its pointer, it is taken over; nobody can tell afterwards."""
    chapter = lab.story[number]
    events = lab.calm(chapter).events
    marks = _every(events) if is_full else _one_of_each(events)[:: 1 if number == 0 else 3]
    _try_all(lambda mark: _kill_at(lab, chapter, mark), marks)


@pytest.mark.timeout(900)
@each_chapter
@pytest.mark.parametrize("is_made", [False, True], ids=["that is rolled back", "that is made all the same"])
def test_a_worker_killed_in_a_commit_loses_and_doubles_nothing(lab: Lab, is_full: bool, number: int, is_made: bool) -> None:
    """Killed while the server commits for it, be it that the commit comes through or not; publications are among them."""
    chapter = lab.story[number]
    commits = lab.calm(chapter).commits
    places = [(TARGET, nth + 1) for nth in range(commits[TARGET])]
    places += [(STATE, nth + 1) for nth in _some(commits[STATE], all_of_them=is_full)]
    _try_all(lambda place: _kill_in_commit(lab, chapter, *place, is_made=is_made), places)


def _kill_at(lab: Lab, chapter: Chapter, mark: Mark) -> None:
    with lab.experiment(chapter) as experiment:
        worker = experiment.start(mark)
        experiment.kill(worker, f"killed at {worker.held().event}")
        experiment.go_on()
        experiment.check()


def _kill_in_commit(lab: Lab, chapter: Chapter, conn_id: str, nth: int, *, is_made: bool) -> None:
    with lab.experiment(chapter) as experiment:
        with experiment.commit_held(conn_id, nth) as commit:
            worker = experiment.start()
            session = commit.reached(worker)
            what = "publication's commit" if conn_id == TARGET else "commit of state"
            experiment.kill(worker, f"killed in a {what} that {'is made' if is_made else 'is rolled back'}")
            if is_made:
                commit.make()
            else:
                commit.refuse(session)
        experiment.go_on()
        experiment.check()


def _try_all(attempt: Callable[[T], Any], places: Iterable[T]) -> None:
    """Make all attempts, several at a time; tell of those that failed."""
    with ThreadPoolExecutor(AT_ONCE) as executor:
        attempts = {place: executor.submit(attempt, place) for place in places}
    told = [f"{place}: {error}" for place, made in attempts.items() if (error := made.exception()) is not None]
    assert not told, "\n".join(told[:5])


def _every(events: tuple[str, ...]) -> list[Mark]:
    return [Mark(nth + 1, event) for event, number in Counter(events).items() for nth in range(number)]


def _one_of_each(events: tuple[str, ...]) -> list[Mark]:
    """Return, for each name, a mark at the one in the middle of all of that name."""
    return [Mark(number // 2 + 1, event) for event, number in Counter(events).items()]


def _some(number: int, *, all_of_them: bool) -> list[int]:
    return list(range(number)) if all_of_them else sorted({round(n * (number - 1) / (SAMPLE - 1)) for n in range(SAMPLE)})
