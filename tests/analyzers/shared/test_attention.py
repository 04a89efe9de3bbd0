"""Attention of a library that is asked for its weights is not called hand-written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conftest import MakeProfile

FUNCTIONAL = "/lib/python3.11/site-packages/torch/nn/functional.py"
OWN = Frame(FrameKind.PYTHON, "attend", "train.py", 9)
LIBRARY = Frame(FrameKind.PYTHON, "multi_head_attention_forward", FUNCTIONAL, 7038)


@pytest.mark.parametrize(
    ("caller", "title", "advice"),
    [
        (OWN, "hand-written attention", "scaled_dot_product_attention"),
        (LIBRARY, "torch.nn.MultiheadAttention also returns its weights", "need_weights=False"),
    ],
)
def test_who_multiplies_decides_what_to_change(
    make_profile: MakeProfile, caller: Frame, title: str, advice: str
) -> None:
    operators = ("aten::baddbmm", "aten::softmax", "aten::bmm")
    frames = [
        Frame(FrameKind.ROOT, "root"),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.PYTHON, "Net.forward", "train.py", 5),
        caller,
        *(Frame(FrameKind.OPERATOR, name) for name in operators),
    ]
    host: dict[int, int] = dict.fromkeys(range(4, 7), 10_000_000)
    calls: dict[int, Sequence[int]] = dict.fromkeys(range(4, 7), [1_000_000] * 10)
    profile = make_profile([-1, 0, 1, 2, 3, 3, 3], frames, host_time_ns=host, call_samples_ns=calls)
    (finding,) = run_analyzers(profile, only=["kernel_fusion"])
    assert finding.title.startswith(title)
    assert advice in finding.advice
