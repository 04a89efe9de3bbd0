"""Ranks that come last to collectives: one, rarely, in turn, and none."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format import rank_collectives
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.merging import merge

if TYPE_CHECKING:
    from deepcontext.analyzers import Finding
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

MS = 1_000_000
STEPS = 100
RANKS = 4


def job(make_profile: MakeProfile, delays_ms: list[dict[int, int]], *, groups: int = 1) -> Profile:
    """Return a job of 10 s; each step has delays by rank, and the others wait in a collective of 1 ms."""
    parts = {}
    for rank in range(RANKS):
        profile = make_profile(
            [0, 0],
            [Frame(FrameKind.ROOT, ""), Frame(FrameKind.THREAD, "MainThread")],
        )
        run = dataclasses.replace(profile.run, rank=rank, ranks=RANKS, wall_ns=10_000 * MS)
        rows = [
            (step, MS * (1 + max(late.values(), default=0) - late.get(rank, 0)), 0)
            for step, late in enumerate(delays_ms)
        ]
        content = {"groups": groups, "called": len(rows), "ended": len(rows), "unmatched": 0}
        payload = rank_collectives.encode({**content, "rows": rows})
        parts[str(rank)] = dataclasses.replace(profile, run=run).with_section(
            rank_collectives.SECTION, payload
        )
    return merge(parts)


def findings(profile: Profile) -> tuple[Finding, ...]:
    return run_analyzers(profile, only=["straggler"])


def test_a_rank_that_is_always_late_is_named(make_profile: MakeProfile) -> None:
    profile = job(make_profile, [{2: 40}] * STEPS)
    (found,) = findings(profile)
    assert found.title.startswith("rank 2 comes last to collectives again and again, and costs")
    assert "40%" in found.title
    assert (found.evidence["rank"], found.evidence["caused_ns"]) == (2, 4_000 * MS)
    assert profile.frame(found.nodes[0]).line == 2
    assert found.gain is not None
    assert found.gain.upper_bound == RANKS * 4_000 * MS
    assert found.gain.run_share == pytest.approx(0.4)


def test_a_rank_that_is_rarely_late_is_named(make_profile: MakeProfile) -> None:
    delays = [{1: 400} if step % 25 == 24 else {} for step in range(STEPS)]
    (found,) = findings(job(make_profile, delays))
    assert found.title.startswith("rank 1 comes last to collectives rarely")
    assert found.evidence["longest_ns"] == 400 * MS


def test_ranks_that_are_late_in_turn_are_told_as_one(make_profile: MakeProfile) -> None:
    (found,) = findings(job(make_profile, [{step % RANKS: 40} for step in range(STEPS)]))
    assert "in turn" in found.title
    assert "rank" not in found.evidence
    assert found.evidence["caused_ns"] == 4_000 * MS
    assert len(found.nodes) == RANKS


def test_two_late_ranks_are_both_named(make_profile: MakeProfile) -> None:
    delays = [{0: 40, 1: 41} if step % 2 else {0: 41, 1: 40} for step in range(STEPS)]
    titles = [found.title[:6] for found in findings(job(make_profile, delays))]
    assert sorted(titles) == ["rank 0", "rank 1"]


@pytest.mark.parametrize("late_ms", [0, 9])
def test_even_ranks_and_small_delays_give_no_finding(
    make_profile: MakeProfile, late_ms: int
) -> None:
    delays = [{step % RANKS: late_ms} if late_ms else {} for step in range(STEPS)]
    assert findings(job(make_profile, delays)) == ()


def test_what_cannot_be_compared_gives_no_finding(make_profile: MakeProfile) -> None:
    assert findings(job(make_profile, [{2: 40}] * STEPS, groups=2)) == ()
