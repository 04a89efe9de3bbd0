"""Analyzers on profiles from real GPUs, which visits brought home (`benchmarks/visits`)."""

from __future__ import annotations

from pathlib import Path

import pytest

import deepcontext
from deepcontext.analyzers import Severity, run_analyzers
from deepcontext.analyzers.shared.repeated_idle import repeated_idle
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.summaries.jax.programs import device_accounting, jitted_functions

VISIT = Path(__file__).resolve().parents[2] / "benchmarks" / "visits" / "2026-11-26-h100"


def profile_of(name: str) -> deepcontext.Profile:
    return deepcontext.Profile.load(VISIT / f"{name}.dcprof")


def told(name: str) -> dict[str, str]:
    """Return what is more than a question: titles by analyzer."""
    return {
        each.id: each.title
        for each in run_analyzers(profile_of(name))
        if each.severity > Severity.INFO
    }


def test_a_training_step_whose_products_are_not_aligned() -> None:
    """GPT-2 with 50,257 tokens: padding them to 50,304 saved 31 % of the step on that machine."""
    findings = run_analyzers(profile_of("gpt2"))
    (finding,) = findings
    assert finding.id == "far_from_peak"
    assert "workloads.py:66" in finding.title
    assert finding.gain is not None
    assert finding.gain.upper_bound_share == pytest.approx(0.35, abs=0.01)
    assert "50,304" in finding.advice


def test_the_beginning_of_a_program_does_not_starve_the_device() -> None:
    """The first step waits 4.2 s for imports and libraries; later steps hardly wait."""
    profile = profile_of("gpt2")
    busy = total(profile, "gpu_time_ns")
    assert total(profile, "gpu_idle_ns") > 3 * busy
    assert repeated_idle(profile).sum() < 0.15 * busy


def test_decoding_is_bound_by_launches() -> None:
    found = told("decode")
    assert set(found) == {"device_starvation", "kernel_fusion", "launch_configuration"}
    assert "46%" in found["device_starvation"]
    assert "workloads.py:48" in found["device_starvation"]
    assert "132 multiprocessors" in found["launch_configuration"]


def test_a_step_of_jax_is_on_lines_with_its_library_calls() -> None:
    """The matrix products are captured into child graphs, whose nodes get other ids."""
    profile = profile_of("jax")
    times = profile.exclusive("gpu_time_ns")
    step = lines = 0
    for node in times.nonzero()[0].tolist():
        path = profile.path(node)
        if any(frame.name == "jit(train)" for frame in path):
            step += int(times[node])
            kinds = {frame.kind for frame in path if frame.kind is not FrameKind.PYTHON}
            is_own = any(frame.file.endswith("program.py") for frame in path)
            lines += int(times[node]) if is_own and FrameKind.HLO in kinds else 0
    assert step > 0
    assert lines == step
    names = {profile.frame(node).name for node in profile.query().kind("graph").nodes().tolist()}
    assert names == {"graph replay"}  # nothing was captured before the session
    assert "device_starvation" not in told("jax")
    assert "copies" not in told("jax")


def test_a_program_named_once_more_below_its_call_counts_once() -> None:
    profile = profile_of("jax")
    functions = jitted_functions(profile)
    assert functions[0].name == "jit(train)"
    assert functions[0].device_ns <= device_accounting(profile).total
    assert sum(functions[0].phases.values()) == functions[0].device_ns
