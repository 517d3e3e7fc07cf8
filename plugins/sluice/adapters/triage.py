"""The triage that a spec names comes in; the function that is asked goes out. The rules that ship serve a spec without one."""

from pathlib import Path
from typing import cast

from sluice.adapters.user_code import load_current
from sluice.errors import SpecInvalid
from sluice.mapping.remedies import remedies
from sluice.model.spec import SyncSpec
from sluice.ports import Triage


def triage_of(spec: SyncSpec, include: Path) -> Triage:
    """Return the function; raise `SpecInvalid` if it cannot be imported, or cannot be called."""
    if spec.triage is None:
        return remedies
    found, _ = load_current(spec.triage, include, "triage")
    if not callable(found) or isinstance(found, type):
        raise SpecInvalid([f"triage: {spec.triage} is no function"])
    return cast(Triage, found)
