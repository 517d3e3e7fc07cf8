"""A request in; the form of its sync's DAG, filled in only where something was asked for, out."""

from typing import Any

from sluice.model.run import RunRequest


def form_of(request: RunRequest) -> dict[str, Any]:
    """Return what a trigger of the DAG is to be given, as JSON has it."""
    form: dict[str, Any] = {"review": request.review.value}
    if request.mode is not None:
        form["mode"] = request.mode.value
    if request.replays is not None:
        form["replays"] = request.replays
    if request.version is not None:
        form["version"] = request.version
    if request.redrives is not None:
        form |= request.redrives.model_dump(mode="json", exclude_defaults=True)
    if request.force:
        form["force"] = True
    if request.shards:
        form["shards"] = list(request.shards)
    if request.window is not None:
        form["window_start"], form["window_end"] = request.window.start.isoformat(), request.window.end.isoformat()
    return form
