"""What the page's engine should answer, computed naively: a profile as a dictionary of call paths.

For each node of a profile: which path of functions shows the node, and which path receives its cost?
Everything else is added up by path. Slow, and does not know how the engine cuts and orders a tree, except
for the rule of its threshold. Facts that Python computes for the page (phases, layers, user code,
measures) are the production's.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS, Aggregation
from deepcontext.profiler.model.grouping import NO_GROUP, Spread, Spreads
from deepcontext.profiler.summaries.phases import PHASES, shown_phase
from deepcontext.profiler.views.layers import LAYER_OF_KIND, Layer
from deepcontext.ui.labels import metric_label
from deepcontext.ui.measures import measures, values_of
from deepcontext.ui.web.columns import fused_kernels

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from deepcontext.profiler.model.profile import Profile

    Query = Mapping[str, str]
    Function = tuple[FrameKind, str, str, int]  # kind, name, file, line
    Path = tuple[Function, ...]  # from the root, which is not part of it
    Costs = Counter[Path]

# The engine draws half pixels, small trees as a whole, and at most this many nodes.
_LEAST_PX: Final = 0.5
FEW_NODES: Final = 1_500
MOST_NODES: Final = 6_000
# Trees that the page cannot request again below a node are drawn in finer detail.
FINER: Final = 4
_MOST_LINES: Final = 20
_MOST_KERNELS: Final = 5
PIVOTS: Final = ("thread", "none", "phase")


class Paths:
    """The paths that a view of a profile shows."""

    def __init__(self, profile: Profile, query: Query) -> None:
        """Apply the switches of a tree, as the page's addresses spell them."""
        self.profile = profile
        self.query = query
        tree = profile.tree
        self.parent = tree.parent.tolist()
        frames = [profile.frames[index] for index in range(len(profile.frames))]
        by_line = query.get("lines") == "1"
        self.functions: list[Function] = [
            (each.kind, each.name, each.file, each.line if by_line else 0) for each in frames
        ]
        self.first_frame: dict[Function, int] = {}
        for index, function in enumerate(self.functions):
            self.first_frame.setdefault(function, index)
        self.at = [self.functions[frame] for frame in tree.frame.tolist()]
        self.phase = [Phase(each) for each in shown_phase(tree).tolist()]
        wanted = query.get("phase")
        self.is_of_phase = [not wanted or each.label == wanted for each in self.phase]
        self._costs: dict[str, Costs] = {}
        self.pivot = query.get("pivot") or "thread"
        if self.pivot not in PIVOTS:
            known = ", ".join(PIVOTS)
            raise QueryError(f"cannot split the tree by '{self.pivot}'; known: {known}")
        self._place()

    def _place(self) -> None:
        shown, self.counted = self._selection()
        shown[0] = True
        self.is_shown = [is_one and self.counted[node] for node, is_one in enumerate(shown)]
        self.below: list[Path] = []  # the path of each node under its label
        for node, function in enumerate(self.at):
            above = self.below[self.parent[node]] if node else ()
            self.below.append((*above, function) if node and self.is_shown[node] else above)
        self.labels = self._label_functions()
        labels = [self._label(node) for node in range(len(self.at))]
        self.path = [
            (*([self.labels[label]] if label else []), *path)
            for label, path in zip(labels, self.below, strict=True)
        ]
        self.members: dict[Path, list[int]] = defaultdict(list)
        for node in np.flatnonzero(self.is_shown).tolist():
            self.members[self.path[node]].append(node)
        self.first = self._firsts(labels)

    def _firsts(self, labels: list[int]) -> dict[Path, int]:
        """Return what represents each path: a node, or its copy below a label."""
        firsts: dict[Path, int] = {(): 0}
        for node in np.flatnonzero(self.is_shown).tolist():
            firsts.setdefault(self.below[node], node)
        found: dict[Path, int] = {(): 0}
        counted = np.flatnonzero(self.counted).tolist()
        for node in sorted(counted, key=lambda node: labels[node]):
            path, label = self.below[node], labels[node]
            for length in range(len(path) + 1):
                shown_at = (*self.path[node][: len(self.path[node]) - len(path)], *path[:length])
                found.setdefault(shown_at, firsts[path[:length]] + label * len(self.at))
        return found

    def _selection(self) -> tuple[list[bool], list[bool]]:
        """Return which nodes are shown, and which are counted."""
        hidden = {each for each in self.query.get("hidden", "").split(",") if each}
        library = self.query.get("library") == "1"
        is_user = self.profile.is_user_code()[self.profile.tree.frame].tolist()

        self.library = [
            function[0] is FrameKind.PYTHON and not is_user[node]
            for node, function in enumerate(self.at)
        ]

        def is_shown(node: int, *, opened: bool = library) -> bool:
            kind = self.at[node][0]
            layer = LAYER_OF_KIND[kind]
            if layer is Layer.THREAD and self.pivot != "thread":
                return False
            if self.library[node] and not opened:
                return False
            return layer.label not in hidden

        shown = [is_shown(node) for node in range(len(self.at))]
        counted = [True] * len(self.at)
        for edit in filter(None, self.query.get("edits", "").split(",")):
            kind, target = edit.split(":")
            self._edit(kind, int(target), shown, counted)
            if kind == "open":
                below = self._below(self._targets(kind, int(target)))
                for node in np.flatnonzero(below).tolist():
                    shown[node] |= self.library[node] and is_shown(node, opened=True)
        return shown, counted

    def _edit(self, kind: str, target: int, shown: list[bool], counted: list[bool]) -> None:
        is_target = self._targets(kind, target)
        below = self._below(is_target)
        for node, (is_one, is_below) in enumerate(zip(is_target, below, strict=True)):
            match kind:
                case "root" | "focus":
                    counted[node] &= is_one or is_below
                    shown[node] |= is_one
                case "hide":
                    shown[node] &= not is_one
                case "collapse":
                    shown[node] = (shown[node] or is_one) and not is_below
                case "drop":
                    counted[node] &= not (is_one or is_below)

    def _below(self, is_target: list[bool]) -> list[bool]:
        below = [False] * len(self.at)
        for node in range(1, len(self.at)):
            below[node] = below[self.parent[node]] or is_target[self.parent[node]]
        return below

    def _targets(self, kind: str, target: int) -> list[bool]:
        what, size = ("node", len(self.at)) if kind == "root" else ("frame", len(self.functions))
        if target >= size:
            raise QueryError(f"no {what} {target}: this profile has the {what}s 0 to {size - 1}")
        if kind == "root":
            return [node == target for node in range(len(self.at))]
        return [function == self.functions[target] for function in self.at]

    def _label(self, node: int) -> int:
        """Return the number of a node's label under the pivot, 0 for none."""
        return self.phase[node] + 1 if self.pivot == "phase" else 0

    def _label_functions(self) -> list[Function]:
        made = [(FrameKind.PHASE, each.label.replace("_", " "), "", 0) for each in Phase]
        return [self.at[0], *(made if self.pivot == "phase" else ())]

    # -- costs

    def exclusive(self, metric: str) -> Costs:
        """Return the cost of each path, without what lies below."""
        if metric not in self._costs:
            costs: Costs = Counter()
            for node, value in enumerate(values_of(self.profile, metric).tolist()):
                if self.counted[node] and self.is_of_phase[node]:
                    costs[self.path[node]] += value
            self._costs[metric] = costs
        return self._costs[metric]

    @cached_property
    def calls(self) -> dict[Path, Spread] | None:
        """Return how the calls of each path are distributed; None where calls were not timed."""
        rows = self.profile.metrics.get(CALL_DURATION_NS.name)
        if rows is None:
            return None
        numbers = {path: number for number, path in enumerate(self.members)}
        group = [
            numbers[self.path[node]] if self.is_shown[node] and self.is_of_phase[node] else NO_GROUP
            for node in rows.node.tolist()
        ]
        spreads = Spreads.of_rows(rows, np.array(group, np.int64), len(numbers))
        found = {path: spreads.spread(number) for path, number in numbers.items()}
        return {path: spread for path, spread in found.items() if spread}

    def phase_of(self, path: Path) -> str:
        """Return the phase that colours a path."""
        if self.pivot == "phase" and path:
            return Phase(self.labels.index(path[0]) - 1).label
        return Phase(int(self.profile.tree.phase[self.first[path] % len(self.at)])).label

    def shown_at(self, source: int) -> Path | None:
        """Return the path that shows a node, or a copy of it under a label; None if none does."""
        label, node = divmod(source, len(self.at))
        if label >= len(self.labels) or not self.counted[node]:
            return None
        if label == 0:
            return self.path[node] if node else ()
        wanted = (self.labels[label], *self.below[node])
        return wanted if wanted in self.first else None


def with_descendants(costs: Costs) -> Costs:
    """Return the inclusive cost of each path and its ancestors."""
    inclusive: Costs = Counter({(): 0})
    for path, value in costs.items():
        for length in range(len(path) + 1):
            inclusive[path[:length]] += value
    return inclusive


def threshold_of(values: list[int], whole: int, px: int) -> int:
    """Return the smallest value that the engine draws of a tree with these values."""
    positive = sorted((value for value in values if value > 0), reverse=True)
    if len(positive) <= FEW_NODES:
        return 1
    threshold = max(math.ceil(whole * _LEAST_PX / px), 1)
    if sum(value >= threshold for value in positive) <= MOST_NODES:
        return threshold
    return positive[MOST_NODES] + 1


def backwards(costs: Mapping[Path, int], threshold: int) -> tuple[Costs, dict[Path, Path], int]:
    """Invert paths: each function, below it its callers.

    Returns:
        The cost of each chain of callers that is at least `threshold`; the first path that ends with the
        chain; and how many chains are smaller, but not what they hang below.
    """
    chains: Costs = Counter({(): 0})
    example: dict[Path, Path] = {(): ()}
    for path, value in costs.items():
        for length in range(len(path) + 1):
            chain = path[::-1][:length]
            chains[chain] += value
            example.setdefault(chain, path)
    kept = Counter({
        each: value for each, value in chains.items() if value >= threshold or not each
    })
    left_out = sum(each not in kept and each[:-1] in kept for each in chains)
    return kept, example, left_out


def outermost(costs: Costs, function: Function) -> Costs:
    """Return the inclusive cost of the paths that end with a function that is not above itself."""
    found: Costs = Counter()
    for path, value in costs.items():
        if function in path:
            found[path[: path.index(function) + 1]] += value
    return found


# -- answers


def identity(function: Function, folder: str) -> Function:
    """Return what makes functions of two profiles the same one."""
    kind, name, file, line = function
    if kind is FrameKind.PYTHON:
        file = file.removeprefix(folder.rstrip("/") + "/")
    elif kind is FrameKind.NATIVE:
        file = PurePath(file).name
    return kind, name, file, line


def answered(answer: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Return the path of each node in an answer, without the root, and the node's columns."""
    functions, nodes = answer["functions"], answer["nodes"]
    kinds = {kind.label: kind for kind in FrameKind}
    path: list[Function] = []
    for place, (depth, number) in enumerate(zip(nodes["depth"], nodes["function"], strict=True)):
        del path[depth:]
        kind = kinds[functions["kind"][number]]
        path.append((kind, *(functions[each][number] for each in ("name", "file", "line"))))
        columns = {name: column[place] for name, column in nodes.items() if column}
        yield tuple(path[1:]), columns | {"id": functions["id"][number]}


def node_answer(view: Paths, path: Path) -> dict[str, Any]:
    """Return the details of a node."""
    members = view.members.get(path, [])
    metric = view.query.get("metric", HOST_TIME_NS.name)
    function = path[-1] if path else view.at[0]
    kind, *place = function
    calls = None if view.calls is None else _calls(view.calls.get(path))
    return {
        "id": view.first_frame.get(function, -1),
        **dict(zip(("kind", "name", "file", "line"), (kind.label, *place), strict=True)),
        "contexts": len(members),
        "hidden": hidden_functions(view, [path]),
        "values": [_value(view, path, each) for each in measures(view.profile)],
        "own": _own_metrics(view, members),
        "phases": _phases(view, path, metric),
        "lines": _lines(view, members, metric),
        "fused": _fused(view.profile, members),
        "calls": calls,
    }


def _fused(profile: Profile, members: Collection[int]) -> list[dict[str, Any]]:
    kernels, of_node = fused_kernels(profile)
    numbers = dict.fromkeys(of_node[node] for node in members if node in of_node)
    return [dataclasses.asdict(kernels[number]) for number in [*numbers][:_MOST_KERNELS]]


def hidden_functions(view: Paths, paths: Collection[Path]) -> int:
    """Return how many library functions are merged into some paths."""
    return len({
        view.at[node]
        for node in range(1, len(view.at))
        if view.library[node]
        and view.counted[node]
        and not view.is_shown[node]
        and view.path[node] in paths
    })


def _value(view: Paths, path: Path, measure: Any) -> dict[str, Any]:
    costs = view.exclusive(measure.key)
    return {
        "measure": dataclasses.asdict(measure),
        "inclusive": sum(value for each, value in costs.items() if each[: len(path)] == path),
        "exclusive": costs[path],
        "total": sum(costs.values()),
    }


def _own_metrics(view: Paths, members: list[int]) -> list[dict[str, Any]]:
    """Return the metrics of a node that do not add up: maxima and properties."""
    found = []
    for name, rows in view.profile.metrics.items():
        described = rows.descriptor
        if described.aggregation is Aggregation.SUM or name == CALL_DURATION_NS.name:
            continue
        largest = None
        if described.aggregation is Aggregation.MAX and members:
            largest = int(view.profile.inclusive(name)[members].max())
        group = np.where(np.isin(rows.node, members), 0, NO_GROUP)
        spread = Spreads.of_rows(rows, group, 1).spread(0)
        if spread is None and not largest:
            continue
        found.append({
            "name": name,
            "label": metric_label(name),
            "unit": described.unit,
            "description": described.description,
            "largest": largest,
            **(_calls(spread) or _calls(Spread(0, 0, 0.0, None, None, None)) or {}),
        })
    return found


def _calls(spread: Spread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    return {
        "count": spread.count,
        "mean": spread.mean,
        "deviation": spread.sd,
        "minimum": spread.minimum,
        "maximum": spread.maximum,
    }


def _phases(view: Paths, path: Path, metric: str) -> list[dict[str, Any]]:
    sums: Counter[Phase] = Counter()
    for node, value in enumerate(values_of(view.profile, metric).tolist()):
        if view.counted[node] and view.path[node][: len(path)] == path and view.is_of_phase[node]:
            sums[view.phase[node]] += value
    return [{"phase": each.label, "value": sums[each]} for each in PHASES if sums[each]]


def _lines(view: Paths, members: list[int], metric: str) -> list[dict[str, int]]:
    """Split a Python function's inclusive cost by the line of the call."""
    profile = view.profile
    if not members or profile.frame(members[0]).kind is not FrameKind.PYTHON:
        return []
    counted = [
        value if view.counted[node] and view.is_of_phase[node] else 0
        for node, value in enumerate(values_of(profile, metric).tolist())
    ]
    inclusive = profile.tree.inclusive(np.array(counted, np.int64)).tolist()
    lines: Counter[int] = Counter()
    for member in members:
        lines[profile.frame(member).line] += inclusive[member]
    largest = sorted(lines.items(), key=lambda item: (-item[1], item[0]))[:_MOST_LINES]
    return [{"line": line, "inclusive": value} for line, value in largest]
