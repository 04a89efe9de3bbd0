"""Switches in a real browser: the first use after a look at the page, and later uses; frames; memory.

Runs `deepcontext view` and a headless Chromium without a GPU. Each switch is the first one of a page
that has been looked at for a second, and then one of many in another page. The engine's part is what
the page measures itself (`performance.measure`); the page's part is the script of the whole switch,
drawing included, as the browser accounts for it. Needs playwright and chromium
(tools/setup_browser.sh).

    python benchmarks/page_switches.py [NODES]
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

SIZES = (10_000, 1_000_000)
BARS_MS = {10_000: 16, 1_000_000: 250}
ROUNDS = {10_000: 1, 1_000_000: 1}
AGAIN = 1
LOOK_MS = 1_500
LONG_MS = 60_000
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
# Frames of two seconds in which every frame asks for the next one: half of them zoom, half pan.
FRAMES = """
(milliseconds) => new Promise((done) => {
  const graph = document.querySelector(".flame");
  const box = graph.getBoundingClientRect();
  const place = { clientX: box.left + box.width * 0.4, clientY: box.top + 60, bubbles: true, cancelable: true };
  const began = performance.now();
  let frames = 0;
  const step = (now) => {
    frames++;
    if (now - began > milliseconds) return done((1000 * frames) / (now - began));
    const zooms = now - began < milliseconds / 2;
    const change = zooms ? { deltaY: frames % 60 < 45 ? -60 : 120, ctrlKey: true } : { deltaX: frames % 40 < 20 ? 80 : -80 };
    graph.dispatchEvent(new WheelEvent("wheel", { ...place, ...change }));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})
"""


class Page:
    """A page of a browser, and what the browser says about it."""

    def __init__(self, browser: Any, address: str) -> None:
        # A context of its own has a process of its own, in which nothing is compiled.
        self.context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
        self.page = self.context.new_page()
        self.devtools = self.context.new_cdp_session(self.page)
        self.devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.page.goto(f"{address}#view=flame")
        self.page.wait_for_selector(".status", timeout=LONG_MS)
        self.page.wait_for_timeout(LOOK_MS)

    def go(self, place: str) -> tuple[float, float]:
        """Go to a place; return the engine's time and the script's, ms."""
        place = place if place.startswith("view=") else f"view=flame&{place}"
        before = self.script_ms()
        self.page.evaluate("performance.clearMeasures()")
        self.page.evaluate(f"location.hash = '{place}'")
        kind = "table" if "table" in place else "flame"
        longest = (
            f"Math.max(0, ...performance.getEntriesByName('{kind}').map((each) => each.duration))"
        )
        while not (engine := self.page.evaluate(longest)):
            self.page.wait_for_timeout(10)
        self.page.wait_for_timeout(300)
        return engine, self.script_ms() - before

    def script_ms(self) -> float:
        metrics = self.devtools.send("Performance.getMetrics")["metrics"]
        return next(1000 * each["value"] for each in metrics if each["name"] == "ScriptDuration")

    def frames_a_second(self) -> float:
        return self.page.evaluate(FRAMES, 2_000)


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def tab_mib(browser: Any) -> float:
    """Return the largest memory of a tab's process so far, MiB."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    renderers = [each["id"] for each in processes if each["type"] == "renderer"]
    texts = [Path(f"/proc/{each}/status").read_text() for each in renderers]
    peaks = [line for text in texts for line in text.splitlines() if line.startswith("VmHWM")]
    return max(int(line.split()[1]) / 1024 for line in peaks)


def measured(nodes: int) -> tuple[list[list[str]], str]:
    """Return the rows of the switches, and a sentence with frames and memory."""
    first: dict[str, list[tuple[float, float]]] = {name: [] for name in SWITCHES}
    again: dict[str, list[tuple[float, float]]] = {name: [] for name in SWITCHES}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.dcprof"
        random_profile(nodes, depth=40).save(path)
        with serving(path) as (address, _), chromium() as browser:
            for name, place in SWITCHES.items():
                for _ in range(ROUNDS[nodes]):
                    page = Page(browser, address)
                    first[name].append(page.go(place))
                    page.context.close()
            page = Page(browser, address)
            frames = page.frames_a_second()
            for number in range(AGAIN):
                for name, place in SWITCHES.items():
                    page.go("hidden=scope" if number % 2 else "hidden=operator")
                    again[name].append(page.go(varied(place, number)))
            memory = tab_mib(browser)
    rows = [
        [
            f"{nodes:,}: {name}",
            *(
                f"{statistics.median(each):.1f}"
                for times in (first, again)
                for each in zip(*times[name], strict=True)
            ),
            f"{BARS_MS[nodes]}",
        ]
        for name in SWITCHES
    ]
    return rows, (
        f"{nodes:,} nodes: zoom and pan {frames:.0f} frames a second (bar 60), the tab's process {memory:.0f} "
        f"MiB at most after {AGAIN * len(SWITCHES)} switches (bar 1024)."
    )


def varied(place: str, number: int) -> str:
    """Return a place like another one, whose answer no page has yet."""
    if "table" in place:
        return f"{place}&by=module"
    return (
        f"{place},hide:{20 + number}:f"
        if "edits" in place
        else f"{place}&edits=hide:{20 + number}:f"
    )


def table(sizes: tuple[int, ...] = SIZES) -> Table:
    """Measure, and return the table."""
    rows, notes = [], []
    for nodes in sizes:
        of_size, note = measured(nodes)
        rows += of_size
        notes.append(note)
    head = [
        "switch",
        "engine, first",
        "script, first",
        "engine, again",
        "script, again",
        "bar of the engine, ms",
    ]
    notes.append(f"{machine()}. Headless Chromium without a GPU, {WIDTH} x {HEIGHT}; medians, ms.")
    return Table("Switches in the browser", head, rows, notes)


if __name__ == "__main__":
    print(table(tuple(map(int, sys.argv[1:])) or SIZES).markdown())
