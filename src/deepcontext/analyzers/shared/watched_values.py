"""Statistics that a training computes in each step only to write them down: histograms and quantiles.

Recognised by operators that hardly any model computes with, and by values that the same function reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import called_by_user, functions_of_nodes
from deepcontext.analyzers.shared.repeated_lines import has_steps
from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.steps import step_count

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.1
_STATISTICS: Final = frozenset({
    "aten::histogram",
    "aten::histc",
    "aten::quantile",
    "aten::nanquantile",
})
# `tensor.tolist()` and `tensor.numpy()` first resolve views of conjugates and negatives.
_READS: Final = frozenset({"aten::item", "aten::resolve_conj", "aten::resolve_neg"})


def watched_values(profile: Profile) -> list[Finding]:
    """Return a finding for each line that computes statistics of a training in each step."""
    metric = HOST_TIME_NS.name
    whole = source_locations.judged_total(profile, metric)
    if not whole or not has_steps(profile) or CALL_DURATION_NS.name not in profile.metrics:
        return []
    functions = functions_of_nodes(profile)
    called = called_by_user(profile)
    reads = source_locations.operators(profile, _READS).mask() & called
    chosen = source_locations.operators(profile, _STATISTICS).mask() & called
    chosen &= np.isin(functions, functions[reads]) & (profile.tree.phase != Phase.BACKWARD)
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    found = []
    for location in source_locations.by_line(Query(profile, chosen), metric):
        share = location.value / total(profile, metric)
        number = int(calls[list(location.nodes)].sum())
        if share < _LEAST_SHARE or number < step_count(profile):
            continue
        name = source_locations.base_name(profile.frame(location.nodes[0]).name)
        where = source_locations.location_text(profile, location.frame)
        found.append(
            Finding(
                id="host_work",
                severity=Severity.of_share(share),
                title=(
                    f"'{name}' at {where} is computed {number / step_count(profile):.0f} times a step, for "
                    f"values that Python reads, {share:.0%} of the time in operators"
                ),
                nodes=location.nodes[:8],
                evidence={
                    "host_time_ns": location.value,
                    "time_share": share,
                    "calls_count": number,
                },
                gain=source_locations.bound(
                    profile, metric, location.value, "the values are seldom computed"
                ),
                advice=(
                    "watch and log statistics such as histograms once in many steps (every=100), or of a few "
                    "parameters"
                ),
                misleads="the program decides by these values in each step",
            )
        )
    return found
