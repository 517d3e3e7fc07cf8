"""How requests prove who asks. Only the how is declared: what is secret stands in the Airflow connection."""

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from sluice.model.base import Frozen
from sluice.model.header_names import HeaderName

CODE_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$"


class NoAuth(Frozen):
    """Nothing but the connection's extra headers."""

    kind: Literal["none"]


class BasicAuth(Frozen):
    """The connection's login and password (RFC 7617)."""

    kind: Literal["basic"]


class BearerAuth(Frozen):
    """The connection's password as a bearer token (RFC 6750)."""

    kind: Literal["bearer"]


class ApiKeyAuth(Frozen):
    """The connection's password as an API key, in a header or a query parameter."""

    kind: Literal["api_key"]
    header: HeaderName | None = Field(default=None, description="the header that takes the key")
    query: str | None = Field(default=None, min_length=1, description="the query parameter that takes the key")

    @model_validator(mode="after")
    def _has_one_place(self) -> "ApiKeyAuth":
        if (self.header is None) is (self.query is None):
            raise ValueError("an API key goes either into a header or into a query parameter: name one of them")
        return self


class OAuth2Auth(Frozen):
    """Client credentials (RFC 6749, 4.4): the connection's login and password are the client's id and secret.

    All workers share one token, and one of them at a time asks for the next. A token that is refused is renewed once.
    """

    kind: Literal["oauth2"]
    token: str = Field(min_length=1, description="where tokens come from: a path of the connection's host, or an address")
    scope: str | None = Field(default=None, description="the scopes to ask for, separated by blanks")
    parameters: dict[str, str] = Field(default={}, description="further parameters of the token request, such as an audience")
    credentials: Literal["header", "body"] = Field(default="header", description="where the token request has id and secret")


class SignedAuth(Frozen):
    """Headers made anew for each try out of the connection's login (the key), its password (the secret) and the time."""

    kind: Literal["signed"]
    by: str | None = Field(
        default=None,
        pattern=CODE_PATTERN,
        description="the signer, a function by its dotted path; absent: SHA-256 of key, secret and the time in seconds",
    )
    key_header: HeaderName = Field(default="Api-Key", description="the header for the key")
    signature_header: HeaderName = Field(default="X-Signature", description="the header for the signature")


AuthSpec = Annotated[
    NoAuth | BasicAuth | BearerAuth | ApiKeyAuth | OAuth2Auth | SignedAuth,
    Field(discriminator="kind"),
]
"""A way to prove who asks."""
