"""Facts about the functions of a program, which the conditions of the catalogue name.

    calls(products) >= calls(inverses)        largest(others) * 8 <= largest(cost)

A class alone stands for the operators that the function calls itself, ``*class`` also for those that
libraries and layers call for it, ``**class`` also for those that operators call. Does not know any class.
Backward operators are left out, except by ``gradient``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import (
    NO_FUNCTION,
    called_by_user,
    functions_of_nodes,
)
from deepcontext.analyzers.shared.kept_each_step import kept
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    HOST_TIME_NS,
)
from deepcontext.profiler.model.metric_values import counts_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.basis import basis_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Floats = source_locations.Floats
    Mask = source_locations.Mask

ALLOCATED: Final = "alloc_bytes"
_COMPARISON: Final = re.compile(r"(.+?)\s*(<=|>=|==|<|>)\s*(.+)")
_FACT: Final = re.compile(r"(\w+)\((.*)\)")
_LIBRARIES: Final = "*"
_COST: Final = "cost"
_OTHERS: Final = "others"
_ANY: Final = "any"
# Operators that allocate once, twice, ... n times as much in their n calls.
_GROWN: Final = "grown"
_LEAST_GROWN_CALLS: Final = 20
# How well sizes must match those of values that become more by the same number from call to call.
_TOLERANCE: Final = 0.1


def holds(condition: str, fact: Callable[[str, str], float]) -> bool:
    """Return whether a condition is true of the facts of a place.

    Args:
        condition: two products of numbers and facts, and a comparison between them.
        fact: returns the value of a fact by its name and its argument.
    """
    match = _COMPARISON.fullmatch(condition)
    if match is None:
        raise ValueError(f"not a comparison: {condition}")
    left, right = value_of(match[1], fact), value_of(match[3], fact)
    return {
        "<=": left <= right,
        ">=": left >= right,
        "<": left < right,
        ">": left > right,
        "==": left == right,
    }[match[2]]


def value_of(product: str, fact: Callable[[str, str], float]) -> float:
    """Return the value of numbers and facts joined by `` * `` and `` / ``."""
    first, *rest = re.split(r"\s+([*/])\s+", product.strip())
    value = _term(first, fact)
    for sign, term in zip(rest[::2], rest[1::2], strict=True):
        other = _term(term, fact)
        value = value * other if sign == "*" else value / (other or 1.0)
    return value


def _term(text: str, fact: Callable[[str, str], float]) -> float:
    match = _FACT.fullmatch(text)
    return fact(match[1], match[2]) if match else float(text)


class Places:
    """The operators of each function of the program, in columns that are computed once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.function = functions_of_nodes(profile)
        forward = profile.is_kind(FrameKind.OPERATOR) & (profile.tree.phase != Phase.BACKWARD)
        self.deep = forward & (self.function != NO_FUNCTION)
        is_operator = profile.is_kind(FrameKind.OPERATOR)
        self.inside = self.deep & ~is_operator[profile.tree.parent.clip(0)]
        self.own = self.inside & called_by_user(profile)
        self.calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
        self.time = profile.inclusive(HOST_TIME_NS.name)

    @classmethod
    def of(cls, profile: Profile) -> Places:
        """Return the places of a profile with time in operators; made once."""
        return profile.once("places", lambda: cls(profile))

    def mask(self, classes: str) -> Mask:
        """Return which nodes are operators of some classes, shape (nodes,)."""

        def compute() -> Mask:
            mask = np.zeros(len(self.own), np.bool_)
            for each in classes.split():
                if each in {_ANY, _GROWN}:
                    mask |= self.own if each == _ANY else self.own & self._grown()
                    continue
                names = catalogue.operators(each.lstrip(_LIBRARIES))
                named = source_locations.operators(self.profile, names).mask()
                mask |= named & (self.own, self.inside, self.deep)[each.count(_LIBRARIES)]
            return mask

        return self.profile.once((Places, classes), compute)

    def count(self, classes: str, function: int) -> int:
        """Return the number of calls of operators of some classes by a function."""
        return int(self.calls[self.nodes(classes, function)].sum())

    def nodes(self, classes: str, function: int) -> Ints:
        """Return the operators of some classes in a function."""
        functions, nodes = self.profile.once((Places, "of", classes), lambda: self._sorted(classes))
        low, high = np.searchsorted(functions, (function, function + 1))
        found: Ints = nodes[low:high]
        return found

    def _sorted(self, classes: str) -> tuple[Ints, Ints]:
        nodes = np.flatnonzero(self.mask(classes))
        order = np.argsort(self.function[nodes], kind="stable")
        return self.function[nodes][order], nodes[order]

    def largest(self, *, backward: bool) -> Ints:
        """Return the largest allocation at and below each node: of its forward, or of its backward."""

        def compute() -> Ints:
            tree, rows = self.profile.tree, allocations(self.profile)
            largest = np.zeros(len(tree), np.int64)
            if rows is not None and rows.maximum is not None:
                largest[rows.node] = rows.maximum
            largest[(tree.phase == Phase.BACKWARD) != backward] = 0
            return tree.inclusive_maximum(largest)

        return self.profile.once((Places, "largest", backward), compute)

    def _grown(self) -> Mask:
        tree, rows = self.profile.tree, allocations(self.profile)
        found = np.zeros(len(tree), np.bool_)
        if rows is None or rows.minimum is None or rows.maximum is None or rows.m2 is None:
            return found
        # Compared as integers first, because few operators of a program grow.
        uneven = np.flatnonzero((rows.count >= _LEAST_GROWN_CALLS) & (rows.maximum > rows.minimum))
        low, high = (each[uneven].astype(np.float64) for each in (rows.minimum, rows.maximum))
        count = rows.count[uneven].astype(np.float64)
        grows = (low > 0) & (np.abs(high - low * count) <= _TOLERANCE * high)
        grows &= is_even(low, high, rows.total[uneven] / count, np.sqrt(rows.m2[uneven] / count))
        found[rows.node[uneven[grows]]] = True
        return tree.at_or_above(found) & ~tree.below(self.profile.is_kind(FrameKind.MODULE))


class Facts:
    """Facts of one function; `cost` is a class for what an entry counts, `others` for all else it calls."""

    def __init__(self, places: Places, function: int, cost: str) -> None:
        self._places, self._function, self._cost = places, function, cost

    def __call__(self, name: str, argument: str) -> float:
        """Return a fact by its name and its argument, classes of operators."""
        return float(getattr(self, f"_{name}")(argument))

    def nodes(self, classes: str) -> Ints:
        """Return the operators of some classes in the function."""
        if classes == _OTHERS:
            own = self._places.nodes(_ANY, self._function)
            return np.setdiff1d(own, self.nodes(_COST))
        chosen = self._cost if classes == _COST else classes
        return self._places.nodes(chosen, self._function)

    def _calls(self, classes: str) -> int:
        nodes = self.nodes(classes)
        if _LIBRARIES in classes:
            nodes = _outermost(self._places.profile, nodes)
        return int(self._places.calls[nodes].sum())

    def _most(self, classes: str) -> int:
        return int(self._places.calls[self.nodes(classes)].max(initial=0))

    def _time(self, classes: str) -> int:
        return int(self._places.time[_outermost(self._places.profile, self.nodes(classes))].sum())

    def _inside(self, classes: str) -> int:
        """How many operators of the first class run inside of those of the second: ``a in b``."""
        first, second = classes.split(" in ")
        profile, mask = self._places.profile, np.zeros(len(self._places.own), np.bool_)
        mask[self.nodes(second)] = True
        names = catalogue.operators(first)
        return int(
            (source_locations.operators(profile, names).mask() & profile.tree.below(mask)).sum()
        )

    def _under(self, argument: str) -> int:
        """How many operators of a class a function of a library calls: ``class in name()``."""
        classes, name = argument.removesuffix("()").split(" in ")
        profile = self._places.profile
        frames = source_locations.nodes_named(profile, FrameKind.PYTHON, {name})
        return int(profile.tree.below(frames.mask())[self.nodes(classes)].sum())

    def _largest(self, classes: str) -> int:
        return int(self._places.largest(backward=False)[self.nodes(classes)].max(initial=0))

    def _smallest(self, classes: str) -> int:
        sizes = self._places.largest(backward=False)[self.nodes(classes)]
        return int(sizes[sizes > 0].min(initial=np.iinfo(np.int64).max))

    def _gradient(self, classes: str) -> int:
        return int(self._places.largest(backward=True)[self.nodes(classes)].max(initial=0))

    def _sized_input(self, classes: str) -> int:
        """How many of the first class have an input as large as the largest of the second."""
        first, second = classes.split(" as ")
        size = self._largest(second)
        inputs = self._places.largest(backward=True)[self.nodes(first)]
        return int((inputs == size).sum() if size else 0)

    def _kept(self, classes: str) -> int:
        """How many keep what they allocate in each step; memory tells these."""
        profile = self._places.profile
        above = profile.once((Places, "kept"), lambda: profile.tree.at_or_above(kept(profile, "")))
        return int(above[self.nodes(classes)].sum())

    def _foreign(self, _: str) -> int:
        """How many operators layers and libraries call for the function."""
        outermost = _outermost(self._places.profile, self._all())
        return int((~self._places.own[outermost]).sum())

    def _stranger(self, classes: str) -> int:
        """How many operators of the function, also those that layers call, are of no such class."""
        known = self._places.nodes(f"{_LIBRARIES}{classes}", self._function)
        outermost = _outermost(self._places.profile, self._all())
        return len(np.setdiff1d(outermost, known))

    def _all(self) -> Ints:
        places = self._places
        nodes = places.profile.once(
            (Places, "all"), lambda: _by_function(places.function, np.flatnonzero(places.inside))
        )
        low, high = np.searchsorted(nodes[0], (self._function, self._function + 1))
        found: Ints = nodes[1][low:high]
        return found


def allocations(profile: Profile) -> MetricRows | None:
    """Return the sizes that were allocated, of the whole run, because windows have no extremes."""
    return basis_of(profile).whole.metrics.get(ALLOCATED)


def is_even(low: Floats, high: Floats, mean: Floats, deviation: Floats) -> Mask:
    """Return which values are spread evenly from `low` to `high`, by their mean and deviation.

    Source: the uniform distribution, mean (a + b) / 2 and deviation (b - a) / sqrt(12).
    """
    evenly = np.abs(mean - (low + high) / 2) <= _TOLERANCE * mean
    return np.asarray(
        evenly & (np.abs(deviation - (high - low) / np.sqrt(12)) <= _TOLERANCE * deviation)
    )


def _by_function(function: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    order = np.argsort(function[nodes], kind="stable")
    return function[nodes][order], nodes[order]


def _outermost(profile: Profile, nodes: Ints) -> Ints:
    """Leave out nodes below others of the same selection."""
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[nodes] = True
    found: Ints = np.asarray(profile.tree.outermost(mask), np.int64)
    return found


def query_of(profile: Profile, nodes: Ints | Sequence[int]) -> Query:
    """Select some nodes."""
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[np.asarray(nodes, np.int64)] = True
    return Query(profile, mask)
