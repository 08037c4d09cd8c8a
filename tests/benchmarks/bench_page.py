"""Pages: how large they are, how long they take to make and to open, and whether they stay fluid.

Frames are those of a real browser, while the lanes of 10,000 events are zoomed, moved and pointed
at, and their list is scrolled and searched. A frame of 16.7 ms is 60 a second; `work` is what one
took of the page's own thread.

Run it by hand, in a quiet moment: ``python tests/benchmarks/bench_page.py``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright

from harness.core.verdict import Violation
from harness.report.html import Item, page

sys.path.insert(0, str(Path(__file__).parents[2]))  # where the tests are found, too

from tests.report import test_search, test_sweep
from tests.report.html.items import many, report, session, small
from tests.report.html.test_browser import BROWSER, FLAGS

EVENTS = 10_000
PAGES: dict[str, list[Item]] = {
    "nothing": [],
    "a run of 11 events": [report(small())],
    "a sweep with a failure": [test_sweep.BAD],
    "a search with a finding": [test_search.BAD],
    "a session": [session()],
    f"a run of {EVENTS:,} events": [report(many(EVENTS), Violation("ORDER", "a breach", 5_000, 1))],
    "300 runs": [report(small())] * 300,
}
MOVES = {
    "zoom in": "board.dispatchEvent(wheel(-18))",
    "move": "board.scrollLeft += 37",
    "zoom out": "board.dispatchEvent(wheel(18))",
    "point at": "board.dispatchEvent(pointer(n))",
    "scroll the list": "list.scrollTop += 1500",
    "scroll the page": "scrollBy(0, n % 2 ? 40 : -40)",
    "search": "seek('call_' + n % 10)",
}
FRAMES = """async () => {
  const [board, list] = [".board", ".list"].map((each) => document.querySelector(each));
  const box = document.querySelector("input[type=search]");
  const at = board.getBoundingClientRect();
  const wheel = (deltaY) => new WheelEvent("wheel",
    { deltaY, ctrlKey: true, clientX: at.left + 400, cancelable: true });
  const pointer = (n) => new PointerEvent("pointermove",
    { clientX: at.left + 7 * n, clientY: at.top + 50 + n % 150 });
  const seek = (text) => { box.value = text; box.dispatchEvent(new Event("input")); };
  const [frames, work] = [[], []];
  let last = await new Promise(requestAnimationFrame);
  for (let n = 0; n < 120; n++) {
    MOVE;
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - last);
    last = now;
    const begun = performance.now();
    await new Promise((done) => {
      const channel = new MessageChannel();
      channel.port1.onmessage = done;
      channel.port2.postMessage(0);
    });
    work.push(performance.now() - begun);
  }
  const share = (numbers, at) => numbers.sort((a, b) => a - b)[Math.floor(at * 119)];
  return [share(frames, 0.5), share(frames, 0.95), share(work, 0.5), share(work, 0.95)];
}"""


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def opened(shown: Page, file: Path) -> float:
    """Open a page, and give the milliseconds until all of it was there."""
    shown.goto(file.as_uri())
    return shown.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")


def main() -> None:
    if BROWSER is None:
        say("there is no browser here: make browser")
        return
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        shown = browser.new_page(viewport={"width": 1280, "height": 1000})
        file = Path(folder) / "page.html"
        for name, items in PAGES.items():
            begun = time.process_time()
            text = page(items)
            took = (time.process_time() - begun) * 1_000
            file.write_text(text, encoding="utf-8")
            there = opened(shown, file)
            say(f"{name:<24} {len(text) / 1_000:8,.0f} kB {took:6.0f} ms made {there:6.0f} ms open")
        file.write_text(page(PAGES[f"a run of {EVENTS:,} events"]), encoding="utf-8")
        opened(shown, file)
        shown.locator("summary").first.click()
        say(f"\n{EVENTS:,} events{'':<11} frame: median    95 %     work: median    95 %")
        for name, move in MOVES.items():
            figures = shown.evaluate(FRAMES.replace("MOVE", move))
            say(f"{name:<24} {'':<6} {'  '.join([f'{each:6.1f} ms' for each in figures])}")
        browser.close()


if __name__ == "__main__":
    main()
