"""Switches in a real browser: the first one after a look at the page, and later ones; frames; memory.

Runs `deepcontext view`, and against it a headless Chromium without a GPU. "First" is the first switch of
a page that has been looked at for a second, in a process of its own; "again" is the same switch of other
trees in one page. "Answer" is the elapsed time until the engine's thread has answered, which the page
measures itself (`performance.measure`); the thread's is the processor time of the page's own thread for
the whole switch: views, layout and drawing; "longest" is the longest task of this thread. Needs
playwright and chromium (tools/setup_browser.sh).

    python benchmarks/page_switches.py [NODES ...]
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paired import Table, machine
from web_ui import serving

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

BARS_MS = {10_000: 16, 1_000_000: 250}
ROUNDS = {10_000: 5, 1_000_000: 3}
AGAIN = {10_000: 6, 1_000_000: 2}
LOOK_MS = 1_000
REST_MS = 300
WIDTH, HEIGHT = 1920, 1080
SWITCHES = {
    "show libraries": "library=1",
    "tell lines apart": "library=1&lines=1",
    "hide modules": "hidden=module",
    "backward only": "phase=backward",
    "split by phase": "pivot=phase",
    "bottom-up": "view=bottom-up",
    "drop a function": "edits=drop:9:f",
    "focus on a function": "edits=focus:9:f",
    "table of operators": "view=table",
}
TABLES = ("module", "line", "scope", "kernel")
WATCH = """
window.blocked = [];
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) blocked.push(each.duration);
}).observe({ type: "longtask", buffered: true });
"""
# Each frame asks for the next one and moves the graph; the first half zooms, the second half pans.
FRAMES = """
(milliseconds) => new Promise((done) => {
  const graph = document.querySelector(".flame");
  const box = graph.getBoundingClientRect();
  const place = { clientX: box.left + box.width * 0.4, clientY: box.top + 60 };
  const began = performance.now();
  let frames = 0;
  const step = (now) => {
    if (now - began > milliseconds) return done((1000 * frames) / (now - began));
    frames++;
    const zoom = { deltaY: frames % 60 < 45 ? -60 : 180, ctrlKey: true };
    const pan = { deltaX: frames % 40 < 20 ? 80 : -80 };
    const change = now - began < milliseconds / 2 ? zoom : pan;
    const options = { bubbles: true, cancelable: true, ...place, ...change };
    graph.dispatchEvent(new WheelEvent("wheel", options));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})
"""


class Page:
    """A page that shows a graph and has been looked at for a second."""

    def __init__(self, browser: Any, address: str) -> None:
        self.context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
        self.page = self.context.new_page()
        self.page.add_init_script(WATCH)
        self.devtools = self.context.new_cdp_session(self.page)
        self.devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.page.goto(f"{address}#view=flame")
        self.page.wait_for_selector(".status")
        self.page.wait_for_timeout(LOOK_MS)

    def go(self, place: str) -> tuple[float, float, float]:
        """Go to a place; return the time of the answer, that of the thread, and its longest task, ms."""
        what = "table" if "table" in place else "flame"
        before = self.thread_ms()
        self.page.evaluate("performance.clearMeasures(); blocked.length = 0")
        self.page.evaluate(
            f"location.hash = '{place if 'view=' in place else f'view=flame&{place}'}'"
        )
        # The sum, because the page asks again for what it zoomed in to.
        took = (
            f"performance.getEntriesByName('{what}').reduce((sum, each) => sum + each.duration, 0)"
        )
        while not (answer := self.page.evaluate(took)):
            self.page.wait_for_timeout(10)
        self.page.wait_for_timeout(REST_MS)
        return answer, self.thread_ms() - before, self.blocked_ms()

    def thread_ms(self) -> float:
        metrics = self.devtools.send("Performance.getMetrics")["metrics"]
        return next(1000 * each["value"] for each in metrics if each["name"] == "TaskDuration")

    def blocked_ms(self) -> float:
        """Return the longest task of the page's thread so far."""
        return float(self.page.evaluate("Math.max(0, ...blocked)"))

    def frames_a_second(self) -> float:
        return float(self.page.evaluate(FRAMES, 3_000))


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        yield browser
        browser.close()


def tab_mib(browser: Any) -> float:
    """Return the largest memory that the process of a tab had so far, MiB."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    renderers = [each["id"] for each in processes if each["type"] == "renderer"]
    lines = [Path(f"/proc/{each}/status").read_text().splitlines() for each in renderers]
    peaks = [line.split()[1] for each in lines for line in each if line.startswith("VmHWM")]
    return max(int(peak) / 1024 for peak in peaks)


def varied(place: str, number: int) -> str:
    """Return a place like another one, for which no page has an answer yet."""
    if "table" in place:
        return f"{place}&by={TABLES[number % len(TABLES)]}"
    hide = f"hide:{20 + number}:f"
    return f"{place},{hide}" if "edits" in place else f"{place}&edits={hide}"


def median(times: list[tuple[float, ...]]) -> list[str]:
    return [f"{statistics.median(each):.1f}" for each in zip(*times, strict=True)]


def measured(address: str, nodes: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return the rows of the switches, and the rows of what else a page takes."""
    first: dict[str, list[tuple[float, ...]]] = {name: [] for name in SWITCHES}
    again: dict[str, list[tuple[float, ...]]] = {name: [] for name in SWITCHES}
    blocked = []
    for _ in range(ROUNDS[nodes]):
        for name, place in SWITCHES.items():
            # A browser of its own, because processes and code are kept for the next page.
            with chromium() as browser:
                page = Page(browser, address)
                blocked.append(page.blocked_ms())
                first[name].append(page.go(place))
    with chromium() as browser:
        page = Page(browser, address)
        frames = page.frames_a_second()
        opened = tab_mib(browser)
        for number in range(AGAIN[nodes]):
            for name, place in SWITCHES.items():
                page.go(f"edits=hide:{40 + len(SWITCHES) * number + list(SWITCHES).index(name)}:f")
                again[name].append(page.go(varied(place, number)))
        memory = tab_mib(browser)
    switches = [
        [f"{nodes:,}: {name}", *median(first[name]), *median(again[name]), f"{BARS_MS[nodes]}"]
        for name in SWITCHES
    ]
    count = 2 * AGAIN[nodes] * len(SWITCHES)
    others = [
        [f"{nodes:,}: zoom and pan, frames a second", f"{frames:.0f}", "60"],
        [f"{nodes:,}: memory of the tab, first picture", f"{opened:.0f} MiB", "1024 MiB"],
        [f"{nodes:,}: memory of the tab, {count} switches", f"{memory:.0f} MiB", "1024 MiB"],
        [
            f"{nodes:,}: longest task of the first picture",
            f"{statistics.median(blocked):.0f} ms",
            "",
        ],
    ]
    return switches, others


def tables(sizes: tuple[int, ...] = tuple(BARS_MS)) -> list[Table]:
    """Measure, and return the tables."""
    switches, others = [], []
    for nodes in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "made.dcprof"
            random_profile(nodes, depth=40).save(path)
            with serving(path) as (address, _):
                of_switches, of_others = measured(address, nodes)
        switches += of_switches
        others += of_others
    where = f"Headless Chromium without a GPU, {WIDTH} x {HEIGHT}. {machine()}."
    head = [
        "ms",
        *("answer, first", "thread, first", "longest, first"),
        *("answer, again", "thread, again", "longest, again"),
        "bar of the answer",
    ]
    return [
        Table("Switches in the browser", head, switches, [f"Medians. {where}"]),
        Table("Frames and memory of the page", ["what", "measured", "bar"], others, [where]),
    ]


if __name__ == "__main__":
    for each in tables(tuple(map(int, sys.argv[1:])) or tuple(BARS_MS)):
        print(each.markdown())
