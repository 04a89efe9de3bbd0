"""A merged profile has the slowest steps of its ranks, each with its rank, whatever the order of joining."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.node_sections import EXEMPLARS
from deepcontext.profiler.model.exemplars import ExemplarReason
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.job.rank_steps import MOST
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.kept_steps import causes, slowest_kept
from deepcontext.ui.cli import app
from deepcontext.ui.evidence import evidence
from deepcontext.ui.sections.steps import kept_steps_to_dict
from deepcontext.ui.web.time_line import time_line
from tests.kept_steps import lane, step, with_steps

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.conftest import MakeProfile

FRAMES = (
    Frame(FrameKind.ROOT, "root"),
    Frame(FrameKind.PYTHON, "main", "train.py", 3),
    Frame(FrameKind.OPERATOR, "aten::mm"),
    Frame(FrameKind.OPERATOR, "aten::add"),
)
MM, ADD = 2, 3


def rank(make_profile: MakeProfile, number: int, ranks: int = 3) -> Profile:
    """Return a rank whose nodes have other numbers than those of rank 0, with ten slow steps."""
    is_first = number == 0
    frames = FRAMES if is_first else (FRAMES[0], FRAMES[3], FRAMES[1], FRAMES[2])
    mm, add, parents = (MM, ADD, [0, 0, 1, 1]) if is_first else (3, 1, [0, 0, 0, 2])
    made = make_profile(
        parents,
        frames,
        host_time_ns={mm: 100, add: 50},
        run=RunInfo(wall_ns=2000, script="train.py", rank=number, ranks=ranks),
    )
    slow = [
        step(5 + n, 1000 * n, 1000 * n + 500 + 10 * n + number, [lane([(mm, 100, 380 + n)])])
        for n in range(10)
    ]
    usual = [
        step(100 + n, 9000 + n, 9200 + n, [lane([(add, 0, 50), (mm, 60, 100)])], reasons=2)
        for n in range(8)
    ]
    return with_steps(made, *slow, *usual)


def test_the_slowest_steps_of_all_ranks_are_kept(make_profile: MakeProfile) -> None:
    merged = Profile.from_bytes(merge({str(n): rank(make_profile, n) for n in range(3)}).to_bytes())
    slow = [each for each in merged.exemplars if ExemplarReason.SLOW in each.reasons]
    found = sorted(((each.duration_ns, each.rank, each.number) for each in slow), reverse=True)
    assert len(found) == MOST
    assert found[:4] == [(592, 2, 14), (591, 1, 14), (590, 0, 14), (582, 2, 13)]
    assert sum(ExemplarReason.RANDOM in each.reasons for each in merged.exemplars) == MOST
    slowest = slowest_kept(merged)[0]
    (spans,) = merged.lanes(slowest)
    assert [merged.frame(node).name for node in spans.node.tolist()] == ["aten::mm"]
    assert (spans.begin_ns.tolist(), spans.duration_ns.tolist()) == ([100], [389])
    (cause,) = causes(merged, [slowest])
    assert (cause.line, cause.own_ns, cause.usual_ns) == (FRAMES[1], 389, 100)
    assert not any("kept" in note or "step" in note for note in merged.trust.notes)


def test_the_order_of_joining_changes_nothing(make_profile: MakeProfile) -> None:
    ranks = [rank(make_profile, n, ranks=4) for n in range(4)]
    whole = merge({str(n): each for n, each in enumerate(ranks)})
    halves = {
        name: Profile.from_bytes(merge({str(n): ranks[n] for n in numbers}).to_bytes())
        for name, numbers in (("b", (3, 1)), ("a", (2, 0)))
    }
    again = merge(halves)
    assert again.sections[EXEMPLARS] == whole.sections[EXEMPLARS]
    for one, other in zip(whole.exemplars, again.exemplars, strict=True):
        assert one == other
        for left, right in zip(whole.lanes(one), again.lanes(other), strict=True):
            np.testing.assert_array_equal(left.node, right.node)
            np.testing.assert_array_equal(left.begin_ns, right.begin_ns)


def test_nested_spans_of_one_end_stay_nested(make_profile: MakeProfile) -> None:
    made = make_profile([0, 0, 1, 2], FRAMES, run=RunInfo(script="train.py", rank=0, ranks=2))
    one = with_steps(made, step(1, 0, 100, [lane([(ADD, 20, 60), (MM, 20, 60)])]))
    other = dataclasses.replace(made, run=dataclasses.replace(made.run, rank=1))
    merged = merge({"0": one, "1": other})
    (spans,) = merged.lanes(merged.exemplars[0])
    assert [merged.frame(node).name for node in spans.node.tolist()] == [
        one.frame(node).name for node in one.lanes(one.exemplars[0])[0].node.tolist()
    ]


def test_reports_name_the_rank(
    make_profile: MakeProfile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merged = merge({str(n): rank(make_profile, n) for n in range(3)})
    assert evidence(merged)["slowest_steps"][0] == {
        "step": "14",
        "rank": "2",
        "time": "592 ns",
        "more than usual": "289 ns",
        "where": "train.py:3",
    }
    row = kept_steps_to_dict(merged, 1)["rows"][0]
    assert (row["number"], row["rank"]) == (14, 2)
    merged.save(tmp_path / "job.dcprof")
    assert app.main(["report", "--steps", str(tmp_path / "job.dcprof")]) == 0
    said = capsys.readouterr().out
    assert "Why step 14 of rank 2 is slow" in said
    # The page draws one run's steps, whose numbers and times are of one clock.
    assert time_line(merged).steps == []
    assert basis_of(merged).occasions == ()
