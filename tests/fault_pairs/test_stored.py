"""Stored profiles: the analyzers tell the faults in them, and warn of nothing else.

A profile always gives the same findings, however fast the machine is. `make cases` records the pairs afresh.
"""

from __future__ import annotations

import pytest

from deepcontext.analyzers import ALL
from tests.fault_pairs.judging import Verdict, misses, precision, recall, summary, verdict
from tests.fault_pairs.pairs import pairs
from tests.fault_pairs.store import PROFILES

_LEAST_RECALL, _LEAST_PRECISION = 0.85, 0.95
_MOST_BYTES = 8 << 20
STORED = [pair for pair in pairs().values() if pair.stored]


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    return [verdict(pair, PROFILES) for pair in STORED]


@pytest.mark.long
def test_faults_are_told_and_nothing_else(verdicts: list[Verdict]) -> None:
    print(summary(verdicts), *misses(verdicts), sep="\n")
    assert recall(verdicts) >= _LEAST_RECALL
    assert precision(verdicts) >= _LEAST_PRECISION


def test_lost_faults_are_those_that_the_table_names(verdicts: list[Verdict]) -> None:
    missed = {each.name for each in verdicts if each.told not in {"yes", ""}}
    assert missed == {pair.name for pair in STORED if pair.lost}


def test_every_analyzer_tells_a_fault(verdicts: list[Verdict]) -> None:
    told = {each.right.id for each in verdicts if each.told == "yes" and each.right}
    # Slow steps are planted by tests/analyzers/test_slow_steps.py: windows make large profiles. Exposed
    # communication is planted by tests/profiler/importing/test_findings.py, work between operators by
    # tests/analyzers/test_host_work.py.
    elsewhere = {"slow_steps", "communication", "host_work"}
    assert told == {analyzer.id for analyzer in ALL} - elsewhere


def test_every_question_has_stored_pairs() -> None:
    assert {pair.question for pair in STORED} >= {pair.question for pair in pairs().values()}


def test_the_profiles_are_those_of_the_table_and_small() -> None:
    names = {f"{pair.name}_{kind}.dcprof" for pair in STORED for kind in pair.kinds}
    assert {path.name for path in PROFILES.glob("*.dcprof")} == names
    assert sum(path.stat().st_size for path in PROFILES.iterdir()) <= _MOST_BYTES
