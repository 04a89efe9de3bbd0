"""Gradients of parameters that no optimizer updates: frozen parts of a model that still require gradients.

An optimizer clears the gradients of its own parameters, so that a backward stores new ones. The gradients of
others stay, and each backward adds to them. Where every backward is followed by a step, nothing is meant to
be added. Invariant: silent where gradients are filled with zeros, because a backward adds to the zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.backward_passes import backward_line, passes_from_scalars
from deepcontext.analyzers.shared.called_operators import called_modules
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.steps import STEP_SCOPE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints

_ACCUMULATES: Final = "torch::autograd::AccumulateGrad"
# Steps, and backward passes.
_FEWEST: Final = 5
# Passes for each step of an optimizer; with accumulation there are several.
_MOST_PASSES: Final = 1.1
# Of a module's backward, for the parts below it to be named instead.
_MOST_OF: Final = 0.8
# Of all gradients: beyond this, no gradient is ever cleared, which is another fault.
_ALL: Final = 0.99
_LEAST: Final = 0.05
_LEAST_TO_NAME: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Gradients:
    """Gradients that backwards stored for parameters.

    Attributes:
        stored: how many, over all passes.
        added: those among them that were added to the gradients of an earlier pass.
        passes: backward passes.
    """

    stored: int
    added: int
    passes: int

    @property
    def unused_share(self) -> float:
        """Share of the parameters with gradients whose gradients nobody clears, 0 to 1."""
        return self.added / max(self.stored * (1 - 1 / self.passes), 1)


def unused_gradients(profile: Profile) -> list[Finding]:
    """Return at most one finding."""
    gradients = _gradients(profile)
    if gradients is None or not _LEAST <= gradients.unused_share < _ALL:
        return []
    spent = _backward_time(profile)
    module = _module(profile, spent) if gradients.unused_share >= _LEAST_TO_NAME else None
    saved = round(_unused_time(profile, gradients.unused_share, spent, module))
    if saved < _LEAST * total(profile, HOST_TIME_NS.name):
        return []
    return [_finding(profile, gradients, module, saved)]


def _gradients(profile: Profile) -> _Gradients | None:
    """Return how gradients were stored; None where a backward may add to gradients on purpose."""
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    tree = profile.tree
    stores = source_locations.operators(profile, {_ACCUMULATES})
    steps = int(calls[source_locations.scopes(profile, STEP_SCOPE).nodes()].sum())
    passes = passes_from_scalars(profile)
    if not stores.count() or min(steps, passes) < _FEWEST or passes > _MOST_PASSES * steps:
        return None
    adds = source_locations.operators(profile, {"aten::add_", "aten::add"}).mask()
    adds &= stores.mask()[tree.parent.clip(0)]
    fills = source_locations.operators(profile, {"aten::zero_", "aten::_foreach_zero_"}).mask()
    added = int(calls[adds].sum())
    filled = int(calls[fills & (tree.phase != Phase.BACKWARD)].sum())
    foreach = source_locations.operators(profile, {"aten::_foreach_zero_"}).count()
    if foreach or 2 * filled >= added:
        return None
    return _Gradients(int(calls[stores.nodes()].sum()), added, passes)


def _backward_time(profile: Profile) -> Ints:
    """Return the time of backward operators, ns, with descendants, shape (nodes,)."""
    tree = profile.tree
    spent = profile.exclusive(HOST_TIME_NS.name)
    return tree.inclusive(np.where(tree.phase == Phase.BACKWARD, spent, 0))


def _module(profile: Profile, spent: Ints) -> int | None:
    """Return the part of the model with nearly all of the backward, beside other parts; None without one."""
    tree = profile.tree
    models = [int(each) for each in called_modules(profile) if spent[each]]
    if len(models) != 1:
        return None
    modules = profile.is_kind(FrameKind.MODULE)
    above = np.where(tree.parent == NO_NODE, NO_NODE, tree.nearest(modules)[tree.parent])
    parts = np.flatnonzero(modules & (spent > 0))
    at = models[0]
    while True:
        inside = parts[above[parts] == at]
        if not len(inside):
            return None
        most = int(inside[np.argmax(spent[inside])])
        if spent[most] < _MOST_OF * spent[at]:
            return None
        if len(inside) > 1:
            return most
        at = most


def _unused_time(profile: Profile, share: float, spent: Ints, module: int | None) -> float:
    """Return the time that a backward without the unused gradients saves at most, ns."""
    if module is None:
        return int(spent[0]) * share
    stores = source_locations.operators(profile, {_ACCUMULATES}).nodes()
    return int(spent[module]) + int(spent[stores].sum()) * share


def _finding(profile: Profile, gradients: _Gradients, module: int | None, saved: int) -> Finding:
    line = backward_line(profile)
    share = saved / total(profile, HOST_TIME_NS.name)
    where = source_locations.location_text(profile, line.frame if line else None)
    part = "" if module is None else f" (most of it for {_place(profile, module)})"
    return Finding(
        id="settings",
        severity=Severity.of_share(share),
        title=(
            f"{gradients.unused_share:.0%} of the gradients that the backward at {where} computes{part} are "
            f"of parameters that no optimizer updates: up to {share:.0%} of the time in operators"
        ),
        nodes=(() if module is None else (module,)) + (line.nodes[:7] if line else ()),
        evidence={
            "unused_share": gradients.unused_share,
            "gradients_count": gradients.stored // gradients.passes,
            "backward_passes_count": gradients.passes,
        },
        gain=source_locations.bound(
            profile, HOST_TIME_NS.name, saved, "these parameters need no backward"
        ),
        advice=(
            "freeze them: requires_grad_(False) for parameters that are not trained; if nothing before them "
            "is trained either, call that part of the model under torch.no_grad()"
        ),
        misleads=(
            "their gradients are read in another way, or are to be added up over many steps before an update"
        ),
    )


def _place(profile: Profile, module: int) -> str:
    top = int(source_locations.climb(profile, np.array([module]), profile.is_user_code())[0])
    frame = None if top == NO_NODE else profile.frame(top)
    return (
        f"{profile.frame(module).name}, called at {source_locations.location_text(profile, frame)}"
    )
