"""Every analyzer is one file, documented, and listed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deepcontext.analyzers import ALL, catalogue
from deepcontext.analyzers.answers import QUESTIONS

ROOT = Path(__file__).parents[2]
QUESTIONS_FOLDER = ROOT / "src" / "deepcontext" / "analyzers" / "questions"
PAGES = ROOT / "docs" / "reference" / "analyzers"
HEADINGS = (
    "What it finds",
    "Why it matters",
    "How it is computed",
    "When it misleads",
    "Example",
)
# Of conditions, that are no classes of operators.
WORDS = frozenset(["as", "in", "after", "cost", "others", "any", "grown", "caches"])
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


def test_every_question_is_asked_and_every_cause_has_words() -> None:
    files = {path.stem for path in QUESTIONS_FOLDER.glob("*.py")} - {"__init__"}
    assert {each.__name__.rpartition(".")[2] for each in QUESTIONS} == files
    code = "".join(path.read_text(encoding="utf-8") for path in QUESTIONS_FOLDER.glob("*.py"))
    for key, entry in catalogue.entries().items():
        assert entry.id in IDS
        assert entry.place or entry.functions or f'"{key}"' in code
        assert entry.advice


def test_the_catalogue_names_known_classes_only() -> None:
    for entry in catalogue.entries().values():
        named = " ".join((entry.cost, entry.also, *entry.when, *entry.shows.values()))
        for name in re.findall(r"(?<=[(*\s])[a-z_0-9]+(?=[)\s])", f" {named} "):
            if not name[0].isdigit() and name not in WORDS:
                assert catalogue.operators(name)


def test_no_source_text_is_read_to_recognise_an_idiom() -> None:
    for path in (ROOT / "src" / "deepcontext" / "analyzers").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "line_text" not in text
        assert "import ast" not in text


def test_ids_are_distinct() -> None:
    assert len(set(IDS)) == len(IDS)
