"""What single findings say about stored profiles, beyond the fault and its line."""

from __future__ import annotations

import functools

import pytest

from deepcontext.analyzers import Finding, Severity, run_analyzers
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.jax.programs import INSERTED
from tests.fault_pairs.store import PROFILES


@functools.cache
def profile(name: str) -> Profile:
    return Profile.load(PROFILES / f"{name}.dcprof")


def found(name: str, *only: str) -> tuple[Finding, ...]:
    return run_analyzers(profile(name), only=only)


def test_findings_name_the_number_of_multiprocessors() -> None:
    (finding,) = found("gpu_launch_problem", "launch_configuration")
    assert finding.evidence["multiprocessors"] == 132
    assert finding.gain is not None
    assert finding.gain.upper_bound_share == pytest.approx(2 / 3 * (1 - 8 / 132), rel=0.01)


def test_reads_of_a_program_without_a_gpu_are_one_finding() -> None:
    (finding,) = found("synchronisation_problem", "synchronisation")
    assert finding.severity is Severity.INFO
    assert "and 2 more lines read values from tensors 3 times a step" in finding.title


def test_waits_of_a_jax_program_without_a_device_are_no_warning() -> None:
    (finding,) = found("jax_waits_problem", "synchronisation")
    assert finding.severity is Severity.INFO


def test_changed_argument_of_a_jax_function_is_named() -> None:
    (finding,) = found("jax_retrace_problem", "recompilation")
    assert "f32[" in str(finding.evidence["changes"])


def test_one_of_a_chain_of_pointwise_operators_remains() -> None:
    (finding,) = [
        each for each in found("eager_problem", "kernel_fusion") if "pointwise" in each.title
    ]
    spent, count = (int(finding.evidence[key]) for key in ("host_time_ns", "operators_count"))
    assert finding.gain is not None
    assert finding.gain.upper_bound == spent - spent // count


def test_every_operation_that_xla_inserted_has_its_name() -> None:
    markers = profile("jax_carry_problem").query().kind("marker").name(INSERTED)
    assert markers.total("device_time_ns", inclusive=True) > 0
    assert markers.total("device_time_ns") == 0


def test_every_graph_break_is_named() -> None:
    findings = found("graph_break_problem", "recompilation")
    assert findings
    assert all("resume" not in finding.title for finding in findings)


def test_layer_that_converts_there_and_back_is_one_finding() -> None:
    (finding,) = found("rms_norm_problem", "copies")
    assert finding.title.startswith("RMSNorm.forward converts tensors there and back")
    assert finding.gain is not None
    assert finding.gain.upper_bound == finding.evidence["layer_ns"]


def test_the_slow_rank_is_named_and_not_those_that_wait() -> None:
    (finding,) = found("ranks_rooted_problem", "rank_imbalance")
    assert finding.evidence["rank"] == 1
    assert "(load)" in finding.title
    assert int(finding.evidence["most_ns"]) >= 40 * 90_000_000


def test_the_late_rank_and_its_line_are_told_once() -> None:
    (finding,) = found("ranks_problem", "rank_imbalance", "straggler")
    assert (finding.id, finding.evidence["rank"]) == ("straggler", 1)
    assert ", waiting at " in finding.title
    assert "(load)" in finding.title


def test_memory_that_grows_is_one_finding_with_its_holder() -> None:
    (finding,) = found("memory_problem", "memory")
    assert "list 'kept' of memory_problem.py holds 30 tensors, 30 with a graph" in finding.title


def test_what_holds_the_tensors_is_named() -> None:
    (finding,) = found("kept_outputs_problem", "memory")
    assert "list Trainer.logged holds 200 tensors, 200 with a graph" in finding.title
    assert finding.evidence["held_bytes"] == 200 * 512 * 256 * 4
