"""The rules of axe-core hold in every view, light and dark: names, roles, contrast, keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.ui.browser.axe import violations

if TYPE_CHECKING:
    from collections.abc import Callable

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
    assert not broken, "\n".join(broken)
