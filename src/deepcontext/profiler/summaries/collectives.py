"""Collectives: operations in which all processes of a group take part, and each waits for the last.

The time of a collective is waiting plus transfer. The profile of one process cannot separate the
two. The profiles of all ranks can, because the rank that spends the least time in collectives waits
the least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import DEVICE_TIME_NS
from deepcontext.profiler.summaries import ranks
from deepcontext.profiler.summaries.jax import operations as jax_operations

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Mask = npt.NDArray[np.bool_]

# Beginnings of the names of operators, scopes of the back ends, and kernels.
_PREFIXES: Final = (
    "c10d::",
    "_c10d_functional::",
    "gloo:",
    "nccl:",
    "ncclDevKernel",
    "ncclKernel",
    "mpi:",
    "record_param_comms",
)
_OPCODES: Final = frozenset({
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "ragged-all-to-all",
    "reduce-scatter",
})
# XLA names an instruction after JAX's primitive, or else after its opcode.
_PRIMITIVES: Final = frozenset({
    "all_gather",
    "all_gather_invariant",
    "all_gather_reduced",
    "all_to_all",
    "pbroadcast",
    "pgather",
    "pmax",
    "pmin",
    "ppermute",
    "psum",
    "psum2",
    "psum_invariant",
    "ragged_all_to_all",
    "reduce_scatter",
    "unreduced_psum",
    "unreduced_reduce_scatter",
})


@dataclass(frozen=True, slots=True)
class CollectiveTime:
    """Time of one rank in collectives of compiled JAX programs.

    Attributes:
        rank: number of the rank.
        total_ns: time in collectives.
        waiting_ns: time beyond the rank with the least time. The rank waited at least this long if
            all ranks exchange the same amounts, and longer if different ranks were late at times.
    """

    rank: int
    total_ns: int
    waiting_ns: int


def is_collective(opcode: str, name: str) -> bool:
    """Return whether an instruction of a compiled program is a collective, or half of one.

    The name is needed because the opcode may not say so: an asynchronous reduce-scatter has the
    opcode "async-start".
    """
    return _whole(opcode) in _OPCODES or _whole(_stem(name)) in _OPCODES


def collective_nodes(profile: Profile) -> Mask:
    """Return which nodes are collectives of PyTorch, JAX, or a GPU's library, shape (nodes,), bool."""
    return profile.once(collective_nodes, lambda: _collective_nodes(profile))


def _collective_nodes(profile: Profile) -> Mask:
    by_opcode = _names_by_opcode(profile)
    frames = profile.frames
    is_hlo = frames.kind == FrameKind.HLO
    in_programs = _accepted(
        frames, is_hlo, _is_named if by_opcode is None else by_opcode.__contains__
    )
    elsewhere = _accepted(frames, ~is_hlo, lambda name: name.startswith(_PREFIXES))
    return (in_programs | elsewhere)[profile.tree.frame]


def by_rank(profile: Profile) -> tuple[CollectiveTime, ...]:
    """Return one row a rank of a merged profile; empty without collectives of JAX programs."""
    rows = ranks.by_rank(profile)
    if not rows or DEVICE_TIME_NS.name not in profile.metrics:
        return ()
    is_counted = collective_nodes(profile)[ranks.largest_nodes(profile)]
    sums = ranks.own_values(profile, DEVICE_TIME_NS.name)[is_counted].sum(axis=0)
    totals = {row.rank: round(value) for row, value in zip(rows, sums, strict=True) if value > 0}
    if not totals:
        return ()
    least = min(totals.values())
    return tuple(CollectiveTime(rank, value, value - least) for rank, value in totals.items())


def _accepted(frames: FrameTable, of_kind: Mask, accepts: Callable[[str], bool]) -> Mask:
    """Return which of the frames have an accepted name, shape (frames,), bool."""
    names = map(int, np.unique(frames.name[of_kind]))
    accepted = [name for name in names if accepts(frames.strings[name])]
    return of_kind & np.isin(frames.name, accepted)


def _names_by_opcode(profile: Profile) -> frozenset[str] | None:
    """Return the names of instructions that are collectives; None where no opcodes are known."""
    try:
        operations = jax_operations.operations(profile)
    except ProfileDataError:
        return None
    if not operations:
        return None
    found = {each.name for each in operations if is_collective(each.opcode, each.name)}
    others = {each.name for each in operations if not is_collective(each.opcode, each.name)}
    return frozenset(found - others)


def _is_named(name: str) -> bool:
    return _stem(name) in _PRIMITIVES or _whole(_stem(name)) in _OPCODES


def _stem(name: str) -> str:
    """Return ``"psum_invariant"`` of ``"psum_invariant.7"``."""
    stem, _, number = name.rpartition(".")
    return stem if stem and number.isdigit() else name


def _whole(opcode: str) -> str:
    return opcode.removesuffix("-start").removesuffix("-done")
