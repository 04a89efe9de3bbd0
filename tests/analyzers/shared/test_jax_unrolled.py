"""Programs that repeat a line: loops that were unrolled, and nets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.analyzers.questions import compiled
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.place import Place
from deepcontext.profiler.summaries.jax import operations as operations_of_programs
from deepcontext.profiler.summaries.jax import programs
from deepcontext.profiler.summaries.jax.operations import Member, Operation

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

LAYER = Place("layer", "/home/me/train.py", 5)


def made(opcode: str, phase: str, source: Place, primitive: str = "") -> Operation:
    members = (Member(primitive, phase, source, 0),) if primitive else ()
    return Operation("jit_step", opcode, opcode, phase, source, members, 1, 0, 1, 0, 0)


@pytest.fixture
def profile(make_profile: MakeProfile) -> Profile:
    return make_profile([0], [Frame(FrameKind.ROOT, "")])


def unrolled(
    monkeypatch: pytest.MonkeyPatch, profile: Profile, *operations: Operation
) -> list[compiled.Unrolled]:
    functions = [{"function": "step", "compile_ns": 10**9, "compilations": 1}]
    monkeypatch.setattr(source_locations, "has_jax", lambda _: True)
    monkeypatch.setattr(programs, "section", lambda _: {"functions": functions})
    monkeypatch.setattr(operations_of_programs, "operations", lambda _: list(operations))
    return compiled.unrolled_programs(profile)


@pytest.mark.parametrize(("layers", "is_net"), [(40, True), (70, False)])
def test_the_two_products_of_a_backward_are_one_layer(
    monkeypatch: pytest.MonkeyPatch, profile: Profile, layers: int, *, is_net: bool
) -> None:
    forward = [made("dot", "forward", LAYER)] * layers
    backward = [made("dot", "backward", LAYER)] * (2 * layers)
    norms = [made("fusion", "forward", LAYER, "sub")] * 100
    (found,) = unrolled(monkeypatch, profile, *forward, *backward, *norms)
    assert found.is_net == is_net
