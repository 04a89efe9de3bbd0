"""Everything by its name, and what else a few keys do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.summaries.lines import by_line
from tests.ui.browser.conftest import WHERE, serving
from tests.ui.conftest import gpu_profile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.ui.browser.conftest import Opened

METRIC = "host_time_ns"
NAME = "softmax_forward"  # of the kernel, in short
CHOSEN = ".palette [aria-selected=true]"


def choose(opened: Opened, letters: str, name: str) -> None:
    """Type letters of a name, and take the first match."""
    keys = opened.page.keyboard
    keys.press("Control+k")
    opened.page.wait_for_selector(".palette input:focus")
    keys.type(letters)
    opened.page.wait_for_selector(f"{CHOSEN}:has-text('{name}')")
    keys.press("Enter")
    opened.until("!document.querySelector('.palette[open]')")


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_letters_of_a_name_lead_to_it(opened: Opened) -> None:
    choose(opened, "atnadmm", "aten::addmm")
    opened.page.wait_for_selector(".details h2:has-text('aten::addmm')")
    choose(opened, "trst", "Trust")
    opened.page.wait_for_selector("main[aria-label='trust']")
    line = next(row for row in by_line(opened.profile, METRIC).rows if row.line)
    place = f"{line.file.rsplit('/', 1)[-1]}:{line.line}"
    choose(opened, place, place)
    opened.page.wait_for_selector(f"tr.wanted[data-line='{line.line}']")


def test_measures_and_settings_are_listed_too(opened: Opened) -> None:
    choose(opened, "memalloc", "memory allocated")
    opened.until("location.hash.includes('metric=alloc_bytes')")
    choose(opened, "hidlib", "Hide or show library functions")
    opened.until("location.hash.includes('library=1')")


def test_kernels_and_findings_are_listed_too(
    open_on: Callable[..., Any], make_profile: Any, tmp_path: Path
) -> None:
    profile = gpu_profile(make_profile, with_operator=True)
    node = len(profile.tree.parent) - 1
    finding = {"id": "slow", "title": "One kernel dominates", "nodes": [node]}
    profile = profile.with_section("findings", json.dumps([finding]).encode())
    path = tmp_path / "gpu.dcprof"
    profile.save(path)
    with serving(path) as address, open_on(address, profile) as opened:
        opened.go("view=overview&metric=gpu_time_ns")
        choose(opened, "onekerdom", "One kernel dominates")
        opened.page.wait_for_selector("main[aria-label='flame'] canvas")
        opened.page.wait_for_selector(f".details h2:has-text('{NAME}')")
        choose(opened, NAME, NAME)
        opened.page.wait_for_selector("main[aria-label='sandwich']")
        opened.page.wait_for_selector(f".details h2:has-text('{NAME}')")


def test_arrow_keys_choose_and_escape_closes_the_list(opened: Opened) -> None:
    keys = opened.page.keyboard
    before = opened.page.url
    keys.press("Control+k")
    opened.page.wait_for_selector(f"{CHOSEN}:has-text('Overview')")
    keys.press("ArrowDown")
    opened.page.wait_for_selector(f"{CHOSEN}:has-text('Flame graph')")
    keys.press("ArrowUp")
    keys.press("ArrowUp")
    last = opened.page.locator(".palette [role=option]").last
    assert last.get_attribute("aria-selected") == "true"
    keys.press("Escape")
    opened.until("!document.querySelector('.palette[open]')")
    assert opened.page.url == before


def test_the_list_opens_again_at_once(opened: Opened) -> None:
    """The browser says later that it was closed."""
    for _ in range(10):
        opened.page.keyboard.press("Control+k")
        opened.page.wait_for_selector(".palette input:focus")
        opened.page.keyboard.press("Escape")
        opened.page.keyboard.press("Control+k")
        opened.page.wait_for_selector(".palette input:focus")
        opened.page.keyboard.press("Escape")
        opened.until("!document.querySelector('.palette[open]')")


def test_a_key_copies_the_link_to_what_is_shown(opened: Opened) -> None:
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.go("view=table&by=module")
    opened.page.wait_for_selector(".flat tbody tr")
    opened.page.keyboard.press("y")
    opened.page.wait_for_selector(".spoken:has-text('link copied')", state="attached")
    assert opened.page.evaluate("navigator.clipboard.readText()") == opened.page.url
