"""Files that are dropped on the page."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from deepcontext.profiler.model.profile import Profile
from tests.profiler.importing import traces
from tests.ui.browser.conftest import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ui.browser.conftest import Opened

EVENT = """([type, name, content]) => {
  const dataTransfer = new DataTransfer();
  const bytes = Uint8Array.from(atob(content), each => each.charCodeAt(0));
  dataTransfer.items.add(new File([bytes], name));
  document.body.dispatchEvent(new DragEvent(type, {dataTransfer, bubbles: true, cancelable: true}));
}"""
TRACE = json.dumps([traces.op("aten::dropped", 10, 5)]).encode()


def drop(opened: Opened, name: str, content: bytes) -> None:
    for event in ("dragover", "drop"):
        opened.page.evaluate(EVENT, [event, name, base64.b64encode(content).decode()])


def test_a_trace_opens_beside_the_profile(open_on: Any, profiles: tuple[Path, Path]) -> None:
    """It is compared with the other, and stays open when the page is loaded again."""
    path = profiles[0]
    with serving(path) as address, open_on(address, Profile.load(path)) as opened:
        opened.go()
        opened.page.evaluate(EVENT, ["dragover", "trace.json", ""])
        assert "Drop a profile or a trace" in opened.page.evaluate("document.body.dataset.drop")
        drop(opened, "trace.json", TRACE)
        # Waits beyond the page's own reload, as `until` does not.
        opened.page.wait_for_selector("h1:text-is('trace.json')", state="attached")
        assert opened.page.locator("[aria-label=Profile] option").all_inner_texts() == [
            path.name,
            "trace.json",
        ]
        opened.go("view=compare")
        opened.page.wait_for_selector("main[aria-label=compare] canvas")  # of what both have


def test_what_is_no_profile_is_refused(open_on: Any, profiles: tuple[Path, Path]) -> None:
    path = profiles[0]
    with serving(path) as address, open_on(address, Profile.load(path)) as opened:
        opened.go()
        drop(opened, "notes.txt", b"hello")
        opened.page.wait_for_selector("[role=alert]:has-text('notes.txt was not opened')")
        assert "not a profile" in opened.text("[role=alert]")
        assert opened.page.evaluate("document.body.dataset.drop") == ""
        opened.errors.clear()  # the browser logs each refused request


def test_a_page_in_one_file_says_how(
    open_on: Any, one_file: str, profiles: tuple[Path, Path]
) -> None:
    with open_on(one_file, Profile.load(profiles[0])) as opened:
        opened.go()
        drop(opened, "trace.json", TRACE)
        opened.page.wait_for_selector("[role=alert]:has-text('deepcontext view trace.json')")
