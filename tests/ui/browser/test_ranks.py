"""The views of ranks: the figures of the report, late ranks by time, a path over the ranks, and gaps."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.job.steady import common_steps, divided, steady_steps
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.profiler.summaries.basis import Basis, Part, basis_of
from deepcontext.profiler.summaries.communication import by_operation
from deepcontext.profiler.summaries.late_ranks import by_lateness
from deepcontext.ui import rank_texts
from deepcontext.ui.format import format_bytes, format_count, format_ns, format_rate
from tests.ui.browser.axe import violations
from tests.ui.browser.conftest import SERVER, WHERE, open_page, serving, used_anew
from tests.ui.browser.test_surfaces import box, overlap
from tests.ui.test_web_ranks import joined, made_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator

    from tests.ui.browser.conftest import Opened, Pages

RANKS = 4
VIEW = "view=ranks"
METRIC = "host_time_ns"
# Rank 2 loads its data slowly, rank 1 stops now and then.
PROGRAM = """
import time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

dist.init_process_group("gloo")
torch.set_num_threads(1)
rank = dist.get_rank()

class Samples(Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, index):
        if rank == 2:
            time.sleep(0.01)
        return torch.randn(64)

net = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)))
for step, batch in enumerate(DataLoader(Samples(), batch_size=4)):
    if rank == 1 and step % 5 == 4:
        time.sleep(0.3)
    net(batch).sum().backward()
    dist.all_reduce(torch.ones(1000))
dist.destroy_process_group()
"""


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run directory of four ranks on gloo."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "job.py").write_text(PROGRAM, "utf-8")
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
    command = [sys.executable, *launch, "-m", "deepcontext", "profile", "-q", "job.py"]
    subprocess.run(command, cwd=folder, check=True, timeout=300, capture_output=True)
    return folder / "job.dcrun"


@pytest.fixture(scope="session")
def of_rank(run: Path) -> list[Profile]:
    found = [Profile.load(path) for path in run_directory.profiles(run)]
    return sorted(found, key=lambda profile: profile.run.rank)


@pytest.fixture(scope="session")
def basis(of_rank: list[Profile]) -> Basis:
    """Return the part of the job that the page shows."""
    return basis_of(merge({str(rank): profile for rank, profile in enumerate(of_rank)}))


@pytest.fixture(scope="session")
def together(basis: Basis) -> Profile:
    return basis.profile


@pytest.fixture(scope="session")
def parts(of_rank: list[Profile], basis: Basis) -> list[Profile]:
    """Return each rank's part of what the page shows; a slow machine has no steady state."""
    if basis.part is Part.RUN:
        return of_rank
    steps = common_steps([steady_steps(profile) for profile in of_rank])
    assert steps is not None
    return [divided(profile, steps)[1] for profile in of_rank]


def written(path: Path, folder: Path) -> str:
    """Write a page's file, and return its address."""
    target = folder / f"{path.name}.html"
    command = [sys.executable, "-m", "deepcontext", "view", str(path), "--html", str(target)]
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    return target.as_uri()


@pytest.fixture(scope="session")
def addresses(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with serving(run) as address:
        yield {"server": address, "file": written(run, tmp_path_factory.mktemp("page"))}


@pytest.fixture
def page(
    request: pytest.FixtureRequest, pages: Pages, addresses: dict[str, str], together: Profile
) -> Iterator[Opened]:
    shared = pages(addresses[getattr(request, "param", SERVER)], together)
    yield from used_anew(shared, VIEW, "[aria-label='Times of ranks'] tbody tr")


def cells(row: Locator) -> list[str]:
    return [text.strip() for text in row.locator("td").all_inner_texts()]


def shown(value: int) -> str:
    return format_ns(value or None)


@pytest.mark.parametrize("page", WHERE, indirect=True)
def test_the_table_of_ranks_is_that_of_the_report(page: Opened, together: Profile) -> None:
    rows = page.page.locator("[aria-label='Times of ranks'] tbody tr")
    late = by_lateness(together)
    assert late is not None
    assert rows.count() == RANKS
    loading = []
    for number, row in enumerate(rank_summary.by_rank(together)):
        found = cells(rows.nth(number))
        assert found[0] == str(row.rank)
        working_ns = row.operator_ns + row.running_ns
        times = (working_ns, row.operator_ns, row.running_ns, row.waiting_ns)
        assert [found[6], *found[8:11]] == list(map(shown, times))
        delays = late.rows[number]
        assert found[4:6] == [shown(delays.total_ns), shown(delays.waiting_ns)]
        parts = rank_summary.loading_by_rank(together)[number]
        loading.append(parts.operator_ns + parts.running_ns + parts.waiting_ns)
        assert found[2] == shown(loading[-1])
    assert loading[2] == max(loading)  # as planted
    bar = rows.nth(2).locator(".phase-bar").first
    assert f"loading data {format_ns(loading[2])}" in str(bar.get_attribute("aria-label"))
    assert bar.get_attribute("title") == bar.get_attribute("aria-label")


def test_the_heat_map_says_the_same_by_mouse_and_by_keys(page: Opened, together: Profile) -> None:
    late = by_lateness(together)
    assert late is not None
    heat = page.page.locator(".heat [role=slider]")
    heat.scroll_into_view_if_needed()
    said = page.page.locator(".heat .said")
    parts = [row.over_time_ns for row in late.rows]
    most = max(max(row) for row in parts)
    rank = next(n for n, row in enumerate(parts) if most in row)
    column = parts[rank].index(most)
    expected = (
        f"rank {rank}, {5 * column} % to {5 * column + 5} % of its collectives: "
        f"made others wait {format_ns(most)}"
    )
    assert said.inner_text() == f"most: {expected}"
    bounds = heat.bounding_box()
    assert bounds is not None
    page.page.mouse.move(
        bounds["x"] + (column + 0.5) * bounds["width"] / 20,
        bounds["y"] + (rank + 0.5) * bounds["height"] / RANKS,
    )
    assert said.inner_text() == expected
    page.page.mouse.move(0, 0)
    heat.focus()
    for key in ["Home", *["ArrowDown"] * rank, *["ArrowRight"] * column]:
        page.page.keyboard.press(key)
    assert said.inner_text() == expected
    assert heat.get_attribute("aria-valuetext") == expected
    assert page.page.locator(".heat rect").count() == 20 * RANKS


def test_late_ranks_and_communication_are_those_of_the_report(
    page: Opened, together: Profile
) -> None:
    late = by_lateness(together)
    assert late is not None
    assert rank_texts.late_text(late) in page.text("main")
    rows = page.page.locator("[aria-label='Late ranks'] tbody tr")
    for number, row in enumerate(sorted(late.rows, key=lambda each: -each.caused_ns)):
        found = cells(rows.nth(number))
        assert found[:2] == [str(row.rank), shown(row.caused_ns)]
        assert shown(row.longest_ns) in found
    worst = cells(rows.first)
    assert any(re.fullmatch(r"job\.py:\d+", text) for text in worst)
    exchanges = by_operation(together)
    rows = page.page.locator("[aria-label='Communication'] tbody tr")
    assert rows.count() == len(exchanges) > 0
    sized = [each for each in exchanges if each.size_bytes]
    assert sized  # torch's flight recorder knows sizes
    for number, each in enumerate(exchanges):
        found = cells(rows.nth(number))
        assert found[-1] == f"{rank_texts.sized_text(each)} in {rank_texts.group_text(each)}"
        assert format_ns(each.transfer_ns) in found
        if each.size_bytes:
            assert format_bytes(each.calls * each.size_bytes) in found
            assert format_rate(each.bus_bytes_per_s) in found


def test_a_line_that_differs_leads_to_its_source(page: Opened, together: Profile) -> None:
    lines = rank_summary.uneven_lines(together, 10)
    rows = page.page.locator("[aria-label='Lines by imbalance'] tbody tr")
    assert rows.count() == len(lines)
    found = cells(rows.first)
    assert found[1] == format_ns(sum(lines[0].by_rank) / RANKS)
    assert found[4] == format_ns(max(lines[0].by_rank))
    assert found[5] == str(lines[0].by_rank.index(max(lines[0].by_rank)))
    rows.first.locator("button").click()
    page.page.wait_for_selector("main[aria-label='source']")


@pytest.mark.parametrize("page", WHERE, indirect=True)
def test_a_rank_opens_its_own_tree(page: Opened, of_rank: list[Profile]) -> None:
    page.page.locator("[aria-label='Times of ranks'] tbody tr").nth(3).locator("button").click()
    page.page.wait_for_selector("main[aria-label='flame'] canvas")
    own = basis_of(of_rank[3])
    page.status(format_ns(int(own.profile.exclusive(METRIC).sum()) / (own.steps or 1)))


CallPath = tuple[tuple[int, str, str, int], ...]


def nodes_by_path(profile: Profile) -> dict[CallPath, list[int]]:
    """Return the nodes of each call path without root, rank and thread."""
    found: dict[CallPath, list[int]] = {}
    of_node: list[CallPath] = []
    for node, parent in enumerate(profile.tree.parent.tolist()):
        frame = profile.frame(node)
        is_top = frame.kind in {FrameKind.ROOT, FrameKind.THREAD}
        own = () if is_top else ((int(frame.kind), frame.name, frame.file, frame.line),)
        of_node.append((*(of_node[parent] if node else ()), *own))
        found.setdefault(of_node[-1], []).append(node)
    return found


def test_the_strip_has_the_values_of_each_ranks_own_profile(
    page: Opened, of_rank: list[Profile], parts: list[Profile], basis: Basis
) -> None:
    found, together = [], basis.profile
    for profile in parts:
        inclusive = profile.inclusive("elapsed_time_ns").tolist()
        found.append({
            path: sum(inclusive[node] for node in nodes)
            for path, nodes in nodes_by_path(profile).items()
            if path and path[-1][2].endswith("job.py")
        })
    wanted = max(found[0], key=lambda path: found[0][path])
    expected = [each.get(wanted, 0) / (basis.steps or 1) for each in found]
    node = nodes_by_path(together)[wanted][0]
    for place in ("", "&pivot=none"):
        page.go(f"view=flame&metric=elapsed_time_ns&library=1&lines=1&zoom={node}{place}")
        strip = page.page.locator(".details [role=slider]")
        strip.wait_for()
        said = page.page.locator(".details .said")
        most = expected.index(max(expected))
        host = of_rank[0].run.hostname
        # Values are logarithms, so their last digit may differ.
        assert re.match(rf"most [\d.]+ \w+ \(rank {most} on {host}\), mean ", said.inner_text())
        strip.focus()
        page.page.keyboard.press("Home")
        bounds = strip.bounding_box()
        assert bounds is not None
        for rank, value in enumerate(expected):
            text = said.inner_text()
            assert text in {
                f"rank {rank} on {host}: {format_ns(round(value * factor))}"
                for factor in (0.999, 0.9995, 1, 1.0005, 1.001)
            }
            x = bounds["x"] + (rank + 0.5) * bounds["width"] / RANKS
            page.page.mouse.move(x, bounds["y"] + 20)
            assert said.inner_text() == text
            page.page.mouse.move(x, bounds["y"] - 200)
            page.page.keyboard.press("Home")
            for _ in range(rank + 1):
                page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("Home")
    page.page.keyboard.press("Enter")
    own = basis_of(of_rank[0])
    page.status(format_ns(int(own.profile.exclusive("elapsed_time_ns").sum()) / (own.steps or 1)))


def test_boxes_are_coloured_by_spread(page: Opened, parts: list[Profile], basis: Basis) -> None:
    page.go("view=flame&metric=elapsed_time_ns")
    page.page.locator(".field:has-text('Colour') select").select_option("spread")
    page.page.wait_for_selector(".legend-line:has-text('equal on all ranks')")
    assert "pivot=none" in page.page.url
    canvas = page.page.locator("canvas")
    totals = [
        int(profile.exclusive("elapsed_time_ns").sum()) / (basis.steps or 1) for profile in parts
    ]
    part = RANKS * max(totals) / sum(totals) - 1
    low, high = (0xEB, 0xE7, 0xDA), (0xF0, 0x92, 0x5A)
    colour = [round(a + (b - a) * part) for a, b in zip(low, high, strict=True)]
    page.page.wait_for_function(
        """([canvas, colour]) => {
          // Read from a copy: the browser warns of many reads from a canvas.
          const copy = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
          copy.drawImage(canvas, canvas.width - 200, 4, 1, 1, 0, 0, 1, 1);
          const { data } = copy.getImageData(0, 0, 1, 1);
          return colour.every((value, at) => Math.abs(value - data[at]) < 3);
        }""",
        arg=[canvas.element_handle(), colour],
    )
    bounds = canvas.bounding_box()
    assert bounds is not None
    page.page.mouse.move(bounds["x"] + 200, bounds["y"] + 10)
    tip = page.page.locator(".tooltip")
    # Values are logarithms, so their last digit may differ.
    most = rf"most\t[\d.]+ \w+\trank {totals.index(max(totals))}"
    assert re.search(most, tip.inner_text())
    # Other views have no such colour.
    page.page.keyboard.press("2")
    page.page.wait_for_selector("main[aria-label='bottom-up'] canvas")
    options = page.page.locator(".field:has-text('Colour') option").all_inner_texts()
    assert options == ["layer", "phase", "self cost"]
    assert page.page.locator(".field:has-text('Colour') select").input_value() == "layer"
    assert page.page.locator(".chip i").count() > 0


def test_ranks_are_reached_by_keys_and_obey_the_rules_of_axe(
    browser: Browser, addresses: dict[str, str], together: Profile
) -> None:
    for scheme, where, width in (("light", "server", 1280), ("dark", "file", 390)):
        settings: dict[str, Any] = {
            "color_scheme": scheme,
            "viewport": {"width": width, "height": 800},
        }
        with open_page(browser, addresses[where], together, **settings) as opened:
            opened.go()
            opened.page.keyboard.press("r")
            opened.page.wait_for_selector("[aria-label='Communication'] tbody tr")
            assert not violations(opened)
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
            opened.go("view=flame&color=spread&pivot=none&zoom=1")
            opened.page.wait_for_selector("canvas")
            assert not violations(opened)


@pytest.mark.parametrize("width", [1600, 1599, 1560, 1280, 1260])
def test_all_views_of_a_job_have_room(page: Opened, width: int) -> None:
    page.page.set_viewport_size({"width": width, "height": 700})
    page.go("view=flame&text=mm")
    page.page.wait_for_selector(".search-count")
    parts = ".brand select, .brand-run, .tabs button, .search input, .search-count, .header .icon"
    boxes = [box(part) for part in page.page.locator(parts).all()]
    assert len(boxes) > 14
    assert all(left >= 0 and right <= width for left, _, right, _ in boxes)
    pairs = [(a, b) for place, a in enumerate(boxes) for b in boxes[place + 1 :]]
    assert [pair for pair in pairs if overlap(*pair)] == []
    left, _, right, _ = boxes[0]
    assert right - left > 80  # the name of the profile can be read


# -- made ranks


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Profile]:
    """Return the profile of 4,096 joined ranks."""
    profile = joined(made_ranks(4096, 40))
    path = tmp_path_factory.mktemp("many") / "many.dcprof"
    profile.save(path)
    return path, profile


@pytest.mark.parametrize("where", ["server", "file"])
def test_four_thousand_ranks_are_the_slowest_typical_ones_and_pictures_of_all(
    browser: Browser, many: tuple[Path, Profile], tmp_path: Path, where: str
) -> None:
    path, profile = many
    rows = rank_summary.slowest(rank_summary.by_rank(profile))
    with serving(path) as served:
        address = served if where == "server" else written(path, tmp_path)
        with open_page(browser, address, profile) as opened:
            opened.go(VIEW)
            table = opened.page.locator("[aria-label='Times of ranks'] tbody tr")
            table.first.wait_for()
            assert table.count() == 23
            first = cells(table.first)
            assert first[:2] == ["slowest", str(rows[0].rank)]
            assert format_ns(rank_summary.working_ns(rows[0])) in first
            assert first[-1] == rows[0].hostname
            assert cells(table.last)[0] == "most"
            bins = rank_summary.histogram(rows)
            assert bins is not None
            picture = opened.page.locator(".histogram [role=slider]")
            picture.focus()
            opened.page.keyboard.press("Home")
            said = opened.text(".histogram .said")
            assert said.startswith(
                f"{format_count(bins.bins[0])} ranks worked {format_ns(bins.least_ns)} to"
            )
            assert "no rank recorded single collectives" in opened.text("main")
            assert opened.page.locator(".heat").count() == 0
            opened.go("view=flame&zoom=1")
            opened.page.wait_for_selector(".details [role=slider]")
            assert opened.page.locator(".details rect").count() == 128
            values = [row.totals[METRIC] for row in sorted(rows, key=lambda row: row.rank)]
            # Values are logarithms, so their last digit may differ.
            most = opened.text(".details .said").split(",")[0]
            rank = values.index(max(values))
            assert most.endswith(f" (rank {rank} on node{rank // 8})")
            assert not violations(opened)


@pytest.mark.parametrize(
    ("count", "reason"),
    [(1, "there is only one rank"), (3, "no rank recorded single collectives")],
)
def test_what_is_not_known_is_said(
    browser: Browser, tmp_path: Path, count: int, reason: str
) -> None:
    profile = joined(made_ranks(count))
    path = tmp_path / "few.dcprof"
    profile.save(path)
    with serving(path) as address, open_page(browser, address, profile) as opened:
        opened.go(VIEW)
        rows = opened.page.locator("[aria-label='Times of ranks'] tbody tr")
        rows.first.wait_for()
        assert rows.count() == count
        assert opened.text("main").count(reason) == 2  # late ranks, communication
        assert not violations(opened)


def test_a_profile_of_one_process_has_no_ranks_and_does_not_load_their_script(
    opened: Opened,
) -> None:
    asked: list[str] = []
    opened.page.on("request", lambda request: asked.append(request.url))
    opened.go("view=overview")
    opened.page.wait_for_selector("main section")
    names = opened.page.get_by_role("navigation", name="Views").get_by_role("button")
    assert "Ranks" not in names.all_inner_texts()
    assert not any("jobs.js" in url for url in asked)
    opened.page.keyboard.press("r")
    assert opened.page.locator("main[aria-label='overview']").count() == 1
