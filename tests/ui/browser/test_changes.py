"""The biggest changes between two profiles; on a phone, the details of a box are a sheet."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import Aggregation, MetricDescriptor
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.ui.format import format_share, format_value
from tests.ui.browser.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.ui.browser.conftest import Opened

    OpenOn = Callable[..., Any]

MS = MB = 1_000_000
BEFORE = {"aten::mm": 100 * MS, "aten::add": 50 * MS, "aten::gone": 10 * MS}
AFTER = {"aten::add": 33 * MS, "aten::mm": 67 * MS, "aten::new": 5 * MS}
ROWS = ".flat tbody tr"


def saved(make_profile: Any, path: Path, costs: dict[str, int]) -> Path:
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "train", "/home/me/train.py", 3),
        *(Frame(FrameKind.OPERATOR, name) for name in costs),
    ]
    parents = [0, 0, *[1] * len(costs)]
    times = dict(enumerate(costs.values(), 2))
    make_profile(parents, frames, host_time_ns=times).save(path)
    return path


@pytest.fixture
def pair(open_on: OpenOn, make_profile: Any, tmp_path: Path) -> Iterator[Opened]:
    paths = [
        saved(make_profile, tmp_path / f"{name}.dcprof", costs)
        for name, costs in (("before", BEFORE), ("after", AFTER))
    ]
    with serving(*paths) as address, open_on(address, Profile.load(paths[0])) as opened:
        opened.go("view=compare")
        opened.page.click("[role=tab]:has-text('biggest changes')")
        opened.page.wait_for_selector(ROWS)
        yield opened


def cells(opened: Opened, name: str) -> list[str]:
    texts: list[str] = opened.page.locator(f"{ROWS}:has-text('{name}') td").all_inner_texts()
    return texts


def test_changes_of_self_are_sorted_and_new_and_gone_are_marked(pair: Opened) -> None:
    names = pair.page.locator(f"{ROWS} th").all_inner_texts()
    assert names == ["aten::mm", "aten::add", "aten::gone", "aten::new"]
    scale = sum(BEFORE.values()) / sum(AFTER.values())
    scaled = round(67 * MS * scale) - 100 * MS
    sign = "+" if scaled > 0 else ""
    assert cells(pair, "aten::mm") == [
        format_value(100 * MS, "ns"),
        format_value(67 * MS, "ns"),
        format_value(-33 * MS, "ns"),
        "\N{MULTIPLICATION SIGN} 0.67",
        sign + format_value(scaled, "ns"),
    ]
    assert cells(pair, "aten::gone")[1:4] == ["", format_value(-10 * MS, "ns"), "gone"]
    assert cells(pair, "aten::new")[2:4] == ["+" + format_value(5 * MS, "ns"), "new"]


def test_a_nearly_uniform_ratio_is_said_and_the_sides_can_be_swapped(pair: Opened) -> None:
    ratio = sum(AFTER.values()) / sum(BEFORE.values())
    text = f"Everything \N{MULTIPLICATION SIGN} {ratio:.2f}: machine or load?"
    pair.page.wait_for_selector(f"text={text}")
    pair.page.click("button:has-text('Swap')")
    pair.until("location.hash.includes('base=1')")
    pair.page.wait_for_selector(f"{ROWS}:has-text('aten::new'):has-text('gone')")
    text = f"Everything \N{MULTIPLICATION SIGN} {1 / ratio:.2f}: machine or load?"
    pair.page.wait_for_selector(f"text={text}")
    pair.page.reload()
    pair.page.wait_for_selector(f"{ROWS}:has-text('aten::new'):has-text('gone')")


def test_lines_are_compared_and_a_search_keeps_the_rows_that_match(
    opened: Opened, profiles: tuple[Path, Path]
) -> None:
    opened.go("view=compare&sides=changes&by=line")
    opened.page.wait_for_selector(ROWS)
    sides = [
        {(row.file, row.line, row.name): row.exclusive for row in by_line(Profile.load(path)).rows}
        for path in profiles
    ]
    change = {
        key: sides[1].get(key, 0) - sides[0].get(key, 0) for key in sides[0].keys() | sides[1]
    }
    most = max(change.values(), key=abs)
    first = opened.page.locator(ROWS).first
    assert format_value(most, "ns") in first.inner_text()
    opened.page.fill("input[type=search]", "torch_mlp.py")
    opened.page.wait_for_selector(".search-count")
    assert opened.page.locator(f"{ROWS}:not(:has-text('torch_mlp.py'))").count() == 0


def test_on_a_phone_a_tap_opens_a_sheet_with_the_figures_of_the_box(opened: Opened) -> None:
    page = opened.page
    page.set_viewport_size({"width": 390, "height": 844})
    # As a phone loads it: the details are closed at first.
    page.reload()
    page.wait_for_selector("canvas")
    assert page.locator(".details").count() == 0
    x, y = opened.box("Net")
    page.mouse.click(x, y)
    page.wait_for_selector(".details .numbers tr.chosen")
    bounds = page.locator(".details").bounding_box()
    assert bounds is not None
    assert bounds["y"] + bounds["height"] == pytest.approx(844, abs=1)
    assert bounds["y"] > 844 / 2
    node = max(opened.ask("find?text=Net")["nodes"], key=lambda each: each["value"])
    assert "Net" in page.inner_text(".details h2")
    row = page.locator(".details .numbers tr.chosen").inner_text()
    assert format_value(node["value"], "ns") in row
    total = int(opened.profile.exclusive("host_time_ns").sum())
    assert format_share(node["value"] / total) in row
    page.click(".details-close")
    page.wait_for_selector(".details", state="detached")


@pytest.mark.parametrize(
    "case",
    [
        ("module", "host_time_ns", "Net", (30 * MS, 50 * MS)),
        ("kernel", "gpu_time_ns", "gemm", (8 * MS, 4 * MS)),
        ("operator", "alloc_bytes", "aten::mm", (2 * MB, 9 * MB)),
    ],
)
def test_modules_kernels_and_memory_are_compared_too(
    open_on: OpenOn, make_profile: Any, tmp_path: Path, case: tuple[str, str, str, tuple[int, int]]
) -> None:
    by, metric, name, sides = case
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.MODULE, "Net"),
        Frame(FrameKind.OPERATOR, "aten::mm"),
        Frame(FrameKind.KERNEL, "gemm"),
        Frame(FrameKind.MODULE, "Head"),
    ]
    paths = []
    for side, value in enumerate(sides):
        times = {1: 30 * MS + 20 * MS * side, 4: 30 * MS}  # not everything changes alike
        profile = make_profile([0, 0, 1, 2, 0], frames, host_time_ns=times)
        more = {
            key: MetricRows(
                MetricDescriptor(key, unit, Aggregation.SUM, ""),
                node=np.array([node], np.uint32),
                count=np.array([1], np.uint64),
                total=np.array([value if key == metric else 1], np.int64),
            )
            for key, unit, node in (("gpu_time_ns", "ns", 3), ("alloc_bytes", "bytes", 2))
        }
        metrics = MetricTable({**profile.metrics, **more})
        paths.append(tmp_path / f"{side}.dcprof")
        dataclasses.replace(profile, metrics=metrics).save(paths[-1])
    with serving(*paths) as address, open_on(address, Profile.load(paths[0])) as opened:
        opened.go(f"view=compare&sides=changes&metric={metric}&by={by}")
        opened.page.wait_for_selector(f"{ROWS}:has-text('{name}')")
        unit = "bytes" if metric.endswith("bytes") else "ns"
        before, after = sides
        sign = "+" if after > before else ""
        assert cells(opened, name)[:3] == [
            format_value(before, unit),
            format_value(after, unit),
            sign + format_value(after - before, unit),
        ]
        if by == "module":
            assert opened.page.locator("text=machine or load?").count() == 0
