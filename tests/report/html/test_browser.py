"""Pages in a real browser: nothing runs but their own script, nothing is asked for, keys do."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from harness.core.verdict import Violation
from harness.report.html import Item, page
from tests.report import test_search, test_sweep
from tests.report.html.items import HOSTILE, many, report, session, small, trace_of

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = pytest.mark.skipif(
    BROWSER is None and os.environ.get("HARNESS_BROWSER") != "required",
    reason="needs a browser: make browser",
)

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WRONG = Violation("ORDER", "another order", 8, 1)
ITEMS: dict[str, list[Item]] = {
    "run": [report(small(), WRONG)],
    "hostile": [
        report(small(HOSTILE, HOSTILE), Violation("ORDER", HOSTILE, 8, 1), name=HOSTILE),
        session(HOSTILE),
    ],
    "sweep": [test_sweep.BAD],
    "search": [test_search.BAD],
    "session": [session()],
    "little": [
        report(many(0)),
        report(trace_of(*[(0, each.event) for each in small().entries[:1]])),
    ],
    "all": [
        report(small(), name="scenarios/well"),
        report(small(), WRONG, name="scenarios/wrong"),
        test_sweep.BAD,
        test_search.GOOD,
        session(),
        report(small(HOSTILE), name=HOSTILE),
    ],
    "many": [report(many(10_000), WRONG)],
    "long": [report(small("word " * 4_000), WRONG, about="word " * 4_000)],
}

DRAWN = """each => each.getContext("2d").getImageData(0, 0, each.width, each.height)
  .data.some(Boolean)"""

MARKED = """(each, top) => {
  const ratio = each.width / each.clientWidth;
  const inner = each.getContext("2d").getImageData(0, (top + 4) * ratio, each.width, 24 * ratio);
  const reds = inner.data.filter((_, at) => at % 4 === 0);
  const greens = inner.data.filter((_, at) => at % 4 === 1);
  return reds.some((red, at) => red > 150 && greens[at] < 80);
}"""
"""Whether a lane has a mark that alarms, in light."""

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of each name."""
    folder = tmp_path_factory.mktemp("pages")
    for name, items in ITEMS.items():
        (folder / f"{name}.html").write_text(page(items), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def browser(pages: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def context(browser: Browser) -> BrowserContext:
    """What a reader has who has set nothing."""
    return browser.new_context(reduced_motion="reduce")


@pytest.fixture
def show(browser: Browser, context: BrowserContext, pages: Path) -> Iterator[Open]:
    """Open a page by its name. When the test is over, it had no error and asked for nothing."""
    told: list[str] = []
    opened: list[Page] = []

    def open_(name: str, *, scripts: bool = True) -> Page:
        shown = context.new_page() if scripts else browser.new_page(java_script_enabled=False)
        opened.append(shown)
        file = (pages / f"{name}.html").as_uri()
        shown.on("console", lambda message: told.append(f"{message.type}: {message.text}"))
        shown.on("pageerror", lambda error: told.append(str(error)))
        shown.on("request", lambda asked: asked.url != file and told.append(asked.url))
        shown.goto(file)
        return shown

    yield open_
    for shown in opened:
        shown.close()
    assert told == []


def chosen(shown: Page) -> str:
    """What the first figure says of what is chosen in it."""
    return shown.locator(".detail").first.inner_text()


def until(shown: Page, holds: Callable[[], bool]) -> None:
    """Wait, frame by frame, for what the browser does with an input in its own time."""
    for _ in range(200):
        if holds():
            return
        shown.evaluate("() => new Promise(requestAnimationFrame)")
    raise AssertionError("it never was so")


def background(shown: Page) -> str:
    return shown.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("name", ["search", "little"])
def test_a_page_is_drawn_without_an_error(show: Open, name: str) -> None:
    shown = show(name)
    for element in shown.locator(".figure").all():
        element.scroll_into_view_if_needed()
        element.locator("canvas").first.wait_for()
    drawn = shown.locator("canvas").first.evaluate(DRAWN)
    assert drawn


def test_no_text_becomes_markup_or_runs(show: Open) -> None:
    shown = show("hostile")
    board = shown.locator(".board").first
    board.press("Home")
    for _ in range(10):
        assert "</script></pre><script>window.hit=1</script>" in chosen(shown)
        board.press("ArrowRight")
    assert shown.evaluate("window.hit") is None
    assert shown.locator("img").count() == 0
    assert shown.locator("script").count() == 3
    assert "window.hit" in shown.locator(".names .tool").first.inner_text()
    shown.locator("input[type=search]").nth(1).fill("<img")
    assert shown.evaluate("window.hit") is None


def test_the_policy_keeps_others_scripts_out(context: BrowserContext, pages: Path) -> None:
    tampered = (pages / "run.html").read_text(encoding="utf-8")
    tampered = tampered.replace("<main", "<script>window.hit=1</script><img src=x.png><main", 1)
    (pages / "tampered.html").write_text(tampered, encoding="utf-8")
    shown = context.new_page()
    said: list[str] = []
    shown.on("console", lambda message: said.append(message.text))
    shown.goto((pages / "tampered.html").as_uri())
    shown.locator("canvas").first.wait_for()
    assert shown.evaluate("window.hit") is None
    assert sum("Content Security Policy" in each for each in said) == 2
    shown.close()


def test_events_are_searched_and_lanes_are_left_out(show: Open) -> None:
    shown = show("run")
    lines = shown.locator(".list .line:visible")
    count = shown.locator(".figure output")
    expect(lines).to_have_count(11)
    shown.locator("input[type=search]").fill("C2")
    expect(lines).to_have_count(4)
    assert count.inner_text() == "4 of 11"
    shown.locator("input[type=search]").fill("")
    chip = shown.get_by_role("button", name="weather")
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    expect(lines).to_have_count(6)
    assert count.inner_text() == "6 of 11"
    board = shown.locator(".board")
    board.press("Home")
    for _ in range(4):
        board.press("ArrowRight")
    assert "log_row" in chosen(shown)  # over the events of weather
    chip.click()
    assert count.inner_text() == "11 events"


def test_parts_are_searched_and_left_out_by_status(show: Open) -> None:
    shown = show("all")
    parts, count = shown.locator(".part:visible"), shown.locator("nav output")
    box, failed = shown.get_by_label("search all"), shown.get_by_role("button", name="FAIL")
    assert parts.count() == 6
    box.fill("scenarios/")
    assert (parts.count(), count.inner_text()) == (2, "2 of 6")
    failed.click()
    assert (parts.count(), count.inner_text()) == (1, "1 of 6")
    box.fill("nobody said this")
    assert (parts.count(), count.inner_text()) == (0, "0 of 6")
    box.fill('"alarms"')  # is in what scripts read alone
    assert count.inner_text() == "0 of 6"
    box.fill("tool_effect")  # what happened in a run is searched too
    assert (parts.count(), count.inner_text()) == (2, "2 of 6")
    box.fill("")
    failed.click()
    assert parts.count() == 6


def test_keys_go_from_event_to_event_and_from_lane_to_lane(show: Open) -> None:
    shown = show("run")
    shown.get_by_role("button", name="show the whole run").focus()
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.getAttribute('role')") == "application"
    frame = shown.locator(".frame")
    assert frame.evaluate("each => getComputedStyle(each).outlineStyle") == "solid"
    assert "turn_started" in chosen(shown)
    for key, says in [
        ("ArrowRight", "request_sent"),
        ("ArrowDown", "tool_started"),
        ("ArrowUp", "reply_ended"),
        ("End", "turn_ended"),
        ("ArrowRight", "turn_ended"),
        ("ArrowLeft", "log_row"),
        ("Home", "turn_started"),
        ("ArrowUp", "turn_started"),
        ("x", "turn_started"),
    ]:
        shown.keyboard.press(key)
        assert says in chosen(shown), key
    assert shown.locator('.list [aria-selected="true"]').inner_text().startswith("0s")


def test_keys_go_through_the_list(show: Open) -> None:
    shown = show("many")
    shown.locator("summary").first.click()
    events = shown.get_by_role("listbox")
    events.press("ArrowDown")
    assert "turn_started" in chosen(shown)
    events.press("End")
    expect(events).to_have_attribute("aria-activedescendant", "r1-run-line-9999")
    option = shown.locator("#r1-run-line-9999")
    assert (option.get_attribute("aria-posinset"), option.get_attribute("aria-setsize")) == (
        "10000",
    ) * 2
    assert option.is_visible()
    events.press("PageUp")
    events.press("Home")
    until(shown, lambda: events.evaluate("each => each.scrollTop") < 24)
    shown.locator("input[type=search]").fill("nothing says this")
    events.press("ArrowDown")
    expect(shown.locator(".list .line:visible")).to_have_count(0)


def test_it_zooms_by_keys_buttons_and_wheel_and_lets_the_page_scroll(show: Open) -> None:
    shown = show("many")
    board = shown.locator(".board")

    def wide() -> float:
        return board.evaluate("each => each.scrollWidth / each.clientWidth")

    assert wide() == 1
    board.hover()
    shown.mouse.wheel(0, -200)
    assert wide() == 1
    shown.keyboard.down("Control")
    shown.mouse.wheel(0, -200)
    shown.keyboard.up("Control")
    until(shown, lambda: wide() > 1.2)
    board.press("0")
    assert wide() == 1
    board.press("+")
    assert wide() == pytest.approx(1.6, abs=0.1)
    shown.get_by_role("button", name="zoom in").click()
    assert wide() == pytest.approx(2.5, abs=0.1)
    board.press("-")
    shown.get_by_role("button", name="zoom out").click()
    assert wide() == 1
    shown.get_by_role("button", name="time to scale").click()
    for _ in range(30):
        board.press("+")
    assert 10 < wide() < 1e5
    board.press("End")
    assert "delta" in chosen(shown)
    shown.get_by_role("button", name="show the whole run").click()
    assert wide() == 1


def test_what_the_pointer_is_at_is_told(show: Open) -> None:
    shown = show("run")
    box = shown.locator(".board").bounding_box()
    assert box
    shown.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30 + 17)
    assert "turn_started" in chosen(shown)
    assert "lasts 100ms" in chosen(shown)
    shown.mouse.move(box["x"] + 5, box["y"] + 5)
    assert "Point at something" in chosen(shown)
    shown.mouse.click(box["x"] + box["width"] / 2, box["y"] + 30 + 17)
    shown.mouse.move(box["x"] + 5, box["y"] + 5)
    assert "turn_started" in chosen(shown)


def test_a_finding_leads_to_its_line(show: Open) -> None:
    shown = show("run")
    shown.locator(".findings a").focus()
    shown.keyboard.press("Enter")
    assert "tool_ended" in chosen(shown)
    assert shown.evaluate("document.activeElement.className") == "board"
    assert "marked" in (shown.locator('.list [aria-selected="true"]').get_attribute("class") or "")


def test_keys_lead_from_the_map_to_a_failure(show: Open) -> None:
    shown = show("sweep")
    shown.locator(".map a").first.focus()
    shown.keyboard.press("ArrowRight")
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("ArrowLeft")
    shown.keyboard.press("Enter")
    expect(shown).to_have_url(re.compile("#r1-f1$"))
    assert shown.evaluate("document.querySelector(':target').getBoundingClientRect().top") < 200
    shown.get_by_label("only what is not clean").check()
    assert shown.locator(".map .well:visible").count() == 0


@pytest.mark.parametrize("selector", [".map a", ".board", ".list"])
def test_keys_that_mean_something_to_the_browser_are_left_to_it(show: Open, selector: str) -> None:
    shown = show("sweep")
    for fold in shown.locator(".events summary").all():
        fold.click()
    shown.locator(".list .line").first.wait_for()
    kept = shown.locator(selector).first.evaluate(
        """each => ["ctrlKey", "altKey", "metaKey", ""].map((held) => {
          const key = { key: "ArrowDown", bubbles: true, cancelable: true, [held]: true };
          return each.dispatchEvent(new KeyboardEvent("keydown", key));
        })"""
    )
    assert kept == [True, True, True, False]


def test_it_is_dark_where_the_reader_wants_it(show: Open) -> None:
    shown = show("run")
    light, dark = "rgb(252, 251, 249)", "rgb(22, 24, 27)"
    assert background(shown) == light
    shown.emulate_media(color_scheme="dark")
    assert background(shown) == dark
    switch = shown.get_by_role("button", name="theme")
    switch.click()
    assert (switch.inner_text(), background(shown)) == ("theme: light", light)
    switch.click()
    assert (switch.inner_text(), background(shown)) == ("theme: dark", dark)
    switch.click()
    shown.emulate_media(color_scheme="light")
    assert (switch.inner_text(), background(shown)) == ("theme: auto", light)


def test_the_line_that_runs_it_again_is_copied(show: Open) -> None:
    shown = show("run")
    shown.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.get_by_role("button", name="copy").click()
    shown.locator(".rerun button", has_text="copied").wait_for()
    assert shown.evaluate("navigator.clipboard.readText()") == (
        "harness run scenarios/case.yaml --loop turn"
    )


def test_what_may_not_be_copied_is_chosen(show: Open) -> None:
    shown = show("run")
    shown.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error()); }")
    shown.get_by_role("button", name="copy").click()
    shown.locator(".rerun button", has_text="selected").wait_for()
    assert shown.evaluate("String(getSelection())").startswith("harness run")


def test_a_session_shows_what_is_chosen_in_it(show: Open) -> None:
    shown = show("session")
    shown.locator(".board").press("End")
    assert "note" in chosen(shown)
    assert shown.locator(".said .selected b").inner_text() == "note"
    shown.keyboard.press("ArrowDown")
    assert "429: too much" in chosen(shown)
    canvas, lane = shown.locator("canvas").first, shown.locator(".names .run")
    boxes = lane.bounding_box(), canvas.bounding_box()
    top = boxes[0]["y"] - boxes[1]["y"]
    assert canvas.evaluate(MARKED, top)  # although it ends what was asked


def test_without_scripts_all_can_be_read(show: Open) -> None:
    shown = show("all", scripts=False)
    assert shown.locator("nav a").count() == 6
    assert "turn_started" in shown.locator("pre").first.inner_text()
    assert shown.locator("pre").first.is_visible()
    assert shown.locator(".map").is_visible()


def test_nothing_stands_beyond_a_narrow_screen(show: Open) -> None:
    shown = show("all")
    shown.set_viewport_size({"width": 400, "height": 900})
    for element in shown.locator(".figure").all():
        element.scroll_into_view_if_needed()
    assert shown.evaluate("document.documentElement.scrollWidth") <= 400


def test_long_texts_leave_the_rest_in_reach_and_are_printed_whole(show: Open) -> None:
    shown = show("long")
    shown.locator(".board").press("End")
    assert "turn_ended" in chosen(shown)
    tall = "document.documentElement.scrollHeight"
    assert shown.evaluate(tall) < 3_000
    shown.emulate_media(media="print")
    assert shown.evaluate(tall) > 3_000


def test_what_was_not_in_sight_is_drawn_to_be_printed(show: Open) -> None:
    shown = show("all")
    shown.emulate_media(color_scheme="dark")
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown.emulate_media(media="print")
    canvases = shown.locator(".figure canvas:first-child").all()
    assert [each.evaluate(DRAWN) for each in canvases] == [True] * 5
    for element in shown.locator(".frame").all():
        frame, canvas = element.bounding_box(), element.locator("canvas").first.bounding_box()
        assert frame
        assert canvas
        assert frame["y"] <= canvas["y"] <= frame["y"] + 2
        assert canvas["x"] + canvas["width"] <= frame["x"] + frame["width"]
    shown.emulate_media(media="screen")
    assert shown.evaluate("document.querySelector('canvas').clientWidth") == 560
    shown.evaluate("dispatchEvent(new Event('afterprint'))")
    until(shown, lambda: shown.evaluate("document.querySelector('canvas').clientWidth") > 560)


def test_it_is_printed_in_light_and_whole(show: Open) -> None:
    shown = show("run")
    shown.emulate_media(color_scheme="dark")
    shown.locator("canvas").first.wait_for()
    assert shown.pdf().startswith(b"%PDF")
    shown.emulate_media(media="print")
    assert background(shown) == "rgb(255, 255, 255)"
    assert shown.locator("pre").is_visible()
    for hidden in (".bar", ".list", ".hint", ".rerun button"):
        assert shown.locator(hidden).first.is_hidden()


def test_ten_thousand_events_are_a_few_elements_and_quickly_drawn(show: Open) -> None:
    shown = show("many")
    shown.locator("summary").first.click()
    shown.locator(".list .line").first.wait_for()
    assert shown.locator("*").count() < 400
    took = shown.evaluate(
        """async () => {
          const board = document.querySelector(".board");
          const took = [];
          for (let frame = 0; frame < 20; frame++) {
            const zoom = { deltaY: frame < 10 ? -40 : 40, ctrlKey: true, cancelable: true };
            board.dispatchEvent(new WheelEvent("wheel", zoom));
            await new Promise(requestAnimationFrame);
            const begun = performance.now();
            await new Promise((done) => setTimeout(done));
            took.push(performance.now() - begun);
          }
          return took.sort((a, b) => a - b)[10];
        }"""
    )
    assert took < 100  # a few milliseconds where nothing else runs
