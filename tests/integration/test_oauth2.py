"""OAuth2 client credentials, against a real HTTP server whose newest token kills the older ones."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from sluice.adapters.postgres import conninfo
from sluice.adapters.sources.rest.source import RestSource
from sluice.adapters.sources.transport.proof import Proofs
from sluice.errors import AnswerUnusable, SluiceError, SpecInvalid, SupplierRefused, SupplierUnavailable
from sluice.model.source import RestSource as RestSpec
from sluice.model.stage import RetryPolicy, StagePolicy
from sluice.ports import ConnectionInfo, PageRequest
from tests.support.restraints import lone_source
from tests.support.scripted_supplier import answer, scripted
from tests.support.wary_supplier import CLIENT, SECRET, WarySupplier, wary_supplier
from tests.unit.fakes.access_token_store import MemoryAccessTokenStore
from tests.unit.fakes.clock import FakeClock

REQUEST = PageRequest(shard={}, cursor=None, watermark=None, window_start=None, window_end=None)
POLICY = StagePolicy(retry=RetryPolicy(attempts=3, base=timedelta(milliseconds=1)))


def source_spec(**auth: Any) -> RestSpec:
    """A source whose host issues tokens."""
    declared = {"kind": "rest", "connection": "shop", "path": "/hotels", "cursor": {"kind": "none"}}
    return RestSpec.model_validate(declared | {"auth": {"kind": "oauth2", "token": "/token"} | auth})


@dataclass
class Workers:
    """Those who share tokens, and the clock they go by."""

    clock: FakeClock = field(default_factory=FakeClock)
    store: MemoryAccessTokenStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = MemoryAccessTokenStore(self.clock)

    def another(self, info: ConnectionInfo, **auth: Any) -> RestSource:
        """Return the source of one more worker."""
        return lone_source(source_spec(**auth), info, POLICY, Proofs(self.store, self.clock, Path()))


@pytest.fixture
def workers() -> Workers:
    """Workers without a token."""
    return Workers()


@pytest.fixture
def shop() -> Iterator[WarySupplier]:
    """The supplier."""
    with wary_supplier() as server:
        yield server


def ask(source: RestSource, times: int = 1) -> None:
    """Ask for the pages so many times."""
    for _ in range(times):
        assert [page.records for page in source.pages(REQUEST)] == [1]


def test_workers_share_one_token(shop: WarySupplier, workers: Workers) -> None:
    """Whoever comes first asks, the others find the token; what is kept of it tells nobody anything."""
    shop.issue = {"expires_in": 3600}
    for worker in [workers.another(shop.connection()) for _ in range(3)]:
        ask(worker, 2)
    assert (shop.issued, shop.refused) == (1, 0)
    assert b"token-1" not in b"".join(sealed for sealed, _ in workers.store.sealed.values())


def test_what_a_token_request_says(shop: WarySupplier, workers: Workers) -> None:
    """Grant, scope and further parameters go into the form; id and secret into the header, or into the form if declared."""
    ask(workers.another(shop.connection(), scope="read write", parameters={"audience": "hotels"}))
    assert shop.forms == [{"grant_type": "client_credentials", "scope": "read write", "audience": "hotels"}]
    ask(workers.another(shop.connection(), credentials="body", scope="other"))
    assert shop.forms[1] == {
        "grant_type": "client_credentials",
        "scope": "other",
        "client_id": CLIENT,
        "client_secret": SECRET,
    }
    assert "authorization" not in shop.token_headers[1]


@pytest.mark.parametrize(("expires_in", "lives"), [(3600, 3540), ("100", 90), (100.0, 90), (10, 9)])
def test_a_token_is_renewed_before_it_ends(shop: WarySupplier, workers: Workers, expires_in: Any, lives: int) -> None:
    """A minute before its end, or in the last tenth of a short life, a new one is asked for, and no request is refused."""
    shop.issue = {"expires_in": expires_in}
    worker = workers.another(shop.connection())
    ask(worker)
    workers.clock.move(timedelta(seconds=lives - 0.5))
    ask(worker)
    assert shop.issued == 1
    workers.clock.move(timedelta(seconds=0.5))
    ask(worker)
    ask(workers.another(shop.connection()))
    assert (shop.issued, shop.refused) == (2, 0)


@pytest.mark.parametrize("expires_in", [None, 0, -5, "soon", True, [1], "nan"])
def test_a_token_without_a_usable_end_lasts_until_it_is_refused(shop: WarySupplier, workers: Workers, expires_in: Any) -> None:
    """Whatever else a supplier says of its life, a 401 ends it: it is renewed and the request repeated."""
    shop.issue = {} if expires_in is None else {"expires_in": expires_in}
    worker = workers.another(shop.connection())
    ask(worker)
    workers.clock.move(timedelta(days=400))
    ask(worker)
    assert (shop.issued, shop.refused) == (1, 0)
    shop.kill_token()
    ask(worker)
    assert (shop.issued, shop.refused) == (2, 1)


def test_a_worker_with_an_old_token_takes_the_new_one(shop: WarySupplier, workers: Workers) -> None:
    """Where the newest token kills the older ones, whoever is refused takes what another has got, and asks for none."""
    first, second = workers.another(shop.connection()), workers.another(shop.connection())
    ask(first)
    ask(second)
    shop.kill_token()
    ask(first)
    ask(second)
    assert (shop.issued, shop.refused) == (2, 2)


def test_threads_of_one_worker_renew_once(shop: WarySupplier, workers: Workers) -> None:
    """Requests that are refused at the same time cost one token."""
    worker = workers.another(shop.connection())
    ask(worker)
    shop.kill_token()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: ask(worker), range(24)))
    assert (shop.issued, shop.most_asking) == (2, 1)


def test_a_second_refusal_is_one(workers: Workers) -> None:
    """A fresh token that is refused as well is not renewed again."""
    tokens = [answer({"access_token": f"t{number}"}) for number in range(2)]
    with scripted(tokens[0], answer({}, "401 Unauthorized"), tokens[1], answer({}, "401 Unauthorized")) as server:
        worker = workers.another(server.connection(login=CLIENT, password=SECRET))
        with pytest.raises(SupplierRefused, match=r"401 Unauthorized.*connection shop"):
            ask(worker)
        assert server.asked == ["/token", "/hotels", "/token", "/hotels"]


def test_a_supplier_that_issues_the_refused_token_again(workers: Workers) -> None:
    """Another try with the same token would end the same."""
    token = answer({"access_token": "t"})
    with scripted(token, answer({}, "401 Unauthorized"), token) as server:
        with pytest.raises(SupplierRefused, match="401 Unauthorized"):
            ask(workers.another(server.connection(login=CLIENT, password=SECRET)))
        assert server.asked == ["/token", "/hotels", "/token"]


@pytest.mark.parametrize("status", [400, 401, 403])
def test_id_and_secret_that_are_not_taken(shop: WarySupplier, workers: Workers, status: int) -> None:
    """A refusal of the client names the connection, the supplier's words and nothing secret, and is not repeated."""
    shop.trouble = [(status, {"error": "invalid_client", "of": f"{CLIENT}:{SECRET}"})]
    message = (
        rf"POST .*/token: no access token: the supplier answered {status}: .*invalid_client.*password .* of connection shop"
    )
    with pytest.raises(SupplierRefused, match=message) as caught:
        ask(workers.another(shop.connection()))
    assert len(shop.forms) == 1
    assert CLIENT not in str(caught.value)
    assert SECRET not in str(caught.value)


def test_an_error_under_status_200(shop: WarySupplier, workers: Workers) -> None:
    """Some say so that a client is not known."""
    shop.trouble = [(200, {"error": "invalid_client"})]
    with pytest.raises(SupplierRefused, match="no access token: the supplier says invalid_client"):
        ask(workers.another(shop.connection()))


def test_tokens_that_come_late(shop: WarySupplier, workers: Workers) -> None:
    """A server error where tokens come from is one of the supplier, to be tried again."""
    shop.trouble = [(503, {"error": "maintenance"}), (500, {})]
    ask(workers.another(shop.connection()))
    assert shop.issued == 1
    shop.kill_token()
    shop.trouble = [(500, {})] * 9
    with pytest.raises(SupplierUnavailable, match=r"POST .*/token: the supplier answered 500"):
        ask(workers.another(shop.connection()))
    assert len(shop.trouble) == 6


@pytest.mark.parametrize(
    "said",
    [b"<html>", [], {"accessToken": "t0k3n"}, {"access_token": ""}, {"access_token": "a\r\nb"}, {"access_token": "x" * 20_000}],
)
def test_answers_without_a_token(shop: WarySupplier, workers: Workers, said: Any) -> None:
    """What is no token is named, and never quoted: it might be one."""
    shop.trouble = [(200, said)]
    with pytest.raises(AnswerUnusable, match=r"POST .*/token: the answer") as caught:
        ask(workers.another(shop.connection()))
    assert "t0k3n" not in str(caught.value)


def test_tokens_from_another_host(shop: WarySupplier, workers: Workers) -> None:
    """A declared address needs no further permission; it gets id and secret, and nothing else of the connection."""
    with scripted(answer([])) as api:
        address = f"http://127.0.0.1:{shop.server_address[1]}/oauth/token?tenant=1"
        info = api.connection(login=CLIENT, password=SECRET, extra={"headers": {"X-Own": "own"}})
        list(workers.another(info, token=address).pages(REQUEST))
        assert api.headers[0]["authorization"] == f"Bearer {shop.token}"
        assert api.headers[0]["x-own"] == "own"
    assert "x-own" not in shop.token_headers[0]


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("token", "has to be a path such as /token, or an address"),
        ("ftp://x/token", "has to be a path"),
        ("http://u:p@x/token", "has to be a path"),
        ("http://[x/token", "is no address"),
        ("http://x/token", "sent in the open: use https"),
    ],
)
def test_addresses_that_cannot_be_used(workers: Workers, token: str, message: str) -> None:
    """What is no place for tokens, or would show the secret on the way, is refused before anything is sent."""
    info = ConnectionInfo("shop", "http", "https://api.example.com", None, CLIENT, SECRET, None, {})
    with pytest.raises(SpecInvalid, match=rf"source\.auth\.token: .*{message}"):
        workers.another(info, token=token)


def test_another_secret_opens_no_token(shop: WarySupplier, workers: Workers) -> None:
    """Who has another secret, such as the one before it was changed, gets nothing out of what is kept."""
    ask(workers.another(shop.connection()))
    with pytest.raises(SupplierRefused, match="invalid_client"):
        ask(workers.another(shop.connection(password="an older secret")))


def test_tokens_are_secrets(workers: Workers) -> None:
    """A supplier that repeats the token in errors does not get it into a message or a log."""
    token = "t0k3n/+&é-and-more"
    echo = f"no {token} {json.dumps(token)}".encode()
    with scripted(answer({"access_token": token}), answer(echo, "500 Server Error"), answer(echo)) as server:
        worker = workers.another(server.connection(login=CLIENT, password=SECRET))
        with capture_logs() as logs, pytest.raises(SluiceError) as caught:
            ask(worker)
    assert logs
    assert "t0k3n" not in f"{caught.value} {caught.value.facts} {logs} {worker!r} {vars(worker)!r}"


WORKER = """
    import json, sys
    from pathlib import Path
    from sluice.adapters.clock import SystemClock
    from sluice.adapters.postgres import Database
    from sluice.adapters.sources.transport.proof import Proofs
    from sluice.adapters.state import PostgresAccessTokenStore
    from sluice.errors import StateUnavailable
    from sluice.ports import ConnectionInfo
    from tests.integration.test_oauth2 import POLICY, ask, source_spec
    from tests.support.restraints import lone_source

    state, shop, times = json.loads(sys.stdin.read())
    database = Database(ConnectionInfo(**state), StateUnavailable)
    proofs = Proofs(PostgresAccessTokenStore(database), SystemClock(), Path())
    ask(lone_source(source_spec(), ConnectionInfo(**shop), POLICY, proofs), times)
    print("done")
"""


def test_processes_share_a_supplier_that_lets_one_token_live(shop: WarySupplier, database: ConnectionInfo) -> None:
    """Three processes at once get all their pages, though the newest token kills the older ones and none lasts for long."""
    # The second one outlives what is left to ask for: who is slow to use it is not refused twice.
    shop.uses = 120
    told = json.dumps([vars(database), vars(shop.connection()), 60])
    command = [sys.executable, "-c", textwrap.dedent(WORKER)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    with ThreadPoolExecutor(3) as threads:
        said = list(threads.map(lambda process: process.communicate(told, timeout=120), started))
    assert [told for out, told in said if not out.endswith("done\n")] == []
    assert shop.most_asking == 1
    assert 2 <= shop.issued <= 2 + 3
    with psycopg.connect(conninfo(database)) as connection:
        kept = connection.execute("select client, sealed::text from sluice_state.access_token").fetchall()
    assert len(kept) == 1
    assert "token-" not in str(kept)
