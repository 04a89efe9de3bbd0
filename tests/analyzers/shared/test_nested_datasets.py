"""Datasets that wrap each other, on made profiles of a loader."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers.shared.nested_datasets import NestedDatasets, nested_datasets
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows

if TYPE_CHECKING:
    from tests.conftest import MakeProfile

MS = 1_000_000


def _nested(
    make_profile: MakeProfile, levels: int, *, level_ms: int = 100, other_ms: int = 0
) -> NestedDatasets | None:
    """Return what is found in a loader whose dataset is `levels` deep.

    Args:
        make_profile: the fixture.
        levels: calls of one function below each other, above that of another dataset.
        level_ms: time of each.
        other_ms: time of the innermost dataset.
    """
    chain = [Frame(FrameKind.PYTHON, "Subset.__getitem__", "/lib/torch/dataset.py", 9)] * levels
    made = make_profile(
        list(range(-1, 2 + levels)),
        [
            Frame(FrameKind.ROOT, ""),
            Frame(FrameKind.SCOPE, "enumerate(DataLoader)#"),
            *chain,
            Frame(FrameKind.PYTHON, "Rows.__getitem__", "/home/me/train.py", 5),
        ],
    )
    nodes = np.arange(2, 3 + levels, dtype=np.uint32)
    spent = np.array([level_ms * MS] * levels + [other_ms * MS])
    samples = MetricRows(SAMPLED_CPU_TIME_NS, nodes, np.ones(len(nodes), np.uint64), spent)
    profile = dataclasses.replace(made, metrics={**made.metrics, SAMPLED_CPU_TIME_NS.name: samples})
    loading = np.zeros(len(profile.tree), np.bool_)
    loading[1] = True
    return nested_datasets(profile, loading)


def test_levels_are_counted_without_the_first_and_the_innermost(make_profile: MakeProfile) -> None:
    found = _nested(make_profile, 8, other_ms=100)
    assert found is not None
    assert (found.name, found.levels) == ("Subset.__getitem__", 8)
    assert found.value == 700 * MS
    assert found.share == pytest.approx(7 / 9)


@pytest.mark.parametrize(
    ("levels", "level_ms", "other_ms"), [(7, 100, 0), (8, 10, 0), (8, 100, 1800)]
)
def test_few_or_cheap_levels_are_no_cause(
    make_profile: MakeProfile, levels: int, level_ms: int, other_ms: int
) -> None:
    assert _nested(make_profile, levels, level_ms=level_ms, other_ms=other_ms) is None
