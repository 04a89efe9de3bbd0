"""axe-core in a page: which of its rules are broken, in words."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.ui.browser.conftest import ROOT

if TYPE_CHECKING:
    from tests.ui.browser.conftest import Opened

WEB: Final = ROOT / "web"
AXE: Final = WEB / "node_modules" / "axe-core" / "axe.min.js"


def violations(opened: Opened) -> list[str]:
    """Return what the page shown breaks; without node the test is skipped."""
    if shutil.which("npm") is None:
        pytest.skip("node is not installed: axe-core is not run")
    if not AXE.exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=WEB, check=True)
    opened.page.evaluate(AXE.read_text("utf-8"))
    found = opened.page.evaluate("axe.run().then((result) => result.violations)")
    return [f"{each['id']}: {node['html'][:150]}" for each in found for node in each["nodes"][:3]]
