"""Answers computed from a profile, as `web/src/engine/answers.ts` defines them for the page's engine.

Values are integers in the metric's unit; -1 means "not recorded" in columns of numbers that are never
negative.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepcontext.ui.measures import Measure
    from deepcontext.ui.web.answers import Calls, FusedKernel, TextPart


@dataclass(frozen=True, slots=True)
class FunctionColumns:
    """The functions of the nodes of one answer; `id` is a frame of the profile, or -1."""

    id: list[int] = field(default_factory=list)
    name: list[str] = field(default_factory=list)
    kind: list[str] = field(default_factory=list)
    layer: list[str] = field(default_factory=list)
    file: list[str] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    library: list[bool] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NodeColumns:
    """Nodes in depth-first pre-order; columns that are not empty have one entry for each node.

    `value` is inclusive; `source` is the node of the profile. The columns of single calls are empty
    where calls are not timed, `sides` where nothing is compared. In a comparison `sides` has for
    each node the value of each profile, None where the profile lacks the node, and `value` is the
    inclusive sum of each node's largest side, so that widths add up.
    """

    depth: list[int]
    function: list[int]
    value: list[int]
    exclusive: list[int]
    source: list[int]
    phase: list[str]
    calls: list[int] = field(default_factory=list)
    mean: list[int] = field(default_factory=list)
    deviation: list[int] = field(default_factory=list)
    minimum: list[int] = field(default_factory=list)
    maximum: list[int] = field(default_factory=list)
    sides: list[list[int | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FlameAnswer:
    """The visible part of a tree.

    The first `above` nodes are the ancestors of the zoomed node. `left_out` nodes are narrower than
    half a pixel, or did not fit into the answer; `threshold` is the smallest value shown.
    """

    unit: str
    above: int
    left_out: int
    threshold: int
    nodes: NodeColumns
    functions: FunctionColumns = field(default_factory=FunctionColumns)
    total: int = 0
    totals: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FoundNode:
    """One node whose name matches."""

    source: int
    value: int


@dataclass(frozen=True, slots=True)
class FindAnswer:
    """Nodes whose name or file contains a text; `value` counts nested nodes once."""

    count: int
    value: int
    total: int
    nodes: list[FoundNode]


@dataclass(frozen=True, slots=True)
class TableRow:
    """One group of a table; see `summaries.groups.Group`; `id` is a frame that represents it."""

    id: int
    name: str
    layer: str
    file: str
    line: int
    inclusive: int
    exclusive: int
    phases: list[int]
    contexts: int
    calls: Calls | None


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """A table; `phases` names the columns of each row's `phases`."""

    unit: str
    total: int
    row_count: int
    match_count: int
    phases: list[str]
    rows: list[TableRow]


@dataclass(frozen=True, slots=True)
class MeasureValue:
    """The cost of one node under one measure."""

    measure: Measure
    inclusive: int
    exclusive: int
    total: int


@dataclass(frozen=True, slots=True)
class MetricValue:
    """Distribution at one node of a metric that is not a sum; None where not recorded.

    `largest` is the maximum over the node and its descendants, None unless the metric is a maximum.
    """

    name: str
    label: str
    unit: str
    description: str
    count: int
    largest: int | None
    mean: float
    deviation: float | None
    minimum: int | None
    maximum: int | None


@dataclass(frozen=True, slots=True)
class PathStep:
    """One frame of a call path."""

    source: int
    id: int
    name: str
    layer: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class LineValue:
    """The part of a node that belongs to one line of its function."""

    line: int
    inclusive: int


@dataclass(frozen=True, slots=True)
class PhaseValue:
    """The part of a node that belongs to one phase."""

    phase: str
    value: int


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """Everything known about one node."""

    source: int
    id: int
    name: str
    kind: str
    layer: str
    file: str
    line: int
    contexts: int
    path: list[PathStep]
    values: list[MeasureValue]
    own: list[MetricValue]
    phases: list[PhaseValue]
    lines: list[LineValue]
    fused: list[FusedKernel]
    calls: Calls | None


@dataclass(frozen=True, slots=True)
class FileRow:
    """A source file named in the profile, and the exclusive cost of its lines."""

    file: str
    shown: str
    library: bool
    exclusive: int


@dataclass(frozen=True, slots=True)
class FilesAnswer:
    """Source files: user files first, the costliest first."""

    unit: str
    total: int
    files: list[FileRow]


@dataclass(frozen=True, slots=True)
class LineCost:
    """The cost of a line."""

    line: int
    function: str
    inclusive: int
    exclusive: int


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """A source file with the cost of its lines; `note`: why the text is missing or may be wrong."""

    file: str
    shown: str
    unit: str
    total: int
    note: str
    parts: list[TextPart]
    costs: list[LineCost]
