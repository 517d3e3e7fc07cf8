"""Pages in a real browser: that of a run follows it and is used by keyboard; all are fit for a phone and for the night."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, expect

from sluice.model.base import ShardKey
from sluice.model.lifecycle import RunEvent, ShardStatus
from sluice.model.run import Failure
from tests.browser.conftest import Site, Window
from tests.unit.flow.workshop import NORTH, RUN, SOUTH, Workshop
from tests.unit.web.visitor import DAG, Visitor

MAY = "2024-05-01T00:00:00Z"
PAGE = f"dags/{DAG}/runs/{RUN}"
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


@pytest.fixture
def workshop() -> Workshop:
    """A run whose shards are planned."""
    workshop = Workshop()
    workshop.equip()
    workshop.begin()
    return workshop


@pytest.fixture
def site(workshop: Workshop) -> Iterator[Site]:
    """Its pages."""
    site = Site(Visitor(workshop))
    site.up()
    yield site
    site.down()


def listed(frame: FrameLocator) -> list[int]:
    """Return the numbers of the events on the page, the newest first."""
    return [int(number) for number in frame.locator("#events td:first-child").all_inner_texts()]


def test_a_run_is_followed_though_the_server_goes_down(workshop: Workshop, site: Site, window: Window) -> None:
    """Squares and events come by themselves, each event once; what happened while nobody served is made up for."""
    window.page.goto(site.framed(PAGE))
    frame = window.page.frame_locator("iframe")
    expect(frame.locator('.strip [data-shard="north"]')).to_have_class("pending")
    workshop.bring_in(NORTH, ("a", MAY))
    expect(frame.locator('.strip [data-shard="north"]')).to_have_class("succeeded")
    expect(frame.locator("[data-figure=records]")).to_have_text("1")
    site.down()
    workshop.lose(SOUTH)
    site.up()
    expect(frame.locator('.strip [data-shard="south"]')).to_have_class("failed")
    services = workshop.services
    services.runs.end(services.runs.get(RUN), RunEvent.FAIL, Failure(error="ShardsFailed", message="shard south"))
    expect(frame.locator("h1 .status")).to_have_text("failed")
    expect(frame.locator("#shards tbody tr").first).to_contain_text("SupplierRefused")
    last = services.events.newest(RUN, 1)[0].seq
    assert listed(frame) == list(range(last, 0, -1))


def test_whoever_is_shut_out_is_told_that_nothing_new_comes(site: Site, window: Window) -> None:
    """Figures that have become old do not pass for new ones."""
    window.page.goto(site.address(PAGE))
    notice = window.page.locator("#stale")
    expect(notice).to_be_hidden()
    site.down()
    site.visitor.reads = set()
    site.up()
    expect(notice).to_contain_text("You are logged out, or may not see this run any more")
    window.complaints = [said for said in window.complaints if "403" not in said]


def test_it_is_used_by_keyboard(workshop: Workshop, site: Site, window: Window) -> None:
    """The first stop leads to the content; a shard's button opens the form, which is filled in, sent and answered in place."""
    workshop.lose(SOUTH)
    page = window.page
    page.goto(site.address(PAGE))
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_role("button", name="By hand: south").focus()
    page.keyboard.press("Enter")
    expect(page.locator("form input[name=shard]")).to_have_value("south")
    expect(page.locator("details[open] form input[name=reason]")).to_be_focused()
    page.keyboard.type("they have mended it")
    page.keyboard.press("Enter")
    expect(page.locator("details[open] output")).to_contain_text("south begins again from its first page.")
    assert workshop.shard(SOUTH).status is ShardStatus.PENDING
    page.keyboard.press("Enter")
    expect(page.locator("#trail")).to_contain_text("they have mended it")


def test_a_refusal_is_said_in_place(workshop: Workshop, site: Site, window: Window) -> None:
    """What the server says against it stands by the form, as text."""
    page = window.page
    page.goto(site.address(PAGE))
    page.get_by_text("Release a dead lease…").click()
    form = page.locator("form", has_text="Release the lease")
    form.locator("input[name=reason]").fill("it is dead")
    form.get_by_role("button").click()
    expect(form.locator("output")).to_contain_text("has shown life")
    window.complaints = [said for said in window.complaints if "409" not in said]


@pytest.mark.parametrize(
    "path", ["", f"dags/{DAG}", PAGE, "reviews", "letters", f"dags/{DAG}/letters", f"dags/{DAG}/publications"]
)
def test_every_page_is_fit_for_a_phone_and_for_the_night(workshop: Workshop, site: Site, window: Window, path: str) -> None:
    """Nothing runs over the edge of a small screen, and all text can be read, in the light and in the dark."""
    workshop.lose(SOUTH)
    for number in range(200):
        key = ShardKey(f"a shard with rather a long name, number {number}")
        workshop.memory.shards[RUN, key] = workshop.shard(SOUTH).model_copy(update={"key": key})
    page = window.page
    page.set_viewport_size({"width": 360, "height": 740})
    grounds = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(site.address(path))
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), scheme
        assert page.evaluate(CONTRAST) == [], scheme
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_it_can_be_read_without_scripts(workshop: Workshop, site: Site, chromium: Browser) -> None:
    """Whoever allows none sees all that there is, as it was when the page was asked for."""
    workshop.lose(SOUTH)
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site.address(f"{PAGE}?shards=failed"))
    expect(page.locator("#shards tbody th")).to_have_text(["south"])
    context.close()
