"""Everything by its name, and what else a few keys do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.summaries.lines import by_line
from tests.ui.browser.conftest import WHERE

if TYPE_CHECKING:
    from tests.ui.browser.conftest import Opened

METRIC = "host_time_ns"
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


def test_measures_settings_and_findings_are_listed_too(opened: Opened) -> None:
    choose(opened, "memalloc", "memory allocated")
    opened.until("location.hash.includes('metric=alloc_bytes')")
    choose(opened, "hidlib", "Hide or show library functions")
    opened.until("location.hash.includes('library=1')")
    findings = opened.page.evaluate("fetch('api/findings').then((given) => given.json())")
    for finding in findings["findings"][:1]:
        choose(opened, finding["title"].replace("'", "")[:20], finding["title"].split("'")[0][:20])
        opened.page.wait_for_selector("main[aria-label='flame']")


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
