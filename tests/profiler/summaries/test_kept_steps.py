"""Where a kept step took more time than usual."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.summaries.kept_steps import causes, path_excesses
from tests.kept_steps import lane, step, with_steps

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

FRAMES = (
    Frame(FrameKind.ROOT, "root"),
    Frame(FrameKind.PYTHON, "main", "/p/train.py", 3),
    Frame(FrameKind.OPERATOR, "aten::linear"),
    Frame(FrameKind.OPERATOR, "aten::addmm"),
    Frame(FrameKind.PYTHON, "main", "/p/train.py", 9),
    Frame(FrameKind.OPERATOR, "aten::add"),
    Frame(FrameKind.OPERATOR, "aten::detach"),
)
LINEAR, ADDMM, ADD, DETACH = 2, 3, 5, 6


@pytest.fixture
def profile(make_profile: MakeProfile) -> Profile:
    run = RunInfo(script="/p/train.py", cwd="/p")
    return make_profile([0, 0, 1, 2, 0, 4, 0], FRAMES, run=run)


def usual(number: int) -> dict[str, object]:
    """Return a step of 100 ns: 50 at line 3, 20 at line 9, 30 outside operators."""
    spans = [(LINEAR, 10, 50), (ADDMM, 15, 40), (ADD, 70, 20)]
    return step(number, 100 * number, 100 * number + 100, [lane(spans)], reasons=2)


def test_the_line_with_most_more_time_is_named(profile: Profile) -> None:
    spans = [(LINEAR, 10, 60), (ADDMM, 15, 50), (ADD, 70, 320)]
    made = with_steps(profile, usual(1), usual(2), step(3, 300, 700, [lane(spans)]))
    (cause,) = causes(made, made.exemplars[2:])
    assert cause.line == FRAMES[4]
    assert (cause.own_ns, cause.usual_ns, cause.pause) == (320, 20, None)


def test_paths_are_ranked_by_what_they_take_more_than_usual(profile: Profile) -> None:
    spans = [(LINEAR, 10, 70), (ADDMM, 15, 40), (ADD, 90, 220)]
    made = with_steps(profile, usual(1), usual(2), step(3, 300, 700, [lane(spans)]))
    found = path_excesses(made, made.exemplars[2])
    assert [(each.node, each.own_ns, each.usual_ns) for each in found] == [
        (ADD, 220, 20),
        (LINEAR, 30, 10),
    ]
    assert path_excesses(made, made.exemplars[0]) == []


def test_a_pause_lies_between_two_lines(profile: Profile) -> None:
    spans = [(LINEAR, 10, 50), (ADDMM, 15, 40), (ADD, 370, 20)]
    made = with_steps(profile, usual(1), usual(2), step(3, 300, 700, [lane(spans)]))
    (cause,) = causes(made, made.exemplars[2:])
    assert cause.line is None
    assert (cause.own_ns, cause.usual_ns) == (330, 30)
    assert cause.pause == (FRAMES[1], FRAMES[4])


def test_what_another_thread_does_is_no_pause(profile: Profile) -> None:
    spans = [(LINEAR, 10, 50), (ADD, 370, 20)]
    backward = lane([(DETACH, 60, 310)], "autograd")
    made = with_steps(profile, usual(1), step(3, 300, 700, [lane(spans), backward]))
    (cause,) = causes(made, made.exemplars[1:])
    assert (cause.line, cause.pause, cause.own_ns, cause.usual_ns) == (None, None, 310, 0)


def test_a_pause_begins_where_the_spans_are_known(profile: Profile) -> None:
    late = lane([(ADD, 370, 20)], known_from_ns=365)
    made = with_steps(profile, step(3, 300, 700, [late]))
    (cause,) = causes(made, made.exemplars)
    assert (cause.line, cause.own_ns) == (FRAMES[4], 20)
