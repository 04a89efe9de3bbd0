"""A profile of a million nodes in the browser: first paint, zooming, search, size of answers.

Runs `deepcontext view` in a separate process, and a headless Chromium without a GPU against it, to
measure what a user waits for on a small machine. Needs playwright and chromium
(tools/setup_browser.sh).
"""

from __future__ import annotations

import contextlib
import gzip
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paired import Table, machine

import deepcontext

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES = 1_000_000
WIDTH, HEIGHT = 2560, 1300
STEPS = 60
# Time of the first label on the canvas, and how long each frame's script ran.
WATCH = """
window.measured = { paint: null, script: [], between: [], typed: 0, search: [] };
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (...parts) {
  measured.paint ??= performance.now();
  return write.apply(this, parts);
};
const request = window.requestAnimationFrame.bind(window);
let last = 0;
window.requestAnimationFrame = (run) => request((time) => {
  const began = performance.now();
  run(time);
  measured.script.push(performance.now() - began);
  if (last) measured.between.push(time - last);
  last = time;
});
// From the key to the first picture with the count of matches.
addEventListener("input", (event) => {
  measured.typed = event.target.value ? performance.now() : 0;
}, true);
new MutationObserver(() => {
  if (!measured.typed || !document.querySelector(".search-count")) return;
  const began = measured.typed;
  measured.typed = 0;
  request(() => measured.search.push(performance.now() - began));
}).observe(document, { subtree: true, childList: true });
"""
SEARCHED = ("aten", "frame_77", "linear", "frame_5", "conv")


@contextlib.contextmanager
def serving(path: Path) -> Iterator[tuple[str, float]]:
    """Yield the page's address, and seconds from the start of the command until it is printed."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "deepcontext", "view", "--no-browser", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        try:
            yield address, time.perf_counter() - began
        finally:
            server.terminate()


def ask(address: str, question: str) -> tuple[float, int]:
    """Return seconds and bytes of an answer as it is sent."""
    request = urllib.request.Request(
        f"{address}api/{question}", headers={"Accept-Encoding": "gzip"}
    )
    began = time.perf_counter()
    with urllib.request.urlopen(request) as response:
        size = len(response.read())
    return time.perf_counter() - began, size


def in_browser(address: str) -> dict[str, Any]:
    """Return what a page measures: first paint, frames of zooming, search; all in ms."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.add_init_script(WATCH)
        page.goto(f"{address}#view=flame")
        # Not wait_for_function: the page's security policy forbids it to make code of strings.
        while (paint := page.evaluate("measured.paint")) is None:
            page.wait_for_timeout(20)
        page.wait_for_timeout(500)
        page.evaluate("measured.script.length = measured.between.length = 0")
        page.keyboard.down("Control")
        page.mouse.move(WIDTH * 0.3, HEIGHT * 0.3)
        for step in range(STEPS):
            page.mouse.wheel(0, -120 if step < STEPS * 2 / 3 else 240)
            page.wait_for_timeout(20)
        page.keyboard.up("Control")
        frames = page.evaluate("measured")
        page.wait_for_timeout(1000)  # finer answers for the place that was zoomed in to
        for text in SEARCHED:
            page.fill("input[type=search]", text)
            page.wait_for_selector(".search-count")
            page.wait_for_timeout(200)
            page.fill("input[type=search]", "")
            page.wait_for_selector(".search-count", state="detached")
        search = statistics.median(page.evaluate("measured.search"))
        browser.close()
    return {"paint": paint, "search": search, **{key: frames[key] for key in ("script", "between")}}


def bundle_sizes() -> list[list[str]]:
    """Return rows with the bytes of the page's scripts, and of all that is sent with them.

    The script of the time line has a limit of its own.
    """
    static = Path(deepcontext.__file__).parent / "ui" / "web" / "static"
    own = static / "timeline.js"
    script = b"".join(path.read_bytes() for path in sorted(static.glob("*.js")) if path != own)
    packed = len(gzip.compress(script, mtime=0))
    sent = sum(len(gzip.compress(each.read_bytes())) for each in static.iterdir())
    return [
        ["scripts but the time line's", f"{len(script) / 1000:.1f} kB", "<= 190 kB"],
        ["scripts but the time line's, compressed", f"{packed / 1000:.1f} kB", "<= 62 kB"],
        ["script of the time line", f"{own.stat().st_size / 1000:.1f} kB", "<= 40 kB"],
        ["scripts, style and frame, compressed", f"{sent / 1000:.0f} kB", "150 kB"],
    ]


def table(nodes: int = NODES) -> Table:
    profile = random_profile(nodes)
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.dcprof"
        profile.save(path)
        with serving(path) as (address, opened):
            rows.append(["command to address printed", f"{opened * 1000:.0f} ms", ""])
            measured = in_browser(address)
            script, between = sorted(measured["script"]), measured["between"]
            rows += [
                ["page request to first picture", f"{measured['paint']:.0f} ms", "< 1000 ms"],
                [
                    "zoom, script of a frame, median",
                    f"{statistics.median(script):.1f} ms",
                    "<= 16 ms",
                ],
                ["zoom, script of a frame, worst", f"{script[-1]:.1f} ms", ""],
                [
                    "zoom, from frame to frame, median",
                    f"{statistics.median(between):.1f} ms",
                    "<= 50 ms",
                ],
                [
                    "search, key to picture with the count, median",
                    f"{measured['search']:.0f} ms",
                    "< 100 ms + 60 ms that wait for the next key",
                ],
                *bundle_sizes(),
            ]
            for question in ("about", "columns"):
                seconds, size = ask(address, question)
                rows.append([f"`{question}`", f"{seconds * 1000:.0f} ms", f"{size / 1000:.0f} kB"])
    return Table(
        f"Web page, {nodes:,} nodes",
        ["what", "measured", "bound, or size as sent"],
        rows,
        [
            f"Headless Chromium without a GPU, {WIDTH} x {HEIGHT}; server and browser share the "
            f"machine. `benchmarks/page_switches.py` has switches, frames a second and memory. {machine()}.",
        ],
    )


if __name__ == "__main__":
    print(table(int(sys.argv[1]) if len(sys.argv) > 1 else NODES).markdown())
