"""The form of a run: a spec in, Airflow params out; what a person filled in, in, a `RunRequest` out."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from airflow.sdk import Param
from pydantic import ValidationError

from sluice.errors import UsageInvalid
from sluice.model.base import ShardKey
from sluice.model.run import ASKED_MODES, Mode, Origin, Redrive, ReviewMode, RunRequest, Window, parse_window
from sluice.model.sharding import ShardingSpec
from sluice.model.spec import SyncSpec

_ALWAYS: Final = ("mode", "replays", "letters", "cause", "window_start", "window_end", "version", "force", "review")
"""The params of every form."""
_RUN: Final = "What to bring in"
_REVIEW: Final = "Review"
_LAST_LETTER: Final = 2**63 - 1
"""No dead letter has a higher number: it would not fit its column."""
_DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""A schema is held against its dialect's own at every parse: the newest takes twice as long for that."""
_MOMENT: Final = (
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d+)?)?"
    r"(Z|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)$"
)
"""Lets Airflow refuse what is no moment when a run is triggered; admission reads it for good."""


def params_form(spec: SyncSpec, known: Sequence[ShardKey] = ()) -> dict[str, Param]:
    """Return the params of a sync's DAG; left as they are, they ask for what the schedule asks for.

    Of the shards that are known, there is a list to choose from.
    """
    modes = [mode for mode in (*ASKED_MODES, Mode.REDRIVE) if mode is not Mode.INCREMENTAL or spec.can_increment]
    unused = "" if spec.uses_window else " Only for mode replay: nothing that this sync asks its supplier depends on a window."
    form = {
        "mode": Param(
            None,
            type=["null", "string"],
            enum=[None, *(mode.value for mode in modes)],
            section=_RUN,
            description="incremental: what changed since the last publication. full: everything, and what is gone is deleted. "
            "replay: nothing is fetched; what another run has fetched is mapped again. "
            "redrive: nothing is fetched; dead letters are mapped again. "
            f"Empty: {'incremental' if spec.can_increment else 'full'}.",
        ),
        "replays": Param(
            None,
            type=["null", "string"],
            maxLength=300,
            section=_RUN,
            description="For mode replay: the id of the run whose raw data is mapped again, as `sluice runs` lists it. Or give "
            "a window instead: then it is that of all runs that were begun within.",
        ),
        "letters": Param(
            [],
            type="array",
            items={"type": "integer", "minimum": 1, "maximum": _LAST_LETTER},
            uniqueItems=True,
            section=_RUN,
            description="For mode redrive: the numbers of dead letters, as `sluice dlq list` shows them. Empty: all.",
        ),
        "cause": Param(
            None,
            type=["null", "string"],
            maxLength=300,
            section=_RUN,
            description="For mode redrive: only dead letters of this cause, such as `type:rooms`. Empty: whatever it is.",
        ),
        "window_start": _moment("Only what the supplier dates at or after this moment. Needs a window_end." + unused),
        "window_end": _moment("Only what the supplier dates before this moment. Needs a window_start." + unused),
    }
    if spec.sharding is not None:
        form["shards"] = _shards(spec.sharding, known)
    canary = "" if spec.canary is None else f", and version {spec.canary.version} for the canary's share of them"
    form["version"] = Param(
        None,
        type=["null", "integer"],
        enum=[None, *spec.versions],
        section=_RUN,
        description=f"All shards by this version of the transformation. Empty: version {spec.version}{canary}.",
    )
    form["force"] = Param(
        default=False,
        type="boolean",
        section=_RUN,
        description="Do all of it again, whatever another run of the same request has brought in or fetched so far. While "
        "one is at work, this one waits for its end.",
    )
    form["review"] = Param(
        ReviewMode.POLICY.value,
        type="string",
        enum=[mode.value for mode in ReviewMode],
        section=_REVIEW,
        description="policy: the sync's review policy decides whether a person has to look. always: a person has to look.",
    )
    for param in form.values():
        param.schema["$schema"] = _DIALECT
    return form


def _shards(sharding: ShardingSpec, known: Sequence[ShardKey]) -> Param:
    """Return the choice of shards: of those that are known a list to choose from, else a key a line.

    Where the spec declares them there are no others; those that a supplier listed may have got more since.
    """
    choice: dict[str, Any] = {"examples": list(known)} if known else {}
    is_declared = bool(known) and sharding.number is not None
    others = "" if is_declared or not known else " Listed are those of the last run; a new one is given as JSON."
    return Param(
        [],
        type="array",
        items={"type": "string", **({"enum": list(known)} if is_declared else {})},
        uniqueItems=True,
        section=_RUN,
        description=f"Only these shards; nothing is deleted then. Empty: all of them.{others}",
        **choice,
    )


def check_form(sync: str, filled: Mapping[str, Any]) -> None:
    """Raise `UsageInvalid` if what the form is filled in with makes no sense, whatever the sync's spec says."""
    _request(sync, filled, {*_ALWAYS, "shards"}, Origin()).require_sense()


def run_request(spec: SyncSpec, params: Mapping[str, Any], origin: Origin, backfilled: Window | None = None) -> RunRequest:
    """Return what the form asks for; raise `UsageInvalid` naming every param that cannot be used as it is.

    What a backfill leaves open asks for all that the supplier dates within the span that is `backfilled`.
    """
    request = _request(spec.sync, params, {*_ALWAYS, *(("shards",) if spec.sharding is not None else ())}, origin)
    if backfilled is not None and request.window is None and spec.uses_window and request.mode in (None, Mode.FULL):
        return request.model_copy(update={"mode": Mode.FULL, "window": backfilled})
    return request


def _request(sync: str, params: Mapping[str, Any], known: AbstractSet[str], origin: Origin) -> RunRequest:
    unknown = sorted(set(params) - known)
    problems = [f"{name}: unknown; known params of {sync}: {', '.join(sorted(known))}" for name in unknown]
    window = None
    try:
        window = parse_window(params.get("window_start"), params.get("window_end"), ("window_start", "window_end"))
    except UsageInvalid as error:
        problems += error.facts["problems"]
    if problems:
        raise UsageInvalid("\n".join(problems), problems=problems)
    try:
        return RunRequest(
            sync=sync,
            mode=params.get("mode"),
            window=window,
            shards=params.get("shards") or (),
            review=params.get("review") or ReviewMode.POLICY,
            force=params.get("force") or False,
            replays=params.get("replays") or None,
            redrives=_redrive(params),
            version=params.get("version") or None,
            origin=origin,
        )
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()]
        raise UsageInvalid("\n".join(problems), problems=problems) from error


def _redrive(params: Mapping[str, Any]) -> Redrive | None:
    chosen = Redrive(letters=params.get("letters") or (), cause=params.get("cause") or None)
    return chosen if params.get("mode") == Mode.REDRIVE or chosen != Redrive() else None


def _moment(description: str) -> Param:
    return Param(None, type=["null", "string"], format="date-time", pattern=_MOMENT, section=_RUN, description=description)
