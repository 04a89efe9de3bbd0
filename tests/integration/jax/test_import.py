"""Ways to load jax that the import hook sees, sees late, or does not see."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

import deepcontext

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
        (tmp_path / "program.py").write_text(textwrap.dedent(source))
        command = ["-m", "deepcontext", "profile", "-q", "-o", "out.dcprof"]
        done = subprocess.run(
            [sys.executable, *command, "program.py"],
            cwd=tmp_path,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        profile = deepcontext.Profile.load(tmp_path / "out.dcprof")
        (collector,) = [c for c in profile.trust.collectors if c.name == "jax"]
        return profile, collector, done.stderr

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
