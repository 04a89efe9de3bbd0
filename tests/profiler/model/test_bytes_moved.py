"""Bytes of operators by hand, what is not known, and operators inside operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import BYTES_MOVED, CALL_DURATION_NS
from deepcontext.profiler.model.byte_formulas import FORMULAS, MOVE_NOTHING, bytes_moved
from deepcontext.profiler.model.bytes_moved import operator_bytes
from deepcontext.profiler.model.flop_formulas import FORMULAS as FLOP_FORMULAS
from deepcontext.profiler.model.operator_inputs import Inputs, split_name

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.recorded_operators import CountedOperators
    from tests.conftest import MakeProfile

# By hand: elements read plus elements written, each in bytes.
COUNTED = {
    "aten::add(f32[8, 4], f32[8, 4])": 4 * (32 + 32 + 32),
    "aten::add(f32[8, 4], f32[4])": 4 * (32 + 4 + 32),
    "aten::add(f32[8, 1], f32[1, 4])": 4 * (8 + 4 + 32),
    "aten::add(f32[8, 4], f32[8, 4], f32[8, 4])": 4 * (32 + 32 + 32),  # out=
    "aten::add_(f32[8, 4], f32[8, 4])": 4 * (32 + 32 + 32),
    "aten::mul(f32[8], f64[])": 4 * 8 + 8 + 4 * 8,  # a Python number does not widen
    "aten::mul(i64[8], f64[])": 8 * 8 + 8 + 4 * 8,
    "aten::mul(bf16[8], f32[8])": 2 * 8 + 4 * 8 + 4 * 8,
    "aten::add(bf16[8], f16[8])": 2 * 8 + 2 * 8 + 4 * 8,
    "aten::add(bool[8], i32[8])": 8 + 4 * 8 + 4 * 8,
    "aten::lt(f64[8], f64[8])": 8 * 16 + 8,
    "aten::isnan(f32[8])": 4 * 8 + 8,
    "aten::where(bool[8], f32[8], f32[])": 8 + 4 * 8 + 4 + 4 * 8,
    "aten::masked_fill(f32[8], bool[8])": 4 * 8 + 8 + 4 * 8,
    "aten::gelu(bf16[8, 4])": 2 * (32 + 32),
    "aten::gelu_backward(f32[8], f32[8])": 4 * 24,
    "aten::addcdiv_(f32[8], f32[8], f32[8])": 4 * (24 + 8),
    "aten::_softmax(f32[2, 8])": 4 * 32,
    "aten::sum(f32[8, 4])": 4 * 32,
    "aten::max(f32[8])": 4 * 8,
    "aten::max(f32[8], f32[8])": 4 * 24,
    "aten::fill_(f32[8], f64[])": 4 * 8,
    "aten::copy_(bf16[8], f32[8])": 2 * 8 + 4 * 8,
    "aten::copy_(f32[8, 4], f32[4])": 4 * (32 + 4),
    "aten::native_layer_norm(f32[6, 8], f32[8], f32[8])": 4 * (48 + 8 + 8 + 48),
    "aten::native_dropout(f32[8])": 4 * 16 + 8,
    "aten::embedding(f32[1000, 16], i64[5])": 8 * 5 + 4 * 2 * 5 * 16,
    "aten::gather(f32[9, 9], i64[2, 3])": 8 * 6 + 4 * 12,
    "aten::index_select(f32[100, 4], i64[3])": 8 * 3 + 4 * 2 * 3 * 4,
    "aten::nll_loss_forward(f32[6, 9], i64[6])": 8 * 6 + 4 * 6,
    "aten::nll_loss_backward(f32[], f32[6, 9], i64[6], f32[])": 8 * 6 + 4 * 54,
    "aten::mm(f64[2, 3], f64[3, 5])": 8 * (6 + 15 + 10),
    "aten::addmm(f32[5], f32[2, 3], f32[3, 5])": 4 * (5 + 6 + 15 + 10),
    "aten::bmm(bf16[7, 2, 3], bf16[7, 3, 5])": 2 * 7 * (6 + 15 + 10),
    "aten::addbmm(f32[2, 5], f32[7, 2, 3], f32[7, 3, 5])": 4 * (10 + 7 * (6 + 15) + 10),
    "aten::mv(f32[2, 3], f32[3])": 4 * (6 + 3 + 2),
    "aten::dot(f32[3], f32[3])": 4 * 6,
    "aten::mkldnn_linear(f32[2, 3, 4], f32[5, 4], f32[5])": 4 * (24 + 20 + 5 + 30),
    # Queries of 10 and keys of 20 elements, values of width 3.
    "aten::_scaled_dot_product_flash_attention(f32[2, 5, 10, 4], f32[2, 5, 20, 4], f32[2, 5, 20, 3])": (
        4 * 10 * (40 + 80 + 60 + 30)
    ),
    # Gradient, queries, keys, values, output, statistics, no dropout mask; three gradients.
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward(f32[2, 5, 10, 4], f32[2, 5, 10, 4], "
    "f32[2, 5, 20, 4], f32[2, 5, 20, 4], f32[2, 5, 10, 4], f32[2, 5, 10], [0])": (
        4 * 10 * (40 + 40 + 80 + 80 + 40 + 10 + 40 + 80 + 80)
    ),
    "aten::mkldnn_rnn_layer(f32[7, 2, 3], f32[16, 3], f32[16, 4])": 4 * (42 + 48 + 64 + 7 * 2 * 4),
}


@pytest.mark.parametrize("text", COUNTED)
def test_bytes_are_those_counted_by_hand(text: str) -> None:
    name, inputs = split_name(text)
    assert bytes_moved(name, inputs) == COUNTED[text]


@pytest.mark.parametrize("name", FORMULAS)
def test_what_was_not_recorded_is_not_guessed(name: str) -> None:
    assert not bytes_moved(name, Inputs((), ()))
    assert bytes_moved(name, Inputs((None,) * 4, ("f32",) * 4)) is None
    for kind in ("", "fN"):
        assert bytes_moved(name, Inputs(((4, 4),) * 4, (kind,) * 4)) is None


def test_operators_that_multiply_have_bytes_and_none_is_listed_twice() -> None:
    assert not set(FLOP_FORMULAS) - set(FORMULAS)
    assert not MOVE_NOTHING & set(FORMULAS)


def profile_of(
    make_profile: MakeProfile, names: dict[str, int], phases: tuple[Phase, ...] = ()
) -> Profile:
    """Return a profile of operators, each with the index of its parent among them; -1 for none."""
    frames = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.PYTHON, "f", "/p.py", 3)]
    frames += [Frame(FrameKind.OPERATOR, name) for name in names]
    return make_profile(
        [0, 0, *[parent + 2 for parent in names.values()]],
        frames,
        phases=[Phase.NONE, Phase.NONE, *(phases or [Phase.NONE] * len(names))],
        call_samples_ns={node: [10, 10] for node in range(2, len(frames))},
    )


def found_in(profile: Profile) -> CountedOperators:
    return operator_bytes(profile.frames, profile.tree, profile.metrics[CALL_DURATION_NS.name])


def names_of(profile: Profile, nodes: list[int]) -> list[str]:
    return [profile.frame(node).name for node in nodes]


def test_an_operator_inside_a_counted_one_and_a_view_count_nothing(
    make_profile: MakeProfile,
) -> None:
    names = {
        "aten::linear(f32[2, 3], f32[4, 3])": -1,
        "aten::t(f32[4, 3])": 0,
        "aten::addmm(f32[4], f32[2, 3], f32[3, 4])": 0,
        "aten::copy_(f32[2, 4], f32[4])": 2,
    }
    profile = profile_of(make_profile, names)
    assert profile.exclusive(BYTES_MOVED.name).tolist() == [0, 0, 0, 0, 2 * 4 * (4 + 6 + 12 + 8), 0]
    assert not len(found_in(profile).unknown)


def test_unknown_operators_are_named_once(make_profile: MakeProfile) -> None:
    names = {
        "aten::stack()": -1,
        "aten::cat()": 0,
        "aten::topk(f32[9])": -1,
        "aten::mul([8], [8])": -1,
        "aten::_internal(f32[8])": 3,
        "SliceBackward0(f32[8])": 1,
        "aten::frobnicate(f32[8])": 5,
    }
    phases = (Phase.FORWARD,) * 5 + (Phase.BACKWARD,) * 2
    profile = profile_of(make_profile, names, phases)
    found = found_in(profile)
    assert set(names_of(profile, found.unknown.tolist())) == {
        "aten::cat()",
        "aten::topk(f32[9])",
        "aten::mul([8], [8])",
        "aten::frobnicate(f32[8])",
    }
    assert not len(found.nodes)


def test_a_convolution_without_its_output_is_not_guessed(make_profile: MakeProfile) -> None:
    name = "aten::convolution(f32[1, 3, 8, 8], f32[4, 3, 3, 3], f32[4])"
    profile = profile_of(make_profile, {name: -1})
    assert names_of(profile, found_in(profile).unknown.tolist()) == [name]


def test_the_backward_of_a_convolution_tells_its_output(make_profile: MakeProfile) -> None:
    image, weight, output = 3 * 8 * 8, 4 * 3 * 9, 4 * 6 * 6
    names = {
        "aten::convolution(f32[1, 3, 8, 8], f32[4, 3, 3, 3], f32[4])": -1,
        "aten::convolution_backward(f32[1, 4, 6, 6], f32[1, 3, 8, 8], f32[4, 3, 3, 3])": 0,
    }
    profile = profile_of(make_profile, names, (Phase.FORWARD, Phase.BACKWARD))
    assert found_in(profile).a_call.tolist() == [
        4 * (image + weight + 4 + output),
        4 * (output + 2 * image + 2 * weight),
    ]
