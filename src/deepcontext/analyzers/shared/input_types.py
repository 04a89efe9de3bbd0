"""Element types of the inputs of operators: by their names with shapes (``--shapes``), otherwise by counts.

Without shapes, the calls in short windows were counted by type. Does not judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.operator_names import FACTORISATIONS
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import (
    BFLOAT16_INPUTS,
    CALL_DURATION_NS,
    FLOAT16_INPUTS,
    FLOAT64_INPUTS,
    FLOAT_INPUTS,
    HOST_TIME_NS,
    INTEGER_INPUTS,
    WIDENED_INPUTS,
)
from deepcontext.profiler.model.metric_values import counts_or_zeros
from deepcontext.profiler.model.operator_inputs import split_name
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from deepcontext.profiler.model.profile import Profile

    Mask = npt.NDArray[np.bool_]

_FLOATS: Final = frozenset({"f64", "f32", "f16", "bf16"})
_DOUBLE: Final = "f64"
# Lines that are named together: as many calls as this part of the most.
_NEARLY: Final = 0.5
_MOST_LINES: Final = 2
# Float32 holds all values of narrower integers.
_INTEGERS: Final = frozenset({"i32", "i64", "bool"})
_NARROW: Final = frozenset({"u8", "i8", "i16", "u16"})
_CONVERTS: Final = "aten::_to_copy"
_CONVERTED_BY: Final = "aten::to"
_COPIES: Final = "aten::copy_"
# Source: torch/csrc/utils/tensor_new.cpp and tensor_numpy.cpp: `torch.tensor`, `torch.from_numpy`.
_MAKES: Final = "aten::lift_fresh"
_COUNTED: Final = {
    "f64": FLOAT64_INPUTS.name,
    "f16": FLOAT16_INPUTS.name,
    "bf16": BFLOAT16_INPUTS.name,
}
# Of the time in operators.
LEAST_SHARE: Final = 0.20
# What runs once or twice is setup (whitening data), not what the computation is about.
_LEAST_CALLS: Final = 3
# Of the calls with floating-point inputs, at and below an operator.
_MOST_OF: Final = 0.8


def operators_with(profile: Profile, kind: str) -> Query:
    """Return the outermost operators that compute with a type, for example ``f64``.

    A single number does not count, because PyTorch passes Python's numbers as float64 tensors.
    """
    tree = profile.tree
    if FLOAT_INPUTS.name in profile.metrics:
        of_all = tree.inclusive(counts_or_zeros(profile, FLOAT_INPUTS.name))
        of_kind = tree.inclusive(counts_or_zeros(profile, _COUNTED[kind]))
    else:
        calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
        of_all = tree.inclusive(np.where(_nodes(profile, bool), calls, 0))
        of_kind = tree.inclusive(np.where(_nodes(profile, lambda kinds: kind in kinds), calls, 0))
    operators = Query(profile, profile.is_kind(FrameKind.OPERATOR))
    outermost = source_locations.outermost(
        source_locations.without(operators, source_locations.compiling(profile))
    )
    return Query(profile, outermost.mask() & (of_kind > 0) & (of_kind >= _MOST_OF * of_all))


def costly(profile: Profile, kind: str) -> list[tuple[tuple[int, ...], int]]:
    """Return the operators with inputs of a type and their time, ns, if they take much of it.

    Returns:
        One pair at most. The outermost operators, the costliest first.
    """
    whole = source_locations.judged_total(profile, HOST_TIME_NS.name)
    if not whole:
        return []
    operators = operators_with(profile, kind).mask()
    if kind == _DOUBLE and operators.any():
        operators = operators & ~exact_integers(profile) & ~of_factorisations(profile)
    nodes = np.flatnonzero(operators)
    spent = profile.inclusive(HOST_TIME_NS.name)[nodes]
    if not len(nodes) or spent.sum() < LEAST_SHARE * whole:
        return []
    order = np.argsort(-spent, kind="stable")
    return [(tuple(nodes[order].tolist()), int(spent.sum()))]


def exact_integers(profile: Profile) -> Mask:
    """Return which operators have a float64 input of the shape of integers that were converted.

    Float64 is the advised type there: it holds integers up to 2^53, and has fast products. Without
    shapes, the operators of functions that convert integers.
    """
    frames = profile.frames
    if FLOAT_INPUTS.name in profile.metrics:
        conversions = source_locations.operators(profile, {_CONVERTS}).mask()
        is_exact = conversions & (counts_or_zeros(profile, INTEGER_INPUTS.name) > 0)
        return source_locations.in_functions_of(profile, np.flatnonzero(is_exact))
    inputs = [
        (frame, *split_name(frames.strings[int(frames.name[frame])]))
        for frame in np.flatnonzero(frames.kind == FrameKind.OPERATOR).tolist()
    ]
    converted = {
        shape
        for _, name, each in inputs
        if name == _CONVERTS
        for shape, kind in zip(each.shapes, each.types, strict=True)
        if shape and len(shape) > 1 and kind in _INTEGERS
    }
    found = np.zeros(len(frames), np.bool_)
    for frame, _, each in inputs:
        pairs = zip(each.shapes, each.types, strict=True)
        found[frame] = any(kind == _DOUBLE and shape in converted for shape, kind in pairs)
    return np.asarray(found[profile.tree.frame])


def of_narrow_integers(profile: Profile) -> Mask:
    """Return which conversions make floating-point numbers of pixels, sound and other integers below 32 bits.

    Without shapes, the narrow types are not counted, so that only the values' copy has a type that is.

    Returns:
        conversions and the operators that call them, shape (nodes,).
    """
    tree = profile.tree
    conversions = source_locations.operators(profile, {_CONVERTS}).mask()
    if FLOAT_INPUTS.name in profile.metrics:
        counted = counts_or_zeros(profile, FLOAT_INPUTS.name)
        copied = np.where(source_locations.operators(profile, {_COPIES}).mask(), counted, 0)
        is_float = tree.inclusive(copied) >= _LEAST_CALLS
        is_wide = (counted > 0) | (counts_or_zeros(profile, INTEGER_INPUTS.name) > 0)
        found = conversions & is_float & ~is_wide
    else:
        frames = profile.frames
        of_narrow = [
            frame
            for frame in np.unique(tree.frame[conversions]).tolist()
            if split_name(frames.strings[int(frames.name[frame])])[1].type in _NARROW
        ]
        found = conversions & np.isin(tree.frame, of_narrow)
    callers = source_locations.operators(profile, {_CONVERTED_BY}).mask() & tree.at_or_above(found)
    return np.asarray(found | callers)


def of_factorisations(profile: Profile) -> Mask:
    """Return which nodes belong to functions of user code that factorise matrices again and again.

    Such functions need float64. Of a module's body, only the line that factorises counts.

    Returns:
        functions and all that they call, shape (nodes,).
    """
    tree, frames = profile.tree, profile.frames
    found = source_locations.operators(profile, FACTORISATIONS).mask()
    if FLOAT_INPUTS.name in profile.metrics:
        is_narrow = counts_or_zeros(profile, FLOAT_INPUTS.name) > 0
        found &= ~(is_narrow & (counts_or_zeros(profile, FLOAT64_INPUTS.name) == 0))
    else:
        found &= _nodes(profile, lambda kinds: _DOUBLE in kinds)
    found &= counts_or_zeros(profile, CALL_DURATION_NS.name) >= _LEAST_CALLS
    owner = nearest_user(profile)[found]
    owner = owner[owner != NO_NODE]
    is_body = np.array([name == "<module>" for name in frames.strings], np.bool_)[frames.name]
    function = (frames.file.astype(np.int64) << 32) | frames.name
    place = np.where(is_body, -1 - frames.source_line().astype(np.int64), function)
    is_factorising = np.isin(place, place[tree.frame[owner]]) & frames.is_user_code()
    return tree.at_or_below(is_factorising[tree.frame])


def most_widened(profile: Profile) -> list[source_locations.Location]:
    """Return the lines with most calls of operators with a float64 and a narrower input, at most two.

    Windows see some steps only, so that either of two lines with nearly as many may have most.
    """
    if FLOAT_INPUTS.name in profile.metrics:
        return _lines_with_most(profile, counts_or_zeros(profile, WIDENED_INPUTS.name))
    widened = _nodes(profile, lambda kinds: _DOUBLE in kinds and len(kinds) > 1)
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    return _lines_with_most(profile, np.where(widened, calls, 0))


def most_made(profile: Profile) -> list[source_locations.Location]:
    """Return the lines that make most float64 tensors of arrays, or of other data of Python."""
    if FLOAT_INPUTS.name in profile.metrics:
        calls = counts_or_zeros(profile, FLOAT64_INPUTS.name)
    else:
        doubles = _nodes(profile, lambda kinds: _DOUBLE in kinds)
        calls = np.where(doubles, counts_or_zeros(profile, CALL_DURATION_NS.name), 0)
    made = source_locations.operators(profile, {_MAKES}).mask()
    return _lines_with_most(profile, np.where(made, calls, 0))[:1]


def _lines_with_most(
    profile: Profile, calls: npt.NDArray[np.int64]
) -> list[source_locations.Location]:
    found: list[source_locations.Location] = []
    nodes = np.flatnonzero((calls > 0) & (calls >= _NEARLY * calls.max(initial=0)))
    for node in nodes[np.argsort(-calls[nodes], kind="stable")].tolist():
        if len(found) == _MOST_LINES:
            break
        one = np.zeros(len(profile.tree), np.bool_)
        one[node] = True
        lines = source_locations.by_line(Query(profile, one), "host_time_ns")
        if lines and all(lines[0].frame != known.frame for known in found):
            found.append(lines[0])
    return found


def _nodes(profile: Profile, accepts: Callable[[frozenset[str]], bool]) -> Mask:
    """Select operators by the floating-point types among their inputs."""
    accepted = np.array([accepts(kinds) for kinds in _of_frames(profile)], np.bool_)
    return np.asarray(accepted[profile.tree.frame])


def _of_frames(profile: Profile) -> list[frozenset[str]]:
    """Return the floating-point types among the inputs of each frame; none for frames without."""

    def compute() -> list[frozenset[str]]:
        frames = profile.frames
        found = [frozenset[str]()] * len(frames)
        for frame in np.flatnonzero(frames.kind == FrameKind.OPERATOR).tolist():
            _, inputs = split_name(frames.strings[int(frames.name[frame])])
            pairs = zip(inputs.shapes, inputs.types, strict=True)
            found[frame] = frozenset(kind for shape, kind in pairs if shape and kind in _FLOATS)
        return found

    return profile.once(_of_frames, compute)
