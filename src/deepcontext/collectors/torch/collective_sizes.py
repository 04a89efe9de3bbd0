"""How many bytes collectives of `torch.distributed` exchanged, from torch's own flight recorder.

The recorder is on by default from torch 2.13 on and holds the last 2,000 operations of the process, in order
and by group. Asked once, at the end, because its answer takes tens of milliseconds. Sizes are joined with
rows by the number of the collective, counted from the last one; where any operation differs, nothing is
joined.
"""

from __future__ import annotations

import math
import pickle
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = tuple[int, ...]

_MODULE: Final = "torch._C._distributed_c10d"
_PREFIX: Final = "gloo:"
_BYTES_COLUMN: Final = 6
# What the recorder calls the operators that are numbered. Gloo scatters the result of an all-reduce.
_NAMES: Final = {
    "allreduce_": ("all_reduce",),
    "allreduce_coalesced_": ("all_reduce",),
    "allgather_": ("all_gather",),
    "_allgather_base_": ("all_gather",),
    "alltoall_": ("all_to_all",),
    "alltoall_base_": ("all_to_all",),
    "reduce_scatter_": ("reduce_scatter", "all_reduce"),
    "_reduce_scatter_base_": ("reduce_scatter", "all_reduce"),
    "barrier": ("barrier",),
}
_NUMBERED: Final = frozenset(name for names in _NAMES.values() for name in names)
_BYTES: Final = {
    **dict.fromkeys(("Double", "Long", "ComplexFloat", "UInt64"), 8),
    **dict.fromkeys(("Float", "Int", "UInt32", "ComplexHalf"), 4),
    **dict.fromkeys(("Half", "BFloat16", "Short", "UInt16"), 2),
    **dict.fromkeys(("Byte", "Char", "Bool"), 1),
    "ComplexDouble": 16,
}


def recorded() -> Mapping[str, Sequence[tuple[str, int]]]:
    """Return operation and bytes of the last collectives of each group, by its name, in their order."""
    dump = getattr(sys.modules.get(_MODULE), "_dump_fr_trace", None)
    if dump is None:
        return {}
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    try:
        content = dump(includeCollectives=True, includeStackTraces=False, onlyActive=False)
        for entry in pickle.loads(content)["entries"]:  # noqa: S301  torch's own bytes
            name = str(entry["profiling_name"]).removeprefix(_PREFIX)
            if not entry["is_p2p"] and name in _NUMBERED:
                found[str(entry["process_group"][0])].append((name, _size_bytes(entry)))
    except Exception:  # noqa: BLE001  a private function of torch, whose answer may change
        return {}
    return found


def with_bytes(
    rows: Sequence[Row],
    groups: Sequence[tuple[str, int]],
    operations: Sequence[str],
    sizes: Mapping[str, Sequence[tuple[str, int]]],
) -> list[Row]:
    """Return rows with the bytes, where they are known.

    Args:
        rows: as the section has them; of collectives on a device the bytes are known.
        groups: name and number of collectives, by index.
        operations: names, by index.
        sizes: as `recorded` returns them.
    """
    bytes_of: dict[tuple[int, int], int] = {}
    for index, (name, called) in enumerate(groups):
        known = sizes.get(name, ())[-called:] if called else ()
        first = called - len(known)
        of_group = [row for row in rows if row[0] == index and first <= row[1] < called]
        if all(known[row[1] - first][0] in _NAMES[operations[row[3]]] for row in of_group):
            bytes_of |= {(index, row[1]): known[row[1] - first][1] for row in of_group}
    return [
        (
            *row[:_BYTES_COLUMN],
            row[_BYTES_COLUMN] or bytes_of.get((row[0], row[1]), 0),
            *row[_BYTES_COLUMN + 1 :],
        )
        for row in rows
    ]


def _size_bytes(entry: Mapping[str, Any]) -> int:
    """Return the bytes of the larger side; 0 where a type is unknown."""
    return max(_sum(entry, "input"), _sum(entry, "output"))


def _sum(entry: Mapping[str, Any], side: str) -> int:
    shapes, types = entry[f"{side}_sizes"], entry[f"{side}_dtypes"]
    # One type may stand for all tensors of a list.
    types = types if len(types) == len(shapes) else types[:1] * len(shapes)
    return sum(
        math.prod(shape) * _BYTES.get(str(kind), 0)
        for shape, kind in zip(shapes, types, strict=False)
    )
