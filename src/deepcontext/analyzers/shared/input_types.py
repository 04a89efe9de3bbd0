"""Element types of the inputs of operators: by their names with shapes (``--shapes``), otherwise by counts.

Without shapes, the calls in short windows were counted by type. Does not judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.places import query_of
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
from deepcontext.profiler.model.recorded_operators import has_shapes
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Mask = source_locations.Mask

_FLOATS: Final = frozenset({"f64", "f32", "f16", "bf16"})
# Float32 holds all values of narrower integers.
_INTEGERS: Final = frozenset({"i32", "i64", "bool"})
_NARROW: Final = frozenset({"u8", "i8", "i16", "u16"})
# By the name of a kind, what was counted, and which types among an operator's inputs count.
_KINDS: Final[dict[str, tuple[str, Callable[[frozenset[str]], bool]]]] = {
    "float": (FLOAT_INPUTS.name, lambda types: bool(types & _FLOATS)),
    "f64": (FLOAT64_INPUTS.name, lambda types: "f64" in types),
    "f16": (FLOAT16_INPUTS.name, lambda types: "f16" in types),
    "bf16": (BFLOAT16_INPUTS.name, lambda types: "bf16" in types),
    "integer": (INTEGER_INPUTS.name, lambda types: bool(types & _INTEGERS)),
    "widened": (WIDENED_INPUTS.name, lambda types: "f64" in types and len(types & _FLOATS) > 1),
}
# Lines that are named together: as many calls as this part of the most.
_NEARLY: Final = 0.5
_MOST_LINES: Final = 2
# What runs once or twice is setup (whitening data), not what the computation is about.
_FEWEST_CALLS: Final = 3
# Of the calls with floating-point inputs, at and below an operator.
_MOST_OF: Final = 0.8


def inputs(profile: Profile, kind: str) -> Ints:
    """Return how many calls of each node had inputs of a kind, as far as they were looked at."""
    metric, accepts = _KINDS[kind]
    if FLOAT_INPUTS.name in profile.metrics:
        return counts_or_zeros(profile, metric)
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    return np.where(_accepted(profile, accepts), calls, 0)


def _accepted(profile: Profile, accepts: Callable[[frozenset[str]], bool]) -> Mask:
    """Return which nodes have accepted types among their inputs, without single numbers as of Python."""
    number, kinds = profile.once(_of_frames, lambda: _of_frames(profile))
    accepted = np.array([accepts(each) for each in kinds], np.bool_)
    if not accepted.any():
        return np.zeros(len(profile.tree), np.bool_)
    return np.asarray(accepted[number][profile.tree.frame])


def _of_frames(profile: Profile) -> tuple[Ints, list[frozenset[str]]]:
    """Return the number of each frame's types among some, and these; the first are none."""
    frames = profile.frames
    number, numbers = np.zeros(len(frames), np.int64), {frozenset[str](): 0}
    for frame in np.flatnonzero(frames.kind == FrameKind.OPERATOR) if has_shapes(frames) else ():
        _, each = split_name(frames.strings[int(frames.name[frame])])
        pairs = zip(each.shapes, each.types, strict=True)
        types = frozenset(kind for shape, kind in pairs if shape)
        number[frame] = numbers.setdefault(types, len(numbers))
    return number, list(numbers)


def costly(profile: Profile, kind: str) -> tuple[tuple[int, ...], int]:
    """Return the outermost operators that compute with a type, the costliest first, and their time, ns."""
    tree = profile.tree
    calls = inputs(profile, kind)
    if not calls.any() or not source_locations.judged_total(profile, HOST_TIME_NS.name):
        return (), 0
    of_kind = tree.inclusive(calls)
    operators = Query(profile, profile.is_kind(FrameKind.OPERATOR))
    operators = source_locations.without(operators, source_locations.compiling(profile))
    chosen = source_locations.outermost(operators).mask() & (of_kind > 0)
    chosen &= of_kind >= _MOST_OF * tree.inclusive(inputs(profile, "float"))
    if kind == "f64":
        chosen &= ~_exact_integers(profile) & ~_of_factorisations(profile)
    nodes = np.flatnonzero(chosen)
    spent = profile.inclusive(HOST_TIME_NS.name)[nodes]
    return tuple(nodes[np.argsort(-spent, kind="stable")].tolist()), int(spent.sum())


def _exact_integers(profile: Profile) -> Mask:
    """Return which nodes are of functions that convert integers, which float64 holds exactly."""
    conversions = source_locations.operators(profile, catalogue.operators("converts")).mask()
    is_exact = conversions & (inputs(profile, "integer") > 0)
    return source_locations.in_functions_of(profile, np.flatnonzero(is_exact))


def _of_factorisations(profile: Profile) -> Mask:
    """Return which nodes belong to functions that factorise matrices again and again, in float64.

    Such functions need it. Of a module's body, only the line that factorises counts.
    """
    tree, frames = profile.tree, profile.frames
    found = source_locations.operators(profile, catalogue.operators("factorisations")).mask()
    is_narrow = (inputs(profile, "float") > 0) & (inputs(profile, "f64") == 0)
    found &= ~is_narrow & (counts_or_zeros(profile, CALL_DURATION_NS.name) >= _FEWEST_CALLS)
    owner = nearest_user(profile)[found]
    owner = owner[owner != NO_NODE]
    function = (frames.file.astype(np.int64) << 32) | frames.name
    place = np.where(frames.is_module_body(), -1 - frames.source_line().astype(np.int64), function)
    is_factorising = np.isin(place, place[tree.frame[owner]]) & frames.is_user_code()
    return tree.at_or_below(is_factorising[tree.frame])


def of_narrow_integers(profile: Profile) -> Mask:
    """Return which conversions make floating-point numbers of pixels, sound and other integers below 32 bits.

    Without shapes, the narrow types are not counted, so that only the values' copy has a type that is.

    Returns:
        conversions and the operators that call them, shape (nodes,).
    """
    tree = profile.tree
    conversions = source_locations.operators(profile, catalogue.operators("converts")).mask()
    if FLOAT_INPUTS.name in profile.metrics:
        counted = inputs(profile, "float")
        copies = source_locations.operators(profile, catalogue.operators("copies_values")).mask()
        is_float = tree.inclusive(np.where(copies, counted, 0)) >= _FEWEST_CALLS
        found = conversions & is_float & (counted == 0) & (inputs(profile, "integer") == 0)
    else:
        found = conversions & _accepted(profile, lambda types: bool(types & _NARROW))
    callers = source_locations.operators(profile, catalogue.operators("to")).mask()
    return np.asarray(found | (callers & tree.at_or_above(found)))


def most_widened(profile: Profile) -> list[source_locations.Location]:
    """Return the lines with most calls of operators with a float64 and a narrower input, at most two.

    Windows see some steps only, so that either of two lines with nearly as many may have most.
    """
    return _lines_with_most(profile, inputs(profile, "widened"))


def most_made(profile: Profile) -> list[source_locations.Location]:
    """Return the line that makes most float64 tensors of arrays, or of other data of Python."""
    made = source_locations.operators(profile, catalogue.operators("from_python")).mask()
    return _lines_with_most(profile, np.where(made, inputs(profile, "f64"), 0))[:1]


def _lines_with_most(profile: Profile, calls: Ints) -> list[source_locations.Location]:
    found: list[source_locations.Location] = []
    nodes = np.flatnonzero((calls > 0) & (calls >= _NEARLY * calls.max(initial=0)))
    for node in nodes[np.argsort(-calls[nodes], kind="stable")].tolist():
        lines = source_locations.by_line(query_of(profile, [node]), HOST_TIME_NS.name)
        if lines and all(lines[0].frame != known.frame for known in found):
            found.append(lines[0])
        if len(found) == _MOST_LINES:
            break
    return found
