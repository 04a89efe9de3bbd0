"""The page at any size: nothing is hidden, nothing is blank, and every action has an effect."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.jax.operation_nodes import fusions_of_nodes
from deepcontext.profiler.summaries.operators import by_operator
from deepcontext.ui.format import format_ns
from tests.ui.browser.conftest import serving
from tests.ui.conftest import gpu_profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator

    from tests.ui.browser.conftest import Opened

    OpenOn = Callable[..., Any]

Box = tuple[float, float, float, float]


def box(part: Locator) -> Box:
    """Return left, top, right and bottom of a part of the page."""
    bounds = part.bounding_box()
    assert bounds is not None
    left, top = bounds["x"], bounds["y"]
    return left, top, left + bounds["width"], top + bounds["height"]


def overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("width", [1440, 1280, 1260, 1259, 1024, 900, 720])
def test_every_view_and_button_is_visible(opened: Opened, width: int) -> None:
    opened.page.set_viewport_size({"width": width, "height": 700})
    opened.page.fill(".search input", "mm")
    opened.page.wait_for_selector(".search-count")
    header = opened.page.locator(
        ".brand select, .brand-run, .tabs button, .search input, .search-count, .header .icon"
    )
    boxes = [box(part) for part in header.all()]
    assert len(boxes) > 12
    assert all(left >= 0 and right <= width for left, _, right, _ in boxes)
    pairs = [(a, b) for place, a in enumerate(boxes) for b in boxes[place + 1 :]]
    assert [pair for pair in pairs if overlap(*pair)] == []


def test_on_a_phone_nothing_overlaps_and_the_chosen_view_is_visible(opened: Opened) -> None:
    opened.page.set_viewport_size({"width": 390, "height": 844})
    select = box(opened.page.locator(".brand select"))
    search = box(opened.page.locator(".search input"))
    assert not overlap(select, search)
    for icon in opened.page.locator(".header > .icon").all():
        left, top, right, _ = box(icon)
        assert search[2] <= left
        assert right <= 390
        assert top < search[3]
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    canvas = box(opened.page.locator("canvas"))
    assert canvas[1] < 844 / 4
    # Lines wrap: no part has to be pushed aside, and the switches come when they are asked for.
    assert not opened.page.locator(".layers").is_visible()
    opened.page.click(".more")
    parts = opened.page.locator(".tabs button, .toolbar button, .toolbar select, .check").all()
    assert len(parts) > 20
    for part in parts:
        left, _, right, _ = box(part)
        assert left >= 0
        assert right <= 390
    opened.go("view=trust")
    trust = opened.page.locator(".tabs button[aria-current=page]")
    opened.page.wait_for_timeout(300)
    left, _, right, _ = box(trust)
    assert left >= 0
    assert right <= 390


def test_a_profile_of_gpu_work_alone_opens_with_a_picture(
    open_on: OpenOn, make_profile: Any, tmp_path: Path
) -> None:
    path = tmp_path / "gpu.dcprof"
    profile = gpu_profile(make_profile, with_operator=False)
    profile.save(path)
    with serving(path) as address, open_on(address, profile) as opened:
        opened.go()
        opened.status("24.0 ms")
        measure = opened.page.locator(".field:has-text('Measure') select")
        assert measure.input_value() == "gpu_time_ns"


def test_lines_have_bars_of_the_time_of_the_gpu(
    open_on: OpenOn, make_profile: Any, tmp_path: Path
) -> None:
    path = tmp_path / "gpu.dcprof"
    profile = gpu_profile(make_profile, with_operator=True)
    profile.save(path)
    with serving(path) as address, open_on(address, profile) as opened:
        opened.go("view=source")
        bar = opened.page.locator("tr[data-line='7'] .phase-bar")
        bar.wait_for()
        assert bar.get_attribute("aria-label") == "GPU time 24.0 ms"


def test_a_kernel_of_torch_compile_names_the_lines_fused_into_it(
    open_on: OpenOn, make_profile: Any, tmp_path: Path
) -> None:
    script = tmp_path / "net.py"
    script.write_text("one\ntwo\nthree\n")
    launch = {
        "file": "/tmp/torchinductor_me/ab/cab.py",
        "line": 10,
        "operators": ["aten.sin", "aten.mul"],
        "source": [[str(script), 2, "forward"]],
        "is_complete": False,
    }
    section = json.dumps({"version": 1, "kernels": {"triton_poi_fused_0": [launch]}}).encode()
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "step", str(script), 3),
        Frame(FrameKind.OPERATOR, "triton_poi_fused_0"),
    ]
    profile = make_profile([0, 0, 1], frames, host_time_ns={2: 24_000_000})
    profile = profile.with_section("torch_compile", section)
    path = tmp_path / "compiled.dcprof"
    profile.save(path)
    with serving(path) as address, open_on(address, profile) as opened:
        opened.go()
        opened.status("24.0 ms")
        opened.page.mouse.click(*opened.box("triton_poi_fused_0"))
        opened.page.wait_for_selector(".fused")
        assert opened.text(".fused").splitlines()[-1].startswith("and other lines: INDUCTOR")
        assert "aten.sin, aten.mul" in opened.text(".fused")
        opened.page.click(".fused .link")
        opened.page.wait_for_selector("text=two")
        assert "line=2" in opened.page.url


def test_a_fusion_of_jax_names_the_lines_that_are_in_it(open_on: OpenOn) -> None:
    path = Path("tests/real_programs/profiles/jax_transformer.dcprof").resolve()
    profile = Profile.load(path)
    nodes = fusions_of_nodes(profile)
    time = profile.inclusive("device_time_ns")
    node = max(nodes, key=lambda each: int(time[each]))
    lines = {member.source.line for member in nodes[node].members if member.source.line > 0}
    assert lines
    with serving(path) as address, open_on(address, profile) as opened:
        opened.go(f"view=flame&metric=device_time_ns&library=1&lines=1&zoom={node}")
        opened.page.wait_for_selector(".fused")
        links = opened.page.locator(".fused .link").all_inner_texts()
        assert {int(text.rpartition(":")[2]) for text in links} == lines
        assert nodes[node].members[0].primitive in opened.text(".fused")
        opened.page.click(".fused .link >> nth=0")
        opened.page.wait_for_selector("main[aria-label='source'] .wanted")


def test_boxes_too_narrow_to_draw_are_marked(
    open_on: OpenOn, make_profile: Any, tmp_path: Path
) -> None:
    operators = [Frame(FrameKind.OPERATOR, f"aten::op_{place}") for place in range(20_000)]
    profile = make_profile(
        [0, 0, *[1] * len(operators)],
        [Frame(FrameKind.ROOT, ""), Frame(FrameKind.THREAD, "MainThread"), *operators],
        host_time_ns={place + 2: 1_000_000 for place in range(len(operators))},
    )
    path = tmp_path / "wide.dcprof"
    profile.save(path)
    with serving(path) as address, open_on(address, profile) as opened:
        for view, level in (("flame", 2), ("bottom-up", 1)):
            opened.go(f"view={view}")
            opened.status("20,000 narrower than")
            mark, below = colours(opened, 20 * level + 3, 20 * level + 12)
            assert mark > 1
            assert below == 1  # the mark is no box: it ends well above the next level


def colours(opened: Opened, *lines: int) -> list[int]:
    """Return how many colours each of some lines of the canvas has."""
    counts: list[int] = opened.page.evaluate(
        """(lines) => {
          const canvas = document.querySelector("canvas");
          const { width, height } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
          return lines.map((y) => {
            const seen = new Set();
            for (let at = 4 * y * width; at < 4 * (y + 1) * width; at += 4)
              seen.add(data.slice(at, at + 3).join());
            return seen.size;
          });
        }""",
        list(lines),
    )
    return counts


def test_the_whole_program_has_every_measure_and_a_click_shows_it(opened: Opened) -> None:
    total = int(opened.profile.exclusive("elapsed_time_ns").sum())
    row = opened.page.locator(".details .numbers tr:has-text('elapsed time')").first
    assert format_ns(total) in row.inner_text()
    row.locator("button").click()
    opened.status(format_ns(total))
    assert "metric=elapsed_time_ns" in opened.page.url


@pytest.mark.parametrize("how", ["keys", "button"])
def test_copying_gives_the_call_path(opened: Opened, how: str) -> None:
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    x, y = opened.box("aten::addmm")
    opened.page.mouse.click(x, y)
    opened.page.wait_for_selector(".details .path")
    if how == "keys":
        opened.page.keyboard.press("Control+c")
    else:
        opened.page.click(".path-head button")
        opened.page.wait_for_selector(".path-head button:has-text('Copied')")
    lines = opened.page.evaluate("navigator.clipboard.readText()").splitlines()
    assert lines[0] == "MainThread"
    assert lines[1] == "<module>  examples/torch_mlp.py"
    assert lines[-1] == "aten::addmm"


def test_a_table_is_copied_as_markdown(opened: Opened) -> None:
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.go("view=table")
    opened.page.click("button:has-text('Copy as Markdown')")
    opened.page.wait_for_selector("button:has-text('Copied')")
    head, line, *rows = opened.page.evaluate("navigator.clipboard.readText()").splitlines()
    assert head.startswith("| name | total | self | phases |")
    assert line == "|" + " --- |" * 7
    assert len(rows) == opened.page.locator(".flat tbody tr").count()
    assert all(row.replace("\\|", "").count("|") == 8 for row in rows)
    largest = by_operator(opened.profile).rows[0]
    assert format_ns(largest.exclusive) in rows[0]
    assert "forward" in "".join(rows)


def test_marked_text_is_copied_as_it_is(opened: Opened) -> None:
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    x, y = opened.box("aten::addmm")
    opened.page.mouse.click(x, y)
    opened.page.dblclick(".details .path .dot + button")
    opened.page.evaluate("getSelection().selectAllChildren(document.querySelector('.status b'))")
    opened.page.keyboard.press("Control+c")
    text = opened.page.evaluate("navigator.clipboard.readText()")
    assert text == opened.text(".status b")


def test_a_search_without_a_match_says_so(opened: Opened) -> None:
    opened.page.fill(".search input", "no such name")
    opened.page.wait_for_selector(".search-count:has-text('no match')")
    assert opened.page.locator("[aria-label='Next match']").is_disabled()


def test_printing_a_table_leaves_nothing_out(opened: Opened) -> None:
    opened.go("view=table")
    rows = opened.page.locator(".flat tbody tr")
    rows.first.wait_for()
    opened.page.set_viewport_size({"width": 1000, "height": 300})
    opened.page.emulate_media(media="print")
    assert not opened.page.locator(".header").is_visible()
    height = opened.page.evaluate("document.documentElement.scrollHeight")
    assert box(rows.last)[3] <= height


def test_a_dark_page_is_printed_in_dark_letters(opened: Opened) -> None:
    opened.page.emulate_media(color_scheme="dark")
    opened.go("view=trust")
    heading = opened.page.locator("h2").first
    heading.wait_for()
    assert brightness(heading) > 128
    opened.page.emulate_media(color_scheme="dark", media="print")
    assert brightness(heading) < 128


def brightness(part: Locator) -> float:
    """Return how bright a text's colour is, 0 to 255."""
    colour: str = part.evaluate("(each) => getComputedStyle(each).color")
    red, green, blue = (int(value) for value in re.findall(r"\d+", colour)[:3])
    return (red + green + blue) / 3


def test_library_files_without_cost_are_folded(opened: Opened) -> None:
    opened.go("view=source")
    opened.page.wait_for_selector(".files .file")
    shares = opened.page.locator(".files section > .file .muted:last-child").all_inner_texts()
    assert "0.0 %" not in shares[1:]
    folded = opened.page.locator(".costless .file")
    assert folded.count() > 0
    assert not folded.first.is_visible()
    opened.page.click(".costless summary")
    assert folded.first.is_visible()


def test_messages_of_collectors_are_in_words_and_units(opened: Opened) -> None:
    opened.go("view=trust")
    row = opened.page.locator("tr:has(th:text-is('cpu sampling'))")
    row.wait_for()
    assert "rate 100 Hz" in row.inner_text()
    assert "_" not in row.inner_text()


def test_an_empty_profile_leads_to_the_reasons(
    open_on: OpenOn, make_profile: Any, tmp_path: Path
) -> None:
    path = tmp_path / "empty.dcprof"
    profile = make_profile([0], [Frame(FrameKind.ROOT, "")])
    profile.save(path)
    with serving(path) as address, open_on(address, Profile.load(path)) as opened:
        opened.go()
        opened.page.wait_for_selector("text=Nothing was recorded")
        opened.page.click(".empty button")
        opened.page.wait_for_selector("h2:has-text('Collectors')")


def test_escape_zooms_out_wherever_the_focus_is(opened: Opened) -> None:
    x, y = opened.box("aten::addmm")
    opened.page.mouse.click(x, y)
    opened.until("location.hash.includes('zoom=')")
    zoomed = opened.page.url
    # A link to the same address, where nothing has the focus.
    opened.go(zoomed.partition("#")[2])
    opened.page.wait_for_selector(".details h2:has-text('aten::addmm')")
    opened.page.keyboard.press("Escape")
    opened.until("!location.hash.includes('zoom=')")


def test_the_views_are_links_a_screen_reader_can_list(opened: Opened) -> None:
    views = opened.page.get_by_role("navigation", name="Views").get_by_role("button")
    names = views.all_inner_texts()
    assert names[:4] == ["Overview", "Flame graph", "Bottom-up", "Sandwich"]
    opened.page.keyboard.press("2")
    opened.page.wait_for_selector("[aria-current=page]:has-text('Bottom-up')")


def test_a_long_finding_stays_on_its_card_on_a_phone(
    open_on: OpenOn, profiles: tuple[Path, Path], tmp_path: Path
) -> None:
    profile = Profile.load(profiles[0])
    found = [{"id": "hotspot", "title": f"slow at {'a_long_folder/' * 8}x.py:7", "nodes": [1]}]
    path = tmp_path / "found.dcprof"
    profile.with_section("findings", json.dumps(found).encode()).save(path)
    with serving(path) as address, open_on(address, profile) as opened:
        opened.page.set_viewport_size({"width": 390, "height": 844})
        opened.go("view=findings")
        title = opened.page.locator(".finding h2")
        title.wait_for()
        width = title.evaluate("(each) => each.scrollWidth - each.clientWidth")
        assert width <= 0
        assert box(title)[2] <= box(opened.page.locator(".finding"))[2]


@pytest.mark.parametrize("width", [1280, 600, 390])
def test_names_of_deep_rows_can_be_read(
    open_on: OpenOn, make_profile: Any, tmp_path: Path, width: int
) -> None:
    depth = 120
    frames = [
        Frame(FrameKind.PYTHON, f"level_{at}", "/home/me/a.py", at + 1) for at in range(depth)
    ]
    profile = make_profile(
        [max(at - 1, 0) for at in range(depth + 2)],
        [Frame(FrameKind.ROOT, ""), *frames, Frame(FrameKind.OPERATOR, "aten::add")],
        host_time_ns={depth + 1: 1_000},
    )
    path = tmp_path / "deep.dcprof"
    profile.save(path)
    with serving(path) as address, open_on(address, profile) as opened:
        opened.page.set_viewport_size({"width": width, "height": 800})
        opened.go("shape=tree")
        opened.page.wait_for_selector(".grid-row")
        opened.page.evaluate("document.querySelector('.grid-box').scrollTo(0, 1e6)")
        name = opened.page.locator(".tree-name .clip:text-is('aten::add')")
        name.wait_for()
        assert name.evaluate("(each) => each.scrollWidth <= each.clientWidth")


def test_the_view_is_the_same_after_a_reload(opened: Opened) -> None:
    x, y = opened.box("aten::addmm")
    opened.page.mouse.click(x, y)
    opened.page.wait_for_selector(".details h2:has-text('aten::addmm')")
    opened.until("location.hash.includes('zoom=')")
    opened.page.reload()
    opened.page.wait_for_selector(".details h2:has-text('aten::addmm')")


def test_callers_as_a_table_have_no_empty_columns(opened: Opened) -> None:
    opened.go("view=bottom-up&shape=tree")
    opened.page.wait_for_selector(".grid-row")
    heads = opened.page.locator(".grid-head [role=columnheader]")
    assert [head.inner_text() for head in heads.all() if head.is_visible()] == ["function", "cost"]
    right = box(opened.page.locator(".grid-box"))[2]
    assert right - box(opened.page.locator(".grid-row .value-share").first)[2] < 40


def test_a_long_name_of_a_file_is_not_cut_off_on_a_phone(
    open_on: OpenOn, profiles: tuple[Path, Path], tmp_path: Path
) -> None:
    profile = Profile.load(profiles[0])
    name = "_".join(["a_long_name"] * 8)
    strings = [text.replace("torch_mlp", name) for text in profile.frames.strings]
    profile = dataclasses.replace(
        profile, frames=dataclasses.replace(profile.frames, strings=strings)
    )
    path = tmp_path / "long.dcprof"
    profile.save(path)
    with serving(path) as address, open_on(address, profile) as opened:
        opened.page.set_viewport_size({"width": 390, "height": 844})
        opened.go("view=overview")
        links = opened.page.locator(f".overview button:has-text('{name}')")
        links.first.wait_for()
        for link in links.all():
            left, _, right, _ = box(link)
            assert left >= 0
            assert right <= 390
        sideways = "(each) => each.scrollWidth - each.clientWidth"
        assert opened.page.locator(".overview").evaluate(sideways) <= 0


def test_a_name_from_right_to_left_leaves_what_follows_in_its_place(
    open_on: OpenOn, make_profile: Any, tmp_path: Path
) -> None:
    name, file = "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}", "/home/me/a.py"
    frames = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.PYTHON, name, file, 12)]
    profile = make_profile([0, 0], frames, host_time_ns={1: 1_000})
    path = tmp_path / "hebrew.dcprof"
    profile.save(path)
    # Where each character of a text stands.
    places = """(each) => Array.from(each.textContent, (letter, at) => {
      const range = document.createRange();
      range.setStart(each.firstChild, at);
      range.setEnd(each.firstChild, at + 1);
      return [letter, range.getBoundingClientRect().left];
    })"""
    with serving(path) as address, open_on(address, profile) as opened:
        opened.go("shape=tree&lines=1")
        shown = opened.page.locator(f".tree-name .clip:has-text('{name}')")
        shown.wait_for()
        left = dict(shown.evaluate(places))
        assert left[name[1]] < left[name[0]] < left[":"] < left["1"] < left["2"]
