"""Classes of a team's own as sources: a class in a folder in, its pages or what is wrong with them out."""

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from traceback import format_exception
from typing import Any
from uuid import UUID

import pytest

from sluice.adapters.sources.code_source import CodeSource
from sluice.errors import (
    AnswerTooLarge,
    AnswerUnusable,
    CodeFailed,
    CursorStuck,
    SluiceError,
    SpecInvalid,
    SupplierUnavailable,
)
from sluice.guard.restraint import Restraint
from sluice.model import source as declared
from sluice.model.stage import RetryPolicy, StagePolicy
from sluice.ports import ConnectionInfo, Page, PageRequest
from tests.support.restraints import lone_restraint

POLICY = StagePolicy(retry=RetryPolicy(attempts=3, base=timedelta(0)))
SHOP = ConnectionInfo("shop", "http", "shop.test", 8080, "ada", "canary", None, {"headers": {"X-Key": "bullfinch"}})
ALL = PageRequest(shard={}, cursor=None, watermark=None, window_start=None, window_end=None)

Written = Callable[..., CodeSource]


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    """Make a source of the text of a module that a team has written."""
    names: list[str] = []

    def make(text: str, name: str = "Own", policy: StagePolicy = POLICY, **keys: Any) -> CodeSource:
        module = f"own_source_{len(names)}_{id(tmp_path)}"
        names.append(module)
        (tmp_path / f"{module}.py").write_text(dedent(text))
        source = declared.CodeSource.model_validate({"kind": "code", "code": f"{module}.{name}", **keys})
        return CodeSource(source, SHOP, policy, lambda host: lone_restraint(policy, host), tmp_path)

    yield make
    for name in names:
        sys.modules.pop(name, None)


def yielding(*pages: str) -> str:
    """Return the module of a class that yields these expressions."""
    lines = "".join(f"        yield {page}\n" for page in pages)
    head = "from sluice.ports import Page\nclass Own:\n    def __init__(self, context):\n        self.context = context\n"
    return f"{head}    def pages(self, request):\n{lines}"


def test_pages_come_as_the_class_yields_them(written: Written) -> None:
    """With cursors of any kind of JSON, until one has none; the class sees connection, options, policy and request."""
    source = written(
        """
        from sluice.ports import Page

        class Own:
            def __init__(self, context):
                self.context = context

            def now(self):
                return None

            def pages(self, request):
                for number in range(request.cursor["page"] if request.cursor else 1, 4):
                    told = [self.context.connection.host, self.context.options["of"], request.shard["city"], number]
                    yield Page.of([told], cursor={"page": number + 1} if number < 3 else None)
        """,
        options={"of": ["x"]},
    )
    request = PageRequest(shard={"city": "Rome"}, cursor=None, watermark=None, window_start=None, window_end=None)
    pages = list(source.pages(request))
    assert [json.loads(page.body) for page in pages] == [[["shop.test", ["x"], "Rome", number]] for number in (1, 2, 3)]
    assert [page.cursor for page in pages] == [{"page": 2}, {"page": 3}, None]
    assert source.now() is None


def test_values_are_written_exactly() -> None:
    """Numbers keep their digits, and what is no JSON comes in the texts that fields are read from."""
    page = Page.of(
        [
            {
                "price": Decimal("1.10"),
                "big": 2**70,
                "at": datetime(2026, 1, 1, tzinfo=UTC),
                "day": date(1, 1, 1),
                "id": UUID(int=1),
                "none": None,
                "half": 0.5,
            }
        ],
        cursor=7,
    )
    assert page.body == (
        b'[{"price":1.10,"big":1180591620717411303424,"at":"2026-01-01T00:00:00Z","day":"0001-01-01",'
        b'"id":"00000000-0000-0000-0000-000000000001","none":null,"half":0.5}]'
    )
    assert (page.records, page.cursor) == (1, 7)


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf")]}, Decimal("NaN"), object()])
def test_what_cannot_be_written_is_no_null(value: Any) -> None:
    """It is an error, where JSON libraries write null for it, or something that JSON has not."""
    with pytest.raises((ValueError, TypeError)):
        Page.of([{"value": value, "none": None}])


def test_one_call_is_repeated_with_manners(written: Written) -> None:
    """What comes of lost connections is tried again, as often as the policy says, and told without secrets."""
    text = """
        from sluice.ports import Page

        class Own:
            def __init__(self, context):
                self.context, self.tries = context, 0

            def call(self):
                self.tries += 1
                if self.tries < self.context.options["works"]:
                    try:
                        raise ConnectionResetError("reset")
                    except OSError as lost:
                        key = self.context.connection.extra["headers"]["X-Key"]
                        raise RuntimeError(f"what a client makes of {self.context.connection.password}, {key}") from lost
                return {"tries": self.tries}

            def pages(self, request):
                yield Page.of([self.context.ask(self.call)])
        """
    (page,) = written(text, options={"works": 3}).pages(ALL)
    assert page.body == b'[{"tries":3}]'
    with pytest.raises(SupplierUnavailable, match=r"RuntimeError: what a client makes of \*{3}, \*{3}$") as raised:
        list(written(text, options={"works": 4}).pages(ALL))
    told = "".join(format_exception(raised.value))
    assert "canary" not in told
    assert "bullfinch" not in told


def test_its_host_is_that_of_other_sources(tmp_path: Path) -> None:
    """Breaker and pace are shared with whoever asks the same server; a class without a connection has its own."""
    (tmp_path / "own_host.py").write_text(yielding("Page.of([])"))
    source = declared.CodeSource.model_validate({"kind": "code", "code": "own_host.Own"})
    hosts: list[str] = []

    def restraint_of(host: str) -> Restraint:
        hosts.append(host)
        return lone_restraint(POLICY, host)

    for info in (SHOP, None):
        CodeSource(source, info, POLICY, restraint_of, tmp_path)
    sys.modules.pop("own_host")
    assert hosts == ["shop.test:8080", "own_host.Own"]


@pytest.mark.parametrize(
    "page",
    [
        "1 / 0",
        "Page.of([self.context.ask(lambda: 1 / 0)])",
        "__import__('json').loads('{')",
        "self.context.connect",
        "exit(3)",
        "self.context.ask(lambda: exit(0))",
    ],
)
def test_what_it_raises_is_told_with_its_line(written: Written, page: str) -> None:
    """Nobody but the team can say what it means, so it is tried again by no one but Airflow."""
    with pytest.raises(CodeFailed, match=r"^own_source_0_\d+\.Own failed at .*/own_source_0_\d+\.py:6: \w+: "):
        list(written(yielding(page)).pages(ALL))


def test_what_it_raises_shows_no_secret(written: Written) -> None:
    """Neither in what is said of it, nor in the errors behind it; wherever it comes from."""
    text = """
        class Own:
            def __init__(self, context):
                raise KeyError(context.connection.password)

            def pages(self, request):
                return []
        """
    for asked in (lambda source: source.now(), lambda source: list(source.pages(ALL))):
        with pytest.raises(CodeFailed, match=r"py:4: KeyError: '\*\*\*'$") as raised:
            asked(written(text))
        assert "canary" not in "".join(format_exception(raised.value))


WRONG: list[tuple[list[str], type[SluiceError], str]] = [
    (["[1, 2]"], AnswerUnusable, "has yielded list, and no Page"),
    (["Page('[]', 0, None)"], AnswerUnusable, "no Page with bytes"),
    (["Page(b'{}', 0, None)"], AnswerUnusable, "has to be a JSON array"),
    (["Page(b'[1', 1, None)"], AnswerUnusable, "has to be a JSON array"),
    (["Page(b'[1, 2]', 1, None)"], AnswerUnusable, "says that it has 1 records, and has 2"),
    (["Page.of([1])", "Page.of([2])"], AnswerUnusable, "a page follows one without a cursor"),
    (["Page.of([1], cursor='a')", "Page.of([1], cursor='a')"], CursorStuck, 'the cursor "a" has been there before'),
    (["Page.of([1], cursor=(1, 2))"], AnswerUnusable, "no tuples"),
    (["Page.of([1], cursor='a\\0')"], AnswerUnusable, "NUL"),
    (["Page.of([1], cursor=float('nan'))"], AnswerUnusable, "nothing that JSON has"),
    (["Page.of([1], cursor='x' * 5000)"], AnswerUnusable, "more than 4096 bytes"),
    (["Page.of(['x' * 1000])"], AnswerTooLarge, "max_body of the stage is 999"),
    (["Page.of([1], supplied_at=__import__('datetime').datetime(2026, 1, 1))"], AnswerUnusable, "no datetime with a time zone"),
]


@pytest.mark.parametrize(("pages", "error", "said"), WRONG)
def test_what_is_no_page_is_named(written: Written, pages: list[str], error: type[SluiceError], said: str) -> None:
    """Before anything of it is stored."""
    policy = POLICY.model_copy(update={"max_body": 999})
    with pytest.raises(error, match=said):
        list(written(yielding(*pages), policy=policy).pages(ALL))


def test_a_reading_ends_what_the_class_has_open(written: Written) -> None:
    """Whoever stops reading has the class tidy up at once."""
    source = written(
        """
        from sluice.ports import Page
        closed = []

        class Own:
            def __init__(self, context):
                pass

            def pages(self, request):
                try:
                    yield Page.of([1], cursor=1)
                finally:
                    closed.append(True)
        """
    )
    pages = source.pages(ALL)
    next(pages)
    pages.close()  # type: ignore[attr-defined]
    assert sys.modules[type(source._class(None)).__module__].closed == [True]


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("class Other: ...", "Own", r"has no Own"),
        ("Own = 7", "Own", "is no class with a method `pages`"),
        ("class Own: ...", "Own", "is no class with a method `pages`"),
        ("\n\nimport nothing_like_it", "Own", r"\.py:3.*No module named 'nothing_like_it'"),
        ("class Own\n  pass", "Own", r"\.py:1.*SyntaxError"),
    ],
)
def test_a_class_that_is_none_is_refused(written: Written, text: str, name: str, said: str) -> None:
    """With the file and line that is to blame."""
    with pytest.raises(SpecInvalid, match=said):
        written(text, name)
