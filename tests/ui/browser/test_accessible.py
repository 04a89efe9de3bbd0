"""The rules of axe-core hold in every view, light and dark: names, roles, contrast, keyboard."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.ui.browser.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

WEB: Final = ROOT / "web"
AXE: Final = WEB / "node_modules" / "axe-core" / "axe.min.js"
# What shows that a view is there.
VIEWS: Final = {
    "overview": "main section",
    "flame": "canvas",
    "flame&shape=tree": ".grid-row",
    "bottom-up": "canvas",
    "sandwich": "main canvas, main .sandwich, main .empty",
    "table": ".flat tbody tr",
    "source": "tr[data-line]",
    "compare": ".compare-sum",
    "findings": "main .finding, main .empty",
    "data": ".section-body",
    "trust": "main h2",
}


@pytest.mark.parametrize(("scheme", "where"), [("light", "address"), ("dark", "one_file")])
def test_every_view_obeys_the_rules_of_axe(
    open_on: Callable[..., Any], request: pytest.FixtureRequest, scheme: str, where: str
) -> None:
    if shutil.which("npm") is None:
        pytest.skip("node is not installed: axe-core is not run")
    if not AXE.exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=WEB, check=True)
    axe = AXE.read_text("utf-8")
    broken = []
    with open_on(request.getfixturevalue(where), None, color_scheme=scheme) as opened:
        for view, shown in VIEWS.items():
            opened.go(f"view={view}")
            opened.page.wait_for_selector(shown, timeout=20_000)
            opened.page.evaluate(axe)
            found = opened.page.evaluate("axe.run().then((result) => result.violations)")
            broken += [
                f"{view}: {each['id']}: {node['html'][:150]}"
                for each in found
                for node in each["nodes"][:3]
            ]
    assert not broken, "\n".join(broken)
