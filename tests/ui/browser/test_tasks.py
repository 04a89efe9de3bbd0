"""What users come for, each with at most two actions from the first view: a click, or a key with a text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.format import format_value
from tests.profiler.summaries.test_late_ranks import job
from tests.synthetic import random_profile
from tests.ui.browser.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import MakeProfile
    from tests.ui.browser.conftest import Opened

FIRST = "view=overview"
MOST = 2


class Hand:
    """What a user does on a page, counted: a click, a key, or a key with a text."""

    actions = 0

    def click(self, opened: Opened, selector: str) -> None:
        self.actions += 1
        opened.page.click(selector)

    def key(self, opened: Opened, key: str, text: str = "") -> None:
        self.actions += 1
        opened.page.keyboard.press(key)
        opened.page.keyboard.type(text)

    def choose(self, opened: Opened, name: str) -> None:
        """Type letters of a name into the list of everything, and press Enter."""
        self.key(opened, "Control+k")
        opened.page.wait_for_selector(".palette input:focus")
        opened.page.keyboard.type(name)
        opened.page.wait_for_selector(f".palette [aria-selected=true]:has-text('{name}')")
        opened.page.keyboard.press("Enter")


@pytest.fixture
def hand() -> Iterator[Hand]:
    counted = Hand()
    yield counted
    assert 1 <= counted.actions <= MOST


def test_callers_of_a_function(opened: Opened, hand: Hand) -> None:
    opened.go(FIRST)
    hand.choose(opened, "aten::mm")
    opened.page.wait_for_selector(".sandwich-title:has-text('called by')")
    opened.page.wait_for_selector(".details h2:has-text('aten::mm')")


def test_find_a_function(opened: Opened, hand: Hand) -> None:
    opened.go(FIRST)
    hand.key(opened, "/", "addmm\n")
    opened.page.wait_for_selector(".details h2:has-text('addmm')")


def test_what_changed(opened: Opened, hand: Hand) -> None:
    opened.go("")  # of several profiles, the first view is the comparison
    opened.page.wait_for_selector("main[aria-label='compare']")
    hand.click(opened, "[role=tab]:has-text('biggest changes')")
    opened.page.wait_for_selector("[aria-label='Biggest changes'] tbody tr")


def test_where_memory_is_at_the_peak(opened: Opened, hand: Hand) -> None:
    opened.go(FIRST)
    hand.click(opened, ".overview-pool .legend-line button:has-text('activation')")
    opened.page.wait_for_selector("main[aria-label='flame'] canvas")
    opened.until("location.hash.includes('metric=peak_activation_bytes')")
    assert opened.page.locator(".check:has-text('lines') input").is_checked()


def test_why_the_gpu_is_idle(open_on: Any, hand: Hand) -> None:
    path = Path("tests/fault_pairs/profiles/gpu_starvation_problem.dcprof").resolve()
    with serving(path) as address, open_on(address, Profile.load(path)) as opened:
        opened.go(FIRST)
        hand.click(opened, ".overview .legend-line button:has-text('idle')")
        opened.page.wait_for_selector("main[aria-label='flame'] canvas")
        opened.until("location.hash.includes('metric=gpu_idle_ns')")


def test_share_a_view(opened: Opened, hand: Hand) -> None:
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.go("view=bottom-up")
    hand.key(opened, "y")
    assert opened.page.evaluate("navigator.clipboard.readText()") == opened.page.url


def test_copy_a_table(opened: Opened, hand: Hand) -> None:
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.go(FIRST)
    hand.click(opened, ".tabs button:has-text('Table')")
    hand.click(opened, "button:has-text('Copy as Markdown')")
    opened.page.wait_for_selector("button:has-text('Copied')")
    copied = opened.page.evaluate("navigator.clipboard.readText()").splitlines()
    rows = opened.ask("table")["rows"]
    assert len(copied) == len(rows) + 2
    assert format_value(rows[0]["exclusive"], "ns") in "".join(copied)


def test_undo_three_zooms(opened: Opened, hand: Hand) -> None:
    answer = opened.ask("flame")
    for depth in (3, 5, 6):
        level = [n for n, each in enumerate(answer["nodes"]["depth"]) if each == depth]
        widest = max(level, key=lambda node: answer["nodes"]["value"][node])
        opened.go(f"view=flame&zoom={answer['nodes']['source'][widest]}")
        opened.page.wait_for_selector("canvas")
    hand.key(opened, "Escape")
    opened.until("!location.hash.includes('zoom=')")


def test_which_rank_is_late(
    open_on: Any, make_profile: MakeProfile, tmp_path: Path, hand: Hand
) -> None:
    # Time in each collective, and before it: all others wait for rank 2.
    rows = [
        [(n, *((1_000, 6_000) if rank == 2 else (6_000, 1_000))) for n in range(10)]
        for rank in range(4)
    ]
    path = tmp_path / "job.dcprof"
    job(make_profile, *rows).save(path)
    with serving(path) as address, open_on(address, Profile.load(path)) as opened:
        opened.go(FIRST)
        hand.key(opened, "r")
        latest = opened.page.locator("[aria-label='Late ranks'] tbody tr >> nth=0")
        assert latest.locator("td").first.inner_text().strip() == "2"


def test_of_a_long_table_all_rows_are_copied_and_few_exist(open_on: Any, tmp_path: Path) -> None:
    profile = random_profile(20_000)
    path = tmp_path / "long.dcprof"
    profile.save(path)
    with serving(path) as address, open_on(address, profile) as opened:
        opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        opened.go("view=table&by=line")
        drawn = opened.page.locator(".flat tbody tr:has(th)")
        drawn.first.wait_for()
        rows = len(opened.ask("table?by=line")["rows"])
        assert drawn.count() < 100 < rows
        opened.page.evaluate("navigator.clipboard.writeText('')")
        opened.page.click("button:has-text('Copy as Markdown')")
        # "Copied" may be gone before a busy page lets a test look for it.
        opened.page.wait_for_function("async () => (await navigator.clipboard.readText()) !== ''")
        copied = opened.page.evaluate("navigator.clipboard.readText()").splitlines()
        assert len([line for line in copied if ".py:" in line]) == rows
        assert drawn.count() < 100
