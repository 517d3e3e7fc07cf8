"""The rules of paging: each mistake told with its line and its mend."""

from pathlib import Path

import pytest

from sluice.adapters.spec_files import SpecFiles

SPEC = """\
sync: demo
stage: content
source:
  kind: rest
  connection: supplier
  path: /items
  MORE
  cursor: CURSOR
object: {key: [id]}
fields:
  - {name: id, type: text}
target: {table: items}
"""


def problems(tmp_path: Path, cursor: str, more: str = "records: data.items") -> list[str]:
    """Return what is wrong with a sync that pages so, from the line on."""
    (tmp_path / "syncs").mkdir()
    (tmp_path / "stages.yaml").write_text("stages: {content: {}}")
    (tmp_path / "syncs" / "demo.yaml").write_text(SPEC.replace("CURSOR", cursor).replace("MORE", more))
    return [line.split(":", 1)[1] for line in SpecFiles(tmp_path).check("demo")]


@pytest.mark.parametrize(
    "cursor",
    [
        "{path: data.next, parameter: c}",
        "{kind: body, path: next, parameter: c, has_more: more, size: 9, size_parameter: n, short_page_ends: true}",
        "{kind: next_url, path: links.next}",
        "{kind: link}",
        "{kind: header, header: X-Next}",
        "{kind: header, header: X-Next, parameter: c}",
        "{kind: page, first: 0, pages: data.pages, total: data.total, at_once: 4}",
        "{kind: offset, size: 100, size_parameter: limit, overlap: 5, has_more: data.more}",
        "{kind: keyset, size: 100, field: changed.at, parameter: after}",
        "{kind: none}",
    ],
)
def test_sound_ways_of_paging(tmp_path: Path, cursor: str) -> None:
    """What the guide shows is taken."""
    assert problems(tmp_path, cursor) == []


@pytest.mark.parametrize("cursor", ["none}", "link}", "header, header: X-Next}", "page}", "offset, size: 9}"])
def test_a_list_at_the_root(tmp_path: Path, cursor: str) -> None:
    """What stands beside no list leads on all the same."""
    assert problems(tmp_path, f"{{kind: {cursor}", "query: {}") == []


def test_a_keyset_may_begin_somewhere(tmp_path: Path) -> None:
    """What a query says in the parameter of a keyset is for the first page."""
    cursor = "{kind: keyset, size: 100, field: changed, parameter: since}"
    assert problems(tmp_path, cursor, 'query: {since: "2024-01-01"}') == []


@pytest.mark.parametrize(
    ("cursor", "more", "problem"),
    [
        ("{kind: pages}", "records: items", "body, next_url, link, header, page, offset, keyset, none"),
        ("{kind: none, has_more: more}", "records: items", "has_more"),
        ("{kind: keyset, field: at, parameter: after}", "records: items", "source.cursor.size"),
        ("{kind: offset, size: 5, overlap: 5}", "records: items", "overlap has to be smaller than size"),
        ("{kind: body, path: next, parameter: c, total: n}", "records: items", "source.cursor.total"),
        ("{kind: page, short_page_ends: true}", "records: items", "short_page_ends needs a size"),
        ("{kind: page}", "query: {page: x}", "source.query.page: is set by source.cursor.parameter: leave it out here"),
        ("{kind: page, size: 5, size_parameter: page}", "records: items", "'page' is source.cursor.parameter already"),
        ("{path: items.next, parameter: c}", "records: items", "source.cursor.path: 'items.next' stands inside source.records"),
        ("{path: data, parameter: c}", "records: data.items", "source.records: 'data.items' stands inside source.cursor.path"),
        (
            "{path: meta, parameter: c, has_more: meta.more}",
            "records: items",
            "source.cursor.has_more: 'meta.more' stands inside source.cursor.path",
        ),
        (
            "{kind: next_url, path: next}",
            "query: {}",
            "source.cursor.path: the answer is itself the list",
        ),
        (
            "{path: next, parameter: c}",
            "query: {}",
            "nothing stands beside it: say where the list stands, or page by kind: none, link, header, page, offset or keyset",
        ),
        (
            "{kind: page, total: total}",
            "query: {}",
            "source.cursor.total: the answer is itself the list",
        ),
    ],
)
def test_mistakes(tmp_path: Path, cursor: str, more: str, problem: str) -> None:
    """Each is told by name, at its line."""
    found = problems(tmp_path, cursor, more)
    assert any(problem in line for line in found), found


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{page: {after: 1}}", "source.body.page.after: is set by source.cursor.parameter"),
        ("{page: x}", "source.body.page: is in the way of source.cursor.parameter, which goes to 'page.after'"),
    ],
)
def test_places_in_a_body(tmp_path: Path, body: str, problem: str) -> None:
    """A parameter that goes into the body has a place of its own there."""
    more = f"method: POST\n  records: items\n  body: {body}"
    found = problems(tmp_path, "{path: next, parameter: page.after, into: body}", more)
    assert any(problem in line for line in found), found


@pytest.mark.parametrize(
    ("parameter", "size", "problem"),
    [
        ("page", "page.size", "'page.size' does not go with 'page' of source.cursor.parameter"),
        ("page.after", "page", "'page' does not go with 'page.after' of source.cursor.parameter"),
        ("page.size", "page.size", "'page.size' is source.cursor.parameter already"),
    ],
)
def test_places_inside_each_other(tmp_path: Path, parameter: str, size: str, problem: str) -> None:
    """Of two parameters in a body neither is inside the other."""
    both = f"path: next, parameter: {parameter}, size: 5, size_parameter: {size}"
    found = problems(tmp_path, f"{{{both}, into: body}}", "method: POST\n  records: items")
    assert len(found) == 1
    assert f"source.cursor.size_parameter: {problem}" in found[0]


@pytest.mark.parametrize(("parameter", "into"), [("page", "query"), ("page.after", "body"), ("pages", "body")])
def test_places_beside_each_other(tmp_path: Path, parameter: str, into: str) -> None:
    """Two parameters in a body may have the same object above them; in a query a name with a dot is like any other."""
    both = f"path: next, parameter: {parameter}, size: 5, size_parameter: page.size"
    assert problems(tmp_path, f"{{{both}, into: {into}}}", "method: POST\n  records: items") == []
