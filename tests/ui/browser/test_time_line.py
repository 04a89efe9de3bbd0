"""The time line: kept steps of a real program by thread, by mouse and keys."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.windows import of_steps
from deepcontext.ui.format import format_ns
from deepcontext.ui.step_texts import why_kept
from deepcontext.ui.web.findings import findings
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles
from tests.ui.browser.axe import violations
from tests.ui.browser.conftest import SERVER, WHERE, serving, used_anew
from tests.ui.browser.test_ranks import written
from tests.ui.test_web_time_line import in_windows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deepcontext.profiler.model.exemplars import Exemplar, Lane
    from tests.conftest import MakeProfile
    from tests.ui.browser.conftest import Opened, Pages

VIEW = "view=timeline"
SLOW = 60
PROGRAM = f"""
import torch
from torch import nn

torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
matrix = torch.ones(300, 300)

for number in range(1, 101):
    net(torch.randn(32, 64)).sum().backward()
    if number == {SLOW}:
        for _ in range(2):
            torch.linalg.svd(matrix)
    optimizer.step()
    optimizer.zero_grad()
"""
LINE = next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if "svd" in text)
# Pixels, as in web/src/timeline.
AXIS, TITLE, ROW = 20, 20, 18


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("timeline")
    script, path = folder / "program.py", folder / "program.dcprof"
    script.write_text(PROGRAM, "utf-8")
    command = [sys.executable, "-m", "deepcontext", "profile", "-q", "-o", str(path), str(script)]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    return path


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
    yield from used_anew(shared, VIEW, ".flame canvas")


def slow(page: Opened) -> tuple[Exemplar, Lane]:
    (exemplar,) = (each for each in page.profile.exemplars if each.number == SLOW)
    return exemplar, page.profile.lanes(exemplar)[0]


def show(page: Opened, number: int) -> None:
    page.page.select_option(".subtabs:has(> span) select", str(number))
    page.page.wait_for_selector(f"canvas[aria-label^='Step {number} ']")


def point(page: Opened, name: str) -> tuple[int, float, float]:
    """Return the longest span of a name in the slow step, and where it is while all is shown."""
    exemplar, lane = slow(page)
    names = [page.profile.frame(node).name for node in lane.node.tolist()]
    spans = [span for span, each in enumerate(names) if each == name]
    span = max(spans, key=lambda each: int(lane.duration_ns[each]))
    begin, end = int(lane.begin_ns[span]), int(lane.begin_ns[span] + lane.duration_ns[span])
    depth = sum(
        lane.begin_ns[:span] + lane.duration_ns[:span] >= end
    )  # those around, which come before
    bounds = page.page.locator(".flame canvas").bounding_box()
    assert bounds is not None
    across = (begin + end) / 2 / exemplar.duration_ns * bounds["width"]
    return span, bounds["x"] + across, bounds["y"] + AXIS + TITLE + ROW + depth * ROW + ROW / 2


@pytest.mark.parametrize("page", WHERE, indirect=True)
def test_steps_and_their_reasons_are_those_of_the_profile(page: Opened) -> None:
    exemplars = page.profile.exemplars
    marks = page.page.locator(".time-mark")
    assert marks.count() == len(exemplars)
    titles = [marks.nth(n).get_attribute("title") for n in range(marks.count())]
    assert titles == [
        f"step {each.number}: {format_ns(each.duration_ns)}, {why_kept(each)}" for each in exemplars
    ]
    show(page, SLOW)
    assert f"more than usual: program.py:{LINE}" in page.text("main")
    assert "Python itself is sampled" in page.text("main")


@pytest.mark.parametrize("page", WHERE, indirect=True)
def test_a_click_shows_what_a_span_is(page: Opened) -> None:
    show(page, SLOW)
    span, x, y = point(page, "aten::linalg_svd")
    _, lane = slow(page)
    duration = format_ns(int(lane.duration_ns[span]))
    page.page.mouse.move(x, y)
    assert page.text(".time-said").startswith(f"aten::linalg_svd, {duration}, from ")
    page.page.mouse.click(x, y)
    details = page.text(".time-details")
    for words in ("aten::linalg_svd", duration, "MainThread", f"program.py:{LINE}"):
        assert words in details
    page.page.click("text=Show in the flame graph")
    page.until("location.hash.includes('view=flame')")
    assert page.page.evaluate("new URLSearchParams(location.hash.slice(1)).get('zoom')") == str(
        lane.node[span]
    )


def test_keys_zoom_move_and_go_from_span_to_span(page: Opened) -> None:
    show(page, SLOW)
    span, x, y = point(page, "aten::linalg_svd")
    page.page.mouse.click(x, y)
    canvas = page.page.locator(".flame canvas")
    canvas.focus()

    def picture() -> str:
        page.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        return str(canvas.evaluate("(canvas) => canvas.toDataURL()"))

    whole = picture()
    page.page.keyboard.press("w")
    page.page.keyboard.press("w")
    near = picture()
    assert near != whole
    page.page.keyboard.press("d")
    assert picture() != near
    page.page.keyboard.press("0")
    assert picture() == whole
    page.page.keyboard.press("ArrowDown")
    _, lane = slow(page)
    inner = page.profile.frame(int(lane.node[span + 1])).name
    assert page.text(".time-details strong") == inner
    page.page.keyboard.press("ArrowUp")
    assert page.text(".time-details strong") == "aten::linalg_svd"
    assert "view=timeline" in page.page.evaluate("location.hash")
    # The page's own keys are left alone: "d" would change the theme.
    assert page.page.evaluate("document.documentElement.dataset.theme") == "light"


def test_a_search_fades_what_does_not_match(page: Opened) -> None:
    show(page, SLOW)
    canvas = page.page.locator(".flame canvas")
    before = canvas.evaluate("(canvas) => canvas.toDataURL()")
    page.page.fill("input[type=search]", "svd")
    page.until("new URLSearchParams(location.hash.slice(1)).get('text') === 'svd'")
    page.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    assert canvas.evaluate("(canvas) => canvas.toDataURL()") != before


def test_a_mark_opens_its_step(page: Opened) -> None:
    number = page.profile.exemplars[0].number
    page.page.locator(".time-mark").first.focus()
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector(f"canvas[aria-label^='Step {number} ']")
    assert page.page.locator(".time-mark").first.get_attribute("aria-pressed") == "true"


def test_the_view_is_accessible(page: Opened) -> None:
    assert violations(page) == []


# -- a part of the steps, of a made run: two windows of eight steady steps after set-up and warm-up


@pytest.fixture
def windowed(make_profile: MakeProfile, tmp_path: Path) -> Path:
    path = tmp_path / "train.dcprof"
    in_windows(make_profile).save(path)
    return path


def brush(opened: Opened, first: int, last: int) -> None:
    """Draw over the bars of some steps."""
    bounds = opened.page.locator(".time-bars svg").bounding_box()
    assert bounds is not None
    for move, number in ((opened.page.mouse.down, first), (opened.page.mouse.up, last)):
        part = (number - 1.5) / 17  # step 1 has no time
        opened.page.mouse.move(bounds["x"] + part * bounds["width"], bounds["y"] + 20)
        move()


def opens(opened: Opened, name: str) -> None:
    opened.page.wait_for_selector(f"h1:text-is('{name}')", state="attached")


def test_a_brush_filters_graph_tables_and_findings(windowed: Path, open_on: Any) -> None:
    profile = Profile.load(windowed)
    with serving(windowed) as address, open_on(address, profile) as opened:
        opened.go()
        opened.status("1.50 ms")  # a step of all that are steady
        opened.go(VIEW)
        opened.page.wait_for_selector(".time-bars")
        brush(opened, 14, 12)
        opens(opened, "train.dcprof, steps 11 to 18")
        opened.status("2.00 ms")
        opened.page.keyboard.press("4")
        rows = opened.page.locator("main[aria-label='table'] .flat tbody tr:has(th)")
        rows.first.wait_for()
        first, *others = rows.all_inner_texts()
        assert "aten::mm" in first
        assert "2.00 ms" in first
        assert not any(" ms" in row for row in others)
        part = profile.within(of_steps(profile.windows, 11, 18))
        expected = findings(OpenProfiles([OpenProfile.of_memory(part, "")]), 0).findings
        found = opened.page.evaluate("fetch('api/findings?file=1').then((each) => each.json())")
        assert [each["title"] for each in found["findings"]] == [each.title for each in expected]
        # The strip still has all steps, and marks those that are shown.
        opened.page.click(".tabs button:has-text('Time line')")
        opened.page.wait_for_selector(".time-window")
        assert opened.page.locator(".time-window").count() == 1
        assert "17 steps of 1.00 ms to 5.00 ms" in opened.text(".time-strip")
        for _ in range(3):
            opened.page.go_back()
        opens(opened, windowed.name)
        opened.page.wait_for_selector("main[aria-label='timeline']")


def test_two_brushes_are_compared_and_keys_brush_too(windowed: Path, open_on: Any) -> None:
    with serving(windowed) as address, open_on(address, Profile.load(windowed)) as opened:
        for first, last in ((3, 10), (11, 18)):
            opened.go(VIEW)
            opened.page.wait_for_selector(".time-bars")
            fields = opened.page.locator(".time-strip select")
            fields.nth(0).select_option(str(first))
            fields.nth(1).select_option(str(last))
            opened.page.focus("button:has-text('Show only these')")
            opened.page.keyboard.press("Enter")
            opens(opened, f"train.dcprof, steps {first} to {last}")
        opened.go("view=compare&base=1&other=2&shape=tree")
        opened.page.wait_for_selector(".grid-row")
        summary = opened.text(".compare-sum")
        assert "steps 3 to 10 1.00 ms" in summary
        assert "steps 11 to 18 2.00 ms" in summary


def test_the_strip_with_a_part_obeys_the_rules_of_axe(windowed: Path, open_on: Any) -> None:
    with serving(windowed) as address, open_on(address, Profile.load(windowed)) as opened:
        opened.go(VIEW)
        opened.page.wait_for_selector(".time-strip select")
        assert not violations(opened)
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_page_in_one_file_says_how_to_show_steps(
    windowed: Path, tmp_path: Path, open_on: Any
) -> None:
    with open_on(written(windowed, tmp_path), Profile.load(windowed)) as opened:
        opened.go(VIEW)
        opened.page.wait_for_selector(".time-bars")
        brush(opened, 12, 14)
        opened.page.wait_for_selector("[role=alert]:has-text('train.dcprof --window 11-18')")
