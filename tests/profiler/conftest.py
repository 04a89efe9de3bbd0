"""Strategies for profiles of any shape, and the comparison of two profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.profile import Profile


class Parents(Protocol):
    """A strategy for the parents of a tree's nodes in creation order; see `parents`."""

    def __call__(self, most: int = 30) -> st.SearchStrategy[list[int]]: ...


@st.composite
def _parents(draw: st.DrawFn, most: int) -> list[int]:
    count = draw(st.integers(1, most))
    # The previous node half of the time, so that trees are both deep and wide.
    return [0] + [
        draw(st.one_of(st.just(node - 1), st.integers(0, node - 1))) for node in range(1, count)
    ]


@pytest.fixture(scope="session")
def parents() -> Parents:
    """Return a strategy for lists of parents: element 0 is 0, element i is less than i."""
    return lambda most=30: _parents(most)


@pytest.fixture(scope="session")
def profiles() -> st.SearchStrategy[Profile]:
    """Return a strategy for small random profiles."""
    return st.builds(
        random_profile, st.integers(1, 60), seed=st.integers(0, 10**6), depth=st.integers(2, 30)
    )


@pytest.fixture(scope="session")
def assert_same_profile() -> Callable[[Profile, Profile], None]:
    """Return a function that fails unless two profiles are equal, column by column."""
    return _assert_same_profile


def _assert_same_profile(left: Profile, right: Profile) -> None:
    for column in ("parent", "frame", "phase", "depth", "subtree_end"):
        ours, theirs = getattr(left.tree, column), getattr(right.tree, column)
        assert ours.dtype == theirs.dtype, column
        np.testing.assert_array_equal(ours, theirs, column)
    assert list(left.frames) == list(right.frames)
    assert list(left.metrics) == list(right.metrics)
    for name, rows in left.metrics.items():
        others = right.metrics[name]
        assert rows.descriptor == others.descriptor
        for column in ("node", "count", "total", "minimum", "maximum", "m2"):
            ours, theirs = getattr(rows, column), getattr(others, column)
            assert (ours is None) == (theirs is None), (name, column)
            if ours is not None:
                assert ours.dtype == theirs.dtype, (name, column)
                np.testing.assert_array_equal(ours, theirs, f"{name} {column}")
    assert left.run == right.run
    assert left.trust == right.trust
    assert left.sections == right.sections
