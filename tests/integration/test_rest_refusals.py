"""What RestSource refuses before it asks for anything: connections and specs that cannot work."""

from typing import Any

import pytest

from sluice.errors import ConnectionInvalid, SpecInvalid
from sluice.ports import ConnectionInfo
from tests.integration.test_rest_source import asking, source_spec, stage_policy
from tests.support.restraints import lone_source
from tests.support.scripted_supplier import scripted


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"host": ""}, "needs a host"),
        ({"host": "ftp://x"}, "allowed: http, https"),
        ({"host": "http://u:canary@x"}, "into login and password"),
        ({"host": "http://x?key=canary"}, "into the spec"),
        ({"host": "http://x:port-canary"}, "is no address"),
        ({"extra": {"headers": ["canary"]}}, "object of names and texts"),
        ({"extra": {"headers": {"X-Key": "canary\r\nHost: evil"}}}, "'X-Key' in the extra must be a text of one line"),
        ({"extra": {"headers": {"Content-Length": "5"}}}, "'Content-Length' in the extra is set by who sends the request"),
    ],
)
def test_a_connection_that_cannot_be_used(changes: dict[str, Any], message: str) -> None:
    """A bad connection is refused by name, before any request and without repeating what may be secret."""
    info = ConnectionInfo(
        "shop", "http", **({"host": "x", "port": None, "login": None, "password": None, "schema": None, "extra": {}} | changes)
    )
    with pytest.raises(ConnectionInvalid, match=f"connection shop.*{message}") as caught:
        lone_source(source_spec(), info, stage_policy())
    assert "canary" not in str(caught.value)


def test_specs_that_exclude_themselves() -> None:
    """Paths and templates that cannot work are refused with their place in the spec."""
    with scripted() as server:
        for changes, message in (
            ({"records": "data"} | {"cursor": {"path": "data.next", "parameter": "c"}}, "source.cursor.path"),
            ({"records": "data.next.list"} | {"cursor": {"path": "data.next", "parameter": "c"}}, "source.records"),
            ({"query": {"q": "{{ shard.region"}}, "source.query.q: is no valid template"),
        ):
            with pytest.raises(SpecInvalid, match=message):
                lone_source(source_spec(**changes), server.connection(), stage_policy())
        for changes, message in (
            ({"query": {"q": "{{ shard.land }}"}}, "source.query.q: cannot be rendered.*known: shard.region, window.start"),
            ({"query": {"q": "{{ ''.__class__.__mro__ }}"}}, "source.query.q: cannot be rendered"),
            ({"path": "/v1/../{{ shard.region }}"}, "leads elsewhere"),
        ):
            source = lone_source(source_spec(**changes), server.connection(), stage_policy())
            with pytest.raises(SpecInvalid, match=message):
                next(iter(source.pages(asking())))
        assert server.asked == []
