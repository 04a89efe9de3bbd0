"""Make the pictures of the documentation from real runs of the tutorial's program.

usage: python tools/make_pictures.py [--only README|tutorial|GPU] [--out FOLDER]

Records both versions of the program in docs/tutorials/find-a-bottleneck.md, serves the page as
`deepcontext view` does, and drives it in Debian's Chromium. Writes the moving picture of the README
(page.webp), the two pictures of the tutorial, and one of a profile from a GPU that a visit brought home
(`benchmarks/visits`). Needs playwright and chromium
(tools/setup_browser.sh) and Pillow (`pip install pillow`). The figures in the pictures are those of
the machine that the script runs on: run it where nothing else does.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator, Page

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
VISIT = ROOT / "benchmarks" / "visits" / "2026-11-26-h100"
TUTORIAL = ROOT / "docs" / "tutorials" / "find-a-bottleneck.md"
PROGRAM = re.compile(r"^```python\n(# recommend\.py\n.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_BYTES = 1_000_000
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]

FILM_SIZE = (1120, 560)
CAPTION_HEIGHT = 40
MOVE_FRAMES = 5
MOVE_MS = 50
POINTER = ((0, 0), (0, 17), (4, 13), (7, 19), (10, 18), (7, 12), (12, 12))


class Film:
    """The frames of a moving picture: the page, a pointer, and a caption below the page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.caption = ""
        self.frames: list[Image.Image] = []
        self.durations_ms: list[int] = []
        self._at = (FILM_SIZE[0] * 0.55, FILM_SIZE[1] * 0.6)
        self._font = ImageFont.load_default(size=19)

    def hold(self, seconds: float) -> None:
        """Show the page as it is now for some seconds."""
        self.page.wait_for_timeout(400)  # the page animates a zoom
        self._add(self._shot(), int(seconds * 1000))

    def click(self, target: Locator) -> None:
        """Move the pointer to the middle of an element and click there."""
        box = target.bounding_box()
        if box is None:
            sys.exit(f"{target} is not visible")
        shot = self._shot()
        start, end = self._at, (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        for step in range(1, MOVE_FRAMES + 1):
            part = step / MOVE_FRAMES
            self._at = (
                start[0] + (end[0] - start[0]) * part,
                start[1] + (end[1] - start[1]) * part,
            )
            self._add(shot, MOVE_MS)
        target.click()

    def save(self, path: Path) -> None:
        """Write the frames as an animated WebP that starts again at its end."""
        first, *others = self.frames
        first.save(
            path,
            save_all=True,
            append_images=others,
            duration=self.durations_ms,
            loop=0,
            quality=80,
            method=6,
        )
        size_bytes = path.stat().st_size
        print(f"{path}: {len(self.frames)} frames, {size_bytes:,} bytes")
        if size_bytes >= MOST_BYTES:
            sys.exit(f"'{path}' has {size_bytes:,} bytes, at most {MOST_BYTES:,} are wanted")

    def _shot(self) -> Image.Image:
        return Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")

    def _add(self, shot: Image.Image, duration_ms: int) -> None:
        width, height = FILM_SIZE
        frame = Image.new("RGB", (width, height + CAPTION_HEIGHT), "#1f2430")
        frame.paste(shot, (0, 0))
        draw = ImageDraw.Draw(frame)
        middle = height + CAPTION_HEIGHT / 2
        draw.text((16, middle), self.caption, "#ffffff", self._font, anchor="lm")
        x, y = self._at
        draw.polygon([(x + dx, y + dy) for dx, dy in POINTER], "#000000", "#ffffff")
        self.frames.append(frame)
        self.durations_ms.append(duration_ms)


def film(page: Page, path: Path) -> None:
    """Show how the page leads from a slow run to the line, the advice and the difference."""
    made = Film(page)

    def tab(label: str) -> Locator:
        return page.locator("nav.tabs").get_by_text(label, exact=True)

    page.wait_for_selector("canvas")
    made.caption = "One training run: every box is a call path, its width is its time"
    made.hold(2.5)
    page.keyboard.press("k")
    made.caption = (
        "Coloured by phase: the backward pass stands below the forward line that caused it"
    )
    made.hold(3)
    made.click(tab("Findings"))
    page.wait_for_selector(".finding")
    made.caption = (
        "Findings: what to change, with a bound on the gain, and when the advice misleads"
    )
    made.hold(3.5)
    made.click(page.get_by_role("button", name="Show in the graph").first)
    page.wait_for_selector("canvas")
    made.caption = "The finding in the graph: a lookup, and the backward pass it causes"
    made.hold(2.5)
    made.click(tab("Source"))
    page.wait_for_selector(".source, [role=region]")
    made.caption = "The source: the cost of each line, backward pass included"
    made.hold(3)
    made.click(tab("Compare"))
    page.wait_for_selector("canvas")
    made.caption = "The run before the fix against the run after it: blue is less time"
    made.hold(3.5)
    made.save(path)


def tutorial_pictures(browser: Browser, profiles: list[Path], out: Path) -> None:
    """Take the two pictures of the tutorial."""
    places = (
        ("bottleneck-before.png", "view=flame"),
        ("bottleneck-difference.png", "view=compare"),
    )
    for name, place in places:
        with opened(browser, profiles, (1280, 480), place) as page:
            page.wait_for_selector("canvas")
            page.wait_for_timeout(500)
            page.screenshot(path=out / name)
            print(out / name)


def gpu_picture(browser: Browser, out: Path) -> None:
    """Take the picture of a training step of GPT-2 on a GPU, by the time of its kernels."""
    with opened(
        browser, [VISIT / "gpt2.dcprof"], (1280, 640), "view=flame&metric=gpu_time_ns&color=phase"
    ) as page:
        page.wait_for_selector("canvas")
        page.wait_for_timeout(500)
        page.screenshot(path=out / "gpu.png")
        print(out / "gpu.png")


@contextlib.contextmanager
def opened(
    browser: Browser, profiles: list[Path], size: tuple[int, int], place: str = ""
) -> Iterator[Page]:
    """Serve profiles as `deepcontext view` does, and open the page."""
    command = [sys.executable, "-m", "deepcontext", "view", "--no-browser", *map(str, profiles)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = cast("IO[str]", server.stdout).readline().strip()
            viewport: Any = {"width": size[0], "height": size[1]}
            page = browser.new_page(viewport=viewport)
            page.goto(f"{address}#{place}")
            yield page
            page.close()
        finally:
            server.terminate()


def record(folder: Path) -> list[Path]:
    """Profile the tutorial's program before and after its change."""
    before, after = PROGRAM.findall(TUTORIAL.read_text(encoding="utf-8"))
    profiles = []
    for name, text in (("before", before), ("after", after)):
        # A folder each: the source view shows a file only as it was when the program ran.
        (folder / name).mkdir()
        (folder / name / "recommend.py").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "deepcontext", "profile", "--no-report"]
        command += ["-o", f"../{name}.dcprof", "recommend.py"]
        subprocess.run(command, cwd=folder / name, check=True)
        profiles.append(folder / f"{name}.dcprof")
    return profiles


def main() -> None:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description="Make the pictures of the documentation.")
    parser.add_argument("--only", choices=["README", "tutorial", "GPU"], help="make only these")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder to write to")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        profiles = record(Path(folder))
        browser = play.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        if options.only in {None, "GPU"}:
            gpu_picture(browser, options.out)
        if options.only in {None, "README"}:
            with opened(browser, profiles, FILM_SIZE, "view=flame") as page:
                film(page, options.out / "page.webp")
        if options.only in {None, "tutorial"}:
            tutorial_pictures(browser, profiles, options.out)
        browser.close()


if __name__ == "__main__":
    main()
