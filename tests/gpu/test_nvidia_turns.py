"""torch.profiler before, during and after a session, and records that come late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness import Bench

pytestmark = [pytest.mark.gpu, pytest.mark.needs("torch")]

PROGRAM = """
import torch, deepcontext
from torch.profiler import profile, ProfilerActivity
x = torch.randn(256, 256, device="cuda")
def work(count):
    for _ in range(count):
        torch.relu(x)
    torch.cuda.synchronize()
def use(count):
    with profile(activities=[ProfilerActivity.CUDA]) as other:
        work(count)
    events = other.profiler.kineto_results.events()
    return sum("elementwise" in event.name() for event in events)
work(1)
theirs = use(50) if {before} else 0
deepcontext.start()
work(100)
theirs = use(50) if {during} else theirs
work(200)
recorded = deepcontext.stop()
theirs = use(50) if {after} else theirs
report(ours=recorded.trust.counters.get("gpu_records_matched", 0), theirs=theirs,
       unmatched=recorded.trust.counters.get("gpu_records_unmatched", 0),
       said=" / ".join([*recorded.trust.warnings, *recorded.trust.notes]))
"""


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_torch_profiler_beside_a_session(bench: Bench, when: str) -> None:
    """Who measures depends on the version of Kineto; whoever does not, says so."""
    flags = {each: each == when for each in ("before", "during", "after")}
    values = bench.run(PROGRAM.format(**flags), is_profiled=False).values
    bench.row(
        f"torch.profiler {when} the session",
        f"ours {values['ours']}, theirs {values['theirs']}; {values['said']}",
        "300 (350 inside), 50; or said",
    )
    assert values["unmatched"] == 0
    assert values["ours"] >= 300 or values["said"]


def test_a_thread_that_launches_rarely(bench: Bench) -> None:
    """Its records come when the others have gone round the ring of call paths."""
    outcome = bench.run(
        """
        import threading, torch
        x = torch.zeros(64, device="cuda")
        def rare():
            for _ in range(5):
                x.add_(1)
        thread = threading.Thread(target=rare)
        thread.start()
        thread.join()
        for _ in range(1_200_000):
            x.add_(1)
        torch.cuda.synchronize()
        """
    )
    unmatched = outcome.counters["gpu_records_unmatched"]
    bench.row("1,200,005 launches, 5 of them on another thread: unmatched", str(unmatched), "0")
    assert unmatched == 0
    assert sum(outcome.under("rare").values()) == 5


@pytest.mark.takes(80)
def test_a_graph_that_is_replayed_for_a_minute(bench: Bench) -> None:
    outcome = bench.run(
        """
        import torch
        x = torch.randn(256, 256, device="cuda")
        torch.relu(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(20):
                x.mul_(1.0001)
        end, replays = time.monotonic() + 60, 0
        before = torch.cuda.mem_get_info()[0]
        while time.monotonic() < end:
            for _ in range(100):
                graph.replay()
            torch.cuda.synchronize()
            replays += 100
        report(replays=replays, grown_bytes=before - torch.cuda.mem_get_info()[0])
        """
    )
    values, counters = outcome.values, outcome.counters
    bench.row(
        "graph of 20 kernels for 60 s: unmatched, growth of device memory",
        f"{counters['gpu_records_unmatched']}, {values['grown_bytes']:.0f} B, "
        f"{values['replays']:.0f} replays",
        "0, for information",
    )
    assert counters["gpu_records_unmatched"] == 0
    assert outcome.figure("graph_captured") == 20 * values["replays"]
