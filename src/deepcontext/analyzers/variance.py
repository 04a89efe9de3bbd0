"""Variance: calls on one path that are usually quick and sometimes very slow.

The slowest call is left out before judging, because in nearly every program the first call is the
slowest. Durations do not tell why calls differ: inputs of two sizes, as in prefill and decode, look like
stalls. The analyzer therefore makes a statement only about calls with the same shapes, or calls of a
loader without workers; otherwise it asks one question for the whole program, without a gain. A loader with
workers is uneven by design: batches that are ready cost nothing, and the first batch of each epoch is not
ready. `data_loading` judges how long a program waits for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.operator_names import INDEX_BY_MASK
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.operator_inputs import has_inputs
from deepcontext.profiler.model.recorded_operators import has_shapes
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.collectives import collective_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.profile import Profile

_LEAST_CALLS: Final = 20
# A loader without workers; unlike operators, it may wait for a disk or a network.
_LOADS_HERE: Final = f"{source_locations.LOADER_SCOPE}_SingleProcess"
_LEAST_SHARE: Final = 0.15
# Standard deviation divided by mean; 1.4 if one call of ten takes ten times as long as the others.
_LEAST_SPREAD: Final = 1.25
# A call that loses its core waits for a few scheduler slices of some ms each, which is no fault of the
# program, so smaller deviations are not judged.
_LEAST_DEVIATION_NS: Final = 10_000_000


def _find(profile: Profile) -> list[Finding]:
    whole = source_locations.judged_total(profile, HOST_TIME_NS.name)
    rows = profile.metrics.get(CALL_DURATION_NS.name)
    if not whole or rows is None or rows.m2 is None or rows.maximum is None or rows.minimum is None:
        return []
    deviation, mean = _without_slowest(rows)
    spread = deviation / np.maximum(mean, 1.0)
    uneven = (rows.count >= _LEAST_CALLS) & (spread >= _LEAST_SPREAD)
    uneven &= deviation >= _LEAST_DEVIATION_NS
    uneven &= rows.total >= _LEAST_SHARE * whole
    uneven &= ~_while_compiling(profile)[rows.node]
    uneven &= ~collective_nodes(profile)[rows.node]  # they wait for a rank that others name
    is_loading = source_locations.scopes(profile, source_locations.LOADER_SCOPE).mask()[rows.node]
    loads_here = source_locations.scopes(profile, _LOADS_HERE).mask()[rows.node]
    uneven &= loads_here | ~is_loading
    if source_locations.crowded_ns(profile):
        uneven &= loads_here | (_excess(rows) > _waited_ns(profile))
    nodes = _innermost(profile, rows, uneven)
    alike = {node for node in nodes if _is_shaped(profile, node) or _is_loading(profile, node)}
    found = [_statement(profile, rows, row) for node, row in nodes.items() if node in alike]
    others = (
        {} if has_shapes(profile.frames) else {n: r for n, r in nodes.items() if n not in alike}
    )
    return [*found, *_question(profile, rows, others)]


def _innermost(profile: Profile, rows: MetricRows, uneven: source_locations.Mask) -> dict[int, int]:
    """Return node and row of the innermost uneven paths, because these make their callers uneven."""
    found, covered = {}, np.zeros(len(profile.tree), np.bool_)
    for row in np.flatnonzero(uneven)[::-1].tolist():
        node = int(rows.node[row])
        if not covered[node]:
            found[node] = row
        covered[list(profile.tree.path(node))] = True
    return found


def _is_shaped(profile: Profile, node: int) -> bool:
    """Return whether all calls had the shapes in the operator's name (``--shapes``)."""
    name = profile.frame(node).name
    # Index tensors are passed as a list, whose shapes are not recorded.
    return has_inputs(name) and source_locations.base_name(name) not in INDEX_BY_MASK


def _is_loading(profile: Profile, node: int) -> bool:
    frame = profile.frame(node)
    return frame.kind is FrameKind.SCOPE and frame.name.startswith(_LOADS_HERE)


def _waited_ns(profile: Profile) -> int:
    """Return the time in which the process had no processor, for any reason."""
    return profile.run.wall_ns - profile.run.cpu_user_ns - profile.run.cpu_system_ns


def _excess(rows: MetricRows) -> source_locations.Ints:
    """Return by how much the calls exceed the shortest call in total, ns, shape (rows,)."""
    assert rows.minimum is not None  # noqa: S101  asked by the caller
    return np.asarray(rows.total - rows.count * rows.minimum)


def _without_slowest(rows: MetricRows) -> tuple[source_locations.Floats, source_locations.Floats]:
    """Return standard deviation and mean of all calls but the slowest, ns, shape (rows,) each."""
    assert rows.m2 is not None  # noqa: S101  asked by the caller
    assert rows.maximum is not None  # noqa: S101
    count = rows.count.astype(np.float64)
    mean = rows.total / np.maximum(count, 1)
    others = np.maximum(count - 1, 1)
    # Source: Welford's update, run backwards.
    mean_without = (rows.total - rows.maximum) / others
    m2 = rows.m2 - (rows.maximum - mean) * (rows.maximum - mean_without)
    deviation = np.sqrt(np.maximum(m2, 0.0) / np.maximum(count - 2, 1))
    return deviation, mean_without


def _while_compiling(profile: Profile) -> source_locations.Mask:
    marked = source_locations.compiling(profile).mask()
    return profile.tree.at_or_above(marked) | profile.tree.below(marked)


def _statement(profile: Profile, rows: MetricRows, row: int) -> Finding:
    assert rows.minimum is not None  # noqa: S101  asked by the caller
    node, count, spent = int(rows.node[row]), int(rows.count[row]), int(rows.total[row])
    share = spent / total(profile, HOST_TIME_NS.name)
    return Finding(
        id="variance",
        severity=Severity.of_share(share / 2),
        title=f"{_place(profile, node)} is sometimes much slower than usual",
        nodes=(node,),
        evidence=_evidence(profile, rows, row),
        gain=source_locations.bound(
            profile,
            HOST_TIME_NS.name,
            spent - count * int(rows.minimum[row]),
            "every call takes as long as the shortest call",
        ),
        advice=(
            "some batches take longer than others: prepare them ahead, or use workers and a larger "
            "prefetch_factor"
            if _is_loading(profile, node)
            else "find what differs in the slow calls, whose input tensors have the same shapes: "
            "values and numbers that decide how much is computed, denormal numbers, other programs on "
            "the same cores"
        ),
        misleads="the machine was busy with other programs; batches are of different sizes",
    )


def _question(profile: Profile, rows: MetricRows, nodes: Mapping[int, int]) -> list[Finding]:
    if not nodes:
        return []
    costliest = sorted(nodes, key=lambda node: -int(rows.total[nodes[node]]))
    node, *others = costliest
    more = f" (and {len(others)} more paths)" if others else ""
    return [
        Finding(
            id="variance",
            severity=Severity.INFO,
            title=(
                f"{_place(profile, node)} is sometimes much slower than usual{more}: do the sizes "
                "of its inputs differ?"
            ),
            nodes=tuple(costliest[:8]),
            evidence=_evidence(profile, rows, nodes[node]),
            advice=(
                "record again with --shapes: calls of different sizes (prefill and decode, a last "
                "batch, evaluation) become separate operators, and calls that are still reported "
                "vary at the same sizes"
            ),
            misleads=(
                "large and small inputs alternate on purpose; work is done every n-th step; the "
                "machine was busy with other programs"
            ),
        )
    ]


def _place(profile: Profile, node: int) -> str:
    """Return ``'aten::mm' at train.py:31 (step)``."""
    owner = int(source_locations.climb(profile, np.array([node]), profile.is_user_code())[0])
    where = source_locations.location_text(
        profile, None if owner == NO_NODE else profile.frame(owner)
    )
    return f"'{source_locations.base_name(profile.frame(node).name)}' at {where}"


def _evidence(profile: Profile, rows: MetricRows, row: int) -> dict[str, int | float | str]:
    assert rows.minimum is not None  # noqa: S101  asked by the caller
    assert rows.maximum is not None  # noqa: S101
    deviation, mean = _without_slowest(rows)
    count, spent = int(rows.count[row]), int(rows.total[row])
    return {
        "calls_count": count,
        "mean_ns": spent // count,
        "minimum_ns": int(rows.minimum[row]),
        "maximum_ns": int(rows.maximum[row]),
        "spread_by_mean": round(float(deviation[row] / max(mean[row], 1.0)), 2),
        "time_share": spent / total(profile, HOST_TIME_NS.name),
    }


# One cause, one finding: what makes a path slow (a loader, a compilation) also makes it uneven.
ANALYZER = Analyzer(
    "variance", "are calls on one path sometimes much slower?", _find, names_place_only=True
)
