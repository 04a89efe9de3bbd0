"""Which questions a one-file page answers, most useful first.

Not every combination of switches can be recorded; the page disables the missing combinations and
says so. Invariant: no question is yielded twice.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.profiler.summaries.phases import PHASES, shown_phase
from deepcontext.profiler.views.layers import OPTIONAL_LAYERS, layer_of_frame
from deepcontext.profiler.views.options import TreeOptions
from deepcontext.profiler.views.pivot import pivots
from deepcontext.ui.measures import measures, metric_of, values_of
from deepcontext.ui.web.questions import FlameQuestion, TreeQuestion
from deepcontext.ui.web.source_pane import files
from deepcontext.ui.web.tables import table, tables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.views.layers import Layer
    from deepcontext.ui.web.open_profiles import OpenProfiles

    Change = Callable[[TreeQuestion], TreeQuestion]

# How many switches may differ from their initial position at once.
COMBINED: Final = 2
FINE_PX: Final = 16_384
_SANDWICHES: Final = 60
_NODES: Final = 400
_LEAST_NODE: Final = 0.002  # part of the whole
_SOURCES: Final = 40


@dataclass(frozen=True, slots=True)
class Recorded:
    """One question to answer.

    Attributes:
        what: the question's name.
        query: its parameters, without defaults.
        is_tree: whether the answer needs a new tree, which takes time in a large profile.
        px: width to draw at; wider than a screen where the page must be able to zoom in.
    """

    what: str
    query: dict[str, str]
    is_tree: bool = False
    px: int = 0


def questions(profiles: OpenProfiles) -> Iterator[Recorded]:
    """Yield the questions of a page about all profiles, most useful first."""
    starts = [
        TreeQuestion(file=index, metric=default_metric(profiles.get(index).profile))
        for index in range(len(profiles))
    ]
    # The views that the page opens with come first, because the file has a maximum size.
    for start in starts:
        yield from _trees(start, _changes(profiles.get(start.file).profile), 0)
        yield from _tables(profiles, start)
        yield from _plain(profiles, start)
    if len(profiles) > 1:
        yield from _differences(profiles, starts[0])
    for start in starts:
        yield from _nodes(profiles, start)
        yield from _trees(start, _changes(profiles.get(start.file).profile), 1)
        yield from _sandwiches(profiles, start)
        for measure in measures(profiles.get(start.file).profile):
            if metric_of(measure) is not None:
                yield from _tables(profiles, replace(start, metric=measure.key))
    for combined in range(2, COMBINED + 1):
        for start in starts:
            yield from _trees(start, _changes(profiles.get(start.file).profile), combined)


def _tables(profiles: OpenProfiles, start: TreeQuestion) -> Iterator[Recorded]:
    """Yield tables and source with the costs of one measure."""
    query = start.to_query()
    for by in tables_of(profiles.get(start.file).profile):
        yield Recorded("table", query if by == "operator" else {**query, "by": by})
    yield Recorded("files", query)
    for row in files(profiles, start.file, start.metric).files[:_SOURCES]:
        yield Recorded("source", {**query, "path": row.file})


def _plain(profiles: OpenProfiles, start: TreeQuestion) -> Iterator[Recorded]:
    """Yield findings and sections."""
    profile = profiles.get(start.file).profile
    file = {"file": str(start.file)} if start.file else {}
    yield Recorded("findings", file)
    for name in profile.sections:
        yield Recorded("section", {**file, "name": name})


def _trees(
    start: TreeQuestion, changes: list[tuple[str, Change]], combined: int
) -> Iterator[Recorded]:
    """Yield both directions of the tree with `combined` switches changed."""
    for chosen in itertools.combinations(changes, combined):
        names = [name for name, _ in chosen]
        if len(set(names)) < len(names):
            continue
        tree = start
        for _, change in chosen:
            tree = change(tree)
        for kind in ("top_down", "bottom_up"):
            question = FlameQuestion(tree, kind=kind)
            px = FINE_PX if not chosen else 0
            yield Recorded("flame", question.to_query(), is_tree=True, px=px)


def _changes(profile: Profile) -> list[tuple[str, Change]]:
    """Return every switch's other positions, with the name of the switch."""
    layers = set(np.unique(layer_of_frame(profile.frames.kind)).tolist())
    phases = set(np.unique(shown_phase(profile.tree)).tolist())
    return [
        ("library", partial(_with, library=True)),
        ("lines", partial(_with, by_line=True)),
        *((layer.label, partial(_without, layer)) for layer in OPTIONAL_LAYERS if layer in layers),
        *(("phase", partial(_with, phase=phase)) for phase in PHASES if phase in phases),
        *(("pivot", partial(_with, pivot=pivot)) for pivot in pivots(profile)[1:]),
        *(("measure", partial(replace, metric=each.key)) for each in measures(profile)[1:]),
    ]


def _with(tree: TreeQuestion, **options: Any) -> TreeQuestion:
    return replace(tree, options=replace(tree.options, **options))


def _without(layer: Layer, tree: TreeQuestion) -> TreeQuestion:
    return _with(tree, hidden=tree.options.hidden | {layer})


def _differences(profiles: OpenProfiles, start: TreeQuestion) -> Iterator[Recorded]:
    trees = [start, *(change(start) for _, change in _changes(profiles.get(0).profile))]
    for tree in trees:
        for normalize in (False, True):
            question = FlameQuestion(tree, kind="difference", normalize=normalize)
            yield Recorded("flame", question.to_query(), is_tree=True)


def _nodes(profiles: OpenProfiles, start: TreeQuestion) -> Iterator[Recorded]:
    """Yield the details of the costliest nodes."""
    profile = profiles.get(start.file).profile
    view = profiles.tree(start.file, TreeOptions())
    inclusive = view.tree.inclusive(view.exclusive(values_of(profile, start.metric)))
    largest = np.argsort(-inclusive, kind="stable")[:_NODES]
    for node in largest[inclusive[largest] >= inclusive[0] * _LEAST_NODE].tolist():
        yield Recorded("node", {**start.to_query(), "source": str(int(view.source[node]))})


def _sandwiches(profiles: OpenProfiles, start: TreeQuestion) -> Iterator[Recorded]:
    """Yield callers and callees of the costliest operators, modules and scopes."""
    profile = profiles.get(start.file).profile
    rows = [
        row
        for by in tables_of(profile)
        if by != "line"
        for row in table(profiles, start.file, by, start.metric).rows[:_SANDWICHES]
    ]
    rows.sort(key=lambda row: -row.inclusive)
    for row in rows[:_SANDWICHES]:
        for kind in ("callers", "callees"):
            question = FlameQuestion(start, kind=kind, function=row.id)
            yield Recorded("flame", question.to_query(), is_tree=True)
