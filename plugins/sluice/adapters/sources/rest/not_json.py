"""An answer that is not JSON in; the error that says what it is instead out."""

import re
from typing import Final

from sluice.adapters.sources.transport.client import Answer
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.errors import AnswerNotJson

_LOOKED_AT: Final = 64 * 1024
_LOGIN: Final = re.compile(
    rb"<input[^>]{0,500}type\s*=\s*[\"']?password|<title>[^<]{0,200}\b(log ?in|log ?on|sign ?in|anmelden|anmeldung)\b",
    re.IGNORECASE,
)


def not_json(answer: Answer, exc: Exception, endpoint: Endpoint) -> AnswerNotJson:
    """Return what is wrong with an answer that cannot be decoded; `exc` is what the decoder said."""
    body = answer.body
    if not body:
        what = "the answer is empty"
    elif isinstance(exc, RecursionError):
        what = "the answer is nested too deeply"
    elif is_login_page(body):
        what = (
            "the answer is not JSON; it looks like a login page: check source.auth of the spec, and login, password and "
            f"headers of connection {endpoint.conn_id}"
        )
    elif "truncated" in str(exc):
        what = f"the answer is not whole JSON: it ends after {len(body)} bytes"
    else:
        what = f"the answer is not JSON: {exc}"
    said = f", it begins: {endpoint.snippet(body)}" if body else ""
    return AnswerNotJson(f"{answer.asked}: {what} ({answer.content_type}){said}", url=answer.shown, bytes=len(body))


def is_login_page(body: bytes) -> bool:
    """Whether a body looks like HTML that asks for a login."""
    beginning = body[:_LOOKED_AT]
    return beginning.lstrip().startswith(b"<") and _LOGIN.search(beginning) is not None
