"""Operators of which a cheaper one would compute what is used, on made profiles."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.memory_metrics import METRICS
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

MS = 1_000_000
(ALLOCATED,) = (each for each in METRICS if each.name == "alloc_bytes")
LINE = Frame(FrameKind.PYTHON, "pick", "/home/me/train.py", 7)


def _profile(make_profile: MakeProfile, operators: dict[str, tuple[int, int]]) -> Profile:
    """Return a profile of a function that calls operators ten times each.

    Args:
        make_profile: the fixture.
        operators: time in ms, and largest allocation in bytes, of each.
    """
    names = list(operators)
    made = make_profile(
        [-1, 0, 1, *[2] * len(names)],
        [
            Frame(FrameKind.ROOT, ""),
            Frame(FrameKind.THREAD, "MainThread"),
            LINE,
            *(Frame(FrameKind.OPERATOR, name) for name in names),
        ],
        host_time_ns={3 + index: operators[name][0] * MS for index, name in enumerate(names)},
        run=RunInfo(cwd="/home/me", wall_ns=4000 * MS),
    )
    nodes = np.arange(3, 3 + len(names), dtype=np.uint32)
    count = np.full(len(names), 10, np.uint64)
    sizes = np.array([size for _, size in operators.values()])
    rows = [
        MetricRows(ALLOCATED, nodes, count, sizes * 10, minimum=sizes, maximum=sizes),
        MetricRows(CALL_DURATION_NS, nodes, count, sizes, minimum=sizes, maximum=sizes),
    ]
    return dataclasses.replace(
        made, metrics={**made.metrics, **{each.descriptor.name: each for each in rows}}
    )


def _advice(profile: Profile) -> list[str]:
    return [each.advice for each in run_analyzers(profile, only=["cheaper_operator"])]


def test_a_sort_that_is_cut_is_topk(make_profile: MakeProfile) -> None:
    cut = {"aten::sort": (500, 80_000), "aten::slice": (1, 0), "aten::mean": (1, 400)}
    (advice,) = _advice(_profile(make_profile, cut))
    assert "torch.topk" in advice


@pytest.mark.parametrize(
    "operators",
    [
        {"aten::sort": (500, 80_000), "aten::slice": (1, 0), "aten::cumsum": (1, 40_000)},
        {"aten::sort": (500, 80_000), "aten::mean": (1, 400)},
        {"aten::sort": (40, 80_000), "aten::slice": (1, 0)},
        {"aten::sort": (60, 80_000), "aten::slice": (1, 0), "aten::tanh_": (900, 0)},
        {"aten::linalg_inv": (500, 80_000), "aten::linalg_slogdet": (1, 8)},
    ],
    ids=["all are used", "nothing is cut", "little time", "small share", "no product"],
)
def test_what_is_used_is_not_told(
    make_profile: MakeProfile, operators: dict[str, tuple[int, int]]
) -> None:
    assert not _advice(_profile(make_profile, operators))


def test_an_inverse_that_is_multiplied_is_solved(make_profile: MakeProfile) -> None:
    operators = {"aten::linalg_inv": (500, 80_000), "aten::matmul": (100, 800)}
    (advice,) = _advice(_profile(make_profile, operators))
    assert "torch.linalg.solve" in advice
