"""What is read of the kept steps of a profile, and damaged sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import wire
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.node_sections import EXEMPLARS
from deepcontext.profiler.model.exemplars import ExemplarReason
from deepcontext.profiler.model.job.fold import merge
from tests.kept_steps import lane, step, with_steps

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

FRAMES = (
    Frame(FrameKind.ROOT, "root"),
    Frame(FrameKind.OPERATOR, "aten::linear"),
    Frame(FrameKind.OPERATOR, "aten::addmm"),
    Frame(FrameKind.KERNEL, "gemm"),
)


@pytest.fixture
def profile(make_profile: MakeProfile) -> Profile:
    return make_profile([0, 0, 1, 2], FRAMES)


def test_spans_come_by_their_begin_and_the_outer_one_first(profile: Profile) -> None:
    host = lane([(2, 10, 30), (1, 10, 40), (1, 60, 5), (2, -7, 9)])
    device = lane([(3, 20, 50)], "gpu cuda", device=1, stream=7, known_from_ns=12)
    made = with_steps(profile, step(4, 100, 300, [device, host], reasons=5))
    (exemplar,) = made.exemplars
    assert (exemplar.number, exemplar.begin_ns, exemplar.duration_ns) == (4, 100, 200)
    assert exemplar.reasons == ExemplarReason.SLOW | ExemplarReason.MARKED
    thread, stream = made.lanes(exemplar)
    assert thread.device is None
    assert list(zip(thread.node, thread.begin_ns, thread.duration_ns, strict=True)) == [
        (2, -7, 9),
        (1, 10, 40),
        (2, 10, 30),
        (1, 60, 5),
    ]
    assert (stream.device, stream.stream, stream.known_from_ns, len(stream)) == (1, 7, 12, 1)


def test_a_profile_without_kept_steps_has_none(profile: Profile) -> None:
    assert profile.exemplars == ()


def test_a_merge_keeps_them_with_their_ranks(profile: Profile) -> None:
    made = with_steps(profile, step(1, 0, 10, [lane([(1, 0, 5)])]))
    merged = merge({"one": made, "other": made})
    assert [(each.rank, each.number) for each in merged.exemplars] == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"node_step": ("INT32", "<i4", [9])}, "a span is out of range"),
        ({"node_step": ("INT32", "<i4", [-1])}, "a span is out of range"),
        ({"duration_ns": ("INT64", "<i8", [-5])}, "a span is out of range"),
        ({"end_step": ("INT64", "<i8", [2**62 + 5])}, "a span is out of range"),
        ({"end_step": ("INT64", "<i8", [-(2**63)])}, "a span is out of range"),
        ({"end_step": ("INT64", "<i8", [1, 2])}, "2 rows, expected 1"),
        ({"end_step": ("UINT8", "u1", [1])}, "type UINT8, expected INT64"),
    ],
)
def test_damaged_columns_are_refused(
    profile: Profile, change: dict[str, tuple[str, str, list[int]]], words: str
) -> None:
    columns: dict[str, Any] = {
        name: wire.column(kind, np.array(values, dtype).tobytes())
        for name, (kind, dtype, values) in change.items()
    }
    made = with_steps(profile, step(1, 0, 10, [{**lane([(1, 0, 5)]), **columns}]))
    with pytest.raises(ProfileDataError, match=words):
        made.lanes(made.exemplars[0])


def test_a_damaged_section_is_refused(profile: Profile) -> None:
    with pytest.raises(ProfileDataError, match="rows refer to 9 nodes, the tree has 4"):
        _ = with_steps(profile, nodes=9).exemplars
    with pytest.raises(ProfileDataError, match="no ExemplarTable message"):
        _ = profile.with_section(EXEMPLARS, b"\xff\xff").exemplars
