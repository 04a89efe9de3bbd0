"""A profile as columns for the page's engine (`web/src/engine`), with the facts about its frames.

Every rule about what a frame means is applied here: which lines are the user's, which layer and which
row of a table a frame belongs to, under which phase a node counts. The engine only adds up.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, Aggregation
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.compiled_kernels import kernels_of_nodes
from deepcontext.profiler.summaries.jax.operation_nodes import fusions_of_nodes
from deepcontext.profiler.summaries.lines import by_python_line
from deepcontext.profiler.summaries.phases import PHASES, SHOWN_PHASE
from deepcontext.profiler.summaries.tables import TABLES
from deepcontext.profiler.views.layers import LAYER_OF_KIND, OPTIONAL_LAYERS, Layer
from deepcontext.ui.format import shorten_path
from deepcontext.ui.labels import metric_label
from deepcontext.ui.measures import measures, metric_of, values_of
from deepcontext.ui.web.answers import FusedKernel
from deepcontext.ui.web.container import pack
from deepcontext.ui.web.json_text import to_json
from deepcontext.ui.web.source_text import named_lines
from deepcontext.ui.web.tables import line_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.place import Place
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.groups import Grouping
    from deepcontext.profiler.summaries.jax.operations import Operation

    Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """What the engine needs of one profile.

    Attributes:
        facts: names and rules, as JSON values; `ProfileFacts` in `web/src/engine/profile.ts`.
        columns: arrays by name, each of shape (rows,).
    """

    facts: dict[str, object]
    columns: Columns


def packed_columns(
    profile: Profile, more: Mapping[str, object] | None = None, *, level: int
) -> bytes:
    """Return a profile as the page reads it: a compressed container (`container.py`).

    Args:
        profile: the profile.
        more: what the header holds besides the facts; `Header` in `web/src/reader.ts`.
        level: level of compression.
    """
    engine = engine_profile(profile)
    header = to_json({"facts": engine.facts, **(more or {})})
    return gzip.compress(pack(header, engine.columns), level, mtime=0)


def engine_profile(profile: Profile) -> EngineProfile:
    """Return the basis of a profile as columns."""
    basis = basis_of(profile)
    profile = basis.profile
    groupings = {name: table.make for name, table in TABLES.items()}
    groupings["python_line"] = by_python_line
    columns = _tree(profile)
    for index, measure in enumerate(measures(profile)):
        columns[f"measure_{index}"] = values_of(profile, measure.key)
    others = []
    for name, rows in profile.metrics.items():
        is_other = rows.descriptor.aggregation is not Aggregation.SUM
        if name == CALL_DURATION_NS.name or is_other:
            columns.update(_rows(name, rows))
        if is_other and name != CALL_DURATION_NS.name:
            others.append(rows)
    for name, grouping in groupings.items():
        groups = grouping.of_frames(profile)
        columns[f"table_{name}_group"] = groups.of_frame + 1
        columns[f"table_{name}_example"] = groups.example
    kernels, of_node = fused_kernels(profile)
    columns["fused_node"] = np.fromiter(of_node.keys(), np.int64, len(of_node))
    columns["fused_kernel"] = np.fromiter(of_node.values(), np.int64, len(of_node))
    facts: dict[str, object] = {
        **_rules(),
        "strings": list(profile.frames.strings),
        "cwd": profile.run.cwd,
        "steps": basis.divisor,
        "measures": measures(profile),
        "totals": [each.key for each in measures(profile) if metric_of(each) is not None],
        "other": [_other(rows) for rows in others],
        "tables": {name: _table(grouping) for name, grouping in groupings.items()},
        "fused": kernels,
        "files": _files(profile),
    }
    return EngineProfile(facts, columns)


def fused_kernels(profile: Profile) -> tuple[list[FusedKernel], dict[int, int]]:
    """Return what torch.compile and XLA fused into kernels, and which of them each node is, if any."""
    kernels, of_node = kernels_of_nodes(profile)
    found = [
        _fused(profile, each.name, each.operators, each.lines, complete=each.is_complete)
        for each in kernels
    ]
    index = dict(of_node)
    numbers: dict[tuple[str, str], int] = {}
    for node, each in _fusions(profile).items():
        if (each.program, each.name) not in numbers:
            numbers[each.program, each.name] = len(found)
            primitives = dict.fromkeys(member.primitive for member in each.members)
            named = [member.source for member in each.members if member.source.line > 0]
            places = {(place.file, place.line): place for place in named}.values()
            lines = [place for place in places if is_user_file(place.file)] or places
            found.append(_fused(profile, each.name, filter(None, primitives), lines, complete=True))
        index[node] = numbers[each.program, each.name]
    return found, index


def _fusions(profile: Profile) -> dict[int, Operation]:
    try:
        return fusions_of_nodes(profile)
    except ProfileDataError:  # the report says so
        return {}


def _fused(
    profile: Profile,
    name: str,
    operators: Iterable[str],
    lines: Iterable[Frame | Place],
    *,
    complete: bool,
) -> FusedKernel:
    places = [line_place(profile, each.file, each.line) for each in lines]
    return FusedKernel(name, list(operators), places, complete)


def _files(profile: Profile) -> dict[str, object]:
    return {
        path: {"shown": shorten_path(path, profile.run.cwd), "library": not is_user_file(path)}
        for path in named_lines(profile)
    }


def _tree(profile: Profile) -> Columns:
    frames, tree = profile.frames, profile.tree
    return {
        "depth": tree.depth,
        "frame": tree.frame,
        "phase": tree.phase,
        "frame_kind": frames.kind,
        "frame_name": frames.name,
        "frame_file": frames.file,
        "frame_line": frames.line,
        "frame_user": profile.is_user_code(),
    }


def _rules() -> dict[str, object]:
    kinds = {int(kind): kind for kind in FrameKind}
    of_kind = [kinds.get(number) for number in range(max(kinds) + 1)]
    return {
        "kinds": ["" if kind is None else kind.label for kind in of_kind],
        "layers": [layer.label for layer in Layer],
        "optional_layers": [layer.label for layer in OPTIONAL_LAYERS],
        "layer_of_kind": [0 if kind is None else int(LAYER_OF_KIND[kind]) for kind in of_kind],
        "phases": [phase.label for phase in Phase],
        "shown_phase": SHOWN_PHASE.tolist(),
        "listed_phases": [int(phase) for phase in PHASES],
    }


def _rows(name: str, rows: MetricRows) -> Columns:
    columns: dict[str, npt.NDArray[Any] | None] = {
        "node": rows.node,
        "count": rows.count,
        "total": rows.total,
        "minimum": rows.minimum,
        "maximum": rows.maximum,
        "m2": rows.m2,
    }
    return {
        f"rows_{name}_{column}": values for column, values in columns.items() if values is not None
    }


def _other(rows: MetricRows) -> dict[str, object]:
    described = rows.descriptor
    return {
        "name": described.name,
        "label": metric_label(described.name),
        "unit": described.unit,
        "description": described.description,
        "maximum": described.aggregation is Aggregation.MAX,
    }


def _table(table: Grouping) -> dict[str, object]:
    return {
        "layer": LAYER_OF_KIND[table.kind].label,
        "largest": table.largest,
        "only_with_value": table.only_with_value,
        "is_line": table.kind is FrameKind.PYTHON,
    }
