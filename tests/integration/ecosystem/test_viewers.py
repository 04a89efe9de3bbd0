"""Exported profiles, read by the viewers they are for: pprof's own reader, speedscope in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.cli import app

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ecosystem
SOURCE = """\
import torch

net = torch.nn.Linear(64, 64)
for _ in range(20):
    net(torch.ones(8, 64)).sum().backward()
"""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture
def folder(program: Any) -> Path:
    program.profile(SOURCE)
    folder: Path = program.folder
    return folder


def _run(*words: str, cwd: Path) -> str:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not shutil.which("go"), reason="'go tool pprof' is not installed")
def test_pprof_reads_its_format(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert app.main(["export", "out.dcprof", "--format", "pprof"]) == 0
    pprof = ["go", "tool", "pprof", "-unit=ns", "-nodefraction=0", "-top"]
    shown = _run(*pprof, "out.pb.gz", cwd=folder)
    profile = Profile.load("out.dcprof")
    assert "Type: host_time_ns" in shown
    total = re.search(r"Total samples = (\d+)ns", shown)
    assert total is not None
    assert int(total[1]) == profile.inclusive("host_time_ns")[0]
    assert "aten::addmm" in shown
    backward = _run(*pprof, "-tagfocus=phase=backward", "out.pb.gz", cwd=folder)
    assert "AddmmBackward0" in backward
    (own,) = re.findall(r"^ *(\d+)(?:ns)? .* aten::addmm$", backward, re.MULTILINE)
    assert int(own) == 0  # it is forward's


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
@pytest.mark.parametrize("name", ["speedscope", "collapsed"])
def test_speedscope_reads_its_format(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    monkeypatch.chdir(folder)
    assert app.main(["export", "out.dcprof", "--format", name, "-o", "out.txt"]) == 0
    _run("npm", "install", "--silent", "speedscope", cwd=folder)
    page_file = folder / "node_modules" / "speedscope" / "dist" / "release" / "index.html"
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(page_file.as_uri())
        page.set_input_files("input[type=file]", folder / "out.txt")
        page.get_by_text("Sandwich").wait_for()
        page.get_by_text("Sandwich").click()
        page.get_by_text("aten::addmm").first.wait_for()
        browser.close()
    assert not errors
