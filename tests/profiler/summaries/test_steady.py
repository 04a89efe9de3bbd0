"""What a run does in its steady state is told apart from its set-up, whatever the set-up takes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.account import account
from deepcontext.profiler.summaries.steady import steady_state
from deepcontext.profiler.summaries.verdict import Limit, verdicts

if TYPE_CHECKING:
    from pathlib import Path

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
    folder: Path = tmp_path_factory.mktemp("steady")
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "deepcontext", "profile", "-q", "-o", "run.dcprof", "train.py"]
    subprocess.run(command, cwd=folder, check=True)
    return Profile.load(folder / "run.dcprof")


def test_set_up_moves_no_share_of_the_steady_state(profile: Profile) -> None:
    steady = steady_state(profile)
    assert steady is not None
    first = account(steady.profile).lines[0]
    assert first.frame is not None
    assert first.frame.line == 11
    sleeping = next(place for place in account(steady.rest).lines if place.frame)
    assert sleeping.frame is not None
    assert sleeping.frame.line == 7
    # A sleep of 1.5 s is the longest line of the whole run on most machines, and in no step.
    assert all(
        place.frame is None or place.frame.line != 7 for place in account(steady.profile).lines
    )
    whole = account(profile).whole_ns
    parts = account(steady.profile).whole_ns + account(steady.rest).whole_ns
    assert parts == pytest.approx(whole, rel=0.02)


def test_what_limits_a_run_is_said_of_its_steady_state(profile: Profile) -> None:
    said = {verdict.limit: verdict for verdict in verdicts(profile)}
    assert Limit.WAITS not in said
    frame = said[Limit.RUNS].frame
    assert frame is not None
    assert frame.line == 11


def test_a_part_that_was_asked_for_has_no_parts(profile: Profile) -> None:
    steady = steady_state(profile)
    assert steady is not None
    assert steady_state(steady.profile) is None
