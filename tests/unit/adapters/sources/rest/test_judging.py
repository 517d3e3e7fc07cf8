"""What a refusal of a page behind the first means."""

from typing import Any

import pytest

from sluice.adapters.sources.rest.judging import judge_of
from sluice.adapters.sources.transport.request import Request
from sluice.errors import CursorExpired, PaginationLimit, RateLimited, SluiceError, SupplierRefused, SupplierUnavailable
from tests.unit.adapters.sources.rest.paging.listing import source_spec

BODY = {"kind": "body", "path": "next", "parameter": "cursor"}
OFFSET = {"kind": "offset", "size": 100}
KEYSET = {"kind": "keyset", "size": 100, "field": "at", "parameter": "after"}
LINK = {"kind": "link"}
HERE = Request("/things")


def judged(cursor: dict[str, Any], status: int, said: str, request: Request = HERE) -> type[SluiceError]:
    """What the refusal is called."""
    kind = SupplierUnavailable if status >= 500 else RateLimited if status == 429 else SupplierRefused
    error = judge_of(source_spec(cursor), request)(kind("refused", status=status, said=said, url="GET /things"))
    return type(error)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "offset must be less than 10000"),
        (400, "Result window is too large, from + size must be less than or equal to: [10000] but was [10100]"),
        (403, "Maximum offset exceeded"),
        (416, "Page 101 exceeds the maximum"),
        (422, "Only the first 1000 search results are available"),
        (429, "pagination limit"),
        (429, '{"error": "Pagination limit reached, use filters"}'),
    ],
)
def test_limits_of_pagination(status: int, said: str) -> None:
    """However a supplier says that it serves no page so far behind, it is recognised, and not taken for a wish to pause."""
    assert judged(OFFSET, status, said) is PaginationLimit
    assert judged({"kind": "page"}, status, said) is PaginationLimit
    assert judged(LINK, status, said, Request("/", url="http://shop.test/things?page=101")) is PaginationLimit


@pytest.mark.parametrize(
    ("cursor", "status", "said", "error"),
    [
        (OFFSET, 429, "Rate limit exceeded, see https://shop.test/page/limits", RateLimited),
        (OFFSET, 429, "too many requests", RateLimited),
        (OFFSET, 429, "API limit exceeded. Upgrade on our pricing page", RateLimited),
        (OFFSET, 429, "limit of 100 exceeded in this window, try again in 10 s", RateLimited),
        (OFFSET, 429, "offset limit: 100 per minute", RateLimited),
        (OFFSET, 400, "unknown parameter", SupplierRefused),
        (OFFSET, 404, "offset limit", SupplierRefused),
        (OFFSET, 410, "", SupplierRefused),
        (OFFSET, 503, "pagination limit", SupplierUnavailable),
        (KEYSET, 400, "pagination limit", SupplierRefused),
        (KEYSET, 410, "", SupplierRefused),
        (BODY, 400, "pagination limit", SupplierRefused),
        (BODY, 400, "no such region", SupplierRefused),
        (BODY, 401, "token expired", SupplierRefused),
        (BODY, 500, "cursor expired", SupplierUnavailable),
    ],
)
def test_other_refusals_stay_what_they_are(cursor: dict[str, Any], status: int, said: str, error: type[SluiceError]) -> None:
    """A request for manners, a wrong parameter and a supplier in trouble are none of this."""
    assert judged(cursor, status, said) is error


@pytest.mark.parametrize("cursor", [BODY, LINK, {"kind": "next_url", "path": "next"}, {"kind": "header", "header": "X"}])
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (410, ""),
        (400, "Cursor has expired"),
        (404, "scroll not found"),
        (422, "Invalid page token"),
        (400, "unknown cursor"),
    ],
)
def test_cursors_that_are_not_good_any_more(cursor: dict[str, Any], status: int, said: str) -> None:
    """However a supplier says that it has forgotten a cursor, its shard may begin again."""
    assert judged(cursor, status, said) is CursorExpired


def test_what_to_do_is_said() -> None:
    """The error keeps what the supplier said, and names the mend."""
    judge = judge_of(source_spec(OFFSET), HERE)
    error = judge(RateLimited("refused", status=429, said="pagination limit", url="GET http://shop.test/things?offset=10000"))
    assert error.message == (
        "GET http://shop.test/things?offset=10000: the supplier answered 429: pagination limit. It serves no page so far "
        "behind the first: cut the sync into smaller shards (ranges, windows), or page by keyset or cursor"
    )
