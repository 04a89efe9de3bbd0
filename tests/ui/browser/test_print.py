"""On paper: the summary of a run, whole and readable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.ui.browser.conftest import Opened


def sheets(opened: Opened, height: str) -> int:
    """Return the number of sheets that the page takes on paper of a height."""
    printed = opened.page.pdf(width="7in", height=height)
    counts = [int(count) for count in re.findall(rb"/Count (\d+)", printed)]
    return max(counts)


def test_the_overview_is_a_summary_on_paper(opened: Opened) -> None:
    opened.go("view=overview")
    for part in (".overview-lines code", ".legend-line button", ".overview-pool"):
        opened.page.wait_for_selector(f"main[aria-label='overview'] {part}")
    opened.page.emulate_media(color_scheme="dark", media="print")
    opened.page.set_viewport_size({"width": 660, "height": 300})
    for part in (".header", ".toolbar", ".banner button"):
        assert opened.page.locator(f"{part}:visible").count() == 0
    # Nothing is cut off, neither below nor beside.
    code = opened.page.locator("td.overview-code").first
    assert code.is_visible()
    assert code.evaluate("(each) => each.scrollWidth <= each.clientWidth")
    for section in opened.page.locator("main section").all():
        bounds = section.bounding_box()
        assert bounds is not None
        assert bounds["x"] + bounds["width"] <= 660
        assert section.evaluate("(each) => getComputedStyle(each).breakInside") == "avoid"
    bar = opened.page.locator(".phase-bar span").first
    assert bar.evaluate("(each) => getComputedStyle(each).printColorAdjust") == "exact"
    # What one sheet cannot hold stands on the next ones.
    assert sheets(opened, "4in") > sheets(opened, "20in")
