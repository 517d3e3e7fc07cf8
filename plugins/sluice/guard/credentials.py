"""A way to prove who asks and a connection in; what the connection lacks for it out."""

from sluice.model.auth import AuthSpec
from sluice.ports import ConnectionInfo


def lacks(auth: AuthSpec | None, info: ConnectionInfo) -> str | None:
    """Return what the connection has to hold and does not, and for what, in words; None if it holds all that is needed."""
    if auth is None or auth.kind == "none":
        return None
    if auth.kind == "basic":
        return None if info.login or info.password else "a login or a password for source.auth of kind basic"
    needed = (
        {"password": info.password} if auth.kind in ("bearer", "api_key") else {"login": info.login, "password": info.password}
    )
    missing = [f"a {name}" for name, value in needed.items() if not value]
    return f"{' and '.join(missing)} for source.auth of kind {auth.kind}" if missing else None
