"""Every analyzer is one file, documented, and listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepcontext.analyzers import ALL

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference" / "analyzers"
HEADINGS = (
    "What it finds",
    "Why it matters",
    "How it is computed",
    "When it misleads",
    "Example",
)
IDS = [analyzer.id for analyzer in ALL]


@pytest.mark.parametrize("name", IDS)
def test_analyzer_has_a_page_with_all_parts(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    headings = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    assert tuple(headings) == HEADINGS


def test_every_page_is_of_an_analyzer_and_listed() -> None:
    pages = {page.stem for page in PAGES.glob("*.md")} - {"README"}
    assert pages == set(IDS)
    listing = (PAGES / "README.md").read_text(encoding="utf-8")
    for analyzer in ALL:
        assert f"| [{analyzer.id}]({analyzer.id}.md) | {analyzer.question} |" in listing


@pytest.mark.parametrize("name", IDS)
def test_analyzer_is_one_file(name: str) -> None:
    assert (ROOT / "src" / "deepcontext" / "analyzers" / f"{name}.py").exists()


def test_ids_are_distinct() -> None:
    assert len(set(IDS)) == len(IDS)
