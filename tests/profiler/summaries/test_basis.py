"""What a run does in its steady state is told apart from its set-up, whatever the set-up takes."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from deepcontext.profiler.summaries.account import account
from deepcontext.profiler.summaries.basis import Part, basis_of
from deepcontext.profiler.summaries.verdict import Limit, verdicts
from deepcontext.ui.account_texts import setup_text
from deepcontext.ui.report.text import render_report
from tests.profiled import profiled

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.profiler.model.profile import Profile

PROGRAM = """\
import time

import deepcontext


def prepare():
    time.sleep(1.5)


def step():
    sum(number * number for number in range(40_000))


prepare()
for _ in range(300):
    step()
    deepcontext.step()
"""


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return profiled(tmp_path_factory.mktemp("steady"), PROGRAM, "-q").profile


def test_set_up_moves_no_share_of_the_steady_state(profile: Profile) -> None:
    basis = basis_of(profile)
    assert basis.part is Part.STEADY
    assert basis.rest is not None
    first = account(basis.profile).lines[0]
    assert first.frame is not None
    assert first.frame.line == 11
    sleeping = next(place for place in account(basis.rest).lines if place.frame)
    assert sleeping.frame is not None
    assert sleeping.frame.line == 7
    # A sleep of 1.5 s is the longest line of the whole run on most machines, and in no step.
    assert all(
        place.frame is None or place.frame.line != 7 for place in account(basis.profile).lines
    )
    whole = account(basis.whole).whole_ns
    parts = account(basis.profile).whole_ns + account(basis.rest).whole_ns
    assert parts == pytest.approx(whole, rel=0.02)


def test_set_up_is_said_with_its_largest_parts(profile: Profile) -> None:
    text = setup_text(basis_of(profile))
    assert "before step" in text
    assert "program.py:7 1." in text


def test_what_limits_a_run_is_said_of_its_steady_state(profile: Profile) -> None:
    said = {verdict.limit: verdict for verdict in verdicts(profile)}
    assert Limit.WAITS not in said
    frame = said[Limit.RUNS].frame
    assert frame is not None
    assert frame.line == 11


def test_a_set_up_that_works_longer_than_the_steps_is_said_first(tmp_path: Path) -> None:
    steps = PROGRAM.replace("sum(number * number for number in range(40_000))", "time.sleep(0.02)")
    profile = profiled(tmp_path, steps.replace("range(300)", "range(40)"), "-q").profile

    first = verdicts(profile)[0]
    assert first.limit is Limit.SETUP
    assert first.frame is not None
    assert first.frame.line == 7
    assert first.share == pytest.approx(1.5 / 2.3, abs=0.2)
    report = io.StringIO()
    render_report(profile, console=Console(file=report, width=100))
    text = report.getvalue()
    assert re.search(
        r"> work before step \d+ takes [\d.]+ % of the run, most at program.py:7", text
    )
    assert re.search(
        r"before step \d+; share of .*\n.*\n *1\.\d+ s .*program.py:7 +time.sleep", text
    )


def test_work_after_the_steps_is_said_as_such(tmp_path: Path) -> None:
    steps = PROGRAM.replace("prepare()\nfor", "for")
    profile = profiled(tmp_path, f"{steps}prepare()\n", "-q").profile

    said = {verdict.limit: verdict for verdict in verdicts(profile)}
    assert Limit.SETUP not in said
    frame = said[Limit.END].frame
    assert frame is not None
    assert frame.line == 7
    report = io.StringIO()
    render_report(profile, console=Console(file=report, width=100))
    assert re.search(r"> work after step \d+ takes [\d.]+ % of the run", report.getvalue())
    assert re.search(r"before step \d+ and after step \d+; share of", report.getvalue())


def test_a_part_of_a_run_is_its_own_basis(profile: Profile) -> None:
    steady = basis_of(profile).profile
    assert basis_of(steady).profile is steady
    assert basis_of(steady).part is Part.STEADY
    setup = profile.within(profile.windows[:1])
    assert (basis_of(setup).part, basis_of(setup).steps) == (Part.CHOSEN, 0)
    whole = basis_of(profile.undivided())
    assert (whole.part, whole.steps, whole.rest) == (Part.RUN, 0, None)
