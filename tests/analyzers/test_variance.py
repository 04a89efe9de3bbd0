"""Calls that are uneven by themselves, and collectives, which wait for others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind

if TYPE_CHECKING:
    from tests.conftest import MakeProfile

MS = 1_000_000


@pytest.mark.parametrize(
    ("kind", "name", "count"),
    [
        (FrameKind.OPERATOR, "aten::nonzero", 1),
        (FrameKind.OPERATOR, "c10d::allreduce_", 0),
        (FrameKind.SCOPE, "gloo:all_reduce", 0),
        (FrameKind.SCOPE, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1),
        # The first batches of an epoch are not ready, the others are.
        (FrameKind.SCOPE, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0),
    ],
)
def test_collectives_and_loaders_with_workers_are_not_asked_about(
    make_profile: MakeProfile, kind: FrameKind, name: str, count: int
) -> None:
    calls = [1 * MS] * 90 + [100 * MS] * 10
    profile = make_profile(
        [0, 0],
        [Frame(FrameKind.ROOT, ""), Frame(kind, name)],
        host_time_ns={1: sum(calls)},
        call_samples_ns={1: calls},
    )
    found = run_analyzers(profile, only=["variance"])
    assert len(found) == count
