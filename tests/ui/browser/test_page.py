"""The page as a whole: one file without a network, hostile names, a server that goes away."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.operators import by_operator
from deepcontext.profiler.summaries.phases import by_phase
from deepcontext.ui.format import format_value
from deepcontext.ui.notebook import profile_html
from deepcontext.ui.web.source_choice import IN_PART, LEFT_OUT, chosen_texts
from deepcontext.ui.web.source_text import named_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser

    OpenOn = Callable[..., Any]

METRIC = "host_time_ns"
SCRIPT = "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>"


def write_html(profile: Path, target: Path, *options: str) -> str:
    command = [sys.executable, "-m", "deepcontext", "view", str(profile), "--html", str(target)]
    done = subprocess.run([*command, *options], check=True, capture_output=True, text=True)
    assert f"written to '{target}'" in done.stdout
    return done.stderr


def test_one_file_works_from_disk_with_the_network_off(
    open_on: OpenOn, profiles: tuple[Path, Path], tmp_path: Path
) -> None:
    target = tmp_path / "page.html"
    assert write_html(profiles[0], target) == ""
    profile = Profile.load(profiles[0])
    with open_on(target.as_uri(), profile, offline=True) as opened:
        opened.page.goto(f"{target.as_uri()}#view=flame")
        opened.status(format_value(int(profile.exclusive(METRIC).sum()), "ns"))
        opened.page.locator(".details .numbers button:has-text('elapsed time')").click()
        opened.status(format_value(int(profile.exclusive("elapsed_time_ns").sum()), "ns"))
        # The list of measures stays, so that the user can choose another.
        opened.page.locator(".details .numbers button:has-text('host time')").first.click()
        opened.status(format_value(int(profile.exclusive(METRIC).sum()), "ns"))
        backward = next(r.value for r in by_phase(profile) if r.phase.label == "backward")
        opened.page.select_option(".field:has-text('Phase') select", "backward")
        opened.status(format_value(backward, "ns"))
        opened.page.click("text=hide library")
        opened.status(format_value(backward, "ns"))
        # Any number of switches can be changed, and the tree edited.
        opened.page.click(".chip:has-text('module')")
        opened.page.select_option(".field:has-text('Split by') select", "phase")
        opened.status(format_value(backward, "ns"))
        opened.page.keyboard.press("2")
        opened.page.wait_for_selector("main[aria-label='bottom-up'] canvas")
        opened.page.keyboard.press("4")
        largest = by_operator(profile).rows[0]
        first = opened.page.locator(".flat tbody tr").first
        assert format_value(largest.exclusive, "ns") in first.inner_text()
        opened.page.keyboard.press("5")
        opened.page.wait_for_selector(".code-text:has-text('net(coordinates)')")


def test_one_file_without_source_has_no_source(
    open_on: OpenOn, profiles: tuple[Path, Path], tmp_path: Path
) -> None:
    target = tmp_path / "page.html"
    write_html(profiles[0], target, "--no-source")
    with open_on(target.as_uri(), None, offline=True) as opened:
        opened.page.goto(f"{target.as_uri()}#view=source")
        opened.page.wait_for_selector("text=source text is left out")
        assert "coordinates" not in opened.text("main")


def test_one_file_says_which_source_text_is_left_out(
    open_on: OpenOn, profiles: tuple[Path, Path], tmp_path: Path
) -> None:
    target = tmp_path / "page.html"
    write_html(profiles[0], target)
    profile = Profile.load(profiles[0])
    texts = chosen_texts(profile, with_text=True)
    left_out = next(path for path in named_lines(profile) if path not in texts)
    in_part = next(path for path, text in texts.items() if IN_PART in text.note)
    with open_on(target.as_uri(), None, offline=True) as opened:
        for path, note in ((left_out, LEFT_OUT), (in_part, IN_PART)):
            opened.go(f"view=source&path={path}")
            opened.page.wait_for_selector(f'.source-head:has-text("{note}")')
            opened.page.wait_for_selector("tr[data-line]")


def test_script_in_names_and_paths_is_text(
    open_on: OpenOn, make_profile: Any, tmp_path: Path
) -> None:
    from tests.ui.browser.conftest import serving

    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.THREAD, SCRIPT),
        Frame(FrameKind.PYTHON, SCRIPT, f"/home/me/{SCRIPT}.py", 1),
        Frame(FrameKind.MODULE, SCRIPT),
        Frame(FrameKind.OPERATOR, SCRIPT),
    ]
    profile = make_profile(
        [0, 0, 1, 2, 3], frames, host_time_ns={4: 5}, call_samples_ns={4: [2, 3]}
    )
    findings = [{"id": SCRIPT, "title": SCRIPT, "advice": SCRIPT, "nodes": [4]}]
    profile = profile.with_section("findings", json.dumps(findings).encode())
    path = tmp_path / "hostile.dcprof"
    profile.save(path)
    page = tmp_path / "page.html"
    write_html(path, page)
    with serving(path) as address:
        for where in (address, page.as_uri()):
            with open_on(where, profile) as opened:
                for view in ("flame", "table", "source", "findings", "trust"):
                    opened.page.goto("about:blank")
                    opened.page.goto(
                        f"{where}#view={view}&text={SCRIPT}&edits=hide:9999999:{SCRIPT}"
                    )
                    opened.page.wait_for_timeout(250)
                    assert opened.page.evaluate("window.pwned") is None
                    assert opened.page.locator("img").count() == 0
                # The edit names a frame that this profile lacks, so the edit is refused.
                opened.errors.clear()


def test_a_finding_leads_to_its_node(
    open_on: OpenOn, profiles: tuple[Path, Path], tmp_path: Path
) -> None:
    from tests.ui.browser.conftest import serving

    profile = Profile.load(profiles[0])
    node = int(profile.query().name("aten::addmm").nodes()[0])
    content = [
        {
            "id": "hotspot",
            "severity": "warning",
            "title": "One operator dominates",
            "advice": "fuse it",
            "nodes": [node],
            "evidence": {"host_time_ns": 5},
        }
    ]
    path = tmp_path / "found.dcprof"
    profile.with_section("findings", json.dumps(content).encode()).save(path)
    with serving(path) as address, open_on(address, profile) as opened:
        opened.go("view=findings")
        opened.page.wait_for_selector("text=One operator dominates")
        assert "fuse it" in opened.text("main")
        opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        opened.page.click("button:has-text('Copy as Markdown')")
        opened.page.wait_for_selector("button:has-text('Copied')")
        copied = opened.page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith(
            "### One operator dominates\n\n- **severity** warning (`hotspot`)\n"
        )
        assert "fuse it" in copied
        opened.page.click("text=Show in the graph")
        opened.page.wait_for_selector(".details h2:has-text('aten::addmm')")
        value = int(profile.inclusive(METRIC)[node])
        opened.page.wait_for_selector(f".details .numbers:has-text('{format_value(value, 'ns')}')")


def test_a_file_that_changes_is_reported_and_can_be_loaded_again(
    open_on: OpenOn, profiles: tuple[Path, Path], tmp_path: Path
) -> None:
    from tests.ui.browser.conftest import serving

    path = tmp_path / "changing.dcprof"
    path.write_bytes(profiles[0].read_bytes())
    longer = Profile.load(profiles[1])
    with serving(path) as address, open_on(address, longer) as opened:
        opened.go()
        opened.page.wait_for_selector("canvas")
        longer.save(path)
        opened.page.click("button:has-text('Table')")
        opened.page.wait_for_selector(".flat tbody tr")  # computed from the columns that are here
        assert opened.page.locator(".banner").count() == 0
        opened.page.evaluate("window.dispatchEvent(new Event('focus'))")  # somebody comes back
        opened.page.wait_for_selector(".banner:has-text('has changed since this page was loaded')")
        opened.errors.clear()  # the browser names the refused request in its console
        opened.page.click("button:has-text('Show the newer run')")
        opened.page.click("button:has-text('Flame graph')")
        opened.status(format_value(int(longer.exclusive(METRIC).sum()), "ns"))


def test_a_profile_without_elapsed_time_opens_with_its_costliest_functions(
    open_on: OpenOn, tmp_path: Path
) -> None:
    from tests.ui.browser.conftest import serving

    def kernel(name: str, time_ns: int) -> dict[str, Any]:
        metrics = {"count": 1, "device_type": "CUDA", "device_id": "0", "time (ns)": time_ns}
        return {
            "frame": {"name": name, "type": "function"},
            "metrics": metrics,
            "children": [],
        }

    kernels = [kernel("small", 1_000), kernel("large", 3_000)]
    path = tmp_path / "proton.json"
    root = {"frame": {"name": "ROOT", "type": "function"}, "metrics": {}, "children": kernels}
    path.write_text(json.dumps([root, {"CUDA": {"0": {"arch": "90"}}}]))
    with serving(path) as address, open_on(address, None) as opened:
        opened.go("view=overview")
        rows = opened.page.locator(".overview-lines tr")
        rows.first.wait_for()
        assert [row.split() for row in rows.all_inner_texts()] == [
            ["3.00", "us", "75.0", "%", "large"],
            ["1.00", "us", "25.0", "%", "small"],
        ]
        rows.first.locator("button").click()
        opened.page.wait_for_selector("main[aria-label='sandwich']")
        # Nothing is known of phases and calls: no columns for them.
        opened.go("view=table")
        opened.page.wait_for_selector(".flat tbody tr")
        heads = opened.page.locator(".flat thead th").all_inner_texts()
        assert [head.split()[0] for head in heads] == ["name", "total", "self", "contexts"]


def test_a_server_that_has_ended_is_reported(open_on: OpenOn, profiles: tuple[Path, Path]) -> None:
    from tests.ui.browser.conftest import serving

    with serving(profiles[0]) as address:
        context = open_on(address, None)
        opened = context.__enter__()
        opened.go()
        opened.page.wait_for_selector("canvas")
    opened.page.click("button:has-text('Table')")
    opened.page.wait_for_selector(".flat tbody tr")  # computed from the columns that are here
    opened.page.click("button:has-text('Findings')")
    opened.page.wait_for_selector(".banner:has-text('the server does not answer')")
    opened.errors.clear()  # as above
    context.__exit__(None, None, None)


def test_a_wrong_address_is_refused_with_the_reason(browser: Browser, address: str) -> None:
    page = browser.new_page()
    response = page.goto(address.rsplit("/", 2)[0] + "/guess/")
    assert response is not None
    assert response.status == 403
    assert "lacks the right token" in page.inner_text("body")
    page.close()


def test_a_notebook_shows_the_page_in_a_frame(
    open_on: OpenOn, profiles: tuple[Path, Path], tmp_path: Path
) -> None:
    profile = Profile.load(profiles[0])
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><body>{profile_html(profile)}</body>", "utf-8")
    with open_on(notebook.as_uri(), profile, offline=True) as opened:
        opened.page.goto(notebook.as_uri())
        frame = opened.page.frame_locator("iframe")
        value = format_value(int(profile.exclusive(METRIC).sum()), "ns")
        frame.locator("button:has-text('Flame graph')").click()
        frame.locator(f".status:has-text('{value}')").wait_for()
        frame.locator("button:has-text('Table')").click()
        largest = by_operator(profile).rows[0]
        first = frame.locator(".flat tbody tr").first.inner_text()
        assert format_value(largest.exclusive, "ns") in first
