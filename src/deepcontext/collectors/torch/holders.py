"""Which Python objects hold many tensors: lists, dicts, objects, frames that an exception keeps.

Looks on request only (option `holders`), at snapshots and at the end, for a bounded time. Runs no code of
the program: objects are visited as the garbage collector visits them (`native/python/holder_search.cpp`),
and attributes are read through the descriptors of Python itself. Does not judge.
Invariant: whatever fails costs the names, never the profile.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native
from deepcontext.collectors.torch.holder_names import HolderNames
from deepcontext.profiler.recording import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

SECTION: Final = "holders"
_LAYOUT: Final = 1
# Fewer tensors are what any layer, optimizer or batch has.
_FEWEST: Final = 8
_MOST_HOLDERS: Final = 16
_MOST_KEPT: Final = 64
_MOST_PLACES: Final = 4
# Of one holder; an even sample of more.
_MOST_TENSORS: Final = 4096
# One search holds the GIL for this long at most.
_LONGEST_SEARCH_S: Final = 0.3
_RECENT_S: Final = 0.2
# Smaller memory is no problem, whoever holds it.
_LEAST_LIVE_BYTES: Final = 1 << 20
# Further looks wait until all looks have taken at most this share of the run, after a first allowance.
_ALLOWANCE_S: Final = 0.05
_MOST_SHARE: Final = 0.002
_PYTHON_FRAME: Final = 2


@dataclass(slots=True)
class _Held:
    """What one object holds, at the look that found the most.

    Attributes:
        holder: its type and name.
        tensors: number of tensors.
        is_complete: whether the look went on to its end; otherwise there may be more tensors.
        kept_share: share of all tensors ever made at the same places that live, 0 to 1.
        with_graph: those of them with a graph for a backward.
        size_bytes: memory of the tensors, without that of their graphs.
        places: where they were allocated: Python frames (file, line, function), outermost first.
        first_tensors: number of tensors at the first look that found the object.
        looks: looks that found it.
    """

    holder: str
    tensors: int
    with_graph: int
    size_bytes: int
    kept_share: float
    is_complete: bool
    places: list[list[tuple[str, int, str]]] = field(default_factory=list)
    first_tensors: int = 0
    looks: int = 1

    def to_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class _Known:
    key: tuple[int, str]  # address and name
    held: _Held


class Holders:
    """The objects that held tensors at the looks of one session."""

    def __init__(self, addresses: Callable[[Any, Iterable[Any]], Iterator[int]]) -> None:
        self._addresses = addresses
        self._found: list[_Known] = []
        self._spent_s = 0.0
        self._looks = 0
        self._looked_s = 0.0
        self.is_complete = True  # whether all looks went on to their ends

    def look(self, age_s: float, *, is_last: bool = False) -> None:
        """Look now, unless earlier looks took too much of the session's `age_s` seconds.

        The last look is not left out, because a program that has ended waits for nothing, unless a
        look has just been taken.
        """
        if is_last and self._looks and age_s - self._looked_s < _RECENT_S:
            return
        is_too_much = self._spent_s > _ALLOWANCE_S + _MOST_SHARE * age_s
        if sys.is_finalizing() or (is_too_much and not is_last) or not _holds_memory():
            return
        begun = clock.monotonic_s()
        try:
            self._look()
        finally:
            self._spent_s += clock.monotonic_s() - begun
            self._looks += 1
            self._looked_s = age_s

    def sections(self) -> Mapping[str, bytes]:
        """Return what was found, those with most tensors first."""
        if not self._looks:
            return {}
        content = {
            "version": _LAYOUT,
            "looks": self._looks,
            "holders": [known.held.to_dict() for known in self._found[:_MOST_HOLDERS]],
        }
        return {SECTION: json.dumps(content).encode()}

    def _look(self) -> None:
        torch: Any = sys.modules["torch"]
        found, is_complete = _native.tensor_holders(
            torch.Tensor, _FEWEST, _MOST_HOLDERS, _LONGEST_SEARCH_S
        )
        holders, counts = [each for each, _ in found], [count for _, count in found]
        del found  # or its tuples would be found as referrers
        names = HolderNames(holders, _LONGEST_SEARCH_S)
        self.is_complete &= is_complete and names.is_complete
        for position, holder in enumerate(holders):
            name = names.of(position)
            if name:
                held = self._held(torch, holder, name, counts[position])
                held.is_complete = is_complete
                self._note(id(holder), held)
        del self._found[_MOST_KEPT:]

    def _held(self, torch: Any, holder: object, name: str, count: int) -> _Held:
        stride = max(1, count // _MOST_TENSORS)
        tensors = _native.tensors_of(holder, torch.Tensor, stride, _MOST_TENSORS)
        graphs = sum(_has_graph(each) for each in tensors)
        rows = _native.memory_places(list(self._addresses(torch, tensors)))
        scale = count / max(len(tensors), 1)
        living, made = sum(row[3] for row in rows), sum(row[4] for row in rows)
        return _Held(
            holder=name,
            tensors=count,
            with_graph=round(graphs * scale),
            size_bytes=round(sum(row[2] for row in rows) * scale),
            kept_share=living / max(made, 1),
            is_complete=True,
            places=[
                [(file, line, name) for kind, name, file, line in row[0] if kind == _PYTHON_FRAME]
                for row in sorted(rows, key=lambda row: -row[2])[:_MOST_PLACES]
            ],
            first_tensors=count,
        )

    def _note(self, address: int, held: _Held) -> None:
        """Keep the look at an object that found the most tensors in it."""
        position = next(
            (at for at, known in enumerate(self._found) if known.key == (address, held.holder)),
            None,
        )
        if position is None:
            self._found.append(_Known((address, held.holder), held))
        else:
            known = self._found[position].held
            held.first_tensors, held.looks = known.first_tensors, known.looks + 1
            if held.tensors >= known.tensors:
                self._found[position].held = held
            else:
                known.looks = held.looks
        self._found.sort(key=lambda known: -known.held.tensors)


def _holds_memory() -> bool:
    pools = _native.memory_summary()["pools"]
    return sum(pool["live_bytes"] for pool in pools) >= _LEAST_LIVE_BYTES


def _has_graph(tensor: Any) -> bool:
    """Return whether a tensor has a graph; asking a view for its graph may change it."""
    return bool(tensor.requires_grad and (tensor._is_view() or not tensor.is_leaf))  # noqa: SLF001
