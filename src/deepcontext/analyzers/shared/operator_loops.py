"""Loops of Python's over small operators: elements, samples or parameters one by one.

Does not judge chains of operators that run once a step (`kernel_fusion.py`) or recurrent cells
(`recurrent_cells.py`). A loop is seen where one call path calls an operator many times in a step. In a
profile without steps, the calls of the model, or the usual number of calls of the program's other lines,
take the place of steps. Invariant: a loop that calls a layer in each pass is the model, and no finding.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import (
    called_by_user,
    model_calls,
    module_calls,
)
from deepcontext.analyzers.shared.operator_names import (
    POINTWISE,
    READS_ELEMENT,
    READS_VALUE,
    REDUCTIONS,
)
from deepcontext.analyzers.shared.repeated_work import dependent_runs, steps_or_passes
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS, SAMPLED_STEP
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS, is_sampled
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.setup_time import setup_time
from deepcontext.profiler.summaries.steps import step_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.15
# Calls by one path, in a step and in the whole run. Layers of a model are different paths.
_LEAST_CALLS_A_STEP: Final = 30
_LEAST_CALLS: Final = 500
# Time of an operator that costs mostly the call: a call of torch's takes 1 to 10 us on a CPU.
_MOST_CALL_NS: Final = 20_000
# Limit of a call relative to the shortest call; a longer call was delayed by other work of the
# machine.
_MOST_OF_SHORTEST: Final = 3
_UPDATING: Final = 0.5
# Layers that are looked at, when a loop may be the layers of a model.
_MOST_LAYERS: Final = 1000
_TAKES_ELEMENT: Final = frozenset({"aten::select"})
_OF_ELEMENTS: Final = _TAKES_ELEMENT | READS_ELEMENT | POINTWISE | {"aten::copy_", "aten::to"}
_SCALES: Final = frozenset({"aten::mul_", "aten::div_", "aten::clamp_"})


@dataclass(frozen=True, slots=True)
class OperatorLoop:
    """A function of the user's code that calls small operators in a loop.

    Attributes:
        frame: the function's line with most operators.
        nodes: operators of the loop, those with most calls first.
        value: time of the loop's lines, ns, with Python's part where it was sampled.
        share: the same as a share of the program's time without imports and compilers.
        calls: number of operators.
        calls_a_step: passes of the loop in a step.
        updates: whether most operators change a tensor in place, as an optimizer does.
        reduces: whether the operators only reduce tensors, read the results and scale in place.
        is_setup: whether the loop ended before the first step.
        reads_elements: whether each pass takes elements of tensors and reads their values.
    """

    frame: Frame
    nodes: tuple[int, ...]
    value: int
    share: float
    calls: int
    calls_a_step: float
    updates: bool
    reduces: bool
    is_setup: bool
    reads_elements: bool


def operator_loops(profile: Profile, is_user: source_locations.Mask) -> list[OperatorLoop]:
    """Return the loops that take a large share of the program's time, the costliest first."""
    operators = _called_by_user(profile)
    usual = steps_or_passes(profile) or max(_usual_calls(profile, operators), model_calls(profile))
    if not usual:
        return []
    calls = profile.counts(CALL_DURATION_NS.name)
    least = max(_LEAST_CALLS, _LEAST_CALLS_A_STEP * usual)
    repeated = Query(profile, operators.mask() & (calls >= least))
    if not repeated.count():
        return []
    whole = _working_ns(profile)
    depends = dependent_runs(profile, is_user)
    found = []
    for location in source_locations.by_function(repeated, HOST_TIME_NS.name, is_user=is_user):
        frame = location.frame
        nodes = np.array(location.nodes)
        usual_ns = min(location.value, _MOST_OF_SHORTEST * _shortest_ns(profile, nodes))
        if frame is None or usual_ns > _MOST_CALL_NS * location.count:
            continue
        nodes = nodes[np.argsort(-calls[nodes], kind="stable")]
        # A line may call one operator several times in a pass, which gives its node more calls.
        passes = int(np.sort(calls[nodes])[len(nodes) // 2])
        value = _time_of_lines(profile, is_user, nodes)
        reduces = _only_reduces(profile, nodes)
        reads_elements = _reads_elements(profile, nodes, calls)
        # If a pass needs the one before, elements are still slower than Python's numbers.
        may_depend = not (reduces or reads_elements)
        is_dependent = may_depend and 2 * depends.get((frame.file, frame.name), 0) >= passes
        if value < _LEAST_SHARE * whole or is_dependent or _runs_layers(profile, is_user, location):
            continue
        found.append(
            OperatorLoop(
                frame=frame,
                nodes=tuple(nodes.tolist()),
                value=value,
                share=min(value / whole, 1.0),
                calls=location.count,
                calls_a_step=passes / usual,
                updates=_share_in_place(profile, nodes, calls) >= _UPDATING,
                reduces=reduces,
                is_setup=_is_before_steps(profile, is_user, nodes),
                reads_elements=reads_elements,
            )
        )
    return sorted(_joined(profile, is_user, found), key=lambda loop: -loop.value)


def _joined(
    profile: Profile, is_user: source_locations.Mask, loops: Sequence[OperatorLoop]
) -> list[OperatorLoop]:
    """Join a loop of a function with those of the functions that it calls: one loop drives them all."""
    whole = _working_ns(profile)
    kept: list[OperatorLoop] = []
    for loop in sorted(loops, key=lambda loop: loop.calls_a_step):
        outer = next(
            (each for each in kept if _is_called_by(profile, is_user, loop, each.frame)), None
        )
        if outer is None:
            kept.append(loop)
            continue
        value = outer.value + loop.value
        kept[kept.index(outer)] = dataclasses.replace(
            outer,
            nodes=outer.nodes + loop.nodes,
            value=value,
            share=min(value / whole, 1.0),
            calls=outer.calls + loop.calls,
        )
    return kept


def _is_called_by(
    profile: Profile, is_user: source_locations.Mask, loop: OperatorLoop, frame: Frame
) -> bool:
    """Return whether all of a loop's operators run below a function of the user's."""
    tree = profile.tree
    outer = np.array(
        [each.file == frame.file and each.name == frame.name for each in profile.frames], np.bool_
    )
    below = tree.below((outer & is_user)[tree.frame])
    owner = tree.nearest(is_user[tree.frame])[list(loop.nodes)]
    return bool(below[owner].all())


def _working_ns(profile: Profile) -> int:
    """Return the main threads' time without imports and compilers, or the time in operators."""
    setup = setup_time(profile)
    return setup.working_ns if setup else total(profile, HOST_TIME_NS.name)


def _called_by_user(profile: Profile) -> Query:
    """Return the outermost operators of the program's own loops: no backward, optimizer or loader."""
    operators = source_locations.without(
        Query(profile).kind(FrameKind.OPERATOR), source_locations.compiling(profile)
    )
    forward = source_locations.apart(source_locations.outermost(operators))
    is_backward = profile.tree.phase == Phase.BACKWARD
    # A loop inside a library's function or inside a module is not the user's to change.
    return Query(profile, forward.mask() & ~is_backward & called_by_user(profile))


def _shortest_ns(profile: Profile, nodes: source_locations.Ints) -> int:
    """Return the time that the calls of some nodes would take if each took as long as the shortest."""
    rows = profile.metrics[CALL_DURATION_NS.name]
    if rows.minimum is None:
        return int(rows.total.sum())
    wanted = np.isin(rows.node, nodes)
    return int((rows.minimum[wanted] * rows.count[wanted].astype(np.int64)).sum())


def _usual_calls(profile: Profile, operators: Query) -> int:
    """Return a low number of calls among the paths of a program without steps, 0 for few paths."""
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)[operators.nodes()]
    return int(np.quantile(calls, 0.25, method="lower")) if len(calls) else 0


def _time_of_lines(
    profile: Profile, is_user: source_locations.Mask, nodes: source_locations.Ints
) -> int:
    """Return the time of the lines that call these operators, backward and Python's part included."""
    tree = profile.tree
    metric = ELAPSED_TIME_NS.name if is_sampled(profile.metrics) else HOST_TIME_NS.name
    owner = tree.nearest(is_user[tree.frame])
    line = profile.frames.source_line()[tree.frame[owner]]
    of_loop = (owner != NO_NODE) & np.isin(line, line[nodes])
    return int(profile.exclusive(metric)[of_loop].sum())


def _only_reduces(profile: Profile, nodes: source_locations.Ints) -> bool:
    """Return whether the operators make numbers of tensors, read these, and scale tensors in place.

    Such a loop reads a value in each pass, but no pass needs the value of the pass before.
    """
    names = {source_locations.base_name(profile.frame(int(node)).name) for node in nodes}
    return not names.isdisjoint(REDUCTIONS) and names <= REDUCTIONS | READS_VALUE | _SCALES


def _reads_elements(
    profile: Profile, nodes: source_locations.Ints, calls: source_locations.Ints
) -> bool:
    """Return whether the operators take parts of tensors, compute on them and read the results.

    A value can be read of one element only, and nothing here reduces a larger part to one. What is drawn
    or computed by a model is therefore not among the work of a pass.
    """
    names = [source_locations.base_name(profile.frame(int(node)).name) for node in nodes]
    if not _OF_ELEMENTS.issuperset(names):
        return False
    taken, read = (
        int(calls[nodes][[name in wanted for name in names]].sum())
        for wanted in (_TAKES_ELEMENT, READS_ELEMENT)
    )
    return 0 < read <= taken


def _runs_layers(
    profile: Profile, is_user: source_locations.Mask, location: source_locations.Location
) -> bool:
    """Return whether each pass runs a model, or a layer and else only pointwise operators.

    The first is a loop over batches, the second a chain of layers.
    """
    tree, frames = profile.tree, profile.frames
    names = {source_locations.base_name(profile.frame(node).name) for node in location.nodes}
    function = (frames.file.astype(np.int64) << 32) | frames.name
    owner = tree.nearest(is_user[tree.frame])
    own = owner[location.nodes[0]]
    modules = profile.is_kind(FrameKind.MODULE)
    if not names <= POINTWISE:
        modules = modules & ~tree.below(modules)
    inner = np.flatnonzero(modules & (owner != NO_NODE))
    # The function above a module, not one inside of it.
    same = function[tree.frame[owner[inner]]] == function[tree.frame[own]]
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    passes = int(calls[list(location.nodes)].max())
    return 2 * int(module_calls(profile, inner[same][:_MOST_LAYERS]).sum()) >= passes


def _is_before_steps(
    profile: Profile, is_user: source_locations.Mask, nodes: source_locations.Ints
) -> bool:
    """Return whether all samples of the loop's lines were taken before the first step."""
    rows = profile.metrics.get(SAMPLED_STEP.name)
    if rows is None or rows.maximum is None or not step_count(profile):
        return False
    tree = profile.tree
    owner = tree.nearest(is_user[tree.frame])
    line = profile.frames.source_line()[tree.frame[owner]]
    of_loop = (owner[rows.node] != NO_NODE) & np.isin(line[rows.node], line[nodes])
    return bool(of_loop.any() and rows.maximum[of_loop].max() == 0)


def _share_in_place(
    profile: Profile, nodes: source_locations.Ints, calls: source_locations.Ints
) -> float:
    names = [source_locations.base_name(profile.frame(int(node)).name) for node in nodes]
    in_place = np.array([name.endswith("_") for name in names], np.bool_)
    return float(calls[nodes][in_place].sum() / calls[nodes].sum())


def loop_finding(profile: Profile, loop: OperatorLoop) -> Finding:
    """Report a loop."""
    names = dict.fromkeys(
        source_locations.base_name(profile.frame(node).name) for node in loop.nodes
    )
    where = source_locations.location_text(profile, loop.frame)
    often = (
        "before the first step" if loop.is_setup else f"runs {loop.calls_a_step:.0f} times a step"
    )
    return Finding(
        id="kernel_fusion",
        # A longer run spends no more time on its setup.
        severity=Severity.INFO if loop.is_setup else Severity.of_share(loop.share),
        title=f"a loop over small operators at {where} {often}, {loop.share:.0%} of the time",
        nodes=loop.nodes[:8],
        evidence={
            "loop_ns": loop.value,
            "loop_share": loop.share,
            "passes_per_step": round(loop.calls_a_step, 1),
            "operators_count": loop.calls,
            "operators": ", ".join(list(names)[:6]),
        },
        gain=Gain(
            metric="elapsed time",
            upper_bound=loop.value,
            upper_bound_share=loop.share,
            assumption=(
                "the loop costs nothing; one operator over everything still reads and writes once"
            ),
        ),
        advice=_advice(loop),
        misleads=(
            "a pass needs the result of the pass before it; the tensors differ in shape, so that they "
            "cannot be stacked"
        ),
    )


def _advice(loop: OperatorLoop) -> str:
    if loop.reduces:
        return _REDUCE_ADVICE
    if loop.reads_elements:
        return _ELEMENT_ADVICE
    return _UPDATE_ADVICE if loop.updates else _ADVICE


_ADVICE: Final = (
    "compute all elements at once: stack them and call each operator once on the whole tensor "
    "(broadcasting, index_select, scatter_add, bmm), or write one element and use torch.vmap; if the "
    "passes are not alike, put the loop into a function below @torch.compile"
)
_UPDATE_ADVICE: Final = (
    "update all tensors at once: torch._foreach_mul_, _foreach_add_ and the like take lists of tensors; "
    "or use an optimizer of torch.optim with fused=True, in place of a loop over parameters"
)
_ELEMENT_ADVICE: Final = (
    "compute all elements at once, without reading them: torch.where in place of 'if', gather and "
    "scatter (or an index tensor) for the chosen elements; if a pass needs the pass before, take the "
    "numbers out once before the loop (.tolist() or .numpy()), because each operator on one element takes "
    "microseconds"
)
_REDUCE_ADVICE: Final = (
    "reduce all tensors at once: torch._foreach_norm, nn.utils.get_total_norm and clip_grad_norm_ "
    "(foreach=True) take lists of tensors; put the results into one tensor (torch.stack), and read a value "
    "once, after the loop"
)
