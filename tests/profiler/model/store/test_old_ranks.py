"""Merged profiles of format 1.0 have ranks, too; a program's scopes never become ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import ALL_RANKS, RunInfo
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.profiler.views.pivot import pivots

if TYPE_CHECKING:
    from tests.conftest import MakeProfile

ROOT = Frame(FrameKind.ROOT, "")
THREAD = Frame(FrameKind.THREAD, "MainThread")
SCOPE = Frame(FrameKind.SCOPE, "rank 0")
OPERATOR = Frame(FrameKind.OPERATOR, "aten::mm")


def test_ranks_of_an_old_merged_file_are_ranks(make_profile: MakeProfile) -> None:
    """Format 1.0 put a scope above each tree; here the first tree has a scope of the same name."""
    old = make_profile(
        [0, 0, 1, 2, 3, 0, 5, 6],
        [ROOT, SCOPE, THREAD, SCOPE, OPERATOR, Frame(FrameKind.SCOPE, "rank 12"), THREAD, OPERATOR],
        host_time_ns={4: 5, 7: 8},
        run=RunInfo(rank=ALL_RANKS, ranks=2),
    )
    profile = Profile.from_bytes(old.to_bytes())
    assert rank_summary.rank_nodes(profile) == ((0, 1), (12, 5))
    assert [row.operator_ns for row in rank_summary.by_rank(profile)] == [5, 8]
    assert profile.frame(1) == Frame(FrameKind.RANK, "rank 0", line=0)
    assert profile.frame(3) == SCOPE
    assert "rank" in pivots(profile)
    again = Profile.from_bytes(profile.to_bytes())
    assert rank_summary.rank_nodes(again) == ((0, 1), (12, 5))


def test_other_scopes_below_the_root_stay_scopes(make_profile: MakeProfile) -> None:
    names = ["rank", "rank x", "rank " + "9" * 30, "rank \u0663"]
    old = make_profile(
        [0] * 5,
        [ROOT, *(Frame(FrameKind.SCOPE, name) for name in names)],
        run=RunInfo(rank=ALL_RANKS, ranks=2),
    )
    assert not rank_summary.rank_nodes(Profile.from_bytes(old.to_bytes()))
    single = make_profile([0, 0], [ROOT, SCOPE], run=RunInfo(rank=3, ranks=4))
    assert not rank_summary.rank_nodes(Profile.from_bytes(single.to_bytes()))
