"""Every view and control of the page on a real profile, with the numbers of the Python API."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.profiler.summaries.modules import by_module
from deepcontext.profiler.summaries.operators import by_operator
from deepcontext.profiler.summaries.phases import by_phase
from deepcontext.profiler.summaries.scopes import by_scope
from deepcontext.ui.format import format_count, format_share, format_value
from deepcontext.ui.measures import measures
from tests.ui.browser.conftest import WHERE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.ui.browser.conftest import Opened

METRIC = "host_time_ns"
SUMMARIES = {"operator": by_operator, "module": by_module, "line": by_line, "scope": by_scope}


def total(opened: Opened) -> int:
    return int(opened.profile.exclusive(METRIC).sum())


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_the_graph_shows_the_total_of_the_program(opened: Opened) -> None:
    opened.status(format_value(total(opened), "ns"))
    assert "short.dcprof" in opened.page.title()
    shown = re.search(r"([\d,]+) nodes shown", opened.text(".status"))
    assert shown is not None
    assert shown[1] == format_count(len(opened.ask("flame")["nodes"]["depth"]))


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_a_click_zooms_in_and_shows_the_numbers_of_the_node(opened: Opened) -> None:
    opened.page.mouse.click(*opened.box("Linear 'fc2'"))
    opened.page.wait_for_selector(".details .numbers")
    value = opened.profile.query().name("Linear 'fc2'").total(METRIC, inclusive=True)
    row = opened.text(".details .numbers tr.chosen")
    assert "Linear 'fc2'" in opened.text(".details h2")
    # Evaluation calls the module, too, from another line.
    assert opened.ask("find?text=" + "Linear 'fc2'")["value"] == value
    assert format_share(1) not in row
    assert "zoom=" in opened.page.url
    opened.page.keyboard.press("Escape")
    opened.until("!location.hash.includes('zoom=')")


def test_the_tooltip_shows_mean_and_deviation(opened: Opened) -> None:
    # With lines and library frames each node of the profile has a box of its own.
    opened.go("lines=1&library=1")
    opened.page.wait_for_selector("canvas")
    opened.page.mouse.move(*opened.box("aten::addmm", "flame?lines=1&library=1"))
    tip = opened.page.locator(".tooltip")
    tip.wait_for()
    answer = opened.ask("flame?lines=1&library=1")
    nodes = answer["nodes"]
    wanted = [
        each
        for each, function in enumerate(nodes["function"])
        if answer["functions"]["name"][function] == "aten::addmm"
    ]
    node = max(wanted, key=lambda each: nodes["value"][each])
    rows = opened.profile.metrics["call_duration_ns"]
    row = rows.row(rows.node.tolist().index(nodes["source"][node]))
    text = tip.inner_text()
    assert format_count(row["count"]) in text
    assert format_value(round(row["total"] / row["count"]), "ns") in text
    deviation = (row["m2"] / (row["count"] - 1)) ** 0.5
    part = deviation / (row["total"] / row["count"])
    # A deviation that is larger than the mean says nothing.
    assert (f"± {100 * part:.0f} %" in text) == (part <= 1)
    assert "range" in text
    assert "of parent" in text


@pytest.mark.parametrize("phase", ["forward", "backward", "optimizer"])
def test_the_graph_can_be_limited_to_one_phase(opened: Opened, phase: str) -> None:
    values = {row.phase.label: row.value for row in by_phase(opened.profile)}
    opened.page.select_option(".field:has-text('Phase') select", phase)
    opened.status(format_value(values[phase], "ns"))
    assert f"phase={phase}" in opened.page.url


def test_layers_can_be_left_out(opened: Opened) -> None:
    for layer in ("python", "module", "scope"):
        opened.page.click(f".chip:has-text('{layer}')")
        opened.page.wait_for_selector(f".chip[aria-pressed=false]:has-text('{layer}')")
    hidden = opened.ask("flame?hidden=python,scope,module")
    opened.status(f"{format_count(len(hidden['nodes']['depth']))} nodes shown")
    assert set(hidden["functions"]["layer"]) == {"root", "thread", "operator"}
    assert hidden["total"] == total(opened)


def test_library_frames_are_hidden_until_one_click(opened: Opened) -> None:
    frames = opened.profile.frames
    library = {
        frame.name
        for frame in frames
        if frame.kind is FrameKind.PYTHON and not is_user_file(frame.file)
    }
    library -= {frame.name for frame in frames if is_user_file(frame.file)}
    assert not library & set(opened.ask("flame")["functions"]["name"])
    opened.page.click("text=hide library")
    shown = opened.ask("flame?library=1")
    assert library & set(shown["functions"]["name"])
    opened.status(f"{format_count(len(shown['nodes']['depth']))} nodes shown")


def test_the_tree_can_be_split_by_phase(opened: Opened) -> None:
    opened.page.select_option(".field:has-text('Split by') select", "phase")
    opened.page.click("text=Tree")
    values = {row.phase.label: row.value for row in by_phase(opened.profile)}
    row = opened.page.locator(".grid-row[aria-level='2']:has-text('backward')")
    row.filter(has_text=format_value(values["backward"], "ns")).wait_for()


def test_a_box_of_a_split_tree_has_the_details_of_its_own_phase(opened: Opened) -> None:
    from playwright.sync_api import TimeoutError as NotShown

    opened.go("view=flame&pivot=phase")
    opened.page.wait_for_selector("canvas")
    answer = opened.ask("flame?pivot=phase")
    nodes, names = answer["nodes"], answer["functions"]["name"]
    shown = [names[func] for func in nodes["function"]]
    # The same function, below two phases: each copy has its own cost.
    copies = [node for node, name in enumerate(shown) if name == "Linear 'fc2'"]
    phases = {nodes["phase"][node]: node for node in copies}
    assert {"forward", "backward"} <= set(phases)
    for phase in ("forward", "backward"):
        node = phases[phase]
        opened.go(f"view=flame&pivot=phase&zoom={nodes['source'][node]}")
        opened.page.wait_for_selector(".details h2:has-text('fc2')")
        opened.page.wait_for_selector(".details .numbers tr.chosen")
        row = opened.text(".details .numbers tr.chosen")
        assert format_value(nodes["value"][node], "ns") in row
        canvas = opened.page.locator("canvas").first.bounding_box()
        assert canvas is not None
        # The phase's own box fills the width as well.
        chosen = opened.page.locator(f".details h2:has-text('{phase}')")
        for attempt in range(1, 9):  # the boxes may still be on their way to where they will be
            opened.page.wait_for_timeout(250 * attempt)
            opened.page.mouse.click(canvas["x"] + canvas["width"] / 2, canvas["y"] + 30)
            with contextlib.suppress(NotShown):
                chosen.wait_for(timeout=3000)
                break
            opened.go(f"view=flame&pivot=phase&zoom={nodes['source'][node]}")
        chosen.wait_for()
        total = next(
            value for value, name in zip(nodes["value"], shown, strict=True) if name == phase
        )
        shown_total = format_value(total, "ns")
        opened.page.wait_for_selector(f".details .numbers tr.chosen:has-text('{shown_total}')")


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_the_engine_has_a_thread_of_its_own(opened: Opened) -> None:
    (thread,) = opened.page.workers
    assert thread.url.endswith("engine.js") or thread.url.startswith("blob:")
    assert opened.page.evaluate("'deepcontextEngine' in globalThis") is False


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_without_threads_the_page_computes_itself(opened: Opened) -> None:
    """Where a browser, or the page around it, forbids threads."""
    page = opened.page.context.new_page()
    page.add_init_script("Worker = class { constructor() { throw new Error('no threads here'); } }")
    page.goto(f"{opened.address}#view=flame")
    page.wait_for_selector(f".status:has-text('{format_value(total(opened), 'ns')}')")
    assert page.workers == []
    page.close()


def test_another_measure_can_be_chosen(opened: Opened) -> None:
    opened.page.select_option(".field:has-text('Measure') select", "call_duration_ns.count")
    count = int(opened.profile.counts("call_duration_ns").sum())
    opened.status(format_count(count))


@pytest.mark.parametrize("color", ["layer", "phase", "self"])
def test_colours_have_a_legend(opened: Opened, color: str) -> None:
    opened.page.select_option(".field:has-text('Colour') select", color)
    # The third of the layers' marks, and the first of a legend's.
    opened.page.wait_for_selector(".chip i >> nth=2" if color == "layer" else ".legend-line i")


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_the_search_counts_as_the_api_does(opened: Opened) -> None:
    query = opened.profile.query().name("*mm*")
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("mm")
    count = opened.page.locator(".search-count")
    count.wait_for()
    answer = opened.ask("find?text=mm")
    assert answer["value"] == query.total(METRIC, inclusive=True)
    opened.page.wait_for_selector(f".search-count:has-text('{answer['count']}')")
    opened.page.keyboard.press("Enter")
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_selector(f".search-count:has-text('2 / {answer['count']}')")
    opened.page.wait_for_selector(".details h2:has-text('mm')")


def test_edits_are_breadcrumbs_that_can_be_undone(opened: Opened) -> None:
    opened.page.mouse.click(*opened.box("Net"))
    opened.page.click(".actions >> text=Focus")
    crumb = opened.page.locator(".crumb")
    crumb.wait_for()
    assert crumb.inner_text().split()[:2] == ["only", "Net"]
    node = int(opened.profile.query().name("Net").nodes()[0])
    value = int(opened.profile.inclusive(METRIC)[node])
    opened.status(format_value(value, "ns"))
    opened.page.reload()
    opened.status(format_value(value, "ns"))
    assert opened.page.locator(".crumb").inner_text().split()[:2] == ["only", "Net"]
    opened.page.keyboard.press("u")
    opened.status(format_value(total(opened), "ns"))
    opened.page.go_back()
    opened.status(format_value(value, "ns"))


@pytest.mark.parametrize(
    ("key", "verb"), [("x", "without"), ("c", "collapsed"), ("Delete", "dropped"), ("f", "only")]
)
def test_keys_edit_the_selected_node(opened: Opened, key: str, verb: str) -> None:
    opened.page.mouse.click(*opened.box("Linear 'fc2'"))
    opened.page.wait_for_selector(".details h2:has-text('fc2')")
    opened.page.keyboard.press(key)
    opened.page.wait_for_selector(f".crumb:has-text('{verb}')")
    value = opened.profile.query().name("Linear 'fc2'").total(METRIC, inclusive=True)
    if key == "Delete":
        opened.status(format_value(total(opened) - value, "ns"))
    elif key != "f":
        opened.status(format_value(total(opened), "ns"))


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_the_tree_table_has_the_same_values_as_the_graph(opened: Opened) -> None:
    opened.page.keyboard.press("v")
    opened.page.wait_for_selector(".grid-row")
    first = opened.page.locator(".grid-row").first.inner_text()
    assert format_value(total(opened), "ns") in first
    opened.page.locator("[role=treegrid]").focus()
    for _ in range(4):
        opened.page.keyboard.press("ArrowDown")
    chosen = opened.page.locator(".grid-row[aria-selected=true]")
    assert chosen.count() == 1
    before = opened.page.locator(".grid-row").count()
    opened.page.keyboard.press("ArrowLeft")
    assert opened.page.locator(".grid-row").count() <= before


@pytest.mark.parametrize("by", SUMMARIES)
def test_tables_are_those_of_the_summary(opened: Opened, by: str) -> None:
    opened.go(f"view=table&by={by}")
    opened.page.wait_for_selector(".flat tbody tr")
    groups = SUMMARIES[by](opened.profile).rows
    largest = max(groups, key=lambda group: group.exclusive)
    first = opened.page.locator(".flat tbody tr").first.inner_text()
    assert format_value(largest.exclusive, "ns") in first
    assert largest.name in first
    assert opened.page.locator(".flat tbody tr").count() == len(groups)
    opened.page.click("th >> text=total")
    widest = max(groups, key=lambda group: group.inclusive)
    value = format_value(widest.inclusive, "ns")
    opened.page.wait_for_selector(f".flat tbody tr:first-child:has-text('{value}')")


def test_a_table_row_leads_to_callers_and_callees(opened: Opened) -> None:
    opened.go("view=table")
    opened.page.click(".flat >> text=aten::addmm")
    opened.page.wait_for_selector("canvas")
    value = opened.profile.query().name("aten::addmm").total(METRIC, inclusive=True)
    opened.page.wait_for_selector(f".sandwich-title:has-text('{format_value(value, 'ns')}')")
    assert opened.page.locator("canvas").count() == 2


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_bottom_up_begins_with_the_costliest_function(opened: Opened) -> None:
    opened.go("view=bottom-up&shape=tree")
    opened.page.wait_for_selector(".grid-row")
    # Of all kinds, because on a busy machine a scope may have more exclusive time than any operator.
    profile = opened.profile
    sums = np.zeros(len(profile.frames), np.int64)
    np.add.at(sums, profile.tree.frame, profile.exclusive(METRIC))
    largest = int(sums.argmax())
    row = opened.page.locator(".grid-row[aria-level='2']").first.inner_text()
    assert profile.frames[largest].name in row
    assert format_value(int(sums[largest]), "ns") in row


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_source_lines_carry_their_cost(opened: Opened) -> None:
    opened.go("view=source")
    opened.page.wait_for_selector(".code")
    lines = by_line(opened.profile, largest="exclusive").rows
    hottest = lines[0]
    row = opened.page.locator(f"tr[data-line='{hottest.line}']").inner_text()
    assert format_value(hottest.inclusive, "ns") in row
    assert format_value(hottest.exclusive, "ns") in row
    assert (
        opened.page.locator(".file[aria-current]").inner_text().startswith("torch_mlp.py examples")
    )


def test_lines_have_bars_of_elapsed_time_and_memory_too(opened: Opened) -> None:
    opened.go("view=source")
    opened.page.wait_for_selector(".code .phase-bar")
    path = opened.page.locator(".file[aria-current]").get_attribute("title")
    heads = opened.page.locator(".code thead th").all_inner_texts()
    for metric in ("elapsed_time_ns", "peak_bytes"):
        (measure,) = (each for each in measures(opened.profile) if each.key == metric)
        answer = opened.ask(f"source?metric={metric}&path={path}")
        cost = max(answer["costs"], key=lambda each: each["inclusive"])
        cell = opened.page.locator(f"tr[data-line='{cost['line']}'] td").nth(
            heads.index(measure.label)
        )
        bar = cell.locator(".phase-bar")
        assert (
            bar.get_attribute("aria-label")
            == f"{measure.label} {format_value(cost['inclusive'], measure.unit)}"
        )
        width = bar.evaluate("(each) => each.firstChild.offsetWidth / each.offsetWidth")
        assert width == pytest.approx(cost["inclusive"] / answer["total"], abs=0.03)


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_the_trust_report_shows_collectors_and_counters(opened: Opened) -> None:
    opened.go("view=trust")
    text = opened.text("main")
    for collector in opened.profile.trust.collectors:
        assert collector.name in text
    events = opened.profile.trust.counters["operator_events"]
    assert format_count(events) in text
    assert opened.profile.run.python in text


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_two_profiles_are_compared(opened: Opened, profiles: tuple[Path, Path]) -> None:
    from deepcontext.profiler.model.profile import Profile

    longer = Profile.load(profiles[1])
    opened.go("view=compare")
    opened.page.wait_for_selector(".compare-sum")
    text = opened.text(".compare-sum")
    assert format_value(total(opened), "ns") in text
    assert format_value(int(longer.exclusive(METRIC).sum()), "ns") in text
    opened.page.click("text=normalise")
    answer = opened.ask("flame?kind=difference&normalize=1")
    before, after = answer["nodes"]["sides"][0]
    assert after == pytest.approx(before, rel=1e-6)
    opened.page.click("text=side by side")
    opened.page.wait_for_selector("canvas >> nth=1")
    assert opened.page.locator("canvas").count() == 2


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_the_second_profile_can_be_opened(opened: Opened, profiles: tuple[Path, Path]) -> None:
    from deepcontext.profiler.model.profile import Profile

    opened.page.select_option("select[aria-label=Profile]", "1")
    opened.status(format_value(int(Profile.load(profiles[1]).exclusive(METRIC).sum()), "ns"))


def test_arrow_keys_move_the_selection_and_are_announced(opened: Opened) -> None:
    opened.page.locator("canvas").focus()
    for _ in range(3):
        opened.page.keyboard.press("ArrowDown")
    spoken = opened.page.locator(".spoken")
    assert "level 2" in spoken.inner_text()
    opened.page.keyboard.press("ArrowUp")
    assert "level 1" in spoken.inner_text()
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_selector(".details .numbers")


def test_the_help_lists_every_key(opened: Opened) -> None:
    opened.page.keyboard.press("?")
    dialog = opened.page.locator("dialog[open]")
    dialog.wait_for()
    assert dialog.locator("kbd").count() >= 20
    opened.page.keyboard.press("Escape")
    opened.page.wait_for_selector("dialog:not([open])", state="attached")


@pytest.mark.parametrize(("key", "view"), [("1", "flame"), ("2", "bottom-up"), ("4", "table")])
def test_number_keys_change_the_view(opened: Opened, key: str, view: str) -> None:
    opened.page.keyboard.press(key)
    opened.page.wait_for_selector(f"main[aria-label='{view}']")


def test_every_control_has_a_name_and_can_be_reached(opened: Opened) -> None:
    for view in ("flame", "table", "source", "compare", "trust"):
        opened.go(f"view={view}")
        opened.page.wait_for_timeout(200)
        nameless = opened.page.evaluate(
            """() => [...document.querySelectorAll("button, select, input, [tabindex]")]
              .filter((each) => each.checkVisibility())
              .filter((each) => !(each.getAttribute("aria-label") || each.innerText?.trim()
                || each.closest("label")?.innerText.trim()))
              .map((each) => each.outerHTML.slice(0, 120))"""
        )
        assert nameless == []
    reached = set()
    opened.go()
    opened.page.wait_for_selector("canvas")
    for _ in range(40):
        opened.page.keyboard.press("Tab")
        reached.add(opened.page.evaluate("document.activeElement.tagName"))
    assert {"BUTTON", "SELECT", "INPUT", "CANVAS"} <= reached


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_enough_contrast(
    open_on: Callable[..., object], address: str, profiles: tuple[Path, Path], scheme: str
) -> None:
    with open_on(address, None, color_scheme=scheme) as opened:  # type: ignore[attr-defined]
        for view in ("flame", "table", "source", "trust"):
            opened.go(f"view={view}")
            opened.page.wait_for_timeout(200)
            assert opened.page.evaluate(TOO_FAINT) == []


# Source: WCAG 2.1, contrast (minimum): 4.5 to 1 for text; what is disabled is exempt.
TOO_FAINT = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((each) => each / 255)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, index) => sum + each * [0.2126, 0.7152, 0.0722][index], 0);
  const back = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      const parts = parse(color);
      if (color.startsWith("rgb") && (parts.length < 4 || parts[3] === 1)) return parts;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll("body *")]
    .filter((each) => each.checkVisibility() && !each.disabled && !each.closest("canvas, option"))
    .filter((each) => [...each.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .map((each) => {
      const [a, b] = [light(parse(getComputedStyle(each).color)), light(back(each))];
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), each.outerHTML.slice(0, 90)];
    })
    .filter(([ratio]) => ratio < 4.5);
}"""


def test_a_narrow_window_does_not_scroll_sideways(
    open_on: Callable[..., object], address: str
) -> None:
    with open_on(address, None, viewport={"width": 420, "height": 760}) as opened:  # type: ignore[attr-defined]
        for view in ("flame", "bottom-up", "table", "source", "compare", "trust"):
            opened.go(f"view={view}")
            opened.page.wait_for_timeout(250)
            width = opened.page.evaluate("document.documentElement.scrollWidth")
            assert width <= 420, view
