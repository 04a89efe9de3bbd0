"""Who comes last to collectives, from durations alone."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import rank_collectives
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.merging import merge
from deepcontext.profiler.summaries.late_ranks import LateRanks, by_lateness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

    Rows = Sequence[tuple[int, int, int]]


def job(make_profile: MakeProfile, *ranks: Rows, groups: int = 1, called: int = 0) -> Profile:
    """Return a merged profile of ranks with these collectives."""
    parts = {}
    for rank, rows in enumerate(ranks):
        profile = make_profile([0], [Frame(FrameKind.ROOT, "")])
        run = dataclasses.replace(profile.run, rank=rank, ranks=len(ranks))
        content = {"groups": groups, "called": called or len(rows), "ended": len(rows)}
        payload = rank_collectives.encode({**content, "unmatched": 0, "rows": list(rows)})
        profile = dataclasses.replace(profile, run=run)
        parts[str(rank)] = profile.with_section(rank_collectives.SECTION, payload)
    return merge(parts)


def lateness(profile: Profile) -> LateRanks:
    found = by_lateness(profile)
    assert found is not None
    return found


def test_each_delay_is_charged_to_the_last(make_profile: MakeProfile) -> None:
    # Rank 0 is late once, rank 2 once; rows of a rank are in any order.
    profile = job(
        make_profile,
        [(0, 10, 0), (1, 70, 0)],
        [(1, 60, 0), (0, 110, 0)],
        [(0, 310, 0), (1, 20, 0)],
    )
    found = lateness(profile)
    assert (found.collectives, found.compared, found.reason) == (2, 2, "")
    assert [row.caused_ns for row in found.rows] == [200, 0, 45]
    assert [row.longest_ns for row in found.rows] == [200, 0, 45]
    assert [row.waiting_ns for row in found.rows] == [50, 140, 300]
    assert [row.total_ns for row in found.rows] == [80, 170, 330]


def test_collectives_in_flight_together_share_one_delay(make_profile: MakeProfile) -> None:
    late = [(0, 1, 0), (1, 1, 1), (2, 1, 0)]
    waits = [(0, 101, 0), (1, 131, 1), (2, 51, 0)]
    found = lateness(job(make_profile, late, waits))
    assert [row.caused_ns for row in found.rows] == [100 + 30 + 50, 0]


def test_sums_are_scaled_where_some_were_compared(make_profile: MakeProfile) -> None:
    found = lateness(
        job(make_profile, [(0, 10, 0), (7, 10, 0)], [(7, 110, 0), (9, 1, 0)], called=20)
    )
    assert (found.collectives, found.compared) == (20, 1)
    assert [row.caused_ns for row in found.rows] == [2000, 0]
    assert found.rows[0].longest_ns == 100


def test_what_cannot_be_compared_is_told(make_profile: MakeProfile) -> None:
    rows = [(0, 10, 0)]
    assert "several process groups" in lateness(job(make_profile, rows, rows, groups=2)).reason
    other = lateness(job(make_profile, rows, [*rows, (1, 10, 0)]))
    assert "different collectives" in other.reason
    assert not other.rows


def test_nothing_is_told_without_several_ranks(make_profile: MakeProfile) -> None:
    assert by_lateness(make_profile([0], [Frame(FrameKind.ROOT, "")])) is None


@pytest.mark.parametrize(
    "payload",
    [b"[]", b"{", b'{"ranks": {"0": {}, "1": {}}}', b'{"ranks": {"x": {}}}'],
)
def test_a_damaged_section_is_an_error(make_profile: MakeProfile, payload: bytes) -> None:
    rows = [(0, 10, 0)]
    profile = job(make_profile, rows, rows).with_section(rank_collectives.SECTION, payload)
    with pytest.raises(ProfileDataError, match="'collectives' is damaged"):
        by_lateness(profile)
