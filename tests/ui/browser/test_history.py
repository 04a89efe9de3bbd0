"""Back undoes: zooms, filters and searches are steps of the browser's history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.ui.format import format_value

if TYPE_CHECKING:
    from tests.ui.browser.conftest import Opened

METRIC = "host_time_ns"
LINEAR = "Linear 'fc2'"
PARTS = "new URLSearchParams(location.hash.slice(1))"


def fills_the_width(opened: Opened, name: str, y: float) -> bool:
    """Return whether the box at a height is one box that reaches both edges."""
    bounds = opened.page.locator("canvas").first.bounding_box()
    assert bounds is not None
    for x in (bounds["x"] + 3, bounds["x"] + bounds["width"] - 3):
        opened.page.mouse.move(x, y)
        tip = opened.page.locator(".tooltip .tip-name")
        if not tip.count() or tip.inner_text() != name:
            return False
    return True


def settled(opened: Opened, name: str, y: float, *, filled: bool) -> None:
    """Wait until the box fills the width, or does not: zooms are animated."""
    for _ in range(600):
        if fills_the_width(opened, name, y) is filled:
            return
        opened.page.wait_for_timeout(50)
    raise AssertionError(name)


def test_back_undoes_each_zoom_and_forward_repeats_it(opened: Opened) -> None:
    x, y = opened.box(LINEAR)
    start = opened.page.url
    opened.page.mouse.click(x, y)
    opened.until("location.hash.includes('zoom=')")
    settled(opened, LINEAR, y, filled=True)
    first = opened.page.url
    opened.page.mouse.click(x, y + 40)
    opened.until(f"location.href !== '{first}'")
    opened.page.go_back()
    assert opened.page.url == first
    settled(opened, LINEAR, y, filled=True)
    opened.page.go_back()
    assert opened.page.url == start
    settled(opened, LINEAR, y, filled=False)
    opened.page.go_forward()
    assert opened.page.url == first
    settled(opened, LINEAR, y, filled=True)


def test_turns_of_the_wheel_are_one_step_that_a_reload_keeps(opened: Opened) -> None:
    x, y = opened.box(LINEAR)
    start = opened.page.url
    opened.page.mouse.move(x, y)
    for _ in range(3):
        opened.page.keyboard.down("Control")
        for _ in range(8):
            opened.page.mouse.wheel(0, -240)
        opened.page.keyboard.up("Control")
        opened.page.wait_for_timeout(400)
    opened.until("location.hash.includes('range=')")
    settled(opened, LINEAR, y, filled=True)
    opened.page.reload()
    opened.page.wait_for_selector("canvas")
    settled(opened, LINEAR, y, filled=True)
    opened.page.go_back()
    assert opened.page.url == start
    settled(opened, LINEAR, y, filled=False)


def test_back_undoes_filters_one_by_one(opened: Opened) -> None:
    total = opened.text(".status b")
    steps = [opened.page.url]
    opened.page.click(".chip:has-text('module')")
    steps.append(opened.page.url)
    opened.page.select_option(".field:has-text('Phase') select", "backward")
    steps.append(opened.page.url)
    opened.page.keyboard.press("t")
    steps.append(opened.page.url)
    opened.page.select_option(".field:has-text('Colour') select", "self")
    opened.until("location.hash.includes('color=self')")
    assert len(set(steps)) == len(steps)
    for url in reversed(steps):
        opened.page.go_back()
        assert opened.page.url == url
    opened.status(total)
    assert opened.page.locator(".chip:has-text('module')").get_attribute("aria-pressed") == "true"


def test_a_search_is_one_step(opened: Opened) -> None:
    start = opened.page.url
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("addmm", delay=100)
    opened.until("location.hash.endsWith('text=addmm')")
    opened.page.locator("canvas").focus()
    opened.page.go_back()
    assert opened.page.url == start
    opened.until("document.querySelector('input[type=search]').value === ''")


def test_zooms_of_callers_callees_and_bottom_up_are_undone_too(opened: Opened) -> None:
    zoomed: list[tuple[str, int]] = []
    for view, canvas in (("bottom-up", 0), ("sandwich", 0), ("sandwich", 1)):
        node = opened.ask("find?text=aten::addmm")["nodes"][0]
        opened.go(f"view={view}&func={node['id']}")
        opened.page.wait_for_selector(f"canvas >> nth={canvas}")
        start = opened.page.url
        drawn = opened.page.locator(".flame").nth(canvas).bounding_box()
        assert drawn is not None
        y = drawn["y"] + (drawn["height"] - 10 if canvas == 0 and view == "sandwich" else 30)
        for part in (0.98, 0.9, 0.7, 0.3):
            opened.page.mouse.click(drawn["x"] + part * drawn["width"], y)
            opened.page.wait_for_timeout(300)
            if opened.page.evaluate(f"{PARTS}.has('range')"):
                break
        else:
            continue  # one box has the whole width
        zoomed.append((view, canvas))
        opened.page.go_back()
        assert opened.page.url == start
        opened.page.wait_for_selector("canvas")
    assert ("bottom-up", 0) in zoomed
    assert ("sandwich", 1) in zoomed


def test_a_filter_keeps_what_is_zoomed_in_to(opened: Opened) -> None:
    x, y = opened.box(LINEAR)
    opened.page.mouse.click(x, y)
    opened.until("location.hash.includes('zoom=')")
    opened.page.keyboard.press("l")
    opened.until("location.hash.includes('lines=1')")
    opened.status(format_value(int(opened.profile.exclusive(METRIC).sum()), "ns"))
    # With a box for each line, the module stands lower or as low as before.
    opened.page.wait_for_selector(f'.details h2:has-text("{LINEAR}")')
    assert opened.page.evaluate(f"{PARTS}.has('zoom')")
