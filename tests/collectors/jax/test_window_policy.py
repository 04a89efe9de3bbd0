"""When windows open and how long they last: decided from moments and from what windows saw."""

from __future__ import annotations

import pytest

from deepcontext.collectors.jax.window_policy import Moment, Seen, WindowPolicy

START = Moment(100.0, 1.0)


def policy(*, exact: bool = False) -> WindowPolicy:
    made = WindowPolicy(exact=exact)
    assert made.begin(START)
    return made


@pytest.mark.parametrize(
    ("runs", "events", "factor"),
    [
        (2, 900, 2),
        (9, 900, 2),
        (20, 900, 1),
        (41, 900, 0.5),
        (5, 24_000, 1),
        (1, 24_000, 2),
        (1, 50_000, 1),
    ],
)
def test_windows_have_ten_runs_or_more_unless_runs_have_very_many_events(
    runs: int, events: int, factor: float
) -> None:
    made = policy()
    before_s = made.length_s
    made.saw(START, Seen(runs, runs, 0, 0, events), before_s)
    assert made.length_s == before_s * factor


@pytest.mark.parametrize(("scarce", "expected_s"), [(1, 1.0), (0, 0.0)])
def test_what_was_granted_for_new_programs_lapses_when_all_are_measured(
    scarce: int, expected_s: float
) -> None:
    """Else steps of some ms with a handful of events would be traced for most of a short run."""
    made = policy()
    made.saw(START, Seen(20, 20, 0, scarce, 100), 0.01)
    left_s = made.allowance_s(START) - made.charged_s
    assert left_s == pytest.approx(expected_s, abs=0.01)


def test_windows_use_a_part_of_the_processor_time() -> None:
    made = policy()
    made.closed(START.now, 1.0)  # what was granted is used up
    assert not made.may_open(START)
    idle = Moment(START.now + 60, START.cpu_s)
    assert not made.may_open(idle)
    assert made.may_open(idle._replace(is_collective=True))
    assert made.may_open(idle._replace(cpu_s=START.cpu_s + 60))
    assert made.until_next_s(START, 0.001) == pytest.approx(1.0, abs=0.1)
    assert policy(exact=True).may_open(START)


def test_looks_at_a_program_without_a_whole_run_become_rarer() -> None:
    made, waits = policy(), []
    for _ in range(3):
        made.is_look = True
        made.closed(START.now, 0.005)
        made.saw(START, Seen(0, 0, 1, 1, 100), 0.005)
        waits.append(made.look_s)
    assert waits == [0.05, 0.1, 0.2]
    assert not made.is_look_due(START.now + 0.1)
    assert made.is_look_due(START.now + 0.2)


def test_a_new_program_keeps_the_window_open_for_its_first_run() -> None:
    made = policy()
    assert made.closing_time(START.now) == pytest.approx(START.now + 0.05)
    made.found_program(START._replace(now=START.now + 0.04), 0)
    assert made.closing_time(START.now) == pytest.approx(START.now + 0.09)
    made.found_program(START._replace(now=START.now + 9), 0)
    assert made.closing_time(START.now) == pytest.approx(START.now + 2)
