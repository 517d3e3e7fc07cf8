"""A template and its values in; a page out, in the frame that all pages share, with links that work wherever it is mounted."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sluice.model.airflow_names import dag_id_of
from sluice.model.ledger import Outcome
from sluice.packet.words import lasting, sentence, spelled
from sluice.web.protection import OURS

HERE: Final = Path(__file__).parent

NAVIGATION: Final = (("", "Syncs"), ("reviews", "Reviews that wait"), ("letters", "Dead letters"))
"""What the head of every page leads to: the pages about all syncs, by path and name."""


class Pages:
    """The pages. Everything is escaped; nothing is shown that a template was not given."""

    def render(self, template: str, request: Request, status: int = 200, **values: Any) -> Response:
        """Return a page. Links lead from the mount's root, which is as many levels up as the path is deep."""
        path = request.url.path.removeprefix(request.scope.get("root_path", ""))
        text = (
            _templates()
            .get_template(template)
            .render(root="../" * (path.count("/") - 1) or "./", here=path.removeprefix("/"), **values)
        )
        return HTMLResponse(text, status)

    def problem(self, request: Request, status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
        """Say why there is no page, or to our script why nothing was changed."""
        if request.method != "GET" or OURS in request.headers:
            return JSONResponse({"message": message}, status, headers)
        page = self.render("problem.html", request, status, message=message)
        page.headers.update(headers or {})
        return page


@cache
def _templates() -> Environment:
    """Return the templates, each read and compiled once in a process."""
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        auto_reload=False,
    )
    templates.globals.update(
        dag_id_of=dag_id_of,
        deletions=lambda review: review.figures.count(Outcome.DELETED),
        navigation=NAVIGATION,
    )
    templates.filters.update(
        moment=lambda moment: f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else "",
        count="{:,}".format,
        lasting=lasting,
        sentence=sentence,
        spelled=spelled,
    )
    return templates
