"""The points of a roofline plot of compiled JAX programs: lines, programs and operations.

Operations and bytes are those of the compiler's instructions (`operations.py`); the type is that of the
result. Instructions that only call others (loops, conditionals) have no work of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.metric import GPU_TIME_NS
from deepcontext.profiler.model.grouping import NO_GROUP
from deepcontext.profiler.model.metric_values import inclusive_or_zeros
from deepcontext.profiler.model.place import Place
from deepcontext.profiler.summaries import roofline as rooflines
from deepcontext.profiler.summaries.collectives import is_collective
from deepcontext.profiler.summaries.jax.operation_nodes import nodes_of
from deepcontext.profiler.summaries.jax.operations import operations
from deepcontext.profiler.summaries.jax.programs import device_metric
from deepcontext.profiler.summaries.operator_work import OperatorWork
from deepcontext.profiler.summaries.roof import roof_of
from deepcontext.profiler.summaries.roofline import Membership, roofline

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.summaries.jax.operations import Operation
    from deepcontext.profiler.summaries.roofline import Roofline

    Ints = npt.NDArray[np.int64]

_CALLERS: Final = frozenset({"while", "call", "conditional", "async-start", "async-done"})
# Peaks are named as PyTorch names its types.
_INTEGERS: Final = {"s64": "i64", "s32": "i32", "s16": "i16", "s8": "i8"}


def jax_roofline(profile: Profile) -> Roofline | None:
    """Return the points of executed operations; None where no operation was timed. Computed once.

    Raises:
        ProfileDataError: the section "jax" cannot be read.
    """
    found = [
        each
        for each in operations(profile)
        if each.device_ns and each.opcode not in _CALLERS and (each.flops or each.bytes)
    ]
    if not found:
        return None
    return profile.once("jax roofline", lambda: _of_operations(profile, found))


def _of_operations(profile: Profile, found: Sequence[Operation]) -> Roofline:
    nodes = _nodes(profile, found)
    work = _work(profile, found, nodes)
    has_line = [bool(each.source.file) for each in found]
    lines = [each.source for each in found]
    names = [(each.program, each.name) for each in found]
    groups = {
        "line": _grouped(lines, [(place.file, place.line) for place in lines], nodes, has_line),
        "operation": _grouped(
            [Place(f"{name} in {program}", "", 0) for program, name in names], names, nodes
        ),
        "program": _grouped(
            [Place(program, "", 0) for program, _ in names], [p for p, _ in names], nodes
        ),
    }
    return roofline(work, groups, np.array([_kind(each) for each in found], np.int64))


def _work(profile: Profile, found: Sequence[Operation], nodes: Ints) -> OperatorWork:
    runs = np.array([each.executions for each in found], np.float64)
    flops = runs * np.array([each.flops for each in found], np.float64)
    moved = runs * np.array([each.bytes for each in found], np.float64)
    types = tuple(_INTEGERS.get(each.type, each.type) for each in found)
    on_gpu = device_metric(profile) == GPU_TIME_NS.name
    # Source: xla/pjrt/cpu, the client's thread pool: as many threads as the process may use processors.
    roof = roof_of(profile, on_gpu=on_gpu, threads=profile.run.cpu_count)
    return OperatorWork(
        nodes=nodes,
        flops=flops,
        bytes=moved,
        time_ns=np.array([each.device_ns for each in found], np.int64),
        calls=runs.astype(np.int64),
        least_ns=roof.least_ns(flops, moved, types) if roof else np.full(len(found), np.nan),
        types=types,
        is_on_gpu=on_gpu,
        roof=roof,
        uncounted=np.zeros(0, np.int64),
    )


def _grouped(
    places: Sequence[Place],
    keys: Sequence[Hashable],
    nodes: Ints,
    which: Sequence[bool] = (),
) -> Membership:
    """Group operations by key; `which` leaves out others."""
    index: dict[Hashable, int] = {}
    first: list[Place] = []
    of_operator = np.full(len(places), NO_GROUP, np.int64)
    for at, (place, key) in enumerate(zip(places, keys, strict=True)):
        if which and not which[at]:
            continue
        if key not in index:
            index[key] = len(first)
            first.append(place)
        of_operator[at] = index[key]
    return Membership(first, of_operator, nodes)


def _nodes(profile: Profile, found: Sequence[Operation]) -> Ints:
    """Return the node of each operation: where it took most time."""
    time = inclusive_or_zeros(profile, device_metric(profile))
    return np.array(
        [
            max(nodes, key=lambda node: int(time[node]), default=0)
            for nodes in nodes_of(profile, found)
        ],
        np.int64,
    )


def _kind(operation: Operation) -> int:
    if is_collective(operation.opcode, operation.name):
        return rooflines.COLLECTIVES
    parts = {operation.opcode, *(member.primitive for member in operation.members)}
    if parts & {"conv_general_dilated", "convolution"}:
        return rooflines.CONVOLUTIONS
    if parts & {"dot_general", "dot"}:
        return rooflines.PRODUCTS
    return rooflines.FUSIONS if operation.members else rooflines.OTHERS
