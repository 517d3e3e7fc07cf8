"""The pages as a browser gets them from Airflow's API server: behind its login, escaped, and locked down."""

import re
from collections.abc import Iterator

import pytest
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from sluice.airflow_glue.plugin import pages
from sluice.airflow_glue.run_ids import run_id_of
from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from tests.dags.conftest import define
from tests.dags.driving import DrivenAirflow, token
from tests.support.servers import Supplier, new_bucket, throw_away_database

DAG = "sluice_hotels"
OURS = {"X-Sluice": "1", "Sec-Fetch-Site": "same-origin"}


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


@pytest.fixture(scope="module")
def refused(airflow: DrivenAirflow, session_supplier: Supplier) -> str:
    """The id of a DagRun that is over, since the supplier has answered with a page of its own."""
    session_supplier.control(garbage="html")
    run = airflow.trigger(DAG, shards=["tokyo"])
    airflow.drive(DAG, run)
    session_supplier.reset()
    return run


def test_nothing_is_shown_or_done_without_a_login(stranger: TestClient) -> None:
    """Airflow protects no plugin's route, so each of ours does; there are none that FastAPI adds of its own."""
    ours = [(method, route.path) for route in pages().routes if isinstance(route, APIRoute) for method in route.methods]
    assert len(ours) > 20
    for method, path in ours:
        address = re.sub(r"\{\w+\}", "1", path.replace("{dag_id}", DAG))
        assert stranger.request(method, f"/sluice{address}", headers=OURS).status_code == 401, (method, path)
    for path in ("docs", "openapi.json", "redoc"):
        assert stranger.get(f"/sluice/{path}").status_code in {401, 404}


def test_every_route_that_changes_something_asks_where_it_is_sent_from(airflow: DrivenAirflow) -> None:
    """Not one forgets to: no form of another site gets as far as to be looked at."""
    changing = [route.path for route in pages().routes if isinstance(route, APIRoute) and route.methods != {"GET"}]
    assert len(changing) > 5
    for path in changing:
        address = re.sub(r"\{\w+\}", "1", path.replace("{dag_id}", DAG))
        assert airflow.client.post(f"/sluice{address}", json={}, headers={"X-Sluice": "1"}).status_code == 403, path


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


def test_the_syncs(airflow: DrivenAirflow, parked: str) -> None:
    """All syncs at a glance, with what Airflow knows of their schedules; one of them with its runs."""
    page = airflow.client.get("/sluice/")
    assert page.status_code == 200
    assert f'href="./dags/{DAG}"' in page.text
    sync = airflow.client.get(f"/sluice/dags/{DAG}")
    assert sync.status_code == 200
    assert "waiting" in sync.text
    assert "<code>@daily</code>" in sync.text or "<code>0 0 * * *</code>" in sync.text


def test_what_happens_to_a_run_is_streamed(airflow: DrivenAirflow, refused: str) -> None:
    """A run that is over is told of to its end, as it is: neither packed, nor kept back, nor cached."""
    path = f"/sluice/dags/{DAG}/runs/{run_id_of(DAG, refused)}/events"
    events = airflow.client.get(path, headers={"Accept-Encoding": "gzip"})
    assert events.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "content-encoding" not in events.headers
    numbers = [int(number) for number in re.findall(r"^id: (\d+)$", events.text, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert events.text.endswith("event: rest\ndata: {}\n\n")


def test_a_run_is_shown_under_its_own_dag_only(airflow: DrivenAirflow, parked: str) -> None:
    """Permission for one DAG shows nothing of another's runs."""
    tab = airflow.client.get(f"/sluice/dags/{DAG}/dagRuns/{parked}")
    assert tab.status_code == 200
    run = run_id_of(DAG, parked)
    assert airflow.client.get(f"/sluice/dags/{DAG}/runs/{run}").status_code == 200
    assert airflow.client.get(f"/sluice/dags/sluice_grouped/runs/{run}").status_code == 404


def test_what_is_not_there_is_said_plainly(airflow: DrivenAirflow) -> None:
    """A DAG run that is none of ours gets a page that says so, with whatever its name holds escaped."""
    page = airflow.client.get(f"/sluice/dags/{DAG}/runs/<script>alert(1)<script>")
    assert page.status_code == 404
    assert "<script>" not in page.text
    assert "&lt;script&gt;" in page.text


@pytest.mark.parametrize(
    "path", [f"dags/{DAG}?before=%00", f"dags/{DAG}/runs/%00", f"dags/{DAG}/reviews/%00", f"dags/{DAG}/dagRuns/%00"]
)
def test_what_cannot_be_a_name_is_refused(airflow: DrivenAirflow, path: str) -> None:
    """A character that Postgres takes in no text makes no error of ours."""
    assert airflow.client.get(f"/sluice/{path}").status_code == 404


def test_what_the_supplier_says_is_escaped(airflow: DrivenAirflow, refused: str) -> None:
    """An error message with the supplier's words in it is text, never markup."""
    page = airflow.client.get(f"/sluice/dags/{DAG}/dagRuns/{refused}")
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
    assert {view["destination"] for view in views} == {"nav", "dag", "dag_run"}
    assert not any(view["href"].startswith("/") for view in views)


def test_a_viewer_may_look_and_touch_nothing(airflow: DrivenAirflow, parked: str) -> None:
    """Whoever may read DAG runs in Airflow may read ours; the page offers nothing, and what is sent all the same is refused."""
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    viewer = token(get_auth_manager(), SimpleAuthManagerUser(username="vic", role="viewer"))
    login = {"Authorization": f"Bearer {viewer}"}
    page = airflow.client.get(f"/sluice/dags/{DAG}/dagRuns/{parked}", headers=login)
    assert page.status_code == 200
    assert "<form" not in page.text
    cancel = f"/sluice/dags/{DAG}/runs/{run_id_of(DAG, parked)}/cancel"
    assert airflow.client.post(cancel, json={"reason": "x"}, headers={**OURS, **login}).status_code == 403


def test_lists_hold_what_one_may_read_the_runs_of(airflow: DrivenAirflow, monkeypatch: pytest.MonkeyPatch) -> None:
    """To read the DAG alone, which Airflow tells apart, is not enough."""
    auth = type(get_auth_manager())

    def may(_: object, *, method: str, access_entity: object = None, details: DagDetails | None = None, **__: object) -> bool:
        is_refused = access_entity is DagAccessEntity.RUN and details is not None and details.id == DAG
        return method == "GET" and not is_refused

    assert f"dags/{DAG}" in airflow.client.get("/sluice/").text
    monkeypatch.setattr(auth, "is_authorized_dag", may)
    page = airflow.client.get("/sluice/").text
    assert f"dags/{DAG}" not in page
    assert "dags/sluice_grouped" in page
    assert airflow.client.get(f"/sluice/dags/{DAG}").status_code == 403


@pytest.mark.parametrize("headers", [{}, {"X-Sluice": "1"}, {"X-Sluice": "1", "Sec-Fetch-Site": "cross-site"}])
def test_a_request_of_another_site_changes_nothing(airflow: DrivenAirflow, parked: str, headers: dict[str, str]) -> None:
    """However it is logged in: a browser sends its cookie along for anybody."""
    cancel = f"/sluice/dags/{DAG}/runs/{run_id_of(DAG, parked)}/cancel"
    assert airflow.client.post(cancel, json={"reason": "x"}, headers=headers).status_code == 403


def test_who_may_change_the_dag_cancels_a_run(airflow: DrivenAirflow, session_supplier: Supplier) -> None:
    """By the page's own request, under the name Airflow has for the user."""
    run = airflow.trigger(DAG, review="always", force=True)
    airflow.drive(DAG, run)
    page = f"/sluice/dags/{DAG}/runs/{run_id_of(DAG, run)}"
    assert "Cancel the run" in airflow.client.get(page).text
    done = airflow.client.post(f"{page}/cancel", json={"reason": "not today"}, headers=OURS)
    assert done.status_code == 200, done.text
    assert done.json()["message"].startswith("The run is cancelled.")
    after = airflow.client.get(page).text
    assert "not today" in after
    assert "cancel-run" in after
