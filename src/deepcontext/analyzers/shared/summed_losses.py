"""Batches that are handled in parts, whose losses are summed before the one backward.

Parts save memory only if each has its own backward. Recognised by activations of several calls of a module
that are alive at once, in a function that computes a loss for each call. A profile does not record whether
a part needs results of the part before, so that a function which splits a tensor is judged more strictly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import has_called_module
from deepcontext.analyzers.shared.model_runs import Functions, Model, functions_of, models
from deepcontext.analyzers.shared.operator_names import LOSSES, SPLITS
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# Of the memory at the peak.
_LEAST_SHARE: Final = 0.5
# Two or three calls compare their results (a contrastive loss, a discriminator).
_LEAST_PARTS: Final = 4
_LEAST_LOSSES: Final = 0.9
_ADDS: Final = frozenset({"aten::add", "aten::add_"})
_CELLS: Final = ("lstm", "gru", "rnn")


def summed_losses(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    """Return a finding for each module whose calls all wait for one backward.

    Args:
        profile: the profile.
        prefix: "" for the memory of the host, "gpu_" for that of devices.
        peak: most bytes held at once.
    """
    metric = f"{prefix}peak_activation_bytes"
    if metric not in profile.metrics or HOST_TIME_NS.name not in profile.metrics:
        return []
    in_use, least = f"{prefix}peak_bytes", _LEAST_SHARE * peak
    if not has_called_module(profile, in_use, least):  # before more of the profile is read
        return []
    functions = functions_of(profile)
    found = []
    for model in models(profile, functions.of_node, least, in_use):
        if not model.has_backward:
            continue
        inside = slice(model.node, int(profile.tree.subtree_end[model.node]))
        held = int(profile.exclusive(metric)[inside].sum())
        parts = _calls_alive(profile, in_use, model)
        if held < least or parts < _LEAST_PARTS:
            continue
        if _has_own_losses(profile, functions, model):
            is_split = functions.count(SPLITS, model.function) > 0
            found.append(_finding(profile, metric, model, (held, peak, parts), is_split=is_split))
    return found


def _calls_alive(profile: Profile, metric: str, model: Model) -> int:
    """Return of how many calls of a module the same result is alive at the peak.

    Most operators of a module run once in a call, so the most frequent number counts.
    """
    inside = slice(model.node, int(profile.tree.subtree_end[model.node]))
    pieces = counts_or_zeros(profile, metric)[inside]
    numbers, often = np.unique(pieces[pieces > 0], return_counts=True)
    return int(numbers[often.argmax()]) if len(numbers) else 0


def _has_own_losses(profile: Profile, functions: Functions, model: Model) -> bool:
    """Return whether the function that calls a module computes and adds up a loss for each call."""
    least = _LEAST_LOSSES * model.calls
    tree = profile.tree
    losses = source_locations.operators(profile, LOSSES).nodes()
    losses = losses[functions.of_node[losses] == model.function]
    modules = tree.nearest(profile.is_kind(FrameKind.MODULE))
    of_function = int(functions.calls[losses].sum())
    added = functions.count(_ADDS, model.function)
    inside = slice(model.node, int(tree.subtree_end[model.node]))
    names = {
        source_locations.base_name(profile.frame(node).name)
        for node in np.unique(modules[inside]).tolist()
        if node != NO_NODE
    }
    is_recurrent = any(cell in name.lower() for name in names for cell in _CELLS)
    return of_function >= least and added >= least and not is_recurrent


def _finding(
    profile: Profile, metric: str, model: Model, held: tuple[int, int, int], *, is_split: bool
) -> Finding:
    size, peak, parts = held
    owner = source_locations.climb(profile, np.array([model.node]), profile.is_user_code())
    where = source_locations.location_text(profile, profile.frame(int(owner[0])))
    share = size / peak
    saved = size * (parts - 1) // parts
    return Finding(
        id="memory",
        severity=Severity.HIGH if is_split else Severity.INFO,
        title=(
            f"the graphs of {parts} calls of {profile.frame(model.node).name} at {where} wait for one "
            f"backward, {share:.0%} of the memory at the peak"
        ),
        nodes=(model.node,),
        evidence={metric: size, "peak_share": share, "parts_count": parts},
        gain=Gain(metric, saved, saved / peak, "one graph is held at a time"),
        advice=(
            "call backward for the loss of each part, which adds to the gradients, and sum numbers "
            "(loss.detach()); the parts' activations are then freed one after the other"
        ),
        misleads="a part needs the results of the part before (a rollout, a recurrent state)",
    )
