"""Who sits at this command line: the account of the process in, the actor that the audit trail names out."""

import os
import pwd
from typing import Annotated, TypeAlias

import typer

from sluice.model.audit import Actor

Why: TypeAlias = Annotated[str, typer.Option("--reason", help="Why; kept in the audit trail, beside who did it.")]
Who: TypeAlias = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="In whose name; else in that of the account this runs as.")
]


def person(name: str | None = None, reason: str = "") -> Actor:
    """Return who acts here: somebody by that name, or the account this process runs as."""
    return Actor(name=name or os_user(), via="cli", reason=reason)


def os_user() -> str:
    """Return the name of the account this process runs as, whatever the environment claims."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"
