"""The pages about syncs: what is seen at a glance, by whom, and the runs of one."""

from typing import Any

import pytest

from sluice.model.base import RunId
from sluice.model.lifecycle import RunStatus
from sluice.model.overview import RestingStage
from sluice.model.run import Failure
from tests.support.nouns import NOW, a_run
from tests.unit.fakes.overview_store import MemoryOverviewStore
from tests.unit.flow.workshop import RUN, Workshop
from tests.unit.packet.reading import Reading
from tests.unit.web.visitor import Visitor


@pytest.fixture
def visitor() -> Visitor:
    """Somebody who may see two syncs; one of them has run."""
    workshop = Workshop()
    workshop.begin()
    return Visitor(workshop, reads={"sluice_hotels", "sluice_rates", "unrelated"})


def text(answer: Any) -> str:
    """Return what is read on a page."""
    assert answer.status_code == 200, answer.text
    return " ".join(Reading(answer.text).text.split())


def test_all_syncs_that_may_be_seen_are(visitor: Visitor) -> None:
    """Also one that never ran, neither a DAG that is no sync's, nor a sync whose DAG may not be read."""
    visitor.workshop.memory.runs[RunId("x")] = a_run("x", sync="secret")
    page = visitor.client().get("/")
    assert "hotels new" in text(page)
    assert "rates new" in text(page)
    assert "unrelated" not in page.text
    assert "secret" not in page.text
    links = {str(attributes["href"]) for tag, attributes in Reading(page.text).elements if tag == "a" and "href" in attributes}
    assert {"./dags/sluice_hotels", f"./dags/sluice_hotels/runs/{RUN}"} <= links


def test_who_may_see_nothing_is_told_so(visitor: Visitor) -> None:
    """The page is there all the same."""
    visitor.reads = set()
    assert "There are no syncs that you may see." in text(visitor.client().get("/"))


def test_a_supplier_that_is_left_alone_is_told_of(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the page of all syncs of the stage, and on that of each."""
    monkeypatch.setattr(MemoryOverviewStore, "resting", lambda _: [RestingStage(stage="hotel-content", until=NOW)])
    assert "a supplier is left alone" in text(visitor.client().get("/"))
    assert "A supplier of stage hotel-content is left alone until 2026-01-31 12:00:00 UTC" in text(visitor.get(""))


def test_the_runs_of_a_sync_come_a_page_at_a_time(visitor: Visitor) -> None:
    """Each page leads to the one of older runs, until there are none; a failure is told in its line."""
    memory = visitor.workshop.memory
    failure = Failure(error="ShardsFailed", message="shard <north>: 403")
    for number in range(60):
        run = a_run(f"run-{number:02}", status=RunStatus.FAILED, failure=failure, finished_at=NOW)
        memory.runs[run.id] = run
    newest = visitor.get("")
    assert "hotels failing" in text(newest)
    assert newest.text.count("shard &lt;north&gt;: 403") == 50
    assert "before=run-10" in newest.text
    older = visitor.get("", before="run-10")
    assert "run-09" in older.text
    assert "run-10<" not in older.text
    assert "Older</a>" not in older.text


def test_a_dag_of_others_has_no_page(visitor: Visitor) -> None:
    """Whoever may read it is told that it is none of ours."""
    assert visitor.client().get("/dags/unrelated").status_code == 404
    assert visitor.client().get("/dags/sluice_secret").status_code == 403
