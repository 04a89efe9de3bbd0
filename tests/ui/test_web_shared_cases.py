"""Texts that must be equal in Python and the page: numbers with units, names of kernels.

`tests/golden/web/*.json` hold the texts; `web/tests` holds the page to the same files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deepcontext.ui.format import format_share, format_value, plain_cpp_name

GOLDEN = Path(__file__).parents[1] / "golden" / "web"


def _cases(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((GOLDEN / name).read_text("utf-8"))
    return cases


@pytest.mark.parametrize("case", _cases("format_cases.json"), ids=lambda case: str(case["text"]))
def test_values_are_written_as_the_page_writes_them(case: dict[str, Any]) -> None:
    if case["unit"] == "share":
        assert format_share(case["value"]) == case["text"]
    else:
        assert format_value(case["value"], case["unit"]) == case["text"]


@pytest.mark.parametrize("case", _cases("name_cases.json"), ids=lambda case: case["plain"])
def test_kernels_are_named_as_the_page_names_them(case: dict[str, Any]) -> None:
    assert plain_cpp_name(case["name"]) == case["plain"]
