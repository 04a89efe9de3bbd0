"""Parts of a program that compute the same in each call, while other parts compute something new.

Matrix products, convolutions and attention are compared with earlier calls by some elements of all their
inputs, weights too, in short windows and on the host. Invariant: what varies ran at the same time, so that a
benchmark that repeats one call is no finding. Does not judge weights that are built (`built_weights.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    COMPARISON_WINDOW,
    HOST_TIME_NS,
    REPEATED_INPUTS,
)
from deepcontext.profiler.model.metric_values import exclusive_or_zeros, total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Mask = source_locations.Mask

_LEAST_SHARE: Final = 0.2
# Of one operator, with earlier calls; and of all in one part.
_LEAST_COMPARED: Final = 3
_LEAST_IN_PART: Final = 8
# The first calls with a new input differ, as in an encoder that runs for each step of a decoder.
_LEAST_SAME: Final = 0.4
_MOST_SAME_OF_VARYING: Final = 0.25
# Of the time of a part's compared operators; the others are too seldom in a window.
_LEAST_OF_PART: Final = 0.9
# Time of what varies meanwhile, by the time of what does not.
_LEAST_VARYING: Final = 0.1


def repeated_inputs(profile: Profile) -> list[Finding]:
    """Return a finding for each line that computes the same again and again."""
    metric = HOST_TIME_NS.name
    if not {COMPARISON_WINDOW.name, REPEATED_INPUTS.name, metric} <= set(profile.metrics):
        return []
    parts = _parts(profile)
    least = _LEAST_SHARE * total(profile, metric)
    locations = source_locations.by_line(Query(profile, parts), metric)
    return [_finding(profile, parts, location) for location in locations if location.value >= least]


def _parts(profile: Profile) -> Mask:
    """Return the outermost calls whose compared operators repeat their inputs, shape (nodes,)."""
    tree = profile.tree
    compared = _Compared(profile)
    same, varying = compared.same(), compared.varying()
    value = np.where(compared.outermost, profile.inclusive(HOST_TIME_NS.name), 0)
    of_same, of_all = tree.inclusive(np.where(same, value, 0)), tree.inclusive(value)
    of_varying = tree.inclusive(np.where(varying, value, 0))
    seen = tree.inclusive(np.where(same, compared.count, 0))
    parts = (of_same > 0) & (of_same >= _LEAST_OF_PART * of_all) & (of_varying == 0)
    parts &= (seen >= _LEAST_IN_PART) & ~profile.is_kind(FrameKind.ROOT, FrameKind.THREAD)
    outermost = np.zeros(len(tree), np.bool_)
    for node in tree.outermost(parts).tolist():
        inside = slice(node, int(tree.subtree_end[node]))
        own = same[inside]
        low = int(compared.first[inside][own].min())
        high = int(compared.last[inside][own].max())
        middle = (low + high) / 2
        meanwhile = varying & (compared.first <= middle) & (compared.last >= middle)
        is_beside = int(value[meanwhile].sum()) >= _LEAST_VARYING * int(of_same[node])
        outermost[node] = low < high and is_beside
    return outermost


class _Compared:
    """Operators whose inputs were compared, outermost ones, and the windows in which this was done.

    Attributes:
        outermost: whether a node is one of them, shape (nodes,), as all others.
        count: number of comparisons.
        first: number of the first window, and `last` of the last one.
    """

    def __init__(self, profile: Profile) -> None:
        rows = profile.metrics[COMPARISON_WINDOW.name]
        nodes = len(profile.tree)
        self.count = np.zeros(nodes, np.int64)
        self.first = np.zeros(nodes, np.int64)
        self.last = np.zeros(nodes, np.int64)
        self.count[rows.node] = rows.count
        if rows.minimum is not None and rows.maximum is not None:
            self.first[rows.node], self.last[rows.node] = rows.minimum, rows.maximum
        is_forward = ~np.isin(profile.tree.phase, (Phase.BACKWARD, Phase.OPTIMIZER))
        looked = Query(profile, (self.count > 0) & is_forward)
        self.outermost = source_locations.outermost(looked).mask()
        self._repeated = exclusive_or_zeros(profile, REPEATED_INPUTS.name)
        self._is_known = self.outermost & (self.count >= _LEAST_COMPARED)

    def same(self) -> Mask:
        """Return which operators often had the inputs of an earlier call."""
        return self._is_known & (self._repeated >= _LEAST_SAME * self.count)

    def varying(self) -> Mask:
        """Return which operators seldom had them."""
        return self._is_known & (self._repeated <= _MOST_SAME_OF_VARYING * self.count)


def _finding(profile: Profile, parts: Mask, location: source_locations.Location) -> Finding:
    metric = HOST_TIME_NS.name
    whole = total(profile, metric)
    share = location.value / whole
    inside = profile.tree.at_or_below(_mask(profile, location.nodes) & parts)
    compared = int(_Compared(profile).count[inside].sum())
    repeated = int(exclusive_or_zeros(profile, REPEATED_INPUTS.name)[inside].sum())
    where = source_locations.location_text(profile, location.frame)
    return Finding(
        id="model_calls",
        severity=Severity.of_share(share),
        title=(
            f"{where} computes the same again and again{_modules(profile, inside)}: {repeated} of {compared} "
            f"compared operators had the inputs of an earlier call, {share:.0%} of the time in operators"
        ),
        nodes=location.nodes[:8],
        evidence={
            "host_time_ns": location.value,
            "time_share": share,
            "compared_count": compared,
            "repeated_count": repeated,
        },
        gain=source_locations.bound(profile, metric, location.value, "it is computed once"),
        advice=(
            "compute it once before the loop and pass the result on: what an encoder makes of a prompt, the "
            "features of a frozen model, the keys and values of states that do not change, a product of "
            "constants"
        ),
        misleads=(
            "the program repeats one input on purpose; inputs that differ in a few elements only look the "
            "same, because at most 32 elements of each tensor are compared"
        ),
    )


def _modules(profile: Profile, inside: Mask) -> str:
    """Return `` (TextEncoder)``, the outermost modules among some nodes; "" if there are none."""
    modules = Query(profile, inside & profile.is_kind(FrameKind.MODULE))
    names = {
        source_locations.without_inner(profile.frame(node).name)
        for node in source_locations.outermost(modules).nodes().tolist()
    }
    return f" ({', '.join(sorted(names)[:3])})" if names else ""


def _mask(profile: Profile, nodes: tuple[int, ...]) -> Mask:
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[list(nodes)] = True
    return mask
