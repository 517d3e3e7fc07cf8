"""Requests to a supplier in; the bodies of good answers out, or an error named after what happened."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar

import httpx2

from sluice.adapters.sources.telling import Told, told
from sluice.adapters.sources.transport.addresses import Addresses, Target
from sluice.adapters.sources.transport.auth import Auth, ConnectionAuth
from sluice.adapters.sources.transport.bodies import ACCEPTED_ENCODINGS, encoding_of, peek, read_body
from sluice.adapters.sources.transport.endpoint import OPEN_HEADERS, Endpoint
from sluice.adapters.sources.transport.refusals import named, refusal
from sluice.adapters.sources.transport.request import Request
from sluice.adapters.sources.transport.wire import Wire
from sluice.errors import SluiceError, SupplierRefused, SupplierUnavailable
from sluice.guard.restraint import Restraint
from sluice.guard.retries import http_date, patiently
from sluice.model.stage import StagePolicy

T = TypeVar("T")

_MOST_REDIRECTS: Final = 5
_REPEATED: Final = (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT)
_REDIRECTS: Final = (HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND, HTTPStatus.SEE_OTHER, *_REPEATED)
_FOR_OTHERS: Final = frozenset({*OPEN_HEADERS, "accept-encoding", "content-type", "range", "if-range", "if-none-match"})
"""What another host gets to see of the headers."""


@dataclass(frozen=True)
class Answer:
    """The body of a successful answer."""

    body: bytes
    content_type: str
    shown: str
    """The address it came from, fit for messages."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By name in lower case."""
    supplied_at: datetime | None = None
    """The supplier's own time when it answered, where it tells."""
    method: str = "GET"
    url: str = field(default="", repr=False)
    """The address it came from, behind all redirects, without its query: what relative links start from."""

    @property
    def asked(self) -> str:
        """What was asked, fit for messages."""
        return f"{self.method} {self.shown}"


@dataclass(frozen=True)
class Stream:
    """A successful answer whose body has yet to be received."""

    status: int
    """200, or 206 for the part of a body that was asked for."""
    parts: Iterator[bytes] = field(repr=False)
    """The body as it comes, 64 kB at most at a time; raises `SupplierUnavailable` if it ends early."""
    encoding: str
    """How the body is encoded for the way though nobody asked for that, such as `gzip`; empty: it is not."""
    shown: str
    """The address it comes from, fit for messages."""
    headers: Mapping[str, str]
    """By name in lower case."""
    supplied_at: datetime | None
    """The supplier's own time when it answered, where it tells."""


class _Received(NamedTuple):
    """A response that is no redirect and whose body has not been read."""

    response: httpx2.Response
    url: httpx2.URL
    method: str
    shown: str

    @property
    def asked(self) -> str:
        return f"{self.method} {self.shown}"


class HttpClient:
    """Keeps connections to one supplier, as long as its context lasts. Threads may use it at once."""

    def __init__(
        self,
        endpoint: Endpoint,
        policy: StagePolicy,
        restraint: Restraint,
        auth: Auth | None = None,
        allow_hosts: Sequence[str] = (),
    ) -> None:
        """Open nothing yet; without `auth`, what proves who asks are the headers of the connection."""
        self._endpoint = endpoint
        self._policy = policy
        self._restraint = restraint
        self._auth = auth or ConnectionAuth()
        self._addresses = Addresses(endpoint, allow_hosts)
        self._wire = Wire(endpoint, policy.timeouts)

    def __enter__(self) -> Self:
        """Return the client; connections open when they are needed."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the connections."""
        self._wire.close()

    def send(
        self,
        request: Request,
        judged: Callable[[SluiceError], SluiceError] | None = None,
        accepted: Callable[[Answer], Answer] | None = None,
    ) -> Answer:
        """Return the answer, repeating the request as the policy allows while the supplier is unavailable.

        `judged` may know better what a refusal means: it gets the error, with the facts `status` and `said`, and returns the
        one to raise. `accepted` may know better whether an answer is one: it gets that, and returns or refuses it. Raises
        `StrayAddress` where the supplier leads to a host that is not allowed.
        """

        def take(received: _Received) -> Answer:
            answer = self._answer(received)
            return accepted(answer) if accepted else answer

        return self._patiently(request, take, judged)

    @contextmanager
    def stream(self, request: Request) -> Iterator[Stream]:
        """Yield the answer as soon as it begins; a request is repeated no further. Its body is neither bounded nor decoded."""
        plain = request.with_headers({"Accept-Encoding": "identity", **request.headers})
        received = self._patiently(plain, lambda received: received)
        with told(received.method, received.shown) as answer:
            answer.status = received.response.status_code
            try:
                yield Stream(
                    received.response.status_code,
                    self._parts(received, answer),
                    encoding_of(received.response),
                    received.shown,
                    dict(received.response.headers.items()),
                    http_date(received.response.headers.get("Date")),
                )
            finally:
                received.response.close()

    def date(self, request: Request) -> datetime | None:
        """Return the supplier's own time, whatever else it answers, be it a redirect; None if it does not tell.

        It is asked once. That it does not answer such a request is no sign that it would not answer others.
        """
        self._restraint.breaker.require_rested()
        self._restraint.pacing.await_slot()
        with suppress(SupplierUnavailable), self._told(request) as answer:
            received = self._exchanged(request)
            answer.status, answer.bytes = received.response.status_code, len(peek(received.response))
            return http_date(received.response.headers.get("Date"))
        return None

    def _patiently(
        self, request: Request, take: Callable[[_Received], T], judged: Callable[[SluiceError], SluiceError] | None = None
    ) -> T:
        def once() -> T:
            with ExitStack() as open_until_taken, self._told(request) as answer:
                received = self._followed(request)
                answer.address, answer.status = received.shown, received.response.status_code
                open_until_taken.callback(received.response.close)
                if not received.response.is_success:
                    error = refusal(received.response, self._endpoint, received.asked)
                    raise judged(error) if judged else error
                taken = take(received)
                answer.is_over = isinstance(taken, Answer)
                answer.bytes = len(taken.body) if isinstance(taken, Answer) else None
                open_until_taken.pop_all()
                return taken

        return patiently(lambda: self._restraint.ask(once), self._policy.retry, self._within)

    @property
    def _within(self) -> timedelta:
        # Longer than without progress no shard is waited for.
        return min(self._policy.timeouts.step, self._policy.no_progress_timeout)

    def _answer(self, received: _Received) -> Answer:
        with self._wire.named(received.asked):
            body = read_body(received.response, self._policy.max_body, received.asked)
        headers = dict(received.response.headers.items())
        return Answer(
            body,
            self._endpoint.snippet(headers.get("content-type", "")) or "no content type",
            received.shown,
            headers,
            http_date(headers.get("date")),
            received.method,
            str(received.url).partition("?")[0],
        )

    def _told(self, request: Request) -> AbstractContextManager[Told]:
        return told(request.method, self._endpoint.shown(self._endpoint.url(request.path, request.query)))

    def _parts(self, received: _Received, answer: Told) -> Iterator[bytes]:
        with self._wire.named(received.asked):
            for part in received.response.iter_raw():
                answer.bytes = (answer.bytes or 0) + len(part)
                yield part

    def _followed(self, request: Request) -> _Received:
        """Return the response behind all redirects."""
        for hop in range(_MOST_REDIRECTS + 1):
            if hop:
                self._restraint.pacing.await_slot()
            received = self._exchanged(request)
            if received.response.status_code not in _REDIRECTS:
                return received
            peek(received.response)  # to its end, so that the connection is kept
            request = self._led_on(request, received)
        raise SupplierRefused(f"{received.asked}: the supplier redirects more than {_MOST_REDIRECTS} times", url=received.shown)

    def _led_on(self, request: Request, received: _Received) -> Request:
        """Return what to ask after a redirect, and where (RFC 9110, 15.4)."""
        response = received.response
        status = named(response.status_code)
        location = response.headers.get("Location")
        if not location:
            raise SupplierRefused(
                f"{received.asked}: the supplier answered {status} without saying where to",
                status=response.status_code,
                url=received.shown,
            )
        url = str(self._addresses.given(location, received.url, received.asked).url)
        if response.status_code == HTTPStatus.SEE_OTHER:
            return replace(request, url=url, method="HEAD" if request.method == "HEAD" else "GET", body=None, form=None)
        if response.status_code not in _REPEATED and request.method not in ("GET", "HEAD"):
            raise SupplierRefused(
                f"{received.asked}: the supplier answered {status}, after which a {request.method} is not repeated: put the "
                f"final address into the spec or connection {self._endpoint.conn_id}",
                status=response.status_code,
                url=received.shown,
            )
        return replace(request, url=url)

    def _exchanged(self, request: Request) -> _Received:
        """Return the response to one request, or to its repetition with a better proof."""
        if request.url is not None:
            target = self._given(request, request.url)
            if not target.is_own:
                return self._sent(request, target.url, self._headers(request, _FOR_OTHERS))
            request = replace(request, url=str(target.url))
        signed = self._auth.sign(request)
        received = self._sent(signed, self._address(signed), self._headers(signed))
        if received.response.status_code != HTTPStatus.UNAUTHORIZED or not self._auth.renew(signed):
            return received
        peek(received.response)
        self._restraint.pacing.await_slot()
        signed = self._auth.sign(request)
        return self._sent(signed, self._address(signed), self._headers(signed))

    def _given(self, request: Request, address: str) -> Target:
        seen_at = self._endpoint.url(request.path, request.query)
        return self._addresses.given(address, httpx2.URL(seen_at), f"{request.method} {self._endpoint.shown(seen_at)}")

    def _address(self, request: Request) -> httpx2.URL:
        address = self._endpoint.url(request.path, request.query) if request.url is None else request.url
        with self._wire.named(f"{request.method} {self._endpoint.shown(address)}"):
            return httpx2.URL(address)

    def _headers(self, request: Request, only: frozenset[str] | None = None) -> dict[str, str]:
        """Return all headers in the order in which they count, or only some: the last of a name does."""
        content = request.content()
        headers = {
            "Accept": "application/json",
            "User-Agent": "sluice",
            **({"Content-Type": content[0]} if content else {}),
        }
        layers = (self._endpoint.headers, {"Accept-Encoding": ACCEPTED_ENCODINGS}, request.headers)
        by_name = {name.lower(): (name, value) for layer in (headers, *layers) for name, value in layer.items()}
        return {name: value for lower, (name, value) in by_name.items() if only is None or lower in only}

    def _sent(self, request: Request, url: httpx2.URL, headers: Mapping[str, str]) -> _Received:
        shown = self._endpoint.shown(str(url))
        content = request.content()
        asked = f"{request.method} {shown}"
        response = self._wire.open(request.method, url, headers, content[1] if content else None, asked)
        return _Received(response, url, request.method, shown)
