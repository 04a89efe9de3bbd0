"""What to use in place of a costly operator, and who calls it: for `cheaper_operator.py`.

Does not decide whether an operator is replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import (
    NO_FUNCTION,
    called_by_user,
    functions_of_nodes,
)
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Mask = source_locations.Mask

_LEAST_SHARE: Final = 0.1
_LEAST_NS: Final = 50_000_000


class Cheaper(NamedTuple):
    """What to use in place of an operator.

    Attributes:
        what: in the title, after the line.
        advice: what to write.
        misleads: when not.
    """

    what: str
    advice: str
    misleads: str


class Calls:
    """The operators that functions of the user's code call themselves, forward."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.function = functions_of_nodes(profile)
        called = called_by_user(profile) & profile.is_kind(FrameKind.OPERATOR)
        self.called = called & (profile.tree.phase != Phase.BACKWARD)
        self.number = counts_or_zeros(profile, CALL_DURATION_NS.name)

    def of(self, accepts: set[str] | frozenset[str] | Callable[[str], bool]) -> Mask:
        """Return which of them have these names, shape (nodes,)."""
        mask: Mask = source_locations.operators(self.profile, accepts).mask() & self.called
        return mask

    def count(self, which: Mask, function: int) -> int:
        """Return how often a function calls some of them."""
        return int(self.number[which & (self.function == function)].sum())

    def functions(self, which: Mask) -> list[int]:
        """Return the functions that call some of them."""
        found: list[int] = np.unique(self.function[which]).tolist()
        return [each for each in found if each != NO_FUNCTION]


def findings(
    profile: Profile, chosen: Mask, cheaper: Cheaper, also: Mask | None = None
) -> list[Finding]:
    """Return a finding for each line whose chosen operators take much of the time.

    Args:
        profile: the profile.
        chosen: the operators, shape (nodes,).
        cheaper: what to say.
        also: operators that cost less, too, where a finding is in their function, shape (nodes,).
    """
    metric = HOST_TIME_NS.name
    function = functions_of_nodes(profile)
    whole = total(profile, metric)
    found = []
    for location in source_locations.by_line(Query(profile, chosen), metric):
        share = location.value / whole
        if share < _LEAST_SHARE or location.value < _LEAST_NS:
            continue
        where = source_locations.location_text(profile, location.frame)
        spent = location.value
        if also is not None:
            inside = also & (function == function[location.nodes[0]])
            inside[list(location.nodes)] = True
            spent = int(profile.inclusive(metric)[inside].sum())
        found.append(
            Finding(
                id="cheaper_operator",
                severity=Severity.of_share(share),
                title=f"{where} {cheaper.what}, {share:.0%} of the time in operators",
                nodes=location.nodes[:8],
                evidence={
                    "host_time_ns": location.value,
                    "time_share": share,
                    "calls_count": location.count,
                },
                gain=source_locations.bound(
                    profile, metric, spent, "the cheaper operator costs nothing"
                ),
                advice=cheaper.advice,
                misleads=cheaper.misleads,
            )
        )
    return found
