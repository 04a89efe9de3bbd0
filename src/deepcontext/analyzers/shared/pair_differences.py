"""Distances of all pairs that are computed from the differences of all pairs.

A function that broadcasts two tensors against each other, subtracts them and reduces the result writes all
coordinates of all differences, and keeps them for the backward; `torch.cdist` writes the distances alone.
Invariant: differences that the same function uses for something else are no finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import (
    NO_FUNCTION,
    called_by_user,
    functions_of_nodes,
)
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Mask = source_locations.Mask

_HOST: Final = HOST_TIME_NS.name
_ALLOCATED: Final = "alloc_bytes"
_LEAST_SHARE: Final = 0.15
_SUBTRACTS: Final = frozenset({"aten::sub"})
_BROADCASTS: Final = frozenset({"aten::unsqueeze"})
_POWERS: Final = frozenset({"aten::pow", "aten::square", "aten::abs"})
_NORMS: Final = frozenset({"aten::linalg_vector_norm", "aten::norm"})
_SUMS: Final = frozenset({"aten::sum"})
# Both operands get a dimension: otherwise one may be a single point, as in the distance from a mean.
_BROADCASTS_A_DIFFERENCE: Final = 2
# Coordinates of a point: bytes of the differences divided by those of the distances.
_FEWEST_COORDINATES: Final = 1.9
_MOST_COORDINATES: Final = 4096
# Distances of 64 x 64 pairs in float32: fewer cost mostly their calls.
_LEAST_BYTES: Final = 16384


def pair_differences(profile: Profile) -> list[Finding]:
    """Report the functions that make the differences of all pairs for their distances."""
    if _ALLOCATED not in profile.metrics:
        return []
    least = _LEAST_SHARE * total(profile, _HOST)
    called = called_by_user(profile) & profile.is_kind(FrameKind.OPERATOR)
    function = functions_of_nodes(profile)
    subtracts, reduces = (
        source_locations.operators(profile, names).mask() & called
        for names in (_SUBTRACTS, _NORMS | _SUMS)
    )
    both = np.intersect1d(function[subtracts], function[reduces])
    found = []
    for number in both[both != NO_FUNCTION].tolist():
        parts = _parts(profile, called & (function == number))
        if parts is None:
            continue
        places = source_locations.by_function(Query(profile, parts), _HOST, least)
        found += [_finding(profile, parts, place) for place in places[:1]]
    return found


def _parts(profile: Profile, here: Mask) -> Mask | None:
    """Return which operators of a function make differences and distances, None if it does not."""
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    size = source_locations.forward_inclusive(profile, _ALLOCATED) / np.maximum(calls, 1)

    def of(names: frozenset[str]) -> Mask:
        return source_locations.operators(profile, names).mask() & here

    subtracts, powers = of(_SUBTRACTS), of(_POWERS)
    largest = float(size[subtracts].max(initial=0))
    if not largest:
        return None
    # Other subtractions of the function are of smaller tensors.
    subtracts &= size >= largest
    powers &= size >= largest
    reduces = of(_NORMS) | (of(_SUMS) if powers.any() else np.zeros_like(here))
    ratio = largest / np.maximum(size, 1)
    reduces &= (
        (ratio >= _FEWEST_COORDINATES) & (ratio <= _MOST_COORDINATES) & (size >= _LEAST_BYTES)
    )
    parts: Mask = subtracts | powers | reduces
    others = here & ~profile.tree.at_or_below(parts)
    is_used = bool((size[others] >= largest).any())
    broadcasts = int(calls[of(_BROADCASTS)].sum())
    is_pairs = broadcasts >= _BROADCASTS_A_DIFFERENCE * int(calls[subtracts].sum())
    return parts if reduces.any() and is_pairs and not is_used else None


def _finding(profile: Profile, parts: Mask, place: source_locations.Location) -> Finding:
    share = place.value / total(profile, _HOST)
    # The line of the subtraction, which is costly because of what it writes.
    line = source_locations.by_line(
        Query(profile, parts & source_locations.operators(profile, _SUBTRACTS).mask()), _HOST
    )[0]
    where = source_locations.location_text(profile, line.frame)
    return Finding(
        id="kernel_fusion",
        severity=Severity.of_share(share),
        title=(
            f"distances of all pairs are computed from all differences, made at {where}, {share:.0%} of "
            "the time in operators"
        ),
        nodes=(*line.nodes[:2], *place.nodes[:6]),
        evidence={"pairs_ns": place.value, "pairs_share": share, "calls_count": line.count},
        gain=source_locations.bound(profile, _HOST, place.value, "the distances cost nothing"),
        advice=(
            "use torch.cdist(a, b) (p=1.0 for sums of absolute values; .square() for squares), which "
            "writes the distances alone and keeps no differences for the backward; for many coordinates "
            "it multiplies matrices"
        ),
        misleads=(
            "another function uses the differences, too; cdist multiplies matrices for more than 25 "
            "points, which is less precise for points that nearly coincide "
            "(compute_mode='donot_use_mm_for_euclid_dist')"
        ),
    )
