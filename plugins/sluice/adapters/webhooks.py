"""Webhooks over HTTP: who is told, and what, in; what the receiver made of it out, or an error where nobody can say."""

import json
from collections.abc import Mapping
from contextlib import closing
from http import HTTPStatus
from typing import Final

import httpx2
from pydantic import JsonValue

from sluice.adapters.sources.transport.bodies import ACCEPTED_ENCODINGS, peek
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.proof import proof_of_connection
from sluice.adapters.sources.transport.refusals import named, pause_of
from sluice.adapters.sources.transport.request import Request
from sluice.adapters.sources.transport.wire import Wire
from sluice.errors import RateLimited, ReceiverUnavailable, Retryable, SupplierUnavailable
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
        content = json.dumps(dict(body), sort_keys=True).encode()
        with closing(Wire(self._endpoint, self._policy.timeouts)) as wire:
            try:
                response = wire.open("POST", self._url, self._headers(key), content, f"POST {self._shown}")
            except SupplierUnavailable as error:
                raise ReceiverUnavailable(error.message, url=self._shown) from error
            return self._result(response)

    def _headers(self, key: str) -> Mapping[str, str]:
        ours = {"Accept-Encoding": ACCEPTED_ENCODINGS, "Content-Type": "application/json", _KEY_HEADER: key}
        told = Request(path="", headers={"User-Agent": "sluice"}).with_headers(self._endpoint.headers)
        return self._auth.sign(told).with_headers(ours).headers

    @property
    def _shown(self) -> str:
        return self._endpoint.shown(self._url)

    def _result(self, response: httpx2.Response) -> CallResult:
        """Read what the receiver says; of its body no more than a beginning, and that only to quote a refusal."""
        status = response.status_code
        if response.is_success:
            return CallResult(accepted=True, answer=named(status))
        said = self._endpoint.snippet(peek(response))
        answer = f"{named(status)}: {said}" if said else named(status)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _NOT_YET:
            raise self._unknown(response, answer)
        return CallResult(accepted=False, answer=answer)

    def _unknown(self, response: httpx2.Response, answer: str) -> Retryable:
        message = f"POST {self._shown}: the receiver answered {answer}"
        pause = pause_of(response)
        if pause is not None:
            return RateLimited(f"{message}. It asks for a pause of {pause:.0f} s.", retry_after=pause, url=self._shown)
        return ReceiverUnavailable(message, status=response.status_code, url=self._shown)
