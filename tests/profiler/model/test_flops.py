"""Formulas where shapes are not known, and operators inside operators; real models are in `integration`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import BYTES_MOVED, FLOPS
from deepcontext.profiler.model.flop_formulas import FORMULAS, flops
from deepcontext.profiler.model.operator_inputs import split_name, without_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile


@pytest.mark.parametrize(
    ("text", "name", "shapes", "types"),
    [
        ("aten::mm([2, 3], [3, 4])", "aten::mm", [(2, 3), (3, 4)], ["", ""]),
        ("aten::mm(f32[2, 3], bf16[3])", "aten::mm", [(2, 3), (3,)], ["f32", "bf16"]),
        ("aten::dot([], [0])", "aten::dot", [(), (0,)], ["", ""]),
        ("aten::empty()", "aten::empty", [], []),
        ("aten::mm", "aten::mm", [], []),
        ("aten::mm(fN[N, N], [?])", "aten::mm", [None, None], ["fN", ""]),
        ("aten::cat([2, 3], ...", "aten::cat([2, 3], ...", [], []),
        ("aten::mm(i64[2, 3], ...)", "aten::mm", [(2, 3), None], ["i64", ""]),
    ],
)
def test_names_hold_shapes_and_types(
    text: str, name: str, shapes: list[tuple[int, ...] | None], types: list[str]
) -> None:
    found, inputs = split_name(text)
    assert (found, list(inputs.shapes), list(inputs.types)) == (name, shapes, types)
    if "..." not in text or text.endswith(")"):
        assert without_inputs(text) == name


def test_the_inner_of_two_operators_of_one_name_is_counted(make_profile: MakeProfile) -> None:
    """Autocast converts the inputs, and calls the operator again."""
    names = {
        "aten::addmm(f32[4], f32[2, 3], f32[3, 4])": -1,
        "aten::copy_(bf16[2, 3], f32[2, 3])": 0,
        "aten::addmm(bf16[4], bf16[2, 3], bf16[3, 4])": 0,
        "aten::mm(bf16[2, 3], bf16[3, 4])": 2,
    }
    profile = profile_of(make_profile, names)
    assert profile.exclusive(FLOPS.name).tolist() == [0, 0, 0, 0, 48, 0]
    assert profile.exclusive(BYTES_MOVED.name).tolist() == [0, 0, 0, 36, 2 * (4 + 6 + 12 + 8), 0]


@pytest.mark.parametrize("name", FORMULAS)
def test_shapes_that_are_missing_or_of_another_rank_are_not_guessed(name: str) -> None:
    assert flops(name, []) is None
    assert flops(name, [None, None, None, None]) is None
    assert name in {"aten::dot", "aten::vdot"} or flops(name, [(), (), (), ()]) is None


def profile_of(
    make_profile: MakeProfile,
    names: Mapping[str, int],
    calls: int = 1,
    phases: tuple[Phase, ...] = (),
) -> Profile:
    """Return a profile of operators, each with the index of its parent among them; -1 for none."""
    frames = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.PYTHON, "f", "/p.py", 3)]
    frames += [Frame(FrameKind.OPERATOR, name) for name in names]
    return make_profile(
        [0, 0, *[parent + 2 for parent in names.values()]],
        frames,
        phases=[Phase.NONE, Phase.NONE, *(phases or [Phase.NONE] * len(names))],
        call_samples_ns={node: [10] * calls for node in range(2, len(frames))},
    )


def test_an_operator_inside_a_counted_one_is_not_counted(make_profile: MakeProfile) -> None:
    names = {"aten::addmm([4], [2, 3], [3, 4])": -1, "aten::mm([2, 3], [3, 4])": 0}
    profile = profile_of(make_profile, names, calls=5)
    assert profile.exclusive(FLOPS.name).tolist() == [0, 0, 5 * 48, 0]


def test_the_backward_below_its_forward_is_counted(make_profile: MakeProfile) -> None:
    names = {
        "aten::mm([2, 3], [3, 4])": -1,
        "MmBackward0([2, 4])": 0,
        "aten::mm([2, 4], [4, 3])": 1,
    }
    phases = (Phase.FORWARD, Phase.BACKWARD, Phase.BACKWARD)
    profile = profile_of(make_profile, names, phases=phases)
    assert profile.inclusive(FLOPS.name)[0] == 96


def test_a_convolution_without_its_output_is_not_guessed(make_profile: MakeProfile) -> None:
    profile = profile_of(make_profile, {"aten::convolution([1, 3, 8, 8], [4, 3, 3, 3], [4])": -1})
    assert profile.inclusive(FLOPS.name)[0] == 0


def test_without_shapes_there_is_no_such_metric(make_profile: MakeProfile) -> None:
    assert FLOPS.name not in profile_of(make_profile, {"aten::mm": -1}).metrics


def test_a_sum_beyond_64_bits_is_left_out_and_not_wrapped(make_profile: MakeProfile) -> None:
    size = 2_000_000
    names = {f"aten::mm([{size}, {size}], [{size}, {size}])": -1}
    profile = profile_of(make_profile, names)
    assert 2 * size**3 > 2**63
    assert not profile.exclusive(FLOPS.name).any()
