"""Answers about single nodes: the details of a node, and nodes whose name contains a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, Aggregation
from deepcontext.profiler.model.grouping import NO_GROUP, Spreads, sums
from deepcontext.profiler.summaries.compiled_kernels import fused_at
from deepcontext.profiler.summaries.phases import PHASES
from deepcontext.profiler.views.layers import Layer
from deepcontext.ui.labels import metric_label
from deepcontext.ui.measures import measures, values_of
from deepcontext.ui.web.about import calls_of
from deepcontext.ui.web.columns import fused_kernel
from tests.ui.oracle.answers import (
    FindAnswer,
    FoundNode,
    LineValue,
    MeasureValue,
    MetricValue,
    NodeAnswer,
    PathStep,
    PhaseValue,
)
from tests.ui.oracle.trees import tree_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.web.answers import FusedKernel
    from deepcontext.ui.web.open_profiles import OpenProfiles
    from tests.ui.oracle.questions import TreeQuestion
    from tests.ui.oracle.top_down import TopDown

    Ints = npt.NDArray[np.int64]

MOST_FOUND: Final = 1_000
_MOST_LINES: Final = 20
_MOST_KERNELS: Final = 5


def node(profiles: OpenProfiles, question: TreeQuestion, source: int) -> NodeAnswer:
    """Return everything known about the view's node that shows node `source` of the profile.

    Raises:
        QueryError: the node does not exist, or is not shown.
    """
    view = tree_of(profiles, question.file, question.options)
    index = view.node_of(source)
    step = _step(view, index)
    frame = view.functions.frame(int(view.tree.frame[index]))
    members = view.members(index)
    return NodeAnswer(
        source=step.source,
        id=step.id,
        name=frame.name,
        kind=frame.kind.label,
        layer=step.layer,
        file=frame.file,
        line=frame.line,
        contexts=len(members),
        path=[_step(view, each) for each in view.tree.path(index)[1:]],
        values=_values(view, index),
        own=_other_metrics(view, members),
        phases=_phases(view, index, question.metric),
        lines=_lines(view, members, question.metric),
        fused=_fused(view.profile, members),
        calls=None if view.calls is None else calls_of(view.calls.spread(index)),
    )


def find(profiles: OpenProfiles, question: TreeQuestion, text: str) -> FindAnswer:
    """Return the nodes whose name or file contains a text, ignoring case."""
    view = tree_of(profiles, question.file, question.options)
    exclusive = view.exclusive(values_of(view.profile, question.metric))
    inclusive = view.tree.inclusive(exclusive)
    found = _matching(view, text)[view.tree.frame] & (inclusive > 0)
    found[0] = False
    outermost = found & ~view.tree.below(found)
    nodes = np.flatnonzero(found)
    shown = nodes
    if len(nodes) > MOST_FOUND:
        largest = np.argpartition(-inclusive[nodes], MOST_FOUND)[:MOST_FOUND]
        shown = np.sort(nodes[largest])
    return FindAnswer(
        count=len(nodes),
        value=int(inclusive[outermost].sum()),
        total=int(inclusive[0]),
        nodes=[
            FoundNode(source, value)
            for source, value in zip(
                view.source[shown].tolist(), inclusive[shown].tolist(), strict=True
            )
        ],
    )


def _matching(view: TopDown, text: str) -> npt.NDArray[np.bool_]:
    """Return which functions have a text in their name or file, shape (functions,)."""
    wanted = text.casefold()
    strings = view.profile.frames.strings
    contains = np.fromiter(
        (wanted in string.casefold() for string in strings), np.bool_, count=len(strings)
    )
    frames = contains[view.profile.frames.name] | contains[view.profile.frames.file]
    matches = np.zeros(len(view.functions), np.bool_)
    matches[view.functions.of_frame[frames]] = bool(wanted)
    return matches


def _step(view: TopDown, index: int) -> PathStep:
    function = int(view.tree.frame[index])
    frame = view.functions.frame(function)
    return PathStep(
        source=int(view.source[index]),
        id=int(view.functions.example[function]),
        name=frame.name,
        layer=Layer(int(view.functions.layer[function])).label,
        file=frame.file,
        line=frame.line,
    )


def _values(view: TopDown, index: int) -> list[MeasureValue]:
    inside = slice(index, int(view.tree.subtree_end[index]))
    values = []
    for measure in measures(view.profile):
        exclusive = view.exclusive(values_of(view.profile, measure.key))
        values.append(
            MeasureValue(
                measure,
                inclusive=int(exclusive[inside].sum()),
                exclusive=int(exclusive[index]),
                total=int(exclusive.sum()),
            )
        )
    return values


def _other_metrics(view: TopDown, members: Ints) -> list[MetricValue]:
    """Return the metrics of a node that cannot be summed: maxima and properties."""
    values = []
    for name, rows in view.profile.metrics.items():
        described = rows.descriptor
        if described.aggregation is Aggregation.SUM or name == CALL_DURATION_NS.name:
            continue
        largest = None
        if described.aggregation is Aggregation.MAX and len(members):
            largest = int(view.profile.inclusive(name)[members].max())
        group = np.where(np.isin(rows.node, members), 0, NO_GROUP)
        spread = Spreads.of_rows(rows, group, 1).spread(0)
        if spread is None and not largest:
            continue
        values.append(
            MetricValue(
                name=name,
                label=metric_label(name),
                unit=described.unit,
                description=described.description,
                count=spread.count if spread else 0,
                largest=largest,
                mean=spread.mean if spread else 0.0,
                deviation=spread.sd if spread else None,
                minimum=spread.minimum if spread else None,
                maximum=spread.maximum if spread else None,
            )
        )
    return values


def _phases(view: TopDown, index: int, metric: str) -> list[PhaseValue]:
    values = values_of(view.profile, metric)
    inside = slice(index, int(view.tree.subtree_end[index]))
    wanted = view.options.phase
    rows = []
    for phase in PHASES:
        if wanted is None or wanted == phase:
            value = int(view.counting(phase).exclusive(values)[inside].sum())
            rows.append(PhaseValue(phase.label, value))
    return [row for row in rows if row.value]


def _fused(profile: Profile, members: Ints) -> list[FusedKernel]:
    """Return what torch.compile fused into the kernels that a node represents."""
    kernels = fused_at(profile, members.tolist())[:_MOST_KERNELS]
    return [fused_kernel(profile, kernel) for kernel in kernels]


def _lines(view: TopDown, members: Ints, metric: str) -> list[LineValue]:
    """Split a Python function's inclusive cost by the line of the call."""
    profile = view.profile
    if not len(members) or profile.frame(int(members[0])).kind is not FrameKind.PYTHON:
        return []
    counted = view.counted(values_of(profile, metric))
    line = profile.frames.line[profile.tree.frame[members]]
    distinct, group = np.unique(line, return_inverse=True)
    total = sums(np.ravel(group), profile.tree.inclusive(counted)[members], len(distinct))
    order = np.argsort(-total, kind="stable")[:_MOST_LINES]
    return [LineValue(int(distinct[each]), int(total[each])) for each in order.tolist()]
