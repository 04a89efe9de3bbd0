"""The table of blind cases: every program is there, marked, measured, and half come from real threads."""

from __future__ import annotations

import re

import pytest

from tests.analyzers.measure_blind_cases import FOLDER, Case, cases

_LEAST_RATIO = 1.15
CASES = cases()


def test_every_program_belongs_to_a_case() -> None:
    listed = {case.program(kind) for case in CASES for kind in ("problem", "healthy")}
    assert listed == set(FOLDER.glob("*.py"))
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_marked_and_its_fix_pays(case: Case) -> None:
    assert len(case.lines()) == 1 + len(case.also)
    assert "# the problem" not in case.program("healthy").read_text()
    assert case.program("healthy").read_text() != case.program("problem").read_text()
    assert case.measure in {"time", "memory"}
    assert case.ratio >= _LEAST_RATIO
    re.compile(case.advice)


def test_half_of_the_cases_come_from_threads_of_users() -> None:
    threads = [
        case
        for case in CASES
        if re.fullmatch(r"https://github\.com/\S+/(issues|pull)/\d+", case.source)
    ]
    assert len(threads) >= len(CASES) / 2
