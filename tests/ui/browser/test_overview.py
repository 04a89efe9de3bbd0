"""The first view: each part has the numbers of its summary, and leads to the view behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.summaries.lines import by_line
from deepcontext.profiler.summaries.memory import memory_use
from deepcontext.profiler.summaries.phases import by_phase
from deepcontext.ui.format import format_share, format_value
from tests.ui.browser.conftest import WHERE

if TYPE_CHECKING:
    from tests.ui.browser.conftest import Opened

METRIC = "host_time_ns"


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_the_page_opens_with_the_overview(opened: Opened) -> None:
    opened.go("")
    for part in (".overview-lines code", ".legend-line button", ".overview-pool"):
        opened.page.wait_for_selector(f"main[aria-label='overview'] {part}")
    text = opened.text("main")
    profile = opened.profile
    total = int(profile.exclusive(METRIC).sum())
    for row in by_phase(profile):
        if row.value:
            assert f"{row.phase.label.replace('_', ' ')} {format_share(row.value / total)}" in text
    first = by_line(profile, largest="exclusive").rows[0]
    line = opened.page.locator(".overview-lines tr").first.inner_text()
    assert format_value(first.exclusive, "ns") in line
    assert f"examples/torch_mlp.py:{first.line}" in line
    use = memory_use(profile)
    assert use is not None
    assert f"cpu {format_value(use.pools[0].peak_bytes, 'bytes')}" in text


def test_parts_of_the_overview_lead_on(opened: Opened) -> None:
    opened.go("")
    opened.page.click(".overview .legend-line button:has-text('backward')")
    backward = next(
        each.value for each in by_phase(opened.profile) if each.phase.label == "backward"
    )
    opened.status(format_value(backward, "ns"))
    opened.page.keyboard.press("o")
    opened.page.locator(".overview-lines button").first.click()
    opened.page.wait_for_selector("main[aria-label='source'] .code-text")
    opened.page.go_back()
    opened.page.click("text=How far to trust these figures")
    opened.page.wait_for_selector("main[aria-label='trust']")
