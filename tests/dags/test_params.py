"""The form of a run: what it says becomes a request, and what makes no sense is refused by name."""

import json
from typing import Any

import pytest
from airflow.sdk.exceptions import ParamValidationError

from sluice.adapters.spec_files import SpecFiles
from sluice.airflow_glue.known_shards import shards_to_choose_from
from sluice.airflow_glue.params import check_form, params_form, run_request
from sluice.errors import UsageInvalid
from sluice.model.canary import CanarySpec
from sluice.model.run import Mode, Origin, Redrive, ReviewMode, RunRequest
from sluice.model.scalars import parse_moment
from sluice.model.spec import SyncSpec
from tests.support.servers import PROJECT
from tests.unit.flow.workshop import sync_spec

START, END = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00+01:00"


@pytest.fixture(scope="module")
def spec() -> SyncSpec:
    """The project's own sync."""
    return SpecFiles(PROJECT / "include").sync("hotels")


def requested(spec: SyncSpec, **params: Any) -> RunRequest:
    """Return what the form asks for when this much of it is filled in."""
    return run_request(spec, {**{name: param.value for name, param in params_form(spec).items()}, **params}, Origin())


def test_an_untouched_form_asks_for_what_the_schedule_does(spec: SyncSpec) -> None:
    """No mode, no window, all shards, no force, review by policy."""
    assert requested(spec) == RunRequest(sync="hotels", origin=Origin())


def test_a_filled_form(spec: SyncSpec) -> None:
    """Everything that is filled in arrives."""
    request = requested(spec, mode="full", window_start=START, window_end=END, shards=["tokyo"], review="always", force=True)
    assert request.mode is Mode.FULL
    assert request.window is not None
    assert (request.window.start.isoformat(), request.window.end.isoformat()) == (
        "2026-01-01T00:00:00+00:00",
        "2026-02-01T00:00:00+01:00",
    )
    assert request.shards == ("tokyo",)
    assert request.review is ReviewMode.ALWAYS
    assert request.force


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"window_start": START}, "window_end"),
        ({"window_end": END}, "window_start"),
        ({"window_start": END, "window_end": START}, "window_end"),
        ({"window_start": START, "window_end": START}, "window_end"),
        ({"window_start": "yesterday", "window_end": END}, "window_start"),
        ({"window_start": "2026-01-01T00:00:00", "window_end": END}, "window_start"),
        ({"mode": "rollback-all"}, "mode"),
        ({"review": "never"}, "review"),
        ({"shards": [7]}, "shards"),
        ({"force": "perhaps"}, "force"),
        ({"again": True}, "again"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(spec: SyncSpec, params: dict[str, Any], name: str) -> None:
    """The message names the param, whichever way it is wrong."""
    with pytest.raises(UsageInvalid, match=rf"(?m)^{name}"):
        requested(spec, **params)


def test_a_sync_that_cannot_increment_does_not_offer_it(spec: SyncSpec) -> None:
    """Without a watermark field the form has no such mode."""
    plain = spec.model_copy(update={"source": spec.source.model_copy(update={"watermark": None})})
    assert params_form(plain)["mode"].schema["enum"] == [None, "full", "replay", "redrive"]


def test_versions_can_be_picked(spec: SyncSpec) -> None:
    """The spec's, and its canary's; what the form sends arrives."""
    assert params_form(spec)["version"].schema["enum"] == [None, spec.version]
    canary = CanarySpec.model_validate({"version": 7, "share": "10%"})
    both = spec.model_copy(update={"canary": canary})
    assert params_form(both)["version"].schema["enum"] == [None, spec.version, 7]
    assert requested(both, version=7).version == 7


def test_a_replay_of_a_window(spec: SyncSpec) -> None:
    """It names no run."""
    request = requested(spec, mode="replay", window_start=START, window_end=END)
    assert (request.mode, request.replays, request.window is None) == (Mode.REPLAY, None, False)


def test_dead_letters_are_chosen_by_number_or_cause(spec: SyncSpec) -> None:
    """All of them, where nothing is said; and letters in another mode are passed on, for admission to refuse."""
    assert "redrive" in params_form(spec)["mode"].schema["enum"]
    assert requested(spec, mode="redrive").redrives == Redrive()
    assert requested(spec, mode="redrive", letters=[3, 7], cause="type:stars").redrives == Redrive(
        letters=(3, 7), cause="type:stars"
    )
    assert (requested(spec).redrives, requested(spec, letters=[3]).redrives) == (None, Redrive(letters=(3,)))


@pytest.mark.parametrize("moment", [None, START, END, "2026-01-31 23:59:59.123456-05:30", "2026-01-31T00:00:00.000Z"])
def test_airflow_lets_moments_through(spec: SyncSpec, moment: str | None) -> None:
    """Whatever its form may send is taken, by its rules and by ours."""
    assert params_form(spec)["window_start"].resolve(moment) == moment
    assert moment is None or parse_moment(moment)


@pytest.mark.parametrize(
    "moment", ["yesterday", "", "2026-01-31", "2026-13-01T00:00:00Z", "2026-01-31T00:00:00", "2026-01-31T24:10Z"]
)
def test_airflow_refuses_what_is_no_moment(spec: SyncSpec, moment: str) -> None:
    """Nonsense is refused when the run is triggered, not by a task that fails."""
    with pytest.raises(ParamValidationError):
        params_form(spec)["window_start"].resolve(moment)


def test_a_form_is_checked_with_all_its_params(spec: SyncSpec) -> None:
    """Whatever stands in it is known to the check that knows no spec; left as it is, it makes sense."""
    check_form("hotels", {name: param.value for name, param in params_form(spec).items()})
    assert "shards" not in params_form(sync_spec(shards=None))


@pytest.mark.parametrize(
    ("shards", "choice"),
    [
        ({"kind": "values", "name": "region", "values": ["a", "b"]}, ["a", "b"]),
        ({"kind": "values", "name": "region", "values": [str(n) for n in range(300)]}, None),
        ({"kind": "ranges", "last": 25, "size": 10}, ["0-9", "10-19", "20-25"]),
        ({"kind": "buckets", "count": 2, "salt": "x"}, ["0 of 2 salted x", "1 of 2 salted x"]),
        ({"kind": "windows", "every": "1d"}, None),
    ],
)
def test_shards_are_chosen_or_written(shards: Any, choice: Any) -> None:
    """Those that the spec declares, if they are few, are a list to choose from; of others the form takes keys, one a line."""
    spec = sync_spec(shards=shards)
    schema = params_form(spec, shards_to_choose_from(spec))["shards"].schema
    items = {"type": "string"} if choice is None else {"type": "string", "enum": choice}
    assert (schema["items"], schema.get("examples")) == (items, choice)


CITY = {"kind": "listed", "name": "city", "value": "name", "source": sync_spec().source.model_dump(mode="json")}


@pytest.mark.parametrize(
    ("kept", "choice"),
    [
        ('["paris", "rome"]', ["paris", "rome"]),
        ("[]", None),
        ("no JSON", None),
        ('{"paris": 1}', None),
        (json.dumps([str(n) for n in range(201)]), None),
    ],
)
def test_listed_shards_are_offered_as_they_were(monkeypatch: pytest.MonkeyPatch, kept: str, choice: Any) -> None:
    """Others may be asked for as well: the supplier's list may have grown. What nobody can read offers nothing."""
    spec = sync_spec(shards=CITY)
    monkeypatch.setenv("AIRFLOW_VAR_SLUICE_SHARDS_HOTELS", kept)
    schema = params_form(spec, shards_to_choose_from(spec))["shards"].schema
    assert (schema["items"], schema.get("examples")) == ({"type": "string"}, choice)
