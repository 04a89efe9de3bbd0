"""The roofline: real programs under their roof, by mouse and keys, and what is said without points."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.profiler.format import peaks
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.format.node_sections import WINDOWS
from deepcontext.profiler.format.peaks import DevicePeaks
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.arithmetic import arithmetic
from deepcontext.profiler.summaries.efficiency import efficiency
from deepcontext.profiler.summaries.jax.operations import operations
from deepcontext.ui.arithmetic_texts import arithmetic_text, efficiency_text
from deepcontext.ui.format import (
    format_bandwidth,
    format_count,
    format_flops,
    format_ns,
    format_share,
)
from tests.ui.browser.axe import violations
from tests.ui.browser.conftest import SERVER, WHERE, open_page, serving, used_anew
from tests.ui.browser.test_ranks import cells, written
from tests.ui.browser.test_surfaces import box, overlap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator

    from tests.ui.browser.conftest import Opened, Pages

VIEW = "view=roofline"
PROGRAM = """
import torch
from torch import nn

torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 16))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
bias = torch.zeros(())

def train():
    net(torch.randn(512, 256)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()

for _ in range(12):
    train()
for _ in range(40):
    bias = bias + 1.0
"""
JAX_PROGRAM = """
import jax
import jax.numpy as jnp

@jax.jit
def step(weights, inputs):
    hidden = jnp.tanh(inputs @ weights)
    return weights + 1e-3 * inputs.T @ hidden

weights, inputs = jnp.ones((512, 512)), jnp.ones((512, 512))
for _ in range(60):
    weights = step(weights, inputs)
weights.block_until_ready()
"""


def recorded(folder: Path, program: str, *options: str) -> Path:
    """Profile a program on a machine whose peaks were measured before; return the profile.

    It has no windows: whether its few steps have a steady state depends on how fast the machine is.
    """
    script, path = folder / "program.py", folder / "program.dcprof"
    script.write_text(program, "utf-8")
    command = [sys.executable, "-m", "deepcontext", "profile", "-q", *options, "-o", str(path)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    subprocess.run([*command, str(script)], cwd=folder, check=True, timeout=300, env=environment)
    profile = Profile.load(path)
    sections = {name: content for name, content in profile.sections.items() if name != WINDOWS}
    replace(profile, sections=sections).save(path)
    return path


def with_peaks(folder: Path, *threads: int) -> Path:
    """Write peaks of this machine, with figures that no machine has by chance."""
    model, cores = peaks.this_cpu()
    (folder / "deepcontext").mkdir()
    devices = [
        {
            "device": model,
            "cores": cores,
            "threads": each,
            "flops_per_second": {"f32": 5e11, "f64": 2e11},
            "bytes_per_second": 2e10,
            "spread": {"f32": 0.1},
        }
        for each in threads
    ]
    content = {"format": "deepcontext peaks", "version": 1, "devices": devices}
    (folder / "deepcontext" / "peaks.json").write_text(json.dumps(content, indent=2), "utf-8")
    return folder


def with_short_additions(path: Path) -> Path:
    """Let each `aten::add` of a profile take 3 us, as on a machine without other work."""
    profile = Profile.load(path)
    is_addition = np.array([frame.name.startswith("aten::add(") for frame in profile.frames])
    planted = {}
    for descriptor in (HOST_TIME_NS, CALL_DURATION_NS):
        rows = profile.metrics[descriptor.name]
        short = is_addition[profile.tree.frame[rows.node]]

        def with_total(column: Any, values: Any, short: Any = short) -> Any:
            return None if column is None else np.where(short, values, column).astype(column.dtype)

        planted[descriptor.name] = MetricRows(
            descriptor,
            node=rows.node,
            count=rows.count,
            total=with_total(rows.total, 3_000 * rows.count),
            minimum=with_total(rows.minimum, 3_000),
            maximum=with_total(rows.maximum, 3_000),
            m2=with_total(rows.m2, 0.0),
        )
    metrics = {name: profile.metrics[name] for name in profile.metrics} | planted
    replace(profile, metrics=MetricTable(metrics)).save(path)
    return path


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    folder = with_peaks(tmp_path_factory.mktemp("roofline"), 1)
    return with_short_additions(recorded(folder, PROGRAM, "--shapes"))


@pytest.fixture(scope="session")
def addresses(
    recording: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    with serving(recording) as address:
        yield {"server": address, "file": written(recording, tmp_path_factory.mktemp("page"))}


@pytest.fixture
def page(
    request: pytest.FixtureRequest, pages: Pages, addresses: dict[str, str], recording: Path
) -> Iterator[Opened]:
    shared = pages(addresses[getattr(request, "param", SERVER)], Profile.load(recording))
    yield from used_anew(shared, VIEW, ".roofline svg")


def table(page: Opened, by: str) -> Locator:
    return page.page.locator(f"[aria-label='Roofline by {by}'] tbody tr")


def marks(page: Opened) -> Locator:
    return page.page.locator(".roofline circle.mark")


@pytest.mark.parametrize("page", WHERE, indirect=True)
def test_the_figures_are_those_of_the_report(page: Opened) -> None:
    counted, moved = arithmetic(page.profile), efficiency(page.profile)
    assert counted is not None
    assert moved is not None
    assert counted.mfu is not None
    text = page.text("main")
    assert arithmetic_text(counted) in text
    assert efficiency_text(moved) in text
    assert f"MFU {format_share(counted.mfu)}" in str(
        page.page.locator(".roofline svg").text_content()
    )
    rows = table(page, "line")
    assert rows.count() == moved.line_count > 3
    for number, row in enumerate(moved.lines):
        found = cells(rows.nth(number))
        work = row.work
        assert found[0] == f"program.py:{row.line}"
        assert found[2:4] == [
            format_ns(work.time_ns),
            format_share(work.time_ns / moved.total.time_ns),
        ]
        if found[1] != "launch cost":
            assert found[4] == format_share(work.of_peak)
        if work.flops:
            assert found[5] == f"{format_flops(work.flops_per_second)}/s"
            assert found[7] == f"{work.intensity:.3g}"
        assert found[6] == format_bandwidth(work.bytes_per_second)
        assert found[8] == format_count(work.calls)


def test_points_lie_where_their_figures_are(page: Opened) -> None:
    moved = efficiency(page.profile)
    assert moved is not None
    (row,) = [each for each in moved.lines if each.work.flops]
    # By the grid: both axes are logarithmic, with a line for each power of ten.
    x, y = page.page.evaluate(
        """() => {
          const lines = [...document.querySelectorAll('.roofline .grid')].map(
            (line) => ['x1', 'y1', 'x2', 'y2'].map((name) => Number(line.getAttribute(name))));
          const upright = lines.filter(([a, , b]) => a === b).map(([a]) => a);
          const [left, right] = [Math.min(...upright), Math.max(...upright)];
          const level = lines.filter(([a, , b]) => a !== b && a === left).map(([, y]) => y);
          const plot = [...document.querySelectorAll('.roofline .mark')].filter(
            (mark) => Number(mark.getAttribute('cx')) > left);
          const mark = plot[0];
          return [
            [left, upright.length, right, Number(mark.getAttribute('cx'))],
            [Math.max(...level), level.length, Math.min(...level), Number(mark.getAttribute('cy'))],
          ];
        }"""
    )
    texts = page.page.locator(".roofline text").all_text_contents()
    first_x = float(texts[0])

    def value(axis: list[float], first: float) -> float:
        start, count, end, at = axis
        return float(first * 10 ** ((at - start) / (end - start) * (count - 1)))

    assert value(x, first_x) == pytest.approx(row.work.intensity, rel=0.01)
    rates = [text for text in texts if re.fullmatch(r"10* [kMGT]?FLOP/s", text)]
    number, unit = rates[0].split()
    factor = {"F": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[unit[0]]
    assert value(y, float(number) * factor) == pytest.approx(row.work.flops_per_second, rel=0.01)
    assert "f32 500 GFLOP/s" in texts
    assert "20.0 GB/s" in texts
    assert any("25 flop/byte" in text for text in texts)  # where both roofs meet


def test_mouse_and_keys_say_the_same_and_open_the_box(page: Opened) -> None:
    said = page.page.locator(".roofline .said")
    plot = page.page.locator(".roofline [role=slider]")
    assert said.inner_text().endswith("points, the area is time")
    plot.focus()
    page.page.keyboard.press("Home")
    by_keys = said.inner_text()
    assert plot.get_attribute("aria-valuetext") == by_keys
    moved = efficiency(page.profile)
    assert moved is not None
    first = moved.lines[0]
    assert by_keys.startswith(f"program.py:{first.line} ")
    assert format_ns(first.work.time_ns) in by_keys
    assert f"{format_share(first.work.of_peak)} of the peak; limit: " in by_keys
    bounds = marks(page).first.bounding_box()
    assert bounds is not None
    middle = bounds["x"] + bounds["width"] / 2, bounds["y"] + bounds["height"] / 2
    page.page.mouse.move(*middle)
    assert said.inner_text() == by_keys
    page.page.keyboard.press("ArrowRight")
    assert said.inner_text() != by_keys
    page.page.keyboard.press("ArrowLeft")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("main[aria-label='flame'] canvas")
    name = page.page.locator(".details-name")
    name.wait_for()
    assert f"program.py:{first.line}" in page.text(".details")
    page.page.go_back()
    page.page.wait_for_selector(".roofline svg")
    table(page, "line").first.locator("button").first.click()
    page.page.wait_for_selector("main[aria-label='flame'] canvas")
    assert f"program.py:{first.line}" in page.text(".details")


def test_modules_and_operators_are_points_too(page: Opened) -> None:
    page.page.get_by_role("tab", name="by module").click()
    rows = table(page, "module")
    rows.first.wait_for()
    names = rows.locator("td:first-child").all_inner_texts()
    assert "Linear '0'" in names
    assert "GELU '1'" in names
    page.page.get_by_role("tab", name="by operator").click()
    moved = efficiency(page.profile)
    assert moved is not None
    table(page, "operator").first.wait_for()
    assert table(page, "operator").locator("td:first-child").all_inner_texts() == [
        row.name for row in moved.operators
    ]
    assert "points=operator" in page.page.url
    table(page, "operator").first.locator("button").click()
    page.page.wait_for_selector("main[aria-label='flame'] canvas")
    assert page.text(".details-name") == moved.operators[0].name


def test_calls_of_a_few_microseconds_are_launch_cost_and_not_far_from_the_roof(
    page: Opened,
) -> None:
    line = PROGRAM.splitlines().index("    bias = bias + 1.0") + 1
    rows = table(page, "line")
    found = [cells(row) for row in rows.all()]
    number, row = next(
        (number, row) for number, row in enumerate(found) if row[0] == f"program.py:{line}"
    )
    assert row[1] == "launch cost"
    assert row[4] == "-"
    plot = page.page.locator(".roofline [role=slider]")
    plot.focus()
    page.page.keyboard.press("Home")
    for _ in range(number):
        page.page.keyboard.press("ArrowRight")
    said = page.text(".roofline .said")
    assert said.startswith(f"program.py:{line}")
    assert "limit: launch cost" in said
    assert "of the peak" not in said
    assert "launch" in str(marks(page).nth(number).get_attribute("class"))


@pytest.mark.parametrize(
    ("scheme", "where", "width"), [("light", "server", 1280), ("dark", "file", 390)]
)
def test_the_view_obeys_the_rules_of_axe(
    browser: Browser, addresses: dict[str, str], scheme: Any, where: str, width: int
) -> None:
    settings: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    with open_page(browser, addresses[where], None, **settings) as opened:
        opened.go(VIEW)
        opened.page.wait_for_selector(".roofline svg")
        assert not violations(opened)
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1280, 1260, 1259, 720])
def test_the_header_has_room_for_the_tab(
    browser: Browser, addresses: dict[str, str], width: int
) -> None:
    size = {"width": width, "height": 700}
    with open_page(browser, addresses["file"], None, viewport=size) as opened:
        opened.go("view=flame&text=mm")
        opened.page.wait_for_selector(".search-count")
        parts = ".brand-run, .tabs button, .search input, .search-count, .header .icon"
        boxes = [box(part) for part in opened.page.locator(parts).all()]
        assert all(left >= 0 and right <= width for left, _, right, _ in boxes)
        pairs = [(a, b) for place, a in enumerate(boxes) for b in boxes[place + 1 :]]
        assert [pair for pair in pairs if overlap(*pair)] == []


@pytest.fixture(scope="session")
def jax_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("jax") is None:
        pytest.skip("jax is not installed")
    return recorded(tmp_path_factory.mktemp("jax_roofline"), JAX_PROGRAM)


@pytest.mark.parametrize("where", ["server", "file"])
def test_operations_of_jax_are_points_with_the_figures_of_the_report(
    browser: Browser, jax_recording: Path, tmp_path: Path, where: str
) -> None:
    profile = Profile.load(jax_recording)
    found = [each for each in operations(profile) if each.device_ns and (each.flops or each.bytes)]
    with serving(jax_recording) as served:
        address = served if where == "server" else written(jax_recording, tmp_path)
        with open_page(browser, address, profile) as opened:
            opened.go(f"{VIEW}&points=operation")
            rows = table(opened, "operation")
            rows.first.wait_for()
            for number, each in enumerate(found[:3]):
                row = cells(rows.nth(number))
                assert row[0] == f"{each.name} in {each.program}"
                assert format_ns(each.device_ns) in row
                assert f"{each.intensity:.3g}" in row
                assert f"{format_flops(each.flops_per_second)}/s" in row
            assert "peaks not known: 'deepcontext doctor --measure'" in opened.text("main")
            assert opened.page.locator(".roofline .roof").count() == 0
            rows.first.locator("button").click()
            opened.page.wait_for_selector("main[aria-label='flame'] canvas")
            assert opened.text(".details-name") == found[0].name


def test_peaks_from_a_file_are_a_roof(
    browser: Browser, jax_recording: Path, tmp_path: Path
) -> None:
    run = Profile.load(jax_recording).run
    given = DevicePeaks(run.cpu_model, run.cpu_count, run.cpu_count, {"f32": 3e11}, 1e10)
    (tmp_path / "given.json").write_text(
        json.dumps(
            {
                "format": "deepcontext peaks",
                "version": 1,
                "devices": [
                    {
                        "device": given.device,
                        "cores": given.cores,
                        "threads": given.threads,
                        "flops_per_second": given.flops_per_second,
                        "bytes_per_second": given.bytes_per_second,
                    }
                ],
            },
            indent=2,
        ),
        "utf-8",
    )
    with (
        serving(jax_recording, options=["--peaks", str(tmp_path / "given.json")]) as address,
        open_page(browser, address, None) as opened,
    ):
        opened.go(VIEW)
        opened.page.wait_for_selector(".roofline .roof")
        texts = opened.page.locator(".roofline text").all_text_contents()
        assert "f32 300 GFLOP/s" in texts
        assert "10.0 GB/s" in texts


@pytest.mark.parametrize("where", ["address", "one_file"])
def test_without_shapes_the_page_says_what_to_run(
    browser: Browser, request: pytest.FixtureRequest, where: str
) -> None:
    with open_page(browser, request.getfixturevalue(where), None) as opened:
        opened.go(VIEW)
        opened.page.wait_for_selector("main .empty-title:has-text('No roofline')")
        assert "deepcontext profile --shapes" in opened.text("main")
        assert opened.page.locator("svg.roofline").count() == 0
