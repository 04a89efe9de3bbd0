"""Controls that `test_views.py` does not test, and data without a view of its own."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.profiler.format.metric import Aggregation, MetricDescriptor
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.profiler.summaries.operators import by_operator
from deepcontext.ui.format import format_bytes, format_count, format_ns, format_share, format_value
from tests.ui.browser.conftest import ROOT, WHERE, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.ui.browser.conftest import Opened

    OpenOn = Callable[..., Any]

METRIC = "host_time_ns"


def largest_context(profile: Profile, name: str) -> int:
    """Return the node of a name that costs the most."""
    nodes = profile.query().name(name).nodes()
    return int(nodes[np.argmax(profile.inclusive(METRIC)[nodes])])


def test_keys_change_the_address(opened: Opened) -> None:
    opened.page.locator("canvas").focus()
    for key, part in (("h", "library=1"), ("l", "lines=1"), ("t", "order=size"), ("k", "phase")):
        opened.page.keyboard.press(key)
        opened.until(f"location.hash.includes('{part}')")
    opened.page.keyboard.press("i")
    opened.page.wait_for_selector(".details", state="detached")
    opened.page.keyboard.press("i")
    opened.page.wait_for_selector(".details")


def test_children_can_be_ordered_by_size(opened: Opened) -> None:
    opened.go("shape=tree&order=size&library=1&lines=1")
    opened.page.wait_for_selector(".grid-row")
    rows: list[str] = []
    for level in range(2, 12):
        rows = opened.page.locator(
            f".grid-row[aria-level='{level}'] .value-share"
        ).all_inner_texts()
        if len(rows) > 1:  # the children of one node, because each level above has one only
            break
    shares = [float(text.removeprefix("< ").removesuffix(" %")) for text in rows]
    assert len(shares) > 1
    assert shares == sorted(shares, reverse=True)


def test_the_theme_is_kept(opened: Opened) -> None:
    theme = "document.documentElement.dataset.theme"
    back = "getComputedStyle(document.body).backgroundColor"
    light = opened.page.evaluate(back)
    opened.page.keyboard.press("d")
    opened.until(f"{theme} === 'dark' && {back} !== '{light}'")
    opened.page.reload()
    opened.page.wait_for_selector("canvas")
    assert opened.page.evaluate(theme) == "dark"
    opened.page.keyboard.press("d")
    opened.until(f"{theme} === 'light'")


def test_next_and_previous_match_wrap_around(opened: Opened) -> None:
    opened.page.fill("input[type=search]", "addmm")
    count = opened.page.locator(".search-count")
    count.wait_for()
    found = opened.ask("find?text=addmm")["count"]
    assert found > 1
    opened.page.locator("canvas").focus()
    for key, place in (("n", 1), ("n", 2), ("N", 1), ("N", found)):
        opened.page.keyboard.press(key)
        opened.page.wait_for_selector(f".search-count:has-text('{place} / {found} ')")
    opened.page.click("[aria-label='Next match']")
    opened.page.wait_for_selector(f".search-count:has-text('1 / {found} ')")
    opened.page.click("[aria-label='Previous match']")
    opened.page.wait_for_selector(f".search-count:has-text('{found} / {found} ')")
    opened.page.focus("input[type=search]")
    opened.page.keyboard.press("Escape")
    count.wait_for(state="detached")


def test_the_wheel_zooms_where_the_mouse_is(opened: Opened) -> None:
    x, y = opened.box("Linear 'fc2'")
    opened.page.mouse.move(x, y)
    before = opened.text(".tooltip .tip-name")
    opened.page.keyboard.down("Control")
    for _ in range(20):
        opened.page.mouse.wheel(0, -240)
    opened.page.keyboard.up("Control")
    opened.page.wait_for_timeout(300)
    bounds = opened.page.locator("canvas").bounding_box()
    assert bounds is not None
    # Zoomed in, the box under the mouse reaches both edges.
    for edge in (bounds["x"] + 3, bounds["x"] + bounds["width"] - 3):
        opened.page.mouse.move(edge, y)
        assert opened.text(".tooltip .tip-name") == before == "Linear 'fc2'"


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_a_table_can_be_sorted_and_searched_and_leads_to_the_source(opened: Opened) -> None:
    opened.go("view=table&by=line")
    opened.page.wait_for_selector(".flat tbody tr")
    opened.page.click("th >> text=contexts")
    texts = opened.page.locator(".flat tbody td:last-child").all_inner_texts()
    contexts = [int(text.replace(",", "")) for text in texts]
    assert contexts == sorted(contexts, reverse=True)
    assert contexts == sorted((row.contexts for row in by_line(opened.profile).rows), reverse=True)
    opened.page.click("th >> text=contexts")
    texts = opened.page.locator(".flat tbody td:last-child").all_inner_texts()
    assert [int(text.replace(",", "")) for text in texts] == contexts[::-1]
    hottest = by_line(opened.profile, largest="exclusive").rows[0]
    opened.page.fill("input[type=search]", f"torch_mlp.py:{hottest.line}")
    named = f":has-text('torch_mlp.py:{hottest.line} ')"
    # A row that moves while the mouse is down on it is not clicked.
    opened.page.wait_for_selector(f".flat tbody:not(:has(tr:not({named})))")
    opened.page.locator(f".flat button{named}").first.click()
    marked = opened.page.locator("tr.wanted")
    marked.wait_for()
    assert marked.get_attribute("data-line") == str(hottest.line)
    script = (ROOT / "examples" / "torch_mlp.py").read_text("utf-8").splitlines()
    assert script[hottest.line - 1].strip() in marked.inner_text()


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_a_sandwich_has_the_functions_cost_and_can_be_a_table(opened: Opened) -> None:
    profile = opened.profile
    opened.go("view=table")
    opened.page.click(".flat >> text=aten::addmm")
    opened.page.wait_for_selector("canvas")
    # The box represents the function in all its calling contexts, not in one of them.
    query = profile.query().name("aten::addmm")
    details = opened.text(".details")
    assert format_value(query.total(METRIC, inclusive=True), "ns") in details
    assert format_value(query.total(METRIC), "ns") in details
    calls = int(profile.counts("call_duration_ns")[query.nodes()].sum())
    assert format_count(calls) in details
    opened.page.keyboard.press("v")
    opened.page.wait_for_selector("[role=treegrid]")
    callers, callees = opened.page.locator("[role=treegrid]").all()
    callers_of = opened.ask(f"flame?kind=callers&function={opened.func()}")
    names = callers_of["functions"]["name"]
    above = {
        names[function]
        for function, depth in zip(
            callers_of["nodes"]["function"], callers_of["nodes"]["depth"], strict=True
        )
        if depth == 2
    }
    shown = callers.locator("[aria-level='3'] .tree-name").all_inner_texts()
    assert {text.split("\n")[-1].strip() for text in shown} == above
    first = callees.locator(".grid-row").first.inner_text()
    assert "aten::addmm" in first
    assert format_share(1) in first


def test_focus_in_a_merged_view_keeps_all_contexts_of_the_function(opened: Opened) -> None:
    opened.go("view=bottom-up")
    opened.page.wait_for_selector("canvas")
    name = by_operator(opened.profile).rows[0].name
    opened.page.mouse.click(*opened.box(name, "flame?kind=bottom_up"))
    opened.page.wait_for_selector(f".details h2:has-text('{name}')")
    opened.page.click(".actions >> text=Focus")
    opened.page.wait_for_selector(".crumb:has-text('focus on')")
    value = opened.profile.query().name(name).total(METRIC, inclusive=True)
    opened.status(format_value(value, "ns"))


def test_a_difference_is_a_table_too(opened: Opened, profiles: tuple[Path, Path]) -> None:
    longer = Profile.load(profiles[1])
    opened.go("view=compare&shape=tree")
    row = opened.page.locator(".grid-row").first
    row.wait_for()
    before = int(opened.profile.exclusive(METRIC).sum())
    after = int(longer.exclusive(METRIC).sum())
    text = row.inner_text()
    for value in (before, after, after - before):
        assert format_value(value, "ns") in text
    assert f"\N{MULTIPLICATION SIGN} {after / before:.2f}" in text


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_both_sides_show_their_own_numbers(opened: Opened, profiles: tuple[Path, Path]) -> None:
    opened.go("view=compare&sides=beside")
    opened.page.wait_for_selector("canvas >> nth=1")
    titles = opened.page.locator(".sandwich-title").all_inner_texts()
    for path, title in zip(profiles, titles, strict=True):
        total = int(Profile.load(path).exclusive(METRIC).sum())
        assert path.name in title
        assert format_value(total, "ns") in title


def test_collapsing_keeps_the_cost_with_the_function(opened: Opened) -> None:
    nodes = opened.ask("flame")["nodes"]
    names = opened.ask("flame")["functions"]["name"]
    boxes = zip(nodes["function"], nodes["value"], strict=True)
    most = max(value for function, value in boxes if names[function] == "Linear 'fc2'")
    value = format_value(most, "ns")
    opened.page.mouse.click(*opened.box("Linear 'fc2'"))
    opened.page.wait_for_selector(".details h2:has-text('fc2')")
    opened.page.click(".actions >> text=Collapse")
    opened.page.wait_for_selector(".crumb:has-text('collapsed')")
    opened.page.mouse.move(*opened.box("Linear 'fc2'", opened.question()))
    tip = opened.text(".tooltip")
    assert re.search(rf"total\s+{re.escape(value)}", tip)
    assert re.search(rf"self\s+{re.escape(value)}", tip)
    opened.page.click("button:has-text('whole tree')")
    opened.page.wait_for_selector(".crumbs", state="detached")


def test_a_tree_without_threads_begins_with_the_module(opened: Opened) -> None:
    opened.page.select_option(".field:has-text('Split by') select", "none")
    opened.page.click("text=Tree")
    opened.until(
        "(() => { const grid = document.querySelector('[role=treegrid]');"
        " return grid && !grid.textContent.includes('MainThread'); })()"
    )
    row = opened.page.locator(".grid-row[aria-level='2']").first
    row.wait_for()
    assert row.locator(".tree-name").inner_text().strip().endswith("<module>")


def test_data_without_a_view_of_its_own_is_shown(
    open_on: OpenOn, profiles: tuple[Path, Path], tmp_path: Path
) -> None:
    profile = Profile.load(profiles[0])
    node = largest_context(profile, "aten::addmm")
    script = str(ROOT / "examples" / "torch_mlp.py")

    def rows(name: str, unit: str, how: Aggregation, values: list[int]) -> MetricRows:
        return MetricRows(
            MetricDescriptor(name, unit, how, f"what {name} means"),
            np.array([node], np.uint32),
            np.array([len(values)], np.uint64),
            np.array([sum(values)], np.int64),
            np.array([min(values)], np.int64),
            np.array([max(values)], np.int64),
        )

    metrics = {
        **profile.metrics,
        "heap_bytes": rows("heap_bytes", "bytes", Aggregation.SUM, [5 << 20]),
        "height_bytes": rows("height_bytes", "bytes", Aggregation.MAX, [3 << 20, 7 << 20]),
        "register_count": rows("register_count", "count", Aggregation.PROPERTY, [32, 64]),
    }
    section = {
        "device": "cpu",
        "compile_ns": 3_400_000_000,
        "sites": [
            {"node": node, "file": script, "line": 3, "live_bytes": 9 << 20, "why": ["a", 1]}
        ],
    }
    path = tmp_path / "new.dcprof"
    changed = dataclasses.replace(profile, metrics=metrics)
    changed.with_section("a_section", json.dumps(section).encode()).save(path)
    with serving(path) as address, open_on(address, changed) as opened:
        opened.go("view=data&section=a_section")
        cells = opened.page.locator(".section-body .wide tbody tr").first
        cells.wait_for()
        assert format_ns(3_400_000_000) in opened.text(".section-body")
        assert format_bytes(9 << 20) in cells.inner_text()
        assert "a, 1" in cells.inner_text()
        cells.locator("button:has-text('torch_mlp.py:3')").click()
        opened.page.wait_for_selector("tr.wanted[data-line='3']")
        opened.page.go_back()
        opened.page.locator(
            f".section-body .wide button:has-text('{format_count(node)}')"
        ).first.click()
        opened.page.wait_for_selector(".details h2:has-text('aten::addmm')")
        opened.page.wait_for_selector(".details .numbers:has-text('heap')")
        details = opened.text(".details")
        assert format_bytes(5 << 20) in details
        assert re.search(rf"height\s+{re.escape(format_bytes(7 << 20))}", details)
        assert re.search(r"registers\s+48 \(32 to 64\)", details)
        opened.page.select_option(".field:has-text('Measure') select", "heap_bytes")
        opened.status(format_bytes(5 << 20))


def test_order_and_direction_of_a_graph_are_switches(opened: Opened) -> None:
    opened.page.select_option(".field:has-text('Order') select", "size")
    opened.until("location.hash.includes('order=size')")
    opened.page.select_option(".field:has-text('Roots') select", "bottom")
    opened.until("location.hash.includes('roots=bottom')")
    bounds = opened.page.locator("canvas").first.bounding_box()
    assert bounds is not None
    opened.page.mouse.move(bounds["x"] + 40, bounds["y"] + bounds["height"] - 10)
    opened.page.wait_for_selector(".tooltip:has-text('whole program')")
    opened.page.select_option(".field:has-text('Roots') select", "top")
    opened.page.mouse.move(bounds["x"] + 40, bounds["y"] + 10)
    opened.page.wait_for_selector(".tooltip:has-text('whole program')")
