"""The pages as a browser gets them from Airflow's API server: behind its login, escaped, and locked down."""

import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from tests.dags.conftest import define
from tests.dags.driving import DrivenAirflow, token
from tests.support.servers import Supplier, new_bucket, throw_away_database

DAG = "sluice_hotels"


@pytest.fixture(scope="module")
def airflow(
    airflow_session: DrivenAirflow,
    postgres: PostgresServer,
    migrated_template: str,
    s3: S3Server,
    session_supplier: Supplier,
) -> Iterator[DrivenAirflow]:
    """An Airflow for all tests of this module: they only look."""
    session_supplier.reset()
    artifacts = new_bucket(s3, "pages")
    with throw_away_database(postgres, migrated_template) as database, pytest.MonkeyPatch.context() as patch:
        define(patch, database, artifacts, session_supplier.connection)
        yield airflow_session


@pytest.fixture(scope="module")
def parked(airflow: DrivenAirflow) -> str:
    """The id of a DagRun that waits for a person."""
    run = airflow.trigger(DAG, review="always")
    airflow.drive(DAG, run)
    return run


@pytest.fixture
def stranger(airflow_session: DrivenAirflow) -> Iterator[TestClient]:
    """A browser that nobody has logged in with."""
    headers = dict(airflow_session.client.headers)
    del airflow_session.client.headers["Authorization"]
    yield airflow_session.client
    airflow_session.client.headers.update(headers)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "style.css",
        "sluice.js",
        f"dags/{DAG}/dagRuns/x",
        f"dags/{DAG}/runs/x",
        f"dags/{DAG}/reviews/x",
        f"dags/{DAG}/reviews/x/packet",
        "docs",
        "openapi.json",
        "redoc",
    ],
)
def test_nothing_is_shown_without_a_login(stranger: TestClient, path: str) -> None:
    """Airflow protects no plugin's route, so each of ours does: there is none that a stranger gets an answer from."""
    assert stranger.get(f"/sluice/{path}").status_code in {401, 404}
    if path in {"", "style.css", "sluice.js"} or "/" in path:
        assert stranger.get(f"/sluice/{path}").status_code == 401


def test_the_tab_of_a_dag_run(airflow: DrivenAirflow, parked: str) -> None:
    """The DAG run's tab shows shards, figures, and how to decide; its links are relative and lead somewhere."""
    page = airflow.client.get(f"/sluice/dags/{DAG}/dagRuns/{parked}")
    assert page.status_code == 200
    assert "tokyo" in page.text
    assert "waiting" in page.text
    assert "needs-human" in page.text
    links = re.findall(r'href="([^"]+)"', page.text)
    assert links
    for link in links:
        assert not link.startswith(("/", "http"))
        target = page.url.join(link)
        assert airflow.client.get(target).status_code == 200, target


def test_the_review(airflow: DrivenAirflow, parked: str) -> None:
    """A review shows its reasons, its figures and some of its objects."""
    tab = airflow.client.get(f"/sluice/dags/{DAG}/dagRuns/{parked}")
    link = next(link for link in re.findall(r'href="([^"]+)"', tab.text) if "/reviews/" in link)
    page = airflow.client.get(tab.url.join(link))
    assert page.status_code == 200
    assert "a review was asked for" in page.text
    assert "Created: 20 of" in page.text
    assert "node/" in page.text
    packet = airflow.client.get(
        page.url.join(next(link for link in re.findall(r'href="([^"]+)"', page.text) if "/packet" in link))
    )
    assert packet.status_code == 200
    assert "a review was asked for" in packet.text
    assert packet.headers["content-security-policy"].startswith("sandbox; default-src 'none'")


def test_the_runs(airflow: DrivenAirflow, parked: str) -> None:
    """The list of runs shows those of the DAGs that the user may read."""
    page = airflow.client.get("/sluice/")
    assert page.status_code == 200
    assert "waiting" in page.text
    assert airflow.client.get("/sluice/?sync=another").text.count("<tr>") == 0


def test_a_run_is_shown_under_its_own_dag_only(airflow: DrivenAirflow, parked: str) -> None:
    """Permission for one DAG shows nothing of another's runs."""
    tab = airflow.client.get(f"/sluice/dags/{DAG}/dagRuns/{parked}")
    run = re.search(r"<code>([^<]+)</code>", tab.text)
    assert run is not None
    assert airflow.client.get(f"/sluice/dags/{DAG}/runs/{run[1]}").status_code == 200
    assert airflow.client.get(f"/sluice/dags/sluice_grouped/runs/{run[1]}").status_code == 404


def test_what_is_not_there_is_said_plainly(airflow: DrivenAirflow) -> None:
    """A DAG run that is none of ours gets a page that says so, with whatever its name holds escaped."""
    page = airflow.client.get(f"/sluice/dags/{DAG}/runs/<script>alert(1)<script>")
    assert page.status_code == 404
    assert "<script>" not in page.text
    assert "&lt;script&gt;" in page.text


@pytest.mark.parametrize("path", ["?sync=%00", f"dags/{DAG}/runs/%00", f"dags/{DAG}/reviews/%00", f"dags/{DAG}/dagRuns/%00"])
def test_what_cannot_be_a_name_is_refused(airflow: DrivenAirflow, path: str) -> None:
    """A character that Postgres takes in no text makes no error of ours."""
    assert airflow.client.get(f"/sluice/{path}").status_code == 404


def test_what_the_supplier_says_is_escaped(airflow: DrivenAirflow, session_supplier: Supplier) -> None:
    """An error message with the supplier's words in it is text, never markup."""
    session_supplier.control(garbage="html")
    run = airflow.trigger(DAG)
    airflow.drive(DAG, run)
    session_supplier.reset()
    page = airflow.client.get(f"/sluice/dags/{DAG}/dagRuns/{run}")
    assert page.status_code == 200
    assert "AnswerNotJson" in page.text
    assert "<h1>We will" not in page.text


def test_every_answer_is_locked_down(airflow: DrivenAirflow) -> None:
    """Pages and errors alike: no scripts but ours, no frames but Airflow's own, no sniffing, nothing cached."""
    for path in ("", "style.css", "sluice.js", f"dags/{DAG}/runs/none"):
        headers = airflow.client.get(f"/sluice/{path}").headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'self'" in headers["content-security-policy"]
        assert "script-src 'self';" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_airflow_lists_the_pages(airflow: DrivenAirflow) -> None:
    """Navigation and DAG runs carry an entry whose address is relative, so that it works behind a path prefix."""
    plugins = airflow.client.get("/api/v2/plugins").json()["plugins"]
    views = next(plugin for plugin in plugins if plugin["name"] == "sluice")["external_views"]
    assert {view["destination"] for view in views} == {"nav", "dag_run"}
    assert not any(view["href"].startswith("/") for view in views)


def test_a_viewer_may_look(airflow: DrivenAirflow, parked: str) -> None:
    """Whoever may read DAG runs in Airflow may read ours."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    viewer = token(get_auth_manager(), SimpleAuthManagerUser(username="vic", role="viewer"))
    page = airflow.client.get(f"/sluice/dags/{DAG}/dagRuns/{parked}", headers={"Authorization": f"Bearer {viewer}"})
    assert page.status_code == 200
