"""Ways to load jax that the import hook sees, sees late, or does not see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.profiled import profiled as run_profiled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import deepcontext
    from deepcontext.profiler.model.trust import CollectorReport

    Profiled = Callable[[str], tuple[deepcontext.Profile, CollectorReport, str]]

pytest.importorskip("jax")

USE = """
    import jax, jax.numpy as jnp
    jax.jit(jnp.tanh)(jnp.ones(8)).block_until_ready()
"""


@pytest.fixture
def profiled(tmp_path: Path) -> Profiled:
    def run(source: str) -> tuple[Any, Any, str]:
        done = run_profiled(tmp_path, source, "-q", environment={"JAX_PLATFORMS": "cpu"})
        (collector,) = [c for c in done.profile.trust.collectors if c.name == "jax"]
        return done.profile, collector, done.stderr

    return run


def _launches(profile: deepcontext.Profile) -> int:
    return int(profile.query().kind("operator").total("program_launch_count"))


def test_a_program_that_asks_for_the_spec_of_jax_before_it_imports_it(profiled: Profiled) -> None:
    profile, _, stderr = profiled(f"""
    import importlib.util
    assert importlib.util.find_spec("jax") is not None
    {USE}""")
    assert _launches(profile) > 0
    assert stderr == ""


def test_a_jax_that_was_loaded_unnoticed_is_observed_from_the_next_snapshot(
    profiled: Profiled,
) -> None:
    profile, collector, _ = profiled(f"""
    import sys, deepcontext
    sys.meta_path = [f for f in sys.meta_path if not f.__module__.startswith("deepcontext")]
    import jax
    deepcontext._MANAGER.session.snapshot()
    {USE}""")
    assert _launches(profile) > 0
    assert collector.status == "degraded"
    assert "did not notice until the next snapshot" in collector.reason


def test_a_jax_that_was_loaded_unnoticed_to_the_end_is_a_fault_of_the_profiler(
    profiled: Profiled,
) -> None:
    profile, collector, stderr = profiled(f"""
    import sys
    from deepcontext import _native
    _native.stop_watcher()  # no snapshot
    sys.meta_path = [f for f in sys.meta_path if not f.__module__.startswith("deepcontext")]
    {USE}""")
    assert profile.query().kind("operator").count() == 0
    assert collector.status == "unavailable"
    assert "jax was loaded but the profiler did not notice" in collector.reason
    assert "[deepcontext] error: jax was loaded" in stderr
