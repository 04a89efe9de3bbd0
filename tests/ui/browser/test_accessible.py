"""The rules of axe-core hold in every view, light and dark: names, roles, contrast, keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.ui.browser.axe import violations

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.ui.browser.conftest import Opened

# What shows that a view is there.
VIEWS: Final = {
    "overview": "main section",
    "flame": "canvas",
    "flame&shape=tree": ".grid-row",
    "bottom-up": "canvas",
    "sandwich": ".functions tbody tr",
    "table": ".flat tbody tr",
    "source": "tr[data-line]",
    "compare": ".compare-sum",
    "compare&sides=changes": ".flat tbody tr",
    "findings": "main .finding, main .empty",
    "data": ".section-body",
    "trust": "main h2",
}


@pytest.mark.parametrize(("scheme", "where"), [("light", "address"), ("dark", "one_file")])
def test_every_view_obeys_the_rules_of_axe(
    open_on: Callable[..., Any], request: pytest.FixtureRequest, scheme: str, where: str
) -> None:
    broken = []
    with open_on(request.getfixturevalue(where), None, color_scheme=scheme) as opened:
        for view, shown in VIEWS.items():
            opened.go(f"view={view}")
            opened.page.wait_for_selector(shown, timeout=20_000)
            broken += [f"{view}: {each}" for each in violations(opened)]
        opened.page.keyboard.press("Control+k")
        opened.page.wait_for_selector(".palette [role=option]")
        broken += [f"palette: {each}" for each in violations(opened)]
    assert not broken, "\n".join(broken)


def test_colours_that_mean_something_stay_in_high_contrast(opened: Opened) -> None:
    page = opened.page
    color = "(each) => getComputedStyle(each).backgroundColor"
    for view, part in (("overview", ".phase-bar span"), ("flame", ".chip i"), ("table", ".dot")):
        opened.go(f"view={view}")
        shown = page.locator(part).first
        shown.wait_for()
        page.emulate_media(forced_colors="none")
        usual = shown.evaluate(color)
        page.emulate_media(forced_colors="active")
        assert shown.evaluate(color) == usual
    chosen = page.locator(".tabs [aria-current]")
    assert chosen.evaluate("(each) => getComputedStyle(each).outlineStyle") == "solid"
    page.emulate_media(forced_colors="none")


def test_with_reduced_motion_a_zoom_is_one_step(opened: Opened) -> None:
    page = opened.page
    page.emulate_media(reduced_motion="reduce")
    opened.go("view=flame")
    page.wait_for_selector("canvas")
    frames = "window.frames_drawn = 0; const draw = CanvasRenderingContext2D.prototype.fillText;"
    frames += "CanvasRenderingContext2D.prototype.fillText = function (...all) {"
    frames += " frames_drawn += all[0].startsWith('whole program'); draw.apply(this, all); }; 0"
    page.evaluate(frames)
    page.mouse.click(*opened.box("aten::linear"))
    opened.until("location.hash.includes('zoom=')")
    page.wait_for_timeout(400)
    # The zoom, and what the selection and the finer answer change.
    assert page.evaluate("frames_drawn") <= 4
    page.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("view", VIEWS)
def test_at_twice_the_size_nothing_is_cut_off(opened: Opened, view: str) -> None:
    """Zoom of 200 % in a window of 1280 by 1024 leaves 640 by 512."""
    opened.page.set_viewport_size({"width": 640, "height": 512})
    opened.go(f"view={view}")
    opened.page.wait_for_selector(VIEWS[view])
    widths = "[document.documentElement.scrollWidth, innerWidth]"
    wide, window = opened.page.evaluate(widths)
    assert wide <= window
    main = opened.page.locator("main").bounding_box()
    assert main is not None
    assert main["height"] > 120
