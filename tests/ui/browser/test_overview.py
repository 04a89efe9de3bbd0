"""The first view: each part has the numbers of its summary, and leads to the view behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.summaries.account import account
from deepcontext.profiler.summaries.memory import memory_use
from deepcontext.profiler.summaries.verdict import leading_lines, verdicts
from deepcontext.ui.account_texts import groups_of, verdict_text
from deepcontext.ui.format import format_share, format_value
from tests.ui.browser.conftest import WHERE, serving
from tests.ui.test_web_time_line import in_windows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.ui.browser.conftest import Opened


@pytest.mark.parametrize("opened", WHERE, indirect=True)
def test_the_page_opens_with_the_overview(opened: Opened) -> None:
    opened.go("view=overview")
    for part in (".overview-lines code", ".legend-line button", ".overview-pool"):
        opened.page.wait_for_selector(f"main[aria-label='overview'] {part}")
    text = opened.text("main")
    profile = opened.profile
    found = account(profile)
    for verdict in verdicts(profile):
        assert verdict_text(profile, verdict) in text
    for group in groups_of(found):
        if group.share:
            assert f"{group.name}" in text
            assert f" {format_share(group.share)}" in text
    leading = leading_lines(found)
    first = next(place for place in leading.lines if place.frame)
    assert first.frame is not None
    line = opened.page.locator(".overview-lines tr:has(button)").first.inner_text()
    assert format_value(leading.value(first), "ns") in line
    assert f"examples/torch_mlp.py:{first.frame.line}" in line
    use = memory_use(profile)
    assert use is not None
    assert f"cpu {format_value(use.pools[0].peak_bytes, 'bytes')}" in text


def test_parts_of_the_overview_lead_on(opened: Opened) -> None:
    opened.go("view=overview")
    opened.page.click(".overview .legend-line button:has-text('operators')")
    opened.page.wait_for_selector("main[aria-label='flame']")
    opened.page.keyboard.press("o")
    opened.page.locator(".overview-lines button").first.click()
    opened.page.wait_for_selector("main[aria-label='source'] .code-text")
    opened.page.go_back()
    opened.page.click("text=How far to trust these figures")
    opened.page.wait_for_selector("main[aria-label='trust']")


def test_what_happens_once_is_apart_from_the_steady_state(
    open_on: Callable[..., Any], make_profile: Any, tmp_path: Path
) -> None:
    path = tmp_path / "train.dcprof"
    profile = in_windows(make_profile)
    profile.save(path)
    with serving(path) as address, open_on(address, profile) as opened:
        opened.go("view=overview")
        opened.page.wait_for_selector("text=Steady state: 16 steps of 100 ms from step 3 on")
        # The first two steps, 90 and 5 ms on this line, are set-up and in no mean.
        assert "Set-up: 200 ms before step 3: train.py:3 95.0 ms" in opened.text("main")
        lines = opened.page.locator(".overview-lines tr").all_inner_texts()
        assert [line.split()[:2] for line in lines] == [["1.50", "ms"]]
