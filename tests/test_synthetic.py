"""Made-up profiles hang together as recorded ones do."""

from __future__ import annotations

import numpy as np
import pytest

from deepcontext.profiler.format.frame import FrameKind
from tests.synthetic import random_profile


@pytest.mark.parametrize("nodes", [1, 2, 3, 100, 20_000])
def test_a_made_up_profile_is_sound(nodes: int) -> None:
    profile = random_profile(nodes, depth=12)
    assert len(profile.tree) == nodes
    assert profile.tree.depth.max() < 12
    assert profile.frame(0).kind is FrameKind.ROOT
    assert profile.query().kind("root").count() == 1
    calls = profile.metrics["call_duration_ns"]
    assert calls.minimum is not None
    assert calls.maximum is not None
    mean = calls.total / calls.count
    assert ((calls.minimum <= mean) & (mean <= calls.maximum)).all()
    assert set(np.unique(profile.frames.kind[profile.tree.frame[calls.node]])) <= {
        FrameKind.OPERATOR,
        FrameKind.SCOPE,
    }


def test_the_seed_decides() -> None:
    assert random_profile(50, seed=1).to_bytes() == random_profile(50, seed=1).to_bytes()
    assert random_profile(50, seed=1).to_bytes() != random_profile(50, seed=2).to_bytes()
