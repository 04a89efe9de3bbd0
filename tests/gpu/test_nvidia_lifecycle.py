"""Starting, stopping, other tools in the way, and what the library itself says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness import Bench

pytestmark = [pytest.mark.gpu, pytest.mark.needs("torch")]

# A session that the program starts, and the outcome of the collector.
USER_SESSION = """
import torch, deepcontext
x = torch.randn(256, 256, device="cuda")
torch.cuda.synchronize()
def work(count):
    for _ in range(count):
        torch.relu(x)
    torch.cuda.synchronize()
def outcome(profile):
    return next(each for each in profile.trust.collectors if each.name == "nvidia")
"""


def test_the_library_that_torch_uses_is_the_one_opened(bench: Bench) -> None:
    outcome = bench.run(
        USER_SESSION
        + """
deepcontext.start()
work(10)
found = outcome(deepcontext.stop())
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "libcupti.so" in line}
report(mapped=len(mapped), is_it=float(any(found.details["library"] in one for one in mapped)),
       version=int(found.details["version"]), capability=torch.cuda.get_device_capability()[0])
""",
        is_profiled=False,
    )
    bench.row("libcupti: API version", f"{outcome.values['version']:.0f}", "one copy mapped")
    assert outcome.values["mapped"] == 1
    assert outcome.values["is_it"] == 1
    assert outcome.values["version"] >= 18


def test_sessions_in_a_row(bench: Bench) -> None:
    """Correlation ids start over with each subscription."""
    outcome = bench.run(
        USER_SESSION
        + """
totals = []
for count in (100, 250):
    deepcontext.start()
    work(count)
    counters = deepcontext.stop().trust.counters
    totals.append((counters["gpu_records_matched"], counters["gpu_records_unmatched"]))
report(first=totals[0][0], second=totals[1][0], unmatched=totals[0][1] + totals[1][1])
""",
        is_profiled=False,
    )
    bench.row("two sessions in one process", str(outcome.values), "100, 250, 0 unmatched")
    assert outcome.values == {"first": 100, "second": 250, "unmatched": 0}


def test_a_flush_after_a_synchronisation_leaves_nothing_pending(bench: Bench) -> None:
    outcome = bench.run(
        USER_SESSION
        + """
from deepcontext import _native
deepcontext.start()
work(1000)
_native.gpu_flush("cupti")
figures = _native.gpu_figures("cupti")
deepcontext.stop()
report(received=figures["received"], launches=figures["launches"])
""",
        is_profiled=False,
    )
    bench.row("records after synchronise and flush", f"{outcome.values['received']:.0f}", "1000")
    assert outcome.values["received"] == 1000


def test_nothing_is_slower_after_the_stop(bench: Bench) -> None:
    outcome = bench.run(
        USER_SESSION
        + """
def cost():
    begun = time.perf_counter_ns()
    for _ in range(5000):
        torch.relu(x)
    spent = time.perf_counter_ns() - begun
    torch.cuda.synchronize()
    return spent / 5000
cost()
before = min(cost() for _ in range(9))
deepcontext.start()
cost()
deepcontext.stop()
after = min(cost() for _ in range(9))
report(before=before, after=after)
""",
        is_profiled=False,
    )
    ratio = outcome.values["after"] / outcome.values["before"]
    # What remains is CUPTI's own: an empty tool leaves as much behind (decision 100).
    bench.row("launch after the stop, against before the start", f"{ratio:.3f}", "<= 1.25")
    assert ratio <= 1.25


@pytest.mark.parametrize(
    ("tool", "hold", "release"),
    [
        (
            "torch.profiler",
            (
                "from torch.profiler import profile, ProfilerActivity\n"
                "holder = profile(activities=[ProfilerActivity.CUDA]); holder.start()\n"
            ),
            "holder.stop()\n",
        ),
        pytest.param(
            "proton",
            "import triton.profiler as proton\nproton.start('held')\n",
            "proton.finalize()\n",
            marks=pytest.mark.needs("proton"),
        ),
    ],
)
def test_another_tool_in_the_way_is_loud(bench: Bench, tool: str, hold: str, release: str) -> None:
    """The CPU profile is complete, and the GPU part is there or said to be missing."""
    outcome = bench.run(
        USER_SESSION
        + hold
        + """
work(10)
deepcontext.start()
work(100)
profile = deepcontext.stop()
found = outcome(profile)
operators = profile.query().kind("operator").name("aten::relu").count()
report(matched=profile.trust.counters.get("gpu_records_matched", 0), operators=operators,
       is_said=float(bool(found.reason or profile.trust.warnings)), reason=str(found.reason),
       warnings=len(profile.trust.warnings))
"""
        + release,
        is_profiled=False,
    )
    bench.row(
        f"{tool} holds CUPTI",
        f"{outcome.values['matched']:.0f} of 100 kernels, "
        + (f"said: {outcome.values['reason']}" if outcome.values["is_said"] else "nothing to say"),
        "all, or said",
    )
    assert outcome.values["operators"] >= 1
    if outcome.values["matched"] < 100:
        assert outcome.values["is_said"]
        assert outcome.values["warnings"] >= 1


@pytest.mark.needs("proton")
def test_proton_inside_a_session_runs(bench: Bench) -> None:
    """The session gives way, so that the program does not fail, and goes on afterwards."""
    outcome = bench.run(
        USER_SESSION
        + """
import os, tempfile
import triton.profiler as proton
deepcontext.start()
work(100)
proton.start(os.path.join(tempfile.mkdtemp(), "inside"))
work(100)
proton.finalize()
work(100)
profile = deepcontext.stop()
report(matched=profile.trust.counters["gpu_records_matched"],
       is_said=float("Proton had CUPTI" in str(outcome(profile).reason)))
""",
        is_profiled=False,
    )
    bench.row("Proton inside a session", f"{outcome.values['matched']:.0f} of 300", "200, said")
    assert outcome.values["matched"] == 200
    assert outcome.values["is_said"]


@pytest.mark.needs("jax")
def test_jax_profiler_in_the_way_is_loud(bench: Bench) -> None:
    outcome = bench.run(
        """
        import tempfile, jax, jax.numpy as jnp, deepcontext
        call = jax.jit(lambda x: jnp.tanh(x @ x))
        x = jnp.ones((512, 512))
        call(x).block_until_ready()
        jax.profiler.start_trace(tempfile.mkdtemp())
        call(x).block_until_ready()
        deepcontext.start()
        for _ in range(50):
            call(x).block_until_ready()
        profile = deepcontext.stop()
        jax.profiler.stop_trace()
        found = next(each for each in profile.trust.collectors if each.name == "nvidia")
        report(matched=profile.trust.counters.get("gpu_records_matched", 0),
               is_said=float(bool(found.reason)), reason=str(found.reason))
        """,
        is_profiled=False,
        environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    )
    bench.row(
        "jax.profiler holds CUPTI",
        f"{outcome.values['matched']:.0f} of 50 calls or more, said: {outcome.values['reason']}",
        "all, or said",
    )
    assert outcome.values["matched"] >= 50 or outcome.values["is_said"]


def test_hardware_tracing_is_refused_before_blackwell(bench: Bench) -> None:
    """For information: a cheaper way to record that newer devices have."""
    outcome = bench.run(
        """
        import ctypes
        from deepcontext.collectors.gpu.libraries import find_cupti
        import torch
        capability = torch.cuda.get_device_capability()[0]
        cupti = ctypes.CDLL(find_cupti().path)
        function = getattr(cupti, "cuptiActivityEnableHWTrace", None)
        report(result=function(1) if function else -1, capability=capability)
        """,
        is_profiled=False,
    )
    result, capability = outcome.values["result"], outcome.values["capability"]
    bench.row("cuptiActivityEnableHWTrace", f"{result:.0f}", "27 before compute capability 10")
    if capability < 10 and result != -1:
        assert result == 27


def test_stalls_are_sampled_or_the_permission_is_named(bench: Bench) -> None:
    outcome = bench.run(
        """
        import torch
        x = torch.randn(4096, 4096, device="cuda")
        def multiply():
            return x @ x
        for _ in range(800):
            multiply()
        torch.cuda.synchronize()
        """,
        "--stalls",
        environment={"DEEPCONTEXT_GPU_STALLS": "may-hang"},
    )
    assert outcome.profile is not None
    samples = outcome.figure("stall_samples")
    bench.row(
        "--stalls: samples", str(samples) if samples else outcome.reason, "samples or why not"
    )
    assert outcome.counters["gpu_records_matched"] >= 800  # records go on beside the sampling
    if samples == 0:
        assert "stalls are not sampled" in outcome.reason
        if "INSUFFICIENT_PRIVILEGES" in outcome.reason:
            assert "NVreg_RestrictProfilingToAdminUsers=0" in outcome.reason
    else:
        rows = outcome.profile.metrics["stall_samples"]
        assert int(rows.total.sum()) == samples
        reasons = {outcome.profile.frame(node).name for node in rows.node.tolist()}
        assert len(reasons) >= 3
        assert not any(name.endswith("not_issued") for name in reasons)
