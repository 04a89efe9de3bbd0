"""Types on processors, with shapes: float64, and 16 bits only without instructions for the type."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

MS = 1_000_000
PATH = [
    Frame(FrameKind.ROOT, ""),
    Frame(FrameKind.THREAD, "MainThread"),
    Frame(FrameKind.PYTHON, "step", "/home/me/train.py", 12),
]


def made(make_profile: MakeProfile, fast: list[str] | None, *operators: str) -> Profile:
    profile = make_profile(
        [0, 0, 1, 2, 2],
        [*PATH, *(Frame(FrameKind.OPERATOR, name) for name in operators)],
        host_time_ns={3: 1600 * MS, 4: 300 * MS},
        call_samples_ns={3: [80 * MS] * 20, 4: [15 * MS] * 20},
        run=RunInfo(cwd="/home/me", wall_ns=2000 * MS),
    )
    settings = {"version": 1, "threads": 4, "cores": 4, "fast_types": fast}
    return dataclasses.replace(profile, sections={"torch_settings": json.dumps(settings).encode()})


PRODUCT, SUM = "aten::mm(bf16[64, 64], bf16[64, 64])", "aten::add(f32[64, 64], f32[64, 64])"


def test_a_type_without_instructions_is_told_at_its_line(make_profile: MakeProfile) -> None:
    (finding,) = run_analyzers(made(make_profile, [], PRODUCT, SUM), only=["precision"])
    assert finding.title == (
        "bfloat16 takes 84% of the time in operators, most at train.py:12 (step), and this processor has "
        "no instructions for bfloat16"
    )
    assert finding.evidence["host_time_ns"] == 1600 * MS


@pytest.mark.parametrize(
    ("fast", "operators"),
    [
        pytest.param(["bf16"], (PRODUCT, SUM), id="fast"),
        pytest.param(None, (PRODUCT, SUM), id="a processor that is not known"),
        pytest.param([], ("aten::mm", "aten::add"), id="no shapes"),
        pytest.param([], ("aten::mm(f32[64, 64], f32[64, 64])", SUM), id="another type"),
        pytest.param([], ("aten::mul(f32[64, 64], bf16[])", SUM), id="a number"),
        pytest.param([], (SUM, PRODUCT), id="a type that takes little time"),
    ],
)
def test_other_types_are_not_told(
    make_profile: MakeProfile, fast: list[str] | None, operators: tuple[str, str]
) -> None:
    assert run_analyzers(made(make_profile, fast, *operators), only=["precision"]) == ()


def test_float64_is_told_where_it_meets_a_narrower_type(make_profile: MakeProfile) -> None:
    profile = made(
        make_profile,
        ["bf16"],
        "aten::mm(f64[64, 64], f64[64, 64])",
        "aten::add(f32[64, 64], f64[64, 64])",
    )
    (finding,) = run_analyzers(profile, only=["precision"])
    assert finding.title == (
        "float64 takes 100% of the time in operators, most at train.py:12 (step); "
        "it meets a narrower type at train.py:12 (step)"
    )


def test_float64_that_holds_integers_is_not_told(make_profile: MakeProfile) -> None:
    """`far_from_peak` advises it."""
    product = "aten::mm(f64[64, 64], f64[64, 64])"
    for kind, is_told in (("i64", False), ("bool", False), ("u8", True), ("f32", True)):
        profile = made(make_profile, ["bf16"], product, f"aten::_to_copy({kind}[64, 64])")
        assert bool(run_analyzers(profile, only=["precision"])) is is_told


@pytest.mark.parametrize(
    ("factor", "calls", "is_told"),
    [
        pytest.param("aten::linalg_cholesky_ex(f64[64, 64])", 20, False, id="in each step"),
        pytest.param("aten::linalg_cholesky_ex(f64[64, 64])", 1, True, id="once"),
        pytest.param("aten::linalg_cholesky_ex(f32[64, 64])", 20, True, id="float32"),
        pytest.param("aten::exp(f64[64, 64])", 20, True, id="no factorisation"),
    ],
)
def test_float64_of_factorisations_is_not_told(
    make_profile: MakeProfile, factor: str, calls: int, *, is_told: bool
) -> None:
    product = "aten::mm(f64[64, 64], f64[64, 64])"
    profile = make_profile(
        [0, 0, 1, 2, 1, 4],
        [
            *PATH,
            Frame(FrameKind.OPERATOR, product),
            Frame(FrameKind.PYTHON, "step", "/home/me/train.py", 13),
            Frame(FrameKind.OPERATOR, factor),
        ],
        host_time_ns={3: 1600 * MS, 5: 20 * MS},
        call_samples_ns={3: [80 * MS] * 20, 5: [MS] * calls},
        run=RunInfo(cwd="/home/me", wall_ns=2000 * MS),
    )
    assert bool(run_analyzers(profile, only=["precision"])) is is_told
