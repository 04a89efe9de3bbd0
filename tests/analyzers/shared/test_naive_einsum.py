"""Calls of NumPy's einsum without a path, on made profiles."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.analyzers.shared.naive_einsum import is_naive_einsum
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows

if TYPE_CHECKING:
    from tests.conftest import MakeProfile

MS = 1_000_000
FILE = "/opt/lib/python3.12/site-packages/numpy/_core/einsumfunc.py"
LINE = Frame(FrameKind.PYTHON, "mix", "/home/me/train.py", 7)
LOOP = Frame(FrameKind.PYTHON, "einsum", FILE, 1610)


def _is_naive(make_profile: MakeProfile, called: list[Frame], own_ms: int = 0) -> bool:
    """Return what is said of a line that calls functions of NumPy, 100 ms each."""
    made = make_profile([-1, 0, *[1] * len(called)], [Frame(FrameKind.ROOT, ""), LINE, *called])
    nodes = np.arange(1, 2 + len(called), dtype=np.uint32)
    spent = np.array([own_ms * MS, *[100 * MS] * len(called)])
    samples = MetricRows(SAMPLED_CPU_TIME_NS, nodes, np.ones(len(nodes), np.uint64), spent)
    metrics = {**made.metrics, SAMPLED_CPU_TIME_NS.name: samples}
    return is_naive_einsum(dataclasses.replace(made, metrics=metrics), tuple(nodes.tolist()))


def test_time_at_one_line_of_einsum_is_a_loop_over_all_indices(make_profile: MakeProfile) -> None:
    assert _is_naive(make_profile, [LOOP])
    assert not _is_naive(make_profile, [LOOP], own_ms=150)


def test_einsum_with_a_path_has_time_at_several_lines(make_profile: MakeProfile) -> None:
    path = Frame(FrameKind.PYTHON, "einsum", FILE, 1621)
    product = Frame(FrameKind.PYTHON, "einsum", FILE, 1638)
    assert not _is_naive(make_profile, [path, product])


def test_einsum_of_another_library_is_not_meant(make_profile: MakeProfile) -> None:
    other = Frame(FrameKind.PYTHON, "einsum", "/opt/site-packages/torch/functional.py", 400)
    assert not _is_naive(make_profile, [other])
