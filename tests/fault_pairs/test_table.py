"""The table of pairs: every program is there, marked and measured, and half of the faults come from users."""

from __future__ import annotations

import re

import pytest

from deepcontext.analyzers import Severity
from tests.fault_pairs.pairs import HEALTHY, PROBLEM, PROGRAMS, Pair, pairs, patched

_LEAST_RATIO = 1.15
_QUESTIONS = {
    "repeated",
    "unused",
    "excess",
    "small_calls",
    "waiting",
    "held",
    "form",
    "limit",
    "mode",
}
PAIRS = list(pairs().values())
FAULTY = [pair for pair in PAIRS if pair.advice]


def test_every_file_belongs_to_a_pair() -> None:
    programs = {f"{pair.name}.py" for pair in PAIRS}
    fixes = {f"{pair.name}.diff" for pair in FAULTY}
    assert {path.name for path in PROGRAMS.iterdir()} - {"__pycache__"} == programs | fixes


@pytest.mark.parametrize("pair", FAULTY, ids=lambda pair: pair.name)
def test_a_pair_is_marked_and_its_fix_applies_and_pays(pair: Pair) -> None:
    assert len(pair.lines()) == 1 + len(pair.also)
    for kind in pair.kinds:
        compile(pair.text(kind), pair.name, "exec")
    assert "# the problem" not in pair.text(HEALTHY)
    assert pair.question in _QUESTIONS
    assert pair.measure in {"time", "memory", ""}
    assert not pair.measure or pair.ratio >= _LEAST_RATIO
    assert pair.severity in list(Severity)
    re.compile(pair.advice)


def test_half_of_the_faults_come_from_threads_of_users() -> None:
    large = [pair for pair in FAULTY if pair.severity != Severity.INFO]
    threads = [
        pair
        for pair in large
        if re.fullmatch(r"https://github\.com/\S+/(issues|pull)/\d+", pair.source)
    ]
    assert len(threads) >= len(large) / 2


def test_names_of_files_before_a_diff_are_left_out() -> None:
    diff = "--- program.py\n+++ healthy.py\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    assert patched("one\ntwo\n", diff) == "one\nthree\n"


def test_a_diff_of_another_text_is_refused() -> None:
    pair = FAULTY[0]
    with pytest.raises(ValueError, match="is not"):
        patched("\n" + pair.text(PROBLEM), (PROGRAMS / f"{pair.name}.diff").read_text())
