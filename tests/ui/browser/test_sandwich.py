"""The sandwich: a list of all functions, and one definition of self and calls in list and panel."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import Aggregation, MetricDescriptor
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.ui.format import format_count, format_value
from tests.ui.browser.conftest import serving
from tests.ui.browser.test_surfaces import box

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.ui.browser.conftest import Opened

    OpenOn = Callable[..., Any]

METRIC = "host_time_ns"
ROWS = ".functions tbody tr"


def row_texts(opened: Opened, name: str) -> list[str]:
    """Return total, self and calls of a function in the list."""
    row = opened.page.locator(f"{ROWS}:has(.link[title='{name}'])").first
    row.wait_for()
    return row.locator("td").all_inner_texts()


def test_the_list_has_every_function_and_is_sorted_and_filtered(opened: Opened) -> None:
    opened.go("view=sandwich")
    opened.page.wait_for_selector(ROWS)
    answer = opened.ask("functions")
    rows = answer["rows"]
    assert opened.page.locator(ROWS).count() == len(rows)
    own = [row["exclusive"] for row in rows]
    assert sum(own) == int(opened.profile.exclusive(METRIC).sum())
    texts = opened.page.locator(f"{ROWS} td:nth-child(3)").all_inner_texts()
    assert texts == [format_value(value, "ns") for value in own]
    opened.page.click(".functions th >> text=total")
    opened.until("location.hash.includes('sort=inclusive')")
    most = format_value(max(row["inclusive"] for row in rows), "ns")
    opened.page.wait_for_selector(f"{ROWS}:first-child td:nth-child(2):has-text('{most}')")
    opened.page.fill("input[type=search]", "addmm")
    wanted = [row for row in rows if "addmm" in row["name"].lower()]
    opened.page.wait_for_selector(f".search-count:has-text('{len(wanted)} · ')")
    assert opened.page.locator(ROWS).count() == len(wanted)
    opened.page.press("input[type=search]", "Enter")
    costliest = max(wanted, key=lambda row: row["exclusive"])["name"]
    opened.page.wait_for_selector(f".details h2:has-text('{costliest}')")
    opened.page.wait_for_selector(f".functions tr[aria-current]:has-text('{costliest}')")


def test_recursive_calls_and_kernels_have_the_same_figures_everywhere(
    open_on: OpenOn, make_profile: Any, tmp_path: Path
) -> None:
    """A function below itself, at two places; its kernel has the time of the GPU."""
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "train", "/home/me/train.py", 3),
        Frame(FrameKind.PYTHON, "test", "/home/me/train.py", 9),
        Frame(FrameKind.OPERATOR, "aten::to"),
        Frame(FrameKind.KERNEL, "copy_kernel"),
    ]
    # root > train > to > to > kernel; root > test > to
    profile = make_profile(
        [0, 0, 1, 2, 3, 0, 5],
        [frames[0], frames[1], frames[3], frames[3], frames[4], frames[2], frames[3]],
        host_time_ns={2: 4_000_000, 3: 2_000_000, 6: 1_000_000},
        call_samples_ns={2: [4_000_000], 3: [1_000_000] * 80, 6: [500_000] * 2},
    )
    gpu = MetricRows(
        MetricDescriptor("gpu_time_ns", "ns", Aggregation.SUM, ""),
        node=np.array([4], np.uint32),
        count=np.array([1], np.uint64),
        total=np.array([9_000_000], np.int64),
    )
    metrics = MetricTable({**profile.metrics, "gpu_time_ns": gpu})
    profile = dataclasses.replace(profile, metrics=metrics)
    path = tmp_path / "recursive.dcprof"
    profile.save(path)
    total, own = (format_value(7_000_000, "ns") for _ in "ab")
    with serving(path) as address, open_on(address, profile) as opened:
        frame = int(np.flatnonzero([each.name == "aten::to" for each in profile.frames])[0])
        opened.go(f"view=sandwich&func={frame}&metric={METRIC}")
        assert row_texts(opened, "aten::to") == [total, own, format_count(83)]
        row = opened.page.locator(".details .numbers tr.chosen td")
        row.first.wait_for()
        assert row.all_inner_texts()[:2] == [total, own]
        pairs = opened.text(".details .pairs")
        assert format_count(83) in pairs
        opened.go("view=table")
        opened.page.wait_for_selector(".flat tbody tr")
        cells = opened.page.locator(".flat tr:has-text('aten::to') td").all_inner_texts()
        assert format_count(83) in cells
        # Self time of the GPU is the kernel's, in the list and in the panel.
        opened.go(f"view=sandwich&func={frame}&metric=gpu_time_ns")
        assert row_texts(opened, "aten::to")[:2] == [
            format_value(9_000_000, "ns"),
            format_value(0, "ns"),
        ]
        row.first.wait_for()
        assert row.all_inner_texts()[1] == format_value(0, "ns")
        assert row_texts(opened, "copy_kernel")[1] == format_value(9_000_000, "ns")


def test_forward_and_backward_of_a_function_are_named(opened: Opened) -> None:
    node = opened.ask("find?text=aten::addmm")["nodes"][0]
    opened.go(f"view=sandwich&func={node['id']}")
    answer = opened.ask(f"node?function={node['id']}")
    opened.page.wait_for_selector(".sandwich-title:has-text(' + ')")
    title = opened.text(".sandwich-title")
    for each in answer["phases"]:
        assert f"{each['phase']} {format_value(each['value'], 'ns')}" in title
    assert {"forward", "backward"} <= {each["phase"] for each in answer["phases"]}
    functions, callers, callees = (
        box(opened.page.locator(part))
        for part in (".functions", ".flame >> nth=0", ".flame >> nth=1")
    )
    assert functions[2] <= callers[0] == callees[0]
    assert callers[3] <= callees[1]
