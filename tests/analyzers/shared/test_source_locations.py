"""Descriptions of source locations that several analyzers use."""

from __future__ import annotations

import pytest

from deepcontext.analyzers.shared import source_locations


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        ("step", "put @jax.jit on 'step'"),
        ("Net.forward", "put @jax.jit on 'Net.forward'"),
        ("main.<locals>.step", "put @jax.jit on 'main.<locals>.step'"),
        ("<module>", "make these lines a function and put @jax.jit on it"),
        ("main.<locals>.<lambda>", "make these lines a function and put @jax.jit on it"),
    ],
)
def test_a_decorator_is_advised_only_for_a_function(function: str, advice: str) -> None:
    assert source_locations.decorate("@jax.jit", function) == advice
