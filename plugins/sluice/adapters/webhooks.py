"""Webhooks over HTTP: who is told, and what, in; what the receiver made of it out, or an error where nobody can say."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

import urllib3
from pydantic import JsonValue
from urllib3.exceptions import HTTPError

from sluice.adapters.sources.http.bodies import ACCEPTED_ENCODINGS, peek
from sluice.adapters.sources.http.endpoint import Endpoint
from sluice.adapters.sources.http.proof import proof_of_connection
from sluice.adapters.sources.http.request import Request
from sluice.errors import RateLimited, ReceiverUnavailable, Retryable
from sluice.guard.retries import http_date, pause_asked_for
from sluice.model.call import CallResult
from sluice.model.spec import WebhookSpec
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo

_KEY_HEADER: Final = "Idempotency-Key"

_NOT_YET: Final = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,  # the receiver still works on an earlier request under this key
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
)
"""Refusals that are no result: the same request may be accepted later."""


class HttpWebhook:
    """One receiver, told by POST requests with a JSON body. Redirects are not followed."""

    def __init__(self, hook: WebhookSpec, info: ConnectionInfo, policy: StagePolicy) -> None:
        """Read the connection; raise `ConnectionInvalid` if it cannot be used."""
        self._endpoint = Endpoint.of(info)
        self._auth = proof_of_connection(info, self._endpoint)
        self._url = self._endpoint.url(hook.path, {})
        self._policy = policy

    def post(self, key: str, body: Mapping[str, JsonValue]) -> CallResult:
        """Send one request; raise `ReceiverUnavailable` or `RateLimited` where it is not known what became of it."""
        timeouts = self._policy.timeouts
        timeout = urllib3.Timeout(connect=timeouts.connect.total_seconds(), read=timeouts.read.total_seconds())
        try:
            with urllib3.PoolManager(retries=False, timeout=timeout) as pool:
                response = pool.request(
                    "POST",
                    self._url,
                    body=json.dumps(dict(body), sort_keys=True).encode(),
                    headers=self._headers(key),
                    redirect=False,
                    preload_content=False,
                    decode_content=False,
                )
                try:
                    return self._result(response)
                finally:
                    response.close()
        except (HTTPError, OSError) as exc:
            raise ReceiverUnavailable(f"POST {self._shown}: {self._endpoint.snippet(str(exc))}", url=self._shown) from exc

    def _headers(self, key: str) -> Mapping[str, str]:
        headers = urllib3.HTTPHeaderDict({"User-Agent": "sluice"})
        for name, value in self._auth.sign(Request(path="", headers=self._endpoint.headers)).headers.items():
            headers[name] = value
        headers["Accept-Encoding"] = ACCEPTED_ENCODINGS
        headers["Content-Type"] = "application/json"
        headers[_KEY_HEADER] = key
        return headers

    @property
    def _shown(self) -> str:
        return self._endpoint.shown(self._url)

    def _result(self, response: urllib3.BaseHTTPResponse) -> CallResult:
        """Read what the receiver says; of its body no more than a beginning, and that only to quote a refusal."""
        status = response.status
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return CallResult(accepted=True, answer=_named(status))
        said = self._endpoint.snippet(peek(response))
        answer = f"{_named(status)}: {said}" if said else _named(status)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _NOT_YET:
            raise self._unknown(response, answer)
        return CallResult(accepted=False, answer=answer)

    def _unknown(self, response: urllib3.BaseHTTPResponse, answer: str) -> Retryable:
        message = f"POST {self._shown}: the receiver answered {answer}"
        now = http_date(response.headers.get("Date")) or datetime.now(UTC)
        pause = pause_asked_for(response.headers.get("Retry-After"), now)
        if pause is not None:
            return RateLimited(f"{message}. It asks for a pause of {pause:.0f} s.", retry_after=pause, url=self._shown)
        return ReceiverUnavailable(message, status=response.status, url=self._shown)


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
