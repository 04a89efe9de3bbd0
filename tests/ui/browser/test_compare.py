"""Three profiles: a table with a column for each, and graphs of two of them."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.ui.format import format_value
from tests.ui.browser.axe import violations
from tests.ui.browser.conftest import SERVER, WHERE, open_page, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.ui.browser.conftest import Opened

    Open = Callable[..., contextlib.AbstractContextManager[Opened]]

NAMES = ["short.dcprof", "long.dcprof", "other.dcprof"]
ONLY_OTHER, NOT_OTHER = "Linear 'fc9'", "Linear 'fc2'"
TABLE = "view=compare"
# Narrow nodes are left out of an answer according to the width that the page asks for.
PX = 1280


@pytest.fixture(scope="module")
def paths(profiles: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return three profiles; a module has another name in the last."""
    profile = Profile.load(profiles[0])
    strings = [text.replace("fc2", "fc9") for text in profile.frames.strings]
    other = tmp_path_factory.mktemp("other") / "other.dcprof"
    frames = dataclasses.replace(profile.frames, strings=strings)
    dataclasses.replace(profile, frames=frames).save(other)
    return [*profiles, other]


@pytest.fixture(scope="module")
def where(
    request: pytest.FixtureRequest, paths: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if getattr(request, "param", SERVER) == SERVER:
        with serving(*paths) as address:
            yield address
        return
    target = tmp_path_factory.mktemp("page") / "three.html"
    command = [sys.executable, "-m", "deepcontext", "view", "--html", str(target)]
    subprocess.run([*command, *map(str, paths)], check=True, timeout=300)
    yield target.as_uri()


@pytest.fixture
def open_three(browser: Browser, where: str, paths: list[Path]) -> Open:
    """Return a function that opens the page of the three profiles."""

    @contextlib.contextmanager
    def opened(place: str = TABLE, **settings: Any) -> Iterator[Opened]:
        with open_page(browser, where, *map(Profile.load, paths), **settings) as each:
            each.go(place)
            each.page.wait_for_selector(".compare-sum, .sandwich-title")
            yield each

    return opened


def head(opened: Opened) -> list[str]:
    return opened.page.locator(".grid-head [role=columnheader]").all_inner_texts()


def cells(opened: Opened, row: str) -> list[str]:
    """Return the texts of the row of a function, without its name."""
    shown = opened.page.locator(f'.grid-row:has-text("{row}")').first
    return shown.locator(".number").all_inner_texts()


def expected(opened: Opened, files: str, row: str = "", **query: str) -> list[str]:
    """Return what the row of a function must show; of the whole program if none is named."""
    more = "".join(f"&{name}={value}" for name, value in query.items())
    answer = opened.ask(f"flame?kind=difference&files={files}&px={PX}{more}")
    nodes, names = answer["nodes"], answer["functions"]["name"]
    at = next(n for n, func in enumerate(nodes["function"]) if not row or names[func] == row)
    base, *others = nodes["sides"][at]
    texts = [value_text(base)]
    for value in others:
        texts += [value_text(value), change_text(base, value)]
    return texts


def value_text(value: int | None) -> str:
    return "" if value is None else format_value(value, "ns")


def change_text(base: int | None, value: int | None) -> str:
    if base is None and value is None:
        return ""
    before, after = base or 0, value or 0
    change = after - before
    sign = "+" if change > 0 else ""
    ratio = f"\N{MULTIPLICATION SIGN} {after / before:.2f}" if before and after else ""
    return f"{sign}{format_value(change, 'ns')} {ratio or ('gone' if before else 'new')}"


def go_to(opened: Opened, name: str) -> None:
    """Open rows by keyboard, from the first on, until one of a function is selected."""
    opened.page.locator("[role=treegrid]").focus()
    row = opened.page.locator(".grid-row.chosen")
    while row.count() and row.get_attribute("aria-rowindex") != "1":
        opened.page.keyboard.press("ArrowUp")
    for _ in range(1000):
        if row.count() and name in row.inner_text():
            return
        closed = row.count() and row.get_attribute("aria-expanded") == "false"
        opened.page.keyboard.press("ArrowRight" if closed else "ArrowDown")
    raise AssertionError(f"no row of {name}")


@pytest.mark.parametrize("where", WHERE, indirect=True)
def test_each_profile_has_a_column_and_its_change(open_three: Open) -> None:
    with open_three() as opened:
        first, second, third = NAMES
        assert head(opened) == ["function", first, second, "change", third, "change"]
        assert cells(opened, "whole program") == expected(opened, "0,1,2")
        summary = opened.text(".compare-sum")
        assert all(name in summary for name in NAMES)
        opened.page.click("text=normalise")
        scaled = expected(opened, "0,1,2", normalize="1")
        assert scaled[0] == scaled[1]
        opened.page.wait_for_selector(
            f".grid-row:has-text('whole program'):has-text('{scaled[2]}')"
        )
        assert cells(opened, "whole program") == scaled


def test_a_node_that_a_profile_lacks_has_an_empty_cell(open_three: Open) -> None:
    with open_three() as opened:
        for name, lacking in ((NOT_OTHER, [3]), (ONLY_OTHER, [0, 1, 2])):
            go_to(opened, name)
            row = cells(opened, name)
            assert row == expected(opened, "0,1,2", name)
            assert [at for at, text in enumerate(row) if not text] == lacking


def test_another_base_is_chosen_by_keyboard_and_kept_in_the_address(open_three: Open) -> None:
    with open_three() as opened:
        opened.page.locator("label:has-text('Base') select").focus()
        opened.page.keyboard.press("ArrowDown")
        second = ["function", NAMES[1], NAMES[0], "change", NAMES[2], "change"]
        opened.page.wait_for_selector(f".grid-head :nth-child(2):has-text('{NAMES[1]}')")
        assert head(opened) == second
        assert cells(opened, "whole program") == expected(opened, "1,0,2")
        assert "base=1" in opened.page.url
        opened.page.reload()
        opened.page.wait_for_selector(".grid-row")
        assert head(opened) == second
        opened.page.go_back()
        opened.page.wait_for_selector(f".grid-head :nth-child(2):has-text('{NAMES[0]}')")


def test_two_of_three_are_compared_in_a_graph(open_three: Open) -> None:
    with open_three() as opened:
        assert opened.page.locator("canvas").count() == 0
        opened.page.keyboard.press("v")
        opened.page.wait_for_selector("canvas")
        assert "other=1" in opened.page.url
        opened.page.locator("label:has-text('against') select").focus()
        opened.page.keyboard.press("ArrowDown")
        opened.page.wait_for_selector(f".compare-sum:has-text('{NAMES[2]}')")
        assert NAMES[1] not in opened.text(".compare-sum")
        opened.page.locator("canvas").focus()
        opened.page.keyboard.press("v")
        opened.page.wait_for_selector(".grid-row")
        assert head(opened) == ["function", NAMES[0], NAMES[2], "change"]
        assert cells(opened, "whole program") == expected(opened, "0,2")
        opened.page.select_option("label:has-text('against') select", "-1")
        opened.page.wait_for_selector(f".grid-head :has-text('{NAMES[1]}')")


def test_all_are_shown_side_by_side(open_three: Open) -> None:
    with open_three("view=compare&sides=beside") as opened:
        opened.page.wait_for_selector("canvas >> nth=2")
        titles = opened.page.locator(".sandwich-title b").all_inner_texts()
        assert titles == NAMES
        for canvas in opened.page.locator("canvas").all():
            bounds = canvas.bounding_box()
            assert bounds is not None
            assert bounds["height"] > 100


def test_the_table_is_sorted_and_searched_as_any_tree(open_three: Open) -> None:
    def names() -> list[str]:
        return opened.page.locator(".grid-row .tree-name").all_inner_texts()

    with open_three(viewport={"width": 1280, "height": 6000}) as opened:
        go_to(opened, ONLY_OTHER)
        program = names()
        opened.page.keyboard.press("t")
        opened.until("location.hash.includes('order=size')")
        go_to(opened, ONLY_OTHER)
        assert names() != program
        opened.page.keyboard.press("/")
        opened.page.keyboard.type("fc9")
        opened.page.wait_for_selector(".grid-row.faint")
        # The answer for "f" may still be there, or come first.
        bright = "[...document.querySelectorAll('.grid-row:not(.faint) .tree-name')]"
        opened.until(f"{bright}.length > 0")
        opened.until(f"{bright}.every(each => each.innerText.includes('fc9'))")
        opened.page.keyboard.press("Enter")
        opened.page.wait_for_selector(".search-count:has-text('1 /')")
        assert "fc9" in opened.page.locator(".grid-row.chosen .tree-name").inner_text()


def test_the_open_rows_are_copied_as_markdown(open_three: Open) -> None:
    with open_three() as opened:
        go_to(opened, ONLY_OTHER)
        opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        opened.page.focus("button:has-text('Copy as Markdown')")
        opened.page.keyboard.press("Enter")
        opened.page.wait_for_selector("button:has-text('Copied')")
        first, line, *rows = opened.page.evaluate("navigator.clipboard.readText()").splitlines()
        assert first == f"| {' | '.join(head(opened))} |"
        assert line == "|" + " --- |" * 6
        count = opened.page.locator("[role=treegrid]").get_attribute("aria-rowcount")
        assert len(rows) == int(count or 0)
        (row,) = (each for each in rows if ONLY_OTHER in each)
        assert row.removesuffix(" |").split(" | ")[1:] == cells(opened, ONLY_OTHER)
        assert row.startswith("| \N{EM SPACE}")


def test_a_table_wider_than_the_window_is_scrolled_by_keyboard(open_three: Open) -> None:
    with open_three(viewport={"width": 640, "height": 800}) as opened:
        opened.page.keyboard.press("i")
        grid = opened.page.locator("[role=treegrid]")
        assert grid.evaluate("(each) => each.scrollWidth > each.clientWidth")
        grid.focus()
        opened.page.keyboard.press("ArrowDown")
        for _ in range(8):
            opened.page.keyboard.press("Shift+ArrowRight")
        opened.until(
            "(() => { const grid = document.querySelector('[role=treegrid]');"
            " return grid.scrollLeft + grid.clientWidth >= grid.scrollWidth - 1; })()"
        )
        last = opened.page.locator(".grid-row.chosen .number").last.bounding_box()
        assert last is not None
        assert last["x"] + last["width"] <= 640
        name = opened.page.locator(".grid-row.chosen .tree-name").bounding_box()
        assert name is not None
        assert name["x"] >= 0  # the name stays in view
        for _ in range(8):
            opened.page.keyboard.press("Shift+ArrowLeft")
        opened.until("document.querySelector('[role=treegrid]').scrollLeft === 0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_comparison_obeys_the_rules_of_axe(open_three: Open, scheme: str) -> None:
    broken = []
    for place, shown in {
        TABLE: ".grid-row",
        f"{TABLE}&other=2": "canvas",
        f"{TABLE}&other=2&shape=tree": ".grid-row",
        f"{TABLE}&sides=beside": "canvas >> nth=2",
    }.items():
        with open_three(place, color_scheme=scheme) as opened:
            opened.page.wait_for_selector(shown)
            if shown == ".grid-row":
                go_to(opened, NOT_OTHER)
            broken += [f"{place}: {each}" for each in violations(opened)]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("where", WHERE, indirect=True)
def test_several_profiles_open_on_their_comparison(browser: Browser, where: str) -> None:
    with open_page(browser, where, None) as opened:
        opened.page.goto(where)
        opened.page.wait_for_selector("main[aria-label='compare']")
        opened.go("view=overview")
        opened.page.wait_for_selector("main[aria-label='overview']")


def test_a_source_file_of_all_is_shown_side_by_side(open_three: Open, paths: list[Path]) -> None:
    with open_three("view=compare&sides=sources") as opened:
        sides = opened.page.locator(".sources > section")
        sides.nth(2).locator("tr[data-line]").first.wait_for()
        assert [side.get_attribute("aria-label") for side in sides.all()] == NAMES
        tops = set()
        for side, path in zip(sides.all(), paths, strict=True):
            side.locator("tr.costly").first.wait_for()
            hottest = by_line(Profile.load(path), largest="exclusive").rows[0]
            row = side.locator(f"tr[data-line='{hottest.line}']")
            assert format_value(hottest.exclusive, "ns") in row.inner_text()
            bounds = side.bounding_box()
            assert bounds is not None
            tops.add(bounds["y"])
        assert len(tops) == 1
        assert not violations(opened)
