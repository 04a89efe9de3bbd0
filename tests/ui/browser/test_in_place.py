"""Hidden frames open in place; legends filter; waits are shown by line; the tip leaves children free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import Aggregation, MetricDescriptor
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.profile import Profile
from tests.ui.browser.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.ui.browser.conftest import Opened

    OpenOn = Callable[..., Any]

LIBRARY = "/usr/lib/python3/site-packages/lib"
STEP, IDLE = 20_000_000, 9_000_000
BY_LINE = ("gpu_idle_ns", "sync_wait_ns", "sampled_cpu_time_ns")


@pytest.fixture
def waiting(open_on: OpenOn, make_profile: Any, tmp_path: Path) -> Iterator[Opened]:
    """Open a loop whose two lines call a library, which calls itself and then an operator."""
    import dataclasses

    from deepcontext.profiler.model.run_info import RunInfo

    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.PYTHON, "train", "/home/me/train.py", 3),
        Frame(FrameKind.PYTHON, "fetch", f"{LIBRARY}/outer.py", 10),
        Frame(FrameKind.PYTHON, "collate", f"{LIBRARY}/inner.py", 20),
        Frame(FrameKind.OPERATOR, "aten::stack"),
        Frame(FrameKind.PYTHON, "train", "/home/me/train.py", 7),
        Frame(FrameKind.OPERATOR, "aten::item"),
    ]
    profile = make_profile(
        [0, 0, 1, 2, 3, 4, 1, 6],
        frames,
        host_time_ns={5: STEP, 7: STEP // 4},
        run=RunInfo(cwd="/home/me", script="train.py"),
    )
    by_line = {
        name: MetricRows(
            MetricDescriptor(name, "ns", Aggregation.SUM, ""),
            node=np.array([2, 6], np.uint32),
            count=np.array([1, 1], np.uint64),
            total=np.array([IDLE, 1_000_000], np.int64),
        )
        for name in BY_LINE
    }
    metrics = MetricTable({**profile.metrics, **by_line})
    profile = dataclasses.replace(profile, metrics=metrics)
    path = tmp_path / "waiting.dcprof"
    profile.save(path)
    with serving(path) as address, open_on(address, Profile.load(path)) as opened:
        opened.go()
        opened.page.wait_for_selector("canvas")
        yield opened


def test_hidden_library_frames_open_where_they_stand(waiting: Opened) -> None:
    page = waiting.page
    page.mouse.click(*waiting.box("train"))
    hidden = page.locator(".details .link:has-text('2 library frames hidden')")
    hidden.click()
    page.wait_for_selector(".crumb:has-text('libraries in train')")
    page.keyboard.press("v")
    for name in ("fetch", "collate"):
        page.wait_for_selector(f".tree-name .clip:text-is('{name}')")
    assert page.locator("text=library frames hidden").count() == 0
    page.go_back()
    page.go_back()
    page.wait_for_selector("canvas")
    assert page.locator(".crumb").count() == 0


def test_idle_waits_and_samples_are_shown_by_line_until_the_user_decides_otherwise(
    waiting: Opened,
) -> None:
    page = waiting.page
    lines = page.locator(".check:has-text('lines') input")
    for metric in BY_LINE:
        page.select_option(".field:has-text('Measure') select", "host_time_ns")
        waiting.until("!document.querySelectorAll('.check input')[1].checked")
        page.select_option(".field:has-text('Measure') select", metric)
        waiting.until("document.querySelectorAll('.check input')[1].checked")
    page.keyboard.press("v")
    page.wait_for_selector(".tree-name .clip:text-is('train:3')")
    lines.click()
    page.wait_for_selector(".tree-name .clip:text-is('train')")
    assert "lines=0" in page.url


def test_an_opened_row_of_callers_opens_its_chain_of_only_callers(waiting: Opened) -> None:
    page = waiting.page
    waiting.go("view=bottom-up&shape=tree&library=1")
    row = page.locator(".grid-row[aria-level='2']:has-text('aten::item')")
    row.locator(".twist").click()
    page.wait_for_selector(".grid-row[aria-level='4']:has-text('MainThread')")


def test_a_click_on_the_legend_of_phases_counts_one_phase(opened: Opened) -> None:
    opened.page.select_option(".field:has-text('Colour') select", "phase")
    legend = opened.page.locator(".legend-line button:has-text('backward')")
    legend.click()
    opened.until("location.hash.includes('phase=backward')")
    assert legend.get_attribute("aria-pressed") == "true"
    legend.click()
    opened.until("!location.hash.includes('phase=backward')")


def test_the_tip_leaves_the_children_of_a_box_free(opened: Opened) -> None:
    for name in ("Linear 'fc2'", "Net"):
        x, y = opened.box(name)
        opened.page.mouse.move(x, y)
        tip = opened.page.locator(".tooltip")
        tip.wait_for()
        bounds = tip.bounding_box()
        assert bounds is not None
        assert bounds["y"] + bounds["height"] <= y - 9
    # With the root at the bottom, children are above.
    x, y = opened.box("Linear 'fc2'")
    opened.go("view=flame&roots=bottom")
    canvas = opened.page.locator("canvas").bounding_box()
    assert canvas is not None
    y = 2 * canvas["y"] + canvas["height"] - y
    opened.page.mouse.move(x, y)
    opened.page.wait_for_selector(".tooltip:has-text('fc2')")
    bounds = opened.page.locator(".tooltip").bounding_box()
    assert bounds is not None
    assert bounds["y"] >= y + 9
    # Below the lowest row is no room: the tip stands where the details are.
    opened.page.mouse.move(x, canvas["y"] + canvas["height"] - 10)
    opened.page.wait_for_selector(".tooltip:has-text('whole program')")
    bounds = opened.page.locator(".tooltip").bounding_box()
    assert bounds is not None
    assert bounds["x"] >= canvas["x"] + canvas["width"]
