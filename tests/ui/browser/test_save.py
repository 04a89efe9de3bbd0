"""What one takes away as a file: a graph as a picture, and the page itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.ui.format import format_value
from tests.ui.browser.conftest import WHERE, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.ui.browser.conftest import Opened

SVG = "{http://www.w3.org/2000/svg}"


def saved(opened: Opened, folder: Path, act: Callable[[], None]) -> Path:
    with opened.page.expect_download() as download:
        act()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_a_graph_is_saved_as_a_picture_of_all_its_levels(opened: Opened, tmp_path: Path) -> None:
    page = opened.page
    page.set_viewport_size({"width": 1280, "height": 300})  # most levels are out of sight
    opened.go("view=flame")
    page.wait_for_selector("canvas")
    path = saved(opened, tmp_path, lambda: page.click("text=Save as SVG"))
    assert path.name == "short.dcprof.svg"
    picture = ET.parse(path).getroot()
    nodes = opened.ask("flame?px=1280")["nodes"]
    levels = max(nodes["depth"]) + 1
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    assert height == 20 * levels
    _, *boxes = (each.attrib for each in picture.findall(f"{SVG}rect"))  # the first is the ground
    wide = {
        depth
        for depth, value in zip(nodes["depth"], nodes["value"], strict=True)
        if value * width >= 2 * nodes["value"][0]
    }
    assert {float(box["y"]) for box in boxes} >= {20.0 * depth for depth in wide}
    assert len(wide) > 10
    assert max(float(box["width"]) for box in boxes) >= width - 2  # the whole program
    texts = [text.text or "" for text in picture.findall(f"{SVG}text")]
    assert texts[0] == "whole program"
    assert len(texts) >= sum(float(box["width"]) >= 100 for box in boxes) > 1


# Size of a picture on the clipboard, and how many colours a column of it has.
COPIED = """async () => {
  const [item] = await navigator.clipboard.read();
  const image = await createImageBitmap(await item.getType("image/png"));
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(image.width / 2, 0, 1, image.height);
  const colors = new Set();
  for (let at = 0; at < data.length; at += 4) colors.add(data.slice(at, at + 3).join());
  return [image.width, image.height, colors.size];
}"""


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_a_graph_is_copied_as_an_image_of_all_its_levels(opened: Opened) -> None:
    page = opened.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set_viewport_size({"width": 1280, "height": 300})  # most levels are out of sight
    opened.go("view=flame")
    page.wait_for_selector("canvas")
    page.click("text=Copy as image")
    page.wait_for_selector(".spoken:has-text('picture copied')", state="attached")
    width, height, colors = page.evaluate(COPIED)
    levels = max(opened.ask("flame?px=1280")["nodes"]["depth"]) + 1
    assert (width, height) == (page.evaluate("document.querySelector('canvas').width"), 20 * levels)
    assert colors > 2


def test_a_zoomed_graph_with_marks_in_its_names_is_a_picture_too(
    open_on: Callable[..., Any], make_profile: Any, tmp_path: Path
) -> None:
    names = ["<a & b>", "plain\x07bell"]
    operators = [Frame(FrameKind.OPERATOR, name) for name in names]
    profile = make_profile(
        [0, 0, 0], [Frame(FrameKind.ROOT, ""), *operators], host_time_ns={1: 1_000, 2: 3_000}
    )
    path = tmp_path / "names.dcprof"
    profile.save(path)
    with serving(path) as address, open_on(address, profile) as opened:
        opened.go("view=flame")
        opened.page.wait_for_selector("canvas")
        picture = saved(opened, tmp_path, lambda: opened.page.keyboard.press("g"))
        texts = [each.text for each in ET.parse(picture).getroot().findall(f"{SVG}text")]
        assert names[0] in texts
        opened.page.mouse.click(*opened.box(names[0]))
        opened.until("location.hash.includes('zoom=')")
        picture = saved(opened, tmp_path, lambda: opened.page.keyboard.press("g"))
        texts = [each.text for each in ET.parse(picture).getroot().findall(f"{SVG}text")]
        assert names[0] in texts
        assert not any("bell" in (text or "") for text in texts)


def test_the_page_is_saved_as_one_file_that_works_from_disk(
    open_on: Callable[..., Any], opened: Opened, tmp_path: Path
) -> None:
    path = saved(opened, tmp_path, lambda: opened.page.keyboard.press("e"))
    assert path.name == "short.dcprof.html"
    with open_on(path.as_uri(), opened.profile) as again:
        again.go()
        again.status(format_value(int(opened.profile.exclusive("host_time_ns").sum()), "ns"))
