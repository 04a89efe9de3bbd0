"""Is a mode on that is meant for another part of a program, or for a search for errors?

And is a part of the program computed for nobody: gradients that no optimizer takes, outputs that no loss
uses.
Invariant: each is seen by operators or functions that run only in that mode, or by a setting that was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.causes import HOST, Cause, at_place
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.backward_passes import (
    backward_line,
    links_backwards,
    made_by_autograd,
    passes_from_scalars,
)
from deepcontext.analyzers.shared.called_operators import module_calls
from deepcontext.analyzers.shared.places import query_of
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import BUILT_GRAPH, CALL_DURATION_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.steps import STEP_SCOPE
from deepcontext.profiler.summaries.torch_settings import torch_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.model.profile import Profile

_FEWEST: Final = 5
_FEWEST_LAUNCHES: Final = 100
# Passes for each step of an optimizer; with accumulation there are several.
_MOST_PASSES: Final = 1.1
# Gradients that nobody clears, of all; beyond the second, no gradient ever is, which is another fault.
_UNUSED: Final = (0.05, 0.99)
# Threads: more for each core, or fewer; smaller operators compute with one.
_MOST_A_CORE: Final = 2
_LEAST_CORES_A_THREAD: Final = 4
_LEAST_OPERATOR_NS: Final = 500_000
_MOST_BUSY: Final = 1.5


def find(profile: Profile) -> Iterator[Cause]:
    """Return the modes that cost time."""
    if not at.judged_total(profile, HOST):
        return
    yield from _anomalies(profile)
    yield from _zeros(profile)
    yield from _unused_gradients(profile)
    yield from _unused_outputs(profile)
    yield from _without_training(profile)
    yield from _threads(profile)
    yield from _checks(profile)


def _anomalies(profile: Profile) -> Iterator[Cause]:
    """Find a backward that looks into every gradient for NaN."""
    is_backward = profile.tree.phase == Phase.BACKWARD
    checks = at.operators(profile, catalogue.operators("anomaly_checks")).mask() & is_backward
    checked = at.outermost(Query(profile, checks))
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    looked = at.operators(profile, catalogue.operators("isnan")).mask() & checked.mask()
    passes = int(calls[made_by_autograd(profile) & is_backward].sum())
    if passes and 2 * calls[looked].sum() >= passes:
        forward = int(profile.exclusive(HOST)[profile.tree.phase == Phase.FORWARD].sum())
        line = backward_line(profile) or at.by_line(checked, HOST)[0]
        yield at_place(
            "detection_of_anomalies",
            line,
            nodes=checked.nodes().tolist(),
            shown=line.nodes,
            value=min(checked.total(HOST, inclusive=True) + forward, total(profile, HOST)),
        )


def _zeros(profile: Profile) -> Iterator[Cause]:
    """Find gradients that are filled with zeros instead of being dropped."""
    zeros = at.scopes(profile, at.ZERO_GRAD_SCOPE)
    if at.operators(profile, catalogue.operators("zeroes")).under(zeros).count():
        value, line = zeros.total(HOST, inclusive=True), at.by_line(zeros, HOST)[0]
        yield at_place("gradients_filled_with_zeros", line, value=value, saved=3 * value)


def _unused_gradients(profile: Profile) -> Iterator[Cause]:
    """Find gradients of parameters that no optimizer updates.

    An optimizer clears the gradients of its own parameters, so that a backward stores new ones; to the
    gradients of others each backward adds. Silent where gradients are filled with zeros, because a backward
    adds to the zeros.
    """
    calls, tree = counts_or_zeros(profile, CALL_DURATION_NS.name), profile.tree
    stores = at.operators(profile, catalogue.operators("stores_gradient"))
    steps = int(calls[at.scopes(profile, STEP_SCOPE).nodes()].sum())
    passes = passes_from_scalars(profile)
    if not stores.count() or min(steps, passes) < _FEWEST or passes > _MOST_PASSES * steps:
        return
    adds = at.operators(profile, catalogue.operators("adds")).mask()
    added = int(calls[adds & stores.mask()[tree.parent.clip(0)]].sum())
    is_backward = tree.phase == Phase.BACKWARD
    fills = at.operators(profile, catalogue.operators("zeroes")).mask() & ~is_backward
    many = at.operators(profile, catalogue.operators("zeroes_many")).count()
    stored = int(calls[stores.nodes()].sum())
    unused = added / max(stored * (1 - 1 / passes), 1)
    line = backward_line(profile)
    if many or 2 * calls[fills].sum() >= added or line is None:
        return
    if _UNUSED[0] <= unused < _UNUSED[1]:
        spent = tree.inclusive(np.where(is_backward, profile.exclusive(HOST), 0))
        backward = int(spent[0])
        # The innermost part of a model with nearly all of the backward.
        parts = np.flatnonzero(profile.is_kind(FrameKind.MODULE) & (5 * spent >= 4 * backward))
        part = int(parts[-1]) if len(parts) and 2 * unused >= 1 else None
        name = "" if part is None else f" (most of it for {_called(profile, part)})"
        evidence: dict[str, int | float | str] = {
            "unused_share": unused,
            "gradients_count": stored // passes,
        }
        yield at_place(
            "unused_gradients",
            line,
            value=round(backward * unused),
            words={"unused": unused, "part": name},
            shown=(*(() if part is None else (part,)), *line.nodes),
            evidence=evidence,
        )


def _called(profile: Profile, module: int) -> str:
    return f"{profile.frame(module).name}, called at {at.place_text(profile, module)}"


def _unused_outputs(profile: Profile) -> Iterator[Cause]:
    """Find modules in a module with a backward that build a graph, and that no backward runs through."""
    if BUILT_GRAPH.name not in profile.metrics or not links_backwards(profile):
        return
    tree, modules = profile.tree, profile.is_kind(FrameKind.MODULE)
    has_backward = tree.at_or_above(tree.phase == Phase.BACKWARD)
    builds = tree.at_or_above(counts_or_zeros(profile, BUILT_GRAPH.name) > 0)
    above = np.where(tree.parent == NO_NODE, NO_NODE, tree.nearest(modules)[tree.parent])
    chosen = modules & builds & ~has_backward & (above != NO_NODE) & has_backward[above]
    for place in at.by_line(Query(profile, chosen), HOST, at.little(profile, HOST)):
        if int(module_calls(profile, np.array(place.nodes)).sum()) >= _FEWEST:
            yield at_place(
                "unused_outputs", place, words={"name": profile.frame(place.nodes[0]).name}
            )


def _without_training(profile: Profile) -> Iterator[Cause]:
    """Find dropout in modules that no backward follows."""
    tree, modules = profile.tree, profile.is_kind(FrameKind.MODULE)
    drops = at.nodes_named(profile, FrameKind.MODULE, lambda name: name.startswith("Dropout"))
    if not drops.count():
        return
    outermost = tree.outermost(modules)
    has_backward = tree.at_or_above(tree.phase == Phase.BACKWARD)
    if has_backward[0] and not has_backward[modules].any():
        return  # a backward that is not linked to its forward
    alone = tree.at_or_below(query_of(profile, outermost[~has_backward[outermost]]).mask())
    drawn = at.operators(profile, catalogue.operators("draws_masks")).mask()
    found = at.outermost(Query(profile, drops.mask() & tree.at_or_above(drawn) & alone))
    if found.count():
        called = np.unique(tree.nearest(modules & ~tree.below(modules))[found.nodes()])
        line = at.by_line(query_of(profile, called), HOST)[0]
        yield at_place(
            "dropout_without_training",
            line,
            nodes=found.nodes().tolist(),
            shown=(*found.nodes().tolist()[:7], line.nodes[0]),
            value=found.total(HOST, inclusive=True),
            words={"name": profile.frame(int(called[0])).name},
        )


def _threads(profile: Profile) -> Iterator[Cause]:
    """Find far more or far fewer threads than processors."""
    settings, run = torch_settings(profile), profile.run
    threads, cores = settings.threads, settings.cores
    if not threads or not cores or at.has_device(profile):
        return
    busy = (run.cpu_user_ns + run.cpu_system_ns) / max(run.wall_ns, 1)
    is_many = threads >= _MOST_A_CORE * cores
    is_few = threads * _LEAST_CORES_A_THREAD <= cores and run.ranks <= 1 and busy <= _MOST_BUSY
    operators = at.outermost(Query(profile, profile.is_kind(FrameKind.OPERATOR))).nodes()
    spent = profile.inclusive(HOST)[operators]
    calls = np.maximum(counts_or_zeros(profile, CALL_DURATION_NS.name)[operators], 1)
    is_long = spent >= (0 if is_many else _LEAST_OPERATOR_NS) * calls
    order = np.argsort(-spent[is_long], kind="stable")
    value = int(spent[is_long].sum())
    if is_many or is_few:
        yield Cause(
            key="too_many_threads" if is_many else "too_few_threads",
            nodes=operators[is_long][order].tolist()[:8],
            metric=HOST,
            value=value,
            words={"threads": threads, "cores": cores},
            evidence={"threads_count": threads, "cores_count": cores},
        )


def _checks(profile: Profile) -> Iterator[Cause]:
    """Find modes for the search for errors that were on at the end of a run with many launches."""
    launches = exclusive_or_zeros(profile, at.JAX_LAUNCHES)
    on = jax_programs.checks(profile) if at.has_jax(profile) else ()
    if not on or launches.sum() < _FEWEST_LAUNCHES:
        return
    programs = Query(profile, launches > 0).kind(FrameKind.OPERATOR)
    lines = at.by_line(programs, at.JAX_LAUNCHES)
    shown = [each.nodes[0] for each in lines if 10 * each.value >= launches.sum()]
    spent = int(exclusive_or_zeros(profile, HOST)[programs.mask()].sum())
    yield Cause(
        key="checks_of_launches",
        nodes=programs.nodes().tolist(),
        shown=shown or lines[0].nodes[:1],
        frame=lines[0].frame,
        metric=HOST,
        value=spent,
        # Computing takes as long as before, which a processor may do before a launch returns.
        saved=max(spent - total(profile, at.DEVICE_TIME), 0),
        words={"modes": ", ".join(on), "value": lines[0].value, "launches": int(launches.sum())},
        evidence={"launches_count": int(launches.sum())},
    )
