"""How often the program's functions call its modules, and which calls are for one sample each.

A sample comes from a loop over a tensor (`unbind`), and gets its batch dimension from `unsqueeze` (`x[None]`)
in the function that calls the module. Does not report (`model_calls.py`). Invariant: loops whose next input
depends on the result (a policy, a recurrent state) are no batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import (
    NO_FUNCTION,
    called_modules,
    module_calls,
)
from deepcontext.analyzers.shared.places import Places
from deepcontext.analyzers.shared.repeated_work import steps_or_passes
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.basis import basis_of

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Mask = source_locations.Mask

# Of the time in operators.
LEAST_SHARE: Final = 0.15
_LEAST_SAMPLES: Final = 100
# In a training step; some models are called for a few inputs in a step.
_LEAST_SAMPLES_A_STEP: Final = 8
# Operators of batches, or of large samples, take longer; shorter ones are mostly their call.
_MOST_OPERATOR_NS: Final = 50_000
_CELLS: Final = ("lstm", "gru", "rnn")


@dataclass(frozen=True, slots=True)
class Model:
    """A module that a function of the user's calls, outside of other modules.

    Attributes:
        node: the module.
        calls: how often it was called.
        calls_a_step: the same in a training step; all calls, if no backward follows the module.
        has_backward: whether a backward follows it.
        value: its time in operators, ns.
        function: number of the function.
    """

    node: int
    calls: int
    calls_a_step: float
    has_backward: bool
    value: int
    function: int


def models(places: Places, least: float) -> list[Model]:
    """Return the modules called outside of modules that take `least` ns in operators, the costliest first."""
    profile, of_node = places.profile, places.function
    tree = profile.tree
    value = profile.inclusive(HOST_TIME_NS.name)
    modules = called_modules(profile)
    modules = modules[(value[modules] >= least) & (of_node[modules] != NO_FUNCTION)]
    steps = max(steps_or_passes(profile), 1)
    found = []
    for node, calls in zip(modules.tolist(), module_calls(profile, modules).tolist(), strict=True):
        inside = tree.phase[node : int(tree.subtree_end[node])]
        is_trained = bool((inside == Phase.BACKWARD).any())
        a_step = calls / steps if is_trained else float(calls)
        found.append(Model(node, calls, a_step, is_trained, int(value[node]), int(of_node[node])))
    return found


def takes_single_samples(places: Places, model: Model) -> bool:
    """Return whether each call is for one sample that does not depend on the sample before."""
    least = _LEAST_SAMPLES_A_STEP if model.has_backward else _LEAST_SAMPLES
    if model.calls < _LEAST_SAMPLES or model.calls_a_step < least:
        return False
    if places.count("adds_batch", model.function) < model.calls:
        return False
    # Once, before the loop, which may be before the steady state.
    whole = Places.of(basis_of(places.profile).whole)
    if not whole.count("takes_rows", model.function):
        return False
    # The next input may depend on a value that was read, drawn or appended.
    depends = places.count("picks reads_value joins", model.function)
    names, mean_ns = _operators_of(places.profile, model)
    is_recurrent = any(cell in name for name in names for cell in _CELLS)
    return 2 * depends < model.calls and not is_recurrent and mean_ns <= _MOST_OPERATOR_NS


def _operators_of(profile: Profile, model: Model) -> tuple[set[str], float]:
    """Return the names of a module's operators, and how long the outermost take at best, ns each."""
    inside = np.zeros(len(profile.tree), np.bool_)
    inside[model.node : int(profile.tree.subtree_end[model.node])] = True
    outermost = source_locations.outermost(Query(profile, inside).kind(FrameKind.OPERATOR)).nodes()
    names = {source_locations.base_name(profile.frame(node).name) for node in outermost.tolist()}
    rows = profile.metrics[CALL_DURATION_NS.name]
    of_model = np.isin(rows.node, outermost)
    calls = rows.count[of_model].astype(np.int64)
    shortest = rows.total[of_model] if rows.minimum is None else rows.minimum[of_model] * calls
    return names, int(shortest.sum()) / max(int(calls.sum()), 1)


def functions_with_single_samples(profile: Profile) -> Mask:
    """Return which nodes belong to functions that run a module on one sample at a time, shape (nodes,)."""
    if CALL_DURATION_NS.name not in profile.metrics:
        return np.zeros(len(profile.tree), np.bool_)
    places = Places.of(profile)
    found = [
        model.function
        for model in models(places, LEAST_SHARE * total(profile, HOST_TIME_NS.name))
        if takes_single_samples(places, model)
    ]
    return np.asarray(np.isin(places.function, found))
