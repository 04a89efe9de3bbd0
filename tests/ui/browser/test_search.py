"""The search box: no key is lost, the costliest match comes first, in every view."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.operators import by_operator
from deepcontext.ui.format import format_count, format_share, format_value
from tests.synthetic import random_profile
from tests.ui.browser.conftest import serving
from tests.ui.browser.test_history import LINEAR, settled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.ui.browser.conftest import Opened

METRIC = "host_time_ns"
BOX = "input[type=search]"
KEY_MS = 50
# A long run has a million nodes and 100 tries: 20 keys a second, none of which may be lost.
NODES = int(os.environ.get("DEEPCONTEXT_SEARCH_NODES", "200000"))
TRIES = int(os.environ.get("DEEPCONTEXT_SEARCH_TRIES", "3"))
TEXTS = ("frame_77", "linear_1", "operator")


@pytest.fixture(scope="module")
def large(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    from tests.ui.browser.conftest import open_page

    path: Path = tmp_path_factory.mktemp("large") / "large.dcprof"
    random_profile(NODES).save(path)
    with serving(path) as address, open_page(browser, address, Profile.load(path)) as opened:
        opened.go()
        opened.page.wait_for_selector("canvas")
        yield opened


@pytest.mark.timeout(180 + 15 * TRIES)
@pytest.mark.parametrize("slower", [1, 20])
def test_no_key_is_lost_while_a_search_takes_longer_than_the_next_key(
    large: Opened, slower: int
) -> None:
    devtools = large.page.context.new_cdp_session(large.page)
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": slower})
    for text in itertools.islice(itertools.cycle(TEXTS), TRIES):
        large.page.click(BOX)
        large.page.fill(BOX, "")
        large.page.keyboard.type(text, delay=KEY_MS)
        large.until(f"location.hash.includes('text={text}')")
        assert large.page.input_value(BOX) == text
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": 1})
    large.page.fill(BOX, "")
    large.page.keyboard.press("Escape")


def test_enter_goes_to_the_costliest_match_of_which_number_and_sum_are_shown(
    opened: Opened,
) -> None:
    found = opened.ask("find?text=addmm")
    opened.page.keyboard.press("/")
    # Enter follows the text at once: the matches are not known yet.
    opened.page.keyboard.type("addmm\n")
    opened.page.wait_for_selector(f".search-count:has-text('1 / {found['count']} ')")
    profile = opened.profile
    inclusive = profile.inclusive(METRIC)
    costliest = max(int(inclusive[node]) for node in profile.query().name("*addmm*").nodes())
    assert costliest <= found["nodes"][0]["value"]
    row = opened.page.wait_for_selector(".details .numbers tr.chosen")
    assert row is not None
    assert format_value(found["nodes"][0]["value"], "ns") in row.inner_text()
    text = opened.text(".search-count")
    assert format_value(found["value"], "ns") in text
    assert format_share(found["value"] / found["total"]) in text
    costs = [each["value"] for each in found["nodes"]]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("view", ["overview", "findings", "trust", "data", "bottom-up"])
def test_a_function_is_found_from_every_view(opened: Opened, view: str) -> None:
    opened.go(f"view={view}")
    opened.page.fill(BOX, "addmm")
    found = opened.ask("find?text=addmm")
    opened.page.wait_for_selector(f".search-count:has-text('{format_count(found['count'])} ')")
    opened.page.press(BOX, "Enter")
    opened.page.wait_for_selector(".details h2:has-text('addmm')")


def test_the_rows_of_a_table_that_match_are_counted_and_the_costliest_opens(
    opened: Opened,
) -> None:
    opened.go("view=table&by=operator&sort=name")
    opened.page.fill(BOX, "aten::")
    rows = [row for row in by_operator(opened.profile).rows if "aten::" in row.name]
    own = format_value(sum(row.exclusive for row in rows), "ns")
    opened.page.wait_for_selector(f".search-count:has-text('{len(rows)} · {own}')")
    opened.page.press(BOX, "Enter")
    largest = max(rows, key=lambda row: row.exclusive).name
    opened.page.wait_for_selector(f".details h2:has-text('{largest}')")


def test_lines_of_a_source_file_are_found(opened: Opened) -> None:
    opened.go("view=source")
    opened.page.wait_for_selector(".code tr[data-line]")
    opened.page.fill(BOX, "loss")
    opened.page.wait_for_selector(".code tr.found")
    rows = opened.page.locator(".code tr.found")
    texts = rows.locator(".code-text").all_inner_texts()
    assert texts
    assert all("loss" in text.lower() for text in texts)
    opened.page.wait_for_selector(f".search-count:has-text('{len(texts)} · ')")
    opened.page.press(BOX, "Enter")
    wanted = opened.page.locator("tr.wanted.found")
    wanted.wait_for()
    shares = rows.evaluate_all(
        "(all) => all.map((each) => parseFloat(each.style.getPropertyValue('--share')) || 0)"
    )
    share = wanted.evaluate("(each) => parseFloat(each.style.getPropertyValue('--share')) || 0")
    assert share == max(shares)


# Holds what the page asks its engine's thread, until it is released.
HOLD = """
const post = Worker.prototype.postMessage;
const held = [];
let isHeld = false;
Worker.prototype.postMessage = function (sent) {
  if (isHeld) held.push([this, sent]);
  else post.call(this, sent);
};
window.hold = () => { isHeld = true; };
window.heldMessages = () => held.map(([, sent]) => sent);
window.release = () => {
  isHeld = false;
  for (const [worker, sent] of held.splice(0)) post.call(worker, sent);
};
"""


@pytest.mark.parametrize(
    ("place", "question"),
    [("sandwich", "functions"), ("table", "table"), ("table&text=linear", "table")],
)
def test_enter_waits_for_the_answer_to_the_text_in_the_box(
    open_on: Callable[..., Any],
    address: str,
    profiles: tuple[Path, Path],
    place: str,
    question: str,
) -> None:
    with open_on(address, Profile.load(profiles[0])) as opened:
        opened.page.add_init_script(HOLD)
        opened.go(f"view={place}")
        opened.page.wait_for_selector(".flat tbody tr")
        opened.page.evaluate("hold()")
        opened.page.fill(BOX, "addmm")
        opened.page.keyboard.press("Enter")
        opened.until("location.hash.includes('text=addmm')")
        # Frames in which the rows that were found before could be visited.
        opened.page.evaluate("new Promise((done) => setTimeout(done, 300))")
        assert f"view={place.partition('&')[0]}" in opened.page.url
        assert "func=" not in opened.page.url
        opened.page.evaluate("release()")
        rows = opened.ask(f"{question}?text=addmm")["rows"]
        costliest = max(rows, key=lambda row: row["exclusive"])
        opened.page.wait_for_selector(f".details h2:has-text('{costliest['name']}')")
        assert opened.func() == costliest["id"]


def test_typing_and_zooming_do_not_wait_for_the_engine_and_stale_questions_are_dropped(
    open_on: Callable[..., Any], address: str, profiles: tuple[Path, Path]
) -> None:
    with open_on(address, Profile.load(profiles[0])) as opened:
        opened.page.add_init_script(HOLD)
        opened.go()
        opened.page.wait_for_selector("canvas")
        x, y = opened.box(LINEAR)
        opened.page.evaluate("hold()")
        opened.page.mouse.click(x, y)
        settled(opened, LINEAR, y, filled=True)
        for text in ("aten::", "addmm"):
            opened.page.fill(BOX, text)
            opened.until(f"heldMessages().some(({{ query }}) => query?.text === '{text}')")
        sent = opened.page.evaluate("heldMessages()")
        of_text = {each["query"].get("text"): each["id"] for each in sent if isinstance(each, dict)}
        assert of_text["aten::"] in sent  # the number of a question drops it
        assert of_text["addmm"] not in sent
        assert opened.page.locator(".search-count").count() == 0
        opened.page.evaluate("release()")
        count = opened.ask("find?text=addmm")["count"]
        opened.page.wait_for_selector(f".search-count:has-text('{format_count(count)} ')")
