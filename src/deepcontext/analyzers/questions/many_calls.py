"""Do many small calls do what few would: by an optimizer, a loop of Python's, a chain of operators?

A loop is seen where one call path calls an operator many times in a step. In a profile without steps, the
calls of the model, or the usual number of calls of the program's other lines, take the place of steps.
Invariant: a loop that calls a layer in each pass is the model, and no cause; nor is a loop whose passes
depend on a value that the pass before drew or read.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.causes import ELAPSED, HOST, Cause, at_place
from deepcontext.analyzers.finding import Severity
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.called_operators import called_by_user, model_calls, module_calls
from deepcontext.analyzers.shared.model_runs import functions_with_single_samples
from deepcontext.analyzers.shared.repeated_lines import before_steps
from deepcontext.analyzers.shared.repeated_work import dependent_runs, steps_or_passes
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS, is_sampled
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.lines import nearest_user
from deepcontext.profiler.summaries.setup_time import setup_time
from deepcontext.profiler.summaries.steps import STEP_SCOPE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile

# A step of a foreach or fused optimizer calls a dozen operators for any number of parameters; Adam calls
# about ten for each parameter, so this limit is a model of ten parameters.
_FEWEST_OF_OPTIMIZER: Final = 100
# Source: https://docs.pytorch.org/docs/2.13/optim.html#algorithms
_WITH_FUSED: Final = frozenset({"Adagrad", "Adam", "AdamW", "SGD"})
_WITHOUT_FOREACH: Final = frozenset({"LBFGS", "SparseAdam"})
# Longer operators mostly compute. Fusing them saves passes over memory: with parameters of 512 x 512 and
# 1000 x 1000 on a processor, Adam and AdamW were 2.5 to 4.8 times as fast, and SGD with momentum 1.4 times.
_MOST_SMALL_NS: Final = 30_000
_SAVED_OF_LARGE: Final = {"Adam": 0.6, "AdamW": 0.6, "Adagrad": 0.3, "SGD": 0.3}
# Calls by one path, in a step and in the whole run. Layers of a model are different paths.
_FEWEST_A_STEP: Final = 30
_FEWEST_CALLS: Final = 500
# Time of an operator that costs mostly the call: a call takes 1 to 10 us on a CPU. A call of more than
# three times the shortest was delayed by other work of the machine.
_MOST_CALL_NS: Final = 20_000
_MOST_OF_SHORTEST: Final = 3
_MOST_LAYERS: Final = 1000
_FEWEST_OPERATORS: Final = 5


def find(profile: Profile) -> Iterator[Cause]:
    """Return optimizers, loops and chains of small operators."""
    if not at.judged_total(profile, HOST) or total(profile, at.DEVICE_TIME):
        return
    yield from _optimizers(profile)
    yield from _loops(profile)
    yield from _chains(profile)


def _optimizers(profile: Profile) -> Iterator[Cause]:
    """Find optimizers whose steps call operators for each parameter."""
    calls, whole = counts_or_zeros(profile, CALL_DURATION_NS.name), total(profile, HOST)
    for node in at.scopes(profile, STEP_SCOPE).nodes().tolist():
        mask = np.zeros(len(profile.tree), np.bool_)
        mask[node : int(profile.tree.subtree_end[node])] = True
        # A closure passed to the step is no part of the optimizer.
        inside = Query(profile, mask).phase("optimizer")
        value = round(_share_of_gradients(profile) * inside.total(HOST))
        if 10 * value < whole or not calls[node]:  # most programs, at little cost
            continue
        below = at.outermost(inside.kind(FrameKind.OPERATOR)).nodes()
        names = {at.base_name(profile.frame(each).name) for each in below.tolist()}
        a_step = int(calls[below].sum()) / int(calls[node])
        is_fused = any(each.startswith(("aten::_foreach_", "aten::_fused_")) for each in names)
        name = profile.frame(node).name.removeprefix(STEP_SCOPE).removesuffix(".step")
        is_large = value > _MOST_SMALL_NS * a_step * int(calls[node])
        saved = round(value * _SAVED_OF_LARGE.get(name, 0.0)) if is_large else value
        if not is_fused and a_step >= _FEWEST_OF_OPTIMIZER:
            kind = (
                "operators a step, whose passes over memory cost"
                if is_large
                else "small operators a step,"
            )
            yield Cause(
                key="optimizer_walks_over_parameters",
                nodes=(node,),
                metric=HOST,
                value=saved,
                words={"name": name, "a_step": a_step, "kind": kind, "advice": _optimizer(name)},
                evidence={"operators_per_step": round(a_step, 1), "steps_count": int(calls[node])},
            )


def _share_of_gradients(profile: Profile) -> float:
    """Return which share of the gradients that were filled with zeros got a gradient afterwards, 0 to 1.

    The others are updated for nothing, which is another cause. 1 where gradients are dropped.
    """
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    zeros = at.scopes(profile, at.ZERO_GRAD_SCOPE)
    filled = at.operators(profile, {"aten::zero_"}).under(zeros).nodes()
    added = at.operators(profile, catalogue.operators("stores_gradient")).nodes()
    of_zeros, of_gradients = int(calls[filled].sum()), int(calls[added].sum())
    return min(1.0, of_gradients / of_zeros) if of_zeros else 1.0


def _optimizer(name: str) -> str:
    if name in _WITHOUT_FOREACH:
        return (
            f"torch has no form of {name} that updates all parameters at once: use another "
            "optimizer, or reduce its work in a step (LBFGS: max_iter, history_size)"
        )
    if name in _WITH_FUSED:
        return (
            f"use torch.optim.{name}(..., fused=True), which updates all parameters in a few operators, "
            "on CPUs too"
        )
    return (
        f"give {name} the argument foreach=True, which updates all parameters in a few operators; "
        "an optimizer from another package may have a fused form under another name"
    )


@dataclass(frozen=True, slots=True)
class _Loop:
    """A function of the user's code that calls small operators in a loop.

    Attributes:
        frame: the function's line with most operators.
        nodes: operators of the loop, those with most calls first.
        value: time of the loop's lines, ns, with Python's part where it was sampled.
        calls: number of operators.
        passes: of the loop in the run; `a_step`: in a step, or else in a call of what is called most often.
    """

    frame: Frame
    nodes: tuple[int, ...]
    value: int
    calls: int
    passes: int
    a_step: float


def _loops(profile: Profile) -> Iterator[Cause]:
    """Find the loops over small operators that take a large share of the program's time."""
    setup = setup_time(profile)
    whole = setup.working_ns if setup else total(profile, HOST)
    early, steps = before_steps(profile), steps_or_passes(profile)
    for loop in _joined(profile, _all_loops(profile, whole)):
        names = dict.fromkeys(at.base_name(profile.frame(node).name) for node in loop.nodes)
        is_setup = bool(early[list(loop.nodes)].all())
        runs = f"runs {loop.a_step:.0f} times a step" if steps else f"runs {loop.passes:,} times"
        often = "before the first step" if is_setup else runs
        yield Cause(
            key="loop_over_small_operators",
            nodes=loop.nodes,
            frame=loop.frame,
            metric=ELAPSED,
            value=loop.value,
            whole=whole,
            # A longer run spends no more time on its setup.
            severity=Severity.INFO if is_setup else None,
            words={"often": often},
            evidence={
                "passes_per_step": round(loop.a_step, 1),
                "operators_count": loop.calls,
                "operators": ", ".join(list(names)[:6]),
            },
        )


def _all_loops(profile: Profile, whole: int) -> Iterator[_Loop]:
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    operators = _called(profile)
    number = calls[operators.nodes()]
    low = int(np.quantile(number, 0.25, method="lower")) if len(number) else 0
    usual = steps_or_passes(profile) or max(low, model_calls(profile))
    repeated = operators.mask() & (calls >= max(_FEWEST_CALLS, _FEWEST_A_STEP * usual))
    if not usual or not repeated.any():
        return
    sampled = functions_with_single_samples(profile)
    depends = dependent_runs(profile)
    for location in at.by_function(Query(profile, repeated & ~sampled), HOST):
        frame, nodes = location.frame, np.array(location.nodes)
        usual_ns = min(location.value, _MOST_OF_SHORTEST * _shortest_ns(profile, nodes))
        if frame is None or usual_ns > _MOST_CALL_NS * location.count:
            continue
        nodes = nodes[np.argsort(-calls[nodes], kind="stable")]
        # A line may call one operator several times in a pass, which gives its node more calls.
        passes = int(np.sort(calls[nodes])[len(nodes) // 2])
        is_dependent = 2 * depends.get((frame.file, frame.name), 0) >= passes
        is_dependent = is_dependent and not _reads_without_need(profile, nodes, calls)
        value = _time_of_lines(profile, nodes)
        if 10 * value >= whole and not is_dependent and not _runs_layers(profile, location):
            found = tuple(nodes.tolist())
            yield _Loop(frame, found, value, location.count, passes, passes / usual)


def _called(profile: Profile) -> Query:
    """Return the outermost operators of the program's own loops: no backward, optimizer or loader."""
    operators = Query(profile, profile.is_kind(FrameKind.OPERATOR))
    forward = at.apart(at.outermost(at.without(operators, at.compiling(profile))))
    is_backward = profile.tree.phase == Phase.BACKWARD
    # A loop inside a library's function or inside a module is not the user's to change.
    return Query(profile, forward.mask() & ~is_backward & called_by_user(profile))


def _reads_without_need(profile: Profile, nodes: at.Ints, calls: at.Ints) -> bool:
    """Return whether a loop reads values of which no pass depends, or of single elements only.

    The first reduces each tensor to a value. Of the second, elements are slower than Python's numbers even
    if a pass needs the one before.
    """
    names = [at.base_name(profile.frame(int(node)).name) for node in nodes]
    of, distinct = catalogue.operators, set(names)
    if distinct & of("reductions") and distinct <= of("reductions reads_value scales_in_place"):
        return True
    # A value can be read of one element only, and nothing here reduces a larger part to one.
    taken, read = (
        int(calls[nodes][[name in of(wanted) for name in names]].sum())
        for wanted in ("takes_element", "reads_element")
    )
    return distinct <= of("of_elements") and 0 < read <= taken


def _shortest_ns(profile: Profile, nodes: at.Ints) -> int:
    """Return the time that the calls of some nodes would take if each took as long as the shortest."""
    rows = profile.metrics[CALL_DURATION_NS.name]
    if rows.minimum is None:
        return int(rows.total.sum())
    wanted = np.isin(rows.node, nodes)
    return int((rows.minimum[wanted] * rows.count[wanted].astype(np.int64)).sum())


def _time_of_lines(profile: Profile, nodes: at.Ints) -> int:
    """Return the time of the lines that call these operators, backward and Python's part included."""
    metric = ELAPSED_TIME_NS.name if is_sampled(profile.metrics) else HOST
    return int(profile.exclusive(metric)[at.in_lines_of(profile, nodes)].sum())


def _runs_layers(profile: Profile, location: at.Location) -> bool:
    """Return whether each pass runs a model, or a layer and else only pointwise operators.

    The first is a loop over batches, the second a chain of layers.
    """
    tree = profile.tree
    names = {at.base_name(profile.frame(node).name) for node in location.nodes}
    modules = profile.is_kind(FrameKind.MODULE)
    if not names <= catalogue.operators("pointwise"):
        modules = modules & ~tree.below(modules)
    # The function above a module, not one inside of it.
    same = at.in_functions_of(profile, np.array(location.nodes[:1]))
    inner = np.flatnonzero(modules & same)
    passes = int(counts_or_zeros(profile, CALL_DURATION_NS.name)[list(location.nodes)].max())
    return 2 * int(module_calls(profile, inner[:_MOST_LAYERS]).sum()) >= passes


def _joined(profile: Profile, loops: Iterator[_Loop]) -> list[_Loop]:
    """Join a loop of a function with those of the functions that it calls: one loop drives them all."""
    tree, kept = profile.tree, list[_Loop]()
    owner = nearest_user(profile)
    for loop in sorted(loops, key=lambda each: each.a_step):
        for index, outer in enumerate(kept):
            same = at.functions_like(profile, outer.nodes[0])
            if tree.below(same)[owner[list(loop.nodes)]].all():
                kept[index] = dataclasses.replace(
                    outer,
                    nodes=outer.nodes + loop.nodes,
                    value=outer.value + loop.value,
                    calls=outer.calls + loop.calls,
                )
                break
        else:
            kept.append(loop)
    return kept


def _chains(profile: Profile) -> Iterator[Cause]:
    """Find functions of the user or a library that call chains of pointwise operators."""
    frames = profile.frames
    python = (frames.kind == FrameKind.PYTHON) & ~frames.is_passing_on()
    operators = at.operators(profile, catalogue.operators("pointwise"))
    operators = at.apart(operators.phase("none", "forward", "other"))
    # Operators inside an operator (a loss, a norm) belong to it, because Python called it once.
    is_operator = profile.is_kind(FrameKind.OPERATOR)
    called = operators.mask() & ~is_operator[profile.tree.parent.clip(0)]
    called &= ~functions_with_single_samples(profile)
    owner = profile.tree.nearest(python[profile.tree.frame])
    for location in at.by_function(Query(profile, called), HOST, at.little(profile, HOST), owner):
        nodes = np.array(location.nodes)
        # One for each line that calls it.
        lines = frames.line[profile.tree.frame[owner[nodes]]].tolist()
        names = [at.base_name(profile.frame(node).name) for node in location.nodes]
        shown = [name for _, name in dict.fromkeys(zip(lines, names, strict=True))]
        if location.frame is None or len(shown) < _FEWEST_OPERATORS:
            continue
        # What they become reads and writes as one of them does, and is called as often.
        fused = location.value - location.value // len(shown)
        yield at_place(
            "chain_of_pointwise_operators",
            location,
            saved=fused,
            words={
                "count": len(shown),
                "caller": _caller(profile, location),
                "decorate": at.decorate("@torch.compile", location.frame.name),
            },
            evidence={"operators_count": len(shown), "operators": ", ".join(dict.fromkeys(shown))},
        )


def _caller(profile: Profile, location: at.Location) -> str:
    """Return ``, called from train.py:7 (main)`` for a function of a library."""
    caller = at.frame_of(profile, location.nodes[0])
    if caller is None or location.frame is None or caller.file == location.frame.file:
        return ""
    return f", called from {at.location_text(profile, caller)}"
