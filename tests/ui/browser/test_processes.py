"""The page of a job: its processes as a tree; a click opens a process, or all of a role together."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.processes import processes_of
from deepcontext.profiler.summaries.roles import Role
from deepcontext.ui.format import format_count, format_ns, format_value
from tests.ui.browser.axe import violations
from tests.ui.browser.conftest import SERVER, WHERE, open_page, serving, used_anew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from playwright.sync_api import Browser

    from deepcontext.profiler.summaries.processes import Process
    from tests.ui.browser.conftest import Opened, Pages

    OpenOn = Callable[..., Any]

METRIC = "host_time_ns"
VIEW = f"view=processes&metric={METRIC}"
PROGRAM = """
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return (torch.rand(200, 200) @ torch.rand(200, 200)).sum()

def work(number):
    for _ in range(30):
        (torch.rand(200, 200) @ torch.rand(200, 200)).sum()

if __name__ == "__main__":
    for batch in DataLoader(Data(), batch_size=2, num_workers=2):
        batch.sum()
    mp.spawn(work, nprocs=2)
"""


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run directory of a program with two loader workers and two spawned processes."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "job.py").write_text(PROGRAM, "utf-8")
    command = ["-m", "deepcontext", "profile", "-q", "job.py"]
    subprocess.run([sys.executable, *command], cwd=folder, check=True, timeout=300)
    return folder / "job.dcrun"


@pytest.fixture(scope="session")
def job(run: Path) -> list[Process]:
    return processes_of([Profile.load(path) for path in run_directory.profiles(run)])


@pytest.fixture(scope="session")
def addresses(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    target = tmp_path_factory.mktemp("page") / "job.html"
    command = [sys.executable, "-m", "deepcontext", "view", str(run), "--html", str(target)]
    done = subprocess.run(command, check=True, timeout=300, capture_output=True, text=True)
    assert done.stderr == ""  # nothing is left out
    with serving(run) as address:
        yield {"server": address, "file": target.as_uri()}


@pytest.fixture
def page(
    request: pytest.FixtureRequest, pages: Pages, addresses: dict[str, str], job: list[Process]
) -> Iterator[Opened]:
    shared = pages(addresses[getattr(request, "param", SERVER)], job[0].profile)
    yield from used_anew(shared, VIEW, "main[aria-label='processes'] tbody tr")


def total(processes: Sequence[Process]) -> str:
    """Return what merging the processes' profiles gives."""
    if len(processes) == 1:
        return format_value(int(processes[0].profile.inclusive(METRIC)[0]), "ns")
    named = {str(process.profile.source): process.profile for process in processes}
    return format_value(int(merge(named, unrelated=True).inclusive(METRIC)[0]), "ns")


def open_flame(opened: Opened, name: str, expected: str) -> None:
    opened.go(VIEW)
    opened.page.get_by_role("button", name=name, exact=True).first.click()
    opened.status(expected)


@pytest.mark.parametrize("page", WHERE, indirect=True)
def test_each_process_is_a_row_that_opens_its_flame_graph(page: Opened, job: list[Process]) -> None:
    assert [process.role for process in job] == [
        Role.PROGRAM,
        *[Role.LOADER] * 2,
        *[Role.CHILD] * 2,
    ]
    rows = page.page.locator("tbody tr")
    assert rows.count() == len(job)
    for number, process in enumerate(job):
        page.go(VIEW)
        text = rows.nth(number).inner_text()
        run_ = process.profile.run
        for part in (process.role.value, str(run_.pid), format_ns(run_.wall_ns), process.program):
            assert part in text
        assert format_value(process.cpu_ns, "ns") in text
        rows.nth(number).locator("th button").click()
        page.page.wait_for_selector("main[aria-label='flame'] canvas")
        page.status(total([process]))
        # All other views are of this process, too.
        page.page.keyboard.press("4")
        page.page.wait_for_selector("main[aria-label='table'] .flat tbody tr")
        page.page.keyboard.press("p")
        page.page.wait_for_selector(f"tr[aria-current] th:has-text('{run_.pid}')")


def test_a_role_and_the_whole_job_open_the_sums_of_their_profiles(
    page: Opened, job: list[Process]
) -> None:
    open_flame(page, "2 DataLoader workers", total(job[1:3]))
    open_flame(page, "2 children", total(job[3:]))
    open_flame(page, "whole job, 5 processes", total(job))
    assert "whole job, 5 processes together" in page.page.title()


def test_the_overview_leads_to_the_processes(page: Opened, job: list[Process]) -> None:
    page.go("")
    page.page.click(".overview button:has-text('5 processes of job.dcrun')")
    page.page.wait_for_selector("main[aria-label='processes'] tbody tr")
    page.go(f"view=overview&metric={METRIC}")
    page.page.click(".overview .legend-line button:has-text('2 DataLoader workers')")
    page.status(total(job[1:3]))


@pytest.fixture
def many(training_folder: Path) -> Path:
    """Return a run directory with eighty alike children of one program; one was killed."""
    path = training_folder / "many.dcrun"
    run_directory.create(path, program="train.py", options={})
    (path / "host").mkdir()
    profile = Profile.load(training_folder / "train.dcprof")
    for number in range(81):
        facts: dict[str, Any] = {"pid": 100 + number, "cpu_user_ns": number * 10**6}
        if number:
            facts |= {"parent_pid": 100, "process_name": f"ForkProcess-{number}"}
        if number == 80:
            facts |= {"exit_reason": "snapshot"}
        run = dataclasses.replace(profile.run, cpu_system_ns=0, **facts)
        dataclasses.replace(profile, run=run).save(path / "host" / f"{number:07}-{number:x}.dcprof")
    return path


def test_many_alike_processes_are_one_row_with_the_busiest_and_a_typical_one(
    many: Path, browser: Browser
) -> None:
    first = run_directory.profiles(many)[0]
    with serving(many) as address, open_page(browser, address, Profile.load(first)) as opened:
        opened.go(VIEW)
        rows = opened.page.locator("tbody tr")
        opened.page.wait_for_selector("tbody tr .bins")
        assert rows.count() == 4  # the program, the row of all, two of them
        assert "typical" in rows.nth(2).inner_text()
        last = rows.nth(3).inner_text()
        assert "180" in last
        assert "busiest" in last
        assert "running or killed" in last
        opened.page.click(f"text={format_count(80)} children >> nth=-1")
        opened.page.wait_for_selector("tbody tr:nth-child(82)")
        assert rows.count() == 82
        rows.nth(10).locator("th button").click()
        opened.page.wait_for_selector("main[aria-label='flame'] canvas")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_processes_obey_the_rules_of_axe(many: Path, browser: Browser, scheme: str) -> None:
    first = run_directory.profiles(many)[0]
    with (
        serving(many) as address,
        open_page(browser, address, Profile.load(first), color_scheme=scheme) as opened,
    ):
        opened.go("view=overview")
        opened.page.wait_for_selector("main .legend-line button")
        assert not violations(opened)
        opened.go(f"{VIEW}&file=1")
        opened.page.wait_for_selector("tbody tr .bins")
        assert not violations(opened)
        opened.page.click("button[aria-expanded]")
        opened.page.wait_for_selector("tbody tr[aria-current] .phase-bar")
        assert not violations(opened)


def test_a_process_that_cannot_be_read_is_told(many: Path, browser: Browser) -> None:
    first, damaged = (run_directory.profiles(many)[number] for number in (0, 40))
    with serving(many) as address, open_page(browser, address, Profile.load(first)) as opened:
        opened.go(VIEW)
        opened.page.click("button[aria-expanded]")
        damaged.write_bytes(b"damaged")
        opened.page.locator("tbody tr", has_text="140").locator("th button").click()
        opened.page.wait_for_selector(f".banner:has-text('{damaged.name}')")
        opened.errors.clear()  # the browser names the refused request in its console
        opened.page.go_back()
        opened.page.wait_for_selector("main[aria-label='processes'] tbody tr")


def test_a_rank_has_its_host_and_how_often_it_was_restarted(many: Path, browser: Browser) -> None:
    first, second, *others = run_directory.profiles(many)
    for path in others:
        path.unlink()
    for rank, path in enumerate((first, second)):
        profile = Profile.load(path)
        facts: dict[str, Any] = {"rank": rank, "ranks": 2, "hostname": f"node{rank}"}
        run = dataclasses.replace(profile.run, parent_pid=0, attempt=3 * rank, **facts)
        dataclasses.replace(profile, run=run).save(path, force=True)
    with serving(many) as address, open_page(browser, address, Profile.load(first)) as opened:
        opened.go(VIEW)
        rows = opened.page.locator("main tbody tr")
        rows.first.wait_for()
        texts = rows.all_inner_texts()
        for part in ("rank 0", "rank 1 (attempt 3)"):
            number = int(part[5])
            assert any(part in text and f"node{number}" in text for text in texts)
        names = opened.page.locator("[aria-label=Profile] option").all_inner_texts()
        assert any("rank 1 (attempt 3)" in name for name in names)


def test_files_named_one_by_one_are_compared_and_never_a_job(
    open_on: OpenOn, profiles: tuple[Path, Path], tmp_path: Path
) -> None:
    first, second = map(Profile.load, profiles)
    # A system uses the number of a process again.
    run = dataclasses.replace(second.run, parent_pid=first.run.pid)
    path = tmp_path / "second.dcprof"
    dataclasses.replace(second, run=run).save(path)
    with serving(profiles[0], path) as address, open_on(address, first) as opened:
        opened.page.goto(address)
        opened.page.wait_for_selector("main[aria-label='compare']")
        assert opened.page.locator(".tabs button:has-text('Processes')").count() == 0


def test_processes_that_come_while_the_page_is_open_are_offered(
    many: Path, browser: Browser
) -> None:
    *others, last = run_directory.profiles(many)
    content = last.read_bytes()
    last.unlink()
    first = Profile.load(others[0])
    with serving(many) as address, open_page(browser, address, first) as opened:
        opened.go(VIEW)
        opened.page.wait_for_selector(f"main p:has-text('{len(others)} processes')")
        last.write_bytes(content)
        opened.page.evaluate("window.dispatchEvent(new Event('focus'))")
        opened.page.wait_for_selector(".banner:has-text('many.dcrun')")
        opened.errors.clear()  # the browser names the refused request in its console
        opened.page.click("button:has-text('Show the newer run')")
        opened.page.wait_for_selector(f"main p:has-text('{len(others) + 1} processes')")
        assert opened.page.locator(".banner").count() == 0
